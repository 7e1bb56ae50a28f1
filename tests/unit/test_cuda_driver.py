"""NVIDIA GPUs through the driver: what is called, in which order, and what becomes of each failure.

There is no GPU here: the driver is a fake one on host memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_cuda import FakeCuda, Result

from halfulp.runtime import Accelerator, DeviceError, OutOfDeviceMemoryError
from halfulp.runtime import device as devices
from halfulp.runtime.cuda import staging
from halfulp.runtime.cuda.cuda_driver import CudaDriver, open_gpu
from halfulp.runtime.cuda.errors import CudaError, CudaOutOfMemoryError
from halfulp.runtime.offload.memory import DeviceHeap


def install(monkeypatch: pytest.MonkeyPatch, driver: Any) -> None:
    """Makes ``from cuda.bindings import driver`` give this."""
    package, bindings = ModuleType("cuda"), ModuleType("cuda.bindings")
    bindings.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", package)
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)


@pytest.fixture(autouse=True)
def no_open_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that other tests have opened is not found again here, nor one of these tests elsewhere."""
    monkeypatch.setattr(devices, "_heaps", {})


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    install(monkeypatch, fake)
    return fake


def raised(kind: type[Exception], call: Callable[[], Any]) -> Any:
    with pytest.raises(kind) as caught:
        call()
    return caught.value


# -- what is missing


def test_bindings_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert str(raised(DeviceError, lambda: Accelerator(7))) == (
        "Accelerator(7) needs the package cuda-bindings, which is not installed: pip install 'halfulp[cuda]'; "
        "Accelerator(emulated=True) needs no GPU"
    )


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> None:
    def load(flags: int) -> Any:
        raise RuntimeError("libcuda.so.1 is not found.")

    monkeypatch.setattr(cuda, "cuInit", load, raising=False)
    assert str(raised(DeviceError, lambda: Accelerator(7))) == (
        "Accelerator(7) needs NVIDIA's driver, which cannot be loaded: libcuda.so.1 is not found. "
        "Accelerator(emulated=True) needs no GPU"
    )


def test_a_driver_that_finds_no_gpu(cuda: FakeCuda) -> None:
    cuda.failures["cuInit"] = Result.CUDA_ERROR_NO_DEVICE
    error = raised(CudaError, lambda: Accelerator(7))
    assert str(error) == "Accelerator(7): cuInit failed: CUDA_ERROR_NO_DEVICE (the text of 100)"
    assert (error.call, error.error) == ("cuInit", "CUDA_ERROR_NO_DEVICE")


@pytest.mark.parametrize(("gpus", "known"), [(0, "there is none"), (3, "GPUs are counted from 0, and there are 3")])
def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch, gpus: int, known: str) -> None:
    install(monkeypatch, FakeCuda(gpus))
    assert str(raised(DeviceError, lambda: Accelerator(7))) == (
        f"Accelerator(7): there is no such GPU, {known}; Accelerator(emulated=True) needs no GPU"
    )


def test_a_gpu_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeCuda(capability=(7, 5)))
    assert str(raised(DeviceError, lambda: Accelerator(0))) == (
        "Accelerator(0): Fake GPU has compute capability 7.5, and halfulp compiles for 8.0 and later"
    )


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [((8, 0), "sm_80"), ((8, 9), "sm_80"), ((9, 0), "sm_90"), ((10, 0), "sm_100"), ((12, 1), "sm_100")],
)
def test_a_gpu_runs_the_newest_code_that_it_can(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], architecture: str
) -> None:
    install(monkeypatch, FakeCuda(capability=capability))
    assert open_gpu(0).architecture == architecture


# -- what is called


def opened(cuda: FakeCuda) -> CudaDriver:
    gpu = open_gpu(0)
    cuda.calls.clear()
    return gpu


def test_opening_takes_the_primary_context_a_stream_and_keeps_the_pool_full(cuda: FakeCuda) -> None:
    gpu = open_gpu(0)
    assert gpu.name == "Fake GPU"
    wanted = ["cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuStreamCreate", "cuMemPoolSetAttribute"]
    assert [name for name in cuda.names() if name in wanted] == wanted
    assert ("cuCtxSetCurrent", ("context of device 0",)) in cuda.calls
    assert ("cuMemPoolSetAttribute", ("pool", 4, (1 << 64) - 1)) in cuda.calls


