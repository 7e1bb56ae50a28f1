"""Symbols that get their values from data: the size of an axis under a new name, and how many elements are not zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IndexType, i64
from xdsl.dialects.builtin import TensorType as BlockType

from halfulp.compiler import Dim, DType, TensorType, TensorValue
from halfulp.compiler.kernel_call import KernelCall
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, ParameterSpec, register_kernel
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value

from .contract import ALL

BLOCK = 4096


def _size(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value]) -> Mapping[str, Value]:
    axis = call.parameters["axis"]
    assert isinstance(axis, int)
    return {"size": entry.dim(operands[0], axis)}


def _nothing(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value], outputs: Sequence[Value]) -> None:
    """The output has no elements; its shape is what is wanted."""


DEFINE_SIZE = register_kernel(
    KernelDef(
        "define_size",
        operands=(OperandSpec("x", ALL, None),),
        outputs=(OutputSpec("carrier", DType.int8, ("size", 0)),),
        parameters=(ParameterSpec("axis", int),),
        computed=("size",),
        build_dims=_size,
        build=_nothing,
    )
)


def define_symbol(subject: str, value: TensorValue, axis: int, symbol: Dim) -> None:
    """Give a new symbol the size of an axis; ``subject`` is the op that messages name."""
    carrier = TensorType(DType.int8, [symbol, 0], value.device)
    value.graph.custom(DEFINE_SIZE.name, value.device, [value], [carrier], {"axis": axis}, subject=subject)


# -- positions of what is not zero


def _count(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value]) -> Mapping[str, Value]:
    total = entry.buffer(["1"], i64)

    def body(k: KernelBuilder) -> None:
        mask, write = k.arguments

        def chunk(index: Value, found: Value) -> list[Value]:
            block = k.load(k.window(mask, [index], [BLOCK]))
            return [found + k.reduce("add", k.select(block, k.constant(1, BlockType(i64, [BLOCK])), 0))]

        chunks = (k.dim(mask, 0) + (BLOCK - 1)) // BLOCK
        (count,) = k.for_loop(0, chunks, [k.constant(0, i64)], chunk)
        k.write(count, write, 0)

    entry.launch("count_true", [operands[0], total], [entry.index(1)], body)
    return {"count": entry.cast(entry.read(total, 0), IndexType())}


def _positions(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value], outputs: Sequence[Value]) -> None:
    def body(k: KernelBuilder) -> None:
        mask, write = k.arguments

        def element(index: Value, found: Value) -> list[Value]:
            taken = k.read(mask, index)

            def keep() -> None:
                k.write(k.cast(index, i64), write, found)

            k.if_(taken, keep)
            return [found + k.select(taken, k.index(1), 0)]

        k.for_loop(0, k.dim(mask, 0), [k.index(0)], element)

    entry.launch("positions", [operands[0], outputs[0]], [entry.index(1)], body)


POSITIONS = register_kernel(
    KernelDef(
        "positions",
        operands=(OperandSpec("mask", DType.bool, ("n",)),),
        outputs=(OutputSpec("positions", DType.int64, ("count",)),),
        computed=("count",),
        build_dims=_count,
        build=_positions,
    )
)


def positions_of(subject: str, mask: TensorValue, count: Dim) -> TensorValue:
    """Where a mask of one axis is true, in ascending order; ``count`` is a new symbol, or a size that it must have.

    ``subject`` is the op that messages name.
    """
    result = TensorType(DType.int64, [count], mask.device)
    return mask.graph.custom(POSITIONS.name, mask.device, [mask], [result], subject=subject)[0]
