"""Control flow on values of a kernel: what ``if``, ``for`` and ``while`` cannot do while it is traced.

A condition or bound that is a Python number is decided at once, as Python's own statements would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from halfulp.compiler import DType, GraphTypeError
from halfulp.compiler.tile_builder import Value

from . import tree
from .elementwise import common_shape
from .errors import fault
from .promotion import promote
from .tracing import INT32_RANGE, Array, as_array, as_index, broadcast, cast, current_trace, index_array, plain


def _condition(value: Any, subject: str) -> bool | Value:
    """A condition: decided, or an i1 of the kernel."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return bool(value)
    array = as_array(value, subject)
    if array.shape:
        raise fault(
            f"{subject}: the condition must be a scalar, not {array!r}; reduce it with jnp.any or jnp.all",
            GraphTypeError,
        )
    return plain(cast(array, DType.bool)).value


def when(condition: Any) -> Callable[[Callable[[], Any]], None]:
    """Runs the decorated function only where ``condition`` holds; its name becomes None.

    ::

        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)

    Raises:
        GraphTypeError: the condition is no scalar, or the function returns a value.
    """

    def run(function: Callable[[], Any]) -> None:
        decided = _condition(condition, "pl.when")
        if isinstance(decided, bool):
            if decided:
                _without_result(function)
            return
        current_trace("pl.when").builder.if_(decided, lambda: _without_result(function))

    return run


def _without_result(function: Callable[[], Any]) -> None:
    result = function()
    if result is not None:
        raise fault(
            f"the function under pl.when must return None, not {result!r}; store what it computes, or use pl.cond",
            GraphTypeError,
        )


def cond(condition: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """``true_fun(*operands)`` where the condition holds, else ``false_fun(*operands)``; only one of them runs.

    Both must return values of the same form, shapes and types.

    Raises:
        GraphTypeError: they do not.
    """
    decided = _condition(condition, "pl.cond")
    if isinstance(decided, bool):
        return (true_fun if decided else false_fun)(*operands)
    k = current_trace("pl.cond").builder
    forms: list[Any] = []
    carried: list[list[Array]] = []
    types = _joined_types("pl.cond", [_types_of(true_fun, operands), _types_of(false_fun, operands)])

    def branch(function: Callable[..., Any]) -> Callable[[], list[Value]]:
        def build() -> list[Value]:
            result = function(*operands)
            forms.append(result)
            values = [plain(as_array(leaf, "pl.cond")) for leaf in tree.leaves(result)]
            carried.append(values)
            return [_as_type(value, wanted).value for value, wanted in zip(values, types, strict=True)]

        return build

    results = k.if_(decided, branch(true_fun), branch(false_fun))
    arrays = [Array(value, dtype, shape) for value, (dtype, shape) in zip(results, types, strict=True)]
    return tree.rebuild(forms[0], arrays)


Type = tuple[DType, tuple[int, ...]]


def _types_of(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, list[Array]]:
    """What a function returns, found by building it aside; what it builds is thrown away."""
    k = current_trace("a branch").builder
    aside = Block()
    with k.at(aside):
        result = function(*arguments)
        values = [plain(as_array(leaf, "a branch")) for leaf in tree.leaves(result)]
    for op in reversed(list(aside.ops)):
        op.detach()
        op.erase(safe_erase=False)
    return result, values


def _joined_types(subject: str, branches: Sequence[tuple[Any, list[Array]]]) -> list[Type]:
    """The types that both branches can give: equal, but for weak ones."""
    (first, these), (second, those) = branches
    if tree.first_difference(first, second, lambda _: False) is not None or len(these) != len(those):
        raise fault(
            f"{subject}: both functions must return values of one form, not {first!r} and {second!r}", GraphTypeError
        )
    types: list[Type] = []
    for place, (one, other) in enumerate(zip(these, those, strict=True)):
        dtype, _ = promote([(one.dtype, one.weak), (other.dtype, other.weak)])
        if one.shape != other.shape or any(a.dtype is not dtype and not a.weak for a in (one, other)):
            raise fault(
                f"{subject}: both functions must return values of one type, but value {place} is {one!r} in one and "
                f"{other!r} in the other; convert with .astype or broadcast",
                GraphTypeError,
            )
        types.append((dtype, one.shape))
    return types


def _as_type(value: Array, wanted: Type) -> Array:
    dtype, shape = wanted
    return broadcast(plain(cast(value, dtype)), shape)


class _Carry:
    """What a loop carries from round to round: a tree of values with fixed types."""

    def __init__(self, subject: str, init: Any) -> None:
        self.subject = subject
        self.form = init
        self.init = [plain(as_array(leaf, f"{subject}: the carried value")) for leaf in tree.leaves(init)]
        self.types: list[Type] = [(value.dtype, value.shape) for value in self.init]

    def settle(self, next_values: Callable[[Any], Any]) -> None:
        """Lets weak initial values take the type of what the body makes of them."""
        if not any(value.weak for value in self.init):
            return
        for _ in range(2):  # a second value may follow the first
            _, values = _types_of(lambda: next_values(self.rebuilt(self._stand_ins())), ())
            if len(values) != len(self.types):
                return
            for place, (initial, value) in enumerate(zip(self.init, values, strict=True)):
                if initial.weak:
                    shape = common_shape(self.subject, [initial.shape, value.shape])
                    self.types[place] = (promote([(initial.dtype, True), (value.dtype, value.weak)])[0], shape)

    def _stand_ins(self) -> list[Array]:
        return [
            Array(_as_type(value, wanted).value, *wanted, weak=value.weak)
            for value, wanted in zip(self.init, self.types, strict=True)
        ]

    def rebuilt(self, arrays: Sequence[Array]) -> Any:
        return tree.rebuild(self.form, arrays)

    def arrays(self, values: Sequence[Value]) -> Any:
        """The tree of carried values."""
        return self.rebuilt([Array(v, dtype, shape) for v, (dtype, shape) in zip(values, self.types, strict=True)])

    def initial(self) -> list[Value]:
        return [_as_type(value, wanted).value for value, wanted in zip(self.init, self.types, strict=True)]

    def checked(self, result: Any) -> list[Value]:
        """What the body returned, which must have the types carried."""
        if tree.first_difference(self.form, result, lambda _: False) is not None:
            raise fault(
                f"{self.subject}: the body must return what it is given, {_form_text(self.form)}, not "
                f"{_form_text(result)}",
                GraphTypeError,
            )
        values = [plain(as_array(leaf, f"{self.subject}: the carried value")) for leaf in tree.leaves(result)]
        for place, (value, (dtype, shape)) in enumerate(zip(values, self.types, strict=True)):
            fits = value.shape == shape or (value.weak and not value.shape)
            if not fits or (value.dtype is not dtype and not value.weak):
                raise fault(
                    f"{self.subject}: carried value {place} starts as a value of type "
                    f"{dtype}[{','.join(map(str, shape))}], but the body returns {value!r}; convert one of them",
                    GraphTypeError,
                )
        return [_as_type(value, wanted).value for value, wanted in zip(values, self.types, strict=True)]


def _form_text(form: Any) -> str:
    return f"a {type(form).__name__} of {len(form)}" if isinstance(form, tuple | list | dict) else "one value"


def _bound(value: Any, subject: str) -> int | Array:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    array = as_array(value, subject)
    if array.shape or not array.dtype.is_integral:
        raise fault(f"{subject}: a bound must be an int or an integer scalar, not {array!r}", GraphTypeError)
    return array


def _range_of(bound: int | Array) -> tuple[int, int]:
    if isinstance(bound, int):
        return bound, bound
    return bound.bounds or INT32_RANGE


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any, *, unroll: Any = None) -> Any:
    """``for i in range(lower, upper): carry = body(i, carry)``; returns the last carry.

    Args:
        lower, upper: ints or integer scalars of the kernel.
        body: gets the index, an int32 scalar, and the carry; returns the next carry, of the same form and types.
        init: the first carry: a value, or a tuple, list or dict of them, or None.
        unroll: accepted for the sake of kernels written for JAX; changes nothing.

    Raises:
        GraphTypeError: a bound is no integer, or the carry changes its form or type.
    """
    k = current_trace("pl.fori_loop").builder
    first, last = (_bound(value, "pl.fori_loop") for value in (lower, upper))
    low, high = _range_of(first)[0], max(_range_of(last)[1] - 1, _range_of(first)[0])
    carry = _Carry("pl.fori_loop", init)

    def round_at(index: Value, carried: Any) -> Any:
        return body(index_array(index, low, high), carried)

    carry.settle(lambda carried: round_at(k.index(low), carried))
    results = k.for_loop(
        _loop_bound(first),
        _loop_bound(last),
        carry.initial(),
        lambda index, *values: carry.checked(round_at(index, carry.arrays(values))),
    )
    return carry.arrays(results)


