"""The tile dialect: grid kernels on blocks of values (docs/design.md, "The tile dialect").

Scalars are builtin types, blocks builtin tensors of static shape and rank >= 1, memory ``!tile.ref``. Elementwise
work is upstream ``arith``/``math`` on blocks, control flow ``scf`` on scalars.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX as DYNAMIC
from xdsl.ir import Dialect

from .compute import (
    COMPUTE_OPS,
    CastOp,
    CmpFOp,
    CmpIOp,
    DotOp,
    IntDivOp,
    ReduceOp,
    SelectOp,
    ShiftOp,
    TopMergeOp,
)
from .kernel import (
    DEVICE,
    KERNEL_OPS,
    ORDERED,
    PARALLEL,
    BufferOp,
    CheckOp,
    KernelOp,
    LaunchOp,
    ReturnOp,
    SetDimOp,
    TransferOp,
)
from .lookup import LookupOp
from .memory import MEMORY_OPS, AllocOp, DimOp, FlattenOp, LoadOp, ReinterpretOp, StoreOp, WindowOp
from .printing import PRINTING_OPS, PrintOp, PrintTensorOp
from .scale import ScaleOp
from .shape import (
    SHAPE_OPS,
    BroadcastOp,
    ConcatOp,
    ExtractOp,
    IotaOp,
    ReshapeOp,
    SliceOp,
    SplatOp,
    TransposeOp,
)
from .types import RefType

Tile = Dialect(
    "tile", [*KERNEL_OPS, *MEMORY_OPS, *SHAPE_OPS, *COMPUTE_OPS, LookupOp, ScaleOp, *PRINTING_OPS], [RefType]
)

__all__ = [
    "DEVICE",
    "DYNAMIC",
    "ORDERED",
    "PARALLEL",
    "AllocOp",
    "BroadcastOp",
    "BufferOp",
    "CastOp",
    "CheckOp",
    "CmpFOp",
    "CmpIOp",
    "ConcatOp",
    "DimOp",
    "DotOp",
    "ExtractOp",
    "FlattenOp",
    "IntDivOp",
    "IotaOp",
    "KernelOp",
    "LaunchOp",
    "LoadOp",
    "LookupOp",
    "PrintOp",
    "PrintTensorOp",
    "RefType",
    "ReduceOp",
    "ReinterpretOp",
    "ReshapeOp",
    "ReturnOp",
    "ScaleOp",
    "SelectOp",
    "SetDimOp",
    "ShiftOp",
    "SliceOp",
    "SplatOp",
    "StoreOp",
    "Tile",
    "TopMergeOp",
    "TransferOp",
    "TransposeOp",
    "WindowOp",
]
