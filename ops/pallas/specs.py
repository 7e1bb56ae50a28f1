"""What a caller says about a kernel: block shapes, index maps, memory spaces, the grid, compiler parameters.

Names of JAX 2024 (``Unblocked``, ``indexing_mode``) and of today (``Element``, ``Squeezed``, ``scratch_shapes``) both
work. Everything here is checked when it is made or when `pallas_call` sees it, and is hashable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from halfulp.compiler import DType, GraphError, GraphTypeError
from halfulp.compiler.errors import near_names, quoted_list

from .errors import fault

Padding: TypeAlias = "tuple[tuple[int, int], ...]"
IndexMap: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Blocked:
    """Block indices count blocks. As an entry of a block shape, ``Blocked(4)`` is the same as 4."""

    block_size: int | None = None


@dataclass(frozen=True)
class Unblocked:
    """Block indices count elements; ``padding`` adds (before, after) elements of pad to each axis of the array."""

    padding: Padding | None = None


blocked = Blocked()
unblocked = Unblocked()
IndexingMode: TypeAlias = Blocked | Unblocked


@dataclass(frozen=True)
class Element:
    """One axis of a block shape whose index counts elements, of an array with ``padding`` (before, after) around it."""

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Squeezed:
    """One axis of a block shape of size 1 that the reference does not have; None means the same."""


squeezed = Squeezed()


class MemorySpace(Enum):
    """Where memory is.

    ``ANY``: the memory of the array itself; of a scratch shape, memory that all programs share, so that what one
    program leaves is there for the next. ``PROGRAM``, for scratch only: memory of one program, filled with the pad
    anew for each. ``HOST``, for operands only: the host's memory, on whatever device the kernel runs.

    Calling a space describes scratch: ``pl.MemorySpace.ANY((8, 8), "float32")``.
    """

    ANY = "any"
    PROGRAM = "program"
    HOST = "host"

    def __call__(self, shape: Sequence[int], dtype: Any) -> ScratchShape:
        return ScratchShape(tuple(shape), as_dtype(dtype, "a scratch shape"), self)


def as_memory_space(value: object, subject: str) -> MemorySpace:
    """A memory space from itself, its name or None.

    Raises:
        GraphError: there is no such space.
    """
    if value is None:
        return MemorySpace.ANY
    for space in MemorySpace:
        if value is space or value == space.value:
            return space
    names = quoted_list(space.value for space in MemorySpace)
    raise fault(f"{subject}: memory_space must be one of {names}, not {value!r}")


def as_dtype(value: Any, subject: str) -> DType:
    """An element type from a `DType`, its name, or anything that numpy takes for one.

    Raises:
        GraphTypeError: no element type.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in DType._value2member_map_:
        return DType(value)
    try:
        return DType.from_numpy(value)
    except GraphTypeError as error:
        raise fault(f"{subject}: {error.message}", GraphTypeError) from None


@dataclass(frozen=True, init=False)
class ShapeDtypeStruct:
    """The shape and element type of an output. Inside a graph a size may be a symbol or a `Dim`."""

    shape: tuple[Any, ...]
    dtype: DType

    def __init__(self, shape: Sequence[Any], dtype: Any) -> None:
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype, "ShapeDtypeStruct"))


