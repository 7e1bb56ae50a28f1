"""Where an op with kernels of its own puts its result, and the maps behind it that are computed there.

The recipe of such an op hands over its result block by block. Behind a product of matrices, say, come a bias and an
activation: they are computed on each block before it is stored, so the product itself needs no memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from ...dialects.tile.memory import ELEMENT
from ...dims import Dim
from ...tile_builder import KernelBuilder, Value
from .access import Position, Positions
from .entry import Entry
from .evaluation import Evaluation
from .group import FusedGroup


class Destination:
    """Takes the result of one op, and computes the maps of its group.

    Args:
        entry: the entry function that is being built.
        head: the result of the op with kernels of its own.
        group: the maps behind it, and the values to store, in the space of ``head``; no maps if it is stored as it is.
    """

    def __init__(self, entry: Entry, head: SSAValue, group: FusedGroup) -> None:
        self._entry, self._head, self._group = entry, head, group
        read = dict.fromkeys(value for value, _ in group.sources()) if group.members else {}
        self._sources = [value for value in read if value is not head]
        self._offsets = group.offsets() if group.members else []
        stored = [entry.ref(value) for value in group.outputs]
        self.arguments = [*map(entry.ref, self._sources), *map(entry.dim, self._offsets), *stored]
        """What a kernel must be passed to store blocks. The last one is a reference of the result's shape."""

    def named(self, name: str) -> str:
        """The name of a kernel, with those of the maps."""
        return f"{name}_{self._group.name}" if self._group.members else name

    def store(self, k: KernelBuilder, arguments: Sequence[Value], block: Value, at: Sequence[Value | int]) -> None:
        """Stores what the group makes of a block of the result; elements outside of it are dropped.

        Args:
            k: the kernel.
            arguments: the kernel's own for ``self.arguments``, in order.
            block: along the last axes of the result.
            at: the place of its first element, along all axes.
        """
        values = [*self._sources, *self._group.outputs]
        first, last = len(self._sources), len(self._sources) + len(self._offsets)
        refs = dict(zip(values, [*arguments[:first], *arguments[last:]], strict=True))
        offsets = dict(zip(self._offsets, arguments[first:last], strict=True))
        blocks = _Blocks(self._group, k, refs, offsets, self._entry.fp_contract, at, block.shape)
        blocks.known[self._head] = block
        numerics = k.fastmath, k.fp_contract
        for value in self._group.outputs:
            blocks.store(value)
        k.fastmath, k.fp_contract = numerics


class _Blocks(Evaluation):
    """The values of a group at one block of its space, which runs along the last axes; ``at`` is where it starts."""

    def __init__(
        self,
        group: FusedGroup,
        k: KernelBuilder,
        refs: Mapping[SSAValue, Value],
        offsets: Mapping[Dim, Value],
        fp_contract: str,
        at: Sequence[Value | int],
        shape: Sequence[int],
    ) -> None:
        super().__init__(group, k, refs, offsets, fp_contract)
        self.at, self.shape = at, tuple(shape)

    @property
    def block_shape(self) -> Sequence[int]:
        return self.shape

    @property
    def lead(self) -> int:
        """How many axes of the space the block has one element of."""
        return len(self.at) - len(self.shape)

    def _load(self, value: SSAValue, positions: Positions) -> Value:
        """What lies at the block; axes that the value does not have are repeated."""
        ref = self.refs[value]
        # by the axis of the block: the axis of the value that runs along it
        along = {
            position.axis - self.lead: axis
            for axis, position in enumerate(positions)
            if position.axis is not None and position.axis >= self.lead
        }
        indices = [self._index(position) for position in positions]
        if not along:
            return self.k.read(ref, *(indices or [0]))
        sizes = {axis: self.shape[number] for number, axis in along.items()}
        squeezed = [axis for axis in range(len(positions)) if axis not in sizes]
        window_shape = [sizes.get(axis, 1) for axis in range(len(positions))]
        block = self.k.load(self.k.window(ref, indices, window_shape, indexing=ELEMENT, squeezed=squeezed))
        kept, wanted = sorted(sizes), [along[number] for number in sorted(along)]
        if kept != wanted:
            block = self.k.transpose(block, [kept.index(axis) for axis in wanted])
        return self._spread(block, sorted(along))

    def _spread(self, block: Value, numbers: Sequence[int]) -> Value:
        """The block repeated along the axes that are not among ``numbers``."""
        shape = [size if number in numbers else 1 for number, size in enumerate(self.shape)]
        if list(block.shape) != shape:
            block = self.k.reshape(block, shape)
        return block if tuple(shape) == self.shape else self.k.broadcast(block, self.shape)

    def _index(self, position: Position) -> Value | int:
        return self.moved(0 if position.axis is None else self.at[position.axis], position.offset)

    def store(self, value: SSAValue) -> None:
        """Writes a value of the group to where it lives."""
        shape = [1] * self.lead + list(self.shape)
        window = self.k.window(self.refs[value], self.at, shape, indexing=ELEMENT, squeezed=range(self.lead))
        self.k.store(self.whole(self.evaluate(value)), window)
