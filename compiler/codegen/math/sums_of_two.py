"""Exact products and sums of two numbers, each as a sum of two: the rounded result and what the rounding lost."""

from __future__ import annotations

from .emitter import Emitter, V


def product(e: Emitter[V], a: V, b: V) -> tuple[V, V]:
    """a * b, exactly unless the second part underflows."""
    high = e.mul(a, b)
    return high, e.fma(a, b, e.neg(high))


def two_sum(e: Emitter[V], a: V, b: V) -> tuple[V, V]:
    """a + b, exactly (Knuth, The Art of Computer Programming 2, section 4.2.2)."""
    high = e.add(a, b)
    back = e.sub(high, a)
    return high, e.add(e.sub(a, e.sub(high, back)), e.sub(b, back))


def fast_two_sum(e: Emitter[V], a: V, b: V) -> tuple[V, V]:
    """a + b, exactly where |a| >= |b| or a = 0 (Dekker, "A floating-point technique", 1971)."""
    high = e.add(a, b)
    return high, e.sub(b, e.sub(high, a))
