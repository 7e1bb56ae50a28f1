"""Made of other ops: band_part and outer."""

from __future__ import annotations

import numpy as np

from halfulp.compiler import DType, Graph, GraphError, GraphTypeError, TensorValue
from halfulp.compiler.locations import Located
from halfulp.compiler.types import shape_text

from .arithmetic import mul
from .comparison import logical_and, logical_not, where
from .contract import ALL, CORRECTLY_ROUNDED, NUMBERS, Array, Example, promise_examples
from .promotion import TensorValueLike, as_tensor
from .reshaping import unsqueeze
from .samples import anything, of_shape
from .sizes import iota


def band_part(
    x: TensorValueLike, num_lower: int | None = None, num_upper: int | None = None, exclude: bool = False
) -> TensorValue:
    """``x`` with zeros outside of a band around the diagonal of its last two axes.

    Args:
        x: any element type, at least two axes.
        num_lower: how many diagonals below the main one belong to the band; None or -1 for all.
        num_upper: likewise above.
        exclude: put the zeros into the band instead.

    Raises:
        GraphError: ``x`` has fewer than two axes.
        GraphTypeError: ``x`` is no tensor, or a width no int.
    """
    subject = "ops.band_part"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if value.rank < 2:
            raise GraphError(
                f"{subject}: x must have two axes at least, but has shape {shape_text(value.shape)}; unsqueeze it"
            )
        for name, width in (("num_lower", num_lower), ("num_upper", num_upper)):
            if width is not None and (isinstance(width, bool) or not isinstance(width, int)):
                raise GraphTypeError(f"{subject}: {name} must be an int or None, not {width!r}")
    rows = unsqueeze(iota(graph, value.shape[-2], value.device), 1)
    below = rows - iota(graph, value.shape[-1], value.device)
    inside: TensorValue | None = None
    for width, distance in ((num_lower, below), (num_upper, -below)):
        if width is not None and width >= 0:
            near = distance <= width
            inside = near if inside is None else logical_and(inside, near)
    if inside is None:
        return where(below != below, value, 0) if exclude else value
    return where(logical_not(inside) if exclude else inside, value, _zero(value))


def _zero(value: TensorValue) -> int | bool:
    return False if value.dtype.kind == "bool" else 0


def outer(lhs: TensorValueLike, rhs: TensorValueLike) -> TensorValue:
    """The products of every element of ``lhs``, shape [m], with every element of ``rhs``, shape [n]: [m, n].

    Raises:
        GraphError: an operand has not exactly one axis.
        GraphTypeError: an operand is no tensor, or types do not promote.
    """
    subject = "ops.outer"
    graph = Graph.current(subject)
    with Located():
        values = [as_tensor(graph, subject, name, value) for name, value in (("lhs", lhs), ("rhs", rhs))]
        for name, value in zip(("lhs", "rhs"), values, strict=True):
            if value.rank != 1:
                raise GraphError(
                    f"{subject}: operand {name!r} must have one axis, but has shape {shape_text(value.shape)}; "
                    "flatten it"
                )
    return mul(unsqueeze(values[0], 1), values[1])


# -- contracts


def _reference_band(x: Array, num_lower: int | None, num_upper: int | None, exclude: bool) -> Array:
    below = np.arange(x.shape[-2])[:, None] - np.arange(x.shape[-1])
    inside = np.ones(below.shape, bool)
    for width, distance in ((num_lower, below), (num_upper, -below)):
        if width not in (None, -1):
            inside &= distance <= width
    return np.where(inside != exclude, x, np.zeros_like(x))


def _outer_examples(dtype: DType) -> list[Example]:
    return [Example((anything(dtype, (m,)), anything(dtype, (n,), 1))) for m, n in ((7, 70), (0, 3))]


promise_examples(
    band_part,
    ALL,
    _reference_band,
    of_shape(
        (2, 6, 5),
        *(
            {"num_lower": lower, "num_upper": upper, "exclude": exclude}
            for lower, upper, exclude in ((0, 0, False), (None, 1, False), (2, -1, True), (None, None, True))
        ),
    ),
)
promise_examples(outer, NUMBERS, lambda lhs, rhs: lhs[:, None] * rhs, _outer_examples, ulp=CORRECTLY_ROUNDED)
