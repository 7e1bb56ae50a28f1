"""`register_kernel`: code in this language as a custom op, ``ops.custom("name", ...)``, in one place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from xdsl.dialects.utils.fast_math import FastMathFlag

from halfulp.compiler import GraphTypeError, registry
from halfulp.compiler.kernel_call import KernelCall
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, ParameterSpec
from halfulp.compiler.tile_builder import EntryBuilder, Value

from .call import pallas_call
from .errors import fault
from .op_arrays import OpArray, OpBuild
from .op_scalar import OpScalar
from .specs import ShapeDtypeStruct, no_block_spec

Function = TypeVar("Function", bound=Callable[..., Any])

SPECIAL_VALUES = (FastMathFlag.NO_NANS, FastMathFlag.NO_INFS)
"""Flags that deny NaN and infinity."""


def register_kernel(
    name: str,
    *,
    operands: Sequence[OperandSpec],
    outputs: Sequence[OutputSpec],
    parameters: Sequence[ParameterSpec] = (),
    dims: Mapping[str, Callable[..., Any]] | None = None,
    computed: Mapping[str, Callable[..., Any]] | None = None,
    special_values: bool = False,
    reference: Callable[..., Sequence[Any]] | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    compiler_params: Any = None,
    replace: bool = False,
) -> Callable[[Function], Function]:
    """Makes the decorated function callable in graphs as ``ops.custom(name, ...)``.

    Two kinds of functions can be decorated; which one it is shows in the number of positional parameters. A *kernel*
    takes a reference for each operand, each output and each scratch shape. A *function of arrays* takes the operands
    alone, calls `pallas_call` as often as it needs, and returns the outputs; it runs when a graph is compiled, with
    `OpArray` in the places of arrays, and gets sizes from ``x.shape``. Parameters of the call, and computed sizes,
    become keyword arguments.

    ::

        @pl.register_kernel(
            "scale_rows",
            operands=[OperandSpec("x", DType.float32, ("rows", "columns"))],
            outputs=[OutputSpec("y", DType.float32, ("rows", "columns"))],
            parameters=[ParameterSpec("factor", float)],
            grid=lambda rows, columns: (rows, pl.cdiv(columns, 512)),
            in_specs=[pl.BlockSpec((None, 512), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((None, 512), lambda i, j: (i, j)),
        )
        def scale_rows(x_ref, y_ref, *, factor):
            y_ref[...] = x_ref[...] * factor

    Args:
        operands, outputs, parameters: what a call gives and gets. Sizes that operands and outputs name are matched over
            the whole call. What a kernel writes to an operand that is ``mutable`` changes the memory of the caller of
            `ops.inplace_custom`; of any other operand it gets a copy, if it writes to it.
        dims: sizes that follow from parameters and from other sizes: functions of both, as mappings by name.
        computed: sizes that only the data decides: functions of the operands (and parameters, by keyword), which may
            call `pallas_call` and return an integer that they have read, ``x[i]``.
        special_values: NaN and infinity have a meaning here, so no flag of the graph that denies them applies.
        reference: as in `KernelDef`.
        grid, in_specs, out_specs, scratch_shapes, input_output_aliases, compiler_params: of a kernel, as in
            `pallas_call`, the first four also as functions that get the sizes by name.
        replace: take the place of a kernel of this name.

    Raises:
        GraphError: another kernel has the name, or an output has a size that no operand has.
        GraphTypeError: what is decorated takes other arguments.
    """

    def decorate(function: Function) -> Function:
        if not callable(function):
            raise fault(f"pl.register_kernel({name!r}) decorates a function, not {function!r}", GraphTypeError)
        layout = _KernelLayout(grid, in_specs, out_specs, scratch_shapes, input_output_aliases, compiler_params)
        op = _Op(name, _run_of(function, name, layout, len(operands)), dict(computed or {}), special_values)
        definition = KernelDef(
            name,
            tuple(operands),
            tuple(outputs),
            op.build,
            tuple(parameters),
            dims=dict(dims or {}),
            computed=tuple(op.computed),
            build_dims=op.build_dims if op.computed else None,
            reference=reference,
        )
        registry.register_kernel(definition, replace=replace)
        return function

    return decorate


_Run: TypeAlias = Callable[[KernelCall, Sequence[OpArray]], Any]
"""Emits an op: gets the call and its operands, and returns the outputs."""


@dataclass(frozen=True)
class _KernelLayout:
    """What `register_kernel` is told about a kernel besides its operands."""

    grid: Any = ()
    in_specs: Any = no_block_spec
    out_specs: Any = no_block_spec
    scratch_shapes: Any = ()
    input_output_aliases: Mapping[int, int] | None = None
    compiler_params: Any = None


def _takes_arrays_only(function: Callable[..., Any], operands: int) -> bool:
    """Whether it has a positional parameter for each operand, and none for outputs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) == operands and not any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _run_of(function: Callable[..., Any], name: str, layout: _KernelLayout, operands: int) -> _Run:
    """How a function is run: with references, or with arrays if it takes one for each of so many operands."""
    if not _takes_arrays_only(function, operands):
        return functools.partial(_run_kernel, function, name, layout)
    if layout != _KernelLayout():
        raise fault(
            f"pl.register_kernel({name!r}) is given a grid or specs, but the function takes the {operands} operands "
            "alone; give them to the pallas_call in it, or take a reference for each output, too",
            GraphTypeError,
        )
    return functools.partial(_run_function, function)


def _run_function(function: Callable[..., Any], call: KernelCall, arrays: Sequence[OpArray]) -> Any:
    sizes = {size: written[0] for size, written in call.computed.items()}
    return function(*arrays, **call.parameters, **sizes)


def _run_kernel(
    kernel: Callable[..., None], name: str, layout: _KernelLayout, call: KernelCall, arrays: Sequence[OpArray]
) -> Any:
    def resolved(given: Any) -> Any:
        return given(**call.dims) if callable(given) else given

    return pallas_call(
        functools.partial(kernel, **call.parameters) if call.parameters else kernel,
        [ShapeDtypeStruct(t.shape, t.dtype) for t in call.outputs],
        grid=resolved(layout.grid),
        in_specs=_listed(resolved(layout.in_specs)),
        out_specs=_listed(resolved(layout.out_specs)),
        scratch_shapes=resolved(layout.scratch_shapes),
        input_output_aliases=layout.input_output_aliases,
        name=name,
        compiler_params=layout.compiler_params,
    )(*arrays)


def _listed(specs: Any) -> Any:
    return specs if specs is no_block_spec or isinstance(specs, tuple | list) else [specs]


@dataclass(frozen=True)
class _Op:
    """What the registry holds of a function; made of its parts, so that a cache key can be made of it."""

    name: str
    run: _Run
    computed: Mapping[str, Callable[..., Any]]
    special_values: bool

    def build(
        self, entry: EntryBuilder, call: KernelCall, operands: Sequence[Value], outputs: Sequence[Value], /
    ) -> None:
        """Emits the launches that fill the outputs."""
        build = OpBuild(self.name, entry)
        with self._emitting(build):
            given = zip(call.operands, operands, call.kernel.operands, strict=True)
            arrays = [build.array(t, value, mutable=spec.mutable) for t, value, spec in given]
            build.finish(self.run(call, arrays), call, outputs)

    def build_dims(self, entry: EntryBuilder, call: KernelCall, operands: Sequence[Value], /) -> dict[str, Value]:
        """Emits what the computed sizes are read from."""
        build = OpBuild(self.name, entry)
        sizes = {}
        with self._emitting(build):
            for size, function in self.computed.items():
                arrays = [build.array(t, value) for t, value in zip(call.operands, operands, strict=True)]
                found = function(*arrays, **call.parameters)
                if not isinstance(found, OpScalar):
                    raise fault(
                        f"op {self.name!r} computes the size {size!r} as {found!r}; return an integer that is read "
                        "from an array, x[i]",
                        GraphTypeError,
                    )
                sizes[size] = found.value
        return sizes

    @contextmanager
    def _emitting(self, build: OpBuild) -> Iterator[None]:
        dropped = SPECIAL_VALUES if self.special_values else ()
        with build.running(), build.entry.changed_fastmath(drop=dropped):
            yield