def is_shape(value: object) -> bool:
    """Whether it describes an output: it has a shape and an element type."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


@dataclass(frozen=True)
class ScratchShape:
    """Memory that a kernel gets besides its operands and outputs."""

    shape: tuple[int, ...]
    dtype: DType
    space: MemorySpace

    def __post_init__(self) -> None:
        if self.space is MemorySpace.HOST:
            raise fault("scratch must be in memory space 'any' or 'program', not 'host'")
        for size in self.shape:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
                raise fault(f"a scratch shape must be made of ints, not {self.shape!r}", GraphTypeError)


@dataclass(frozen=True, init=False)
class BlockSpec:
    """Which block of an array each program of a grid sees.

    Args:
        block_shape: an entry for each axis: a size, None or ``Squeezed()`` (size 1, axis removed), or ``Element``.
            None instead of a shape: the whole array.
        index_map: from the program id to the index of the block along each axis. Default: block 0.
        memory_space: see `MemorySpace`.
        indexing_mode: ``blocked`` (indices count blocks) or ``unblocked`` (indices count elements).

    Raises:
        GraphError: an entry of the block shape is not one of these.
        GraphTypeError: ``index_map`` is not a function, or the two were given in the old order.

    >>> BlockSpec((2, 3), lambda i, j: (j, i)).compute_index(1, 4)
    (4, 1)
    """

    block_shape: tuple[int | Element | Squeezed | None, ...] | None
    index_map: IndexMap | None
    memory_space: MemorySpace
    indexing_mode: IndexingMode

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: IndexMap | None = None,
        *,
        memory_space: MemorySpace | str | None = None,
        indexing_mode: IndexingMode = blocked,
    ) -> None:
        if callable(block_shape):
            raise fault("BlockSpec takes block_shape first, then index_map; exchange the two", GraphTypeError)
        if index_map is not None and not callable(index_map):
            raise fault(f"BlockSpec: index_map must be a function of the program id, not {index_map!r}", GraphTypeError)
        if not isinstance(indexing_mode, Blocked | Unblocked):
            raise fault(f"BlockSpec: indexing_mode must be pl.blocked or pl.Unblocked(...), not {indexing_mode!r}")
        object.__setattr__(self, "block_shape", None if block_shape is None else _entries(block_shape))
        object.__setattr__(self, "index_map", index_map)
        object.__setattr__(self, "memory_space", as_memory_space(memory_space, "BlockSpec"))
        object.__setattr__(self, "indexing_mode", indexing_mode)

    def compute_index(self, *program_id: Any) -> tuple[Any, ...]:
        """The block index of a program: what ``index_map`` returns, as a tuple.

        Raises:
            GraphError: the spec has no index map.
        """
        if self.index_map is None:
            raise GraphError("this BlockSpec has no index_map, so every program gets block 0")
        result = self.index_map(*program_id)
        return tuple(result) if isinstance(result, tuple | list) else (result,)


no_block_spec = BlockSpec()
"""The whole array for every program."""


def _entries(block_shape: Sequence[Any]) -> tuple[int | Element | Squeezed | None, ...]:
    if isinstance(block_shape, str) or not isinstance(block_shape, Sequence):
        raise fault(f"BlockSpec: block_shape must be a tuple with an entry for each axis, not {block_shape!r}")
    return tuple(_entry(entry) for entry in block_shape)


def _entry(entry: Any) -> int | Element | Squeezed | None:
    if entry is None or isinstance(entry, Squeezed):
        return None
    if isinstance(entry, Blocked) and entry.block_size is not None:
        entry = entry.block_size
    size = entry.block_size if isinstance(entry, Element) else entry
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise fault(
            f"BlockSpec: Unsupported block dimension type {type(entry).__name__}: {entry!r}; an entry of block_shape "
            "is an int, None, pl.Squeezed() or pl.Element(size)"
        )
    if size <= 0:
        raise fault(f"BlockSpec: the size of a block must be positive, not {size}")
    return entry if isinstance(entry, Element) else int(size)


Semantics = Literal["parallel", "arbitrary"]


@dataclass(frozen=True)
class CompilerParams:
    """How a kernel is compiled.

    Args:
        dimension_semantics: for each axis of the grid ``"parallel"``, which promises that programs that differ along
            it are independent, or ``"arbitrary"``, which keeps them in order. Default: parallel where that is proven.
        fastmath: the fastmath flags of all float operations in the kernel.
        fp_contract, threads, vector_bits, opt_level: as in `CompileOptions`. For calls on arrays only: inside a
            graph, the options of ``session.load`` decide.
    """

    dimension_semantics: tuple[Semantics, ...] | None = None
    fastmath: str | tuple[str, ...] | None = None
    fp_contract: Literal["off", "on", "fast"] | None = None
    threads: int | None = None
    vector_bits: int | None = None
    opt_level: int | None = None

    @property
    def compile_options(self) -> dict[str, Any]:
        """The arguments for `CompileOptions` that are set."""
        names = ("fp_contract", "threads", "vector_bits", "opt_level")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def as_compiler_params(value: object) -> CompilerParams:
    """Compiler parameters from themselves, a dict or None.

    Raises:
        GraphError: an unknown key or value.
        GraphTypeError: neither of these.
    """
    if value is None:
        return CompilerParams()
    if isinstance(value, Mapping):
        names = [f.name for f in fields(CompilerParams)]
        for key in value:
            if key not in names:
                known = ", ".join(names)
                raise fault(f"compiler_params: unknown key {key!r}; keys: {known}{near_names(str(key), names)}")
        value = CompilerParams(**value)
    if not isinstance(value, CompilerParams):
        raise fault(f"compiler_params must be a dict or a pl.CompilerParams, not {value!r}", GraphTypeError)
    semantics = value.dimension_semantics
    if semantics is not None:
        for axis, word in enumerate(semantics):
            if word not in get_args(Semantics):
                raise fault(f"dimension_semantics[{axis}] must be 'parallel' or 'arbitrary', not {word!r}")
        value = replace(value, dimension_semantics=tuple(semantics))
    return value


@dataclass(frozen=True)
class InterpretParams:
    """Interpreting with more checks: ``interpret=pl.InterpretParams(detect_overlaps=True)``.

    Args:
        detect_overlaps: report two programs that write one element of an output, or of which one reads what the
            other writes. Programs that differ only along axes with ``dimension_semantics="arbitrary"`` are not
            reported.
    """

    detect_overlaps: bool = False


@dataclass(frozen=True)
class GridSpec:
    """The grid and the specs of a kernel in one object, for ``pallas_call(..., grid_spec=...)``."""

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = field(default=())

    def get_grid_mapping(self, in_shapes: Sequence[Any], out_shapes: Sequence[Any]) -> Any:
        """The `GridMapping` for operands and outputs of these shapes; each has ``shape`` and ``dtype``."""
        from .mapping import grid_mapping  # which needs this module

        return grid_mapping(self, in_shapes, out_shapes)
