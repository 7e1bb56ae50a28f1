"""`pallas_call`: a kernel function and its specs become a function of arrays, or of tensors of a graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfulp.compiler import Graph, GraphTypeError, TensorType, TensorValue, Weight
from halfulp.compiler.types import shape_text

from . import tree
from .errors import fault
from .grid import normalised_grid
from .mapping import BlockMapping, GridMapping, block_mapping, dims_of
from .op_arrays import OpArray, current_build
from .prepare import prepare
from .specs import (
    BlockSpec,
    CompilerParams,
    GridSpec,
    InterpretParams,
    MemorySpace,
    ScratchShape,
    as_compiler_params,
    as_dtype,
    is_shape,
    no_block_spec,
)

if TYPE_CHECKING:
    from .eager import CompiledCall

Kernel = Callable[..., None]

MOST_COMPILED = 16
"""Types of arguments for which a call is kept at hand; there is a larger table behind it."""


@dataclass(frozen=True, eq=False)
class PallasCall:
    """What `pallas_call` returns: call it with one argument for each input of the kernel."""

    kernel: Kernel
    out_shape: Any
    grid: tuple[Any, ...]
    in_specs: Any
    out_specs: Any
    scratch_shapes: Any
    aliases: Mapping[int, int]
    interpret: bool | InterpretParams
    debug: bool | str
    name: str
    params: CompilerParams
    batch: tuple[tuple[int, tuple[bool, ...]], ...] = field(default=())
    """The axes that vmap has added, innermost first: size, and which inputs have it."""
    _compiled: dict[Hashable, CompiledCall] = field(default_factory=dict, init=False, repr=False)
    """By the types of the arguments, what runs on arrays; a call of the same types again does little else."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        types = self._array_types(arguments)
        compiled = None if types is None or keywords else self._compiled.get(types)
        if compiled is not None and compiled.is_current():
            return self._rebuilt(compiled.run(arguments))
        if keywords:
            listed = ", ".join(keywords)
            raise fault(
                f"kernel {self.name!r} is called with positional arguments only, not with {listed}", GraphTypeError
            )
        from .batching import Batched, call_batched

        leaves = tree.leaves(arguments)
        if any(isinstance(leaf, Batched) for leaf in leaves):
            return call_batched(self, arguments)
        operands = [_operand(path, leaf) for path, leaf in tree.leaves_with_paths(arguments)]
        results = self._results(operands, arguments)
        return self._rebuilt(results)

    def _results(self, operands: Sequence[Any], arguments: Sequence[Any]) -> Sequence[Any]:
        tensors = [operand for operand in operands if isinstance(operand, TensorValue | Weight)]
        tensors += [size for size in self.grid if isinstance(size, TensorValue)]
        types = [o.type if isinstance(o, TensorValue | Weight | OpArray) else array_type(o) for o in operands]
        prepared = prepare(self, self.mapping(arguments, types), arguments)
        if self.debug:
            print(prepared.plan.kernel.op)
        build = current_build()
        if build is not None:
            return build.call(prepared, operands)
        if tensors or (not operands and _inside_graph()):
            from .in_graph import call_in_graph

            return call_in_graph(prepared, operands)
        from .eager import CompiledCall, call_on_arrays

        key = self._array_types(arguments)
        if key is None:
            return call_on_arrays(prepared, operands)
        if len(self._compiled) >= MOST_COMPILED:
            self._compiled.clear()
        compiled = self._compiled[key] = CompiledCall(prepared, operands)
        return compiled.run(operands)

    def _array_types(self, arguments: Sequence[Any]) -> Hashable:
        """The types of the arguments; None if they are not simply arrays, or the call is not simply compiled."""
        if self.interpret or self.debug or not arguments or current_build() is not None:
            return None
        if not all(isinstance(argument, np.ndarray) or hasattr(argument, "to_numpy") for argument in arguments):
            return None
        return tuple((argument.shape, argument.dtype, place_of(argument)) for argument in arguments)

    def _rebuilt(self, results: Sequence[Any]) -> Any:
        form = tuple(self.out_shape) if isinstance(self.out_shape, list) else self.out_shape
        return tree.rebuild(form, results, is_shape)

    # -- specs against arguments

    def mapping(self, arguments: Sequence[Any], types: Sequence[TensorType]) -> GridMapping:
        """The specs resolved for arguments of these types.

        Raises:
            GraphError: specs and arguments do not fit each other.
        """
        paths = [path for path, _ in tree.leaves_with_paths(tuple(arguments))]
        specs = self._input_specs(arguments)
        types = [self._unbatched(number, t) for number, t in enumerate(types)]
        inputs = tuple(
            block_mapping(f"args{path}", spec, t.shape, t.dtype)
            for path, spec, t in zip(paths, specs, types, strict=True)
        )
        mapping = GridMapping(self.grid, inputs, tuple(self._outputs()), tuple(tree.leaves(self.scratch_shapes)))
        self._check_aliases(mapping)
        for size, mapped in self.batch:
            mapping = mapping.batched(mapped, size)
        return mapping

    def _unbatched(self, number: int, given: TensorType) -> TensorType:
        """The type of an input without the axes of vmap."""
        axes = sum(mapped[number] for _, mapped in self.batch)
        return TensorType(given.dtype, given.shape[axes:], given.device)

    def _input_specs(self, arguments: Sequence[Any]) -> list[BlockSpec]:
        count = len(tree.leaves(tuple(arguments)))
        if self.in_specs is no_block_spec or self.in_specs is None:
            return [no_block_spec] * count
        if not isinstance(self.in_specs, tuple | list):
            raise fault(
                f"in_specs of kernel {self.name!r} must be a tuple or a list with an entry for each argument, not "
                f"{type(self.in_specs).__name__}; write [spec]"
            )
        specs = _filled(self.in_specs)
        _check_form("in_specs", "inputs", "args", specs, tuple(arguments))
        return tree.leaves(specs, _is_spec)

    def _outputs(self) -> list[BlockMapping]:
        shapes = [(path, checked_shape(path, leaf)) for path, leaf in tree.leaves_with_paths(self.out_shape, is_shape)]
        specs = [no_block_spec] * len(shapes)
        if self.out_specs is not no_block_spec and self.out_specs is not None:
            form = _filled(self.out_specs)
            _check_form("out_specs", "out_shape", "out_shape", form, self.out_shape)
            specs = tree.leaves(form, _is_spec)
        return [
            block_mapping(f"outputs{path}", spec, shape, dtype)
            for (path, (shape, dtype)), spec in zip(shapes, specs, strict=True)
        ]

    def _check_aliases(self, mapping: GridMapping) -> None:
        subject = f"input_output_aliases={dict(self.aliases)} of kernel {self.name!r}"
        for index, output in self.aliases.items():
            for word, number, blocks in (("input", index, mapping.inputs), ("output", output, mapping.outputs)):
                if not 0 <= number < len(blocks):
                    raise fault(f"{subject}: there is no {word} {number}; the kernel has {len(blocks)}, from 0 on")
            source, target = mapping.inputs[index], mapping.outputs[output]
            if (source.shape, source.dtype) != (target.shape, target.dtype):
                raise fault(
                    f"{subject}: output {output} has a different abstract value than input {index}: "
                    f"{_type_text(target)}, not {_type_text(source)}; shapes and types must be equal"
                )
        if len(set(self.aliases.values())) < len(self.aliases):
            raise fault(f"{subject}: two inputs are aliased to one output; an output starts as one input only")


