"""Symbolic dims: the sizes of tensor axes, known now (static), named (symbolic) or computed from named ones.

>>> seq = Dim("seq")
>>> str(2 * seq + 1), (seq * 4) // 4 == seq, Dim(-7) // 2
('2*seq + 1', True, Dim(-4))

Two dims compare equal only if they are equal for all values of their symbols, and every expression is kept in a
canonical form (`halfulp.compiler.dim_algebra`), so ``==`` is the proof that shape rules ask for. A dim equals the int
or the symbol name that it stands for: ``Dim("a") == "a"``, ``Dim(3) == 3``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, reduce
from typing import Any, SupportsIndex, TypeAlias, TypeVar, cast

from .dim_algebra import Atom, Monomial, Polynomial, Symbol
from .errors import GraphError, GraphTypeError, NotFoundError, quoted_list

DimLike: TypeAlias = "int | str | Dim"

T = TypeVar("T")
D = TypeVar("D", bound="Dim")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Dim:
    """The size of an axis. ``Dim(3)`` is a `StaticDim`, ``Dim("n")`` a `SymbolicDim`; arithmetic gives any kind.

    ``+ - * // % **`` work between dims and ints and follow Python, floor division included. Only a static dim
    converts to int; a dim that is not static has no truth value and cannot be a ``range``.

    Raises:
        GraphError: the name of a symbol is not an identifier (ASCII letters, digits, ``_``).
        GraphTypeError: the value is neither an int, a name nor a dim.
    """

    polynomial: Polynomial

    def __new__(cls, value: DimLike | SupportsIndex) -> Dim:
        if isinstance(value, Dim):
            return value
        if isinstance(value, str):
            return SymbolicDim(value)
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise GraphTypeError(f"a dim must be an int, a symbol's name or a Dim, not {value!r}")
        return StaticDim(value)

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Dim:
        return self

    def __reduce__(self) -> tuple[Callable[[Polynomial], Dim], tuple[Polynomial]]:
        return _from_polynomial, (self.polynomial,)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbols in it, sorted."""
        return tuple(sorted(set(self.polynomial.symbols())))

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        """The size where the symbols have these values.

        Raises:
            NotFoundError: a symbol has no value in ``bindings``.
            ZeroDivisionError: a divisor is 0.
        """

        def value_of(name: str) -> int:
            if name not in bindings:
                raise NotFoundError(
                    f"dim '{self}' needs a value for symbol {name!r}; there are values for {quoted_list(bindings)}"
                )
            return int(bindings[name])

        def floor_divide(numerator: int, denominator: int) -> int:
            if denominator == 0:
                raise ZeroDivisionError(f"dim '{self}' divides by 0 where {_values(self, bindings)}")
            return numerator // denominator

        return fold(self, int, value_of, int.__add__, int.__mul__, floor_divide)

    def substitute(self, dims: Mapping[str, DimLike]) -> Dim:
        """The dim with symbols replaced by dims; symbols that ``dims`` does not name stay."""

        def symbol(name: str) -> Dim:
            return Dim(dims.get(name, name))

        return fold(self, Dim, symbol, Dim.__add__, Dim.__mul__, Dim.__floordiv__)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim):
            return self.polynomial == other.polynomial
        return False

    def __hash__(self) -> int:
        return hash(self.polynomial)

    def __add__(self, other: Dim | int) -> Dim:
        return _combine(operator.add, self, other)

    def __radd__(self, other: int) -> Dim:
        return _combine(operator.add, other, self)

    def __sub__(self, other: Dim | int) -> Dim:
        return _combine(operator.sub, self, other)

    def __rsub__(self, other: int) -> Dim:
        return _combine(operator.sub, other, self)

    def __mul__(self, other: Dim | int) -> Dim:
        return _combine(operator.mul, self, other)

    def __rmul__(self, other: int) -> Dim:
        return _combine(operator.mul, other, self)

    def __floordiv__(self, other: Dim | int) -> Dim:
        return _combine(operator.floordiv, self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _combine(operator.floordiv, other, self)

    def __mod__(self, other: Dim | int) -> Dim:
        return _combine(operator.mod, self, other)

    def __rmod__(self, other: int) -> Dim:
        return _combine(operator.mod, other, self)

    def __neg__(self) -> Dim:
        return _from_polynomial(-self.polynomial)

    def __pos__(self) -> Dim:
        return self

    def __pow__(self, exponent: int) -> Dim:
        if not isinstance(exponent, int) or exponent < 0:
            raise GraphError(f"the exponent of dim '{self}' must be an int of at least 0, not {exponent!r}")
        result = Dim(1)
        for _ in range(exponent):
            result = result * self
        return result

    def __int__(self) -> int:
        raise GraphTypeError(
            f"dim '{self}' has no value while the graph is built; int() and range() need a static dim. "
            "Compute with the dim itself, or fix the size in the input's type"
        )

    def __index__(self) -> int:
        return int(self)

    def __bool__(self) -> bool:
        raise GraphTypeError(
            f"dim '{self}' has no value while the graph is built, so it is neither true nor false; compare it with =="
        )

    def __str__(self) -> str:
        return str(self.polynomial)

    def __repr__(self) -> str:
        return self.polynomial.render("Dim({!r})".format, "Dim({})".format, " * ")


class StaticDim(Dim):
    """A size known while the graph is built."""

    def __new__(cls, value: SupportsIndex) -> StaticDim:
        return _static(operator.index(value))

    @property
    def dim(self) -> int:
        """The size."""
        return self.polynomial.terms[0][1] if self.polynomial.terms else 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StaticDim):
            return self.dim == other.dim
        return isinstance(other, int) and self.dim == other

    def __hash__(self) -> int:
        return hash(self.dim)

    def __int__(self) -> int:
        return self.dim

    def __bool__(self) -> bool:
        return self.dim != 0


