"""Operands of registered kernels that are the caller's memory: what a kernel writes to them stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import halfulp.ops.pallas as pl
from halfulp import ops
from halfulp.compiler import BufferType, BufferValue, DeviceRef, DType, Graph, GraphError, TensorType, TensorValue
from halfulp.compiler.registry import OperandSpec, OutputSpec, unregister_kernel
from halfulp.runtime import InferenceSession
from halfulp.runtime.errors import ExecutionError

F32, I64 = DType.float32, DType.int64
CPU = DeviceRef.CPU()
X = np.array([1.5, -2.0, 3.25], np.float32)
MUTABLE, FIRST = OperandSpec("memory", F32, (3,), mutable=True), OutputSpec("first", F32, (1,))


@pytest.fixture(autouse=True)
def kernels() -> Iterator[None]:
    @pl.register_kernel("adds_one", operands=[MUTABLE, OperandSpec("round", I64, ())], outputs=[FIRST])
    def adds_one(memory: Any, turn: Any, first: Any) -> None:
        pl.check(turn[...] < 4, "round {} is one too many", turn[...])
        first[...] = memory[...][:1]
        memory[...] = memory[...] + 1

    def doubles(memory: Any, first: Any) -> None:
        memory[...] = memory[...] * 2
        first[...] = memory[...][:1]

    @pl.register_kernel("doubles_twice", operands=[MUTABLE], outputs=[FIRST])
    def doubles_twice(memory: Any) -> Any:
        call = pl.pallas_call(doubles, pl.ShapeDtypeStruct((1,), np.float32))
        call(memory)
        return call(memory)

    @pl.register_kernel("scratches", operands=[OperandSpec("x", F32, (3,))], outputs=[OutputSpec("y", F32, (3,))])
    def scratches(x: Any, y: Any) -> None:
        x[...] = x[...] * 2
        y[...] = x[...]

    def adds(memory: Any, other: Any, first: Any) -> None:
        memory[...] = memory[...] + other[...]
        first[...] = memory[...][:1]

    @pl.register_kernel("adds_itself", operands=[MUTABLE], outputs=[FIRST])
    def adds_itself(memory: Any) -> Any:
        return pl.pallas_call(adds, pl.ShapeDtypeStruct((1,), np.float32))(memory, memory)

    yield
    for name in ("adds_one", "doubles_twice", "scratches", "adds_itself"):
        unregister_kernel(name)


def in_place(name: str, *operands: Any) -> TensorValue:
    (first,) = ops.inplace_custom(name, CPU, list(operands), [TensorType(F32, [1])])
    return first


def test_a_kernel_changes_the_memory_of_the_caller_in_every_round_of_a_loop() -> None:
    def forward(memory: BufferValue, rounds: TensorValue) -> list[TensorValue]:
        def body(turn: TensorValue, first: TensorValue) -> list[TensorValue]:
            return [turn + 1, in_place("adds_one", memory, turn)]

        start = [ops.constant(0, I64), ops.constant(np.zeros(1, np.float32))]
        return [*ops.while_loop(start, lambda turn, _: turn < rounds, body)[1:], memory[...]]

    model = InferenceSession().load(Graph("g", forward, [BufferType(F32, [3]), TensorType(I64, [])]))
    memory = X.copy()
    first, after = (buffer.to_numpy() for buffer in model.execute(memory, np.array(3)))
    assert first == X[0] + 2
    assert np.array_equal(after, X + 3)
    assert np.array_equal(memory, X + 3)
    with pytest.raises(ExecutionError, match="round 4 is one too many"):
        model.execute(memory, np.array(7))


def test_kernels_that_a_function_of_arrays_calls_change_it_too() -> None:
    def forward(memory: BufferValue) -> list[TensorValue]:
        return [in_place("doubles_twice", memory), memory[...]]

    memory = X.copy()
    model = InferenceSession().load(Graph("g", forward, [BufferType(F32, [3])]))
    first, after = (buffer.to_numpy() for buffer in model.execute(memory))
    assert first == X[0] * 4
    assert np.array_equal(after, X * 4)
    assert np.array_equal(memory, X * 4)


def test_memory_that_a_kernel_changes_is_one_operand_of_it() -> None:
    graph = Graph("g", lambda memory: in_place("adds_itself", memory), [BufferType(F32, [3])])
    with pytest.raises(GraphError) as caught:
        InferenceSession().load(graph)
    assert caught.value.message == (
        "op 'adds_itself': kernel 'adds' writes to args[0], which is another of its operands, too, and no copy, since "
        "it is mutable; pass it once"
    )


def test_another_operand_is_a_copy() -> None:
    def forward(x: TensorValue) -> list[TensorValue]:
        return [*ops.custom("scratches", CPU, [x], [x.type]), x + 0]

    model = InferenceSession().load(Graph("g", forward, [TensorType(F32, [3])]))
    given = X.copy()
    y, same = (buffer.to_numpy() for buffer in model.execute(given))
    assert np.array_equal(y, X * 2)
    assert np.array_equal(same, X)
    assert np.array_equal(given, X)
