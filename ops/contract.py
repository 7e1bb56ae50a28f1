"""What an op promises: element types, error bound, reference. The tests and the README's table read it here.

An error of u ulp means ``|computed - exact| <= u * ulp(exact)``, ulp(y) the distance between neighbouring numbers of
the result's type in the binade of y, and that between subnormals below the smallest normal number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy.typing as npt

from halfulp.compiler import DType, GraphError

Array = npt.NDArray[Any]

BOOL = (DType.bool,)
SIGNED = (DType.int8, DType.int16, DType.int32, DType.int64)
UNSIGNED = (DType.uint8, DType.uint16, DType.uint32, DType.uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (DType.float32, DType.float64, DType.float16, DType.bfloat16)
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + BOOL

EXACT = 0.0
CORRECTLY_ROUNDED = 0.5


@dataclass(frozen=True)
class Example:
    """One call that a contract is tested with: its tensors, and its other parameters."""

    operands: tuple[Array, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Contract:
    """The promise of one function of `halfulp.ops`.

    Args:
        name: the function's name, ``halfulp.ops.<name>``.
        build: the function, called with tensors and the parameters of a variant.
        operands: the number of tensors it takes.
        dtypes: element types of the operands, each of which it takes for all of them at once.
        ulp: the bound in f32 and f64. f16 and bf16 results are the f32 result rounded once, or better.
            None: ``tolerance`` gives the bound.
        reference: the exact result as far as it can be had. Operands arrive as float64 (f16, bf16, f32), longdouble
            (f64), Python ints in an object array, or bool; a result in the same form. Integers wrap afterwards.
        variants: keyword parameters to test it with.
        tolerance: the largest absolute error, from the result's epsilon, the operands and the parameters.
        tolerance_text: the bound in words, for the table.
        layout: what the reference works on: ``elements`` of any shape, ``rows`` (along the last axis), ``matrices``, or
            the operands of ``examples``.
        mpmath: the function's name in mpmath. The tests refine the reference of f64 with it, special values aside.
        conditions: how many bools stand before the operands, such as the condition of ``where``.
        examples: the calls to test it with, for an element type, where operands have shapes of their own. Operands of
            that type arrive in the reference as above, others, such as indices, as they are. ``reference`` and
            ``tolerance`` get the parameters, too, and the reference returns as many results as the function.
        takes_list: whether the function takes its tensors as one list.
        rounds_each_step: whether f16 and bf16 are rounded at each step, so that ``tolerance`` gets their own epsilon.
    """

    name: str
    build: Callable[..., Any]
    operands: int
    dtypes: tuple[DType, ...]
    ulp: float | None
    reference: Callable[..., Any]
    variants: tuple[Mapping[str, Any], ...] = ({},)
    tolerance: Callable[..., Any] | None = None
    tolerance_text: str = ""
    layout: Literal["elements", "rows", "matrices", "examples"] = "elements"
    mpmath: str = ""
    conditions: int = 0
    examples: Callable[[DType], Sequence[Example]] | None = None
    takes_list: bool = False
    rounds_each_step: bool = False

    @property
    def bound(self) -> str:
        """The bound in words."""
        if self.ulp is None:
            return self.tolerance_text
        return {EXACT: "exact", CORRECTLY_ROUNDED: "correctly rounded"}.get(self.ulp, f"{self.ulp:g} ulp")

    def ulp_for(self, dtype: DType) -> float:
        """The bound in ulp of a result of this type: half types round an f32 result once more."""
        assert self.ulp is not None
        return self.ulp if dtype.bits >= 32 or self.ulp <= CORRECTLY_ROUNDED else CORRECTLY_ROUNDED + self.ulp / 4096


CONTRACTS: dict[str, Contract] = {}
"""All contracts, by name, in the order of the library."""


def promise(contract: Contract) -> Contract:
    """Add a contract to the library's.

    Raises:
        GraphError: another function has made one under that name.
    """
    if contract.name in CONTRACTS:
        raise GraphError(f"ops.{contract.name} has a contract already")
    CONTRACTS[contract.name] = contract
    return contract


def promise_examples(
    build: Callable[..., Any],
    dtypes: tuple[DType, ...],
    reference: Callable[..., Any],
    examples: Callable[[DType], Sequence[Example]],
    *,
    ulp: float = EXACT,
    tolerance: Callable[..., Any] | None = None,
    text: str = "",
    takes_list: bool = False,
    rounds_each_step: bool = False,
) -> None:
    """The contract of a function whose operands have shapes of their own; exact if nothing else is said."""
    promise(
        Contract(
            build.__name__,
            build,
            0,
            dtypes,
            None if tolerance else ulp,
            reference,
            tolerance=tolerance,
            tolerance_text=text,
            layout="examples",
            examples=examples,
            takes_list=takes_list,
            rounds_each_step=rounds_each_step,
        )
    )