def test_every_call_is_on_the_context_and_the_stream(cuda: FakeCuda) -> None:
    gpu = opened(cuda)
    address = gpu.alloc(100)
    gpu.memset(address, 7, 100)
    gpu.copy_within(address, address + 50, 10)
    gpu.free(address)
    gpu.synchronize()
    assert cuda.names() == [
        name
        for call in ("cuMemAllocAsync", "cuMemsetD8Async", "cuMemcpyDtoDAsync", "cuMemFreeAsync", "cuStreamSynchronize")
        for name in ("cuCtxSetCurrent", call)
    ]
    assert all(arguments[-1] == "stream" for name, arguments in cuda.calls if name != "cuCtxSetCurrent")
    assert gpu.free_bytes() == 1000


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250])
def test_copies_go_through_pinned_memory_in_pieces(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda, count: int) -> None:
    monkeypatch.setattr(staging, "BLOCK_BYTES", 100)
    gpu = opened(cuda)
    source = np.random.default_rng(count).integers(0, 256, count).astype(np.uint8)
    address = gpu.alloc(count)
    gpu.copy_to_device(address, source)
    pieces = -(-count // 100)
    assert cuda.names().count("cuMemcpyHtoDAsync") == pieces
    pinned = [a for name, a in cuda.calls if name == "cuMemcpyHtoDAsync"]
    assert [a[1] for a in pinned[:2]] == list(gpu._staging._blocks[: len(pinned[:2])])
    back = np.zeros(count, np.uint8)
    gpu.copy_to_host(back, address)
    np.testing.assert_array_equal(back, source)
    assert cuda.names().count("cuMemHostAlloc") == 2


def test_a_block_is_used_again_only_when_the_gpu_is_done_with_it(
    monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda
) -> None:
    monkeypatch.setattr(staging, "BLOCK_BYTES", 4)
    gpu = opened(cuda)
    gpu.copy_to_device(gpu.alloc(8), np.zeros(8, np.uint8))
    kinds = ("cuEventSynchronize", "cuMemcpyHtoDAsync", "cuEventRecord")
    assert [name for name in cuda.names() if name in kinds] == list(kinds) * 2
    cuda.calls.clear()
    gpu.copy_to_host(np.zeros(8, np.uint8), next(iter(cuda.memory)))
    assert cuda.names()[-2:] == ["cuEventSynchronize", "cuEventSynchronize"]


def test_arguments_of_a_launch_are_packed_by_their_types(cuda: FakeCuda) -> None:
    module = opened(cuda).load_module(".version 8.0")
    arguments = [
        1 << 63,
        -2,
        np.float32(1.5),
        np.bool_(True),
        np.int16(-3),
        ml_dtypes.bfloat16(2.0),
        2.5,
        b"abc",
    ]
    cuda.argument_sizes = [8, 8, 4, 1, 2, 2, 8, 3]
    for _ in range(2):
        module.launch("kernel_f", (7, 1, 1), (128, 1, 1), 64, arguments)
    (first, second) = cuda.launches
    assert first == second
    function, shape, stream, given, extra = first
    assert (function, shape, stream, extra) == ("function kernel_f", (7, 1, 1, 128, 1, 1, 64), "stream", 0)
    assert given == [
        (1 << 63).to_bytes(8, "little"),
        (-2).to_bytes(8, "little", signed=True),
        np.float32(1.5).tobytes(),
        b"\1",
        np.int16(-3).tobytes(),
        b"\0\x40",
        np.float64(2.5).tobytes(),
        b"abc",
    ]
    assert cuda.names().count("cuModuleGetFunction") == 1
    cuda.calls.clear()
    module.unload()
    assert cuda.names() == ["cuCtxSetCurrent", "cuStreamSynchronize", "cuModuleUnload"]


# -- what fails


def test_a_failure_has_the_call_and_what_the_driver_says(cuda: FakeCuda) -> None:
    gpu = opened(cuda)
    cuda.failures["cuStreamSynchronize"] = Result.CUDA_ERROR_LAUNCH_FAILED
    error = raised(CudaError, gpu.synchronize)
    assert str(error) == ("Accelerator(0): cuStreamSynchronize failed: CUDA_ERROR_LAUNCH_FAILED (the text of 719)")
    assert isinstance(error, DeviceError)


def test_memory_that_is_not_there(cuda: FakeCuda) -> None:
    gpu = opened(cuda)
    cuda.failures["cuMemAllocAsync"] = Result.CUDA_ERROR_OUT_OF_MEMORY
    error = raised(CudaOutOfMemoryError, lambda: gpu.alloc(5000))
    assert isinstance(error, MemoryError)
    heap = DeviceHeap(gpu, gpu.architecture, "Accelerator(0)")
    error = raised(OutOfDeviceMemoryError, lambda: heap.allocate(5000, "a buffer float32 [1250]"))
    assert str(error) == (
        "a buffer float32 [1250] needs 5000 bytes on Accelerator(0), and only 1000 are free; drop buffers that are no "
        "longer used"
    )
    assert (error.wanted, error.free) == (5000, 1000)


def test_ptx_that_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeCuda(log=b"ptxas application ptx input, line 3; fatal: parsing error\n")
    install(monkeypatch, cuda)
    gpu = opened(cuda)
    cuda.failures["cuModuleLoadDataEx"] = Result.CUDA_ERROR_INVALID_PTX
    assert str(raised(CudaError, lambda: gpu.load_module("nonsense"))) == (
        "Accelerator(0): cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (the text of 218); it says: ptxas "
        "application "
        "ptx input, line 3; fatal: parsing error"
    )


def test_a_fork_cannot_use_the_gpu(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> None:
    gpu = opened(cuda)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert str(raised(DeviceError, lambda: gpu.alloc(1))) == (
        "Accelerator(0) was opened before this process was forked, and CUDA does not go over a fork; start "
        "processes with "
        "multiprocessing's 'spawn', and open the GPU in there"
    )


def test_a_module_that_a_fork_drops_stays_on_the_gpu(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> None:
    module = opened(cuda).load_module("text")
    cuda.calls.clear()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    module.unload()
    assert cuda.names() == []
