"""Compares what two programs wrote while they ran: pairs tensors, measures each pair, finds the first that diverges."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from halfulp.compiler.errors import GraphError, HalfulpError

from .alignment import Alignment, Match, align
from .fused_layouts import Part
from .tensor_folders import Dump, DumpedTensor, printable, read_dump
from .tensor_metrics import Greatest, Metrics, Tolerance, coarser_type, is_float, measure, spacing
from .tensor_names import parse_name
from .ulps import Array

Index = tuple[int, ...]


class TensorPair(msgspec.Struct, frozen=True):
    """One pair. "torch" is the side that is taken as right; all indices are into its tensor.

    Attributes:
        torch, max: the two names, with their step where there are several.
        step: the step, as the torch side counts.
        rule: what paired them: ``name``; ``renamed`` (known names of layers, ``_0``, --map); ``prefix`` (paths that
            begin differently); ``fused``; ``argument`` (another argument of the same layer); ``values``; ``copy`` (one
            of them has the bits of another tensor of its side, ``copied``); ``only one`` (of each side).
        copied: that other tensor.
        torch_part, max_part: which columns of a fused tensor are meant.
        torch_shape, max_shape, torch_dtype, max_dtype: of the whole tensors.
        elements: how many were compared.
        differing: how many differ in a bit (all NaN being equal unless they shall differ); of tensors of two types,
            in value.
        max_abs: the greatest ``|torch - max|``; infinite beside a NaN or infinity that the other one does not have;
            None without elements.
        max_rel: the greatest of these over ``max(|torch|, 1e-10)``.
        max_ulp: the most numbers of the type from one to the other; of two types, in ulp of the coarser one; None
            for integers.
        max_ulp_of_operand: ``max_abs`` in ulp of ``operand``.
        operand: the largest number in the pair or in the inputs of the same layer that are part of the comparison.
        max_abs_index, max_rel_index, max_ulp_index: where.
        rmse: the root of the mean square of the differences.
        cosine: of the angle between the two, without elements that are not finite; None if one is zero.
        failing: how many elements are not within the tolerance; None without one.
        torch_nan, max_nan, torch_inf, max_inf: how many NaN and infinities there are.
        histogram: how many elements are 0, 1, 2 to 3, 4 to 7, ... ulp apart (of integers: apart); the last one counts
            the infinitely far ones.
    """

    torch: str
    max: str
    step: int
    rule: str
    copied: str | None
    torch_part: str | None
    max_part: str | None
    torch_shape: Index
    max_shape: Index
    torch_dtype: str
    max_dtype: str
    elements: int
    differing: int
    max_abs: float | None
    max_abs_index: Index | None
    max_rel: float | None
    max_rel_index: Index | None
    max_ulp: float | None
    max_ulp_index: Index | None
    max_ulp_of_operand: float | None
    operand: float | None
    rmse: float | None
    cosine: float | None
    failing: int | None
    torch_nan: int
    max_nan: int
    torch_inf: int
    max_inf: int
    histogram: tuple[int, ...]

    @property
    def failing_share(self) -> float | None:
        """The share of elements that are not within the tolerance."""
        return None if self.failing is None else self.failing / max(self.elements, 1)


class UnpairedTensor(msgspec.Struct, frozen=True):
    """A tensor, or a file, that was not compared, and why. ``shape`` and ``dtype`` are None if it could not be read."""

    side: str
    name: str
    shape: Index | None
    dtype: str | None
    reason: str


class TensorComparison(msgspec.Struct, frozen=True):
    """All of it. ``print(comparison)`` shows a text, `to_json` is for programs.

    Attributes:
        torch, max: the two paths.
        rtol, atol, ulp: the tolerance; None for what was not given.
        nan_equal: whether NaN is equal to NaN.
        pairs: in the order of execution.
        order: where that order is from: ``torch``, ``max``, or ``names`` if neither side tells it.
        unpaired: what was not compared.
        skipped: files that are no tensors.
        first_difference: which pair, by its number, is the first with a bit that differs.
        first_failure: the first with an element that is not within the tolerance.
    """

    torch: str
    max: str
    rtol: float | None
    atol: float | None
    ulp: float | None
    nan_equal: bool
    pairs: tuple[TensorPair, ...]
    order: str
    unpaired: tuple[UnpairedTensor, ...]
    skipped: tuple[str, ...]
    first_difference: int | None
    first_failure: int | None

    @property
    def exit_code(self) -> int:
        """1 if an element is not within the tolerance; 3 if not everything was compared, or nothing; else 0."""
        if self.first_failure is not None:
            return 1
        return 3 if self.unpaired or not self.pairs else 0

    def to_json(self) -> str:
        """All of it, as JSON; a number that is not finite is written as null."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        from .dump_text import comparison_text

        return comparison_text(self)


