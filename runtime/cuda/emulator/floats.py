"""Float arithmetic, correctly rounded to nearest even: add, sub, mul, div, sqrt, fma, min, max, abs, neg, copysign.

Subnormals are kept; with ``.ftz`` they become zeros of their sign, in operands and in results. A NaN that comes out
is PTX's canonical one. ``add``, ``sub`` and ``mul`` without a rounding mode are a fault: ptxas may fuse them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from halfulp.compiler.interpreter import exact

from .errors import UnroundedOperationError
from .fused import fma_f32
from .operation import Family, Modifiers, Operation, on_values, unsupported
from .syntax import Instruction
from .types import F32, NAN_BITS, RAW, Array, DType, ScalarType

_NAN = {dtype: np.array([bits], f"u{dtype.itemsize}").view(dtype) for dtype, bits in NAN_BITS.items()}
_SMALLEST_NORMAL = np.float32(2.0**-126)


def arithmetic(ufunc: Callable[..., Array], of_any: Callable[..., Array]) -> Family:
    """``add``, ``sub`` and ``mul`` of floats: numpy's own for f32 and f64, one that rounds once more for the others."""

    def family(instruction: Instruction) -> Operation:
        modifiers = Modifiers(instruction)
        if modifiers.take("rz", "rm", "rp"):
            raise unsupported(instruction)
        rounded = modifiers.take("rn")
        flush, saturate, type = _rest(modifiers)
        if rounded is None:
            raise UnroundedOperationError(
                f"PTX line {instruction.line}: {instruction.text}: {instruction.name} has no rounding mode, so ptxas "
                f"may fuse it with its neighbours; write {instruction.opcode}.rn.{'.'.join(instruction.modifiers)}"
            )
        return _operation(ufunc if type.bits >= 32 else of_any, type, 2, flush, saturate)

    return family


def rounded(function: Callable[..., Array], count: int) -> Family:
    """``div.rn``, ``sqrt.rn``, ``rcp.rn`` and ``fma.rn``; other roundings and approximations are refused."""

    def family(instruction: Instruction) -> Operation:
        modifiers = Modifiers(instruction)
        modifiers.one_of("rn")
        flush, saturate, type = _rest(modifiers)
        chosen = fma_f32 if function is exact.fma and type.dtype == F32 else function
        return _operation(chosen, type, count, flush, saturate)

    return family


def extreme(of_numbers: Callable[..., Array], or_nan: Callable[..., Array]) -> Family:
    """``min`` and ``max``: a number beside a NaN wins, with ``.NaN`` the NaN does. -0 lies below +0."""

    def family(instruction: Instruction) -> Operation:
        modifiers = Modifiers(instruction)
        flush = modifiers.take("ftz") is not None
        propagates = modifiers.take("NaN") is not None
        type = modifiers.type("f")
        modifiers.end()
        return _operation(or_nan if propagates else of_numbers, type, 2, flush, False)

    return family


def maximum_number(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, exact.maximum(a, b)))


def minimum_number(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, exact.minimum(a, b)))


def reciprocal(a: Array) -> Array:
    return exact.divide(np.ones(1, a.dtype), a)


def sign_change(function: Callable[[Array], Array]) -> Family:
    """``neg`` and ``abs`` change the sign bit only, of NaN too."""

    def family(instruction: Instruction) -> Operation:
        modifiers = Modifiers(instruction)
        flush = modifiers.take("ftz") is not None
        type = modifiers.type("f")
        modifiers.end()
        changed = (lambda a: function(_flushed(a))) if flush else function
        return Operation(on_values(changed, type), (type,), type)

    return family


def copy_sign(instruction: Instruction) -> Operation:
    """``copysign d, a, b``: the magnitude of b with the sign of a."""
    modifiers = Modifiers(instruction)
    type = modifiers.type("f", (32, 64))
    modifiers.end()
    return Operation(on_values(lambda a, b: exact.copy_sign(b, a), type, type), (type, type), type)


def canonical(a: Array) -> Array:
    """``a`` with every NaN replaced by PTX's."""
    nan = np.isnan(a)
    return np.where(nan, _NAN[a.dtype], a) if np.count_nonzero(nan) else a


def _rest(modifiers: Modifiers) -> tuple[bool, bool, ScalarType]:
    flush = modifiers.take("ftz") is not None
    saturate = modifiers.take("sat") is not None
    type = modifiers.type("f")
    modifiers.end()
    if (flush or saturate) and type.dtype != F32:
        raise unsupported(modifiers.instruction)
    return flush, saturate, type


def _operation(function: Callable[..., Array], type: ScalarType, count: int, flush: bool, saturate: bool) -> Operation:
    compute = _flushing(function) if flush else function
    if saturate:
        compute = _saturating(compute)
    return Operation(_raw(compute, type.dtype, count), (type,) * count, type)


def _raw(function: Callable[..., Array], dtype: DType, count: int) -> Callable[..., Array]:
    """One lambda per arity: this is the innermost call of most kernels."""
    raw = RAW[8 * dtype.itemsize]
    if count == 1:
        return lambda a: canonical(function(a.view(dtype))).view(raw)
    if count == 2:
        return lambda a, b: canonical(function(a.view(dtype), b.view(dtype))).view(raw)
    return lambda a, b, c: canonical(function(a.view(dtype), b.view(dtype), c.view(dtype))).view(raw)


def _flushed(a: Array) -> Array:
    return np.where(np.abs(a) < _SMALLEST_NORMAL, np.copysign(np.zeros(1, a.dtype), a), a)


def _flushing(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *operands: _flushed(function(*map(_flushed, operands)))


def _saturating(function: Callable[..., Array]) -> Callable[..., Array]:
    """Clamped to [0, 1]; NaN gives +0."""

    def saturated(*operands: Array) -> Array:
        value = function(*operands)
        return np.where(value > 0, np.minimum(value, np.ones(1, value.dtype)), np.zeros(1, value.dtype))

    return saturated
