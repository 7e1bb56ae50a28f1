"""What an op of the library declares about itself: its kind, its shape rule and its recipe.

The compiler names no op. It fuses, contracts and lowers by what stands here; each op of ``ops/`` fills it in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from .dialects.graph import Parameter
    from .dims import Dim
    from .registry import ParameterSpec
    from .types import TensorType

OpKind = Literal["map", "view", "alias", "reduce", "opaque"]
ContractionRole = Literal["product", "sum", "difference", "fused"]


class ShapeRule(Protocol):
    """The types of an op's results, or `GraphError` with the rule that the operands break.

    The message needs no name and no place: the builder puts the op and the user's line around it.
    """

    def __call__(self, operands: Sequence[TensorType], parameters: Mapping[str, Parameter]) -> Sequence[TensorType]: ...


@dataclass(frozen=True)
class OpCall:
    """One use of an op, as its recipe sees it: types of operands and results, parameters, fastmath flags aside."""

    op: OpDef
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    parameters: Mapping[str, Parameter]


@dataclass(frozen=True)
class AxisAccess:
    """How a view reaches one axis of its operand: position ``start + k``, k the index along result axis ``axis``.

    ``axis`` None: the position is ``start`` whatever the index.
    """

    axis: int | None
    start: Dim | int = 0


@dataclass(frozen=True)
class OpDef:
    """An op of the library, which graphs hold as ``graph.apply "name"``.

    Args:
        name: the name, unique in the process.
        kind: how its result relates to its operands.
            ``map``: element by element, all operands of the result's shape (broadcasting is a view before it).
            ``view``: other coordinates of the same elements, one operand; ``access`` says which.
            ``alias``: the same elements in row-major order under another shape (reshape); costs nothing.
            ``reduce``: one operand, along the axis in parameter ``axis``, which keeps size 1; ``reduction`` says how.
            ``opaque``: its own kernels.
        operands: the names of the operands. A last name that starts with ``*`` takes any number.
        infer: the shape rule.
        parameters: what must be known while the graph is built.
        fastmath: whether LLVM allows fastmath flags on what it computes.
        defines_symbols: whether its results may have sizes that are symbols not known before.
        has_epilogue: of an opaque op with one result, whether maps behind it may be computed before it is stored. Its
            recipe then gets, in place of ``results``, the `Destination` that takes the result block by block.
        multiply_adds: of an opaque op, how many products it adds up, from a call; for reports.
        recipe: of a map, ``recipe(builder, call, *blocks) -> block``: the op on blocks or scalars, with
            `halfulp.compiler.tile_builder`. Of an opaque op, ``recipe(entry, call, operands, results)``: kernels and
            launches on references.
        access: of a view, one `AxisAccess` for each axis of the operand.
        reduction: of a reduce, the kind of ``tile.reduce`` for the call: ``add``, ``maximum``, ``maxs``, ...
        contraction: its part in fma contraction. ``product``: a * b. ``sum``: a + b. ``difference``: a - b.
            ``fused``: the one op that rounds ``±(a * b) ± c`` once, operands a, b, c, parameters
            ``negate_product`` and ``negate_addend``.
        converts: whether it is the op that converts its operand to the element type in parameter ``dtype``, and does
            nothing else.
    """

    name: str
    kind: OpKind
    operands: tuple[str, ...]
    infer: ShapeRule
    parameters: tuple[ParameterSpec, ...] = ()
    fastmath: bool = False
    defines_symbols: bool = False
    has_epilogue: bool = False
    multiply_adds: Callable[[OpCall], Dim] | None = None
    recipe: Callable[..., Any] | None = None
    access: Callable[[OpCall], Sequence[AxisAccess]] | None = None
    reduction: Callable[[OpCall], str] | None = None
    contraction: ContractionRole | None = None
    converts: bool = False
