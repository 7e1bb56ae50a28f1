"""Stands for NVIDIA's bindings (``cuda.bindings.driver``): the same functions, on host memory, with every call noted.

What a kernel does it does not know: `launches` has the grid, the threads and the arguments of each launch.
"""

# ruff: noqa: N802, N815 (the names are NVIDIA's)
from __future__ import annotations

import ctypes
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np

from halfulp.runtime.cuda.emulator import Emulator
from halfulp.runtime.cuda.emulator.types import TYPES


class Result(IntEnum):
    """The codes that the tests use, with NVIDIA's numbers."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_LAUNCH_FAILED = 719


class FakeCuda:
    """A driver with ``gpus`` GPUs of one compute capability. ``failures``: what a function fails with, by its name."""

    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=76
    )
    CUmemPool_attribute = SimpleNamespace(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD=4)
    CUjit_option = SimpleNamespace(CU_JIT_ERROR_LOG_BUFFER=5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=6)
    cuuint64_t = int

    def __init__(self, gpus: int = 1, capability: tuple[int, int] = (9, 0), log: bytes = b"") -> None:
        self.gpus = gpus
        self.capability = capability
        self.log = log
        self.failures: dict[str, Result] = {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.memory: dict[int, Any] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.argument_sizes: list[int] = []

    def names(self) -> list[str]:
        """The functions that were called, in order."""
        return [name for name, _ in self.calls]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            failure = self.failures.get(name)
            if failure is not None:
                if name == "cuModuleLoadDataEx":
                    arguments[3][0][: len(self.log)] = self.log
                return (failure, None)
            results = getattr(self, f"_{name}", lambda *_: ())(*arguments)
            return (Result.CUDA_SUCCESS, *(results if isinstance(results, tuple) else (results,)))

        return call

    def cuGetErrorName(self, code: int) -> tuple[Result, bytes]:
        return Result.CUDA_SUCCESS, Result(code).name.encode()

    def cuGetErrorString(self, code: int) -> tuple[Result, bytes]:
        return Result.CUDA_SUCCESS, f"the text of {int(code)}".encode()

    def _cuDeviceGetCount(self) -> int:
        return self.gpus

    def _cuDeviceGet(self, number: int) -> str:
        return f"device {number}"

    def _cuDeviceGetName(self, length: int, device: str) -> bytes:
        return b"Fake GPU".ljust(length, b"\0")

    def _cuDeviceGetAttribute(self, attribute: int, device: str) -> int:
        return self.capability[attribute - 75]

    def _cuDevicePrimaryCtxRetain(self, device: str) -> str:
        return f"context of {device}"

    def _cuStreamCreate(self, flags: int) -> str:
        return "stream"

    def _cuDeviceGetDefaultMemPool(self, device: str) -> str:
        return "pool"

    def _cuEventCreate(self, flags: int) -> str:
        return "event"

    def _cuMemGetInfo(self) -> tuple[int, int]:
        return 1000, 2000

    def _cuMemAllocAsync(self, nbytes: int, stream: str) -> int:
        memory = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    def _cuMemHostAlloc(self, nbytes: int, flags: int) -> int:
        return self._cuMemAllocAsync(nbytes, "")

    def _cuMemFreeAsync(self, address: int, stream: str) -> tuple[()]:
        del self.memory[address]
        return ()

    def _cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: str) -> tuple[()]:
        ctypes.memmove(target, source, nbytes)
        return ()

    _cuMemcpyDtoHAsync = _cuMemcpyDtoDAsync = _cuMemcpyHtoDAsync

    def _cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: str) -> tuple[()]:
        ctypes.memset(address, value, nbytes)
        return ()

    def _cuModuleLoadDataEx(self, image: bytes, count: int, options: Any, values: Any) -> str:
        return "module"

    def _cuModuleGetFunction(self, module: str, name: bytes) -> str:
        return f"function {name.decode()}"

    def _cuLaunchKernel(self, function: str, *rest: Any) -> tuple[()]:
        *shape, stream, address, extra = rest
        pointers = (ctypes.c_void_p * len(self.argument_sizes)).from_address(address)
        given = [ctypes.string_at(p or 0, size) for p, size in zip(pointers, self.argument_sizes, strict=True)]
        self.launches.append((function, tuple(shape), stream, given, extra))
        return ()


class EmulatedCuda(FakeCuda):
    """The same with the emulator as its GPU: device memory is the emulator's, and kernels run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.emulator = Emulator()

    def _cuMemAllocAsync(self, nbytes: int, stream: str) -> int:
        return self.emulator.alloc(nbytes)

    def _cuMemHostAlloc(self, nbytes: int, flags: int) -> int:
        return FakeCuda._cuMemAllocAsync(self, nbytes, "")

    def _cuMemFreeAsync(self, address: int, stream: str) -> tuple[()]:
        self.emulator.free(address)
        return ()

    def _cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: str) -> tuple[()]:
        self.emulator.copy_to_device(target, np.frombuffer(ctypes.string_at(source, nbytes), np.uint8))
        return ()

    def _cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, stream: str) -> tuple[()]:
        piece = np.empty(nbytes, np.uint8)
        self.emulator.copy_to_host(piece, source)
        ctypes.memmove(target, piece.ctypes.data, nbytes)
        return ()

    def _cuMemcpyDtoDAsync(self, target: int, source: int, nbytes: int, stream: str) -> tuple[()]:
        self.emulator.copy_within(target, source, nbytes)
        return ()

    def _cuMemsetD8Async(self, address: int, value: int, nbytes: int, stream: str) -> tuple[()]:
        self.emulator.memset(address, value, nbytes)
        return ()

    def _cuModuleLoadDataEx(self, image: bytes, count: int, options: Any, values: Any) -> Any:
        return self.emulator.load_module(image.rstrip(b"\0").decode())

    def _cuModuleGetFunction(self, module: Any, name: bytes) -> Any:
        return module, name.decode()

    def _cuModuleUnload(self, module: Any) -> tuple[()]:
        module.unload()
        return ()

    def _cuLaunchKernel(self, function: Any, *rest: Any) -> tuple[()]:
        """Reads from each pointer as many bytes as the PTX declares for the parameter, as the driver does."""
        module, name = function
        *shape, _, address, _ = rest
        parameters = module.kernels[name].program.function.parameters
        pointers = (ctypes.c_void_p * len(parameters)).from_address(address)
        sizes = [TYPES[parameter.type].nbytes for parameter in parameters]
        given = [ctypes.string_at(p or 0, size) for p, size in zip(pointers, sizes, strict=True)]
        arguments = [np.frombuffer(data, f"u{len(data)}")[0] for data in given]
        module.launch(name, tuple(shape[:3]), tuple(shape[3:6]), shape[6], arguments)
        return ()