def place_of(array: Any) -> Any:
    """The device of a buffer that is not in host memory; None for all else."""
    device = None if isinstance(array, np.ndarray) else getattr(array, "device", None)
    return None if getattr(device, "is_host", True) else device


def _type_text(block: BlockMapping) -> str:
    return f"{block.dtype}{shape_text(dims_of(block.shape))}"


def checked_shape(path: str, leaf: Any) -> tuple[tuple[Any, ...], Any]:
    """Shape and element type of an output.

    Raises:
        GraphError: it has none.
    """
    if not is_shape(leaf):
        raise fault(
            f"Invalid out_shape type {type(leaf).__name__}: out_shape{path} is {leaf!r}; write "
            "pl.ShapeDtypeStruct(shape, dtype)"
        )
    dtype = as_dtype(leaf.dtype, f"out_shape{path}")
    return TensorType(dtype, tuple(leaf.shape)).shape, dtype


def _is_spec(value: object) -> bool:
    return isinstance(value, BlockSpec)


def _filled(specs: Any) -> Any:
    """The specs with None, which stands for the whole array, written out."""
    if specs is None:
        return no_block_spec
    if isinstance(specs, dict):
        return {key: _filled(value) for key, value in specs.items()}
    if isinstance(specs, tuple | list):
        return type(specs)(_filled(value) for value in specs) if not hasattr(specs, "_fields") else specs
    if not isinstance(specs, BlockSpec):
        raise fault(f"a block spec must be a pl.BlockSpec or None, not {specs!r}", GraphTypeError)
    return specs


def _check_form(specs_name: str, other_name: str, root: str, specs: Any, other: Any) -> None:
    difference = tree.first_difference(specs, other, lambda value: _is_spec(value) or is_shape(value))
    if difference is not None:
        path, here, there = difference
        raise fault(
            f"Pytree for `{specs_name}` and `{other_name}` do not match: {specs_name}{path} is {here}, but "
            f"{root}{path} is {there}; give each array one BlockSpec"
        )


def _inside_graph() -> bool:
    from halfulp.compiler import NotFoundError

    try:
        Graph.current()
    except NotFoundError:
        return False
    return True