def compare_tensors(
    torch_tensor: str | Path,
    max_tensor: str | Path,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: float | None = None,
    allow_reshape: bool = False,
    nan_differs: bool = False,
    renamings: Mapping[str, str] | None = None,
) -> TensorComparison:
    """Compare the tensors of two files or folders.

    Args:
        torch_tensor: a file (``.max``, ``.npy``, ``.npz``, ``.safetensors``, ``.pt``) or a folder of them, perhaps with
            a folder for each step: the side that differences are relative to.
        max_tensor: the same, the other side.
        rtol: an element fails if ``|torch - max| > atol + rtol * |torch|``; alone, atol is 0.
        atol: in the same formula; alone, rtol is 0.
        ulp: an element fails if there are more numbers of its type from one to the other.
        allow_reshape: whether tensors of different shapes with as many elements are compared, in the order in which
            their elements lie.
        nan_differs: whether a NaN differs from a NaN.
        renamings: parts of paths on the torch side, and what they are called on the other one.

    Raises:
        NotFoundError: one of the paths does not exist.
        GraphError: a tolerance is negative or NaN.
    """
    for name, value in (("rtol", rtol), ("atol", atol), ("ulp", ulp)):
        if value is not None and not value >= 0:
            raise GraphError(f"{name} must be 0 or more, not {value!r}")
    ours, theirs = read_dump(torch_tensor), read_dump(max_tensor)
    aligned = align(ours, theirs, renamings, allow_reshape)
    tolerance = Tolerance(rtol, atol, ulp)
    pairs, failed = _measured(aligned, tolerance, not nan_differs, len(ours.steps) > 1 or len(theirs.steps) > 1)
    return TensorComparison(
        torch=printable(str(torch_tensor)),
        max=printable(str(max_tensor)),
        rtol=rtol,
        atol=atol,
        ulp=ulp,
        nan_equal=not nan_differs,
        pairs=tuple(pairs),
        order="torch" if ours.ordered else "max" if theirs.ordered else "names",
        unpaired=(*failed, *_unpaired(ours, theirs, aligned)),
        skipped=(*ours.skipped, *theirs.skipped),
        first_difference=next((n for n, pair in enumerate(pairs) if pair.differing), None),
        first_failure=next((n for n, pair in enumerate(pairs) if pair.failing), None),
    )


def _unpaired(ours: Dump, theirs: Dump, aligned: Alignment) -> list[UnpairedTensor]:
    found = [
        UnpairedTensor(side, name, None, None, reason)
        for side, dump in (("torch", ours), ("max", theirs))
        for name, reason in dump.problems
    ]
    several = {"torch": len(ours.steps) > 1, "max": len(theirs.steps) > 1}
    for left in aligned.leftovers:
        stored, name = left.tensor.stored, _shown(left.tensor, several[left.side])
        found.append(UnpairedTensor(left.side, name, stored.shape, stored.dtype.name, left.reason))
    return found


def _shown(tensor: DumpedTensor, several_steps: bool) -> str:
    return f"{tensor.step}/{tensor.name}" if several_steps else tensor.name


