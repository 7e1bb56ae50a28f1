"""Random tile kernels for the differential tests: built op by op from hypothesis choices.

`ProgramWriter` holds the blocks and scalars in scope and writes one random statement after another: arithmetic, shapes,
windows, loads, stores, reductions, control flow. At the end it stores what is left, so that every value is observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TypeVar

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from tile_programs import DTYPES, Array, build, random_array
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    ModuleOp,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

from halfulp.compiler.tile_builder import KernelBuilder, Value

T = TypeVar("T")
INDEX = IndexType()
FLOATS: tuple[Attribute, ...] = (f32, f64)
INTEGERS: tuple[Attribute, ...] = (i8, i16, i32, i64, INDEX)
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100)
LARGE = (4095, 4096, 4097, 4160, 8193)
MOST_ELEMENTS = 9000
HUGE = (-1, -5, 2**31, 2**62 - 2, 2**62, 2**63 - 1, 2**63 - 3, -(2**63), -(2**63) + 2)


def zero_of(element: Attribute, shape: Sequence[int]) -> Attribute:
    return TensorType(element, list(shape)) if shape else element


class ProgramWriter:
    """Writes random statements into one kernel."""

    def __init__(self, draw: st.DrawFn, k: KernelBuilder, inputs: int, statements: dict[str, int]) -> None:
        self.draw, self.k = draw, k
        self.refs = list(k.arguments[:inputs])
        self.outputs = {ref.element_type: ref for ref in k.arguments[inputs:]}
        self.offsets = dict.fromkeys(self.outputs, 0)
        self.blocks: list[Value] = []
        self.scalars: list[Value] = [*k.program_ids, *k.grid_sizes]
        self.names = [name for name, weight in statements.items() for _ in range(weight)]
        self.depth = 0
        self.usual_shapes: list[tuple[int, ...]] = []
        self.usual_shapes = [self.shape() for _ in range(2)]

    # -- choices

    def choose(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(list(options)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """A block shape of few enough elements, mostly one of the usual ones, so that blocks meet each other."""
        usual = [shape for shape in self.usual_shapes if rank in (None, len(shape))]
        if usual and self.number(0, 3):
            return self.choose(usual)
        rank = rank or self.number(1, 3)
        if rank == 1 and self.number(0, 9) == 0:
            return (self.choose(LARGE),)
        shape = tuple(self.choose(SIZES) for _ in range(rank))
        return shape if prod(shape) <= MOST_ELEMENTS else shape[:1] + (2,) * (rank - 1)

    def block(self, elements: Sequence[Attribute] | None = None) -> Value:
        """A block in scope of one of these element types; a new one if there is none."""
        found = [b for b in self.blocks if elements is None or b.element_type in elements]
        if found:
            return self.choose(found)
        element = self.choose(elements or (*FLOATS, *INTEGERS))
        return self.keep(self.fresh(element, self.shape()))

    def like(self, block: Value, element: Attribute | None = None) -> Value:
        """A block of the same shape, and of ``element`` or the same type."""
        element = block.element_type if element is None else element
        found = [b for b in self.blocks if b.shape == block.shape and b.element_type == element]
        return self.choose(found) if found and self.number(0, 3) else self.fresh(element, block.shape)

    def fresh(self, element: Attribute, shape: Sequence[int]) -> Value:
        """A new block: a load, an iota, a repeated scalar or a constant."""
        kind = self.number(0, 4)
        ref = self.ref_of_rank(len(shape), element)
        if kind <= 1 and ref is not None:
            return self.load(ref, shape)
        if element in (f16, bf16):
            return self.k.cast(self.fresh(f32, shape), element)
        if kind == 2 and element not in FLOATS:
            return self.k.iota(shape, element, self.number(0, len(shape) - 1))
        if kind == 3:
            return self.k.splat(self.scalar(element), shape)
        return self.k.constant(self.literal(element), zero_of(element, shape))

    def literal(self, element: Attribute) -> int | float:
        if isinstance(element, Float32Type | Float64Type):
            return float(DTYPES[element](self.choose((0.0, -0.0, 1.0, -2.5, 1e-40, float("inf"), float("nan"), 3e9))))
        return self.number(0, 1) if element == i1 else self.choose((0, 1, -1, 3, -7, 100, -128))

    def scalar(self, element: Attribute) -> Value:
        found = [s for s in self.scalars if s.type == element]
        if found and self.number(0, 3):
            return self.choose(found)
        return self.k.constant(self.literal(element), element)

    def index(self, low: int = -2, high: int = 5) -> Value | int:
        """A window index: mostly near the start, at times out of the way or from data."""
        kind = self.number(0, 11)
        if kind == 0:
            return self.k.index(self.choose(HUGE))
        found = [s for s in self.scalars if s.type == INDEX]
        if kind <= 4 and found:
            index = self.choose(found)
            return index + self.number(-1, 3) if self.flag() else index
        return self.number(low, high)

    # -- memory

    def ref_of_rank(self, rank: int, element: Attribute) -> Value | None:
        found = [ref for ref in self.refs if ref.element_type == element and len(ref.shape) >= rank]
        return self.choose(found) if found else None

    def window(self, ref: Value, shape: Sequence[int]) -> Value:
        """A window of this shape, through another one at times; axes that the reference has more are squeezed."""
        rank = len(ref.shape)
        kept = sorted(self.draw(st.permutations(range(rank)))[: len(shape)])
        full = [1] * rank
        for axis, n in zip(kept, shape, strict=True):
            full[axis] = n
        if self.number(0, 3) == 0:
            outer = [n + self.number(0, 9) for n in full]
            indexing = self.choose(("blocked", "element"))
            ref = self.k.window(ref, [self.index() for _ in range(rank)], outer, indexing=indexing)
        blocked = self.flag()
        indices = [self.index(-1, 2) if blocked else self.index(-9, 20) for _ in range(rank)]
        squeezed = [axis for axis in range(rank) if axis not in kept]
        return self.k.window(ref, indices, full, indexing="blocked" if blocked else "element", squeezed=squeezed)

    def mask(self, shape: Sequence[int]) -> Value | None:
        if self.number(0, 2):
            return None
        found = [b for b in self.blocks if b.shape == tuple(shape) and b.element_type == i1]
        if found and self.flag():
            return self.choose(found)
        iota = self.k.iota(shape, i32, self.number(0, len(shape) - 1))
        return self.k.compare(self.choose(("lt", "gt", "ne", "ult")), iota, self.number(-1, 20))

    def load(self, ref: Value, shape: Sequence[int]) -> Value:
        other = self.scalar(ref.element_type) if ref.element_type not in (f16, bf16) and self.flag() else None
        return self.k.load(self.window(ref, shape), other, self.mask(shape))

    def store(self) -> None:
        """To any reference: later loads see it, earlier ones must not."""
        value = self.block()
        ref = self.ref_of_rank(len(value.shape), value.element_type)
        if ref is not None:
            self.k.store(value, self.window(ref, value.shape), self.mask(value.shape))

    def scratch(self) -> None:
        """A scratch reference, written in part."""
        element, shape = self.choose((f32, i32, i64, i1)), self.shape()
        self.refs.append(self.k.alloc(self.scalar(element), shape))

    def observe(self, value: Value) -> None:
        """Writes a block or scalar to the output of its type."""
        k = self.k
        if value.element_type == INDEX:
            value = k.cast(value, i64)
        value = value if value.shape else k.splat(value, [1])
        n = prod(value.shape)
        ref, offset = self.outputs[value.element_type], self.offsets[value.element_type]
        if len(value.shape) > 1:
            value = k.reshape(value, [n])
        k.store(value, k.window(ref, [offset], [n], indexing="element"))
        self.offsets[value.element_type] = offset + n

    # -- statements

    def keep(self, value: Value) -> Value:
        (self.blocks if value.shape else self.scalars).append(value)
        return value

    def new_load(self) -> None:
        ref = self.choose(self.refs)
        self.keep(self.load(ref, self.shape(self.number(1, len(ref.shape)))))

    def arithmetic(self) -> None:
        k, a = self.k, self.block((*FLOATS, *INTEGERS, i1))
        kinds: tuple[str, ...]
        if a.element_type in FLOATS:
            kinds = ("add", "sub", "mul", "div", "maximum", "minimum", "maxnum", "minnum")
        else:
            kinds = ("add", "sub", "mul", "and", "or", "xor", "maxs", "maxu", "mins", "minu")
        self.keep(k.binary(self.choose(kinds), a, self.like(a)))

    def unary(self) -> None:
        k, a = self.k, self.block(FLOATS)
        kind = self.choose(("absf", "sqrt", "floor", "ceil", "trunc", "roundeven", "exp", "log", "negf", "fma"))
        if kind == "fma":
            self.keep(k.fma(a, self.like(a), self.like(a)))
        else:
            self.keep(k.negate(a) if kind == "negf" else k.unary(kind, a))

    def scalar_math(self) -> None:
        k, element = self.k, self.choose((f32, f64, i32, i64, INDEX))
        a, b = self.scalar(element), self.scalar(element)
        if element in FLOATS:
            self.keep(k.exp(a) if self.flag() else self.choose((a + b, a * b, a - b, k.log(a))))
        else:
            kind = self.choose(("floordivs", "mods", "divu", "modu"))
            self.keep(self.choose((a + b, a * b, a - b, k.int_div(kind, a, b), k.select(a < b, a, b))))

    def cast(self) -> None:
        a, element = self.block(), self.choose((*FLOATS, *INTEGERS, i1, f16, bf16))
        unsigned = {"unsigned_source": self.flag(), "unsigned_result": self.flag()}
        self.keep(self.k.cast(a, element, **unsigned))

    def compare(self) -> None:
        a = self.block((*FLOATS, *INTEGERS))
        kinds: tuple[str, ...] = ("lt", "le", "gt", "ge", "eq", "ne")
        kinds += ("ueq", "one", "ord", "uno", "ult") if a.element_type in FLOATS else ("ult", "ule", "ugt", "uge")
        self.keep(self.k.compare(self.choose(kinds), a, self.like(a)))

    def select(self) -> None:
        a = self.block((*FLOATS, *INTEGERS, i1))
        condition = self.scalar(i1) if self.number(0, 3) == 0 else self.like(a, i1)
        self.keep(self.k.select(condition, a, self.like(a)))

    def divide(self) -> None:
        a = self.block(INTEGERS)
        if self.flag():
            self.keep(self.k.int_div(self.choose(("floordivs", "divu", "mods", "modu")), a, self.like(a)))
        else:
            self.keep(self.k.shift(self.choose(("left", "right_logical", "right_arithmetic")), a, self.like(a)))

    def lookup(self) -> None:
        entries = [float(np.float32(0.3 * n - 5)) for n in range(2 ** self.number(0, 6))]
        self.keep(self.k.lookup(self.scalar(i32) if self.number(0, 3) == 0 else self.block((i32,)), entries))

    def broadcast(self) -> None:
        k, a = self.k, self.block()
        rank = len(a.shape)
        if 1 not in a.shape:
            if rank == 3:
                return
            at = self.number(0, rank)
            a = k.reshape(a, [*a.shape[:at], 1, *a.shape[at:]])
        target = [self.choose(SIZES) if n == 1 else n for n in a.shape]
        if prod(target) <= MOST_ELEMENTS:
            self.keep(k.broadcast(a, target))

    def reshape(self) -> None:
        a = self.block()
        rest, shape = prod(a.shape), []
        for _ in range(self.number(0, 2)):
            divisors = [d for d in range(1, rest + 1) if rest % d == 0] if rest else [1]
            shape.append(self.choose(divisors))
            rest //= shape[-1]
        self.keep(self.k.reshape(a, self.draw(st.permutations([*shape, rest]))))

    def transpose(self) -> None:
        a = self.block()
        self.keep(self.k.transpose(a, self.draw(st.permutations(range(len(a.shape))))))

    def slice(self) -> None:
        a = self.block()
        starts, shape, steps = [], [], []
        for n in a.shape:
            start, step = (self.number(0, n - 1) if n else 0), self.choose((1, 1, 1, 2, 3, -1))
            most = (n - 1 - start) // step + 1 if step > 0 else start + 1
            starts.append(start)
            steps.append(step)
            shape.append(self.number(1, most) if n else 0)
        self.keep(self.k.slice(a, starts, shape, steps))

    def concat(self) -> None:
        a = self.block()
        axis, parts = self.number(0, len(a.shape) - 1), [a]
        for _ in range(self.number(0, 2)):
            shape = [*a.shape[:axis], self.choose(SIZES), *a.shape[axis + 1 :]]
            parts.append(a if self.flag() else self.fresh(a.element_type, shape))
        if sum(prod(part.shape) for part in parts) <= MOST_ELEMENTS:
            self.keep(self.k.concat(parts, axis))

    def extract(self) -> None:
        a = self.block((*FLOATS, *INTEGERS, i1))
        value = self.k.extract(a, *[self.index(0, max(n - 1, 0)) for n in a.shape])
        self.keep(value)

    def reduce(self) -> None:
        a = self.block((*FLOATS, *INTEGERS, i1))
        kinds: tuple[str, ...] = ("add", "mul", "maximum", "minimum")
        if a.element_type not in FLOATS:
            kinds = ("add", "mul", "maxs", "maxu", "mins", "minu", "and", "or", "xor")
        axis = self.number(0, len(a.shape) - 1)
        lanes = self.choose((64, 64, 1, 2, 16, 128, 1024)) if axis == len(a.shape) - 1 else 1
        count = None
        if self.number(0, 3) == 0:
            count = self.k.index(self.choose((0, 1, 3, 40, 5000, -1))) if self.flag() else self.scalar(INDEX)
        self.keep(self.k.reduce(self.choose(kinds), a, axis, lanes, count))

    def dot(self) -> None:
        k, element = self.k, self.choose((f32, f64, i32, f32))
        m, depth, n = (self.choose((1, 2, 3, 5, 8, 17, 33, 70, 0)) for _ in range(3))
        narrow = {f32: (f32, f16, bf16), f64: (f64, f32), i32: (i32, i8)}[element]
        operand = self.choose(narrow)
        a, b = self.fresh(operand, [m, depth]), self.fresh(operand, [depth, n])
        self.keep(k.dot(a, b, self.fresh(element, [m, n]), fused=self.flag()))

    def top_merge(self) -> None:
        k, element = self.k, self.choose((f32, f64, i32, i8))
        n, entries, index = self.choose((*SIZES, 4097)), self.choose((1, 2, 3, 8, 20)), self.choose((i32, i64))
        values = self.fresh(element, [n])
        least = float("-inf") if element in FLOATS else -(1 << (DTYPES[element]().itemsize * 8 - 1))
        top = k.constant(least, TensorType(element, [entries])), k.constant(2**31 - 1, TensorType(index, [entries]))
        for _ in range(self.number(1, 2)):
            top = k.top_merge(*top, values, self.fresh(index, [n]) if self.flag() else k.iota([n], index))
        for block in top:
            self.keep(block)

    def check(self) -> None:
        values = [s for s in self.scalars if s.type in (i1, i8, i16, i32, i64, INDEX)][-2:]
        condition = self.scalar(INDEX) < self.scalar(INDEX) if self.flag() else self.scalar(i1)
        self.k.check(condition, f"check {self.number(0, 99)}" + " {}" * len(values), *values)

    # -- control

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A region: what is defined inside stays inside."""
        blocks, scalars, refs = list(self.blocks), list(self.scalars), list(self.refs)
        self.depth += 1
        yield
        self.depth -= 1
        self.blocks, self.scalars, self.refs = blocks, scalars, refs

    def statements(self, least: int, most: int) -> None:
        for _ in range(self.number(least, most)):
            name = self.choose(self.names)
            if self.depth >= 2 and name in ("for_loop", "while_loop", "if_"):
                continue
            getattr(self, name)()

    def carried(self) -> list[Value]:
        values = [self.block() for _ in range(self.number(0, 2))]
        values += [self.like(value) for value in values[:1]]
        return values + [self.scalar(self.choose((f32, i32, INDEX))) for _ in range(self.number(0, 1))]

    def successors(self, arguments: Sequence[Value]) -> list[Value]:
        """Values of the types of ``arguments``: the same, swapped, computed from each other, or others in scope."""
        result = []
        for argument in arguments:
            if not argument.shape:
                result.append(self.scalar(argument.type))
                continue
            value = self.like(argument)
            if argument.element_type in (*FLOATS, *INTEGERS) and self.flag():
                value = value + self.like(argument)
            result.append(value)
        return result

    def for_loop(self) -> None:
        carried = self.carried()
        lower, step = self.number(-2, 2), self.choose((1, 1, 2, 3))
        upper: Value | int = lower + self.number(-1, 4)
        if self.flag():
            found = self.scalar(INDEX)
            upper = self.k.select(found < 4, self.k.select(found > -4, found, 3), 2)

        def body(i: Value, *arguments: Value) -> list[Value]:
            with self.scope():
                self.scalars.append(i)
                self.blocks += [a for a in arguments if a.shape]
                self.scalars += [a for a in arguments if not a.shape]
                self.statements(1, 4)
                return self.successors(arguments)

        for value in self.k.for_loop(lower, upper, carried, body, step):
            self.keep(value)

    def while_loop(self) -> None:
        carried = [self.k.index(self.number(0, 3)), *self.carried()]

        def condition(i: Value, *arguments: Value) -> Value:
            with self.scope():
                self.blocks += [a for a in arguments if a.shape]
                self.statements(0, 2)
            return i < 3

        def body(i: Value, *arguments: Value) -> list[Value]:
            with self.scope():
                self.scalars.append(i)
                self.blocks += [a for a in arguments if a.shape]
                self.statements(1, 4)
                return [i + 1, *self.successors(arguments)]

        for value in self.k.while_loop(carried, condition, body):
            self.keep(value)

    def if_(self) -> None:
        condition, like = self.scalar(i1), self.carried()
        if self.flag():
            condition = self.scalar(INDEX) < self.scalar(INDEX)

        def branch() -> list[Value]:
            with self.scope():
                self.statements(1, 4)
                return self.successors(like)

        for value in self.k.if_(condition, branch, branch):
            self.keep(value)

    def finish(self) -> None:
        """Observes the latest values, as long as the outputs have room."""
        for value in [*self.blocks[: -LATEST - 1 : -1], *self.scalars[: -LATEST - 1 : -1]]:
            element = i64 if value.element_type == INDEX else value.element_type
            if self.offsets[element] + prod(value.shape) <= OUTPUT_ELEMENTS:
                self.observe(value)


