"""Polynomials, and constants given bit by bit."""

from __future__ import annotations

from collections.abc import Sequence

from .emitter import Emitter, V


def hexadecimal(text: str) -> tuple[float, ...]:
    """The exact values of hexadecimal floats (C's ``%a``), separated by spaces."""
    assert all("0x" in word for word in text.split()), text  # fromhex would read 0.5 as 5/16
    return tuple(float.fromhex(word) for word in text.split())


def horner(e: Emitter[V], x: V, coefficients: Sequence[float]) -> V:
    """c[0] + c[1] x + c[2] x^2 + ..., one fma per power: the fewest operations.

    Waiting for one another costs the fma chains nothing in a kernel, which has enough vectors in flight.
    """
    value = e.constant(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        value = e.fma(value, x, e.constant(coefficient, x))
    return value
