"""The Python code and data that a definition of an op or kernel reaches, as text for cache keys.

A function of ours is named by its place, since the key has a hash of our sources; what it captured is written out.
So two kernels that one factory made from different numbers differ. A function of the user has no text: what it
does can change while its name stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import numpy as np

OURS = "halfulp."
_KNOWN = ("builtins", "halfulp", "xdsl", "numpy", "ml_dtypes", "math", "operator", "collections", "functools")


class _ForeignError(Exception):
    """Code that is not part of this package, or a value whose content is not known."""


def code_text(value: object) -> str | None:
    """The text; None if the value reaches code from outside this package, or anything that is not plain data."""
    try:
        return _text(value, set())
    except _ForeignError:
        return None


def _text(value: object, inside: set[int]) -> str:
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if id(value) in inside:
        return "..."  # part of itself
    inside = {*inside, id(value)}
    if isinstance(value, type | FunctionType | BuiltinFunctionType | ModuleType):
        return _code(value, inside)
    if isinstance(value, Enum):
        return f"{_place(type(value))}.{value.name}"
    if isinstance(value, MethodType):
        return f"{_text(value.__func__, inside)} of {_text(value.__self__, inside)}"
    if isinstance(value, partial):
        return f"partial{_text((value.func, value.args, value.keywords), inside)}"
    return _data(value, inside)


def _data(value: object, inside: set[int]) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(k, inside)}: {_text(v, inside)}' for k, v in value.items())}}}"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(_text(part, inside) for part in value))}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(_text(part, inside) for part in value)})"
    if isinstance(value, np.ndarray | np.generic) and value.dtype.hasobject is False:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array {value.dtype} {value.shape} {digest}"
    if isinstance(value, np.dtype | np.ufunc):
        return repr(value)
    kind = type(value)
    if not kind.__module__.startswith(OURS):
        raise _ForeignError(kind)
    fields = {name: getattr(value, name, None) for base in kind.__mro__ for name in getattr(base, "__slots__", ())}
    return f"{_place(kind)}{_text({**fields, **getattr(value, '__dict__', {})}, inside)}"


def _code(value: type | FunctionType | BuiltinFunctionType | ModuleType, inside: set[int]) -> str:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if not isinstance(value, FunctionType):
        return _place(value)
    if not value.__module__.startswith(OURS):
        raise _ForeignError(value)
    try:
        captured = [cell.cell_contents for cell in value.__closure__ or ()]
    except ValueError:  # a variable that has no value yet
        raise _ForeignError(value) from None
    held = (captured, value.__defaults__, value.__kwdefaults__, vars(value))
    # the line tells two lambdas of one place apart
    return f"{_place(value)}:{value.__code__.co_firstlineno}{_text(held, inside)}"


def _place(code: type | FunctionType | BuiltinFunctionType) -> str:
    module = code.__module__ or "builtins"
    if module.partition(".")[0] not in _KNOWN:
        raise _ForeignError(code)
    return f"{module}.{code.__qualname__}"
