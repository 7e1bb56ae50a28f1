"""The error that a failed check of a kernel becomes, wherever the kernel ran."""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.compiler.artifact import CheckSite

from .errors import BoundsError, ExecutionError


def failed_check(
    model: str, site: CheckSite, program: int, values: Sequence[int], grid: Sequence[int]
) -> ExecutionError:
    """The error of a check in ``program`` of a grid, which recorded ``values``; an empty grid is not known."""
    pieces = site.message.split("{}")
    text = pieces[0] + "".join(f"{value}{piece}" for value, piece in zip(values, pieces[1:], strict=True))
    shown = _program_id(site, program, grid)
    if site.is_bounds:
        message = f"model '{model}': kernel '{site.kernel}', program {shown}: {text}"
        return BoundsError(message, site.kernel, program, tuple(values), text)
    message = f"model '{model}': {text} (kernel '{site.kernel}', program {shown})"
    return ExecutionError(message, site.kernel, program, tuple(values), text)


def _program_id(site: CheckSite, program: int, grid: Sequence[int]) -> int | tuple[int, ...]:
    """The place of a program along each axis of its grid, where that is known and says more than a number."""
    if site.rank == 1 and site.is_bounds:
        return (program,)
    if site.rank < 2 or not grid:
        return program
    ids = []
    for size in reversed(grid):
        program, place = divmod(program, max(size, 1))
        ids.append(place)
    return tuple(reversed(ids))
