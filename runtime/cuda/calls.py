"""Calls of NVIDIA's driver, by name: each one that fails raises what the driver says about it."""

from __future__ import annotations

import os
from typing import Any

from halfulp.compiler.errors import HalfulpError

from ..errors import DeviceError
from .errors import CudaError, CudaOutOfMemoryError

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"


def bindings(subject: str) -> Any:
    """NVIDIA's bindings of the driver, initialised.

    Raises:
        DeviceError: they are not installed, or there is no driver; ``subject`` begins the message.
    """
    try:
        from cuda.bindings import driver
    except ImportError:
        raise DeviceError(
            f"{subject} needs the package cuda-bindings, which is not installed: pip install 'halfulp[cuda]'; "
            "Accelerator(emulated=True) needs no GPU"
        ) from None
    try:
        Calls(driver, subject)("cuInit", 0)
    except HalfulpError:
        raise
    except Exception as error:  # the bindings have classes of their own for a library that is not there
        raise DeviceError(
            f"{subject} needs NVIDIA's driver, which cannot be loaded: {error} Accelerator(emulated=True) needs no GPU"
        ) from None
    return driver


class Calls:
    """``calls("cuMemGetInfo")`` calls that function of the driver; its results, one as it is and several as a tuple."""

    def __init__(self, driver: Any, subject: str) -> None:
        self._driver = driver
        self._subject = subject
        self._process = os.getpid()

    @property
    def in_fork(self) -> bool:
        """Whether this process is a fork of the one that opened the GPU, and so cannot use it."""
        return os.getpid() != self._process

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Calls a function.

        Raises:
            CudaError: it failed; CudaOutOfMemoryError for a lack of memory.
            DeviceError: this process is a fork of the one that opened the GPU.
        """
        if self.in_fork:
            raise DeviceError(
                f"{self._subject} was opened before this process was forked, and CUDA does not go over a fork; "
                "start processes with multiprocessing's 'spawn', and open the GPU in there"
            )
        code, *results = getattr(self._driver, name)(*arguments)
        if int(code) != 0:
            raise self.failure(name, code)
        return results[0] if len(results) == 1 else tuple(results)

    def failure(self, name: str, code: Any, more: str = "") -> CudaError:
        """The error of a call that returned ``code``."""
        error, text = (self._text(function, code) for function in ("cuGetErrorName", "cuGetErrorString"))
        kind = CudaOutOfMemoryError if error == OUT_OF_MEMORY else CudaError
        return kind(f"{self._subject}: {name} failed: {error} ({text}){more}", name, error)

    def _text(self, function: str, code: Any) -> str:
        """What the driver calls an error; its number if it does not know it."""
        failed, text = getattr(self._driver, function)(code)
        return str(int(code)) if int(failed) != 0 or text is None else text.decode(errors="replace")
