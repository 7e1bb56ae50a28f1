"""`call`: a graph as a part of another one. Its ops are built anew at the place of the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Block, Operation, Region, SSAValue

from halfulp.compiler import (
    BufferType,
    BufferValue,
    Dim,
    Graph,
    GraphError,
    GraphTypeError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.control_flow import build_cond, build_while
from halfulp.compiler.dialects.graph import (
    ApplyOp,
    CondOp,
    ConstantOp,
    GraphOp,
    InplaceCustomOp,
    KernelCallOp,
    LoadOp,
    OutputOp,
    PrintOp,
    PrintTextOp,
    StoreOp,
    WeightOp,
    WhileOp,
    YieldOp,
)
from halfulp.compiler.dialects.graph.call import RegisteredOp
from halfulp.compiler.dialects.graph.types import tensor_type
from halfulp.compiler.dims import SymbolicDim
from halfulp.compiler.locations import Located
from halfulp.compiler.registry import find_op
from halfulp.compiler.types import shape_text

from .buffers import buffer_load, buffer_store
from .promotion import TensorValueLike, as_tensor


def call(graph: Graph, *args: TensorValueLike | BufferValue) -> list[TensorValue]:
    """What another graph computes from ``args``.

    Args:
        graph: a finished graph. It stays as it is, and may be called any number of times.
        args: a value for each of its inputs, of the same element type, and a buffer for each that is one. Its symbols
            stand for the sizes of the values.

    Returns:
        Its outputs.

    Raises:
        GraphError: the number of values is wrong, or a shape does not fit.
        GraphTypeError: ``graph`` is no graph, or an element type does not fit.
    """
    subject = "ops.call"
    current = Graph.current(subject)
    with Located():
        if not isinstance(graph, Graph):
            raise GraphTypeError(f"{subject}: takes a Graph, not {graph!r}")
        if graph is current:
            raise GraphError(f"{subject}: graph {graph.name!r} calls itself; a graph cannot be its own part")
        inputs = zip(graph.input_names, graph.input_types, args, strict=False)
        values = [
            current.buffer(value, subject, f"operand {name!r}")
            if isinstance(wanted, BufferType)
            else as_tensor(current, subject, name, value)
            for name, wanted, value in inputs
        ]
        if len(args) != len(graph.inputs):
            raise GraphError(
                f"{subject}: graph {graph.name!r} has {len(graph.inputs)} inputs ({', '.join(graph.input_names)}), "
                f"but {len(args)} values are given"
            )
        inlining = _Inlining(subject, current, graph, values)
    return inlining.build()


class _Inlining:
    """One call: the values and sizes that stand for those of the called graph."""

    def __init__(self, subject: str, current: Graph, called: Graph, values: Sequence[Any]) -> None:
        self.current = current
        self.dims: dict[str, Dim] = {}
        (self.copy,) = (op for op in called.module.ops if isinstance(op, GraphOp))
        arguments: list[SSAValue] = list(self.copy.body.block.args)
        self.values = dict(zip(arguments, values, strict=True))
        for name, inner, value in zip(called.input_names, called.inputs, values, strict=True):
            self._match(f"{subject}: graph {called.name!r}, input {name!r}", inner.type, value.type)

    def _match(self, subject: str, wanted: TensorType, given: TensorType) -> None:
        if given.dtype is not wanted.dtype:
            raise GraphTypeError(f"{subject} is {wanted.dtype}, but the value is {given.dtype}; cast it")
        if given.device != wanted.device:
            raise GraphError(f"{subject} is on {wanted.device}, but the value is on {given.device}; move it with .to()")
        shapes = f"{subject} has shape {shape_text(wanted.shape)}, but the value has {shape_text(given.shape)}"
        if given.rank != wanted.rank:
            raise GraphError(f"{shapes}; they must have the same number of axes")
        for axis, (size, actual) in enumerate(zip(wanted.shape, given.shape, strict=True)):
            stands = self.dims.setdefault(size.name, actual) if isinstance(size, SymbolicDim) else size
            if stands != actual:
                raise GraphError(f"{shapes}; at axis {axis} '{actual}' must be '{stands}'; rebind it if it is")

    def build(self) -> list[TensorValue]:
        """Builds every op of the called graph; gives its outputs."""
        return self._block(self.copy.body.block)

    def _block(self, block: Block) -> list[TensorValue]:
        """Builds the ops of a block; gives what it ends with."""
        for op in block.ops:
            if op is not block.last_op:
                self.values.update(zip(op.results, self._build(op), strict=True))
        assert isinstance(block.last_op, OutputOp | YieldOp)
        return [self.values[value] for value in block.last_op.values]

    def _region(self, region: Region) -> Callable[..., list[TensorValue]]:
        def build(*arguments: TensorValue) -> list[TensorValue]:
            self.values.update(zip(region.block.args, arguments, strict=True))
            return self._block(region.block)

        return build

    def _build(self, op: Operation) -> list[TensorValue]:
        if isinstance(op, ConstantOp):
            return [self.current.constant(op.value.data, op.type)]
        if isinstance(op, WeightOp):
            kind = op.type
            weight = Weight(op.weight_name.data, kind.dtype, kind.shape, kind.device)
            return [self.current.operand(weight, "ops.call", f"weight {weight.name!r}")]
        if isinstance(op, PrintOp):
            self.current.print(self.values[op.value], op.text)
            return []
        if isinstance(op, PrintTextOp):
            self.current.print_text(op.text)
            return []
        if isinstance(op, LoadOp):
            return [buffer_load(self.values[op.buffer])]
        if isinstance(op, StoreOp):
            buffer_store(self.values[op.buffer], self.values[op.value])
            return []
        if isinstance(op, CondOp):
            types = [self._type(tensor_type(value)) for value in op.outputs]
            branches = self._region(op.then_region), self._region(op.else_region)
            return build_cond(self.current, self.values[op.pred], types, *branches)
        if isinstance(op, WhileOp):
            initial = [self.values[value] for value in op.initial]
            return build_while(self.current, initial, self._region(op.predicate), self._region(op.body))
        assert isinstance(op, RegisteredOp)
        return self._apply(op)

    def _apply(self, op: RegisteredOp) -> list[TensorValue]:
        operands = [self.values[value] for value in op.arguments]
        for name in op.defined_symbols:
            self.dims[name] = Dim(self._unused(name))
        parameters = {name: self._substituted(value) for name, value in op.parameter_values.items()}
        if isinstance(op, ApplyOp):
            return self.current.apply(find_op(op.callee.data, op.subject), operands, parameters, op.flags)
        assert isinstance(op, KernelCallOp)
        types = [self._type(tensor_type(value)) for value in op.outputs]
        inplace = isinstance(op, InplaceCustomOp)
        return self.current.custom(
            op.callee.data, op.device_ref, operands, types, parameters, op.flags, inplace=inplace
        )

    def _type(self, inner: TensorType) -> TensorType:
        return TensorType(inner.dtype, [size.substitute(self.dims) for size in inner.shape], inner.device)

    def _substituted(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._substituted(item) for item in value)
        return value.substitute(self.dims) if isinstance(value, Dim) else value

    def _unused(self, name: str) -> str:
        """A name for a symbol that the called graph defines, other than those that are known here."""
        number, unique = 1, name
        while unique in self.current.symbols:
            number += 1
            unique = f"{name}_{number}"
        return unique
