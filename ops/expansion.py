"""Steps of algorithms of our own: fma that stay under ``fp_contract="off"``, exponentials in f64 for f32 results."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import StringAttr, f64, i64
from xdsl.ir import Attribute, Operation

from halfulp.compiler.dialects.tile.types import with_shape
from halfulp.compiler.passes.expand_math import EXPANSION_MARK
from halfulp.compiler.tile_builder import TileBuilder, Value

_SHIFT = 1.5 * 2.0**52
"""Added to a number below 2**51, it leaves the nearest integer in the last bits of an f64."""
_MOST = 700.0
"""e to the power of ±this is far from the ends of f64, and beyond those of f32."""


def hex_floats(text: str) -> tuple[float, ...]:
    """The numbers in a text of hexadecimal floats, which hold every bit."""
    return tuple(float.fromhex(word) for word in text.split())


_POWER = hex_floats(
    "0x1p0 0x1p0 0x1.0000003a1ec2ap-1 0x1.55555443ae1cfp-3 0x1.55548dd45f03fp-5 0x1.1112704a78440p-7 "
    "0x1.6d8cf633c7264p-10 0x1.9f08e5f51aa69p-13"
)
"""e^r, |r| <= log(2) / 2: minimax, within a relative 2^-34."""


class Steps:
    """Emits the steps of an algorithm that belongs to one op, whose name its fma carry."""

    def __init__(self, k: TileBuilder, name: str) -> None:
        self.k = k
        self._mark = StringAttr(name)

    def fma(self, a: Value, b: Value | float, c: Value | float) -> Value:
        """``a * b + c`` rounded once, whatever ``fp_contract`` says: the algorithm rests on it."""
        result = self.k.fma(a, self.k.value(b, a.type), self.k.value(c, a.type))
        assert isinstance(result.ssa.owner, Operation)
        result.ssa.owner.attributes[EXPANSION_MARK] = self._mark
        return result

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """The polynomial with these coefficients, the constant one first (Horner's rule)."""
        result = self.k.constant(coefficients[-1], x.type)
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return result

    def bitcast(self, x: Value, element: Attribute) -> Value:
        """The same bits as another type of the same width."""
        op = arith.BitcastOp(x.ssa, with_shape(x.shape, element))
        self.k.insert(op)
        return Value(self.k, op.result)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        """``magnitude`` with the sign bit of ``sign``."""
        op = math_dialect.CopySignOp(magnitude.ssa, sign.ssa)
        self.k.insert(op)
        return Value(self.k, op.result)

    def at_least(self, x: Value, bound: float) -> Value:
        """The larger of both; NaN is kept. A CPU's own instruction, unlike a maximum that orders the zeros."""
        return self.k.select(x < bound, bound, x)

    def at_most(self, x: Value, bound: float) -> Value:
        """The smaller of both; NaN is kept."""
        return self.k.select(x > bound, bound, x)

    def exp_f64(self, x: Value) -> Value:
        """e^x of f64 to about 2**-34, for results that are rounded to f32. Beyond ±700 it stays at e^±700; NaN is kept.

        ``x = n log 2 + r``, |r| <= log(2) / 2; e^r by a polynomial, times 2^n through the exponent's bits. n is 1010
        at most, so what f64 lacks of log 2 does not matter.
        """
        k = self.k
        x = self.at_most(self.at_least(x, -_MOST), _MOST)
        shifted = self.fma(x, 1 / math.log(2), _SHIFT)
        count = k.binary("sub", shifted, _SHIFT)
        power = self.polynomial(self.fma(count, -math.log(2), x), _POWER)
        scale = k.shift("left", k.binary("add", self.bitcast(shifted, i64), 1023), 52)
        return k.binary("mul", power, self.bitcast(scale, f64))
