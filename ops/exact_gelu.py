"""gelu without approximation, in f32: polynomials that a table gives, and no division.

For t = ``|x|`` and the normal distribution N, gelu is ``max(x, 0) - t N(-t)``: right of 0 the second term is small,
left of it there is nothing else. ``t N(-t) = e^(-t^2 / 2) q(t) / 2`` with ``q(t) = 2 t e^(t^2 / 2) N(-t)``, which is
about t near 0 and sqrt(2 / pi) far out.

The numbers from 0 to 15 are cut where t + 1 has another exponent or other two leading bits: 16 intervals, the first
[0, 1/4), the last [13, 15). In each ``q(t) = max(c, s) + s p(s)`` with s = t - center, p of degree 5. The center of the
first is 0 and so is its c: there the maximum is s, and q keeps its relative error down to t = 0. Elsewhere it is c. The
other centers are near the middle of the interval, from 7 on 5/4 right of its left end, so that s stays below c; and
where q is within 2^-35 of a float, which is c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import f32, i32

from halfulp.compiler.tile_builder import TileBuilder, Value

from .expansion import Steps, hex_floats

_FARTHEST = 14.5
"""Beyond, t N(-t) rounds to 0."""
_KEPT_BITS = 21
"""Of t + 1, behind the two leading bits: what is shifted out of the number of an interval."""
_FIRST = 12
"""The number of the interval that begins at 0, modulo 16: the exponent's bits of 1 are 127, and four times that."""
_CENTERS = hex_floats(
    "0x0p0 0x1.800ee6p-2 0x1.401386p-1 0x1.c006ecp-1 0x1.40155ap0 0x1.c0061ep0 0x1.2006cep1 0x1.5fec3ep1 "
    "0x1.c00b72p1 0x1.2006bp2 0x1.5fffd8p2 0x1.9ffecap2 0x1.07f608p3 0x1.480016p3 0x1.87fe9p3 0x1.c7fa32p3"
)
_START, *_COEFFICIENTS = (
    hex_floats(
        "0x0p0 0x1.2391b6p-2 0x1.9df4fep-2 0x1.f55d52p-2 0x1.276774p-1 0x1.4bf0bap-1 0x1.620572p-1 0x1.701b6cp-1 "
        "0x1.7d2546p-1 0x1.86c6e2p-1 0x1.8c2b86p-1 0x1.8f76d2p-1 0x1.92c294p-1 0x1.94bc12p-1 0x1.95d8e2p-1 "
        "0x1.9688bp-1"
    ),
    hex_floats(
        "0x0p0 0x1.222914p-1 0x1.9a30bcp-2 0x1.28b9e8p-2 0x1.7b55e8p-3 0x1.bd3b4ep-4 0x1.159d48p-4 0x1.6c8b1ep-5 "
        "0x1.a2856ep-6 0x1.bfa02cp-7 0x1.07e43cp-7 0x1.4ea7b8p-8 0x1.56fdb8p-9 0x1.6fb95cp-10 0x1.b5cdc4p-11 "
        "0x1.18ee66p-11"
    ),
    hex_floats(
        "-0x1.988446p-1 -0x1.a0a35p-2 -0x1.12dc9cp-2 -0x1.73affap-3 -0x1.ae9cp-4 -0x1.be072ep-5 -0x1.ee7ae4p-6 "
        "-0x1.22d69cp-6 -0x1.1ecb2cp-7 -0x1.003932p-8 -0x1.02000cp-9 -0x1.1c8ac6p-10 -0x1.d8f212p-12 "
        "-0x1.9f609ep-13 -0x1.a21402p-14 -0x1.d03ceap-15"
    ),
    hex_floats(
        "0x1.fffa22p-2 0x1.dc2364p-3 0x1.27a166p-3 0x1.789c3p-4 0x1.8fb72ep-5 0x1.720e56p-6 0x1.70a716p-7 "
        "0x1.87fe8ep-8 0x1.4f856cp-9 0x1.f9ff9ap-11 0x1.b63cd2p-12 0x1.a677b4p-13 0x1.1e54bcp-14 0x1.9d974ep-16 "
        "0x1.60ba7ep-17 0x1.536afp-18"
    ),
    hex_floats(
        "-0x1.0feb4cp-2 -0x1.d23c72p-4 -0x1.121362p-4 -0x1.4ad222p-5 -0x1.44361cp-6 -0x1.0edc54p-7 -0x1.e908b2p-9 "
        "-0x1.d95bdap-10 -0x1.62d008p-11 -0x1.c791bap-13 -0x1.55847ep-14 -0x1.211098p-15 -0x1.3fe5f6p-17 "
        "-0x1.7e11f2p-19 -0x1.14fd86p-20 -0x1.cf850ep-22"
    ),
    hex_floats(
        "0x1.f20734p-4 0x1.98bb6ap-5 0x1.ca10eep-6 0x1.07bd28p-6 0x1.e0a224p-8 0x1.6c68cp-9 0x1.2c5f16p-10 "
        "0x1.0926a6p-11 0x1.6449fp-13 0x1.86163ep-15 0x1.fbce86p-17 0x1.78acfp-18 0x1.571a54p-20 0x1.5286a2p-22 "
        "0x1.a12acep-24 0x1.2170bp-25"
    ),
    hex_floats(
        "-0x1.4875f6p-5 -0x1.407eaep-6 -0x1.56dc24p-7 -0x1.72944p-8 -0x1.46006ap-9 -0x1.c30e66p-11 "
        "-0x1.521e98p-12 -0x1.14e7f4p-13 -0x1.4b518cp-15 -0x1.38c83cp-17 -0x1.61a9e4p-19 -0x1.d134e4p-21 "
        "-0x1.c0430ap-23 -0x1.5f13aep-25 -0x1.63d396p-27 -0x1.09d3bep-28"
    ),
)
"""c, then p from its constant term on, by interval: minimax within a relative 2^-28.7 of q, each coefficient rounded to
f32 before the next ones are fitted."""
_POWER = hex_floats("-0x1p-1 0x1.fffffcp-4 -0x1.555492p-6 0x1.5558aep-9 -0x1.12398p-12 0x1.6a4f72p-16")
"""(e^(-d / 2) - 1) / d, |d| <= log(2), within 2^-28 of the power."""
_LOG2_HIGH, _LOG2_LOW = hex_floats("0x1.62e4p-1 0x1.7f7d1cp-20")
"""The first has 15 bits, so that its product with a number below 512 is exact."""
_LIFT = 32
"""A result is raised by two to this power at first: it is no subnormal then, and is rounded once as it comes down."""
_SHIFT = 1.5 * 2.0**23 + 127 + _LIFT
"""Added to a number, it leaves the nearest integer in the last bits of an f32, as the exponent of a power of two."""


