"""The bits of 2/pi."""

from __future__ import annotations

from math import ldexp

_TWO_OVER_PI_BITS = 1344
_TWO_OVER_PI = int(  # the bits after the binary point
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E00649"
    "2EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8B"
    "BDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5"
    "F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC209AF4361DA9E391615EE61B08",
    16,
)


def two_over_pi(first_bit: int, bits: int, exponent: int = 0) -> float:
    """The ``bits`` bits from ``first_bit`` on (0 is worth 1/2), times 2^exponent, exactly; at most 53 bits."""
    below = _TWO_OVER_PI_BITS - first_bit - bits
    integer = (_TWO_OVER_PI >> below) & ((1 << bits) - 1)
    return ldexp(integer, exponent - first_bit - bits)
