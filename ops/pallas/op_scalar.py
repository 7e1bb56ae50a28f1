"""Integers that a registered function reads when its op runs, before a kernel is launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from halfulp.compiler import GraphTypeError
from halfulp.compiler.tile_builder import Value

from .errors import fault


class OpScalar:
    """An integer that is read when the op runs: a size of a grid, an index, or what the op computes a size from."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def _of(self, other: Any, result: Callable[[Value, Value | int], Value]) -> OpScalar:
        if not isinstance(other, int | np.integer | OpScalar) or isinstance(other, bool):
            return NotImplemented  # type: ignore[no-any-return]
        return OpScalar(result(self.value, other.value if isinstance(other, OpScalar) else int(other)))

    def __add__(self, other: Any) -> OpScalar:
        return self._of(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> OpScalar:
        return self._of(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> OpScalar:
        return self._of(other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> OpScalar:
        return self._of(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> OpScalar:
        return self._of(other, lambda a, b: a % b)

    __radd__ = __add__
    __rmul__ = __mul__

    def __bool__(self) -> bool:
        raise fault("an integer of the op has no value while the graph is built; decide in a kernel", GraphTypeError)
