"""`debug_print`: programs leave what they print in a log, which the caller's side writes out when the call is over.

A record of the log is the number of the print in the kernel, then the bits of each element, one 64-bit word each. So
the same records come from interpreted and from compiled kernels, and programs print in the order of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IndexType, i64

from halfulp.compiler import DType
from halfulp.compiler.dialects.tile import RefType
from halfulp.compiler.tile_builder import Value

from .errors import fault
from .shaping import reshaped
from .tracing import Array, as_array, cast, current_trace, plain

LOG_WORDS = 1 << 18
"""2 MiB of records; what does not fit is counted and not printed."""


@dataclass(frozen=True)
class PrintSite:
    """One `debug_print` of a kernel: its text, and type and shape of each value."""

    text: str
    values: tuple[tuple[DType, tuple[int, ...]], ...]

    @property
    def words(self) -> int:
        """The length of its records."""
        return 1 + sum(prod(shape) for _, shape in self.values)


def debug_print(text: str, *values: Any) -> None:
    """Prints ``text`` with values of the kernel in the places of its ``{}``, once for each program that comes here.

    Programs print in the order of the grid, and when the call is over. A kernel that prints runs one program after
    another. Inside a graph there is nobody to print; ``ops`` has what shows a tensor.

    Raises:
        GraphError: the text does not have a ``{}`` for each value.
    """
    arrays = [plain(as_array(value, "pl.debug_print")) for value in values]
    if text.count("{}") != len(arrays):
        raise fault(f"pl.debug_print: the text has {text.count('{}')} of {{}} for {len(arrays)} values")
    trace = current_trace("pl.debug_print")
    log = trace.log()
    site = PrintSite(text, tuple((array.dtype, array.shape) for array in arrays))
    trace.prints.append(site)
    k = trace.builder
    # word 0 of the log is the number of words used
    used = k.cast(k.read(log, 0), IndexType())
    k.write(k.constant(len(trace.prints) - 1, i64), log, used + 1)
    place = used + 2
    for array in arrays:
        words = _words(array)
        count = prod(array.shape)
        if count:
            k.store(words, k.window(log, [place], [count], indexing="element"))
        place = place + count
    k.write(k.cast(used + site.words, i64), log, 0)


def _words(array: Array) -> Value:
    """The elements as 64-bit words: integers and bools widened, floats as the bits of an f64."""
    k = array.value.builder
    flat = reshaped(array, [max(prod(array.shape), 1)])
    if array.dtype.is_float:
        from xdsl.dialects.arith import BitcastOp

        from halfulp.compiler.dialects.tile.types import with_shape

        wide = cast(flat, DType.float64)
        op = BitcastOp(wide.value.ssa, with_shape(flat.shape, i64))
        k.insert(op)
        return Value(k, op.result)
    return k.cast(flat.value, i64, unsigned_source=array.dtype.kind in ("unsigned", "bool"))


def log_type() -> RefType:
    """The reference to the log."""
    return RefType([LOG_WORDS], i64)


def printed_lines(log: npt.NDArray[np.int64], sites: Sequence[PrintSite]) -> list[str]:
    """The lines that a log holds, and one that says how much did not fit."""
    lines = []
    used = int(log[0])
    at = 1
    while at <= used:
        site = sites[int(log[at])]
        if at + site.words > len(log):
            lines.append(f"... pl.debug_print: {used - at + 1} more words than the log of {LOG_WORDS} has room for")
            break
        at += 1
        shown = []
        for dtype, shape in site.values:
            count = prod(shape)
            shown.append(_text(log[at : at + count], dtype, shape))
            at += count
        lines.append(site.text.format(*shown))
    return lines


def _text(words: npt.NDArray[np.int64], dtype: DType, shape: tuple[int, ...]) -> str:
    numbers = words.view(np.float64) if dtype.is_float else words
    with np.errstate(all="ignore"):
        return str(numbers.astype(dtype.to_numpy()).reshape(shape))
