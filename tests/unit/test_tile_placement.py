"""Which blocks are materialised although they could be recomputed: overwritten snapshots, expensive shared ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Block

from halfulp.compiler.dialects import tile
from halfulp.compiler.dialects.tile import RefType
from halfulp.compiler.dialects.tile.memory import root_of
from halfulp.compiler.passes.tile_to_loops.loop_builder import LoopBuilder
from halfulp.compiler.passes.tile_to_loops.placement import EXPENSIVE, Placement
from halfulp.compiler.passes.tile_to_loops.strips import Strips
from halfulp.compiler.tile_builder import KernelBuilder, Value

Body = Callable[[KernelBuilder, Value, Value], Value | None]
"""Builds a kernel of two references of [2, 16]; gives the block that is asked about."""


def is_forced(body: Body) -> bool:
    kernel = tile.KernelOp("k", [RefType([2, 16], f32)] * 2, [])
    builder = KernelBuilder(kernel)
    block = body(builder, *builder.arguments)
    builder.insert(tile.ReturnOp())
    ModuleOp([kernel]).verify()
    assert block is not None
    return block.ssa in Placement(Strips(LoopBuilder(Block()), 16), kernel.body).forced


def expensive(k: KernelBuilder, block: Value) -> Value:
    for _ in range(EXPENSIVE):
        block = block * 2.0
    return block


def used_before_the_store(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)
    k.store(block, y)
    k.store(k.constant(0.0, block.type), x)
    return block


def used_by_the_store_at_its_place(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)
    k.store(block + block, x)
    return block


def used_after_a_store_elsewhere(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)
    k.store(k.constant(0.0, block.type), y)
    k.store(block, y)
    return block


def stored_before_the_load(k: KernelBuilder, x: Value, y: Value) -> Value:
    k.store(k.load(y), x)
    block = k.load(x)
    k.store(block, y)
    return block


def cheap_and_shared(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x) * 2.0
    k.store(block, y)
    k.reduce("add", block, 0)
    return block


def expensive_for_one(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = expensive(k, k.load(x))
    k.store(block, y)
    return block


def before_the_last_shared_block(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = expensive(k, k.load(x))
    shared = block + 1.0
    k.store(shared, y)
    k.reduce("add", shared, 0)
    return block


@pytest.mark.parametrize(
    "body",
    [
        used_before_the_store,
        used_by_the_store_at_its_place,
        used_after_a_store_elsewhere,
        stored_before_the_load,
        cheap_and_shared,
        expensive_for_one,
        before_the_last_shared_block,
    ],
)
def test_recomputed(body: Body) -> None:
    assert not is_forced(body)


def used_after_the_store(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)
    k.store(k.constant(0.0, block.type), x)
    k.store(block, y)
    return block


def stored_through_another_window(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)
    k.store(block, k.window(x, [1, 0], [2, 16], indexing="element"))
    return block


def used_by_the_store_at_another_place(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)
    k.store(k.slice(block, [1, 0], [2, 16], [-1, 1]), x)
    return block


def used_before_the_store_in_a_loop(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)

    def body(i: Value) -> None:
        k.store(block, y)
        k.store(k.constant(0.0, block.type), x)

    k.for_loop(0, 3, [], body)
    return block


def used_in_the_condition_of_a_loop_that_stores(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = k.load(x)

    def condition(i: Value) -> Value:
        k.store(block, y)
        return i < 3

    def body(i: Value) -> list[Value]:
        k.store(k.constant(0.0, block.type), x)
        return [i + 1]

    k.while_loop([k.index(0)], condition, body)
    return block


def yielded_after_the_store(k: KernelBuilder, x: Value, y: Value) -> Value:
    inside: list[Value] = []

    def body(i: Value, carried: Value) -> list[Value]:
        inside.append(k.load(x))
        k.store(carried, x)
        return [inside[0]]

    k.for_loop(0, 3, [k.constant(0.0, k.load(y).type)], body)
    return inside[0]


def expensive_and_shared(k: KernelBuilder, x: Value, y: Value) -> Value:
    block = expensive(k, k.load(x))
    k.store(block, y)
    k.reduce("add", block, 0)
    return block


@pytest.mark.parametrize(
    "body",
    [
        used_after_the_store,
        stored_through_another_window,
        used_by_the_store_at_another_place,
        used_before_the_store_in_a_loop,
        used_in_the_condition_of_a_loop_that_stores,
        yielded_after_the_store,
        expensive_and_shared,
    ],
)
def test_materialised(body: Body) -> None:
    assert is_forced(body)


def test_root_of_windows_is_the_argument() -> None:
    kernel = tile.KernelOp("k", [RefType([4, 16], f32)], [])
    k = KernelBuilder(kernel)
    (x,) = k.arguments
    inner = k.window(k.window(x, [0, 0], [2, 16]), [1, 0], [1, 16], squeezed=[0])
    assert root_of(inner.ssa) is root_of(k.flatten(x).ssa) is x.ssa


def test_a_chain_with_two_paths_at_each_step_takes_no_time() -> None:
    def body(k: KernelBuilder, x: Value, y: Value) -> Value:
        block = first = k.load(x)
        for _ in range(2000):
            block = block + block
        k.store(block, x)
        return first

    assert not is_forced(body)
