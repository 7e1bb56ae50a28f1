"""Runs one graph both ways: through the session, and its tile IR through the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from differential import Array, assert_same_bits, entry_of

from halfulp.compiler import CompileOptions, Graph
from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.codegen.cpu import host_target
from halfulp.compiler.dims import SymbolicDim
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.pipeline import lower
from halfulp.runtime import InferenceSession


def both_results(
    graph: Graph, inputs: Sequence[Array], options: CompileOptions | None = None
) -> tuple[list[Array], list[Array]]:
    """What the compiled graph makes of the inputs, and what the interpreter makes of its kernels."""
    options = options or CompileOptions()
    model = InferenceSession().load(graph, options)
    compiled = [buffer.to_numpy() for buffer in model.execute(*inputs)]
    module = graph.module.clone()
    lower(module, "tile", options, host_target(options.vector_bits))
    buffers = [spec for spec in model._compiled.buffers if spec.role is not BufferRole.INTERMEDIATE]
    sources = [_source(spec, inputs) for spec in buffers]
    result = interpret(module, entry_of(module).sym_name.data, sources, _dims(graph, inputs))
    assert result.failed is None, result.failed
    outputs = [array for spec, array in zip(buffers, result.arrays, strict=True) if spec.role is BufferRole.OUTPUT]
    shaped = [array.reshape(wanted.shape) for array, wanted in zip(outputs, compiled, strict=True) if array is not None]
    return compiled, shaped


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


def check_graph_both_ways(graph: Graph, inputs: Sequence[Array], options: CompileOptions | None = None) -> list[Array]:
    """Compiled and interpreted results are the same bits; the results."""
    compiled, interpreted = both_results(graph, inputs, options)
    for number, (array, wanted) in enumerate(zip(interpreted, compiled, strict=True)):
        assert_same_bits(array, wanted, f"output {number}, interpreted")
    return compiled
