"""Buffers on an accelerator: copies there and back, lifetime, and what needs host memory."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfulp.compiler import DeviceRef, DType, GraphError, GraphTypeError
from halfulp.runtime import CPU, Accelerator, Buffer, DeviceError, OutOfDeviceMemoryError

DEVICE = Accelerator(emulated=True)
OTHER = Accelerator(1, emulated=True)
SHAPES: list[tuple[int, ...]] = [(), (0,), (3, 0, 2), (1,), (4, 5)]


def raised(kind: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def used() -> int:
    """Bytes in use on the device, what nobody holds given back."""
    gc.collect()
    DEVICE.heap.trim()
    free = DEVICE.heap.driver.free_bytes()
    assert free is not None
    return -free


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DType)
def test_round_trip_keeps_every_bit(dtype: DType, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    words = np.random.default_rng(size).integers(0, 2 if dtype is DType.bool else 256, size * dtype.size_in_bytes)
    array = words.astype(np.uint8).view(dtype.to_numpy()).reshape(shape)
    there = Buffer.from_numpy(array).to(DEVICE)
    assert (there.dtype, there.shape, there.rank, there.num_elements) == (dtype, shape, len(shape), size)
    assert there.device == DEVICE
    for copy in (there, there.copy(), there.to(OTHER)):
        back = copy.to(CPU())
        assert back.device == CPU()
        assert back.to_numpy().tobytes() == array.tobytes()
        assert back.to_numpy().dtype == array.dtype
        assert back.shape == shape


def test_strides_are_made_contiguous() -> None:
    array = np.arange(24, dtype=np.int16).reshape(4, 6)[::-1, ::2]
    np.testing.assert_array_equal(Buffer.from_numpy(array).to(DEVICE).to(CPU()).to_numpy(), array)


def test_new_buffers_hold_zeros() -> None:
    buffer = Buffer("float64", (2, 3), DEVICE)
    assert repr(buffer) == "Buffer(float64, [2, 3], emulated gpu:0)"
    np.testing.assert_array_equal(buffer.to(CPU()).to_numpy(), np.zeros((2, 3)))


def test_a_buffer_that_is_there_is_not_copied() -> None:
    buffer = Buffer("int8", (4,), DEVICE)
    assert buffer.to(Accelerator(0, emulated=True)) is buffer
    assert buffer.copy().address != buffer.address
    host = Buffer("int8", (4,))
    assert host.to(CPU()) is host
    assert host.copy().address != host.address


def test_a_copy_has_nothing_to_do_with_its_source() -> None:
    array = np.ones(3, np.float32)
    there = Buffer.from_numpy(array).to(DEVICE)
    array[...] = 2
    back = there.to(CPU())
    back.to_numpy()[...] = 3
    assert there.to(CPU()).to_numpy().tolist() == [1, 1, 1]


def test_memory_is_given_back_when_the_buffer_is_gone() -> None:
    before = used()
    buffer = Buffer("uint8", (1000,), DEVICE)
    assert used() == before + 1000
    del buffer
    assert used() == before


def test_what_needs_the_host_says_so() -> None:
    buffer = Buffer("float32", (2,), DEVICE)
    rest = (
        "needs host memory, but Buffer(float32, [2], emulated gpu:0) is on an accelerator; copy it with "
        ".to(CPU()) first"
    )
    calls: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
        "to_numpy()": (GraphTypeError, buffer.to_numpy),
        "item()": (GraphTypeError, buffer.item),
        "a numpy array": (GraphTypeError, lambda: np.asarray(buffer)),
        "DLPack": (BufferError, buffer.__dlpack__),
        "pickling": (GraphTypeError, lambda: pickle.dumps(buffer)),
    }
    for what, (kind, call) in calls.items():
        assert raised(kind, call) == f"{what} {rest}"
    assert raised(BufferError, buffer.__dlpack_device__) == f"DLPack {rest}"
    assert raised(GraphTypeError, lambda: Buffer.from_dlpack(buffer)) == (
        "Buffer.from_dlpack() takes host memory, not Buffer(float32, [2], emulated gpu:0); copy it with "
        ".to(CPU()) first"
    )


def test_what_is_no_device_is_refused() -> None:
    buffer = Buffer("float32", (2,), DEVICE)
    where: Any = "gpu:0"
    assert raised(GraphTypeError, lambda: buffer.to(where)) == "Buffer.to() takes a device such as CPU(), not 'gpu:0'"
    assert raised(GraphTypeError, lambda: Buffer("float32", (2,), where)) == (
        "Buffer(device=...) takes a device such as CPU(), not 'gpu:0'"
    )
    assert raised(GraphError, lambda: Accelerator(-1)) == "Accelerator() counts devices from 0, got -1"
    assert raised(GraphTypeError, lambda: Accelerator(where)) == (
        "Accelerator() takes the number of a device, an int, not 'gpu:0'"
    )
    assert raised(GraphTypeError, lambda: DeviceRef.GPU(where)) == (
        "DeviceRef.GPU() takes the number of a device, an int, not 'gpu:0'"
    )


def test_devices_are_equal_by_kind_and_number() -> None:
    assert Accelerator(0, emulated=True) == DEVICE != OTHER
    assert len({DEVICE, Accelerator(0, emulated=True), OTHER, CPU()}) == 3
    assert (repr(OTHER), str(OTHER), OTHER.name) == ("Accelerator(1, emulated=True)", "emulated gpu:1", "emulated GPU")


def test_too_much_memory_is_refused_with_what_there_is() -> None:
    free = DEVICE.heap.driver.free_bytes()
    error: OutOfDeviceMemoryError
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        Buffer("float64", (1 << 40,), DEVICE)
    error = caught.value
    assert isinstance(error, MemoryError)
    assert isinstance(error, DeviceError)
    assert (error.wanted, error.free) == (1 << 43, free)
    assert str(error) == (
        f"a buffer float64 [1099511627776] needs {1 << 43} bytes on Accelerator(0, emulated=True), and only {free} are "
        "free; drop buffers that are no longer used"
    )
