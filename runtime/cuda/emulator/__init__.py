"""A PTX interpreter: an oracle for generated kernels, on every machine.

Reading order: `syntax`, `parser` and `instruction_parser` (text -> module); `operation` and `families` with
`integers`, `floats`, `fused`, `bits`, `comparisons`, `conversions` (what instructions compute); `program`, `builder`,
`operands`, `decoder`, `memory_instructions`, `control_instructions` (module -> steps); `lanes`, `layout`,
`global_memory`, `spaces`, `access`, `atomics`, `warp`, `scheduler`, `races` (running them); `module` and `emulator`
(the device).
"""

from .emulator import Emulator
from .errors import (
    DataRaceError,
    DeviceMemoryError,
    DivergentBarrierError,
    EmulatorError,
    Fault,
    InvalidShuffleError,
    KernelFaultError,
    LaunchError,
    MisalignedAccessError,
    OutOfBoundsError,
    OutOfDeviceMemoryError,
    PtxSyntaxError,
    ReadOnlyError,
    StepLimitError,
    TrapError,
    UndefinedResultError,
    UninitializedReadError,
    UnroundedOperationError,
    UnsupportedPtxError,
)
from .module import EmulatedModule

__all__ = [
    "DataRaceError",
    "DeviceMemoryError",
    "DivergentBarrierError",
    "EmulatedModule",
    "Emulator",
    "EmulatorError",
    "KernelFaultError",
    "Fault",
    "InvalidShuffleError",
    "LaunchError",
    "MisalignedAccessError",
    "OutOfBoundsError",
    "OutOfDeviceMemoryError",
    "PtxSyntaxError",
    "ReadOnlyError",
    "StepLimitError",
    "TrapError",
    "UndefinedResultError",
    "UninitializedReadError",
    "UnroundedOperationError",
    "UnsupportedPtxError",
]
