"""A graph evaluated op by op, with every value on the way: in its own types, or in float64 as if it hardly rounded.

In float64 each op is the library's own on float64 operands, compiled by itself: the same shape rules and special
values, and an error some 2**29 times smaller than that of float32. Float types that the graph casts to are float64 too,
so the roundings of its casts are gone with all others. An op that takes no float64 is computed by the reference in its
contract (`halfulp.ops.contract`), and a kernel by one of its own (`KernelDef.reference`). A kernel without one runs as
it is, and `Trace.in_own_precision` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from halfulp.compiler.dialects.graph import ApplyOp, ConstantOp, CustomOp, GraphOp, RegisteredOp, WeightOp
from halfulp.compiler.dialects.graph.buffers import LoadOp, StoreOp
from halfulp.compiler.dialects.graph.control import CondOp, WhileOp, YieldOp
from halfulp.compiler.dialects.graph.types import tensor_type
from halfulp.compiler.dims import Dim, StaticDim, SymbolicDim
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import CompileError, HalfulpError
from halfulp.compiler.graph import Graph
from halfulp.compiler.locations import location_of
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.registry import find_kernel, find_op
from halfulp.compiler.types import BufferType, TensorType

from ..model import Model
from ..session import InferenceSession
from .ulps import Array

Replace = Callable[["Trace", ApplyOp], "Sequence[Array] | None"]

PLAIN = CompileOptions(fp_contract="on", fastmath="none")


@dataclass
class Trace:
    """All values of one evaluation.

    Attributes:
        graph: the ``graph.graph`` whose values these are; a copy of the graph's own.
        values: the array of each value.
        in_own_precision: the kernels that ran as they are, for want of a reference.
    """

    graph: GraphOp
    values: dict[SSAValue, Array] = field(default_factory=dict)
    in_own_precision: tuple[str, ...] = ()

    @property
    def outputs(self) -> list[Array]:
        """The outputs of the graph, in order."""
        return [self.values[value] for value in self.graph.outputs]


def evaluate_in_float64(graph: Graph, inputs: Sequence[Array], weights: Mapping[str, Array] | None = None) -> Trace:
    """Every value of the graph for these inputs, floats in float64.

    Raises:
        CompileError: an op has no kernel for float64 operands; the message names it.
    """
    return evaluate(graph, inputs, weights, widen=True)


def evaluate(
    graph: Graph,
    inputs: Sequence[Array],
    weights: Mapping[str, Array] | None = None,
    *,
    widen: bool = False,
    replace: Replace | None = None,
    options: CompileOptions = PLAIN,
) -> Trace:
    """Every value of the graph for these inputs, op by op.

    Args:
        graph: a complete graph.
        inputs: an array for each input, of its type and shape.
        weights: by name, an array for each weight.
        widen: whether floats become float64.
        replace: called with the values so far and each op of the library; what it returns stands for the op's results,
            None leaves them to the op.
        options: what each op is compiled with.

    Raises:
        CompileError: an op cannot be compiled for its operands; the message names it.
    """
    (op,) = (part for part in graph.module.body.block.ops if isinstance(part, GraphOp))
    return _Evaluation(op, weights or {}, widen, replace, options).run(inputs)


def _widened(array: Array) -> Array:
    is_float = array.dtype == np.longdouble or DType.from_numpy(array.dtype).is_float
    return array.astype(np.float64) if is_float else array


class _Evaluation:
    """The values known so far, and the sizes of the symbols."""

    def __init__(
        self,
        graph: GraphOp,
        weights: Mapping[str, Array],
        widen: bool,
        replace: Replace | None,
        options: CompileOptions,
    ) -> None:
        self.trace = Trace(graph)
        self.weights, self.widen, self.replace, self.options = weights, widen, replace, options
        self.dims: dict[str, int] = {}
        self.models: dict[str, Model] = {}

    def run(self, inputs: Sequence[Array]) -> Trace:
        for argument, array in zip(self.trace.graph.body.block.args, inputs, strict=True):
            self._keep(argument, array)
        self._run_block(self.trace.graph.body.block)
        return self.trace

    def _run_block(self, block: Block) -> list[Array]:
        """Evaluates the ops of a block; gives what it yields."""
        for op in block.ops:
            for value, array in zip(op.results, self._results(op), strict=True):
                self._keep(value, array)
        last = block.last_op
        return [self.trace.values[value] for value in last.values] if isinstance(last, YieldOp) else []

    def _keep(self, value: SSAValue, array: Array) -> None:
        for dim, size in zip(tensor_type(value).shape, array.shape, strict=True):
            if isinstance(dim, SymbolicDim):
                self.dims.setdefault(dim.name, size)
        self.trace.values[value] = _widened(array) if self.widen else array

    def _results(self, op: Operation) -> Sequence[Array]:
        if isinstance(op, ConstantOp):
            return [op.array()]
        if isinstance(op, WeightOp):
            return [self.weights[op.weight_name.data]]
        if isinstance(op, ApplyOp):
            own = None if self.replace is None else self.replace(self.trace, op)
            return self._apply(op) if own is None else own
        if isinstance(op, CustomOp):
            return self._custom(op)
        if isinstance(op, CondOp):
            region = op.then_region if self.trace.values[op.pred].all() else op.else_region
            return self._run_block(region.block)
        if isinstance(op, WhileOp):
            return self._loop(op)
        if isinstance(op, LoadOp):
            return [self.trace.values[op.buffer]]
        if isinstance(op, StoreOp):
            self._keep(op.buffer, self.trace.values[op.value])
            return []
        if op.results:
            raise CompileError(f"{op.name} cannot be evaluated op by op", location_of(op))
        return []

    def _loop(self, op: WhileOp) -> Sequence[Array]:
        carried = [self.trace.values[value] for value in op.initial]
        while True:
            for region in (op.predicate, op.body):
                for argument, array in zip(region.block.args, carried, strict=True):
                    self._keep(argument, array)
            (goes_on,) = self._run_block(op.predicate.block)
            if not goes_on.all():
                return carried
            carried = self._run_block(op.body.block)

    def _operands(self, op: RegisteredOp) -> list[Array]:
        return [self.trace.values[value] for value in op.arguments]

    def _apply(self, op: ApplyOp) -> Sequence[Array]:
        operands = self._operands(op)
        parameters = {name: self._parameter(value) for name, value in op.parameter_values.items()}
        types = [TensorType(DType.from_numpy(array.dtype), array.shape) for array in operands]
        key = f"{op.callee.data} {parameters} {types}"
        if key not in self.models:
            definition = find_op(op.callee.data, op.subject)
            try:
                single = Graph(
                    op.callee.data, lambda *values: Graph.current().apply(definition, values, parameters), types
                )
                self.models[key] = InferenceSession().load(single, self.options)
            except HalfulpError as error:
                return self._stated(op, operands, parameters, error)
        return [buffer.to_numpy() for buffer in self.models[key].execute(*operands)]

    def _stated(
        self, op: ApplyOp, operands: Sequence[Array], parameters: Mapping[str, Any], error: HalfulpError
    ) -> Sequence[Array]:
        """The reference that the op's own contract states, for an op that takes no float64."""
        from halfulp.ops.contract import CONTRACTS

        contract = CONTRACTS.get(op.callee.data)
        if contract is None or not self.widen:
            where = "in float64" if self.widen else "by itself"
            raise CompileError(f"{op.subject} cannot be computed {where}: {error.message}", location_of(op)) from None
        with np.errstate(all="ignore"):
            return [np.asarray(contract.reference(*operands, **parameters))]

    def _parameter(self, value: Any) -> Any:
        """Sizes as numbers, float types as float64."""
        if isinstance(value, tuple):
            return tuple(map(self._parameter, value))
        if isinstance(value, DType):
            return DType.float64 if self.widen and value.is_float else value
        if isinstance(value, Dim) and not isinstance(value, StaticDim):
            return Dim(value.evaluate(self.dims))
        return value

    def _custom(self, op: CustomOp) -> Sequence[Array]:
        kernel, operands = find_kernel(op.callee.data, op.subject), self._operands(op)
        if self.widen and kernel.reference is not None:
            return list(kernel.reference(*operands, **op.parameter_values))
        name = op.callee.data
        if any(isinstance(t, BufferType) for t in op.argument_types):
            raise CompileError(
                f"{op.subject} changes its operands, so it cannot be evaluated by itself", location_of(op)
            )
        self.trace.in_own_precision = tuple(dict.fromkeys((*self.trace.in_own_precision, name)))
        narrow = [array.astype(t.dtype.to_numpy()) for array, t in zip(operands, op.argument_types, strict=True)]
        # Kernels of `pallas_call` take just the symbols that they were traced for. An empty input gives each its size.
        sizes = {symbol: self.dims[symbol] for t in op.argument_types for symbol in t.symbols}
        sizes |= {symbol: self.dims[symbol] for t in op.output_types for symbol in t.symbols if symbol in self.dims}
        given = [TensorType(t.dtype, array.shape, t.device) for array, t in zip(narrow, op.argument_types, strict=True)]
        types = [*given, TensorType(DType.uint8, [0, *sizes])]

        def forward(*values: Any) -> Any:
            traced = [value.rebind(t.shape) for value, t in zip(values, op.argument_types, strict=False)]
            return Graph.current().custom(name, op.device_ref, traced, op.output_types, op.parameter_values)

        model = InferenceSession().load(Graph(name, forward, types), self.options)
        return [buffer.to_numpy() for buffer in model.execute(*narrow, np.zeros((0, *sizes.values()), np.uint8))]


def operand_scale(trace: Trace, output: SSAValue) -> Array | None:
    """The magnitude of the largest operand of the sum that made a value, element by element, in float64.

    None unless the value is a sum, a difference or an fma, or such a one converted.
    """
    op = output.owner
    if not isinstance(op, ApplyOp):
        return None
    definition = find_op(op.callee.data, op.subject)
    if definition.converts:
        return operand_scale(trace, op.arguments[0])
    operands = [trace.values[value] for value in op.arguments]
    if definition.contraction == "fused":
        with np.errstate(all="ignore"):
            operands = [operands[0] * operands[1], operands[2]]
    elif definition.contraction not in ("sum", "difference"):
        return None
    return np.maximum(np.abs(operands[0]), np.abs(operands[1]))
