"""Python's operators, and the methods of tensors, for values of a graph.

The compiler knows no op, so what ``x + y`` or ``x.reshape(...)`` builds is given to it by the op library, which calls
`install_operators` when it is imported. Each function gets the operands in the order in which they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .dims import StaticDim
from .errors import GraphError, GraphTypeError
from .locations import Located

if TYPE_CHECKING:
    from .device import DeviceRef
    from .dims import DimLike
    from .dtypes import DType
    from .types import TensorType
    from .values import TensorValue

_operators: dict[str, Callable[..., Any]] = {}


def install_operators(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Say what the operators and methods build: functions by the name of the op, ``add``, ``getitem``, ``cast``, ..."""
    _operators.update(functions)


def _build(name: str, *operands: object, **parameters: object) -> TensorValue:
    result: TensorValue = build(name, *operands, **parameters)
    return result


def build(name: str, *operands: object, **parameters: object) -> Any:
    """What the op library builds for an operator or a method of this name."""
    return _function(name)(*operands, **parameters)


def _function(name: str) -> Callable[..., Any]:
    function = _operators.get(name)
    if function is None:
        with Located():
            raise GraphError(f"operator {name!r} of a TensorValue comes from the op library; import halfulp.ops first")
    return function


def _is_operand(other: object) -> bool:
    """Whether ``==`` can compare with it element by element: a value, a number, an array."""
    return isinstance(other, TensorOperators | int | float) or hasattr(other, "__array__")


