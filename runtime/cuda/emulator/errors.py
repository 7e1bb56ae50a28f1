"""What the emulator finds wrong with PTX, with a launch or with an access to memory.

Every message names the kernel, the line of the PTX with its text, and the thread, where there is one. ``fault`` holds
the same as data.
"""

from __future__ import annotations

from dataclasses import dataclass

from halfulp.compiler.errors import HalfulpError

from .syntax import Instruction

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Fault:
    """Where a running kernel went wrong. ``block`` and ``thread`` are indices (x, y, z)."""

    kernel: str
    instruction: Instruction
    block: Triple
    thread: Triple

    def __str__(self) -> str:
        return (
            f"kernel {self.kernel!r}, PTX line {self.instruction.line}: {self.instruction.text}\n"
            f"  thread {self.thread} of block {self.block}"
        )


class EmulatorError(HalfulpError, RuntimeError):
    """The root of all that the emulator reports."""


class PtxSyntaxError(EmulatorError):
    """The text is not PTX of the form that LLVM and careful people write."""


class UnsupportedPtxError(EmulatorError):
    """Valid PTX, of a kind that the emulator does not cover."""


class UnroundedOperationError(EmulatorError):
    """A float operation without a rounding mode, which ptxas may fuse with its neighbours."""


class LaunchError(EmulatorError):
    """The kernel does not exist, or grid, block, shared memory or arguments do not fit it or the device."""


class DeviceMemoryError(EmulatorError):
    """A host-side request (allocate, free, copy, set) names memory that is not there."""


class OutOfDeviceMemoryError(DeviceMemoryError, MemoryError):
    """The device has not that much memory left."""


class KernelFaultError(EmulatorError):
    """A kernel did something that PTX leaves undefined. The launch ended there; device memory is as it was then."""

    def __init__(self, fault: Fault, problem: str) -> None:
        super().__init__(f"{fault} {problem}")
        self.fault = fault


class OutOfBoundsError(KernelFaultError):
    """An access outside every allocation, variable or window, or to memory that was freed."""


class MisalignedAccessError(KernelFaultError):
    """An address that is no multiple of the size of the access."""


class ReadOnlyError(KernelFaultError):
    """A write to constant memory or to a kernel's parameters."""


class UninitializedReadError(KernelFaultError):
    """Shared memory is read that no thread of the block has written."""


class DataRaceError(KernelFaultError):
    """Two threads use the same bytes, one of them writes, and no barrier lies between."""


class DivergentBarrierError(KernelFaultError):
    """Some threads wait at a barrier that others of the same block, or of the named lanes, never reach."""


class InvalidShuffleError(KernelFaultError):
    """A thread names itself absent from a warp operation, or reads the register of a lane that takes no part in it."""


class UndefinedResultError(KernelFaultError):
    """An operation whose result PTX leaves to the machine, such as an integer division by zero."""


class TrapError(KernelFaultError):
    """The kernel executed ``trap``."""


class StepLimitError(KernelFaultError):
    """The kernel ran for longer than the limit: most likely a loop that does not end."""