def exact_gelu(k: TileBuilder, x: Value) -> Value:
    """gelu of f32, within 2 ulp; -0 at -inf, NaN of NaN."""
    steps = Steps(k, "gelu")
    raised = _ratio_times_power(steps, steps.at_most(k.unary("absf", x), _FARTHEST))
    return steps.fma(raised, -(2.0 ** -(_LIFT + 1)), k.select(x < 0.0, -0.0, x))


def _ratio_times_power(steps: Steps, t: Value) -> Value:
    """``q(t) e^(-t^2 / 2)``, raised by ``_LIFT``: q times e^r, and then times a power of two."""
    k = steps.k
    shifted = steps.fma(t * t, -0.5 / math.log(2), _SHIFT)
    count = k.binary("sub", shifted, _SHIFT)
    # t^2 + 2 n log 2 is -2 r: a square is up to 210 and its rounding error would be one of the exponent.
    rest = steps.fma(count, 2 * _LOG2_LOW, steps.fma(t, t, count * (2 * _LOG2_HIGH)))
    over = rest * steps.polynomial(rest, _POWER)
    ratio = _ratio(steps, t)
    scale = steps.bitcast(k.shift("left", steps.bitcast(shifted, i32), 23), f32)
    return steps.fma(over, ratio, ratio) * scale


def _ratio(steps: Steps, t: Value) -> Value:
    """q(t) for 0 <= t <= 14.5."""
    k = steps.k
    interval = k.shift("right_logical", steps.bitcast(t + 1.0, i32), _KEPT_BITS)

    def of_interval(row: Sequence[float]) -> Value:
        return k.lookup(interval, (*row[-_FIRST:], *row[:-_FIRST]))

    s = t - of_interval(_CENTERS)
    *lower, highest = map(of_interval, _COEFFICIENTS)
    p = highest
    for coefficient in reversed(lower):
        p = steps.fma(p, s, coefficient)
    start = of_interval(_START)
    return steps.fma(p, s, k.select(start > s, start, s))
