"""Which shapes hold the same elements in the same order, though one program has more axes than the other."""

from __future__ import annotations

from math import prod

Shape = tuple[int, ...]


def without_ones(shape: Shape) -> Shape:
    """The shape without axes of size 1."""
    return tuple(size for size in shape if size != 1)


def shapes_fit(one: Shape, other: Shape, integers: bool = False, allow_reshape: bool = False) -> bool:
    """Whether two tensors can be compared element by element, in the order in which they lie.

    Axes of size 1 do not count, and the axes of batch and sequence may be one: ``[2, 4, 64]`` beside ``[8, 64]``.
    At least one axis must be left as it is, but for integers, which are tokens.

    >>> shapes_fit((1, 8, 64), (8, 64)), shapes_fit((2, 4, 64), (8, 64)), shapes_fit((2, 3), (6,))
    (True, True, False)
    """
    one, other = without_ones(one), without_ones(other)
    if one == other:
        return True
    if prod(one) != prod(other):
        return False
    if allow_reshape:
        return True
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    kept = len(shorter) - 1
    if len(longer) == len(shorter) or kept < 0 or (kept == 0 and not integers):
        return False
    return longer[len(longer) - kept :] == shorter[1:]


def rows_of(larger: Shape, smaller: Shape) -> int | None:
    """How many of the rows of one tensor another of fewer rows can hold; None if the rest of the shapes differs.

    >>> rows_of((1, 8, 64), (1, 64))
    1
    """
    if not larger or not smaller or larger[-1] != smaller[-1] or not larger[-1]:
        return None
    rows, of = prod(smaller[:-1]), prod(larger[:-1])
    return rows if 0 < rows < of else None


def shape_tuple(shape: Shape) -> str:
    """As Python writes it: ``(2, 3)``, ``(5,)``, ``()``."""
    return str(tuple(int(size) for size in shape))
