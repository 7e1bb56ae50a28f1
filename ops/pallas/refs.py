"""References: what a kernel reads its operands from and writes its outputs to.

``ref[index]`` loads, ``ref[index] = value`` stores, ``ref.at[index]`` is a reference to a part. A reference is to the
block of the running program; what of it lies outside the array reads as the pad (NaN, the least signed integer, 0,
False), and what is stored there is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halfulp.compiler import DType, GraphTypeError
from halfulp.compiler.dialects.tile import DYNAMIC
from halfulp.compiler.tile_builder import Value

from .errors import fault
from .indexing import At, IndexParser, Picked, Range
from .operators import ArrayOperators
from .picking import Pick
from .shaping import reshaped
from .tracing import INT32_RANGE, Array, as_array, broadcast, cast, constant, index_array, plain


def pad_of(dtype: DType) -> float | int:
    """What elements outside of an array read as, and what memory that nothing was written to holds."""
    if dtype.is_float:
        return float("nan")
    return dtype.integer_range[0] if dtype.kind == "signed" else 0


class Ref(ArrayOperators):
    """A reference to a block in memory.

    Attributes:
        name: the parameter of the kernel, for messages.
        value: the reference in the IR; one of no axes is one element along one axis there.
        dtype: the element type.
        inside: whether all of the block is known to lie in its array.
    """

    __slots__ = ("_rank", "dtype", "inside", "name", "value")

    def __init__(self, name: str, value: Value, rank: int, dtype: DType, *, inside: bool = False) -> None:
        self.name = name
        self.value = value
        self.dtype = dtype
        self.inside = inside
        self._rank = rank

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each axis: an int, or an int32 scalar where only the run knows it."""
        if self._rank == 0:
            return ()
        k = self.value.builder
        sizes = enumerate(self.value.shape)
        return tuple(index_array(k.dim(self.value, a), 0, INT32_RANGE[1]) if n == DYNAMIC else n for a, n in sizes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._rank

    @property
    def size(self) -> Any:
        """The number of elements."""
        total: Any = 1
        for n in self.shape:
            total = total * n
        return total

    @property
    def at(self) -> _Parts:
        """``ref.at[index]`` is a reference to a part."""
        return _Parts(self)

    def __getitem__(self, index: Any) -> Array:
        return load(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        store(self, index, value)

    def __repr__(self) -> str:
        return f"Ref({self.name!r}, {self.dtype}[{','.join(map(str, self.value.shape[: self._rank]))}])"

    def part(self, selections: Sequence[At | Range]) -> Ref:
        """The reference to what ``selections`` say, whole spans of the ranges."""
        rank = sum(isinstance(s, Range) for s in selections)
        inside = self.inside and all(isinstance(s, At) or s.inside for s in selections)
        if self._rank == 0 or self._is_all(selections):
            return Ref(self.name, self.value, rank, self.dtype, inside=inside)
        starts = [s.index if isinstance(s, At) else s.start for s in selections]
        sizes = [1 if isinstance(s, At) else s.span for s in selections]
        squeezed = [a for a, s in enumerate(selections) if isinstance(s, At)]
        if len(squeezed) == len(sizes):
            squeezed.pop()
        window = self.value.builder.window(self.value, starts, sizes, indexing="element", squeezed=squeezed)
        return Ref(self.name, window, rank, self.dtype, inside=inside)

    def _is_all(self, selections: Sequence[At | Range]) -> bool:
        return all(
            isinstance(s, Range) and isinstance(s.start, int) and (s.start, s.span) == (0, n)
            for s, n in zip(selections, self.value.shape, strict=True)
        )

    def load_all(self, mask: Array | None = None, other: Value | int | float | None = None) -> Array:
        """All of the block; ``other``, by default the pad, where it is masked off or outside."""
        if other is None and not self.inside:
            other = pad_of(self.dtype)
        physical = self.value.shape
        mask_value = None if mask is None else reshaped(mask, physical).value
        loaded = Array(self.value.builder.load(self.value, other, mask_value), self.dtype, physical)
        return loaded if self._rank else reshaped(loaded, ())

    def store_all(self, value: Array, mask: Array | None = None) -> None:
        """Stores a block of the reference's own shape, where it is not masked off or outside."""
        physical = self.value.shape
        mask_value = None if mask is None else reshaped(mask, physical).value
        self.value.builder.store(reshaped(plain(value), physical).value, self.value, mask_value)


class _Parts:
    """What ``ref.at`` gives."""

    def __init__(self, ref: Ref) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> Ref:
        ref = self._ref
        selections = IndexParser(ref.name, ref.shape).parse(index)
        parts = [s for s in selections if isinstance(s, At | Range)]
        if len(parts) < len(selections) or any(isinstance(s, Range) and s.stride > 1 for s in parts):
            raise fault(
                f"{ref.name}.at[...] takes ints, slices of step 1 and pl.ds, not index blocks or steps; "
                f"load with {ref.name}[...] instead",
                GraphTypeError,
            )
        return ref.part(parts)


def _result_shape(selections: Sequence[At | Range]) -> tuple[int, ...]:
    return tuple(s.size for s in selections if isinstance(s, Range))


def _ref_of(ref: Any, function: str) -> Ref:
    if not isinstance(ref, Ref):
        raise fault(f"{function} takes a reference of the kernel first, not {ref!r}", GraphTypeError)
    return ref


def _mask_of(mask: Any, shape: tuple[int, ...], function: str) -> Array | None:
    if mask is None:
        return None
    array = as_array(mask, f"{function}: mask")
    if array.dtype is not DType.bool:
        raise fault(f"{function}: mask must hold bools, not {array.dtype}", GraphTypeError)
    tail = shape[len(shape) - array.ndim :]
    if array.ndim > len(shape) or any(own not in (1, n) for own, n in zip(array.shape, tail, strict=True)):
        raise fault(
            f"{function}: Cannot broadcast mask shape {list(array.shape)} to the shape {list(shape)} of the value"
        )
    return broadcast(array, shape)


def load(ref: Any, index: Any, *, mask: Any = None, other: Any = None) -> Array:
    """The elements of ``ref`` that ``index`` selects, as a snapshot.

    Args:
        ref: a reference of the kernel.
        index: ints and integer scalars, slices, `pl.ds`, ``...`` and integer blocks, as in numpy. A negative index
            counts from the end; one that is out of range takes the nearest element.
        mask: which elements are wanted; broadcasts to the shape of the result.
        other: what the others are, and those that lie outside of the array: with it, a slice may reach beyond the
            reference. Without it a mask changes nothing.

    Raises:
        GraphError, GraphTypeError: an index, a mask or ``other`` that does not fit.
    """
    target = _ref_of(ref, "pl.load")
    reaches_beyond = mask is not None or other is not None
    selections = IndexParser(target.name, target.shape, masked=reaches_beyond).parse(index)
    if any(isinstance(s, Picked) for s in selections):
        result = Pick(target, selections, masked=mask is not None).load()
        return _replaced(result, _mask_of(mask, result.shape, "pl.load"), other)
    parts = [s for s in selections if isinstance(s, At | Range)]
    shape = _result_shape(parts)
    condition = None if other is None else _mask_of(mask, shape, "pl.load")
    filler = None if other is None else _filler(target, other)
    steps = [s.stride for s in parts if isinstance(s, Range)]
    if any(step > 1 for step in steps):
        spans = target.part(parts).load_all(None, filler)
        taken = spans.value.builder.slice(spans.value, [0] * len(steps), shape, steps)
        return _replaced(Array(taken, target.dtype, shape), condition, other)
    if filler is None and condition is not None:  # another block in its place
        return _replaced(target.part(parts).load_all(), condition, other)
    return target.part(parts).load_all(condition, filler)


def _filler(ref: Ref, other: Any) -> Value | None:
    """A scalar in the type of the reference; None for a block."""
    number = _number(ref, other)
    return None if number.shape else number.value


def _number(ref: Ref, number: Any) -> Array:
    """A number in the type of the reference."""
    if isinstance(number, bool | int | float):
        return plain(constant(number, ref.dtype))
    return cast(plain(as_array(number, "pl.load: other")), ref.dtype)


def _replaced(value: Array, mask: Array | None, other: Any) -> Array:
    if mask is None or other is None:
        return value
    from .elementwise import select

    return cast(select(mask, value, other, "pl.load"), value.dtype)


def store(ref: Any, index: Any, value: Any, *, mask: Any = None) -> None:
    """Writes ``value`` to the elements of ``ref`` that ``index`` selects and ``mask`` does not leave out.

    The value must have exactly the shape and the type of what it replaces; nothing is broadcast or converted. Of
    several elements for one place the last one counts. Indices as in `load`, but of an integer block, those out of
    range are dropped.

    Raises:
        GraphError, GraphTypeError: an index, the value or the mask does not fit.
    """
    target = _ref_of(ref, "pl.store")
    selections = IndexParser(target.name, target.shape, masked=mask is not None).parse(index)
    parts = [s for s in selections if isinstance(s, At | Range)]
    if len(parts) < len(selections) or any(isinstance(s, Range) and s.stride > 1 for s in parts):
        pick = Pick(target, selections, masked=mask is not None)
        stored = _checked_value(target, value, pick.shape)
        pick.store(stored, _mask_of(mask, pick.shape, "pl.store"))
        return
    shape = _result_shape(parts)
    stored = _checked_value(target, value, shape)
    target.part(parts).store_all(stored, _mask_of(mask, shape, "pl.store"))


def _checked_value(ref: Ref, value: Any, shape: tuple[int, ...]) -> Array:
    if isinstance(value, Ref):
        raise fault(
            f"Cannot store a Ref into another Ref ({value.name!r} into {ref.name!r}). Did you forget to load from it "
            "using `[...]`?"
        )
    array = (
        _literal(ref, value) if isinstance(value, bool | int | float) else as_array(value, f"{ref.name}[...] = value")
    )
    if array.shape != shape:
        raise fault(
            f"Invalid shape for `swap`: {ref.name}[...] has shape {list(shape)}, and the value {list(array.shape)}; "
            "reshape the value, or repeat it with jnp.broadcast_to or jnp.full"
        )
    if array.dtype is not ref.dtype:
        raise fault(
            f"Invalid dtype for `swap`. Ref dtype: {ref.dtype}. Value dtype: {array.dtype}. "
            f"Convert the value: .astype({ref.name}.dtype)"
        )
    return array


def _literal(ref: Ref, value: bool | int | float) -> Array:
    """A Python number in the type of the reference, if it is of the same kind."""
    same_kind = (
        ref.dtype is DType.bool
        if isinstance(value, bool)
        else ref.dtype.is_integral
        if isinstance(value, int)
        else ref.dtype.is_float
    )
    return constant(value, ref.dtype) if same_kind else as_array(value, "a store")


def swap(ref: Any, index: Any, value: Any, *, mask: Any = None) -> Array:
    """`store`; returns what was there before."""
    old = load(ref, index)
    store(ref, index, value, mask=mask)
    return old
