"""Block specs resolved for arrays: where the block of a program starts, and what the kernel sees of it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfulp.compiler import Dim, DType, GraphTypeError, StaticDim
from halfulp.compiler.errors import HalfulpError
from halfulp.compiler.types import shape_text

from . import tree
from .errors import fault, fault_in
from .grid import GridAxis, grid_env, normalised_grid
from .specs import BlockSpec, Element, GridSpec, MemorySpace, ScratchShape, Unblocked, as_dtype
from .tracing import Array, refusing_captured_arrays


@dataclass(frozen=True)
class AxisBlock:
    """One axis of a block: its size, and how an index leads to its start.

    ``padding`` is (before, after) around the array where indices count elements, None where they count blocks.
    """

    size: int
    squeezed: bool = False
    padding: tuple[int, int] | None = None

    def start(self, index: Any) -> Any:
        """The first element, in the array without its padding."""
        if self.padding is not None:
            return index - self.padding[0] if self.padding[0] else index
        return index if self.squeezed or self.size == 1 else index * self.size


@dataclass(frozen=True)
class BlockMapping:
    """The block spec of one array.

    Attributes:
        origin: the name of the array in messages, ``args[0]`` or ``outputs['m']``.
        shape: the size of each axis of the array, a `Dim` where it is symbolic.
        blocks: an entry for each axis; None for the whole array without an index map.
        index_map: from the program id to block indices; None is block 0.
        batch_axes: leading axes of grid and array that `vmap` has added: which of them this array has.
    """

    origin: str
    shape: tuple[Any, ...]
    dtype: DType
    blocks: tuple[AxisBlock, ...] | None
    index_map: Any
    memory_space: MemorySpace = MemorySpace.ANY
    batch_axes: tuple[bool, ...] = ()

    @property
    def block_shape(self) -> tuple[Any, ...]:
        """The size of the block along each axis of the array."""
        return self.shape if self.blocks is None else tuple(block.size for block in self.blocks)

    @property
    def ref_shape(self) -> tuple[Any, ...]:
        """The shape that the kernel sees, without squeezed axes."""
        if self.blocks is None:
            return self.shape
        return tuple(block.size for block in self.blocks if not block.squeezed)

    def block_indices(self, program: Sequence[Any], sizes: Sequence[Any]) -> tuple[Any, ...]:
        """What the index map gives for a program, checked; ints, or scalars while a kernel is traced.

        Raises:
            GraphError: another number of indices than axes, or one that is no integer scalar.
            GraphTypeError: the index map does not take the program id.
        """
        batched = len(self.batch_axes)
        own = [index for index, has in zip(program[:batched], self.batch_axes, strict=True) if has]
        rest, rest_sizes = program[batched:], sizes[batched:]
        if self.index_map is None:
            return (*own, *[0] * (len(self.shape) - len(own)))
        with grid_env([GridAxis(index, size) for index, size in zip(rest, rest_sizes, strict=True)]):
            result = _call_index_map(self, rest)
        indices = tuple(result) if isinstance(result, tuple | list) else (result,)
        if len(indices) != len(self.shape) - len(own):
            raise self._fault(
                f"must return {len(self.shape) - len(own)} values to match block_shape={list(self.block_shape)}. "
                f"Currently returning {len(indices)} values"
            )
        return (*own, *[self._checked_index(number, index) for number, index in enumerate(indices)])

    def _checked_index(self, number: int, index: Any) -> Any:
        if isinstance(index, int | np.integer) and not isinstance(index, bool):
            return int(index)
        if isinstance(index, np.ndarray) and index.shape == () and index.dtype.kind in "iu":
            return int(index)
        if isinstance(index, Array) and index.shape == () and index.dtype in (DType.int32, DType.int64):
            return index
        shown = f"type {index.dtype}[{','.join(map(str, index.shape))}]" if hasattr(index, "dtype") else repr(index)
        raise self._fault(f"must return integer scalars. Output[{number}] is {shown}; convert it to int32")

    def _fault(self, rule: str) -> HalfulpError:
        code = getattr(self.index_map, "__code__", None)
        place = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
        name = getattr(self.index_map, "__name__", repr(self.index_map))
        return fault_in(self.index_map, f"Index map function {name}{place} for {self.origin} {rule}")

    def compute_start_indices(self, program: Sequence[Any], sizes: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The first element of the block of a program along each axis; negative inside padding.

        ``sizes`` are those of the grid, for index maps that ask for them.
        """
        program = tuple(program)
        indices = self.block_indices(program, tuple(sizes) or (None,) * len(program))
        blocks = self.blocks or tuple(AxisBlock(size) for size in self.shape)
        return tuple(block.start(index) for block, index in zip(blocks, indices, strict=True))

    def batched(self, mapped: bool, size: int) -> BlockMapping:
        """The mapping under `vmap`: one more leading axis of the grid, which the array has if it is mapped."""
        if not mapped:
            return replace(self, batch_axes=(False, *self.batch_axes))
        blocks = self.blocks or tuple(AxisBlock(n) for n in self.shape)
        if any(not isinstance(block.size, int) for block in blocks):
            raise fault(
                f"vmap: {self.origin} has a size that is known at run time only, {shape_text(dims_of(self.shape))}, "
                "and no block shape; give it a BlockSpec"
            )
        return replace(
            self,
            shape=(size, *self.shape),
            blocks=(AxisBlock(1, squeezed=True), *blocks),
            batch_axes=(True, *self.batch_axes),
        )


