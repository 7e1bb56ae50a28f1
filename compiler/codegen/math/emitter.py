"""The operations an elementary function may be built from, as a protocol over any kind of value.

An expansion is a function ``expand(e, x) -> y`` that calls the methods of an :class:`Emitter`; it never looks inside a
value. The same definition thus emits tile IR, LLVM text or PTX, and computes with numpy. Every operation is correctly
rounded, round to nearest even, with subnormals kept, or exact; so all targets give the same bits (NaN payloads aside).

Every ``fma`` in an expansion belongs to the algorithm: an emitter must neither split it nor fuse a ``mul`` with an
``add``, whatever ``fp_contract`` says.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeVar

ElementType = Literal["i1", "i32", "i64", "f32", "f64"]

FloatPredicate = Literal[
    "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "uno", "ueq", "ugt", "uge", "ult", "ule", "une"
]
IntegerPredicate = Literal["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]

V = TypeVar("V")


class Emitter(Protocol[V]):
    """Emits one operation per call on values of type ``V``: blocks, vectors or scalars, all of one shape."""

    def constant(self, value: float, like: V, type: ElementType | None = None) -> V:
        """``value`` in every element, shaped as ``like``; ``type`` defaults to the element type of ``like``.

        A float is given exactly: it is representable in ``type``. An integer is taken modulo 2^width.
        """

    def add(self, a: V, b: V) -> V:
        """a + b, floats."""

    def sub(self, a: V, b: V) -> V:
        """a - b, floats."""

    def mul(self, a: V, b: V) -> V:
        """a * b, floats."""

    def div(self, a: V, b: V) -> V:
        """a / b, floats, correctly rounded."""

    def fma(self, a: V, b: V, c: V) -> V:
        """a * b + c with one rounding."""

    def sqrt(self, a: V) -> V:
        """The square root, correctly rounded; NaN below -0."""

    def neg(self, a: V) -> V:
        """a with its sign bit inverted."""

    def abs(self, a: V) -> V:
        """a with its sign bit cleared."""

    def copysign(self, magnitude: V, sign: V) -> V:
        """``magnitude`` with the sign bit of ``sign``."""

    def iadd(self, a: V, b: V) -> V:
        """a + b modulo 2^width, integers."""

    def isub(self, a: V, b: V) -> V:
        """a - b modulo 2^width, integers."""

    def iand(self, a: V, b: V) -> V:
        """Bitwise and, of integers or of i1."""

    def ior(self, a: V, b: V) -> V:
        """Bitwise or, of integers or of i1."""

    def ixor(self, a: V, b: V) -> V:
        """Bitwise exclusive or, of integers or of i1."""

    def shl(self, a: V, count: int) -> V:
        """a * 2^count modulo 2^width; 0 <= count < width."""

    def lshr(self, a: V, count: int) -> V:
        """Logical shift to the right; 0 <= count < width."""

    def ashr(self, a: V, count: int) -> V:
        """Arithmetic shift to the right; 0 <= count < width."""

    def compare(self, predicate: FloatPredicate | IntegerPredicate, a: V, b: V) -> V:
        """An i1 per element; predicates are those of ``arith.cmpf`` and ``arith.cmpi``."""

    def select(self, condition: V, a: V, b: V) -> V:
        """a where the i1 ``condition`` holds, else b."""

    def bitcast(self, a: V, type: ElementType) -> V:
        """The same bits as another type of the same width."""

    def cast(self, a: V, type: ElementType) -> V:
        """The same number as another type, rounded to nearest even.

        The pairs in use: f32 -> f64, f64 -> f32, i32 -> f32.
        """

    def scale(self, value: V, power: V) -> V | None:
        """value * 2^power with one rounding, ``power`` an integral float in [-2200, 2200], if the target has such an
        instruction (AVX-512: ``vscalef``); None where it has none. Both ways give the same bits."""
