"""``setp`` and ``testp``: comparisons that give predicates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .operation import Modifiers, Operation, on_values, unsupported
from .syntax import Instruction
from .types import PRED, Array, ScalarType

Comparison = Callable[[Array, Array], Array]

_ORDERED: dict[str, Comparison] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED: dict[str, Comparison] = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
_EITHER_NAN: dict[str, Comparison] = {
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}
_JOINS: dict[str, Comparison] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def set_predicate(instruction: Instruction) -> Operation:
    """``setp.lt.s32 p, a, b`` and ``setp.lt.and.s32 p, a, b, c``."""
    modifiers = Modifiers(instruction)
    name = modifiers.left.pop(0) if modifiers.left else ""
    join = modifiers.take(*_JOINS)
    flush = modifiers.take("ftz")
    type = modifiers.type("usbf")
    modifiers.end()
    compare = _comparison(name, type)
    if compare is None or flush:
        raise unsupported(instruction)
    on_raw = on_values(compare, type, type, result=PRED)
    if join is None:
        return Operation(on_raw, (type, type), PRED)
    joined = _JOINS[join]
    return Operation(lambda a, b, c: joined(on_raw(a, b), c), (type, type, PRED), PRED)


def _comparison(name: str, type: ScalarType) -> Comparison | None:
    if type.is_float:
        return _not_equal_ordered if name == "ne" else _ORDERED.get(name) or _EITHER_NAN.get(name)
    if type.kind == "b":
        return _ORDERED[name] if name in ("eq", "ne") else None
    return _ORDERED.get(name) or (None if type.is_signed else _UNSIGNED.get(name))


def _not_equal_ordered(a: Array, b: Array) -> Array:
    """``ne`` of floats is false beside a NaN, unlike numpy's."""
    return np.asarray((a < b) | (a > b))


def test_property(instruction: Instruction) -> Operation:
    """``testp``: what kind of float it is."""
    modifiers = Modifiers(instruction)
    name = modifiers.one_of("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    type = modifiers.type("f", (32, 64))
    modifiers.end()
    smallest = np.finfo(type.dtype).smallest_normal
    functions: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= smallest),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < smallest),
    }
    return Operation(on_values(functions[name], type, result=PRED), (type,), PRED)