@dataclass(frozen=True)
class GridMapping:
    """All that is known of a call before its kernel is traced.

    ``grid`` has ints, dims and scalar tensors; its first ``batch_rank`` axes come from `vmap` and are hidden from the
    kernel. ``inputs`` and ``outputs`` are the mappings of all leaves, in order.
    """

    grid: tuple[Any, ...]
    inputs: tuple[BlockMapping, ...]
    outputs: tuple[BlockMapping, ...]
    scratch: tuple[ScratchShape, ...] = ()
    batch_rank: int = 0

    @property
    def static_grid(self) -> tuple[int | None, ...]:
        """The sizes of the grid, None where one is known at run time only."""
        return tuple(_static(size) for size in self.grid)

    @property
    def block_mappings(self) -> tuple[BlockMapping, ...]:
        """Those of the inputs, then those of the outputs."""
        return (*self.inputs, *self.outputs)

    def batched(self, mapped: Sequence[bool], size: int) -> GridMapping:
        """The mapping under `vmap` over ``size`` elements; ``mapped`` says which inputs have the new axis."""
        return replace(
            self,
            grid=(size, *self.grid),
            inputs=tuple(mapping.batched(has, size) for mapping, has in zip(self.inputs, mapped, strict=True)),
            outputs=tuple(mapping.batched(True, size) for mapping in self.outputs),
            batch_rank=self.batch_rank + 1,
        )


def _static(size: Any) -> int | None:
    if isinstance(size, int):
        return size
    return int(size) if isinstance(size, StaticDim) else None


def _call_index_map(mapping: BlockMapping, program: Sequence[Any]) -> Any:
    function = mapping.index_map
    name = getattr(function, "__name__", repr(function))
    try:
        inspect.signature(function).bind(*program)
    except TypeError as error:
        raise fault_in(
            function,
            f"Index map function {name} for {mapping.origin} takes one positional argument for each of the "
            f"{len(program)} axes of the grid, but: {_python_words(error, len(program))}",
            GraphTypeError,
        ) from None
    except ValueError:  # no signature to look at
        pass
    if not any(isinstance(index, Array) for index in program):
        return function(*program)
    with refusing_captured_arrays(f"Index map function {name} for {mapping.origin}"):
        return function(*program)


def _python_words(error: TypeError, given: int) -> str:
    """What Python says about a call with other arguments than the function takes."""
    text = str(error)
    if text.startswith("missing a required argument"):
        return text.replace("missing a required argument", "missing required positional argument")
    return f"{text}: {given} given"


def block_mapping(origin: str, spec: BlockSpec, shape: Sequence[Any], dtype: DType) -> BlockMapping:
    """A spec resolved for one array.

    Raises:
        GraphError: the block shape has another number of axes, or a whole axis has no known size.
    """
    sizes = tuple(int(size) if isinstance(size, StaticDim | np.integer) else size for size in shape)
    if spec.block_shape is None:
        blocks = None
        if spec.index_map is not None or isinstance(spec.indexing_mode, Unblocked):
            blocks = tuple(_axis_block(origin, spec, axis, size) for axis, size in enumerate(sizes))
        return BlockMapping(origin, sizes, dtype, blocks, spec.index_map, spec.memory_space)
    if len(spec.block_shape) != len(sizes):
        raise fault(
            f"Block shape for {origin} (= {_entries_text(spec)}) must have the same number of dimensions as the array "
            f"shape {shape_text(dims_of(sizes))}; give an entry for each axis, None for one that the reference shall "
            "not have"
        )
    blocks = tuple(_axis_block(origin, spec, axis, entry) for axis, entry in enumerate(spec.block_shape))
    return BlockMapping(origin, sizes, dtype, blocks, spec.index_map, spec.memory_space)


