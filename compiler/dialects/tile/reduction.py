"""What every lowering of a reduction must know: the identity of each kind, and which fastmath flags it may keep."""

from __future__ import annotations

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute


def identity(kind: str, element: Attribute) -> int | float:
    """The value that changes nothing: ``x + -0.0`` is x for every x, also for -0.0."""
    if isinstance(element, AnyFloat):
        return {"add": -0.0, "mul": 1.0, "maximum": float("-inf"), "minimum": float("inf")}[kind]
    width = element.width.data if isinstance(element, IntegerType) else 64
    least, ones = -(1 << (width - 1)), -1
    return {
        "add": 0,
        "mul": 1,
        "maxs": least,
        "mins": -(least + 1) if width > 1 else 0,
        "maxu": 0,
        "minu": ones,
        "and": ones,
        "or": 0,
        "xor": 0,
    }[kind]


def safe_flags(flags: FastMathFlagsAttr) -> FastMathFlagsAttr:
    """Without nnan and ninf: lanes start at an identity that may be infinite, and LLVM would make it poison."""
    return FastMathFlagsAttr([f for f in flags.data if f not in (FastMathFlag.NO_NANS, FastMathFlag.NO_INFS)])
