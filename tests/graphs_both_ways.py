"""Runs one graph both ways: through the session, and its tile IR through the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from differential import Array, assert_same_bits, entry_of
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from halfulp.compiler import CompileOptions, Graph
from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.dialects.graph import ApplyOp
from halfulp.compiler.dims import SymbolicDim
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.interpreter.frame import Observer
from halfulp.compiler.passes.fuse_ops import BOUNDARY
from halfulp.compiler.pipeline import lower
from halfulp.runtime import InferenceSession, Model


def interpreted_results(
    graph: Graph, model: Model, inputs: Sequence[Array], observers: Sequence[Observer] = ()
) -> list[Array]:
    """What the interpreter makes of the kernels of a graph that is loaded as ``model``."""
    module = graph.module.clone()
    lower(module, "tile", model.options, host_target(model.options.vector_bits))
    buffers = [spec for spec in model._compiled.buffers if spec.role is not BufferRole.INTERMEDIATE]
    sources = [_source(spec, inputs) for spec in buffers]
    result = interpret(module, entry_of(module).sym_name.data, sources, _dims(graph, inputs), observers)
    assert result.failed is None, result.failed
    outputs = [array for spec, array in zip(buffers, result.arrays, strict=True) if spec.role is BufferRole.OUTPUT]
    scalars = [not value.shape for value in graph.outputs]
    pairs = zip(outputs, scalars, strict=True)
    return [array.reshape([] if scalar else array.shape) for array, scalar in pairs if array is not None]


def _dims(graph: Graph, inputs: Sequence[Array]) -> dict[str, int]:
    """What the symbols of the inputs' types are bound to."""
    dims: dict[str, int] = {}
    for tensor, array in zip(graph.input_types, inputs, strict=True):
        pairs = zip(tensor.shape, array.shape, strict=True)
        dims |= {dim.name: size for dim, size in pairs if isinstance(dim, SymbolicDim)}
    return dims


def _source(spec: BufferSpec, inputs: Sequence[Array]) -> Any:
    """An argument of the entry function; a scalar has one axis there."""
    if spec.role is BufferRole.INPUT:
        return np.atleast_1d(inputs[spec.index])
    if spec.role is BufferRole.CONSTANT:
        array = np.frombuffer(spec.data or b"", spec.dtype.to_numpy())
        return array.reshape([int(dim) for dim in spec.shape] or [1]).copy()

    def empty(bound: Mapping[str, int]) -> Array:
        return np.zeros([dim.evaluate(bound) for dim in spec.shape] or [1], spec.dtype.to_numpy())

    return empty


def unfused(graph: Graph) -> Graph:
    """The graph with a kernel for each op."""

    def mark(module: ModuleOp) -> None:
        for op in module.walk():
            if isinstance(op, ApplyOp):
                op.attributes[BOUNDARY] = UnitAttr()

    return graph.rewritten(mark)


def check_graph_both_ways(graph: Graph, inputs: Sequence[Array], options: CompileOptions | None = None) -> list[Array]:
    """Compiled and interpreted results are the same bits; the results."""
    model = InferenceSession().load(graph, options or CompileOptions())
    compiled = [buffer.to_numpy() for buffer in model.execute(*inputs)]
    interpreted = interpreted_results(graph, model, inputs)
    for number, (array, wanted) in enumerate(zip(interpreted, compiled, strict=True)):
        assert_same_bits(array, wanted, f"output {number}, interpreted")
    return compiled
