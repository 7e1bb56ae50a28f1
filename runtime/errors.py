"""The exceptions of running models and reading tensors; all others come from `halfulp.compiler.errors`."""

from __future__ import annotations

import os

from halfulp.compiler.errors import HalfulpError, SourceLocation


class ExecutionError(HalfulpError, ValueError):
    """The values or sizes given to a model break one of its rules, or a check inside a kernel failed.

    ``kernel``, ``program`` and ``values`` tell which check failed, in which program of the grid (counted row-major),
    and what it recorded; ``check`` is the message of that check alone. They are None where no kernel was involved.
    """

    def __init__(
        self,
        message: str,
        kernel: str | None = None,
        program: int | None = None,
        values: tuple[int, ...] | None = None,
        check: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kernel = kernel
        self.program = program
        self.values = values
        self.check = check


class BoundsError(ExecutionError, IndexError):
    """A block, a slice or an index of a kernel lies outside its array, and bounds are checked."""


class DeviceError(HalfulpError, RuntimeError):
    """A device is not there, or cannot be used as it was asked to."""


class OutOfDeviceMemoryError(DeviceError, MemoryError):
    """A device has less free memory than is needed: ``wanted`` bytes, ``free`` of them known to be free or None."""

    def __init__(self, message: str, wanted: int, free: int | None) -> None:
        super().__init__(message)
        self.wanted = wanted
        self.free = free


class NanCheckError(ExecutionError):
    """Under ``session.debug.nan_check``: the first op that made a NaN or an infinity, or let one of an input through.

    Attributes:
        op: its name; None if an input, a weight or a constant with NaN is an output of the graph as it is.
        subject: what holds the NaN or the infinities: ``op 'log'`` is its result, ``input 0 ('x')``, ``weight 'w'``.
        nan_count: the number of NaN in it.
        inf_count: the number of infinities in it.
        index: the index of the first of both.
        shape: its shape.
        outputs: a line for each output of the graph that holds any.
    """

    def __init__(
        self,
        message: str,
        location: SourceLocation | None,
        *,
        op: str | None,
        subject: str,
        nan_count: int,
        inf_count: int,
        index: tuple[int, ...],
        shape: tuple[int, ...],
        outputs: tuple[str, ...],
    ) -> None:
        super().__init__(message)
        self.location = location
        self.op = op
        self.subject = subject
        self.nan_count = nan_count
        self.inf_count = inf_count
        self.index = index
        self.shape = shape
        self.outputs = outputs

    def __str__(self) -> str:
        return "\n  ".join([super().__str__(), *self.outputs])


class CheckpointError(HalfulpError, ValueError):
    """A file of tensors is damaged or of an unknown form: where in the file (``offset``, in bytes), and why."""

    def __init__(self, path: str | os.PathLike[str], offset: int, reason: str) -> None:
        super().__init__(f"checkpoint {os.fspath(path)!r}: at byte {offset}: {reason}")
        self.path = os.fspath(path)
        self.offset = offset
        self.reason = reason
