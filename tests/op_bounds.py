"""Whether results of ops keep what their contracts promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from op_samples import Array, distance_in_ulp, epsilon, last_bit_is_set, refined, smallest, widened, wrapped

from halfulp.compiler import DType
from halfulp.ops.contract import CORRECTLY_ROUNDED, Contract

TIE = 0.5  # of an ulp


def wide_operands(dtype: DType, operands: Sequence[Array]) -> list[Array]:
    """Those of an element type as references take them; conditions and indices as they are."""
    return [widened(array, dtype) if array.dtype == dtype.to_numpy() else array for array in operands]


def references(contract: Contract, dtype: DType, operands: Sequence[Array]) -> list[Array]:
    wide = wide_operands(dtype, operands)
    with np.errstate(all="ignore"):
        results = [np.asarray(contract.reference(*wide, **variant)) for variant in contract.variants]
    if contract.mpmath and dtype is DType.float64:
        return [refined(contract.mpmath, wide, result) for result in results]
    return results


def check_ulp(
    contract: Contract, variant: Mapping[str, Any], got: Array, exact: Array, operands: Sequence[Array]
) -> None:
    """The result is within the contract's bound everywhere; ties are even, zeros have the right sign."""
    dtype = DType.from_numpy(got.dtype)
    where = f"ops.{contract.name}({variant}) giving {dtype}"
    if not dtype.is_float:
        wanted = exact.astype(bool) if dtype is DType.bool else wrapped(exact, dtype)
        wrong = got != wanted
    else:
        bound = contract.ulp_for(dtype)
        # a reference of f64 is a longdouble, which has been rounded itself, to 2**-11 ulp of f64
        rounded = exact.dtype == np.longdouble and dtype is DType.float64
        apart = distance_in_ulp(got, exact, dtype)
        wrong = apart > bound + (2.0**-10 if rounded and bound else 0.0)
        if contract.ulp == CORRECTLY_ROUNDED and not rounded:
            wrong |= (apart == TIE) & last_bit_is_set(got, dtype) & np.isfinite(got)
        wrong |= (exact == 0) & (np.signbit(got) != np.signbit(exact))
    if wrong.any():
        at = int(np.argmax(wrong))
        same = [operand for operand in operands if operand.shape == got.shape]
        values = ", ".join(repr(operand.ravel()[at]) for operand in same) or f"operands of {len(operands)} shapes"
        raise AssertionError(
            f"{where}: {int(wrong.sum())} of {wrong.size} are wrong; of {values} it gives {got.ravel()[at]!r}, "
            f"exact is {exact.ravel()[at]!r}"
        )


def check_result(
    contract: Contract, variant: Mapping[str, Any], got: Array, exact: Array, operands: Sequence[Array]
) -> None:
    """Within the tolerance of the contract, if it has one, plus what rounding the result costs."""
    dtype = DType.from_numpy(got.dtype)
    if contract.tolerance is None or not dtype.is_float:
        check_ulp(contract, variant, got, exact, operands)
        return
    wide = wide_operands(dtype, operands)
    computed_in = dtype if dtype.bits >= 32 or contract.rounds_each_step else DType.float32
    with np.errstate(all="ignore"):
        # the relative bounds hold above the subnormals; each step may lose half the smallest of them
        lost = wide[0].shape[-1] * smallest(computed_in)
        allowed = contract.tolerance(epsilon(computed_in), *wide, **variant) + lost
        if computed_in is not dtype:
            allowed = allowed + np.maximum(epsilon(dtype) / 2 * np.abs(exact), smallest(dtype) / 2)
        error = np.abs(got.astype(np.longdouble) - exact)
    fine = np.where(np.isfinite(exact), error <= allowed, (np.isnan(got) & np.isnan(exact)) | (got == exact))
    assert fine.all(), (
        f"ops.{contract.name} on {operands[0].dtype} {operands[0].shape}: {int((~fine).sum())} of {fine.size} are off, "
        f"first {got[~fine][0]!r}, exact is {exact[~fine][0]!r}"
    )
