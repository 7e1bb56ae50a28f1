"""Integer polynomials over symbols and floor divisions, in a canonical form.

The arithmetic under `halfulp.compiler.dims`. A `Polynomial` is a sum of integer multiples of monomials; a monomial is
a product of powers of atoms; an atom is a symbol (a non-negative integer that a user named) or a floor division that
cannot be carried out. Two polynomials that are equal as objects have equal values for all values of the symbols.

Floor division rounds down, as Python's does, and is brought to a canonical form by these rules (``p // q``):

* an exact quotient is taken: ``a*b // b`` is ``a``; common factors of both sides cancel;
* the part of ``p`` that ``q`` divides is pulled out: ``(4*a + n + 5) // 4`` is ``a + 1 + (n + 1) // 4``;
* ``p // q // r`` becomes ``p // (q*r)`` where ``q`` and ``r`` are positive;
* ``floor(p/q) = -floor((-p + q - 1)/q)`` for positive ``q``: of the two forms the one with smaller coefficients stands,
  so the ways of writing a division that rounds up agree: ``-(-n // 128)`` is ``(n + 127) // 128``;
* a remainder is ``p % q = p - q*(p // q)``, hence ``n // 4 * 4 + n % 4`` is ``n``.

A division that cancels is never evaluated, so a symbol in it that is 0 at run time raises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

SortKey: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Symbol:
    """A named non-negative integer."""

    name: str

    @cached_property
    def key(self) -> SortKey:
        return (0, self.name)


@dataclass(frozen=True)
class Quotient:
    """``floor(numerator / denominator)`` that none of the rules can simplify."""

    numerator: Polynomial
    denominator: Polynomial

    @cached_property
    def key(self) -> SortKey:
        return (1, self.numerator.key, self.denominator.key)


Atom: TypeAlias = Symbol | Quotient
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]  # (atom, power) with power >= 1, sorted by the atoms' keys
ONE: Monomial = ()


def _degree(monomial: Monomial) -> int:
    return sum(power for _, power in monomial)


def _monomial_key(monomial: Monomial) -> SortKey:
    """Sorts the largest monomial first, by degree and then by powers of the atoms in their order (graded lex).

    A monomial order in the sense of polynomial division: multiplying both sides keeps it, and descending
    chains end, so `_divide` terminates.
    """
    return (-_degree(monomial), tuple((atom.key, -power) for atom, power in monomial))


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))


def _quotient(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """``monomial / divisor``, or None where the division is not exact."""
    powers = dict(monomial)
    for atom, power in divisor:
        rest = powers.get(atom, 0) - power
        if rest < 0:
            return None
        powers[atom] = rest
    return tuple((atom, power) for atom, power in powers.items() if power)


def _common_factor(monomials: Iterable[Monomial]) -> Monomial:
    first, *rest = monomials
    powers = dict(first)
    for monomial in rest:
        other = dict(monomial)
        powers = {atom: min(power, other[atom]) for atom, power in powers.items() if atom in other}
    return tuple(powers.items())


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms ``coefficient * monomial``, the largest monomial first, no coefficient 0."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(coefficients: Mapping[Monomial, int]) -> Polynomial:
        """The polynomial with these coefficients, zeros and order put right."""
        terms = [(monomial, c) for monomial, c in coefficients.items() if c]
        terms.sort(key=lambda term: _monomial_key(term[0]))
        return Polynomial(tuple(terms))

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial(((ONE, value),) if value else ())

    @staticmethod
    def atom(atom: Atom) -> Polynomial:
        return Polynomial(((((atom, 1),), 1),))

    @cached_property
    def key(self) -> SortKey:
        return tuple((_monomial_key(monomial), c) for monomial, c in self.terms)

    @property
    def as_constant(self) -> int | None:
        """The value of a polynomial without atoms, else None."""
        if not self.terms:
            return 0
        (monomial, value), *rest = self.terms
        return value if monomial == ONE and not rest else None

    @property
    def as_atom(self) -> Atom | None:
        """The atom, if the polynomial is one alone."""
        match self.terms:
            case ((((atom, 1),), 1),):
                return atom
        return None

    @property
    def is_simple(self) -> bool:
        """Whether it is a number or a symbol alone, which needs no parentheses anywhere."""
        value = self.as_constant
        return isinstance(self.as_atom, Symbol) if value is None else value >= 0

    @cached_property
    def is_nonnegative(self) -> bool:
        """Provably at least 0 (symbols are), for all values of the symbols; False when not known."""
        return all(c > 0 and all(_is_nonnegative(atom) for atom, _ in monomial) for monomial, c in self.terms)

    def symbols(self) -> Iterator[str]:
        """The names of its symbols, those inside floor divisions included; a name may come more than once."""
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                if isinstance(atom, Symbol):
                    yield atom.name
                else:
                    yield from atom.numerator.symbols()
                    yield from atom.denominator.symbols()

    def __add__(self, other: Polynomial) -> Polynomial:
        coefficients = dict(self.terms)
        for monomial, c in other.terms:
            coefficients[monomial] = coefficients.get(monomial, 0) + c
        return Polynomial.of(coefficients)

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -c) for monomial, c in self.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        coefficients: dict[Monomial, int] = {}
        for left, c in self.terms:
            for right, d in other.terms:
                monomial = _product(left, right)
                coefficients[monomial] = coefficients.get(monomial, 0) + c * d
        return Polynomial.of(coefficients)

    def __floordiv__(self, other: Polynomial) -> Polynomial:
        """Raises ZeroDivisionError where ``other`` is the constant 0."""
        if not other.terms:
            raise ZeroDivisionError(f"({self}) // 0")
        return _floor_divide(self, other)

    def __mod__(self, other: Polynomial) -> Polynomial:
        return self - other * (self // other)

    def render(self, name: Callable[[str], str], number: Callable[[int], str], times: str) -> str:
        """Text of the sum, given the text of a symbol, of a number and of the sign between factors."""
        # a sum starts with a positive term if it has one: "b - a", not "-a + b"
        first = next((i for i, (_, c) in enumerate(self.terms) if c > 0), 0)
        parts: list[str] = []
        for monomial, c in self.terms[first : first + 1] + self.terms[:first] + self.terms[first + 1 :]:
            if parts:
                parts.append(" - " if c < 0 else " + ")
                c = abs(c)
            parts.append(_render_term(monomial, c, name, number, times))
        return "".join(parts) or number(0)

    def __str__(self) -> str:
        return self.render(str, str, "*")


def _render_term(
    monomial: Monomial, coefficient: int, name: Callable[[str], str], number: Callable[[int], str], times: str
) -> str:
    is_alone = coefficient == len(monomial) == 1 and monomial[0][1] == 1
    factors = []
    for atom, power in monomial:
        if isinstance(atom, Symbol):
            text = name(atom.name)
        else:
            text = _render_quotient(atom, name, number, times)
            text = text if is_alone else f"({text})"
        factors += [text] * power
    if is_alone:
        return factors[0]
    if abs(coefficient) != 1 or not factors:
        factors.insert(0, number(coefficient))
        return times.join(factors)
    return ("-" if coefficient < 0 else "") + times.join(factors)


def _render_quotient(quotient: Quotient, name: Callable[[str], str], number: Callable[[int], str], times: str) -> str:
    sides = []
    for side in (quotient.numerator, quotient.denominator):
        text = side.render(name, number, times)
        sides.append(text if side.is_simple else f"({text})")
    return " // ".join(sides)


def _is_nonnegative(atom: Atom) -> bool:
    return isinstance(atom, Symbol) or (atom.numerator.is_nonnegative and atom.denominator.is_nonnegative)


def _without_common_factor(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Cancel what divides every term of both; the leading coefficient of the divisor becomes positive.

    Under a positive ``q`` the constant of ``p`` need not be a multiple: ``(g*x + k) // (g*q)`` is
    ``(x + k // g) // q``.
    """
    if not p.terms:
        return p, q
    if q.terms[0][1] < 0:
        p, q = -p, -q
    factor = _common_factor(monomial for monomial, _ in p.terms + q.terms)
    loose_constant = q.is_nonnegative
    content = math.gcd(*(c for m, c in p.terms if m != ONE or not loose_constant), *(c for _, c in q.terms))
    return _scaled_down(p, factor, content), _scaled_down(q, factor, content)


