"""Axes of a tensor as users write them: ints, counted from the end where negative."""

from __future__ import annotations

import operator
from collections.abc import Iterable

from halfulp.compiler import GraphError, GraphTypeError, TensorValue
from halfulp.compiler.types import shape_text


def axis_of(subject: str, value: TensorValue, axis: object, name: str = "axis") -> int:
    """``axis`` as a number from 0.

    Raises:
        GraphTypeError: it is no int.
        GraphError: the tensor has no such axis.
    """
    return checked_axis(subject, axis, value.rank, name, f"x has shape {shape_text(value.shape)}")


def checked_axis(subject: str, axis: object, rank: int, name: str, why: str) -> int:
    """``axis`` as a number from 0 among ``rank`` axes; ``why`` says in a message where these come from.

    Raises:
        GraphTypeError: it is no int.
        GraphError: there is no such axis.
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise GraphTypeError(f"{subject}: {name} must be an int, not {axis!r}")
    number = operator.index(axis)
    if not -rank <= number < rank:
        remedy = f"{name} must be from {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise GraphError(f"{subject}: {name} {number} does not exist, since {why}; {remedy}")
    return number % rank


def axes_of(subject: str, value: TensorValue, axes: Iterable[object], name: str = "axes") -> list[int]:
    """Several different axes as numbers from 0.

    Raises:
        GraphTypeError: one is no int, or they are no sequence.
        GraphError: the tensor has no such axis, or one stands twice.
    """
    if isinstance(axes, str) or not isinstance(axes, Iterable):
        raise GraphTypeError(f"{subject}: {name} must be a sequence of ints, not {axes!r}; write [{axes!r}]")
    given = list(axes)
    numbers = [axis_of(subject, value, axis, name) for axis in given]
    if len(set(numbers)) < len(numbers):
        raise GraphError(f"{subject}: {name} {given} name an axis twice; name each once")
    return numbers
