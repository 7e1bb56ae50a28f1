"""The grid: where a program stands in it, and the sizes of its axes.

While a kernel or an index map runs, a `GridEnv` says which program it is. It is kept on a stack of the thread, which
unwinds with the ``with`` statement, whatever happens inside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfulp.compiler import Dim, GraphTypeError, TensorValue
from halfulp.compiler.dims import ceil_div

from .errors import fault
from .op_scalar import OpScalar


@dataclass(frozen=True)
class GridAxis:
    """One axis of the grid as a program sees it: its own index and the number of programs.

    Both are ints, or values of the kernel while that is traced.
    """

    index: Any
    size: Any


GridEnv = tuple[GridAxis, ...]

_local = threading.local()


def _stack() -> list[GridEnv]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    stack: list[GridEnv] = _local.stack
    return stack


@contextmanager
def grid_env(env: Sequence[GridAxis]) -> Iterator[None]:
    """Inside the ``with``, `program_id` and `num_programs` answer from ``env``."""
    stack = _stack()
    stack.append(tuple(env))
    try:
        yield
    finally:
        stack.pop()


def current_grid_env() -> GridEnv | None:
    """The innermost environment of this thread; None outside of kernels and index maps."""
    stack = _stack()
    return stack[-1] if stack else None


def _axis(function: str, axis: object) -> GridAxis:
    env = current_grid_env()
    if env is None:
        raise fault(
            f"pl.{function}({axis!r}) was called outside of a kernel; it has a value only while pallas_call runs a "
            "kernel or an index map"
        )
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise fault(f"pl.{function}: axis must be an int, not {axis!r}", GraphTypeError)
    if not -len(env) <= axis < len(env):
        sizes = "(" + ", ".join(str(a.size) if isinstance(a.size, int) else "?" for a in env)
        sizes += ",)" if len(env) == 1 else ")"
        raise fault(f"pl.{function}: Axis {axis} is out of bounds for grid {sizes}")
    return env[axis]


def program_id(axis: int) -> Any:
    """The index of the running program along an axis of the grid, an int32 scalar. Axis -1 is the last.

    Raises:
        GraphError: outside of a kernel, or the grid has no such axis.
        GraphTypeError: ``axis`` is not an int.
    """
    return _axis("program_id", axis).index


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis: an int, or an int32 scalar where it is known at run time only.

    Raises:
        GraphError, GraphTypeError: as `program_id`.
    """
    return _axis("num_programs", axis).size


def cdiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up, of ints, dims or values of a kernel.

    Raises:
        ZeroDivisionError: ``b`` is 0.
        GraphTypeError: a float.
    """
    for value in (a, b):
        if isinstance(value, float | np.floating):
            raise fault(f"pl.cdiv takes ints, not {value!r}; use int(...) or //", GraphTypeError)
    if isinstance(a, Dim) or isinstance(b, Dim):
        return ceil_div(Dim(a), b)
    if isinstance(a, int | np.integer) and isinstance(b, int | np.integer):
        return -(-int(a) // int(b))
    return (a + (b - 1)) // b


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below ``n``, and 0 for 0.

    Raises:
        GraphError: ``n`` is negative.
        GraphTypeError: it is not an int.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise fault(f"pl.next_power_of_2 takes an int, not {n!r}", GraphTypeError)
    if n < 0:
        raise fault(f"pl.next_power_of_2 takes an int from 0 on, not {n}")
    return 0 if n == 0 else 1 << (int(n) - 1).bit_length()


def normalised_grid(grid: Any) -> tuple[Any, ...]:
    """The grid as a tuple of ints, dims and scalars; None and () are one program.

    Raises:
        GraphError: it is anything else.
    """
    if grid is None:
        return ()
    if isinstance(grid, int | np.integer | Dim | TensorValue | OpScalar) or _is_scalar_array(grid):
        return (_size(grid, grid),)
    if not isinstance(grid, tuple | list):
        raise fault(f"Grid must be a tuple of integers, dims or scalar tensors, got {grid!r}")
    return tuple(_size(size, grid) for size in grid)


def _is_scalar_array(value: Any) -> bool:
    return hasattr(value, "__array__") and getattr(value, "shape", None) == () and not isinstance(value, TensorValue)


def _size(size: Any, grid: Any) -> Any:
    if isinstance(size, tuple) and len(size) == 2 and isinstance(size[0], str):
        size = size[1]  # a named axis
    if _is_scalar_array(size) and np.asarray(size).dtype.kind in "iu":
        size = int(np.asarray(size))
    if isinstance(size, bool | int):
        if size >= 1 << 63:
            raise fault(f"Grid sizes must be less than 2**63, got {grid!r}; let each program do more")
        return int(size)
    if isinstance(size, Dim | OpScalar):
        return size
    if isinstance(size, TensorValue) and size.rank == 0 and size.dtype.is_integral:
        return size
    raise fault(f"Grid must be a tuple of integers, dims or scalar tensors, got {grid!r}")
