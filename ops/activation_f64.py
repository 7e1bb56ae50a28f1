"""sigmoid, silu and gelu in f64, within 1.1 ulp: exponentials and quotients as sums of two numbers.

The tails decide the way: where e^x has few bits left, x e^x must still have all of its own. So an exponential comes as
a sum of two and a power of two, and the power of two is multiplied in last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import f64, i64

from halfulp.compiler.tile_builder import TileBuilder, Value

from .expansion import Steps, hex_floats

_SHIFT = 1.5 * 2.0**52
"""Added to a number below 2**51, it leaves the nearest integer in the last bits of an f64."""
_LOG2_HIGH, _LOG2_LOW = hex_floats("0x1.62e42fefa4000p-1 -0x1.8432a1b0e2634p-43")
"""log 2; the product of the first part and a number of up to 14 bits is exact."""
_CUBES = tuple(1 / math.factorial(n) for n in range(3, 15))
"""(e^r - 1 - r - r^2 / 2) / r^3 for |r| <= log(2) / 2, to 2^-63 of e^r."""
_LEAST_SCALE = -1000
"""A power of two is multiplied in as two factors, of which the first is at least two to this power."""

_TANH_SLOPE = hex_floats("0x1.9884533d43651p+0 -0x1.cbc0d30ebfd15p-54")
"""2 sqrt(2 / pi)."""
_FARTHEST = {"silu": 800.0, "quick": 800.0, "tanh": 40.0, "none": 40.0}
"""From here on the result is x to the right of 0, and rounds to 0 to the left of it."""

_CENTER = 4.0
_RATIO = hex_floats(
    "0x1.82b4bb8c94dcep-1 -0x1.373e3a893c28ap-1 0x1.8c6dbf2cfc2aep-2 -0x1.7dff2bff68360p-3 0x1.eec4cc3e4deb3p-5 "
    "-0x1.ee27610490412p-8 -0x1.c81719d67714cp-9 0x1.ab825fc5816c6p-10 0x1.17a4af25bfc31p-13 -0x1.e4a426b357e9ep-13 "
    "-0x1.00202db41f966p-19 0x1.26d0b3862162ep-15 0x1.80d6f57240130p-21 -0x1.8d4d80173f0b3p-18 -0x1.525fdd6647130p-21 "
    "0x1.1243c8e860eb3p-20 0x1.255ff5954d30bp-22 -0x1.4cbf2ed885b50p-23 -0x1.78a952cb5d1ecp-24 0x1.b41c22875c8a5p-27 "
    "0x1.783b99529003ap-26 0x1.9c4a8b79be7acp-29 -0x1.0173413a0d5c3p-28 -0x1.b71ec5d6e9977p-30 0x1.c8010ae166eeep-33 "
    "0x1.2df55576a16b8p-32 0x1.cc4ad8101ebe9p-35"
)
_RATIO_LOW = hex_floats("-0x1.9936aa0f26035p-56 -0x1.c0ddf7929e5dcp-56 0x1.96107593f686dp-60")
"""(t + 4) exp(t^2 / 2) times the normal distribution at -t, in s = (t - 4) / (t + 4), 0 <= t <= 40: the interpolation
in 27 Chebyshev nodes, within a relative 2^-63; of the first three coefficients also what rounding them lost."""


@dataclass(frozen=True)
class Pair:
    """A number as a sum of two, the second one small."""

    high: Value
    low: Value


@dataclass(frozen=True)
class Scaled:
    """``pair`` times two to the power of ``exponent``, a whole number as f64."""

    pair: Pair
    exponent: Value


class Pairs(Steps):
    """Steps on sums of two; their sources are in `halfulp.compiler.codegen.math.sums_of_two`."""

    def sum(self, a: Value, b: Value | float) -> Pair:
        """a + b, exactly."""
        k = self.k
        high = a + b
        back = high - a
        return Pair(high, k.binary("sub", a, high - back) + k.binary("sub", b, back))

    def fast_sum(self, a: Value | float, b: Value) -> Pair:
        """a + b, exactly where |a| >= |b|."""
        high = self.k.binary("add", a, b)
        return Pair(high, b - self.k.binary("sub", high, a))

    def product(self, a: Value, b: Value | float) -> Pair:
        """a * b, exactly unless the second part underflows."""
        high = a * b
        return Pair(high, self.fma(a, b, self.k.negate(high)))

    def times(self, a: Pair, b: Pair) -> Pair:
        """a * b, to about twice the bits of one number."""
        head = self.product(a.high, b.high)
        return Pair(head.high, self.fma(a.high, b.low, self.fma(a.low, b.high, head.low)))

    def step(self, a: Pair, s: Value, high: float, low: float) -> Pair:
        """``a * s + (high + low)``: one step of Horner's rule."""
        head = self.product(a.high, s)
        total = self.sum(head.high, high)
        return Pair(total.high, total.low + self.fma(a.low, s, head.low + low))

    def quotient(self, a: Pair, b: Pair) -> Pair:
        """a / b, likewise."""
        first = a.high / b.high
        rest = self.fma(self.k.negate(first), b.high, a.high) + self.fma(self.k.negate(first), b.low, a.low)
        return Pair(first, rest / b.high)

    def power_of_two(self, exponent: Value) -> Value:
        """2^exponent for whole numbers from -1022 to 1023, through the bits."""
        k = self.k
        bits = self.bitcast(exponent + (_SHIFT + 1023), i64)
        return self.bitcast(k.shift("left", bits, 52), f64)

    def near_one(self, a: Scaled) -> Pair:
        """A number that is of no account if it is below 2^-900."""
        scale = self.power_of_two(self.k.binary("maximum", a.exponent, float(_LEAST_SCALE)))
        return Pair(a.pair.high * scale, a.pair.low * scale)

    def rounded(self, a: Scaled) -> Value:
        """The number, rounded a second time only where it is subnormal."""
        first = self.k.binary("maximum", a.exponent, float(_LEAST_SCALE))
        second = self.k.binary("maximum", a.exponent - first, float(_LEAST_SCALE))
        value = (a.pair.high + a.pair.low) * self.power_of_two(first)
        return value * self.power_of_two(second)

    def exp(self, x: Pair) -> Scaled:
        """e^x for |x| < 5000, to 2^-59: ``x = n log 2 + r``, 1 + r + r^2 / 2 as a sum of two, the rest by Taylor."""
        k = self.k
        shifted = self.fma(x.high, 1 / math.log(2), _SHIFT)
        count = k.binary("sub", shifted, _SHIFT)
        multiple = self.product(count, _LOG2_LOW)
        r = self.sum(self.fma(count, -_LOG2_HIGH, x.high), k.negate(multiple.high))
        rest = (r.low - multiple.low) + x.low
        square = self.product(r.high, r.high)
        one = self.fast_sum(1.0, r.high)
        head = self.fast_sum(one.high, 0.5 * square.high)
        cubes = (square.high * r.high) * self.polynomial(r.high, _CUBES)
        tail = self.fma(rest, head.high + cubes, cubes)
        return Scaled(self.fast_sum(head.high, ((head.low + one.low) + 0.5 * square.low) + tail), count)


