"""The kernel language: functions on blocks of arrays, run once for each program of a grid.

    from halfulp.ops import pallas as pl
    from halfulp.ops.pallas import numpy as jnp

    def add_one(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    block = pl.BlockSpec((2, 2), lambda i, j: (i, j))
    call = pl.pallas_call(
        add_one, pl.ShapeDtypeStruct((8, 8), "int32"), grid=(4, 4), in_specs=[block], out_specs=block
    )

What JAX's Pallas has is here under its name. Unlike there, kernels compile for the CPU. docs/kernels.md is the guide.

To read the code: `specs` and `grid` are what a caller says, `mapping` resolves it for arrays. `call` is `pallas_call`;
it has the kernel traced once (`prepare`, `kernel_trace`), where `tracing` has the values and `refs` the references,
`control` the loops, and `numpy` the functions of blocks. `emission` puts a traced kernel into an entry function: of a
call on arrays (`eager`), of a graph (`in_graph`), or of an op that is registered (`registering`, `op_arrays`).
"""

from __future__ import annotations

from halfulp.compiler.registry import OperandSpec, OutputSpec, ParameterSpec

from .batching import vmap
from .call import PallasCall, pallas_call
from .control import check, cond, fori_loop, when, while_loop
from .errors import BlockIndexError, KernelCheckError, OverlapError
from .grid import GridAxis, GridEnv, cdiv, current_grid_env, grid_env, next_power_of_2, num_programs, program_id
from .indexing import Slice, ds, dslice
from .invocations import show_invocations
from .mapping import BlockMapping, GridMapping, slices_for_invocation
from .numpy import broadcast_to, iota
from .op_arrays import OpArray
from .op_scalar import OpScalar
from .plot import plot_grid
from .printing import debug_print
from .reducing import pallas_dot as dot
from .refs import Ref, load, store, swap
from .registering import register_kernel
from .specs import (
    Blocked,
    BlockSpec,
    CompilerParams,
    Element,
    GridSpec,
    InterpretParams,
    MemorySpace,
    ShapeDtypeStruct,
    Squeezed,
    Unblocked,
    blocked,
    no_block_spec,
    squeezed,
    unblocked,
)
from .top import top_merge

ANY = MemorySpace.ANY

__all__ = [
    "ANY",
    "BlockIndexError",
    "BlockMapping",
    "BlockSpec",
    "Blocked",
    "CompilerParams",
    "Element",
    "GridAxis",
    "GridEnv",
    "GridMapping",
    "GridSpec",
    "InterpretParams",
    "KernelCheckError",
    "MemorySpace",
    "OpArray",
    "OpScalar",
    "OperandSpec",
    "OutputSpec",
    "OverlapError",
    "PallasCall",
    "ParameterSpec",
    "Ref",
    "ShapeDtypeStruct",
    "Slice",
    "Squeezed",
    "Unblocked",
    "blocked",
    "broadcast_to",
    "cdiv",
    "check",
    "cond",
    "current_grid_env",
    "debug_print",
    "dot",
    "ds",
    "dslice",
    "fori_loop",
    "grid_env",
    "iota",
    "load",
    "next_power_of_2",
    "no_block_spec",
    "num_programs",
    "pallas_call",
    "plot_grid",
    "program_id",
    "register_kernel",
    "show_invocations",
    "slices_for_invocation",
    "squeezed",
    "store",
    "swap",
    "top_merge",
    "unblocked",
    "vmap",
    "when",
    "while_loop",
]
