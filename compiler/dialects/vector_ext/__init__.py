"""The ``vector_ext`` dialect: what upstream's ``arith`` and ``vector`` lack on 1-D vectors at the loops stage.

Upstream's comparisons always give one ``i1``, its ``select`` takes one ``i1``, its casts take scalars only, and
there is no gather. The ops here work on scalars and 1-D vectors alike, so a lowering need not tell the two apart.
Each is total: casts saturate, and a masked-off lane touches no memory.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .cast import CastKind, CastKindAttr, CastOp
from .compare import CmpFOp, CmpIOp, SelectOp
from .lanes import BitmaskOp, GatherOp, MemoryAtOp, PrefetchOp, ScatterOp
from .lookup import LookupOp
from .scale import ScaleOp
from .types import bit_width, element_of, lanes_of, like

__all__ = [
    "BitmaskOp",
    "CastKind",
    "CastKindAttr",
    "CastOp",
    "CmpFOp",
    "CmpIOp",
    "GatherOp",
    "LookupOp",
    "MemoryAtOp",
    "PrefetchOp",
    "ScaleOp",
    "ScatterOp",
    "SelectOp",
    "VectorExt",
    "bit_width",
    "element_of",
    "lanes_of",
    "like",
]

VectorExt = Dialect(
    "vector_ext",
    [CmpFOp, CmpIOp, SelectOp, CastOp, GatherOp, ScatterOp, MemoryAtOp, PrefetchOp, BitmaskOp, ScaleOp, LookupOp],
    [CastKindAttr],
)