def _loop_bound(bound: int | Array) -> int | Value:
    return bound if isinstance(bound, int) else as_index(bound)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """``while cond_fun(carry): carry = body_fun(carry)``; returns the last carry.

    Raises:
        GraphTypeError: the condition is no scalar, or the carry changes its form or type.
    """
    k = current_trace("pl.while_loop").builder
    carry = _Carry("pl.while_loop", init)
    carry.settle(body_fun)

    def holds(*values: Value) -> Value:
        decided = _condition(cond_fun(carry.arrays(values)), "pl.while_loop")
        return decided if isinstance(decided, Value) else k.constant(decided, DType.bool.to_element_type())

    results = k.while_loop(carry.initial(), holds, lambda *values: carry.checked(body_fun(carry.arrays(values))))
    return carry.arrays(results)


def check(condition: Any, message: str, *values: Any) -> None:
    """Fails the call where ``condition`` does not hold, with the message of the first such program of the grid.

    Each ``{}`` of the message takes one integer scalar of ``values``; there may be four.

    Raises:
        GraphError: the message does not have a ``{}`` for each value.
        GraphTypeError: the condition is no scalar, or a value is no integer.
    """
    decided = _condition(condition, "pl.check")
    k = current_trace("pl.check").builder
    if message.count("{}") != len(values) or len(values) > 4:
        raise fault(f"pl.check: the message has {message.count('{}')} of {{}} for {len(values)} values (at most 4)")
    integers = []
    for value in values:
        array = as_array(value, "pl.check")
        if array.shape or array.dtype.is_float:
            raise fault(f"pl.check: a value in the message must be an integer scalar, not {array!r}", GraphTypeError)
        integers.append(k.value(as_index(array), IndexType()))
    if isinstance(decided, bool):
        decided = k.constant(decided, DType.bool.to_element_type())
    k.check(decided, message, *integers)