class TensorOperators:
    """The operators and methods of `TensorValue` and `Weight`: each builds one op of `halfulp.ops`.

    ``+ - * / // % **``, ``@``, ``& | ^ ~ << >>`` and the six comparisons work element by element (``@`` is the matrix
    product), broadcast and promote as the ops of the library do. A Python number or an array on the other side takes
    the element type of the value. Indexing takes ints, slices, ``...`` and None.
    """

    __slots__ = ()

    # numpy must leave `array + value` to the value
    __array_ufunc__ = None
    __hash__ = object.__hash__  # a value is itself, although == builds a comparison

    if TYPE_CHECKING:
        type: TensorType

    def __add__(self, other: Any) -> TensorValue:
        return _build("add", self, other)

    def __radd__(self, other: Any) -> TensorValue:
        return _build("add", other, self)

    def __sub__(self, other: Any) -> TensorValue:
        return _build("sub", self, other)

    def __rsub__(self, other: Any) -> TensorValue:
        return _build("sub", other, self)

    def __mul__(self, other: Any) -> TensorValue:
        return _build("mul", self, other)

    def __rmul__(self, other: Any) -> TensorValue:
        return _build("mul", other, self)

    def __truediv__(self, other: Any) -> TensorValue:
        return _build("div", self, other)

    def __rtruediv__(self, other: Any) -> TensorValue:
        return _build("div", other, self)

    def __floordiv__(self, other: Any) -> TensorValue:
        return _build("floor_div", self, other)

    def __rfloordiv__(self, other: Any) -> TensorValue:
        return _build("floor_div", other, self)

    def __mod__(self, other: Any) -> TensorValue:
        return _build("mod", self, other)

    def __rmod__(self, other: Any) -> TensorValue:
        return _build("mod", other, self)

    def __pow__(self, other: Any) -> TensorValue:
        return _build("pow", self, other)

    def __rpow__(self, other: Any) -> TensorValue:
        return _build("pow", other, self)

    def __matmul__(self, other: Any) -> TensorValue:
        return _build("matmul", self, other)

    def __rmatmul__(self, other: Any) -> TensorValue:
        return _build("matmul", other, self)

    def __and__(self, other: Any) -> TensorValue:
        return _build("bitwise_and", self, other)

    def __rand__(self, other: Any) -> TensorValue:
        return _build("bitwise_and", other, self)

    def __or__(self, other: Any) -> TensorValue:
        return _build("bitwise_or", self, other)

    def __ror__(self, other: Any) -> TensorValue:
        return _build("bitwise_or", other, self)

    def __xor__(self, other: Any) -> TensorValue:
        return _build("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> TensorValue:
        return _build("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> TensorValue:
        return _build("shift_left", self, other)

    def __rlshift__(self, other: Any) -> TensorValue:
        return _build("shift_left", other, self)

    def __rshift__(self, other: Any) -> TensorValue:
        return _build("shift_right", self, other)

    def __rrshift__(self, other: Any) -> TensorValue:
        return _build("shift_right", other, self)

    def __neg__(self) -> TensorValue:
        return _build("negate", self)

    def __abs__(self) -> TensorValue:
        return _build("abs", self)

    def __invert__(self) -> TensorValue:
        return _build("bitwise_not", self)

    def __lt__(self, other: Any) -> TensorValue:
        return _build("less", self, other)

    def __le__(self, other: Any) -> TensorValue:
        return _build("less_equal", self, other)

    def __gt__(self, other: Any) -> TensorValue:
        return _build("greater", self, other)

    def __ge__(self, other: Any) -> TensorValue:
        return _build("greater_equal", self, other)

    def __eq__(self, other: object) -> TensorValue:  # type: ignore[override]
        return _build("equal", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> TensorValue:  # type: ignore[override]
        return _build("not_equal", self, other) if _is_operand(other) else NotImplemented

    def __getitem__(self, index: Any) -> TensorValue:
        return _build("getitem", self, index)

    def __iter__(self) -> Iterator[TensorValue]:
        with Located():
            if not self.type.shape:
                raise GraphTypeError(f"{self!r} is a scalar and has no axis to iterate over")
            size = self.type.shape[0]
            if not isinstance(size, StaticDim):
                raise GraphTypeError(
                    f"{self!r} cannot be iterated over: axis 0 has size '{size}', which has no value while the graph "
                    "is built; fix the size in the input's type, or use ops that work on the whole axis"
                )
        return (self[index] for index in range(int(size)))

    @property
    def T(self) -> TensorValue:  # noqa: N802  (the spelling of numpy)
        """The last two axes exchanged (`halfulp.ops.transpose`)."""
        return _build("transpose", self, -1, -2)

    def cast(self, dtype: DType) -> TensorValue:
        """Another element type (`halfulp.ops.cast`)."""
        return _build("cast", self, dtype)

    def reshape(self, shape: Iterable[DimLike]) -> TensorValue:
        """The same elements under another shape (`halfulp.ops.reshape`)."""
        return _build("reshape", self, shape)

    def rebind(self, shape: Iterable[DimLike], message: str = "") -> TensorValue:
        """The same tensor under other names of its sizes, checked when the graph runs (`halfulp.ops.rebind`)."""
        return _build("rebind", self, shape, message)

    def broadcast_to(self, shape: Iterable[DimLike]) -> TensorValue:
        """Repeated to a shape (`halfulp.ops.broadcast_to`)."""
        return _build("broadcast_to", self, shape)

    def permute(self, axes: Iterable[int]) -> TensorValue:
        """The axes in another order (`halfulp.ops.permute`)."""
        return _build("permute", self, axes)

    def transpose(self, first: int, second: int) -> TensorValue:
        """Two axes exchanged (`halfulp.ops.transpose`)."""
        return _build("transpose", self, first, second)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> TensorValue:
        """Axes made one (`halfulp.ops.flatten`)."""
        return _build("flatten", self, start_dim, end_dim)

    def sum(self, axis: int = -1) -> TensorValue:
        """The sum along an axis, which stays with size 1 (`halfulp.ops.sum`)."""
        return _build("sum", self, axis=axis)

    def mean(self, axis: int = -1) -> TensorValue:
        """The mean along an axis, which stays with size 1 (`halfulp.ops.mean`)."""
        return _build("mean", self, axis=axis)

    def var(self, axis: int = -1) -> TensorValue:
        """The variance along an axis, which stays with size 1 (`halfulp.ops.var`)."""
        return _build("var", self, axis=axis)

    def stdev(self, axis: int = -1) -> TensorValue:
        """The standard deviation along an axis, which stays with size 1 (`halfulp.ops.stdev`)."""
        return _build("stdev", self, axis=axis)

    def max(self, axis: int = -1) -> TensorValue:
        """The largest element along an axis, which stays with size 1 (`halfulp.ops.max`)."""
        return _build("max", self, axis=axis)

    def min(self, axis: int = -1) -> TensorValue:
        """The smallest element along an axis, which stays with size 1 (`halfulp.ops.min`)."""
        return _build("min", self, axis=axis)

    def argmax(self, axis: int = -1) -> TensorValue:
        """Where the largest element along an axis is (`halfulp.ops.argmax`)."""
        return _build("argmax", self, axis=axis)

    def argmin(self, axis: int = -1) -> TensorValue:
        """Where the smallest element along an axis is (`halfulp.ops.argmin`)."""
        return _build("argmin", self, axis=axis)

    def to(self, device: DeviceRef) -> TensorValue:
        """On another device (`halfulp.ops.transfer_to`)."""
        return _build("transfer_to", self, device)

    def print(self, label: str = "debug_tensor") -> None:
        """Shown whenever the graph runs (`halfulp.ops.print`)."""
        _function("print")(self, label)
