"""NVIDIA GPUs, through the driver's own interface (`cuda-bindings`): the `Driver` of a real device.

Everything goes to one stream for each GPU, so it happens in the order in which it was asked for. Memory comes from the
driver's pool, which keeps what is freed; freeing waits for nothing, since it has its place in the stream, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from halfulp.compiler.codegen.ptx import ARCHITECTURES

from ..errors import DeviceError
from .calls import Calls, bindings
from .driver import Argument, Array, Triple
from .staging import Staging

LOG_BYTES = 8192
"""What the driver may say about PTX that it refuses."""

KEEP_EVERYTHING = (1 << 64) - 1
"""Bytes of freed memory that the pool keeps: all. The driver counts in 64 bits."""

_WORD = (1 << 64) - 1


def open_gpu(number: int) -> CudaDriver:
    """The GPU of this number.

    Raises:
        DeviceError: no bindings, no driver, no such GPU, or one that is too old.
    """
    subject = f"Accelerator({number})"
    cuda = bindings(subject)
    calls = Calls(cuda, subject)
    count = calls("cuDeviceGetCount")
    if number >= count:
        known = "there is none" if count == 0 else f"GPUs are counted from 0, and there are {count}"
        raise DeviceError(f"{subject}: there is no such GPU, {known}; Accelerator(emulated=True) needs no GPU")
    return CudaDriver(cuda, calls, subject, calls("cuDeviceGet", number))


class CudaDriver:
    """One GPU. Implements `runtime.cuda.driver.Driver`; threads may share it."""

    def __init__(self, cuda: Any, calls: Calls, subject: str, device: Any) -> None:
        """``device`` is the driver's handle, ``subject`` what messages call it."""
        self._cuda = cuda
        self._calls = calls
        self._device = device
        self.name: str = _text(calls("cuDeviceGetName", 256, device))
        self.architecture = self._architecture(subject)
        self._context = calls("cuDevicePrimaryCtxRetain", device)
        self._enter()
        self._stream = calls("cuStreamCreate", int(cuda.CUstream_flags.CU_STREAM_NON_BLOCKING))
        pool = calls("cuDeviceGetDefaultMemPool", device)
        threshold = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        calls("cuMemPoolSetAttribute", pool, threshold, cuda.cuuint64_t(KEEP_EVERYTHING))
        self._staging = Staging(calls, self._stream)

    def _architecture(self, subject: str) -> str:
        """The newest one that we compile for and the GPU runs."""
        kinds = self._cuda.CUdevice_attribute
        parts = (
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
        major, minor = (self._calls("cuDeviceGetAttribute", part, self._device) for part in parts)
        fitting = [known for known in ARCHITECTURES if int(known.removeprefix("sm_")) <= 10 * major + minor]
        if not fitting:
            raise DeviceError(
                f"{subject}: {self.name} has compute capability {major}.{minor}, and halfulp compiles for 8.0 and later"
            )
        return fitting[-1]

    def _enter(self) -> None:
        """The driver acts on the context that the calling thread has; it may have another one, or none."""
        self._calls("cuCtxSetCurrent", self._context)

    def free_bytes(self) -> int | None:
        self._enter()
        free, _ = self._calls("cuMemGetInfo")
        return int(free)

    def alloc(self, nbytes: int) -> int:
        """Fresh memory; of 0 bytes some address, as for one.

        Raises:
            CudaOutOfMemoryError: there is not so much.
        """
        self._enter()
        return int(self._calls("cuMemAllocAsync", max(nbytes, 1), self._stream))

    def free(self, address: int) -> None:
        self._enter()
        self._calls("cuMemFreeAsync", address, self._stream)

    def copy_to_device(self, destination: int, source: Array) -> None:
        self._enter()
        self._staging.to_device(destination, source)

    def copy_to_host(self, destination: Array, source: int) -> None:
        self._enter()
        self._staging.to_host(destination, source)

    def copy_within(self, destination: int, source: int, nbytes: int) -> None:
        self._enter()
        self._calls("cuMemcpyDtoDAsync", destination, source, nbytes, self._stream)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        self._enter()
        self._calls("cuMemsetD8Async", address, value, nbytes, self._stream)

    def load_module(self, ptx: str) -> CudaModule:
        """Hands PTX to the driver's compiler.

        Raises:
            CudaError: it refuses the text; the message has what it said.
        """
        self._enter()
        options, log = self._cuda.CUjit_option, bytearray(LOG_BYTES)
        names = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        code, module = self._cuda.cuModuleLoadDataEx(ptx.encode() + b"\0", len(names), names, [log, LOG_BYTES])
        if int(code) != 0:
            said = _text(bytes(log)).strip()
            raise self._calls.failure("cuModuleLoadDataEx", code, f"; it says: {said}" if said else "")
        return CudaModule(self._calls, self._context, self._stream, module)

    def synchronize(self) -> None:
        self._enter()
        self._calls("cuStreamSynchronize", self._stream)


class CudaModule:
    """PTX that is on a GPU."""

    def __init__(self, calls: Calls, context: Any, stream: Any, module: Any) -> None:
        self._calls = calls
        self._context = context
        self._stream = stream
        self._module = module
        self._functions: dict[str, Any] = {}

    def launch(
        self, kernel: str, grid: Triple, block: Triple, shared_bytes: int, arguments: Sequence[Argument]
    ) -> None:
        """Starts a kernel; it runs after all that the stream was given before.

        Raises:
            CudaError: there is no such kernel, or the driver does not start it.
        """
        self._calls("cuCtxSetCurrent", self._context)
        if kernel not in self._functions:
            self._functions[kernel] = self._calls("cuModuleGetFunction", self._module, kernel.encode())
        packed = [ctypes.create_string_buffer(data, len(data)) for data in map(_packed, arguments)]
        pointers = (ctypes.c_void_p * max(len(packed), 1))(*map(ctypes.addressof, packed))
        function, address = self._functions[kernel], ctypes.addressof(pointers)
        # the driver copies the arguments before it returns
        self._calls("cuLaunchKernel", function, *grid, *block, shared_bytes, self._stream, address, 0)

    def unload(self) -> None:
        """Takes it off the GPU, after all launches; nothing in a fork, where the module is still the parent's."""
        if self._calls.in_fork:
            return
        self._calls("cuCtxSetCurrent", self._context)
        self._calls("cuStreamSynchronize", self._stream)
        self._calls("cuModuleUnload", self._module)


def _packed(argument: Argument) -> bytes:
    """The bytes of a kernel's argument: an integer is 64 bits, numpy's scalars have their own size."""
    if isinstance(argument, bytes):
        return argument
    if isinstance(argument, np.generic):
        return argument.tobytes()
    if isinstance(argument, float):
        return np.float64(argument).tobytes()
    return (argument & _WORD).to_bytes(8, "little")


def _text(data: bytes) -> str:
    """A C string."""
    return data.split(b"\0")[0].decode(errors="replace")
