"""The predicates of ``arith.cmpi`` and ``arith.cmpf``, in the order of their numbers in the IR."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .exact import Array
from .integers import as_signed, as_unsigned

Predicate = Callable[[Array, Array], Array]


def _ordered(a: Array, b: Array) -> Array:
    return np.asarray((a == a) & (b == b))


INTEGER_PREDICATES: dict[str, Predicate] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: as_signed(a) < as_signed(b),
    "sle": lambda a, b: as_signed(a) <= as_signed(b),
    "sgt": lambda a, b: as_signed(a) > as_signed(b),
    "sge": lambda a, b: as_signed(a) >= as_signed(b),
    "ult": lambda a, b: as_unsigned(a) < as_unsigned(b),
    "ule": lambda a, b: as_unsigned(a) <= as_unsigned(b),
    "ugt": lambda a, b: as_unsigned(a) > as_unsigned(b),
    "uge": lambda a, b: as_unsigned(a) >= as_unsigned(b),
}

# o: false if either is NaN; u: true if either is NaN
FLOAT_PREDICATES: dict[str, Predicate] = {
    "false": lambda a, b: np.zeros(np.shape(a), np.bool_),
    "oeq": lambda a, b: a == b,
    "ogt": lambda a, b: a > b,
    "oge": lambda a, b: a >= b,
    "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b,
    "one": lambda a, b: (a != b) & _ordered(a, b),
    "ord": _ordered,
    "ueq": lambda a, b: (a == b) | ~_ordered(a, b),
    "ugt": lambda a, b: (a > b) | ~_ordered(a, b),
    "uge": lambda a, b: (a >= b) | ~_ordered(a, b),
    "ult": lambda a, b: (a < b) | ~_ordered(a, b),
    "ule": lambda a, b: (a <= b) | ~_ordered(a, b),
    "une": lambda a, b: a != b,
    "uno": lambda a, b: ~_ordered(a, b),
    "true": lambda a, b: np.ones(np.shape(a), np.bool_),
}