def _parts(p: Pairs, is_left: Value, slope: Pair) -> tuple[Scaled, Pair]:
    """``1 / (1 + e^-slope)`` as numerator and denominator, which do not overflow; ``is_left`` of 0 is the slope."""
    k = p.k
    minus = Pair(k.select(is_left, slope.high, k.negate(slope.high)), k.select(is_left, slope.low, k.negate(slope.low)))
    power = p.exp(minus)
    small = p.near_one(power)
    one = p.fast_sum(1.0, small.high)
    numerator = Pair(k.select(is_left, power.pair.high, 1.0), k.select(is_left, power.pair.low, 0.0))
    exponent = k.select(is_left, power.exponent, 0.0)
    return Scaled(numerator, exponent), Pair(one.high, one.low + small.low)


def _limited(k: TileBuilder, x: Value, most: float) -> Value:
    return k.binary("minimum", k.binary("maximum", x, -most), most)


def sigmoid(k: TileBuilder, x: Value) -> Value:
    """``1 / (1 + e^-x)``."""
    p = Pairs(k, "sigmoid")
    near = _limited(k, x, _FARTHEST["silu"])
    numerator, denominator = _parts(p, near < 0.0, Pair(near, k.constant(0.0, x.type)))
    return p.rounded(Scaled(p.quotient(numerator.pair, denominator), numerator.exponent))


