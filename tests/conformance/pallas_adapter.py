"""The entry points that conformance cases for grids, block specs and references call: interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfulp.compiler import DType, Graph, TensorType
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import Buffer, InferenceSession

CAPABILITIES = {
    "alias",
    "bfloat16",
    "cond",
    "dynamic_grid",
    "float16",
    "gather",
    "grid_none",
    "index_map_dtype_check",
    "int8",
    "interp_oob_nan",
    "load_store",
    "pid_in_index_map",
    "pid_in_when",
    "pytree_dict",
    "ref_at",
    "scratch",
    "strict_store",
    "strided",
    "traced",
    "unblocked",
    "unblocked_padding",
    "vmap",
    "while",
    "xp_in_index_map",
}
Array = npt.NDArray[Any]


class PallasAdapter:
    """What a case may touch; ``interpret`` says how kernels run."""

    def __init__(self, *, interpret: bool) -> None:
        self.interpret = interpret
        self.pl = pl
        self.xp = jnp
        self.caps = CAPABILITIES

    def call(self, kernel: Callable[..., None], out_shape: Any, **keywords: Any) -> Any:
        return pl.pallas_call(kernel, out_shape, interpret=self.interpret, **keywords)

    def fori(self, lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
        return pl.fori_loop(lower, upper, body, init)

    def while_(self, condition: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
        return pl.while_loop(condition, body, init)

    def cond(self, condition: Any, on_true: Callable[..., Any], on_false: Callable[..., Any], *operands: Any) -> Any:
        return pl.cond(condition, on_true, on_false, *operands)

    def iota(self, n: int) -> Any:
        return pl.iota((n,))

    def sds(self, shape: Sequence[int], dtype: str) -> pl.ShapeDtypeStruct:
        return pl.ShapeDtypeStruct(shape, dtype)

    def scratch(self, shape: Sequence[int], dtype: str) -> Any:
        return pl.MemorySpace.ANY(shape, dtype)

    def unblocked(self, shape: Sequence[int], index_map: Callable[..., Any], padding: Any = None) -> pl.BlockSpec:
        return pl.BlockSpec(shape, index_map, indexing_mode=pl.Unblocked(padding))

    def dyn(self, function: Callable[..., Any], n: int, *arguments: Any) -> Any:
        """``function`` with a grid bound that only the run knows: a scalar input of a graph."""
        arrays = [np.asarray(argument) for argument in arguments]
        types = [TensorType(DType.int32, ()), *[TensorType(DType.from_numpy(a.dtype), a.shape) for a in arrays]]
        with Graph("dynamic_grid", input_types=types) as graph:
            bound, *inputs = graph.inputs
            result = function(bound, *inputs)
            graph.output(*(result if isinstance(result, tuple | list) else [result]))
        outputs = [out.to_numpy() for out in InferenceSession().load(graph).execute(np.int32(n), *arrays)]
        return tuple(outputs) if isinstance(result, tuple | list) else outputs[0]

    def dtype(self, name: str) -> DType:
        return DType(name)

    def array(self, array: Any, dtype: str | None = None) -> Array:
        given = np.asarray(array)
        return given if dtype is None else given.astype(DType(dtype).to_numpy())

    def numpy(self, value: Any) -> Array:
        array = np.asarray(value.to_numpy() if isinstance(value, Buffer) else value)
        return array.astype(np.float32) if array.dtype in (np.float16, ml_dtypes.bfloat16) else array

    def dtname(self, value: Any) -> str:
        return str(np.asarray(value).dtype)

    def vmap(self, function: Callable[..., Any], in_axes: Any) -> Callable[..., Any]:
        return pl.vmap(function, in_axes)


def interpret() -> PallasAdapter:
    """Kernels run step by step with numpy."""
    return PallasAdapter(interpret=True)


def compiled() -> PallasAdapter:
    """Kernels run as machine code."""
    return PallasAdapter(interpret=False)
