"""Tile kernels for the differential tests: written by hand or by `random_kernels`, with data to run them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerType,
    ModuleOp,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Region

from halfulp.compiler.dialects.tile import ORDERED, RefType
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES: dict[Attribute, Any] = {
    f32: np.float32,
    f64: np.float64,
    i8: np.int8,
    i16: np.int16,
    i32: np.int32,
    i64: np.int64,
    i1: np.bool_,
    f16: np.float16,
    bf16: bfloat16,
}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 5e-324, 3.4e38, -1e308, 1.0, 0.5, 2.0**31, -(2.0**63))


def build(
    arrays: Sequence[Array],
    grid: Sequence[int],
    body: Callable[[KernelBuilder], None],
    *,
    axes: Sequence[str] | None = None,
    static: bool = False,
) -> ModuleOp:
    """A module whose entry launches one kernel @k over ``grid`` on references to ``arrays``."""
    elements = {np.dtype(dtype): element for element, dtype in DTYPES.items()}
    types = [RefType([n if static else DYNAMIC_INDEX for n in a.shape], elements[a.dtype]) for a in arrays]
    module, block = ModuleOp([]), Block(arg_types=types)
    function = FuncOp("main", (types, []), Region(block))
    entry = EntryBuilder(module, function)
    arguments = [Value(entry, argument) for argument in block.args]
    entry.launch("k", arguments, [entry.index(size) for size in grid], body, axes=axes or [ORDERED] * len(grid))
    entry.finish()
    module.body.block.add_op(function)
    module.verify()
    return module


def random_array(rng: np.random.Generator, shape: Sequence[int], element: Attribute) -> Array:
    """Small numbers, and some special ones."""
    dtype = DTYPES[element]
    if element == i1:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if isinstance(element, IntegerType):
        limits = np.iinfo(dtype)
        small = rng.integers(-9, 10, shape)
        extreme = rng.choice(np.array([limits.min, limits.max, limits.min + 1, 0, -1], np.int64), shape)
        return np.where(rng.random(shape) < 0.1, extreme, small).astype(dtype)
    normal = rng.normal(size=shape) * rng.choice([1.0, 1.0, 1e3, 1e-3], shape)
    normal = np.where(rng.random(shape) < 0.3, np.round(normal), normal)
    with np.errstate(over="ignore"):
        return np.where(rng.random(shape) < 0.08, rng.choice(SPECIAL, shape), normal).astype(dtype)