def _entries_text(spec: BlockSpec) -> str:
    assert spec.block_shape is not None
    return "(" + ", ".join(map(str, spec.block_shape)) + ("," if len(spec.block_shape) == 1 else "") + ")"


def _axis_block(origin: str, spec: BlockSpec, axis: int, entry: Any) -> AxisBlock:
    padding: tuple[int, int] | None = None
    if isinstance(spec.indexing_mode, Unblocked):
        pads = spec.indexing_mode.padding
        padding = (0, 0) if pads is None else _checked_padding(origin, pads[axis : axis + 1])
    if isinstance(entry, Element):
        padding, entry = _checked_padding(origin, (entry.padding,)), entry.block_size
    if entry is None:
        return AxisBlock(1, squeezed=True, padding=padding)
    if not isinstance(entry, int):
        raise fault(
            f"the spec of {origin} takes the whole of axis {axis}, whose size '{entry}' is known at run time only; "
            "give a block shape, or leave the index map out"
        )
    return AxisBlock(entry, padding=padding)


def _checked_padding(origin: str, pads: Any) -> tuple[int, int]:
    match pads:
        case ((int(low), int(high)),) if low >= 0 and high >= 0:
            return low, high
    raise fault(f"the padding of {origin} must be (before, after), neither of them negative, for each axis")


def is_spec(value: object) -> bool:
    """Whether a tree of specs has a leaf here; None stands for the whole array."""
    return isinstance(value, BlockSpec) or value is None


def grid_mapping(spec: GridSpec, in_shapes: Sequence[Any], out_shapes: Sequence[Any]) -> GridMapping:
    """The specs of a grid spec resolved for arrays; each of the shapes has ``shape`` and ``dtype``."""

    def resolve(specs: Any, shapes: Sequence[Any], word: str) -> tuple[BlockMapping, ...]:
        given = tree.leaves([specs] * len(shapes) if isinstance(specs, BlockSpec) else specs, is_spec)
        if len(given) != len(shapes):
            raise fault(f"GridSpec: there are {len(given)} {word} specs for {len(shapes)} arrays")
        return tuple(
            block_mapping(f"{word}[{i}]", s or BlockSpec(), array.shape, as_dtype(array.dtype, word))
            for i, (s, array) in enumerate(zip(given, shapes, strict=True))
        )

    return GridMapping(
        normalised_grid(spec.grid),
        resolve(spec.in_specs, in_shapes, "args"),
        resolve(spec.out_specs, out_shapes, "outputs"),
        tuple(tree.leaves(spec.scratch_shapes)),
    )


def slices_for_invocation(
    x_shape: Sequence[int], x_spec: BlockSpec, grid: Sequence[int], invocation_indices: Sequence[int]
) -> list[slice]:
    """The elements along each axis of an array that one program sees; of an edge block, also what lies beyond.

    Raises:
        GraphError: the program is not one of the grid, or the spec does not fit the array.

    >>> slices_for_invocation((100, 100), BlockSpec((10, 20), lambda i, j: (i, j)), (10, 5), (2, 3))
    [slice(20, 30, None), slice(60, 80, None)]
    """
    if len(invocation_indices) != len(grid) or any(
        not 0 <= index < size for index, size in zip(invocation_indices, grid, strict=True)
    ):
        raise fault(f"invocation_indices {tuple(invocation_indices)} are no program of grid {tuple(grid)}")
    mapping = block_mapping("x", x_spec, x_shape, DType.float32)
    starts = mapping.compute_start_indices(invocation_indices, grid)
    return [slice(start, start + size) for start, size in zip(starts, mapping.block_shape, strict=True)]


def dims_of(shape: Sequence[Any]) -> tuple[Dim, ...]:
    """Sizes as dims."""
    return tuple(Dim(size) for size in shape)
