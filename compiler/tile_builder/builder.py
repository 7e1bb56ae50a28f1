"""Builds tile IR from Python: constants, blocks, memory and arithmetic. Control flow is in ``control``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ..dialects import tile
from ..dialects.tile.memory import BLOCKED, ELEMENT
from ..dialects.tile.types import RefType, element_type, shape_of
from ..dtypes import DType
from .value import Value

NO_FLAGS = FastMathFlagsAttr("none")
UPPER_BOUNDED = "halfulp.upper_bounded"
"""On math.exp: its operand is at most 64, or NaN."""

_FLOAT_BINARY: dict[str, type[arith.FloatingPointLikeBinaryOperation]] = {
    "add": arith.AddfOp,
    "sub": arith.SubfOp,
    "mul": arith.MulfOp,
    "div": arith.DivfOp,
    "maximum": arith.MaximumfOp,
    "minimum": arith.MinimumfOp,
    "maxnum": arith.MaxnumfOp,
    "minnum": arith.MinnumfOp,
}
_INTEGER_BINARY: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
    "maxs": arith.MaxSIOp,
    "maxu": arith.MaxUIOp,
    "mins": arith.MinSIOp,
    "minu": arith.MinUIOp,
}
_FLOAT_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_SIGNED_COMPARE = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNARY_MATH: dict[str, type[math.FloatingPointLikeUnaryMathOperation]] = {
    op.name.removeprefix("math."): op
    for op in math.Math.operations
    if issubclass(op, math.FloatingPointLikeUnaryMathOperation)
}


class TileBuilder:
    """Emits ops at the end of a block. ``fastmath`` flags go on every float op built while they are set.

    ``fp_contract`` is the mode that the graph is compiled with: where the definition of an op states an fma (the k
    chain of a dot, say), it is a product and a sum under ``"off"``; see `multiply_add` and `dot`.
    """

    def __init__(self, block: Block) -> None:
        self._builders = [Builder(InsertPoint.at_end(block))]
        self.fastmath = NO_FLAGS
        self.fp_contract = "on"

    @classmethod
    def before(cls, op: Operation) -> TileBuilder:
        """A builder that emits before ``op``."""
        block = op.parent_block()
        assert block is not None
        builder = cls(block)
        builder._builders = [Builder(InsertPoint.before(op))]
        return builder

    @contextmanager
    def changed_fastmath(
        self, *, add: Sequence[FastMathFlag] = (), drop: Sequence[FastMathFlag] = ()
    ) -> Iterator[None]:
        """Inside the ``with``, float ops carry the flags set now, and ``add``, but not ``drop``."""
        outer = self.fastmath
        self.fastmath = FastMathFlagsAttr([flag for flag in (*outer.data, *add) if flag not in drop])
        try:
            yield
        finally:
            self.fastmath = outer

    def insert(self, op: Operation) -> Operation:
        """Adds ``op`` where building goes on now."""
        return self._builders[-1].insert(op)

    def _emit(self, op: Operation) -> Value:
        self.insert(op)
        return Value(self, op.results[0])

    # -- constants and blocks

    def constant(self, value: int | float | bool, value_type: Attribute) -> Value:
        """A constant of a scalar type, or of a block type with every element equal."""
        element = element_type(value_type)
        scalar: FloatAttr[AnyFloat] | IntegerAttr[IntegerType | IndexType]
        if isinstance(element, AnyFloat):
            scalar = FloatAttr(float(value), element)
        elif isinstance(element, IntegerType):
            scalar = IntegerAttr(int(value), element, truncate_bits=True)
        else:
            scalar = IntegerAttr(int(value), IndexType())
        constant = self._emit(arith.ConstantOp(scalar))
        # A dense attribute would hold every element of the block.
        return self.splat(constant, value_type.get_shape()) if isinstance(value_type, TensorType) else constant

    def index(self, value: int) -> Value:
        return self.constant(value, IndexType())

    def value(self, operand: Value | int | float, like: Attribute) -> Value:
        """``operand`` as a value of type ``like``: numbers become constants, scalars are repeated to its shape."""
        if not isinstance(operand, Value):
            return self.constant(operand, like)
        shape = shape_of(like)
        return self.splat(operand, shape) if shape and not operand.shape else operand

    def splat(self, scalar: Value, shape: Sequence[int]) -> Value:
        return self._emit(tile.SplatOp(scalar.ssa, shape))

    def iota(self, shape: Sequence[int], element: Attribute, axis: int = 0) -> Value:
        return self._emit(tile.IotaOp(TensorType(element, list(shape)), axis))

    def broadcast(self, operand: Value, shape: Sequence[int]) -> Value:
        return self._emit(tile.BroadcastOp(operand.ssa, shape))

    def reshape(self, operand: Value, shape: Sequence[int]) -> Value:
        return self._emit(tile.ReshapeOp(operand.ssa, shape))

    def transpose(self, operand: Value, permutation: Sequence[int]) -> Value:
        return self._emit(tile.TransposeOp(operand.ssa, permutation))

    def slice(
        self, operand: Value, starts: Sequence[int], shape: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        return self._emit(tile.SliceOp(operand.ssa, starts, shape, steps))

    def concat(self, parts: Sequence[Value], axis: int = 0) -> Value:
        return self._emit(tile.ConcatOp([part.ssa for part in parts], axis))

    def extract(self, block: Value, *indices: Value | int) -> Value:
        return self._emit(tile.ExtractOp(block.ssa, self._indices(indices)))

    # -- memory

    def _indices(self, indices: Sequence[Value | int]) -> list[SSAValue]:
        return [(index if isinstance(index, Value) else self.index(index)).ssa for index in indices]

    def dim(self, ref: Value, axis: int) -> Value:
        return self._emit(tile.DimOp(ref.ssa, axis))

    def flatten(self, ref: Value) -> Value:
        """All elements of a whole buffer as one axis."""
        return self._emit(tile.FlattenOp(ref.ssa))

    def reinterpret(self, ref: Value, extents: Sequence[Value], shape: Sequence[int]) -> Value:
        """All elements of a whole buffer under another shape (``tile.DYNAMIC`` where an extent is computed)."""
        return self._emit(tile.ReinterpretOp(ref.ssa, [extent.ssa for extent in extents], shape))

    def window(
        self,
        ref: Value,
        indices: Sequence[Value | int],
        shape: Sequence[int],
        *,
        indexing: str = BLOCKED,
        squeezed: Sequence[int] = (),
    ) -> Value:
        """The part of ``ref`` at ``indices`` (see ``tile.window``)."""
        return self._emit(tile.WindowOp(ref.ssa, self._indices(indices), shape, indexing=indexing, squeezed=squeezed))

    def load(self, ref: Value, other: Value | int | float | None = None, mask: Value | None = None) -> Value:
        """The block that ``ref`` (of static shape) holds; ``other`` where it is invalid or masked off."""
        assert isinstance(ref.type, RefType)
        element = ref.type.element_type
        pad = None if other is None else self.value(other, element).ssa
        block = TensorType(element, list(ref.type.extents))
        return self._emit(tile.LoadOp(ref.ssa, block, None if mask is None else mask.ssa, pad))

    def store(self, value: Value, ref: Value, mask: Value | None = None) -> None:
        self.insert(tile.StoreOp(value.ssa, ref.ssa, None if mask is None else mask.ssa))

    def _element(self, ref: Value, indices: Sequence[Value | int]) -> Value:
        rank = len(indices)
        return self.window(ref, indices, [1] * rank, indexing=ELEMENT, squeezed=range(rank - 1))

    def read(self, ref: Value, *indices: Value | int, other: Value | int | float | None = None) -> Value:
        """One element as a scalar, ``other`` (or zero) where the reference has none."""
        return self.extract(self.load(self._element(ref, indices), other), 0)

    def write(self, scalar: Value, ref: Value, *indices: Value | int) -> None:
        """Stores one element; dropped where the reference has none."""
        self.store(self.splat(scalar, [1]), self._element(ref, indices))

    def alloc(self, pad: Value, shape: Sequence[int]) -> Value:
        return self._emit(tile.AllocOp(pad.ssa, shape))

    # -- arithmetic

    def _pair(self, lhs: Value | int | float, rhs: Value | int | float) -> tuple[Value, Value]:
        wider = next((v for v in (lhs, rhs) if isinstance(v, Value) and v.shape), None)
        like = wider if wider is not None else (lhs if isinstance(lhs, Value) else rhs)
        assert isinstance(like, Value)
        return self.value(lhs, like.type), self.value(rhs, like.type)

    def binary(self, kind: str, lhs: Value | int | float, rhs: Value | int | float) -> Value:
        """An elementwise op by name: add sub mul div maximum maxnum ..., and or xor maxs maxu ... on integers."""
        a, b = self._pair(lhs, rhs)
        if a.is_float:
            return self._emit(_FLOAT_BINARY[kind](a.ssa, b.ssa, self.fastmath))
        op_class = _INTEGER_BINARY[kind]
        return self._emit(op_class.create(operands=[a.ssa, b.ssa], result_types=[a.type]))

    def negate(self, operand: Value) -> Value:
        if operand.is_float:
            return self._emit(arith.NegfOp(operand.ssa, self.fastmath))
        return self.binary("sub", 0, operand)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return self._emit(math.FmaOp(a.ssa, b.ssa, c.ssa, self.fastmath))

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        """``a * b + c`` as an op's own definition states it: rounded once, except under ``fp_contract="off"``."""
        if self.fp_contract == "off":
            return self.binary("add", self.binary("mul", a, b), c)
        return self.fma(a, b, c)

    def int_div(self, kind: str, lhs: Value | int, rhs: Value | int) -> Value:
        a, b = self._pair(lhs, rhs)
        return self._emit(tile.IntDivOp(kind, a.ssa, b.ssa))

    def shift(self, kind: str, lhs: Value, rhs: Value | int) -> Value:
        a, b = self._pair(lhs, rhs)
        return self._emit(tile.ShiftOp(kind, a.ssa, b.ssa))

    def lookup(self, index: Value, table: Sequence[float]) -> Value:
        """``table[index mod n]`` for a constant table of n f32, n a power of two; ``index`` is an i32 of any value."""
        return self._emit(tile.LookupOp(index.ssa, table))

    def compare(self, kind: str, lhs: Value | int | float, rhs: Value | int | float) -> Value:
        """``lt le gt ge eq ne`` (signed on integers), or a predicate of tile.cmpi / tile.cmpf by name."""
        a, b = self._pair(lhs, rhs)
        if a.is_float:
            return self._emit(tile.CmpFOp(_FLOAT_COMPARE.get(kind, kind), a.ssa, b.ssa, self.fastmath))
        return self._emit(tile.CmpIOp(_SIGNED_COMPARE.get(kind, kind), a.ssa, b.ssa))

    def select(self, condition: Value, true_value: Value | int | float, false_value: Value | int | float) -> Value:
        a, b = self._pair(true_value, false_value)
        flags = self.fastmath if a.is_float else NO_FLAGS
        return self._emit(tile.SelectOp(condition.ssa, a.ssa, b.ssa, flags))

    def cast(
        self,
        operand: Value,
        element: Attribute,
        *,
        unsigned_source: bool = False,
        unsigned_result: bool = False,
    ) -> Value:
        if operand.element_type == element:
            return operand
        flags = self.fastmath if operand.is_float and isinstance(element, AnyFloat) else NO_FLAGS
        return self._emit(
            tile.CastOp(
                operand.ssa,
                element,
                unsigned_source=unsigned_source,
                unsigned_result=unsigned_result,
                fastmath=flags,
            )
        )

    def unary(self, kind: str, operand: Value) -> Value:
        """A ``math`` op by name: exp log sqrt absf tanh ..."""
        return self._emit(_UNARY_MATH[kind](operand.ssa, self.fastmath))

    def exp(self, operand: Value, *, upper_bounded: bool = False) -> Value:
        """e^x. ``upper_bounded`` promises x <= 64 or NaN: the same bits for less work."""
        result = self.unary("exp", operand)
        if upper_bounded:
            op = result.ssa.owner
            assert isinstance(op, Operation)
            op.attributes[UPPER_BOUNDED] = UnitAttr()
        return result

    def log(self, operand: Value) -> Value:
        return self.unary("log", operand)

    def reduce(
        self, kind: str, operand: Value, axis: int = 0, lanes: int | None = None, count: Value | None = None
    ) -> Value:
        """``tile.reduce`` of the first ``count`` elements (all); the result of a block of rank 1 is a scalar."""
        flags = self.fastmath if operand.is_float else NO_FLAGS
        return self._emit(tile.ReduceOp(kind, operand.ssa, axis, lanes, flags, None if count is None else count.ssa))

    def dot(
        self, a: Value, b: Value, acc: Value, *, counts: Sequence[Value | int] = (), fused: bool | None = None
    ) -> Value:
        """``acc + a @ b``, a chain of fma along k; ``fused`` None leaves that to ``fp_contract``.

        ``counts``: how many rows, columns and k take part; all if there are none.
        """
        fused = self.fp_contract != "off" if fused is None else fused
        parts = self._indices(counts)
        return self._emit(tile.DotOp(a.ssa, b.ssa, acc.ssa, counts=parts, fused=fused, fastmath=self.fastmath))

    def top_merge(self, top_values: Value, top_indices: Value, values: Value, indices: Value) -> tuple[Value, Value]:
        op = tile.TopMergeOp(top_values.ssa, top_indices.ssa, values.ssa, indices.ssa)
        self.insert(op)
        return Value(self, op.merged_values), Value(self, op.merged_indices)

    def check(self, condition: Value, message: str, *values: Value, is_bounds: bool = False) -> None:
        """Fails the execution with ``message`` where ``condition`` is false (see ``tile.check``)."""
        self.insert(tile.CheckOp(condition.ssa, message, [value.ssa for value in values], is_bounds=is_bounds))

    def print(self, text: str, values: Sequence[Value] = (), dtypes: Sequence[DType] = ()) -> None:
        """Shows ``text`` with values in the places of its ``{}`` (see ``tile.print``)."""
        self.insert(tile.PrintOp(text, [value.ssa for value in values], dtypes))