def _measured(
    aligned: Alignment, tolerance: Tolerance, nan_equal: bool, several_steps: bool
) -> tuple[list[TensorPair], list[UnpairedTensor]]:
    """Every pair, measured one after another so that few tensors are in memory, and those that could not be read."""
    measured: list[tuple[Match, Metrics, Index]] = []
    failed: list[UnpairedTensor] = []
    for match in aligned.matches:
        try:
            torch, other = _part(match.torch, match.torch_part), _part(match.max, match.max_part)
        except (HalfulpError, OSError, ValueError) as error:
            stored, name = match.torch.stored, f"{match.torch.name} vs {match.max.name}"
            failed.append(UnpairedTensor("torch", name, stored.shape, stored.dtype.name, f"cannot be read: {error}"))
            continue
        measured.append((match, measure(torch, other, tolerance, nan_equal), torch.shape))
    operands = _largest_inputs(measured)
    return [_pair(match, found, shape, operands, several_steps) for match, found, shape in measured], failed


def _part(tensor: DumpedTensor, part: Part | None) -> Array:
    array = tensor.stored.read()
    return array if part is None else part.take(array)


_Layer = tuple[int, tuple[str, ...], int]


def _layer(tensor: DumpedTensor) -> tuple[_Layer, str]:
    name = parse_name(tensor.name)
    return (tensor.step, name.path, name.call), name.port


def _largest_inputs(measured: list[tuple[Match, Metrics, Index]]) -> dict[_Layer, float]:
    found: dict[_Layer, float] = defaultdict(float)
    for match, metrics, _ in measured:
        layer, port = _layer(match.torch)
        if port == "input" and is_float(match.torch.stored.dtype):
            found[layer] = max(found[layer], metrics.largest)
    return found


def _pair(
    match: Match, found: Metrics, shape: Index, operands: Mapping[_Layer, float], several_steps: bool
) -> TensorPair:
    ours, theirs = match.torch.stored, match.max.stored
    operand = in_ulp = None
    if is_float(ours.dtype) and is_float(theirs.dtype) and found.absolute.value is not None:
        layer, port = _layer(match.torch)
        operand = max(found.largest, operands.get(layer, 0.0) if port == "output" else 0.0)
        in_ulp = found.absolute.value / float(spacing(operand, coarser_type(ours.dtype, theirs.dtype)))
    return TensorPair(
        torch=_shown(match.torch, several_steps),
        max=_shown(match.max, several_steps),
        step=match.torch.step,
        rule=match.rule,
        copied=match.copied,
        torch_part=None if match.torch_part is None else str(match.torch_part),
        max_part=None if match.max_part is None else str(match.max_part),
        torch_shape=ours.shape,
        max_shape=theirs.shape,
        torch_dtype=ours.dtype.name,
        max_dtype=theirs.dtype.name,
        elements=found.elements,
        differing=found.differing,
        max_abs=found.absolute.value,
        max_abs_index=_index(found.absolute, shape),
        max_rel=found.relative.value,
        max_rel_index=_index(found.relative, shape),
        max_ulp=found.ulp.value,
        max_ulp_index=_index(found.ulp, shape),
        max_ulp_of_operand=in_ulp,
        operand=operand,
        rmse=found.rmse,
        cosine=found.cosine,
        failing=found.failing,
        torch_nan=found.torch_nan,
        max_nan=found.max_nan,
        torch_inf=found.torch_inf,
        max_inf=found.max_inf,
        histogram=tuple(found.histogram),
    )


def _index(greatest: Greatest, shape: Index) -> Index | None:
    if greatest.value is None:
        return None
    return tuple(int(place) for place in np.unravel_index(greatest.place, shape)) if shape else ()


def worst_first(pairs: tuple[TensorPair, ...], key: str) -> list[TensorPair]:
    """The pairs by one of their numbers, the largest first; those without it, or with NaN, last or first.

    ``key`` is a field of `TensorPair`; ``cosine`` sorts the smallest first.
    """
    sign = 1 if key == "cosine" else -1

    def place(pair: TensorPair) -> tuple[bool, float]:
        value = getattr(pair, key)
        return (value is None, sign * value if value is not None and not math.isnan(value) else 0.0)

    return sorted(pairs, key=place)
