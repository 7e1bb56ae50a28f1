"""The exception of an execution that went wrong; all others come from `halfulp.compiler.errors`."""

from __future__ import annotations

from halfulp.compiler.errors import HalfulpError


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