def _scaled_down(p: Polynomial, factor: Monomial, content: int) -> Polynomial:
    coefficients: dict[Monomial, int] = {}
    for monomial, c in p.terms:
        quotient = _quotient(monomial, factor)
        assert quotient is not None
        coefficients[quotient] = c // content
    return Polynomial.of(coefficients)


def _divide(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial]:
    """``(a, r)`` with ``p = a*q + r``, no term of ``r`` reducible by the leading term of ``q`` (coefficient > 0)."""
    lead, lead_coefficient = q.terms[0]
    whole = Polynomial(())
    rest: dict[Monomial, int] = {}
    while p.terms:
        monomial, c = p.terms[0]
        factor = _quotient(monomial, lead)
        multiple = 0 if factor is None else c // lead_coefficient
        if factor is not None and multiple:
            step = Polynomial(((factor, multiple),))
            whole += step
            p -= step * q
            monomial, c = (monomial, c - multiple * lead_coefficient)
        if c:
            rest[monomial] = c
            p -= Polynomial(((monomial, c),))
    return whole, Polynomial.of(rest)


def _floor_divide(p: Polynomial, q: Polynomial) -> Polynomial:
    p, q = _without_common_factor(p, q)
    whole, rest = _divide(p, q)
    if not rest.terms:
        return whole
    if smaller := _reduced(rest, q):
        return whole + _floor_divide(*smaller)
    if q.is_nonnegative:  # hence positive wherever the division has a value
        mirrored_whole, mirrored = _divide(q - rest - Polynomial.constant(1), q)
        if not mirrored.terms:
            return whole - mirrored_whole
        if smaller := _reduced(mirrored, q):
            return whole - mirrored_whole - _floor_divide(*smaller)
        if _preference(mirrored) < _preference(rest):
            return whole - mirrored_whole - _irreducible(mirrored, q)
    return whole + _irreducible(rest, q)


def _reduced(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """The two without their common factor, if they have one."""
    reduced = _without_common_factor(p, q)
    return None if reduced == (p, q) else reduced


def _irreducible(p: Polynomial, q: Polynomial) -> Polynomial:
    nested = _nested(p, q)
    return _floor_divide(*nested) if nested else Polynomial.atom(Quotient(p, q))


def _nested(p: Polynomial, q: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """``(n + k*d, d*q)`` if ``p`` is ``n // d + k`` with an integer k, and ``d`` and ``q`` are positive."""
    (monomial, c), *tail = p.terms
    constant = Polynomial(tuple(tail)).as_constant
    if c != 1 or constant is None or len(monomial) != 1 or not q.is_nonnegative:
        return None
    (atom, power) = monomial[0]
    if power != 1 or not isinstance(atom, Quotient) or not atom.denominator.is_nonnegative:
        return None
    numerator = atom.numerator + Polynomial.constant(constant) * atom.denominator
    return numerator, atom.denominator * q


def _preference(p: Polynomial) -> SortKey:
    """Small positive coefficients of the large monomials first."""
    return tuple((_monomial_key(monomial), c < 0, abs(c)) for monomial, c in p.terms)
