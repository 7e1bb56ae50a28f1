"""Emits loops IR: index arithmetic that folds constants, vectors or scalars by lane count, structured loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.arith import CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from ...dialects import vector_ext
from ...dialects.tile.compute import NO_FLAGS

Index = int | SSAValue
"""An index that is known, or computed."""

LoopBody = Callable[[Index, list[SSAValue]], Sequence[SSAValue]]
"""Emits one round of a loop, given its counter and the carried values; gives the next carried values."""

Constant = FloatAttr[AnyFloat] | IntegerAttr[IntegerType | IndexType] | DenseIntOrFPElementsAttr

INDEX = IndexType()
CACHE_LINE = 64
MOST = (1 << 63) - 1
"""The largest index."""


def wrapped(value: int) -> int:
    """``value`` as an index: index arithmetic is modulo 2^64, as that of the machine."""
    return (value + MOST + 1) % (1 << 64) - MOST - 1


@cache
def bytes_of(element: Attribute) -> int:
    """What an element takes in memory."""
    width = 64 if isinstance(element, IndexType) else element.bitwidth if isinstance(element, FixedBitwidthType) else 8
    return (width + 7) // 8


def vector_of(element: Attribute, lanes: int) -> Attribute:
    """``vector<lanes x element>``; one lane is the scalar type itself."""
    return element if lanes == 1 else VectorType(element, [lanes])


def lanes_of(value_type: Attribute) -> int:
    """Lanes of a vector type, 1 of a scalar type."""
    return value_type.get_shape()[0] if isinstance(value_type, VectorType) else 1


@cache
def _predicate(predicate: str) -> IntegerAttr[IntegerType]:
    return IntegerAttr(CMPI_COMPARISON_OPERATIONS.index(predicate), i64)


@cache
def _cast_kind(kind: str) -> vector_ext.CastKindAttr:
    return vector_ext.CastKindAttr(vector_ext.CastKind(kind))


class LoopBuilder:
    """Emits at a movable point of one function. Constants go to the top of its entry block, each once."""

    def __init__(self, entry: Block) -> None:
        self._entry = entry
        self._blocks = [entry]
        self._constants: dict[tuple[object, Attribute, int], SSAValue] = {}
        self._most: dict[SSAValue, int] = {}
        self.frame_bytes = 0
        self.allocate_large: Callable[[Attribute, int], SSAValue | None] = lambda element, size: None
        """Memory for what is too large for the frame; None if it is not."""

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Emits at the end of ``block`` inside the ``with``."""
        self._blocks.append(block)
        try:
            yield
        finally:
            self._blocks.pop()

    def insert(self, op: Operation) -> Operation:
        self._blocks[-1].add_op(op)
        return op

    def emit(self, op: Operation) -> SSAValue:
        """Adds ``op`` and gives its only result."""
        return self.insert(op).results[0]

    # -- constants

    def _constant(self, key: tuple[object, Attribute, int], make: Callable[[], Constant]) -> SSAValue:
        if key not in self._constants:
            value = make()
            op = arith.ConstantOp.create(properties={"value": value}, result_types=[value.get_type()])
            first = self._entry.first_op
            if first is None:
                self._entry.add_op(op)
            else:
                self._entry.insert_op_before(op, first)
            self._constants[key] = op.results[0]
        return self._constants[key]

    def scalar(self, value: int | float, element: Attribute) -> SSAValue:
        """A constant of a scalar type."""

        def make() -> Constant:
            if isinstance(element, AnyFloat):
                return FloatAttr(float(value), element)
            if isinstance(element, IntegerType):
                return IntegerAttr(int(value), element, truncate_bits=True)
            return IntegerAttr(int(value), INDEX)

        return self._constant((_bits(value), element, 1), make)

    def constant(self, value: int | float, element: Attribute, lanes: int) -> SSAValue:
        """A constant with every lane equal."""
        if lanes == 1:
            return self.scalar(value, element)
        return self._constant((_bits(value), element, lanes), lambda: _dense([value] * lanes, element))

    def dense(self, values: Sequence[int | float], element: Attribute) -> SSAValue:
        """A constant vector."""
        return self._constant((tuple(map(_bits, values)), element, 0), lambda: _dense(values, element))

    def ssa(self, index: Index) -> SSAValue:
        return self.scalar(index, INDEX) if isinstance(index, int) else index

    # -- index arithmetic

    def mark_natural(self, index: Index, most: int = MOST) -> None:
        """Says that ``index`` is never negative and at most ``most``: a program id, an extent, a loop counter."""
        if not isinstance(index, int):
            self._most[index] = most

    def most(self, index: Index) -> int | None:
        """The largest value that ``index`` may have, if it is known not to be negative; None if it is not."""
        if isinstance(index, int):
            return index if index >= 0 else None
        return self._most.get(index)

    def is_natural(self, index: Index) -> bool:
        """Whether ``index`` is known not to be negative."""
        return self.most(index) is not None

    def _below(self, upper: Index) -> int:
        """The largest number below ``upper`` that a loop may count to."""
        most = self.most(upper)
        return MOST if most is None else max(most - 1, 0)

    def _index_op(self, op: type[Operation], a: Index, b: Index, most: int | None = None) -> SSAValue:
        """An op whose result lies in 0 .. ``most``; None, or more than an index can hold: it may be negative."""
        result = self.emit(op.create(operands=[self.ssa(a), self.ssa(b)], result_types=[INDEX]))
        if most is not None and most <= MOST:
            self.mark_natural(result, most)
        return result

    def _mosts(self, a: Index, b: Index) -> tuple[int, int] | None:
        first, second = self.most(a), self.most(b)
        return None if first is None or second is None else (first, second)

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return wrapped(a + b)
        if a == 0:
            return b
        mosts = self._mosts(a, b)
        return a if b == 0 else self._index_op(arith.AddiOp, a, b, mosts and sum(mosts))

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return wrapped(a - b)
        return a if b == 0 else self._index_op(arith.SubiOp, a, b)

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return wrapped(a * b)
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        mosts = self._mosts(a, b)
        return a if b == 1 else self._index_op(arith.MuliOp, a, b, mosts and mosts[0] * mosts[1])

    def div(self, a: Index, b: Index) -> Index:
        """``a // b`` of indices that are not negative, b positive."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        most = self.most(a)
        if isinstance(b, int) and most is not None:
            most //= b
        return a if b == 1 else self._index_op(arith.DivUIOp, a, b, most)

    def rem(self, a: Index, b: Index) -> Index:
        """``a % b`` of indices that are not negative, b positive."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        mosts = self._mosts(a, b)
        return 0 if b == 1 else self._index_op(arith.RemUIOp, a, b, mosts and min(mosts))

    def min(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        mosts = self._mosts(a, b)
        return self._index_op(arith.MinSIOp, a, b, mosts and min(mosts))

    def max(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        if b == 0 and self.is_natural(a):
            return a
        if a == 0 and self.is_natural(b):
            return b
        mosts = self._mosts(a, b)
        natural = self.is_natural(a) or self.is_natural(b)
        return self._index_op(arith.MaxSIOp, a, b, max(mosts) if mosts else MOST if natural else None)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Compares integers, of one lane or many."""
        properties = {"predicate": _predicate(predicate)}
        result = vector_of(i1, lanes_of(a.type))
        return self.emit(vector_ext.CmpIOp.create(operands=[a, b], properties=properties, result_types=[result]))

    def binary(
        self, op: type[Operation], a: SSAValue, b: SSAValue, properties: Mapping[str, Attribute] | None = None
    ) -> SSAValue:
        """An op of two operands whose result has their type. ``create`` is five times as fast as a constructor."""
        return self.emit(op.create(operands=[a, b], result_types=[a.type], properties=properties or {}))

    def both(self, conditions: Sequence[SSAValue]) -> SSAValue | None:
        """The conjunction of i1 values; None if there are none."""
        result: SSAValue | None = None
        for condition in conditions:
            result = condition if result is None else self.emit(arith.AndIOp(result, condition))
        return result

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(
            vector_ext.SelectOp.create(
                operands=[condition, a, b], properties={"fastmath": NO_FLAGS}, result_types=[a.type]
            )
        )

    def cast(
        self,
        value: SSAValue,
        kind: str,
        element: Attribute,
        lanes: int = 1,
        flags: FastMathFlagsAttr = NO_FLAGS,
    ) -> SSAValue:
        """A ``vector_ext.cast`` to ``element``."""
        return self.emit(
            vector_ext.CastOp.create(
                operands=[value],
                properties={"kind": _cast_kind(kind), "fastmath": flags},
                result_types=[vector_of(element, lanes)],
            )
        )

    # -- vectors and memory

    def splat(self, scalar: SSAValue, lanes: int) -> SSAValue:
        if lanes == 1:
            return scalar
        return self.emit(vector.BroadcastOp.create(operands=[scalar], result_types=[vector_of(scalar.type, lanes)]))

    def shuffle(self, first: SSAValue, second: SSAValue, lanes: Sequence[int]) -> SSAValue:
        """The given lanes of ``first`` and, counted on behind them, of ``second``."""
        assert isinstance(first.type, VectorType)
        return self.emit(
            vector.ShuffleOp.build(
                operands=[first, second],
                properties={"mask": DenseArrayBase.from_list(i64, list(lanes))},
                result_types=[VectorType(first.type.element_type, [len(lanes)])],
            )
        )

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
            return self.emit(memref.LoadOp.create(operands=[memory, *at], result_types=[element]))
        return self.emit(vector.LoadOp.create(operands=[memory, *at], result_types=[vector_of(element, lanes)]))

    def store(self, value: SSAValue, memory: SSAValue, index: Index) -> None:
        at = [self.ssa(index)]
        if isinstance(value.type, VectorType):
            self.insert(vector.StoreOp.create(operands=[value, memory, *at]))
        else:
            self.insert(memref.StoreOp.create(operands=[value, memory, *at]))

    def prefetch(self, memory: SSAValue, index: Index) -> None:
        """Asks for the cache line of an element that is read soon. It need not exist."""
        self.insert(vector_ext.PrefetchOp(memory, self.ssa(index)))

    def alloca(self, element: Attribute, size: int) -> SSAValue:
        """Memory of the function's frame, on a cache line; large blocks lie elsewhere."""
        large = self.allocate_large(element, size)
        if large is not None:
            return large
        self.frame_bytes += size * bytes_of(element)
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
        body: LoopBody,
    ) -> list[SSAValue]:
        """``scf.for``; a loop known to run once is emitted straight, one known to run never not at all.

        ``step`` is positive, and ``upper + step`` is an index: the counter does not overflow.
        """
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            if upper <= lower:
                return list(carried)
            if upper - lower <= step:
                return list(body(lower, list(carried)))
        block = Block(arg_types=[INDEX, *[value.type for value in carried]])
        if self.is_natural(lower) and self.is_natural(step):
            self.mark_natural(block.args[0], self._below(upper))
        with self.at(block):
            self.insert(scf.YieldOp(*body(block.args[0], list(block.args[1:]))))
        bounds = (self.ssa(lower), self.ssa(upper), self.ssa(step))
        return list(self.insert(scf.ForOp(*bounds, list(carried), Region(block))).results)

    def counted_loop(
        self, lower: Index, upper: Index, step: Index, carried: Sequence[SSAValue], body: LoopBody
    ) -> list[SSAValue]:
        """A loop with any bounds: where the counter could overflow, rounds are counted instead.

        Raises DiagnosticException for a step that is not positive; one known at run time only runs no round then.
        """
        if isinstance(step, int):
            if step <= 0:
                raise DiagnosticException(f"scf.for: the step must be positive, not {step}")
            most = upper if isinstance(upper, int) else self.most(upper)
            if step == 1 or (most is not None and most + step <= MOST):
                return self.loop(lower, upper, step, carried, body)

        def one(count: Index, values: list[SSAValue]) -> Sequence[SSAValue]:
            counter = self.add(lower, self.mul(count, step))
            if self.is_natural(lower) and self.is_natural(step):
                self.mark_natural(counter, self._below(upper))
            return body(counter, values)

        return self.loop(0, self._rounds(lower, upper, step), 1, carried, one)

    def _rounds(self, lower: Index, upper: Index, step: Index) -> Index:
        """How often a loop runs; the distance of its bounds is an unsigned number."""
        lower, upper, step = self.ssa(lower), self.ssa(upper), self.ssa(step)
        runs = [self.compare("slt", lower, upper), self.compare("sgt", step, self.ssa(0))]
        last = self.div(self.sub(self.sub(upper, lower), 1), self.max(step, 1))
        condition = self.both(runs)
        assert condition is not None
        rounds = self.select(condition, self.ssa(self.add(last, 1)), self.ssa(0))
        self.mark_natural(rounds)
        return rounds

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


def _bits(value: int | float) -> object:
    """A key that tells -0.0 from 0.0 and knows a NaN again."""
    return value if isinstance(value, int) else value.hex()


def _dense(values: Sequence[int | float], element: Attribute) -> DenseIntOrFPElementsAttr:
    assert isinstance(element, AnyFloat | IntegerType | IndexType)
    vector_type: VectorType[Any] = VectorType(element, [len(values)])
    return DenseIntOrFPElementsAttr.from_list(vector_type, list(values))
