"""The operations that graphs are built from: ``from halfulp import ops``.

Importing this package registers the library's kernels, so that a graph can name them.
"""

from __future__ import annotations

from . import logprobs
from .custom import custom

__all__ = ["custom", "logprobs"]