def _operand(path: str, leaf: Any) -> Any:
    """An argument as a tensor of a graph or an array."""
    if isinstance(leaf, TensorValue | Weight | np.ndarray | OpArray):
        return leaf
    if isinstance(leaf, bool | int | float) and not isinstance(leaf, np.generic):
        kind = np.bool_ if isinstance(leaf, bool) else np.int32 if isinstance(leaf, int) else np.float32
        return np.asarray(leaf, kind)
    if isinstance(leaf, np.generic):
        return np.asarray(leaf)
    if hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__"):
        return leaf
    raise fault(f"args{path} must be an array, a Buffer or a tensor of a graph, not {leaf!r}", GraphTypeError)


def array_type(array: Any) -> TensorType:
    """The type of an array or Buffer."""
    return TensorType(as_dtype(array.dtype, "an argument"), array.shape)


def pallas_call(
    kernel: Kernel,
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    interpret: bool | InterpretParams = False,
    debug: bool | str = False,
    name: str | None = None,
    compiler_params: CompilerParams | Mapping[str, Any] | None = None,
) -> PallasCall:
    """A function that runs ``kernel`` once for each program of a grid.

    Args:
        kernel: gets a reference for each input, each output and each scratch shape, in this order, and returns None.
            It is run once, to be traced.
        out_shape: a `ShapeDtypeStruct`, or anything with shape and dtype, for each output; tuples, lists and dicts
            of them. A list comes back as a tuple.
        grid_spec: grid and specs in one; then the next four must not be given.
        grid: the number of programs along each axis: ints, dims, or integer scalars of a graph. None and () are one
            program. Programs run in row-major order, or as if.
        in_specs, out_specs: a `BlockSpec` (or None) for each input and output; the whole array by default.
        scratch_shapes: memory besides: ``pl.MemorySpace.ANY(shape, dtype)``; a dict gives keyword arguments.
        input_output_aliases: from the number of an input to that of the output that starts as a copy of it.
        interpret: run step by step with numpy, blocks outside of their array being errors. Inside a graph: compiled,
            but one program after another.
        debug: True prints the IR of the kernel and checks all bounds; ``"trace"`` interprets and prints each program.
        name: of the kernel in the IR; that of the function by default.
        compiler_params: see `CompilerParams`.

    Returns:
        A function of the inputs. On numpy arrays it returns numpy arrays, given a Buffer it returns Buffers, and on
        tensors of a graph it becomes part of the graph.

    Raises:
        GraphError, GraphTypeError: an argument is wrong; the returned function raises them for what only shows when
            it is called, with the line of the kernel.
    """
    given = {"grid": grid != (), "in_specs": in_specs is not no_block_spec, "out_specs": out_specs is not no_block_spec}
    given["scratch_shapes"] = scratch_shapes != ()
    if grid_spec is not None:
        if not isinstance(grid_spec, GridSpec):
            raise fault(f"grid_spec must be a pl.GridSpec, not {grid_spec!r}", GraphTypeError)
        beside = [key for key, is_given in given.items() if is_given]
        if beside:
            raise fault(f"grid_spec and {beside[0]} are both given; put {beside[0]} into the GridSpec")
        grid, in_specs, out_specs = grid_spec.grid, grid_spec.in_specs, grid_spec.out_specs
        scratch_shapes = grid_spec.scratch_shapes
    if not callable(kernel):
        raise fault(f"pallas_call takes a kernel function first, not {kernel!r}", GraphTypeError)
    if debug not in (False, True, "trace"):
        raise fault(f"debug must be False, True or 'trace', not {debug!r}")
    chosen = name if name is not None else getattr(kernel, "__name__", None) or _partial_name(kernel)
    return PallasCall(
        kernel,
        tree.copied(out_shape, is_shape),
        normalised_grid(grid),
        tree.copied(in_specs),
        tree.copied(out_specs),
        _checked_scratch(scratch_shapes),
        dict(input_output_aliases or {}),
        interpret,
        debug,
        _symbol(chosen),
        as_compiler_params(compiler_params),
    )


def _partial_name(kernel: Any) -> str:
    return getattr(getattr(kernel, "func", None), "__name__", "kernel")


def _symbol(name: str) -> str:
    """A name as a symbol of the IR."""
    return re.sub(r"\W+", "_", name).strip("_") or "kernel"


def _checked_scratch(scratch_shapes: Any) -> Any:
    for leaf in tree.leaves(scratch_shapes):
        if not isinstance(leaf, ScratchShape):
            spaces = " or ".join(f"pl.MemorySpace.{space.name}" for space in (MemorySpace.ANY, MemorySpace.PROGRAM))
            raise fault(
                f"a scratch shape must be made by {spaces}, called with shape and dtype, not {leaf!r}", GraphTypeError
            )
    return scratch_shapes
