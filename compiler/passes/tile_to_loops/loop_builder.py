"""Emits loops IR: index arithmetic that folds constants, vectors or scalars by lane count, structured loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects import vector_ext

Index = int | SSAValue
"""An index that is known, or computed."""

Constant = FloatAttr[AnyFloat] | IntegerAttr[IntegerType | IndexType] | DenseIntOrFPElementsAttr

INDEX = IndexType()
CACHE_LINE = 64


def vector_of(element: Attribute, lanes: int) -> Attribute:
    """``vector<lanes x element>``; one lane is the scalar type itself."""
    return element if lanes == 1 else VectorType(element, [lanes])


class LoopBuilder:
    """Emits at a movable point of one function. Constants go to the top of its entry block, each once."""

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._builders = [Builder(InsertPoint.at_end(entry))]
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}
        self._natural: set[SSAValue] = set()

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Emits at the end of ``block`` inside the ``with``."""
        self._builders.append(Builder(InsertPoint.at_end(block)))
        try:
            yield
        finally:
            self._builders.pop()

    def insert(self, op: Operation) -> Operation:
        return self._builders[-1].insert(op)

    def emit(self, op: Operation) -> SSAValue:
        """Adds ``op`` and gives its only result."""
        return self.insert(op).results[0]

    # -- constants

    def _constant(self, value: Constant, value_type: Attribute) -> SSAValue:
        key = (value, value_type)
        if key not in self._constants:
            op = arith.ConstantOp(value, value_type)
            first = self._entry.first_op
            if first is None:
                self._entry.add_op(op)
            else:
                self._entry.insert_op_before(op, first)
            self._constants[key] = op.result
        return self._constants[key]

    def scalar(self, value: int | float, element: Attribute) -> SSAValue:
        """A constant of a scalar type."""
        if isinstance(element, AnyFloat):
            return self._constant(FloatAttr(float(value), element), element)
        if isinstance(element, IntegerType):
            return self._constant(IntegerAttr(int(value), element, truncate_bits=True), element)
        return self._constant(IntegerAttr(int(value), INDEX), INDEX)

    def constant(self, value: int | float, element: Attribute, lanes: int) -> SSAValue:
        """A constant with every lane equal."""
        return self.dense([value] * lanes, element) if lanes > 1 else self.scalar(value, element)

    def dense(self, values: Sequence[int | float], element: Attribute) -> SSAValue:
        """A constant vector."""
        assert isinstance(element, AnyFloat | IntegerType | IndexType)
        vector_type: VectorType[Any] = VectorType(element, [len(values)])
        return self._constant(DenseIntOrFPElementsAttr.from_list(vector_type, list(values)), vector_type)

    def ssa(self, index: Index) -> SSAValue:
        return self.scalar(index, INDEX) if isinstance(index, int) else index

    # -- index arithmetic

    def mark_natural(self, index: Index) -> None:
        """Says that ``index`` is never negative: a program id, an extent, a loop counter from 0 up."""
        if not isinstance(index, int):
            self._natural.add(index)

    def is_natural(self, index: Index) -> bool:
        """Whether ``index`` is known not to be negative."""
        return index >= 0 if isinstance(index, int) else index in self._natural

    def _index_op(self, op: type[Operation], a: Index, b: Index) -> SSAValue:
        result = self.emit(op.create(operands=[self.ssa(a), self.ssa(b)], result_types=[INDEX]))
        if op is not arith.SubiOp and self.is_natural(a) and self.is_natural(b):
            self._natural.add(result)
        return result

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self._index_op(arith.AddiOp, a, b)

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self._index_op(arith.SubiOp, a, b)

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        return a if b == 1 else self._index_op(arith.MuliOp, a, b)

    def div(self, a: Index, b: Index) -> Index:
        """``a // b`` of indices that are not negative, b positive."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if b == 1 else self._index_op(arith.DivUIOp, a, b)

    def rem(self, a: Index, b: Index) -> Index:
        """``a % b`` of indices that are not negative, b positive."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return 0 if b == 1 else self._index_op(arith.RemUIOp, a, b)

    def min(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self._index_op(arith.MinSIOp, a, b)

    def max(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        result = self._index_op(arith.MaxSIOp, a, b)
        if self.is_natural(a) or self.is_natural(b):
            self.mark_natural(result)
        return result

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(vector_ext.CmpIOp(predicate, a, b))

    def both(self, conditions: Sequence[SSAValue]) -> SSAValue | None:
        """The conjunction of i1 values; None if there are none."""
        result: SSAValue | None = None
        for condition in conditions:
            result = condition if result is None else self.emit(arith.AndIOp(result, condition))
        return result

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(vector_ext.SelectOp(condition, a, b))

    # -- vectors and memory

    def splat(self, scalar: SSAValue, lanes: int) -> SSAValue:
        return scalar if lanes == 1 else self.emit(vector.BroadcastOp(scalar, VectorType(scalar.type, [lanes])))

    def lane_mask(self, count: Index, lanes: int) -> SSAValue:
        """i1 lanes, true for the first ``count`` (which may be negative or more than ``lanes``)."""
        if isinstance(count, int):
            bits = [int(lane < count) for lane in range(lanes)]
            return self.dense(bits, i1) if lanes > 1 else self.scalar(bits[0], i1)
        if lanes == 1:
            return self.compare("sgt", count, self.ssa(0))
        i32 = IntegerType(32)
        clamped = self.ssa(self.max(self.min(count, lanes), 0))
        narrow = self.emit(vector_ext.CastOp(clamped, "index_cast", i32))
        return self.compare("slt", self.dense(range(lanes), i32), self.splat(narrow, lanes))

    def load(self, memory: SSAValue, index: Index, lanes: int) -> SSAValue:
        """Consecutive elements of flat memory."""
        at = [self.ssa(index)]
        element = _element(memory)
        if lanes == 1:
            return self.emit(memref.LoadOp.get(memory, at))
        return self.emit(vector.LoadOp(memory, at, VectorType(element, [lanes])))

    def store(self, value: SSAValue, memory: SSAValue, index: Index) -> None:
        at = [self.ssa(index)]
        if isinstance(value.type, VectorType):
            self.insert(vector.StoreOp(value, memory, at))
        else:
            self.insert(memref.StoreOp.get(value, memory, at))

    def alloca(self, element: Attribute, size: int) -> SSAValue:
        """Memory of the function's frame, on a cache line."""
        kind = MemRefType(element, [size])
        op = memref.AllocaOp.get(element, alignment=CACHE_LINE, shape=[size])
        assert op.results[0].type == kind
        return self.emit(op)

    # -- control

    def loop(
        self,
        lower: Index,
        upper: Index,
        step: Index,
        carried: Sequence[SSAValue],
        body: Callable[[Index, list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """``scf.for``; a loop known to run once is emitted straight, one known to run never not at all."""
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            if upper <= lower:
                return list(carried)
            if upper - lower <= step:
                return list(body(lower, list(carried)))
        block = Block(arg_types=[INDEX, *[value.type for value in carried]])
        if self.is_natural(lower):
            self.mark_natural(block.args[0])
        with self.at(block):
            self.insert(scf.YieldOp(*body(block.args[0], list(block.args[1:]))))
        bounds = (self.ssa(lower), self.ssa(upper), self.ssa(step))
        return list(self.insert(scf.ForOp(*bounds, list(carried), Region(block))).results)

    def nest(self, extents: Sequence[int], body: Callable[[tuple[Index, ...]], None]) -> None:
        """Runs ``body`` at every point of a box, row-major."""

        def level(prefix: tuple[Index, ...]) -> None:
            if len(prefix) == len(extents):
                body(prefix)
                return

            def one(index: Index, _: list[SSAValue]) -> Sequence[SSAValue]:
                level((*prefix, index))
                return ()

            self.loop(0, extents[len(prefix)], 1, (), one)

        level(())

    def if_(
        self,
        condition: SSAValue,
        types: Sequence[Attribute],
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]] | None = None,
    ) -> list[SSAValue]:
        def region(branch: Callable[[], Sequence[SSAValue]] | None) -> Region:
            if branch is None:
                return Region()
            block = Block()
            with self.at(block):
                self.insert(scf.YieldOp(*branch()))
            return Region(block)

        regions = region(then), region(otherwise)
        return list(self.insert(scf.IfOp(condition, list(types), *regions)).results)


def _element(memory: SSAValue) -> Attribute:
    assert isinstance(memory.type, MemRefType)
    element: Attribute = memory.type.element_type
    return element