def _times_sigmoid(p: Pairs, x: Value, near: Value, slope: Pair) -> Value:
    """x times the sigmoid of a slope; ``near`` is x within the limits."""
    numerator, denominator = _parts(p, near < 0.0, slope)
    product = p.times(Pair(near, p.k.constant(0.0, x.type)), numerator.pair)
    result = p.rounded(Scaled(p.quotient(product, denominator), numerator.exponent))
    return p.k.select(x > near, x, p.k.select(near == 0.0, x, result))


def silu(k: TileBuilder, x: Value) -> Value:
    """``x / (1 + e^-x)``."""
    near = _limited(k, x, _FARTHEST["silu"])
    return _times_sigmoid(Pairs(k, "silu"), x, near, Pair(near, k.constant(0.0, x.type)))


def gelu(k: TileBuilder, x: Value, form: str) -> Value:
    """One of the forms of `halfulp.ops.gelu`."""
    p = Pairs(k, "gelu")
    near = _limited(k, x, _FARTHEST[form])
    if form == "quick":
        return _times_sigmoid(p, x, near, p.product(near, 1.702))
    if form == "tanh":
        return _times_sigmoid(p, x, near, _tanh_slope(p, near))
    return _exact_gelu(p, x, near)


def _tanh_slope(p: Pairs, x: Value) -> Pair:
    """``2 sqrt(2 / pi) (x + 0.044715 x^3)``, the constant 0.044715 being the nearest f64."""
    square = p.product(x, x)
    part = p.product(square.high, 0.044715)
    factor = p.sum(part.high, 1.0)
    factor = Pair(factor.high, factor.low + p.fma(square.low, 0.044715, part.low))
    cubic = p.times(Pair(x, p.k.constant(0.0, x.type)), factor)
    high, low = _TANH_SLOPE
    head = p.product(cubic.high, high)
    return Pair(head.high, p.fma(cubic.high, low, p.fma(cubic.low, high, head.low)))


def _exact_gelu(p: Pairs, x: Value, near: Value) -> Value:
    """``max(x, 0) - t N(-t)``, t = |x|; to the left of 0 there is only the second term."""
    k = p.k
    t = k.unary("absf", near)
    half = -0.5 * t
    square = p.product(half, t)
    power = p.exp(square)
    above, below = p.sum(t, -_CENTER), p.sum(t, _CENTER)
    s = p.quotient(above, below)
    product = p.times(p.times(power.pair, _ratio(p, s)), Pair(t, k.constant(0.0, x.type)))
    lost = Scaled(p.quotient(product, below), power.exponent)
    small = p.near_one(lost)
    right = p.sum(near, k.negate(small.high))
    result = k.select(near < 0.0, k.negate(p.rounded(lost)), right.high + (right.low - small.low))
    return k.select(x > near, x, k.select(near == 0.0, x, result))


def _ratio(p: Pairs, s: Pair) -> Pair:
    """The polynomial in s, its first coefficients in twice the bits."""
    rest = p.polynomial(s.high, _RATIO[3:])
    value = Pair(rest, p.k.constant(0.0, rest.type))
    for number in (2, 1):
        value = p.step(value, s.high, _RATIO[number], _RATIO_LOW[number])
    # what s lacks counts to first order: the derivative is about twice this value less the linear coefficient
    slope = 2.0 * value.high - _RATIO[1]
    value = p.step(value, s.high, _RATIO[0], _RATIO_LOW[0])
    return Pair(value.high, p.fma(s.low, slope, value.low))
