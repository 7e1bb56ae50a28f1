"""Dims: canonical forms are proofs, so each must agree with integer arithmetic and two ways of writing must meet."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfulp.compiler.dims import AlgebraicDim, Dim, StaticDim, SymbolicDim, ceil_div, fold, parse_dim
from halfulp.compiler.errors import GraphError, GraphTypeError

a, b, c, n = (Dim(name) for name in "abcn")


def test_kinds_follow_the_value() -> None:
    assert type(Dim(3)) is StaticDim
    assert type(Dim("n")) is SymbolicDim
    assert type(n + 1) is AlgebraicDim
    assert type(n + 1 - 1) is SymbolicDim
    assert type(n - n) is StaticDim
    assert Dim(n) is n
    assert Dim(np.int64(5)) == 5
    assert StaticDim(3) == Dim(3)
    assert SymbolicDim("n") == n
    assert AlgebraicDim(n + 1) == n + 1


def test_equality_with_ints_and_names() -> None:
    assert a == "a"
    assert a != "b"
    assert Dim(3) == 3
    assert Dim(3) != 4
    assert a != 3
    assert a + 1 != "a + 1"  # only a symbol equals text
    assert {a: 1}["a"] == 1  # type: ignore[index]
    assert {3: 1}[Dim(3)] == 1  # type: ignore[index]
    assert "a" in (Dim("b"), a)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (a + b, b + a),
        (a * (b + 2), 2 * a + b * a),
        (a * b // b, a),
        (3 * a // 3, a),
        ((a + b) * (a - b), a * a - b * b),
        ((a * b + a) // (b + 1), a),
        ((4 * a + n + 5) // 4, a + 1 + (n + 1) // 4),
        (a // 2 // 3, a // 6),
        (a // b // c, a // (b * c)),
        ((a // 2 + 1) // 3, (a + 2) // 6),
        ((2 * a + 3) // 4, (a + 1) // 2),
        (a // 2 * 2 + a % 2, a),
        (a // b * b + a % b, a),
        (ceil_div(n, 128), (n + 127) // 128),
        (-(-n // 128), (n + 127) // 128),
        (ceil_div(n, 2), (n + 1) // 2),
        (ceil_div(n, b), (n + b - 1) // b),
        (ceil_div(n // 4, 2), (n // 4 + 1) // 2),
        ((-a * c - 1) // (b * c), -1 - a // b),
        (a // -2, -ceil_div(a, 2)),
        (n**3, n * n * n),
        (n**0, Dim(1)),
        (2 * a // (2 * b), a // b),
        (-(0 - a), a),
        (+a, a),
        (7 - a + a, Dim(7)),
        (5 // n * n + 5 % n, Dim(5)),
    ],
)
def test_equal_expressions_meet(left: Dim, right: Dim) -> None:
    assert left == right
    assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("left", "right"), [(a, b), (a + 1, a), (a // 2 * 2, a), (a // 2, ceil_div(a, 2)), (a * a, 2 * a), (5 // a, a // 5)]
)
def test_expressions_that_differ_somewhere_are_not_equal(left: Dim, right: Dim) -> None:
    assert left != right


def test_static_dims_round_down_as_python_does() -> None:
    for x in range(-9, 10):
        for y in (-4, -3, -1, 1, 2, 5):
            assert Dim(x) // y == x // y
            assert x // Dim(y) == x // y
            assert Dim(x) % Dim(y) == x % y


@pytest.mark.parametrize(
    ("dim", "text", "representation"),
    [
        (a + 1, "a + 1", "Dim('a') + Dim(1)"),
        (2 * Dim("seq") + 1, "2*seq + 1", "Dim(2) * Dim('seq') + Dim(1)"),
        (a - 1, "a - 1", "Dim('a') - Dim(1)"),
        (b - a, "b - a", "Dim('b') - Dim('a')"),
        (-a, "-a", "-Dim('a')"),
        (-2 * a, "-2*a", "Dim(-2) * Dim('a')"),
        (Dim(-4), "-4", "Dim(-4)"),
        (n // 4, "n // 4", "Dim('n') // Dim(4)"),
        (-(n // 4), "-(n // 4)", "-(Dim('n') // Dim(4))"),
        ((n + 3) // 4 * 4, "4*((n + 3) // 4)", "Dim(4) * ((Dim('n') + Dim(3)) // Dim(4))"),
        (a * a * b, "a*a*b", "Dim('a') * Dim('a') * Dim('b')"),
        (b // (a + b), "b // (a + b)", "Dim('b') // (Dim('a') + Dim('b'))"),
    ],
)
def test_text(dim: Dim, text: str, representation: str) -> None:
    assert str(dim) == text
    assert repr(dim) == representation
    assert parse_dim(text) == dim
    assert eval(representation) == dim


def test_int_range_and_truth_need_a_static_dim() -> None:
    assert list(range(Dim(3))) == [0, 1, 2]
    assert int(Dim(7)) == 7
    assert Dim(7)
    assert not Dim(0)
    message = (
        r"^dim 'n \+ 1' has no value while the graph is built; int\(\) and range\(\) need a static dim\. "
        r"Compute with the dim itself, or fix the size in the input's type$"
    )
    for needs_a_value in (int, range):
        with pytest.raises(TypeError, match=message):
            needs_a_value(n + 1)
    with pytest.raises(TypeError, match=r"^dim 'n' has no value while the graph is built, so it is neither true nor"):
        bool(n)


def test_evaluate() -> None:
    dim = (2 * n + 1) // 4 * b - 3 % n
    assert dim.symbols == ("b", "n")
    assert dim.evaluate({"n": 7, "b": 5, "unused": 1}) == (2 * 7 + 1) // 4 * 5 - 3 % 7
    assert Dim(6).evaluate({}) == 6
    with pytest.raises(LookupError, match=r"^dim 'a \+ n' needs a value for symbol 'n'; there are values for 'a'"):
        (a + n).evaluate({"a": 1, "x": 2})
    with pytest.raises(ZeroDivisionError, match=r"^dim 'a // n' divides by 0 where a = 4, n = 0$"):
        (a // n).evaluate({"a": 4, "n": 0})
    assert (a * n // n).evaluate({"a": 4, "n": 0}) == 4  # what cancels is not evaluated


def test_substitute_puts_dims_in_place_of_symbols() -> None:
    assert (2 * n + b // n).substitute({"n": a + 1, "b": 8}) == 2 * a + 2 + 8 // (a + 1)


def test_fold_computes_in_another_arithmetic() -> None:
    text = fold((2 * n + 1) // a + b, str, str.upper, "({} + {})".format, "{}*{}".format, "floordiv({}, {})".format)
    assert text == "(B + floordiv((2*N + 1), A))"
    assert fold(n - n, str, str, str.__add__, str.__add__, str.__add__) == "0"


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError, match=r"^dim 'n' is divided by 0$"):
        n // 0
    with pytest.raises(ZeroDivisionError, match=r"^dim '3' is divided by 0$"):
        3 % Dim(0)


@pytest.mark.parametrize("name", ["", "2n", "n+1", "a b", "é", "a-b", "n\n"])
def test_bad_name_is_refused(name: str) -> None:
    with pytest.raises(GraphError) as error:
        Dim(name)
    assert str(error.value) == (
        "a symbol's name must consist of letters, digits and '_', and not start with a digit, "
        f"not {name!r}; for an expression write arithmetic, such as Dim('n') + 1"
    )


@pytest.mark.parametrize("value", [None, 1.5, True, [1]])
def test_other_values_are_no_dims(value: Any) -> None:
    with pytest.raises(GraphTypeError, match=r"^a dim must be an int, a symbol's name or a Dim, not "):
        Dim(value)
    for operation in (operator.add, operator.floordiv, operator.mod, operator.sub):
        with pytest.raises(TypeError, match=r"^unsupported operand type"):
            operation(n, value)


def test_algebraic_dims_come_from_arithmetic() -> None:
    with pytest.raises(GraphTypeError, match=r"^AlgebraicDim comes from arithmetic such as Dim\('n'\) \+ 1, not from "):
        AlgebraicDim(n)
    with pytest.raises(GraphError, match=r"^the exponent of dim 'n' must be an int of at least 0, not -1$"):
        n**-1


@pytest.mark.parametrize("text", ["", "n +", "(n", "n)", "2n", "n $ 2", "* n", "n // * 2", "n 2", "¹"])
def test_parse_refuses_what_is_no_dim(text: str) -> None:
    with pytest.raises(GraphError, match=r"; a dim is made of ints, names, \+ - \* // % and parentheses$") as error:
        parse_dim(text)
    assert error.value.message.startswith(f"dim {text!r} is wrong at ")


def test_parse_refuses_division_by_zero() -> None:
    with pytest.raises(GraphError, match=r"^dim 'n // \(2 - 2\)' divides by 0$"):
        parse_dim("n // (2 - 2)")


def test_copies_and_pickles_are_equal() -> None:
    for dim in (Dim(3), n, (n + 3) // 4):
        for twin in (copy.copy(dim), copy.deepcopy(dim), pickle.loads(pickle.dumps(dim))):
            assert twin == dim
            assert type(twin) is type(dim)


# Random expressions, written as text so that Python itself is the reference for evaluation.

_LEAVES = st.sampled_from(["a", "b", "n"]) | st.integers(0, 9).map(str)
_DIVISORS = st.sampled_from(["a", "b", "(b + 1)", "(a*b)", "(2*n)"]) | st.integers(1, 9).map(str)


def _extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sums = st.tuples(inner, st.sampled_from("+-*"), inner).map("({0[0]} {0[1]} {0[2]})".format)
    divisions = st.tuples(inner, st.sampled_from(["//", "%"]), _DIVISORS).map("({0[0]} {0[1]} {0[2]})".format)
    ceilings = st.tuples(inner, _DIVISORS).map("-(-{0[0]} // {0[1]})".format)
    return sums | divisions | ceilings


_EXPRESSIONS = st.recursive(_LEAVES, _extend, max_leaves=8)
_SIZES = st.fixed_dictionaries({name: st.integers(1, 12) for name in "abn"})


def _value(text: str, sizes: dict[str, int]) -> int:
    return int(eval(text, {}, dict(sizes)))


def _dim(text: str) -> Dim:
    return Dim(eval(text, {}, {name: Dim(name) for name in "abn"}))


# This also makes ``==`` sound: equal dims have the same canonical form.
@given(_EXPRESSIONS, _SIZES)
def test_canonical_form_keeps_the_value(text: str, sizes: dict[str, int]) -> None:
    assert _dim(text).evaluate(sizes) == _value(text, sizes)


@given(_EXPRESSIONS)
def test_text_is_parsed_back(text: str) -> None:
    dim = _dim(text)
    assert parse_dim(str(dim)) == dim
    assert parse_dim(text) == dim


@given(_EXPRESSIONS, _EXPRESSIONS, _EXPRESSIONS)
def test_ring_laws_are_proved(x: str, y: str, z: str) -> None:
    p, q, r = _dim(x), _dim(y), _dim(z)
    assert p + q == q + p
    assert p * q == q * p
    assert (p + q) * r == p * r + q * r
    assert (p + q) - q == p


@given(_EXPRESSIONS, _DIVISORS)
def test_division_laws_are_proved(x: str, y: str) -> None:
    p, q = _dim(x), _dim(y)
    assert p * q // q == p
    assert p // q * q + p % q == p
    assert -(-p // q) == (p + q - 1) // q
    assert (p + 3 * q) // q == p // q + 3
