"""What a program is: a kernel with all that a call of it needs, and the numbers it is called on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfulp.ops import pallas as pl

Kernel = Callable[..., None]
Call = Callable[..., Callable[..., Any]]
"""`pl.pallas_call`, but for how the kernel is run."""
Run = Callable[[Call], Any]
"""What to do with such a call; returns the outputs."""


@dataclass(frozen=True)
class Program:
    """One kernel call: ``call(kernel, outputs, **keywords)(*inputs)``."""

    kernel: Kernel
    outputs: Any
    inputs: tuple[npt.NDArray[Any], ...]
    keywords: Mapping[str, Any]

    def __call__(self, call: Call) -> Any:
        return call(self.kernel, self.outputs, **self.keywords)(*self.inputs)


def program(kernel: Kernel, outputs: Any, *inputs: npt.NDArray[Any], **keywords: Any) -> Program:
    return Program(kernel, outputs, inputs, keywords)


def floats(*shape: int) -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(shape, np.float32)


def ints(*shape: int) -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(shape, np.int32)


def chunks(size: int) -> pl.BlockSpec:
    """Consecutive blocks of a vector."""
    return pl.BlockSpec((size,), lambda i: i)


def tiles(height: int, width: int) -> pl.BlockSpec:
    """Program (i, j) sees row i and column j of the blocks of a matrix."""
    return pl.BlockSpec((height, width), lambda i, j: (i, j))


def rows(height: int | None, width: int) -> pl.BlockSpec:
    """Whole rows of a matrix: ``height`` of them, or a vector for None."""
    return pl.BlockSpec((height, width), lambda i: (i, 0))


def generator(seed: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(seed.encode()))


def normal(seed: str, *shape: int) -> npt.NDArray[np.float32]:
    """The normal numbers that the records under this seed were made from."""
    return generator(seed).standard_normal(shape).astype(np.float32)


def integers(seed: str, low: int, high: int, *shape: int) -> npt.NDArray[np.int32]:
    """Likewise, integers from ``low`` up to ``high``, which is left out."""
    return generator(seed).integers(low, high, shape).astype(np.int32)


def normal_bfloat16(seed: str, *shape: int) -> npt.NDArray[Any]:
    """The upper halves of the words of `normal`: cut off, not rounded."""
    words = normal(seed, *shape).view(np.uint32)
    return (words >> 16).astype(np.uint16).view(ml_dtypes.bfloat16)


def copied(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = source[...]


def doubled(source: pl.Ref, target: pl.Ref) -> None:
    target[...] = source[...] + source[...]
