"""The values of a group of fused ops at one block: maps by their recipes, values from outside by loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from ...dialects import graph
from ...dims import Dim, StaticDim
from ...registry import find_op
from ...tile_builder import KernelBuilder, Value
from .access import Positions, call_of, resolve
from .entry import adopt_numerics
from .group import FusedGroup


class Evaluation(ABC):
    """Evaluates values of a group where a program stands; each value once.

    Args:
        group: the ops.
        k: the kernel.
        refs: the kernel's references for values from outside and for outputs.
        offsets: the kernel's values for the offsets of views that are no numbers.
        fp_contract: the mode of ops that have none of their own.
    """

    def __init__(
        self,
        group: FusedGroup,
        k: KernelBuilder,
        refs: Mapping[SSAValue, Value],
        offsets: Mapping[Dim, Value],
        fp_contract: str,
    ) -> None:
        self.group, self.k, self.refs, self.offsets, self.fp_contract = group, k, refs, offsets, fp_contract
        self.known: dict[SSAValue, Value] = {}

    @property
    @abstractmethod
    def block_shape(self) -> Sequence[int]:
        """The shape of the blocks of now."""

    @abstractmethod
    def _load(self, value: SSAValue, positions: Positions) -> Value:
        """The block of a value from outside; a scalar if all its elements are one."""

    def evaluate(self, value: SSAValue) -> Value:
        """The block of ``value`` here; a scalar if all its elements are one."""
        if value not in self.known:
            op = value.owner
            if isinstance(op, graph.ApplyOp) and op in self.group.inside:
                self.known[value] = self._compute(op)
            else:
                self.known[value] = self._load(*resolve(value, self.group.positions(value), self.group.inside))
        return self.known[value]

    def whole(self, value: Value) -> Value:
        """A block; a scalar is repeated."""
        return value if value.shape else self.k.splat(value, self.block_shape)

    def _compute(self, op: graph.ApplyOp) -> Value:
        definition = find_op(op.callee.data, op.subject)
        operands = [self.evaluate(operand) for operand in op.arguments]
        if definition.kind == "view":
            return operands[0]
        assert definition.recipe is not None
        adopt_numerics(self.k, op, self.fp_contract)
        if any(operand.shape for operand in operands):
            operands = [self.whole(operand) for operand in operands]
        result = definition.recipe(self.k, call_of(definition, op), *operands)
        assert isinstance(result, Value)
        return result

    def moved(self, at: Value | int, offset: Dim) -> Value | int:
        """An index, moved by the offset of a view."""
        start: Value | int = int(offset) if isinstance(offset, StaticDim) else self.offsets[offset]
        if isinstance(at, int) and isinstance(start, int):
            return at + start
        if isinstance(start, int):
            return at if start == 0 else at + start
        return start + at
