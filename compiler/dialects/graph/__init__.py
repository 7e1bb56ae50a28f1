"""The graph dialect: a user's graph as built, on tensors whose sizes have names.

::

    graph.graph @scaled_sum(%x: !graph.tensor<[batch, 8], f32, cpu>, %y: !graph.tensor<[batch, 8], f32, cpu>) {
      %w = graph.weight "scale" : !graph.tensor<[8], f32, cpu>
      %0 = graph.apply "mul"(%x, %w) : (!graph.tensor<[batch, 8], f32, cpu>, !graph.tensor<[8], f32, cpu>) -> ...
      %1 = graph.apply "add"(%0, %y) fastmath<contract> : (...) -> !graph.tensor<[batch, 8], f32, cpu>
      graph.output %1 : !graph.tensor<[batch, 8], f32, cpu>
    }

The dialect has no op of its own for each op of the library: `graph.apply` holds the op's name, and what the name means
is in the registry (`halfulp.compiler.registry`). The verifier here checks what needs no registry; the pass
``verify-graph`` checks the rest.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .buffers import LoadOp, StoreOp
from .call import ApplyOp, CustomOp, InplaceCustomOp, KernelCallOp, RegisteredOp
from .constant import ConstantOp, DenseDataAttr
from .control import CondOp, WhileOp, YieldOp, blocks_of, is_one_bool, values_read, yielded_values
from .effects import effects_in_order, has_effects
from .parameters import DimAttr, DTypeAttr, Parameter, parameter_attribute, parameter_value
from .printing import PrintOp, PrintTextOp
from .structure import GraphOp, OutputOp, WeightOp
from .types import GraphBufferType, GraphTensorType

Graph = Dialect(
    "graph",
    [
        GraphOp,
        OutputOp,
        ConstantOp,
        WeightOp,
        ApplyOp,
        CustomOp,
        InplaceCustomOp,
        LoadOp,
        StoreOp,
        CondOp,
        WhileOp,
        YieldOp,
        PrintOp,
        PrintTextOp,
    ],
    [GraphTensorType, GraphBufferType, DenseDataAttr, DimAttr, DTypeAttr],
)

__all__ = [
    "ApplyOp",
    "CondOp",
    "ConstantOp",
    "CustomOp",
    "DTypeAttr",
    "DenseDataAttr",
    "DimAttr",
    "Graph",
    "GraphBufferType",
    "GraphOp",
    "GraphTensorType",
    "InplaceCustomOp",
    "KernelCallOp",
    "LoadOp",
    "OutputOp",
    "Parameter",
    "PrintOp",
    "PrintTextOp",
    "RegisteredOp",
    "StoreOp",
    "WeightOp",
    "WhileOp",
    "YieldOp",
    "blocks_of",
    "effects_in_order",
    "has_effects",
    "is_one_bool",
    "parameter_attribute",
    "parameter_value",
    "values_read",
    "yielded_values",
]
