"""From a print of tile IR to what the runtime and the interpreter need to show it."""

from __future__ import annotations

from .artifact import PrintedValue, PrintSite
from .dialects import tile
from .dialects.tile.printing import unescaped
from .dialects.tile.types import RefType, shape_of
from .dtypes import DType


def print_site(op: tile.PrintOp | tile.PrintTensorOp) -> PrintSite:
    """What ``op`` shows."""
    if isinstance(op, tile.PrintOp):
        values = zip(op.values, op.element_types, strict=True)
        shown = tuple(PrintedValue(dtype, shape_of(value.type)) for value, dtype in values)
        return PrintSite(unescaped(op.text.data), shown)
    ref = op.ref.type
    assert isinstance(ref, RefType)
    extents = tuple(None if extent == tile.DYNAMIC else extent for extent in ref.extents)
    tensor = PrintedValue(DType.from_ir_name(op.dtype.data), () if op.is_scalar else extents)
    return PrintSite(unescaped(op.label.data), (tensor,), is_tensor=True)
