"""Buffers: what shares memory with what, what is copied, and what is refused in which words."""

from __future__ import annotations

import copy
import ctypes
import pickle
import struct
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp.compiler.device import DeviceRef
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError
from halfulp.runtime import CPU, Buffer, Device


def raised(kind: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    return str(error.value)


def test_new_buffer_is_zero_aligned_and_writable() -> None:
    buffer = Buffer(DType.float32, (3, 5))
    assert buffer.address % 64 == 0
    assert (buffer.dtype, buffer.shape, buffer.rank, buffer.num_elements) == (DType.float32, (3, 5), 2, 15)
    assert buffer.device == CPU()
    np.testing.assert_array_equal(buffer.to_numpy(), np.zeros((3, 5), np.float32))
    buffer.to_numpy()[1, 2] = 7
    assert np.asarray(buffer)[1, 2] == 7


def test_new_buffer_takes_numpy_types_and_sizes() -> None:
    assert Buffer(np.int16, [np.int64(2)]).dtype is DType.int16
    assert Buffer("float64", ()).shape == ()


@pytest.mark.parametrize("dtype", list(DType))
def test_every_type_goes_in_and_out(dtype: DType) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype.to_numpy())
    buffer = Buffer.from_numpy(array)
    assert buffer.dtype is dtype
    out = buffer.to_numpy()
    assert out.dtype == array.dtype
    assert np.shares_memory(out, array)
    assert out.tobytes() == array.tobytes()


def test_from_numpy_shares_memory_both_ways() -> None:
    array = np.arange(4.0)
    buffer = Buffer.from_numpy(array)
    array[0] = 10
    buffer.to_numpy()[1] = 11
    assert buffer.to_numpy().tolist() == array.tolist() == [10, 11, 2, 3]
    assert buffer.address == array.ctypes.data


def test_view_outlives_buffer() -> None:
    view = Buffer(DType.int64, (1000,)).to_numpy()
    view[:] = 5
    assert view.sum() == 5000


def test_views_cannot_change_the_buffer() -> None:
    buffer = Buffer(DType.float32, (4, 6))
    view = buffer.to_numpy()
    view = view.reshape(24)
    view.flags.writeable = False
    assert buffer.shape == (4, 6)
    assert buffer.to_numpy().flags.writeable


def test_copy_true_is_independent_and_aligned() -> None:
    array = np.arange(5.0)
    buffer = Buffer.from_numpy(array, copy=True)
    array[:] = 0
    assert buffer.to_numpy().tolist() == [0, 1, 2, 3, 4]
    assert buffer.address % 64 == 0


def unaligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    shifted = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
    return np.reshape(shifted.view(array.dtype), array.shape)


BASE = np.arange(24.0).reshape(4, 6)
INDIRECT = {
    "transposed": BASE.T,
    "every other column": BASE[:, ::2],
    "reversed": BASE[::-1],
    "broadcast": np.broadcast_to(np.float32(3), (2, 5)),
    "Fortran order": np.asfortranarray(BASE),
    "swapped bytes": BASE.astype(">f8"),
    "unaligned": unaligned(BASE),
}


@pytest.mark.parametrize("kind", INDIRECT)
def test_arrays_that_cannot_be_read_in_place_are_copied(kind: str) -> None:
    array = INDIRECT[kind]
    buffer = Buffer.from_numpy(array)
    np.testing.assert_array_equal(buffer.to_numpy(), array)
    flags = buffer.to_numpy().flags
    assert flags.c_contiguous
    assert flags.aligned
    assert buffer.to_numpy().dtype.isnative
    assert not np.shares_memory(buffer.to_numpy(), array)
    with pytest.raises(GraphError, match=r"^Buffer.from_numpy\(copy=False\) needs a C-contiguous, aligned array"):
        Buffer.from_numpy(array, copy=False)


def test_copy_false_message() -> None:
    assert raised(GraphError, lambda: Buffer.from_numpy(np.zeros((2, 3), np.float32).T, copy=False)) == (
        "Buffer.from_numpy(copy=False) needs a C-contiguous, aligned array in native byte order, got strides (4, 12) "
        "for shape [3, 2] of float32; leave copy out"
    )


def test_read_only_memory_is_shared_and_stays_read_only() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    buffer = Buffer.from_numpy(array)
    assert np.shares_memory(buffer.to_numpy(), array)
    assert not buffer.to_numpy().flags.writeable
    assert buffer.address == array.ctypes.data
    assert Buffer.from_numpy(array, copy=True).to_numpy().flags.writeable


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_zero_size(shape: tuple[int, ...]) -> None:
    buffer = Buffer.from_numpy(np.zeros(shape, np.int32))
    assert (buffer.shape, buffer.num_elements) == (shape, 0)
    assert buffer.address != 0
    assert Buffer(DType.bfloat16, shape).to_numpy().shape == shape


