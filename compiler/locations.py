"""The user's source line: found on the stack, kept on ops, read back for messages."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from .errors import HalfulpError, SourceLocation

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Operation

_OWN_PACKAGES = "halfulp."
_COMMAND_LINE = "halfulp.runtime.cli."


def user_location() -> SourceLocation | None:
    """The innermost line on the stack that is not halfulp's own; None if there is no other, as under our own commands.

    Looks only at the names of modules, and costs about a microsecond for ten frames.
    """
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_COMMAND_LINE):
            break  # what lies further out is the library that parses the command line
        if not module.startswith(_OWN_PACKAGES):
            return SourceLocation(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None


class Located:
    """Puts the user's source line on every halfulp error that passes through: ``with Located(): ...``."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, HalfulpError) and error.location is None:
            error.location = user_location()


@lru_cache(maxsize=4096)
def location_attribute(location: SourceLocation | None) -> LocationAttr:
    """The location as xDSL keeps it on an op. Columns are not known and are written 0."""
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc

    if location is None:
        return UnknownLoc()
    return FileLineColLoc(StringAttr(location.filename), IntAttr(location.line), IntAttr(0))


def location_of(op: Operation) -> SourceLocation | None:
    """The source line that an op came from, if it is known."""
    from xdsl.dialects.builtin import FileLineColLoc

    if isinstance(op.location, FileLineColLoc):
        return SourceLocation(op.location.filename.data, op.location.line.data)
    return None
