"""The largest values seen so far, kept sorted."""

from __future__ import annotations

from typing import Any

from halfulp.compiler import DType, GraphTypeError

from .errors import fault
from .tracing import Array, as_array, plain


def top_merge(top_values: Any, top_indices: Any, values: Any, indices: Any) -> tuple[Array, Array]:
    """The best of what was kept and of what comes new, sorted by (value descending, index ascending).

    The order is total, so it does not matter in which order parts are merged. A NaN is never among the best. Places
    that nothing fills keep what ``top_values`` and ``top_indices`` have there; start with -inf and an index past all
    others.

    Args:
        top_values, top_indices: what was kept, float32 and int32 of shape [k].
        values, indices: what comes new, of shape [n].

    Returns:
        Values and indices of shape [k].

    Raises:
        GraphError: blocks of other shapes.
        GraphTypeError: blocks of other types.
    """
    subject = "pl.top_merge"
    kept = [plain(as_array(block, subject)) for block in (top_values, top_indices)]
    new = [plain(as_array(block, subject)) for block in (values, indices)]
    for what, (number, index) in (("what was kept", kept), ("what comes new", new)):
        if (number.dtype, index.dtype) != (DType.float32, DType.int32):
            raise fault(
                f"{subject} takes values of float32 and indices of int32, but {what} has {number.dtype} and "
                f"{index.dtype}; convert with .astype(...)",
                GraphTypeError,
            )
        if number.ndim != 1 or number.shape != index.shape or not number.size:
            raise fault(
                f"{subject} takes blocks of one axis, as many values as indices and at least one, but {what} has "
                f"shapes {list(number.shape)} and {list(index.shape)}"
            )
    merged = kept[0].value.builder.top_merge(*(block.value for block in (*kept, *new)))
    return tuple(Array(value, block.dtype, block.shape) for value, block in zip(merged, kept, strict=True))  # type: ignore[return-value]