OUTPUT_ELEMENTS = 40_000
LATEST = 8
"""How many blocks, and scalars, are observed at the end."""

ELEMENTWISE = {"new_load": 2, "arithmetic": 6, "unary": 2, "cast": 4, "compare": 2, "select": 2, "divide": 3}
ELEMENTWISE |= {"lookup": 1}
SHAPES = {"new_load": 3, "broadcast": 3, "reshape": 3, "transpose": 3, "slice": 3, "concat": 3, "extract": 1}
MEMORY = {"new_load": 4, "store": 4, "scratch": 1, "arithmetic": 2, "extract": 1, "scalar_math": 1}
ORDERED_OPS = {"reduce": 4, "dot": 2, "top_merge": 2, "extract": 1, "scalar_math": 1}
CONTROL = {"for_loop": 3, "while_loop": 2, "if_": 3, "check": 1}

FAMILIES = {
    "elementwise": ELEMENTWISE,
    "shapes": {**ELEMENTWISE, **SHAPES},
    "memory": MEMORY,
    "ordered": {**MEMORY, **ORDERED_OPS},
    "control": {**MEMORY, **SHAPES, **ORDERED_OPS, **CONTROL},
}
"""Which statements kernels are made of, and how often each comes."""


class Program:
    """A module and the arrays to run it on. A failing test shows the module's text."""

    def __init__(self, module: ModuleOp, arrays: list[Array]) -> None:
        self.module, self.arrays = module, arrays

    def __repr__(self) -> str:
        return str(self.module)


@st.composite
def programs(draw: st.DrawFn, statements: dict[str, int], size: int = 12) -> Program:
    """A random kernel, launched over a random grid, and arrays to run it on."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    elements = draw(st.lists(st.sampled_from(list(DTYPES)), min_size=2, max_size=3))
    inputs = []
    for element in elements:
        extents = draw(st.lists(st.sampled_from((*SIZES, 0, 200)), min_size=1, max_size=3))
        assume(prod(extents) <= 40_000)
        inputs.append(random_array(rng, extents, element))
    outputs = [np.zeros(OUTPUT_ELEMENTS, DTYPES[element]) for element in DTYPES]
    grid = draw(st.lists(st.sampled_from((1, 1, 2, 3, 0)), max_size=3))

    def body(k: KernelBuilder) -> None:
        writer = ProgramWriter(draw, k, len(inputs), statements)
        writer.statements(size // 2, size)
        writer.finish()

    arrays = [*inputs, *outputs]
    return Program(build(arrays, grid, body, static=draw(st.booleans())), arrays)
