"""The exceptions of the kernel language that its callers can tell apart; wrong calls are `GraphError` and the like."""

from __future__ import annotations

from halfulp.compiler import GraphError
from halfulp.compiler.errors import HalfulpError, SourceLocation
from halfulp.compiler.locations import user_location


class BlockIndexError(HalfulpError, IndexError):
    """A block, a slice or an index of a kernel lies outside its array, and bounds are checked.

    ``program`` is the program id along each axis of the grid.
    """

    def __init__(self, message: str, program: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.program = program


class KernelCheckError(HalfulpError, ValueError):
    """A ``pl.check`` of a kernel did not hold in ``program``, the first one in the order of the grid."""

    def __init__(self, message: str, program: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.program = program


class OverlapError(HalfulpError, RuntimeError):
    """Two programs of a grid touch one element, and at least one of them writes it."""


def fault(message: str, kind: type[HalfulpError] = GraphError) -> HalfulpError:
    """An error at the user's line: the innermost one on the stack, which is in the kernel while that is traced."""
    return kind(message, user_location())


def fault_in(function: object, message: str, kind: type[HalfulpError] = GraphError) -> HalfulpError:
    """An error at the first line of the user's function, for what only shows when it is over."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    location = user_location() if code is None else SourceLocation(code.co_filename, code.co_firstlineno)
    return kind(message, location)


def program_text(program: tuple[int, ...]) -> str:
    """A program id as messages write it: ``program (2, 0)``."""
    return f"program {program}"
