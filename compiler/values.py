"""What ops of a graph take and give: tensor values, and weights by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from .device import DeviceRef
from .dims import Dim, DimLike
from .dtypes import DType
from .errors import GraphError, GraphTypeError
from .locations import Located
from .operators import TensorOperators, build
from .types import TensorType, shape_text

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from .graph import Graph


class GraphValue:
    """A value of a graph: it has a type now, and elements when the graph runs.

    Attributes:
        graph: the graph it belongs to.
        type: element type, shape and device.
        ssa: the value in the graph's IR.
    """

    __slots__ = ("graph", "ssa", "type")

    def __init__(self, graph: Graph, ssa: SSAValue, value_type: TensorType) -> None:
        self.graph = graph
        self.ssa = ssa
        self.type = value_type

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The size of each axis."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.type.rank

    @property
    def device(self) -> DeviceRef:
        """Where the elements will live."""
        return self.type.device

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}(dtype={self.dtype}, shape={shape_text(self.shape)}, device={self.device})"


class TensorValue(GraphValue, TensorOperators):
    """A tensor that a graph computes when it runs. Ops make them."""

    __slots__ = ()

    @property
    def tensor(self) -> TensorValue:
        """The value itself, so that code for MAX, which writes ``graph.inputs[0].tensor``, runs as it is."""
        return self

    def __bool__(self) -> NoReturn:
        with Located():
            raise GraphTypeError(
                f"{self!r} has no elements while the graph is built, so it is neither true nor false; "
                "choose between values with ops.where, or between computations with ops.cond"
            )

    def __float__(self) -> NoReturn:
        self._refuse_number("float")

    def __int__(self) -> NoReturn:
        self._refuse_number("int")

    def _refuse_number(self, kind: str) -> NoReturn:
        with Located():
            raise GraphTypeError(
                f"{self!r} has no elements while the graph is built, so it is no Python {kind}; keep it as a tensor, "
                "show it with .print(), or make it an output"
            )


class BufferValue(GraphValue):
    """Memory of the caller's that a graph reads and changes: an input of type `BufferType`.

    ``buffer[...]`` is what it holds at that place of the program, a `TensorValue`; ``buffer[...] = value`` changes it.
    Other indices work on what ``buffer[...]`` gives. The order of these is kept.
    """

    __slots__ = ()

    @property
    def buffer(self) -> BufferValue:
        """The value itself, so that code for MAX, which writes ``graph.inputs[0].buffer``, runs as it is."""
        return self

    def __getitem__(self, index: Any) -> TensorValue:
        loaded: TensorValue = build("buffer_load", self)
        return loaded if index is Ellipsis else loaded[index]

    def __setitem__(self, index: Any, value: object) -> None:
        if index is not Ellipsis:
            with Located():
                raise GraphError(f"{self!r}: only all of it can be stored to, not {index!r}; write buffer[...] = value")
        build("buffer_store", self, value)


class Weight(TensorOperators):
    """A tensor that is given when the graph is loaded, by its name: ``session.load(graph, weights_registry={...})``.

    Args:
        name: the name in the registry, such as ``"layers.0.norm.weight"``.
        dtype: the element type; the array must have exactly this one.
        shape: ints only: weights have one size.
        device: where it lives; the host by default.

    Raises:
        GraphError: the name is empty or a size is symbolic.
        GraphTypeError: an argument of the wrong Python type.
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, dtype: DType, shape: Iterable[DimLike], device: DeviceRef | None = None) -> None:
        if not isinstance(name, str):
            raise GraphTypeError(f"the name of a Weight must be a str, not {name!r}")
        if not name:
            raise GraphError("the name of a Weight must not be empty")
        self.name = name
        self.type = TensorType(dtype, shape, device)
        if not self.type.is_static:
            raise GraphError(
                f"the shape of Weight {name!r} must be numbers, not {shape_text(self.type.shape)}; "
                "a tensor whose size varies is an input of the graph"
            )

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The size of each axis."""
        return self.type.shape

    @property
    def device(self) -> DeviceRef:
        """Where it lives."""
        return self.type.device

    def __repr__(self) -> str:
        return f"Weight({self.name!r}, dtype={self.dtype}, shape={shape_text(self.shape)}, device={self.device})"
