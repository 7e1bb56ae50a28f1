"""PTX's scalar types and the numpy types that hold them.

A register holds raw bits: an unsigned array of its width, or bools for predicates. Operations view them as they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from ml_dtypes import bfloat16

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = "np.dtype[Any]"

BOOL = np.dtype(np.bool_)
U8, U16, U32, U64 = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
S64 = np.dtype(np.int64)
F16, BF16 = np.dtype(np.float16), np.dtype(bfloat16)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
RAW: dict[int, DType] = {1: BOOL, 8: U8, 16: U16, 32: U32, 64: U64}
"""Bits -> the type of a register."""


@dataclass(frozen=True)
class ScalarType:
    """A type as in ``.s32``: ``kind`` is u, s, b, f or pred; ``dtype`` is what its bits mean."""

    name: str
    kind: str
    bits: int
    dtype: DType

    @property
    def raw(self) -> DType:
        """The type of a register of this width."""
        return RAW[self.bits]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"


def _all_types() -> dict[str, ScalarType]:
    types = {"pred": ScalarType("pred", "pred", 1, BOOL)}
    for bits in (8, 16, 32, 64):
        for kind in "usb":
            dtype = np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}")
            types[f"{kind}{bits}"] = ScalarType(f"{kind}{bits}", kind, bits, dtype)
    for name, dtype in {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}.items():
        types[name] = ScalarType(name, "f", 8 * dtype.itemsize, dtype)
    return types


TYPES = _all_types()
PRED, B16, B32, B64 = TYPES["pred"], TYPES["b16"], TYPES["b32"], TYPES["b64"]

NAN_BITS: dict[DType, int] = {F16: 0x7FFF, BF16: 0x7FFF, F32: 0x7FFFFFFF, F64: 0x7FF8_0000_0000_0000}
"""The NaN that an operation returns. PTX fixes it for f32, f16 and bf16; for f64 it keeps a payload, we do not."""


def as_raw(value: Array) -> Array:
    """A float, integer or bool array as register bits."""
    return value if value.dtype == BOOL else value.view(RAW[8 * value.dtype.itemsize])
