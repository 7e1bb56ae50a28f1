"""A comparison of tensors as text: a block for each pair, what has no partner, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .shape_matching import shape_tuple

if TYPE_CHECKING:
    from .dump_comparison import Index, TensorComparison, TensorPair, UnpairedTensor


def comparison_text(found: TensorComparison, pairs: Sequence[TensorPair] | None = None) -> str:
    """All of it; ``pairs`` are those of ``found`` in another order."""
    marks = {}
    if found.first_difference is not None:
        marks[id(found.pairs[found.first_difference])] = "first with a bit that differs"
    if found.first_failure is not None:
        first = id(found.pairs[found.first_failure])
        marks[first] = ", ".join(filter(None, [marks.get(first), "first that is not within tolerance"]))
    lines = [f"Found {len(found.pairs)} matching tensor pair(s)"]
    for pair in found.pairs if pairs is None else pairs:
        lines += ["", *pair_lines(pair, marks.get(id(pair)))]
    if found.unpaired:
        lines += ["", f"Not compared: {len(found.unpaired)}"]
        lines += [f"  {unpaired_line(left)}" for left in found.unpaired]
    if found.skipped:
        lines += ["", f"Not tensors: {', '.join(found.skipped)}"]
    return "\n".join([*lines, "", *summary_lines(found)])


def pair_lines(pair: TensorPair, mark: str | None = None) -> list[str]:
    """The block of one pair."""
    head = f"Tensor: {pair_text(pair)}"
    lines = [head, f"  <-- {mark}"] if mark else [head]
    if pair.rule == "copy":
        lines.append(f"  Paired as a copy of {pair.copied}")
    elif pair.rule != "name":
        lines.append(f"  Paired by: {pair.rule}")
    lines.append(f"  Shapes: torch{shape_tuple(pair.torch_shape)}, max{shape_tuple(pair.max_shape)}")
    if pair.torch_dtype != pair.max_dtype:
        lines.append(f"  Dtypes differ: torch {pair.torch_dtype}, max {pair.max_dtype}")
    if not pair.elements:
        return [*lines, "  No elements"]
    lines += [
        f"  Greatest absolute difference: {_number(pair.max_abs)} at index {_at(pair.max_abs_index)}",
        f"  Greatest relative difference: {_number(pair.max_rel)} at index {_at(pair.max_rel_index)}",
    ]
    if pair.max_ulp is not None:
        lines += [
            f"  Greatest difference in ulp: {_number(pair.max_ulp)} at index {_at(pair.max_ulp_index)}, "
            f"{_number(pair.max_ulp_of_operand)} ulp of the largest operand {_number(pair.operand)}"
        ]
    cosine = "-" if pair.cosine is None else f"{pair.cosine:.9g}"
    differing = f"  Bits differ: {pair.differing} of {pair.elements} elements"
    lines.append(f"{differing}; RMSE {_number(pair.rmse)}, cosine {cosine}")
    if pair.torch_nan or pair.max_nan or pair.torch_inf or pair.max_inf:
        ours, theirs = f"{pair.torch_nan} NaN, {pair.torch_inf} inf", f"{pair.max_nan} NaN, {pair.max_inf} inf"
        lines.append(f"  Not finite: torch {ours}; max {theirs}")
    if pair.failing is not None:
        share = 100 * (pair.failing_share or 0.0)
        lines.append(f"  Mismatched elements: {pair.failing} / {pair.elements} ({share:.3g}%)")
    return lines


def side_text(name: str, part: str | None) -> str:
    """A name, and which part of the tensor is meant."""
    return name if part is None else f"{name} ({part})"


def pair_text(pair: TensorPair) -> str:
    """The two names."""
    return f"{side_text(pair.torch, pair.torch_part)} vs {side_text(pair.max, pair.max_part)}"


def unpaired_line(left: UnpairedTensor) -> str:
    """A tensor without a partner."""
    shape = "" if left.shape is None else f" {left.dtype}{shape_tuple(left.shape)}"
    return f"{left.side}: {left.name}{shape}: {left.reason}"


def summary_lines(found: TensorComparison) -> list[str]:
    """Where the two begin to differ, and whether all is well."""
    lines = []
    order = (
        " (neither side tells the order of execution; it is guessed from the names)" if found.order == "names" else ""
    )
    if found.first_difference is None:
        lines.append("No bit differs" if found.pairs else "Nothing was compared")
    else:
        pair = found.pairs[found.first_difference]
        lines.append(f"First difference: {pair_text(pair)}: {pair.differing} of {pair.elements} elements{order}")
    if found.first_failure is not None:
        pair = found.pairs[found.first_failure]
        lines.append(f"First beyond tolerance: {pair_text(pair)}: {pair.failing} of {pair.elements} elements")
    return [*lines, verdict_line(found)]


def verdict_line(found: TensorComparison) -> str:
    """The last line: what the exit code says."""
    given = [f"{name} {value:g}" for name in ("rtol", "atol", "ulp") if (value := getattr(found, name)) is not None]
    compared = f"{len(found.pairs)} pairs compared, {len(found.unpaired)} tensors not compared"
    if not given:
        return f"{compared}; no tolerance given"
    failing = sum(1 for pair in found.pairs if pair.failing)
    what = f"{failing} pairs are not within {', '.join(given)}" if failing else f"all within {', '.join(given)}"
    return f"{compared}; {what}" if found.pairs else compared


def _number(value: float | None) -> str:
    """Six digits; whole numbers as they are while they are short."""
    if value is None:
        return "-"
    return str(int(value)) if abs(value) < 1e9 and value == int(value) else f"{value:.6g}"


def _at(index: Index | None) -> str:
    return "-" if index is None else shape_tuple(index)