def test_zero_dimensional() -> None:
    for value in (np.float32(2.5), np.array(2.5, np.float32), np.array(2.5, ">f4")):
        buffer = Buffer.from_numpy(value)
        assert (buffer.shape, buffer.rank, buffer.num_elements, buffer.item()) == ((), 0, 1, 2.5)


def test_subclasses_become_plain_arrays() -> None:
    class Tagged(np.ndarray[Any, Any]):
        pass

    array = np.arange(3.0).view(Tagged)
    buffer = Buffer.from_numpy(array)
    assert type(buffer.to_numpy()) is np.ndarray
    assert np.shares_memory(buffer.to_numpy(), array)


def test_item() -> None:
    number = Buffer.from_numpy(np.array([[1.5]], ml_dtypes.bfloat16)).item()
    assert (number, type(number)) == (1.5, float)
    assert Buffer.from_numpy(np.array([True])).item() is True
    assert (
        raised(GraphError, lambda: Buffer(DType.int8, (2, 0)).item())
        == "item() needs a buffer of one element, got shape [2, 0]; use to_numpy()"
    )


def test_asarray_dtype_and_copy() -> None:
    buffer = Buffer.from_numpy(np.array([1.5, 2.5], np.float32))
    assert np.shares_memory(np.asarray(buffer), buffer.to_numpy())
    assert not np.shares_memory(np.array(buffer), buffer.to_numpy())
    assert np.asarray(buffer, dtype=np.float64).tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(buffer, dtype=np.float64, copy=False)


def test_dlpack_both_ways() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    buffer = Buffer.from_dlpack(array)
    assert np.shares_memory(buffer.to_numpy(), array)
    assert buffer.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(buffer)
    assert np.shares_memory(back, array)
    assert Buffer.from_dlpack(buffer).address == buffer.address


def test_dlpack_of_strided_memory_is_copied() -> None:
    array = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(Buffer.from_dlpack(array).to_numpy(), array)


class Carrier:
    """Hands on the capsule of a buffer: to the eye a stranger, such as a torch tensor."""

    def __init__(self, buffer: Buffer, versioned: bool) -> None:
        self._buffer = buffer
        self._versioned = versioned
        self.exported = 0

    def __dlpack__(self, max_version: tuple[int, int] | None = None, **arguments: object) -> object:
        self.exported += 1
        return self._buffer.__dlpack__(max_version=max_version if self._versioned else None, **arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._buffer.__dlpack_device__()


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3)])
def test_dlpack_of_bfloat16_both_ways(shape: tuple[int, ...], versioned: bool) -> None:
    original = Buffer(DType.bfloat16, shape)
    original.to_numpy()[...] = 1.5
    carrier = Carrier(original, versioned)
    buffer = Buffer.from_dlpack(carrier)
    assert carrier.exported == 1
    assert (buffer.dtype, buffer.shape) == (DType.bfloat16, shape)
    assert buffer.to_numpy().dtype == ml_dtypes.bfloat16
    original.to_numpy()[...] = 2.5
    assert buffer.to_numpy().tolist() == np.full(shape, 2.5).tolist()
    # numpy takes memory from old producers as read-only, and old consumers cannot be told so
    again = Buffer.from_dlpack(Carrier(buffer, True))
    assert again.to_numpy().tolist() == buffer.to_numpy().tolist()


def test_dlpack_of_bfloat16_keeps_the_memory_alive() -> None:
    source = Buffer(DType.bfloat16, (1 << 20,))
    source.to_numpy()[...] = 3
    buffer = Buffer.from_dlpack(Carrier(source, True))
    del source
    assert (np.asarray(buffer, dtype=np.float32) == 3).all()


def test_dlpack_of_read_only_bfloat16() -> None:
    array = np.ones(3, ml_dtypes.bfloat16)
    array.flags.writeable = False
    buffer = Buffer.from_dlpack(Carrier(Buffer.from_numpy(array), True))
    assert np.shares_memory(buffer.to_numpy(), array)
    assert not buffer.to_numpy().flags.writeable
    with pytest.raises(BufferError, match="readonly"):
        Buffer.from_numpy(array).__dlpack__()


