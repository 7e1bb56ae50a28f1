"""Functions of `halfulp.ops.pallas.numpy` that are one op of the IR or of the library, made from its name.

``name`` is numpy's, with which errors begin; ``op`` is ours, the same unless it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from .elementwise import arithmetic, bitwise, compare, library
from .tracing import Array

Unary: TypeAlias = Callable[[Any], Array]
Binary: TypeAlias = Callable[[Any, Any], Array]


def of_reals(name: str, doc: str, *, op: str | None = None) -> Unary:
    """A function of real numbers; integers are computed in float32."""

    def function(x: Any) -> Array:
        return library(op or name, f"jnp.{name}", x, floats=True)

    return _named(function, name, doc)


def of_two(name: str, doc: str, *, op: str) -> Binary:
    """An op of the library on two operands of one type."""

    def function(x: Any, y: Any) -> Array:
        return library(op, f"jnp.{name}", x, y)

    return _named(function, name, doc)


def arithmetic_of(name: str, doc: str, *, op: str) -> Binary:
    """Arithmetic of numbers and bools."""
    return _binary(arithmetic, name, doc, op)


def comparison_of(name: str, doc: str, *, op: str) -> Binary:
    """A comparison."""
    return _binary(compare, name, doc, op)


def bits_of(name: str, doc: str, *, op: str) -> Binary:
    """Bits of integers, or logic of bools."""
    return _binary(bitwise, name, doc, op)


def _binary(make: Callable[[str, str, Any, Any], Array], name: str, doc: str, op: str) -> Binary:
    def function(x: Any, y: Any) -> Array:
        return make(op, f"jnp.{name}", x, y)

    return _named(function, name, doc)


Function = TypeVar("Function", Unary, Binary)


def _named(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
