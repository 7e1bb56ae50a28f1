"""Shapes of more than 2**31 elements. The memory is mapped but hardly touched, so the tests need none of it."""

from __future__ import annotations

import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler.dtypes import DType
from halfulp.compiler.graph import Forward, Graph
from halfulp.compiler.types import TensorType
from halfulp.runtime import Buffer, ExecutionError, InferenceSession, Model
from halfulp.runtime.memory import Array

COUNT = 2**31 + 5


@pytest.fixture
def vector() -> Array:
    """2**31 + 5 bytes; the last two are 5 and 7."""
    array = np.zeros(COUNT, np.int8)
    array[-2:] = 5, 7
    return array


def load(forward: Forward, *types: TensorType) -> Model:
    return InferenceSession().load(Graph("huge", forward, types))


def test_buffer_shares_the_memory(vector: Array) -> None:
    for buffer in (Buffer.from_numpy(vector), Buffer.from_dlpack(vector)):
        assert (buffer.num_elements, buffer.shape) == (COUNT, (COUNT,))
        assert buffer.address == vector.ctypes.data
        assert np.from_dlpack(buffer)[-1] == 7


def test_new_buffer_is_zero_to_the_end() -> None:
    buffer = Buffer(DType.bfloat16, (COUNT,))
    assert np.from_dlpack(Buffer.from_numpy(buffer.to_numpy().view(np.uint16)))[-1] == 0
    assert buffer.to_numpy().nbytes == 2 * COUNT


@pytest.mark.parametrize("size", ["n", COUNT])
def test_slice_at_the_end(vector: Array, size: str | int) -> None:
    model = load(lambda x: x[((slice(-3, None), 3),)], TensorType(DType.int8, [size]))
    assert model(vector)[0].to_numpy().tolist() == [0, 5, 7]


def test_strided_slice_over_everything(vector: Array) -> None:
    vector[3] = 9
    model = load(lambda x: x[3 :: 2**30], TensorType(DType.int8, ["n"]))
    assert model(vector)[0].to_numpy().tolist() == [9, 0, 5]


def test_reshape(vector: Array) -> None:
    rows = vector[5:].reshape(2**30, 2)
    model = load(lambda x: ops.reshape(x, [-1])[2**31 - 2 :], TensorType(DType.int8, [2**30, 2]))
    assert model(rows)[0].to_numpy().tolist() == [5, 7]


def test_reduction_of_the_last_rows(vector: Array) -> None:
    rows = vector[5:].reshape(2**30, 2)
    model = load(lambda x: ops.sum(x[((slice(-2, None), 2),)], axis=1), TensorType(DType.int8, ["n", 2]))
    assert model(rows)[0].to_numpy().tolist() == [[0], [12]]


@pytest.mark.parametrize("index", [np.int64, np.int32])
def test_gather(vector: Array, index: type[np.signedinteger]) -> None:
    """Even 32-bit indices reach the end, from behind."""
    types = TensorType(DType.int8, ["n"]), TensorType(DType.from_numpy(np.dtype(index)), ["k"])
    model = load(lambda x, at: ops.gather(x, at, axis=0), *types)
    assert model(vector, np.array([-1, -2, 0], index))[0].to_numpy().tolist() == [7, 5, 0]


def test_broadcast_that_is_never_stored() -> None:
    model = load(lambda x: ops.sum(ops.broadcast_to(x, [2**40, 3])[:2], axis=1), TensorType(DType.int8, [3]))
    assert model(np.ones(3, np.int8))[0].to_numpy().tolist() == [[3], [3]]


def test_many_rows_without_elements() -> None:
    model = load(lambda x: x + x, TensorType(DType.int8, ["n", "m"]))
    assert model(np.zeros((2**40, 0), np.int8))[0].shape == (2**40, 0)


def test_result_that_the_system_refuses() -> None:
    model = load(lambda x: ops.sum(x, axis=1), TensorType(DType.int8, ["n", "m"]))
    with pytest.raises(MemoryError) as caught:
        model(np.zeros((2**61, 0), np.int8))
    assert str(caught.value) == (
        "model 'huge': output 0 ('output_0') of shape [2305843009213693952, 1] needs 2305843009213693952 bytes, and "
        "the system refuses them"
    )


def test_copy_that_the_system_refuses() -> None:
    model = load(lambda x: x[0], TensorType(DType.int8, ["n", 3]))
    with pytest.raises(MemoryError) as caught:
        model(np.broadcast_to(np.int8(1), (2**50, 3)))
    assert str(caught.value) == (
        "model 'huge': input 0 ('x') of shape [1125899906842624, 3] is not contiguous, its copy needs "
        "3377699720527872 bytes, and the system refuses them"
    )


def test_result_of_more_bytes_than_an_i64_counts() -> None:
    model = load(lambda x: ops.sum(x, axis=0), TensorType(DType.float64, ["n", "m"]))
    with pytest.raises(ExecutionError, match=r"would have shape \[1, 1152921504606846975\] \(\[1, m\]\) of float64"):
        model(np.zeros((0, 2**60 - 1)))