class SymbolicDim(Dim):
    """A size that has a name; it gets its value from the shapes of the inputs, or from a kernel that computes it."""

    def __new__(cls, name: str) -> SymbolicDim:
        return _symbolic(name)

    @property
    def name(self) -> str:
        """The name of the symbol."""
        atom = self.polynomial.as_atom
        assert isinstance(atom, Symbol)
        return atom.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.name == other
        return isinstance(other, SymbolicDim) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class AlgebraicDim(Dim):
    """A size computed from symbols, such as ``2*seq + 1``. Comes from arithmetic or from `parse_dim`."""

    def __new__(cls, value: Dim) -> AlgebraicDim:
        if not isinstance(value, AlgebraicDim):
            raise GraphTypeError(f"AlgebraicDim comes from arithmetic such as Dim('n') + 1, not from {value!r}")
        return value


def ceil_div(numerator: Dim | int, denominator: Dim | int) -> Dim:
    """``numerator / denominator`` rounded up; the denominator must be positive where it is evaluated."""
    return -(-Dim(numerator) // denominator)


def is_legal_name(name: str) -> bool:
    """Whether a symbol may have this name."""
    return _NAME.fullmatch(name) is not None


def parse_dim(text: str) -> Dim:
    """The dim written by ``str(dim)``: ints, names, ``+ - * // %`` and parentheses, with Python's precedence.

    Raises:
        GraphError: the text is no such expression.
    """
    return _DimParser(text).parse()


def fold(
    dim: Dim,
    constant: Callable[[int], T],
    symbol: Callable[[str], T],
    add: Callable[[T, T], T],
    multiply: Callable[[T, T], T],
    floor_divide: Callable[[T, T], T],
) -> T:
    """Compute a dim in any arithmetic: pass the code for a number, a symbol and the three operations.

    This is how lowering emits the code that computes a size, and how `Dim.evaluate` computes it in Python. The
    floor division must round down.
    """

    def of_polynomial(polynomial: Polynomial) -> T:
        terms = [of_term(monomial, c) for monomial, c in polynomial.terms]
        return reduce(add, terms) if terms else constant(0)

    def of_term(monomial: Monomial, coefficient: int) -> T:
        factors = [of_atom(atom) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, constant(coefficient))
        return reduce(multiply, factors)

    def of_atom(atom: Atom) -> T:
        if isinstance(atom, Symbol):
            return symbol(atom.name)
        return floor_divide(of_polynomial(atom.numerator), of_polynomial(atom.denominator))

    return of_polynomial(dim.polynomial)


def _values(dim: Dim, bindings: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {bindings[name]}" for name in dim.symbols)


def _new(cls: type[D], polynomial: Polynomial) -> D:
    dim: D = object.__new__(cls)
    dim.polynomial = polynomial
    return dim


@lru_cache(maxsize=4096)
def _static(value: int) -> StaticDim:
    return _new(StaticDim, Polynomial.constant(value))


@lru_cache(maxsize=4096)
def _symbolic(name: str) -> SymbolicDim:
    if not is_legal_name(name):
        raise GraphError(
            f"a symbol's name must consist of letters, digits and '_', and not start with a digit, not {name!r}; "
            "for an expression write arithmetic, such as Dim('n') + 1"
        )
    return _new(SymbolicDim, Polynomial.atom(Symbol(name)))


def _from_polynomial(polynomial: Polynomial) -> Dim:
    value = polynomial.as_constant
    if value is not None:
        return _static(value)
    atom = polynomial.as_atom
    if isinstance(atom, Symbol):
        return _symbolic(atom.name)
    return _new(AlgebraicDim, polynomial)


def _combine(operation: Callable[[Any, Any], Any], left: object, right: object) -> Dim:
    """Apply a polynomial operation to dims and ints. NotImplemented for anything else, as Python asks of operators."""
    sides = []
    for side in (left, right):
        if isinstance(side, Dim):
            sides.append(side.polynomial)
        elif hasattr(side, "__index__") and not isinstance(side, bool):
            sides.append(Polynomial.constant(operator.index(side)))
        else:
            return cast(Dim, NotImplemented)
    try:
        return _from_polynomial(operation(*sides))
    except ZeroDivisionError:
        raise ZeroDivisionError(f"dim '{left}' is divided by 0") from None


class _DimParser:
    """Recursive descent over ``sum := product (+- product)*``, ``product := unary ([*/%] unary)*``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = re.findall(r"\d+|[A-Za-z_]\w*|//|\S", text)
        self.position = 0

    def parse(self) -> Dim:
        dim = self.sum()
        if self.position < len(self.tokens):
            raise self.error()
        return dim

    def take(self, *expected: str) -> str | None:
        if self.position < len(self.tokens) and self.tokens[self.position] in expected:
            self.position += 1
            return self.tokens[self.position - 1]
        return None

    def sum(self) -> Dim:
        total = self.product()
        while (sign := self.take("+", "-")) is not None:
            term = self.product()
            total = total + term if sign == "+" else total - term
        return total

    def product(self) -> Dim:
        result = self.unary()
        while (sign := self.take("*", "//", "%")) is not None:
            factor = self.unary()
            if sign == "*":
                result = result * factor
            elif factor == 0:
                raise GraphError(f"dim {self.text!r} divides by 0")
            else:
                result = result // factor if sign == "//" else result % factor
        return result

    def unary(self) -> Dim:
        if self.take("-"):
            return -self.unary()
        if self.take("("):
            inner = self.sum()
            if not self.take(")"):
                raise self.error()
            return inner
        token = self.tokens[self.position] if self.position < len(self.tokens) else ""
        self.position += 1
        if token.isascii() and token.isdigit():
            return Dim(int(token))
        if not is_legal_name(token):
            self.position -= 1
            raise self.error()
        return Dim(token)

    def error(self) -> GraphError:
        at = repr(self.tokens[self.position]) if self.position < len(self.tokens) else "the end"
        return GraphError(
            f"dim {self.text!r} is wrong at {at}; a dim is made of ints, names, + - * // % and parentheses"
        )
