"""`register_kernel`: a kernel of this language as a custom op, ``ops.custom("name", ...)``, in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from halfulp.compiler import GraphTypeError, registry
from halfulp.compiler.kernel_call import KernelCall
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, ParameterSpec
from halfulp.compiler.tile_builder import Value

from .call import pallas_call
from .emission import emit_call
from .errors import fault
from .prepare import prepare
from .specs import ShapeDtypeStruct, no_block_spec

Kernel = TypeVar("Kernel", bound=Callable[..., None])


def register_kernel(
    name: str,
    *,
    operands: Sequence[OperandSpec],
    outputs: Sequence[OutputSpec],
    parameters: Sequence[ParameterSpec] = (),
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    compiler_params: Any = None,
    replace: bool = False,
) -> Callable[[Kernel], Kernel]:
    """Makes the decorated kernel callable in graphs as ``ops.custom(name, ...)``.

    Sizes that operands and outputs name are matched over the whole call. ``grid``, ``in_specs``, ``out_specs`` and
    ``scratch_shapes`` are as in `pallas_call`, or functions that get those sizes by name and return them. Parameters
    of the call become keyword arguments of the kernel.

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

    Raises:
        GraphError: another kernel has the name, or an output has a size that no operand has.
        GraphTypeError: what is decorated is no function.
    """

    def decorate(kernel: Kernel) -> Kernel:
        if not callable(kernel):
            raise fault(f"pl.register_kernel({name!r}) decorates a kernel function, not {kernel!r}", GraphTypeError)

        def build(entry: Any, call: KernelCall, inputs: Sequence[Value], results: Sequence[Value]) -> None:
            def resolved(given: Any) -> Any:
                return given(**call.dims) if callable(given) else given

            shapes = [ShapeDtypeStruct(t.shape, t.dtype) for t in call.outputs]
            bound = functools.partial(kernel, **call.parameters) if parameters else kernel
            made = pallas_call(
                bound,
                shapes,
                grid=resolved(grid),
                in_specs=_listed(resolved(in_specs)),
                out_specs=_listed(resolved(out_specs)),
                scratch_shapes=resolved(scratch_shapes),
                input_output_aliases=input_output_aliases,
                name=name,
                compiler_params=compiler_params,
            )
            arguments = [ShapeDtypeStruct(t.shape, t.dtype) for t in call.operands]
            mapping = made.mapping(arguments, list(call.operands))
            emit_call(entry, prepare(made, mapping, arguments).plan, inputs, results)

        registry.register_kernel(
            KernelDef(name, tuple(operands), tuple(outputs), build, tuple(parameters)), replace=replace
        )
        return kernel

    return decorate


def _listed(specs: Any) -> Any:
    return specs if specs is no_block_spec or isinstance(specs, tuple | list) else [specs]
