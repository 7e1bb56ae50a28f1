"""Buffers: memory of the caller's that a graph reads and changes."""

from __future__ import annotations

from halfulp.compiler import BufferValue, Graph, GraphError, GraphTypeError, TensorValue
from halfulp.compiler.dialects.graph import LoadOp, StoreOp
from halfulp.compiler.dialects.graph.buffers import tensor_of
from halfulp.compiler.locations import Located

from .promotion import TensorValueLike, as_constant, is_tensor


def buffer_load(buffer: BufferValue) -> TensorValue:
    """What a buffer holds at this place of the program; later changes do not reach the value. ``buffer[...]``.

    Raises:
        NotFoundError: no graph is being built.
        GraphError: the buffer belongs to another graph.
        GraphTypeError: it is no buffer.
    """
    subject = "ops.buffer_load"
    graph = Graph.current(subject)
    return graph.insert(LoadOp(graph.buffer(buffer, subject, "operand 'buffer'").ssa))[0]


def buffer_store(destination: BufferValue, source: TensorValueLike) -> None:
    """Put a tensor in the place of what a buffer holds. ``destination[...] = source``.

    Loads, stores and in-place kernels run in the order of the program, in branches and loops too, and only there.

    Args:
        destination: the buffer.
        source: a tensor of its element type, shape and device; a number or an array becomes a constant.

    Raises:
        NotFoundError: no graph is being built.
        GraphError: the shape or device is another one, or a value belongs to another graph.
        GraphTypeError: the element type is another one, or ``destination`` is no buffer.
    """
    subject = "ops.buffer_store"
    graph = Graph.current(subject)
    with Located():
        buffer = graph.buffer(destination, subject, "operand 'destination'")
        wanted = tensor_of(buffer.type)
        if not is_tensor(source):
            source = as_constant(graph, subject, "source", source, wanted.dtype, ("destination", wanted.device))
        value = graph.operand(source, subject, "operand 'source'")
        if value.type != wanted:
            error = GraphTypeError if value.dtype is not wanted.dtype else GraphError
            raise error(
                f"{subject}: operand 'source' is {value.type}, but operand 'destination' is {wanted}; "
                + ("cast it" if error is GraphTypeError else "reshape, broadcast or rebind it, or move it with .to()")
            )
    graph.insert(StoreOp(value.ssa, buffer.ssa))
