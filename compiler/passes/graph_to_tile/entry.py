"""The entry function of a graph: a reference argument for each buffer that the runtime provides.

Arguments stand in the order inputs, weights, constants, outputs. Each carries its role, index, name
and graph type as argument attributes, so that symbolic dims keep their names, and a constant carries its data.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...artifact import BufferRole
from ...dialects import graph
from ...dialects.graph.call import fastmath_attribute
from ...dialects.graph.types import graph_input, tensor_type
from ...dialects.tile import RefType
from ...dims import Dim, StaticDim, SymbolicDim, fold
from ...op_numerics import op_numerics
from ...tile_builder import EntryBuilder, TileBuilder, Value
from ...types import TensorType

ROLE, INDEX, NAME, TYPE, DATA = (f"halfulp.{key}" for key in ("role", "index", "name", "type", "data"))


def ref_type(tensor: TensorType) -> RefType:
    """The reference type of a tensor in memory; a scalar is one element along one axis."""
    extents = [int(dim) if isinstance(dim, StaticDim) else DYNAMIC_INDEX for dim in tensor.shape]
    return RefType(extents or [1], tensor.dtype.to_element_type())


def flags_of(op: graph.RegisteredOp) -> FastMathFlagsAttr:
    """The flags that float ops of ``op`` carry."""
    return fastmath_attribute(op.flags or frozenset())


def adopt_numerics(builder: TileBuilder, op: graph.RegisteredOp, fp_contract: str) -> None:
    """What ``builder`` emits from now on has the flags of ``op`` and its mode; ``fp_contract`` if it has none."""
    own = op_numerics(op)
    builder.fastmath = flags_of(op)
    builder.fp_contract = fp_contract if own is None else own.fp_contract


def dim_texts(tensor: TensorType) -> tuple[str, ...]:
    """The dims of a tensor in memory, as text."""
    return tuple(str(dim) for dim in tensor.shape) or ("1",)


class Entry:
    """An entry function being built, and where each value of the graph lives."""

    def __init__(self, op: graph.GraphOp, names: set[str], fp_contract: str) -> None:
        """A function without launches.

        Args:
            op: the graph.
            names: the symbols of the module that the kernels will stand in.
            fp_contract: the mode of ops that have none of their own.
        """
        self.op = op
        self.kernels = ModuleOp([])
        self._types: list[Attribute] = []
        self._attributes: list[DictionaryAttr] = []
        owners = self._collect()
        block = Block(arg_types=self._types)
        self.function = func.FuncOp(
            op.sym_name.data,
            (self._types, []),
            Region(block),
            arg_attrs=ArrayAttr(self._attributes),
        )
        self.builder = EntryBuilder(self.kernels, self.function, names)
        self.fp_contract = self.builder.fp_contract = fp_contract
        self.refs: dict[SSAValue, Value] = {}
        self.outputs: list[Value] = []
        for owner, argument in zip(owners, block.args, strict=True):
            value = Value(self.builder, argument)
            if owner is None:
                self.outputs.append(value)
            else:
                self.refs[owner] = value
        self._claim_outputs()

    def _collect(self) -> list[SSAValue | None]:
        """Declares all arguments; gives the graph value that each one holds, None for outputs."""
        owners: list[SSAValue | None] = []
        for index, (name, argument) in enumerate(self.op.inputs.items()):
            owners.append(argument)
            self._declare(BufferRole.INPUT, index, name, tensor_type(argument))
        weights = [op for op in self.op.body.walk() if isinstance(op, graph.WeightOp)]
        for index, weight in enumerate(weights):
            owners.append(weight.result)
            self._declare(BufferRole.WEIGHT, index, weight.weight_name.data, weight.type)
        constants = [op for op in self.op.body.walk() if isinstance(op, graph.ConstantOp)]
        for index, constant in enumerate(constants):
            owners.append(constant.result)
            self._declare(BufferRole.CONSTANT, index, f"constant_{index}", constant.type, constant.value)
        for index, value in enumerate(self.op.outputs):
            owners.append(None)
            self._declare(BufferRole.OUTPUT, index, f"output_{index}", tensor_type(value))
        return owners

    def _declare(
        self, role: BufferRole, index: int, name: str, tensor: TensorType, data: Attribute | None = None
    ) -> None:
        attributes: dict[str, Attribute] = {
            ROLE: StringAttr(role.value),
            INDEX: IntegerAttr(index, i64),
            NAME: StringAttr(name),
            TYPE: graph_input(tensor),
        }
        if data is not None:
            attributes[DATA] = data
        self._types.append(ref_type(tensor))
        self._attributes.append(DictionaryAttr(attributes))

    def _claim_outputs(self) -> None:
        """A computed value that the graph returns is written to the output right away."""
        for value, ref in zip(self.op.outputs, self.outputs, strict=True):
            if value not in self.refs:
                self.refs[value] = ref

    def ref(self, value: SSAValue) -> Value:
        """The buffer of a graph value; a new one between kernels if it has none.

        A value that a loop starts with, and nobody else wants, is written to where the loop carries it.
        """
        if value not in self.refs and (carried := _carried_as(value)) is not None:
            self.refs[value] = self.ref(carried)
        if value not in self.refs:
            tensor = tensor_type(value)
            self.refs[value] = self.builder.buffer(dim_texts(tensor), tensor.dtype.to_element_type(), tensor.device)
        return self.refs[value]

    def dim(self, dim: Dim) -> Value:
        """The value of a dim, computed from the extents of buffers."""
        builder = self.builder
        return fold(dim, builder.index, self._symbol, Value.__add__, Value.__mul__, Value.__floordiv__)

    def _symbol(self, name: str) -> Value:
        for value, ref in self.refs.items():
            for axis, dim in enumerate(tensor_type(value).shape):
                if isinstance(dim, SymbolicDim) and dim.name == name:
                    return self.builder.dim(ref, axis)
        raise AssertionError(f"no buffer has an axis of size {name}")

    def copied_outputs(self) -> Sequence[tuple[Value, Value]]:
        """(source, output) where a value that leaves lives elsewhere: an input, or the same value again."""
        pairs = zip(self.op.outputs, self.outputs, strict=True)
        return [(self.refs[value], ref) for value, ref in pairs if self.refs[value].ssa is not ref.ssa]


def _carried_as(value: SSAValue) -> SSAValue | None:
    """The result of a loop beside the op of ``value``, if to start that loop is all that ``value`` is for."""
    uses = list(value.uses)
    loop = uses[0].operation if len(uses) == 1 else None
    if isinstance(loop, graph.WhileOp) and isinstance(value.owner, Operation) and loop.parent is value.owner.parent:
        return loop.outputs[uses[0].index]
    return None
