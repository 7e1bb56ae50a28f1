"""A matrix of modes, a bisection and a classification as tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .bisect import Bisection
    from .classify import Classification
    from .comparison import OutputResult
    from .fastmath import FastmathMatrix, ModeResult

HEADINGS = ("mode", "differ", "max ulp", "of operand", "rms error", "max error", "verdict", "time")


def matrix_text(matrix: FastmathMatrix) -> str:
    """A table for each output, one line for each mode, and above it what was compared with what."""
    lines = [
        f"graph {matrix.graph}, inputs {matrix.inputs}",
        f"baseline: {matrix.baseline}; errors are distances from {matrix.reference}",
    ]
    worked = [result for result in matrix.modes if result.problem is None]
    for index in range(len(worked[0].outputs) if worked else 0):
        first = worked[0].outputs[index]
        shape = f"[{', '.join(map(str, first.shape))}]"
        lines += ["", f"{first.output}: {first.dtype} {shape}, {first.elements} elements"]
        lines += table([HEADINGS, *(matrix_row(result, result.outputs[index]) for result in worked)])
    lines += [""] if worked else []
    lines += [f"the same bits: {', '.join(group)}" for group in same_bits_groups(worked) if len(group) > 1]
    lines += [f"{r.mode}: not possible: {r.problem}" for r in matrix.modes if r.problem is not None]
    return "\n".join(lines).rstrip("\n")


def same_bits_groups(results: Sequence[ModeResult]) -> list[list[str]]:
    """The modes in groups that gave the same bits in all outputs."""
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(result.same_as or result.mode, []).append(result.mode)
    return list(groups.values())


def matrix_row(result: ModeResult, output: OutputResult) -> tuple[str, ...]:
    """One mode and one output under the `HEADINGS`."""
    return (
        result.mode,
        str(output.differing),
        number(output.max_ulp),
        number(output.max_ulp_of_operand),
        number(output.error),
        number(output.max_error),
        output.verdict,
        f"{result.time_ratio:.2f}" if result.time_ratio else "-",
    )


def number(value: float | None) -> str:
    """Three digits; whole numbers below a million as they are; ``-`` for nothing."""
    if value is None:
        return "-"
    return str(int(value)) if value == value and abs(value) < 1e6 and value == int(value) else f"{value:.3g}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def bisection_text(found: Bisection) -> str:
    """What was asked, the ops, and whether they act together."""
    head = f"graph {found.graph}, inputs {found.inputs}\n{found.mode} against {found.baseline}: "
    share = f"{found.differing} of {found.elements} elements differ"
    if not found.sites:
        return head + (f"{share}; {found.note}" if found.note else "no bit differs, so no op makes a difference")
    count = "1 op causes it" if len(found.sites) == 1 else f"these {len(found.sites)} ops cause it"
    lines = [f"{head}{share}; {count}"]
    for site in found.sites:
        place = site.location or "no source line is known"
        lines.append(f"  op {site.number}, {site.op}: {place}")
        lines += [f"    {site.source}"] if site.source else []
        lines.append(f"    {site.effect}; alone it changes {site.alone} elements")
    if len(found.sites) > 1:
        lines.append(
            "They interact: some values come about only when several of them change together."
            if found.interacting
            else "They do not interact: each value that differs is explained by one of them alone."
        )
    return "\n".join([*lines, f"({found.runs} runs)"])


def classification_text(found: Classification) -> str:
    """A line for each reading, and examples of what it explains."""
    if not found.differing:
        return f"all {found.elements} elements have our bits"
    lines = [f"{found.differing} of {found.elements} elements differ; {found.explained} of them are explained"]
    for each in found.explanations:
        whole = ", as it does every element" if each.reading in found.whole else ""
        lines.append(f"  {each.reading}: {each.assigned}{whole}")
        lines += [f"    (so does {', '.join(each.also)})"] if each.also else []
        lines += [f"    at {list(e.index)}: {e.theirs!r}, ours {e.ours!r}" for e in each.examples]
    return "\n".join(lines)
