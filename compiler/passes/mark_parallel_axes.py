"""``mark-parallel-axes``: grid axes whose programs provably touch different memory become parallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ..dialects import tile
from ..dialects.tile.memory import BLOCKED

SEQUENTIAL = "halfulp.sequential"
"""On a kernel: its programs run in the order of the grid, whatever could be proven."""


@dataclass(frozen=True)
class MarkParallelAxesPass(ModulePass):
    """An axis is parallel if two programs that differ along it never touch one element of a buffer that is written.

    That is proven where every access to such a buffer, along one of its axes, stays in ``[c * id + k, c * id + k + n)``
    with the same c for all of them, and together they span no more than c.

    Before::

        tile.kernel @sum(%x: ..., %y: ...) grid(%i of %m, %j of %n) axes [ordered, ordered] {
          %0 = tile.window %x[%i, %j] blocked [8, 8] ...
          %1 = tile.window %y[%i] blocked [8] ...

    After, since the programs that share a block of ``%y`` differ in ``%j`` only::

        tile.kernel @sum(%x: ..., %y: ...) grid(%i of %m, %j of %n) axes [parallel, ordered] {
    """

    name = "mark-parallel-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.block.ops:
            if isinstance(kernel, tile.KernelOp) and SEQUENTIAL not in kernel.attributes and not _prints(kernel):
                mark_kernel(kernel)


def _prints(kernel: tile.KernelOp) -> bool:
    """Whether the order of its programs can be seen."""
    return any(isinstance(op, tile.PrintOp) for op in kernel.body.walk())


def mark_kernel(kernel: tile.KernelOp) -> None:
    """Marks the axes of one kernel; those that are parallel stay so."""
    if all(axis.data == tile.PARALLEL for axis in kernel.axes):
        return
    accesses = list(_accesses(kernel))
    written = {access.root for access in accesses if isinstance(access.op, tile.StoreOp) and _is_shared(access.root)}
    of_root = {root: [access for access in accesses if access.root is root] for root in written}
    words = []
    for axis, program_id in zip(kernel.axes, kernel.program_ids, strict=True):
        proven = all(_apart(of_root[root], program_id, kernel) for root in written)
        words.append(StringAttr(tile.PARALLEL) if proven else axis)
    kernel.axes = ArrayAttr(words)


def _is_shared(root: SSAValue) -> bool:
    """Whether several programs may see it: an argument. What a program allocates is its own."""
    return isinstance(root, BlockArgument)


@dataclass(frozen=True)
class _Affine:
    """``sum(coefficient * value) + constant``."""

    terms: Mapping[SSAValue, int]
    constant: int

    def plus(self, other: _Affine, factor: int = 1) -> _Affine:
        terms = dict(self.terms)
        for value, coefficient in other.terms.items():
            terms[value] = terms.get(value, 0) + factor * coefficient
        return _Affine({v: c for v, c in terms.items() if c}, self.constant + factor * other.constant)

    def times(self, factor: int) -> _Affine:
        return _Affine({}, 0).plus(self, factor)


def _affine(value: SSAValue) -> _Affine:
    """``value`` in terms of what is no sum, difference or multiple."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return _Affine({}, op.value.value.data)
    if isinstance(op, arith.AddiOp):
        return _affine(op.lhs).plus(_affine(op.rhs))
    if isinstance(op, arith.SubiOp):
        return _affine(op.lhs).plus(_affine(op.rhs), -1)
    if isinstance(op, arith.MuliOp):
        lhs, rhs = _affine(op.lhs), _affine(op.rhs)
        if not lhs.terms:
            return rhs.times(lhs.constant)
        if not rhs.terms:
            return lhs.times(rhs.constant)
    return _Affine({value: 1}, 0)


@dataclass(frozen=True)
class _Span:
    """Along one axis of a buffer, all elements from ``start`` to ``start + size``."""

    axis: int
    start: _Affine
    size: int


@dataclass(frozen=True)
class _Access:
    """A load or store, and the spans that it stays inside of."""

    op: Operation
    root: SSAValue
    spans: tuple[_Span, ...]


def _accesses(kernel: tile.KernelOp) -> Iterator[_Access]:
    for op in kernel.body.walk():
        if isinstance(op, tile.LoadOp | tile.StoreOp):
            root, spans = _spans(op.ref)
            yield _Access(op, root, tuple(spans))


def _spans(ref: SSAValue) -> tuple[SSAValue, list[_Span]]:
    """The buffer that a reference is part of, and the spans of all windows on the way to it."""
    windows: list[tile.WindowOp] = []
    while isinstance(ref.owner, tile.WindowOp):
        windows.append(ref.owner)
        ref = ref.owner.ref
    if isinstance(ref.owner, tile.FlattenOp | tile.ReinterpretOp):  # other axes; nothing is known in terms of these
        return _spans(ref.owner.ref)[0], []
    assert isinstance(ref.type, tile.RefType)
    axes = list(range(ref.type.rank))
    origin = [_Affine({}, 0)] * ref.type.rank
    spans = []
    for window in reversed(windows):
        kept = []
        for number, (axis, index, size) in enumerate(zip(axes, window.indices, window.block_shape, strict=True)):
            start = _affine(index)
            origin[axis] = origin[axis].plus(start.times(size) if window.indexing.data == BLOCKED else start)
            spans.append(_Span(axis, origin[axis], size))
            if number not in window.squeezed_axes:
                kept.append(axis)
        axes = kept
    return ref, spans


def _apart(accesses: list[_Access], program_id: SSAValue, kernel: tile.KernelOp) -> bool:
    """Whether programs that differ in ``program_id`` stay apart in one buffer."""
    common: dict[_Rest, tuple[int, int]] | None = None
    for access in accesses:
        found = _ranges(access, program_id, kernel)
        if common is None:
            common = found
        else:
            common = {
                rest: (min(common[rest][0], low), max(common[rest][1], high))
                for rest, (low, high) in found.items()
                if rest in common
            }
    return any(high - low <= abs(rest.step) for rest, (low, high) in (common or {}).items())


@dataclass(frozen=True)
class _Rest:
    """What spans must have in common: the axis, the step from one program to the next, and the other terms."""

    axis: int
    step: int
    terms: frozenset[tuple[SSAValue, int]]


def _ranges(access: _Access, program_id: SSAValue, kernel: tile.KernelOp) -> dict[_Rest, tuple[int, int]]:
    """For each kind of span, the elements from and up to which it goes, less what it has in common with others."""
    uniform = set(kernel.grid_sizes)
    ranges: dict[_Rest, tuple[int, int]] = {}
    for span in access.spans:
        terms = dict(span.start.terms)
        step = terms.pop(program_id, 0)
        if step == 0 or any(value not in uniform for value in terms):
            continue
        rest = _Rest(span.axis, step, frozenset(terms.items()))
        low, high = span.start.constant, span.start.constant + span.size
        known = ranges.get(rest)
        ranges[rest] = (low, high) if known is None else (max(low, known[0]), min(high, known[1]))
    return ranges
