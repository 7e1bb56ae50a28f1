"""The constant tables of ``tile.lookup`` and ``vector_ext.lookup``."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, f32
from xdsl.utils.exceptions import VerifyException

TableAttr = DenseIntOrFPElementsAttr


def table_of(values: Sequence[float]) -> TableAttr:
    """These numbers, each of which f32 holds, as the attribute of an op."""
    return TableAttr.from_list(TensorType(f32, [len(values)]), values)


def entries_of(table: TableAttr) -> tuple[float, ...]:
    """The numbers in a table that `verify_table` accepts."""
    return tuple(cast("Sequence[float]", table.get_values()))


def verify_table(op_name: str, table: TableAttr) -> None:
    """VerifyException unless the table holds finite f32, as many as a power of two says."""
    t = table.type
    if t.element_type != f32 or len(t.get_shape()) != 1:
        raise VerifyException(f"{op_name}: table must be a row of f32, not {t}")
    size = t.get_shape()[0]
    if size < 1 or size & (size - 1):
        raise VerifyException(f"{op_name}: table must have a power of two as its length, not {size}")
    for entry in entries_of(table):
        if not isfinite(entry):
            raise VerifyException(f"{op_name}: table must hold finite numbers, not {entry}")
