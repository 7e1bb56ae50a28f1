"""Large tensors a piece at a time, so that a mapped file never lies in memory as a whole."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from .ulps import Array

CHUNK = 1 << 16
"""Elements of a piece: few enough for a dozen arrays of so many float64 to stay in a cache."""

SAMPLE = 1 << 10
"""Elements that tell tensors apart."""


def flat_chunks(*arrays: Array) -> Iterator[Array]:
    """The pieces of one array in C order, in native byte order; memory of mapped pieces is given back."""
    for array in arrays:
        for start in range(0, array.size, CHUNK):
            yield flat_piece(array, start, CHUNK)
            release(array)


def flat_piece(array: Array, start: int, count: int) -> Array:
    """Elements ``start`` to ``start + count`` in C order."""
    if array.flags.c_contiguous:
        piece = array.reshape(-1)[start : start + count]
    else:
        piece = array.flat[start : start + count]  # reshape would copy all of it
    return piece if piece.dtype.isnative else piece.astype(piece.dtype.newbyteorder("="))


def release(array: Array) -> None:
    """Tell the system that the pages of a mapped file are not needed for now."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)


def sample(array: Array) -> Array:
    """Up to `SAMPLE` elements, evenly spaced in C order, as float64."""
    if array.size <= SAMPLE:
        return np.asarray(array.reshape(-1).astype(np.float64))
    step = array.size // SAMPLE
    if array.flags.c_contiguous:
        picked = array.reshape(-1)[: step * SAMPLE : step]
    else:
        picked = array.flat[: step * SAMPLE : step]
    found = np.asarray(picked.astype(np.float64))
    release(array)
    return found


def relative_distance(one: Array, other: Array) -> float:
    """How far apart two samples are, relative to the larger norm; infinite where that means nothing."""
    with np.errstate(all="ignore"):
        norm = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
        distance = float(np.linalg.norm(one - other)) / norm if norm else float("inf")
    return distance if np.isfinite(distance) else float("inf")
