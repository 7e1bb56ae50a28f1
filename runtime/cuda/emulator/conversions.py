"""``cvt``: between all integer and float types, with the rounding that the instruction names.

A conversion from float goes through f64, which holds f16, bf16 and f32 exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from halfulp.compiler.interpreter import exact

from .floats import canonical
from .operation import Modifiers, Operation, unsupported
from .syntax import Instruction
from .types import B32, BF16, F32, F64, TYPES, U32, Array, DType, ScalarType, as_raw

_TO_INTEGER: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_ROUNDINGS = ("rn", "rz", "rm", "rp")


def convert(instruction: Instruction) -> Operation:
    """``cvt.rn.f32.s64``, ``cvt.rzi.s32.f32``, ``cvt.rmi.f32.f32``, ``cvt.u64.u32``, ``cvt.rn.bf16x2.f32``."""
    modifiers = Modifiers(instruction)
    rounding = modifiers.take(*_ROUNDINGS, *_TO_INTEGER)
    if modifiers.left in (["f16x2", "f32"], ["bf16x2", "f32"]) and rounding in ("rn", "rz"):
        return _packed(TYPES[modifiers.left[0].removesuffix("x2")], rounding)
    saturate = modifiers.take("sat") is not None
    to, source = modifiers.type("usf", (8, 16, 32, 64)), modifiers.type("usf", (8, 16, 32, 64))
    modifiers.end()
    function = _conversion(source, to, rounding, saturate)
    if function is None:
        raise unsupported(instruction)
    return Operation(lambda a: as_raw(function(a.view(source.dtype))), (source,), to)


def _conversion(
    source: ScalarType, to: ScalarType, rounding: str | None, saturate: bool
) -> Callable[[Array], Array] | None:
    """None if there is no such conversion, or it is not covered."""
    if source.is_float and to.is_float:
        return _between_floats(source, to, rounding, saturate)
    if source.is_float:
        return _float_to_integer(source, to, rounding) if rounding in _TO_INTEGER else None
    if to.is_float:
        return _integer_to_float(source, to, rounding) if rounding in _ROUNDINGS and not saturate else None
    if rounding is not None:
        return None
    if saturate:
        return None if _holds(to.dtype, source.dtype) else lambda a: _saturated(a, to.dtype)
    return lambda a: a.astype(to.dtype)


def _between_floats(
    source: ScalarType, to: ScalarType, rounding: str | None, saturate: bool
) -> Callable[[Array], Array] | None:
    if saturate:
        return None
    if rounding in _TO_INTEGER and source == to:
        return lambda a: canonical(exact.rounded_by(_TO_INTEGER[rounding])(a))
    widens = source.bits < to.bits
    if widens and rounding is None:
        return lambda a: canonical(a.astype(to.dtype))
    if not widens and source != to and rounding in _ROUNDINGS:
        return lambda a: round_float(a.astype(F64), to.dtype, rounding)
    return None


def round_float(a: Array, dtype: DType, rounding: str) -> Array:
    """An f64 array in ``dtype``, rounded once."""
    nearest = exact.narrow(a, dtype) if dtype != F64 else a
    if rounding == "rn":
        return canonical(nearest)
    back = nearest.astype(F64)
    bits = as_raw(nearest)
    one = bits.dtype.type(1)
    # A neighbour of larger magnitude has bits that are one higher, whatever the sign; the sign of zero is the source's.
    inwards = np.abs(back) > np.abs(a) if rounding == "rz" else (back > a if rounding == "rm" else back < a)
    grows = np.signbit(nearest) == (rounding == "rm")
    moved = np.where(grows & (rounding != "rz"), bits + one, bits - one)
    return canonical(np.where(inwards, moved, bits).view(dtype))


def _integer_to_float(source: ScalarType, to: ScalarType, rounding: str) -> Callable[[Array], Array] | None:
    """numpy rounds integers to nearest even in f32 and f64; all of 32 bits are exact in f64."""
    if rounding == "rn" and to.dtype in (F32, F64):
        return lambda a: a.astype(to.dtype)
    if source.bits < 64:
        return lambda a: round_float(a.astype(F64), to.dtype, rounding)
    if rounding == "rn" and to.dtype != BF16:
        # what f64 cannot hold lies far beyond the largest f16
        return lambda a: a.astype(F64).astype(to.dtype)
    return None


def _float_to_integer(source: ScalarType, to: ScalarType, rounding: str) -> Callable[[Array], Array]:
    """Clamped to the range of the type. NaN gives 0, but in conversions with 64 bits the highest bit alone."""
    round_it = _TO_INTEGER[rounding]
    limits = np.iinfo(to.dtype)
    # the largest value of 64-bit types is no f64; below its successor lies the last f64 that fits
    lowest, beyond = float(limits.min), float(limits.max + 1)
    nan_bits = 1 << to.bits - 1 if 64 in (source.bits, to.bits) else 0
    of_nan = np.array([nan_bits], f"u{to.nbytes}").view(to.dtype)

    def to_integer(a: Array) -> Array:
        whole = round_it(a.astype(F64))
        fits = (whole >= lowest) & (whole < beyond)
        inside = np.where(fits, whole, 0.0).astype(to.dtype)
        if fits.all():
            return inside
        clamped = np.where(whole < lowest, to.dtype.type(limits.min), to.dtype.type(limits.max))
        return np.where(fits, inside, np.where(np.isnan(whole), of_nan, clamped))

    return to_integer


def _holds(dtype: DType, other: DType) -> bool:
    """Whether an integer type holds all values of another one; then PTX allows no ``.sat``."""
    own, limits = np.iinfo(dtype), np.iinfo(other)
    return bool(own.min <= limits.min and own.max >= limits.max)


def _saturated(a: Array, dtype: DType) -> Array:
    """An integer clamped to the range of another type, which may be of the other sign."""
    limits, own = np.iinfo(dtype), np.iinfo(a.dtype)
    low, high = max(int(limits.min), int(own.min)), min(int(limits.max), int(own.max))
    return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(dtype)


def _packed(half: ScalarType, rounding: str) -> Operation:
    """``cvt.rn.f16x2.f32 d, a, b``: a in the upper half, b in the lower."""

    def pack(a: Array, b: Array) -> Array:
        high, low = (as_raw(round_float(x.view(F32).astype(F64), half.dtype, rounding)).astype(U32) for x in (a, b))
        return np.asarray((high << np.uint32(16)) | low)

    return Operation(pack, (TYPES["f32"], TYPES["f32"]), B32)
