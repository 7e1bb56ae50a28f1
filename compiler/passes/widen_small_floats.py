"""``widen-small-floats``: bf16 and f16 values of a graph stay f32 between ops (``bf16="excess"``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ..dialects.graph import ApplyOp, DTypeAttr, GraphOp
from ..dialects.graph.types import GraphTensorType, tensor_type
from ..dtypes import DType
from ..errors import CompileError, GraphError, GraphTypeError, quoted_list
from ..op_numerics import op_numerics
from ..opdef import OpDef
from ..options import Bf16
from ..registry import find_op, first_op
from ..types import TensorType

SMALL = (DType.bfloat16, DType.float16)
WIDENED_KINDS = ("map", "view", "alias", "reduce")


@dataclass(frozen=True)
class WidenSmallFloatsPass(ModulePass):
    """Decides, before anything is fused, where small floats are rounded: where they are seen, and nowhere else.

    Before (types shortened)::

        %0 = graph.apply "mul"(%x, %y) : (bf16, bf16) -> bf16
        %1 = graph.apply "add"(%0, %z) : (bf16, bf16) -> bf16
        graph.output %1 : bf16

    After::

        %a, %b, %c = graph.apply "cast"(%x), ... {dtype = f32}
        %0 = graph.apply "mul"(%a, %b) : (f32, f32) -> f32
        %1 = graph.apply "add"(%0, %c) : (f32, f32) -> f32
        %2 = graph.apply "cast"(%1) {dtype = bf16} : f32 -> bf16
        graph.output %2 : bf16

    Maps, views, reshapes and reductions work on f32, and a sum may contract with a product then. Rounded, once and to
    nearest even, are: outputs of the graph, the result of a cast that the user wrote, and the operands of everything
    else (ops with kernels of their own, matmul among them, and custom kernels). A value that is both rounded and
    used on is used unrounded, so an additional output changes nothing else.

    ``mode=round-each`` does that only for ops whose own numerics (``set-op-numerics``) say ``excess``, and under
    ``excess`` ops whose own say ``round-each`` are left out: each op decides about the rounding of its result. Views
    and reshapes give on what they get.

    Raises:
        CompileError: there are small floats, but no op is registered that converts.
    """

    name = "widen-small-floats"

    mode: str = "excess"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.mode not in get_args(Bf16):
            raise CompileError(f"{self.name}: mode must be one of {quoted_list(get_args(Bf16))}, not {self.mode!r}")
        for graph in op.body.block.ops:
            if isinstance(graph, GraphOp) and any(_mode(part, self.mode) == "excess" for part in graph.body.walk()):
                _Widening(graph, self.mode).run()


def _mode(op: Operation, general: str) -> str:
    numerics = op_numerics(op)
    return general if numerics is None else numerics.bf16


def _is_small(value: SSAValue) -> bool:
    return isinstance(value.type, GraphTensorType) and tensor_type(value).dtype in SMALL


def _with_dtype(tensor: TensorType, dtype: DType) -> TensorType:
    return TensorType(dtype, tensor.shape, tensor.device)


def _widened_results(op: ApplyOp, definition: OpDef) -> list[TensorType] | None:
    """The types of the results where small operands are f32; None if the op does not work so."""
    if definition.kind not in WIDENED_KINDS:
        return None
    types = [_with_dtype(t, DType.float32) if t.dtype in SMALL else t for t in op.argument_types]
    try:
        return list(definition.infer(types, op.parameter_values))
    except (GraphError, GraphTypeError):  # an op for small floats only
        return None


class _Widening:
    """One graph being rewritten: for values of small type, the f32 value behind them and the rounded one."""

    def __init__(self, graph: GraphOp, mode: str) -> None:
        self.graph, self.mode = graph, mode
        self.wide: dict[SSAValue, SSAValue] = {}
        self.rounded: dict[SSAValue, SSAValue] = {}
        self.replaced: list[Operation] = []

    def run(self) -> None:
        for op in list(self.graph.body.walk()):
            if not any(map(_is_small, (*op.operands, *op.results))):
                continue
            definition = find_op(op.callee.data, op.subject) if isinstance(op, ApplyOp) else None
            if isinstance(op, ApplyOp) and definition is not None and definition.converts:
                self._cast(op)
            elif not (isinstance(op, ApplyOp) and definition is not None and self._widen(op, definition)):
                for index, operand in enumerate(op.operands):
                    op.operands[index] = self._rounded(operand)
        for op in reversed(self.replaced):
            block = op.parent
            assert block is not None
            block.erase_op(op)

    def _cast(self, op: ApplyOp) -> None:
        """A cast of the user's: it rounds once, from f32, if its result is small, and is not needed if it is f32."""
        source, result = op.arguments[0], op.outputs[0]
        if source not in self.wide:
            return
        wide = self.wide[source]
        if wide.type == result.type:
            result.replace_all_uses_with(wide)
            self.replaced.append(op)
        else:
            op.operands[0] = wide

    def _widen(self, op: ApplyOp, definition: OpDef) -> bool:
        """Puts the same op on f32 in the place of ``op``; False if there is none, or if nothing asks for it."""
        types = _widened_results(op, definition)
        if types is None:
            return False
        is_view = definition.kind in ("view", "alias")
        rounds = _mode(op, self.mode) != "excess"
        if (rounds or (is_view and self.mode != "excess")) and not any(map(self._is_unrounded, op.arguments)):
            return False
        operands = [self._wide(value) if _is_small(value) else value for value in op.arguments]
        new = ApplyOp.create(
            operands=operands,
            result_types=[GraphTensorType(result) for result in types],
            properties=op.properties,
            attributes=op.attributes,
            location=op.location,
        )
        block = op.parent
        assert block is not None
        block.insert_op_before(new, op)
        for old, result in zip(op.outputs, new.outputs, strict=True):
            result.name_hint = old.name_hint
            if old.type == result.type:
                old.replace_all_uses_with(result)
            elif rounds and not is_view:
                old.replace_all_uses_with(self._convert(result, tensor_type(old).dtype))
            else:
                self.wide[old] = result
        self.replaced.append(op)
        return True

    def _is_unrounded(self, value: SSAValue) -> bool:
        """Whether there is an f32 value behind ``value`` that is more than its conversion."""
        wide = self.wide.get(value)
        return wide is not None and not (isinstance(wide.owner, ApplyOp) and wide.owner.arguments[:1] == (value,))

    def _wide(self, value: SSAValue) -> SSAValue:
        """``value`` in f32, before its last rounding if it has one."""
        if value not in self.wide:
            self.wide[value] = self._convert(value, DType.float32)
        return self.wide[value]

    def _rounded(self, value: SSAValue) -> SSAValue:
        """``value`` in its own small type."""
        if not self._is_unrounded(value):
            return value
        if value not in self.rounded:
            self.rounded[value] = self._convert(self.wide[value], tensor_type(value).dtype)
        return self.rounded[value]

    def _convert(self, value: SSAValue, dtype: DType) -> SSAValue:
        """``value`` converted right where it is defined, so that every later use may have it."""
        definition = first_op(lambda op: op.converts)
        if definition is None:
            raise CompileError("bf16='excess' needs an op that converts element types; import halfulp.ops")
        target = _with_dtype(tensor_type(value), dtype)
        op = ApplyOp(definition.name, [value], [target], {"dtype": DTypeAttr(dtype)})
        owner = value.owner
        if isinstance(owner, Block):
            first = owner.first_op
            assert first is not None
            owner.insert_op_before(op, first)
        else:
            op.location = owner.location
            block = owner.parent
            assert block is not None
            block.insert_op_after(op, owner)
        return op.outputs[0]
