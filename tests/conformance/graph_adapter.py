"""The graph API as the black-box conformance cases see it; `factory` makes the adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from halfulp import ops
from halfulp.compiler import DeviceRef, Dim, DType, Graph, TensorType, TensorValue, Weight
from halfulp.runtime import InferenceSession

InputSpec = tuple[str, Sequence[Any]]
Function = Callable[..., Any]


class Adapter:
    """What a case may do with an implementation; the names are those of the cases."""

    ops: ModuleType = ops

    def dtype(self, name: str) -> DType:
        return DType(name)

    def dim(self, value: int | str) -> Dim:
        return Dim(value)

    def device(self) -> DeviceRef:
        return DeviceRef.CPU()

    def type(self, dtype: str, shape: Iterable[Any]) -> TensorType:
        return TensorType(DType(dtype), shape)

    def weight(self, name: str, dtype: str, shape: Iterable[Any]) -> Weight:
        return Weight(name, DType(dtype), shape)

    def subgraph(self, name: str, function: Function, input_specs: Iterable[InputSpec]) -> Graph:
        return self.build(function, input_specs, name)

    def ops_alone(self) -> ModuleType:
        return ops

    def attention(
        self, ops: ModuleType, q: TensorValue, k: TensorValue, v: TensorValue, causal: bool = False, mask: Any = None
    ) -> TensorValue:
        result: TensorValue = ops.attention(q, k, v, causal=causal, mask=mask)
        return result

    def build(self, function: Function, input_specs: Iterable[InputSpec], name: str = "case") -> Graph:
        """The graph of ``function(ops, *values)``; nothing is compiled."""

        def forward(*values: TensorValue) -> Any:
            result = function(ops, *values)
            return list(result) if isinstance(result, tuple | list) else result

        return Graph(name, forward, [TensorType(DType(dtype), shape) for dtype, shape in input_specs])

    def graph(
        self, function: Function, input_specs: Iterable[InputSpec], weights: Mapping[str, Any] | None = None
    ) -> Callable[..., list[np.ndarray[Any, Any]]]:
        """The same, compiled: a function of arrays."""
        model = InferenceSession().load(self.build(function, input_specs), weights_registry=weights)

        def run(*arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
            return [buffer.to_numpy() for buffer in model.execute(*arrays)]

        return run


def factory() -> Adapter:
    """The adapter."""
    return Adapter()
