"""The package's loggers: children of ``halfulp``, silent until the program adds a handler of its own."""

from __future__ import annotations

import logging

_root = logging.getLogger("halfulp")
# Without a handler Python would print warnings to stderr.
_root.addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """The logger ``halfulp.<name>``."""
    return _root.getChild(name)
