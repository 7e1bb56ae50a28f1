"""`halfulp compare-tensors`: what two programs computed on their way, tensor by tensor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .faults import one_line_errors, writing

if TYPE_CHECKING:
    from ..debug import TensorComparison

SORT_KEYS = {
    "abs": "max_abs", "rel": "max_rel", "ulp": "max_ulp", "rmse": "rmse", "cosine": "cosine", "failing": "failing",
    "differing": "differing",
}  # fmt: skip


@click.command(
    "compare-tensors", short_help="Tensors of two programs, in files or folders: what differs, from where on."
)
@click.option(
    "--torch-tensor", "torch", metavar="PATH", required=True, help="A file or folder: what is taken as right."
)
@click.option(
    "--max-tensor", "other", metavar="PATH", required=True, help="A file or folder: what is compared with it."
)
@click.option("--rtol", type=float, help="Fail where |torch - max| > atol + rtol * |torch|. Alone, atol is 0.")
@click.option("--atol", type=float, help="In the same formula. Alone, rtol is 0.")
@click.option("--ulp", type=float, help="Fail where more than so many numbers of the type lie between the two.")
@click.option("--allow-reshape", is_flag=True, help="Compare tensors of different shapes with as many elements, too.")
@click.option("--nan-differs", is_flag=True, help="A NaN differs from a NaN.")
@click.option("--map", "renamings", metavar="TORCH=MAX", multiple=True, help="What a part of a path is called there.")
@click.option(
    "--sort",
    type=click.Choice([*SORT_KEYS, "name"]),
    is_flag=False,
    flag_value="abs",
    help="List the worst first, by the greatest absolute difference or another number, not in the order of execution.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--html", metavar="FILE", help="Write a page with a heat map and histograms, all in one file.")
@click.pass_context
def command(
    context: click.Context,
    torch: str,
    other: str,
    rtol: float | None,
    atol: float | None,
    ulp: float | None,
    allow_reshape: bool,
    nan_differs: bool,
    renamings: tuple[str, ...],
    sort: str | None,
    as_json: bool,
    html: str | None,
) -> None:
    """Pair the tensors of two files or folders (.max, .npy, .npz, .safetensors, .pt) and compare each pair.

    Without a tolerance this only measures. Exit codes: 0 if everything was compared and is within the tolerance; 1 if
    something is not; 2 for a mistake on the command line; 3 if nothing, or not everything, could be compared.
    """
    _check_command_line(torch, other, {"--rtol": rtol, "--atol": atol, "--ulp": ulp})
    with one_line_errors():
        from ..debug import compare_tensors

        found = compare_tensors(
            torch,
            other,
            rtol=rtol,
            atol=atol,
            ulp=ulp,
            allow_reshape=allow_reshape,
            nan_differs=nan_differs,
            renamings=_renamings(renamings),
        )
    if html:
        from ..debug.dump_page import page

        text = page(found)
        with writing(html):
            Path(html).write_text(text, encoding="utf-8")
    _show(found, sort, as_json)
    context.exit(found.exit_code)


def _check_command_line(torch: str, other: str, tolerances: dict[str, float | None]) -> None:
    for option, path in (("--torch-tensor", torch), ("--max-tensor", other)):
        if not Path(path).exists():
            raise click.UsageError(f"{option}: there is no file or folder '{path}'")
    for option, value in tolerances.items():
        if value is not None and not value >= 0:
            raise click.UsageError(f"{option} must be 0 or more, not {value}")


def _renamings(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        old, sign, new = text.partition("=")
        if not old or not sign:
            raise click.UsageError(f"--map must be TORCH=MAX, such as model.h=decoder.layers, not '{text}'")
        found[old] = new
    return found


def _show(found: TensorComparison, sort: str | None, as_json: bool) -> None:
    from ..debug.dump_comparison import worst_first
    from ..debug.dump_text import comparison_text

    if as_json:
        click.echo(found.to_json())
    elif sort == "name":
        click.echo(comparison_text(found, sorted(found.pairs, key=lambda pair: pair.torch)))
    elif sort:
        click.echo(comparison_text(found, worst_first(found.pairs, SORT_KEYS[sort])))
    else:
        click.echo(str(found))