def dlpack_type(capsule: object) -> tuple[int, int, int]:
    """Code, bits and lanes that an unversioned capsule states."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    address = pointer(capsule, b"dltensor")  # data, device type and id, ndim, then the type
    return struct.unpack_from("=BBH", ctypes.string_at(address + 20, 4))


def test_the_capsule_says_bfloat16() -> None:
    assert dlpack_type(Buffer(DType.uint16, (2,)).__dlpack__()) == (1, 16, 1)
    assert dlpack_type(Buffer(DType.bfloat16, (2,)).__dlpack__()) == (4, 16, 1)
    assert dlpack_type(Buffer(DType.float16, (2,)).__dlpack__()) == (2, 16, 1)


def test_numpy_refuses_a_bfloat16_capsule_by_itself() -> None:
    # RuntimeError up to numpy 2.4, BufferError from 2.5 on
    with pytest.raises((RuntimeError, BufferError), match="Unsupported dtype"):
        np.from_dlpack(Buffer(DType.bfloat16, (2,)))


class OnDevice:
    """A DLPack object whose memory is on a CUDA device."""

    def __dlpack__(self, **arguments: object) -> object:
        raise AssertionError("must not be asked for device memory")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class Unwilling(OnDevice):
    """A DLPack object of the host that refuses, as a torch tensor that requires grad does."""

    def __dlpack__(self, **arguments: object) -> object:
        raise BufferError("it requires grad")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_dlpack_errors() -> None:
    assert raised(GraphTypeError, lambda: Buffer.from_dlpack(OnDevice())) == (
        "the object given to Buffer.from_dlpack() (OnDevice) must be in host memory, not on a device of DLPack type "
        "2; copy it to the host first"
    )
    assert raised(GraphTypeError, lambda: Buffer.from_dlpack(Unwilling())) == (
        "the object given to Buffer.from_dlpack() (Unwilling) cannot be read through DLPack: it requires grad; "
        "pass a numpy array"
    )
    assert raised(GraphTypeError, lambda: Buffer.from_dlpack([1])) == (
        "Buffer.from_dlpack() takes an object with __dlpack__, not list; for a numpy array use Buffer.from_numpy()"
    )


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array([1j]),
        np.array(["a"]),
        np.array([b"a"]),
        np.zeros(2, "datetime64[s]"),
        np.zeros(2, [("a", "f4")]),
        np.zeros(2, np.longdouble),
    ],
    ids=lambda a: str(a.dtype),
)
def test_types_without_counterpart_are_refused(array: np.ndarray[Any, Any]) -> None:
    assert raised(GraphTypeError, lambda: Buffer.from_numpy(array)) == (
        f"the argument of Buffer.from_numpy() has dtype {array.dtype}, which is not an element type; convert it to "
        "one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64"
    )


def test_what_is_no_array_is_refused() -> None:
    assert raised(GraphTypeError, lambda: Buffer.from_numpy([1, 2])) == (
        "Buffer.from_numpy() takes a numpy array, not list; make one with np.asarray(x, dtype=...)"
    )
    assert raised(GraphTypeError, lambda: Buffer.from_numpy(np.ma.masked_array([1.0, 2.0], mask=[False, True]))) == (
        "the array given to Buffer.from_numpy() is a masked array and masks have no place to go; pass x.filled(value)"
    )


def test_bad_shapes_are_refused_before_allocation() -> None:
    assert (
        raised(GraphError, lambda: Buffer(DType.float32, (2, -1)))
        == "the sizes of a buffer must not be negative, got shape [2, -1]"
    )
    assert raised(GraphError, lambda: Buffer(DType.float32, (2**40, 2**40))) == (
        "a buffer of shape [1099511627776, 1099511627776] and type float32 has more than 2**63 bytes"
    )
    assert raised(GraphTypeError, lambda: Buffer(DType.float32, (2.0,))) == (  # type: ignore[arg-type]
        "the shape of a buffer must be a sequence of ints, not (2.0,)"
    )


def test_devices() -> None:
    buffer = Buffer(DType.float32, (2,))
    assert buffer.to(CPU()) is buffer
    assert CPU() == CPU()
    assert len({CPU(), CPU()}) == 1
    assert CPU().ref == DeviceRef.CPU()
    assert (str(CPU()), repr(CPU())) == ("cpu", "CPU()")
    elsewhere = Device(DeviceRef.GPU(0))
    assert elsewhere != CPU()
    for place in (lambda: buffer.to(elsewhere), lambda: Buffer(DType.float32, (2,), elsewhere)):
        assert raised(GraphError, place) == (
            "Device(DeviceRef.GPU(0)) is no accelerator, so no buffer can be on it; make one with Accelerator(...)"
        )
    assert raised(GraphTypeError, lambda: buffer.to("cpu")) == (  # type: ignore[arg-type]
        "Buffer.to() takes a device such as CPU(), not 'cpu'"
    )


@pytest.mark.parametrize("duplicate", [lambda b: pickle.loads(pickle.dumps(b)), copy.deepcopy], ids=["pickle", "copy"])
def test_copies_have_memory_of_their_own(duplicate: Callable[[Buffer], Buffer]) -> None:
    original = Buffer.from_numpy(np.arange(3), copy=True)
    copied = duplicate(original)
    assert copied.address == copied.to_numpy().ctypes.data != original.address
    assert copied.to_numpy().tolist() == [0, 1, 2]


def test_repr() -> None:
    assert repr(Buffer(DType.uint32, (4, 0))) == "Buffer(uint32, [4, 0], cpu)"
    assert repr(Buffer(DType.bool, ())) == "Buffer(bool, [], cpu)"
