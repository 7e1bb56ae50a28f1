"""`vmap`: a function of arrays mapped over an axis; every `pallas_call` in it gets one more axis of the grid in front.

The kernel does not see that axis: `program_id` and `num_programs` count the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfulp.compiler import GraphTypeError, TensorValue, Weight

from . import tree
from .errors import fault

if TYPE_CHECKING:
    from .call import PallasCall


@dataclass(frozen=True, eq=False)
class Batched:
    """An array inside of a mapped function: its first axis is the mapped one, which the function does not see."""

    array: Any
    level: int

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape that the function sees."""
        return tuple(self.array.shape)[1:]

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes that the function sees."""
        return len(self.shape)


_level: ContextVar[int] = ContextVar("_level", default=0)
"""How many mapped functions are running inside each other."""


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """``function`` over an axis of its arguments, all elements in one call.

    Args:
        function: takes and returns arrays (or trees of them) and works on them with `pallas_call` alone.
        in_axes: the axis of each argument that is mapped, or None for one that is the same for all elements; an int
            for all arguments.
        out_axes: must be 0: the mapped axis of the results is the first.

    Raises:
        GraphError: no argument is mapped, or the sizes of the mapped axes differ.
    """
    if out_axes != 0:
        raise fault(f"pl.vmap: out_axes must be 0, not {out_axes!r}; transpose the result")

    def mapped(*arguments: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple | list) else (in_axes,) * len(arguments)
        if len(axes) != len(arguments):
            raise fault(f"pl.vmap: in_axes has {len(axes)} entries for {len(arguments)} arguments")
        level = _level.get() + 1
        token = _level.set(level)
        try:
            inside = [_wrapped(argument, axis, level) for argument, axis in zip(arguments, axes, strict=True)]
            _common_size(tree.leaves(inside), level)
            result = function(*inside)
        finally:
            _level.reset(token)
        leaves = tree.leaves(result)
        return tree.rebuild(result, [_unwrapped(leaf, level) for leaf in leaves])

    return mapped


def _wrapped(argument: Any, axis: int | None, level: int) -> Any:
    if axis is None:
        return argument
    return tree.rebuild(argument, [Batched(_axis_first(leaf, axis), level) for leaf in tree.leaves(argument)])


def _axis_first(array: Any, axis: int) -> Any:
    if isinstance(array, Batched):
        if axis != 0:
            raise fault("pl.vmap inside pl.vmap maps over axis 0 only; transpose the array before", GraphTypeError)
        return array
    if isinstance(array, TensorValue | Weight):
        if axis != 0:
            raise fault("pl.vmap maps a tensor of a graph over axis 0 only; transpose it before", GraphTypeError)
        return array
    return np.ascontiguousarray(np.moveaxis(np.asarray(array), axis, 0))


def _common_size(leaves: Sequence[Any], level: int) -> Any:
    sizes = {leaf.array.shape[0] for leaf in leaves if isinstance(leaf, Batched) and leaf.level == level}
    if len(sizes) != 1:
        listed = " and ".join(sorted(map(str, sizes))) or "none"
        raise fault(f"pl.vmap: the mapped axes of all arguments must have one size, not {listed}")
    return sizes.pop()


def _repeated(array: Any, size: Any) -> Any:
    if isinstance(array, Batched | TensorValue | Weight):
        raise fault(
            "pl.vmap: an input that is aliased to an output must be mapped too; broadcast it to the mapped size"
        )
    return np.ascontiguousarray(np.broadcast_to(np.asarray(array), (size, *np.shape(array))))


def _unwrapped(leaf: Any, level: int) -> Any:
    if isinstance(leaf, Batched) and leaf.level == level:
        return leaf.array
    raise fault(
        f"pl.vmap: the function must return what a pallas_call gave it, not {type(leaf).__name__}, which does not "
        "depend on a mapped argument"
    )


def call_batched(call: PallasCall, arguments: Sequence[Any]) -> Any:
    """A `pallas_call` on mapped arguments: the innermost mapping becomes an axis of its grid."""
    leaves = tree.leaves(tuple(arguments))
    level = max(leaf.level for leaf in leaves if isinstance(leaf, Batched))
    mapped = tuple(isinstance(leaf, Batched) and leaf.level == level for leaf in leaves)
    size = _common_size(leaves, level)
    inner = [leaf.array if has else leaf for leaf, has in zip(leaves, mapped, strict=True)]
    for index in call.aliases:  # an output has the mapped axis, so the input that it starts as needs it
        if not mapped[index]:
            inner[index] = _repeated(inner[index], size)
            mapped = (*mapped[:index], True, *mapped[index + 1 :])
    batched = replace(call, batch=(*call.batch, (size, mapped)))
    result = batched(*tree.rebuild(tuple(arguments), inner))
    return tree.rebuild(result, [Batched(leaf, level) for leaf in tree.leaves(result)])
