"""`debug_print`: programs show values, one after another in the order of the grid."""

from __future__ import annotations

from typing import Any

from .errors import fault
from .tracing import as_array, current_trace, plain


def debug_print(text: str, *values: Any) -> None:
    """Prints ``text`` with values of the kernel in the places of its ``{}``, once for each program that comes here.

    Programs print in the order of the grid: a kernel that prints runs one program after another. What they print is
    written to ``sys.stdout`` in one piece when the call, or the execution of the graph, is over; nothing of it if that
    fails. Values look as numpy shows them. No bit of any result changes.

    Raises:
        GraphError: the text does not have a ``{}`` for each value.
    """
    arrays = [plain(as_array(value, "pl.debug_print")) for value in values]
    if text.count("{}") != len(arrays):
        raise fault(f"pl.debug_print: the text has {text.count('{}')} of {{}} for {len(arrays)} values")
    builder = current_trace("pl.debug_print").builder
    builder.print(text, [array.value for array in arrays], [array.dtype for array in arrays])
