"""``expand-math``: elementary functions become the exact ops of our own expansions."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ..codegen.math.emitter import ElementType, FloatPredicate, IntegerPredicate
from ..codegen.math.table import EXPANSIONS
from ..dialects import tile
from ..dialects.tile.types import element_type, with_shape
from ..tile_builder import TileBuilder, Value
from ..tile_builder.builder import UPPER_BOUNDED

EXPANSION_MARK = "halfulp.expansion"
"""On every fma that belongs to an expansion: names it. Such an fma stays under ``fp_contract=off``."""

_TYPES: dict[ElementType, Attribute] = {"i1": i1, "i32": i32, "i64": i64, "f32": f32, "f64": f64}
_NAMES: dict[Attribute, ElementType] = {value: key for key, value in _TYPES.items()}


class TileEmitter:
    """The operations of an expansion as tile IR, on scalars or blocks of one shape."""

    def __init__(self, builder: TileBuilder, function: str, *, scales: bool = False) -> None:
        self.builder = builder
        self.scales = scales
        self.mark = StringAttr(function)

    def constant(self, value: float, like: Value, type: ElementType | None = None) -> Value:
        element = like.element_type if type is None else _TYPES[type]
        return self.builder.constant(value, with_shape(like.shape, element))

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.builder.binary("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.binary("mul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.builder.binary("div", a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        result = self.builder.fma(a, b, c)
        assert isinstance(result.ssa.owner, Operation)
        result.ssa.owner.attributes[EXPANSION_MARK] = self.mark
        return result

    def sqrt(self, a: Value) -> Value:
        return self.builder.unary("sqrt", a)

    def neg(self, a: Value) -> Value:
        return self.builder.negate(a)

    def abs(self, a: Value) -> Value:
        return self.builder.unary("absf", a)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        return self._emit(math.CopySignOp(magnitude.ssa, sign.ssa))

    def iadd(self, a: Value, b: Value) -> Value:
        return self.builder.binary("add", a, b)

    def isub(self, a: Value, b: Value) -> Value:
        return self.builder.binary("sub", a, b)

    def iand(self, a: Value, b: Value) -> Value:
        return self.builder.binary("and", a, b)

    def ior(self, a: Value, b: Value) -> Value:
        return self.builder.binary("or", a, b)

    def ixor(self, a: Value, b: Value) -> Value:
        return self.builder.binary("xor", a, b)

    def shl(self, a: Value, count: int) -> Value:
        return self._shift(arith.ShLIOp, a, count)

    def lshr(self, a: Value, count: int) -> Value:
        return self._shift(arith.ShRUIOp, a, count)

    def ashr(self, a: Value, count: int) -> Value:
        return self._shift(arith.ShRSIOp, a, count)

    def compare(self, predicate: FloatPredicate | IntegerPredicate, a: Value, b: Value) -> Value:
        return self.builder.compare(predicate, a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.builder.select(condition, a, b)

    def bitcast(self, a: Value, type: ElementType) -> Value:
        return self._emit(arith.BitcastOp(a.ssa, with_shape(a.shape, _TYPES[type])))

    def cast(self, a: Value, type: ElementType) -> Value:
        return self.builder.cast(a, _TYPES[type])

    def scale(self, value: Value, power: Value) -> Value | None:
        if not self.scales or value.element_type != f32 or not value.shape:
            return None
        return self._emit(tile.ScaleOp(value.ssa, power.ssa))

    def _shift(self, op: type[Operation], a: Value, count: int) -> Value:
        # The count is below the width, so arith's shift, undefined beyond it, is total here.
        amount = self.builder.constant(count, a.type)
        return self._emit(op.create(operands=[a.ssa, amount.ssa], result_types=[a.type]))

    def _emit(self, op: Operation) -> Value:
        self.builder.insert(op)
        return Value(self.builder, op.results[0])


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Replaces the elementary functions of ``math``, on scalars and blocks, by their expansions.

    Before::

        %y = math.exp %x : tensor<4096xf32>

    After (20 ops; the fma of an expansion are marked, since ``fp_contract=off`` does not concern them)::

        %k = math.fma %x, %log2_e, %magic {halfulp.expansion = "exp"} : tensor<4096xf32>
        ...
        %y = arith.mulf %scaled, %second_power : tensor<4096xf32>

    ``math`` ops that are exact or correctly rounded (fma, sqrt, absf, floor, ...) stay. With ``scale``, for targets
    that multiply by a power of two in one instruction, blocks of f32 are scaled by ``tile.scale``; bits are the same.
    """

    name = "expand-math"

    only: tuple[str, ...] = field(default=())
    scale: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for candidate in list(op.walk()):
            function = function_of(candidate)
            if candidate.dialect_name() != "math" or function not in EXPANSIONS:
                continue
            if not self.only or function in self.only:
                expand(candidate, function, scales=self.scale)


def function_of(op: Operation) -> str:
    """The function that an op of ``math`` computes, by its name in the table of expansions."""
    name = op.name.removeprefix("math.")
    return "pow" if name == "powf" else name


def expand(op: Operation, function: str, *, scales: bool = False) -> None:
    """Replaces one op by its expansion."""
    result = op.results[0]
    name = _NAMES.get(element_type(result.type))
    if name is None or name not in EXPANSIONS[function]:
        raise DiagnosticException(
            f"expand-math: {op.name} has no expansion for {result.type}; cast to f32 or f64 first"
        )
    builder = TileBuilder.before(op)
    emitter = TileEmitter(builder, function, scales=scales)
    operands = [Value(builder, operand) for operand in op.operands]
    promises = {"upper_bounded": True} if UPPER_BOUNDED in op.attributes else {}
    expanded = EXPANSIONS[function][name].expand(emitter, *operands, **promises)
    result.replace_all_uses_with(expanded.ssa)
    op.detach()
    op.erase()
