"""Names of kernels as PTX has them: letters, digits and underscores, and never the name of an instruction."""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIX = "kernel_"
_OTHER = re.compile(r"[^A-Za-z0-9_]")


def symbols_of(names: Iterable[str]) -> dict[str, str]:
    """A symbol for each name, no two alike: ``softmax.0`` is ``kernel_softmax_0``."""
    symbols: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = PREFIX + _OTHER.sub("_", name)
        number, symbol = 1, plain
        while symbol in taken:
            number += 1
            symbol = f"{plain}_{number}"
        taken.add(symbol)
        symbols[name] = symbol
    return symbols
