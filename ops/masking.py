"""Elements chosen by what they are: nonzero and masked_scatter, whose sizes only the data decides."""

from __future__ import annotations

import numpy as np

from halfulp.compiler import Dim, DType, Graph, GraphError, GraphTypeError, TensorValue
from halfulp.compiler.dims import DimLike
from halfulp.compiler.locations import Located
from halfulp.compiler.types import shape_text

from .comparison import not_equal
from .contract import ALL, Array, Example, promise_examples
from .defining import positions_of
from .joining import stack
from .promotion import TensorValueLike, as_tensor
from .reshaping import reshape, unsqueeze
from .samples import anything, moderate
from .scattering import scatter_nd
from .selection import slice_tensor
from .sizes import dim_value


def nonzero(x: TensorValueLike, out_dim: DimLike) -> TensorValue:
    """The indices of the elements that are not zero, in row-major order. NaN is not zero.

    Args:
        x: any element type, at least one axis.
        out_dim: the name of how many there are: a new symbol, or a size that they must turn out to have.

    Returns:
        int64, ``[out_dim, rank of x]``.

    Raises:
        GraphError: ``x`` is a scalar.
        GraphTypeError: ``x`` is no tensor, or ``out_dim`` no size.
    """
    subject = "ops.nonzero"
    graph = Graph.current(subject)
    with Located():
        value = as_tensor(graph, subject, "x", x)
        if value.rank == 0:
            raise GraphError(f"{subject}: x is a scalar and has no indices; reshape it to [1]")
        count = Dim(out_dim)
    positions = positions_of(subject, _flat_mask(value), count)
    indices: list[TensorValue] = []
    for size in reversed(value.shape):
        extent = dim_value(graph, size, DType.int64, value.device)
        indices.insert(0, positions % extent)
        positions = positions // extent
    return stack(indices, axis=1)


def _flat_mask(value: TensorValue) -> TensorValue:
    mask = value if value.dtype is DType.bool else not_equal(value, 0)
    return reshape(mask, [value.type.num_elements])


def masked_scatter(
    x: TensorValueLike, mask: TensorValueLike, updates: TensorValueLike, out_dim: DimLike
) -> TensorValue:
    """``x`` with the elements where ``mask`` is true replaced by the first of ``updates``, in row-major order.

    Args:
        x: any element type and shape.
        mask: bool, the shape of ``x``.
        updates: the element type of ``x``, any shape, at least as many elements as are replaced.
        out_dim: the name of how many are replaced: a new symbol, or a size that they must turn out to have.

    Raises:
        GraphError: ``mask`` has another shape.
        GraphTypeError: an operand is no tensor, ``mask`` is not bool, or ``updates`` of another element type.
    """
    subject = "ops.masked_scatter"
    graph = Graph.current(subject)
    with Located():
        value, chosen, new = (
            as_tensor(graph, subject, name, given) for name, given in (("x", x), ("mask", mask), ("updates", updates))
        )
        if chosen.dtype is not DType.bool:
            raise GraphTypeError(
                f"{subject}: operand 'mask' must be bool, not {chosen.dtype}; compare it with something"
            )
        if chosen.shape != value.shape:
            raise GraphError(
                f"{subject}: mask has shape {shape_text(chosen.shape)}, but x has {shape_text(value.shape)}; "
                "broadcast or rebind it"
            )
        if new.dtype is not value.dtype:
            raise GraphTypeError(f"{subject}: updates are {new.dtype}, but x is {value.dtype}; cast one of them")
        count = Dim(out_dim)
    places = positions_of(subject, reshape(chosen, [chosen.type.num_elements]), count)
    first = slice_tensor(reshape(new, [new.type.num_elements]), [(slice(0, count), count)])
    flat = reshape(value, [value.type.num_elements])
    return reshape(scatter_nd(flat, first, unsqueeze(places, 1)), value.shape)


# -- contracts


def _reference_masked(x: Array, mask: Array, updates: Array, out_dim: str) -> Array:
    result = x.copy()
    chosen = mask.astype(bool)
    result[chosen] = updates.ravel()[: chosen.sum()]
    return result


def _nonzero_examples(dtype: DType) -> list[Example]:
    shapes = ((3, 70), (9,), (2, 0, 3)) if dtype is DType.bool else ((3, 70),)
    arrays = [anything(dtype, shape) for shape in shapes]
    for array in arrays:
        array[::2] = 0
    return [Example((array,), {"out_dim": f"found_{dtype.ir_name}_{i}"}) for i, array in enumerate(arrays)]


def _masked_examples(dtype: DType) -> list[Example]:
    operands = (anything(dtype, (3, 70)), moderate(DType.bool, (3, 70)), anything(dtype, (300,), 1))
    return [Example(operands, {"out_dim": f"replaced_{dtype.ir_name}"})]


promise_examples(nonzero, ALL, lambda x, out_dim: np.argwhere(x), _nonzero_examples)
promise_examples(masked_scatter, ALL, _reference_masked, _masked_examples)
