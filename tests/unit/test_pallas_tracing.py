"""The tile IR that kernels are traced to: each kind of spec, edges, and which axes of the grid are parallel."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from halfulp.compiler import DType, Graph, TensorType
from halfulp.compiler.passes import get_all_passes
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp


def traced(call: pl.PallasCall, *types: TensorType) -> str:
    """The tile IR of a graph that makes this call."""
    with Graph("g", input_types=types) as graph:
        result = call(*graph.inputs)
        graph.output(*(result if isinstance(result, tuple) else [result]))
    module: ModuleOp = graph.module
    for name in ("convert-graph-to-tile", "mark-parallel-axes"):
        get_all_passes()[name]()().apply(Context(), module)
    module.verify()
    return str(module)


@pytest.fixture
def check(tmp_path: Path) -> Callable[[str, str], None]:
    """Matches a text against FileCheck lines, whose ``// CHECK`` is left out."""

    def matches(text: str, checks: str) -> None:
        file = tmp_path / "checks"
        lines = [f"// CHECK{line.strip()}" for line in checks.strip().splitlines()]
        file.write_text("\n".join(lines), encoding="utf-8")
        options = parse_argv_options(["filecheck", str(file)])
        matcher = Matcher(options, FInput("the IR", text), Parser.from_opts(options))
        matcher.stderr = StringIO()
        assert matcher.run() == 0, f"{matcher.stderr.getvalue()}\n{text}"

    return matches


Check = Callable[[str, str], None]


def f32(*sizes: Any) -> TensorType:
    return TensorType(DType.float32, sizes)


def shape(*sizes: Any) -> pl.ShapeDtypeStruct:
    return pl.ShapeDtypeStruct(sizes, "float32")


def copy(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...]


def test_blocked_specs_and_parallel_axes(check: Check) -> None:
    block = pl.BlockSpec((2, 3), lambda i, j: (i, j))
    call = pl.pallas_call(copy, shape(8, 6), grid=(4, 2), in_specs=[block], out_specs=block)
    check(
        traced(call, f32(8, 6)),
        """
        : tile.kernel @copy(%[[X:[0-9]+]]: !tile.ref<[8, 6], f32, global>, %[[O:[0-9]+]]:
        -SAME: grid(%[[I:[0-9]+]] of %{{[0-9]+}}, %[[J:[0-9]+]] of %{{[0-9]+}}) axes [parallel, parallel]
        -NEXT: %[[XW:[0-9]+]] = tile.window %[[X]][%[[I]], %[[J]]] blocked [2, 3] squeezed []
        -NEXT: %[[OW:[0-9]+]] = tile.window %[[O]][%[[I]], %[[J]]] blocked [2, 3] squeezed []
        -NEXT: %[[V:[0-9]+]] = tile.load %[[XW]] : !tile.ref<[2, 3], f32, global> -> tensor<2x3xf32>
        -NEXT: tile.store %[[V]], %[[OW]]
        -NEXT: tile.return
        -NOT: @fill
        """,
    )


def test_edges_read_the_pad(check: Check) -> None:
    block = pl.BlockSpec((4,), lambda i: i)
    call = pl.pallas_call(copy, shape(10), grid=3, in_specs=[block], out_specs=block)
    check(
        traced(call, f32(10)),
        """
        : %[[PAD:[0-9]+]] = arith.constant 0x7fc00000 : f32
        -NEXT: tile.load %{{[0-9]+}} other %[[PAD]] : f32
        """,
    )


def test_squeezed_and_element_axes(check: Check) -> None:
    rows = pl.BlockSpec((None, pl.Element(4, (1, 0))), lambda i, j: (i, 2 * j))
    out = pl.BlockSpec((None, None, 4), lambda i, j: (i, j, 0))
    call = pl.pallas_call(copy, shape(3, 5, 4), grid=(3, 5), in_specs=[rows], out_specs=out)
    check(
        traced(call, f32(3, 10)),
        """
        : tile.kernel @copy({{.*}} grid(%[[I:[0-9]+]] of %{{[0-9]+}}, %[[J:[0-9]+]] of
        : %[[TWO:[0-9]+]] = arith.constant 2 : index
        -NEXT: %[[AT:[0-9]+]] = arith.muli %[[TWO]], %[[J]] : index
        -NEXT: %[[ONE:[0-9]+]] = arith.constant 1 : index
        -NEXT: %[[START:[0-9]+]] = arith.subi %[[AT]], %[[ONE]] : index
        -NEXT: tile.window %{{[0-9]+}}[%[[I]], %[[START]]] element [1, 4] squeezed [0]
        : tile.window {{.*}} blocked [1, 1, 4] squeezed [0, 1]
        """,
    )


def test_whole_arrays_have_no_window(check: Check) -> None:
    call = pl.pallas_call(copy, shape(3, 5))
    check(
        traced(call, f32(3, 5)),
        """
        : tile.kernel @copy(%[[X:[0-9]+]]: !tile.ref<[3, 5], f32, global>, %[[O:[0-9]+]]: {{.*}}) grid() axes []
        -NEXT: %[[V:[0-9]+]] = tile.load %[[X]]
        -NEXT: tile.store %[[V]], %[[O]]
        """,
    )


def test_scalars_are_one_element_in_memory(check: Check) -> None:
    call = pl.pallas_call(copy, shape())
    check(
        traced(call, f32()),
        """
        : tile.kernel @copy(%{{[0-9]+}}: !tile.ref<[1], f32, global>
        : tile.extract
        : tile.splat
        """,
    )


ROW = pl.BlockSpec((4,), lambda i, j: i)
CELL = pl.BlockSpec((4, 4), lambda i, j: (i, j))


@pytest.mark.parametrize(
    ("keywords", "axes"),
    [
        ({}, "[parallel, ordered]"),
        ({"interpret": True}, "[ordered, ordered] attributes {halfulp.sequential}"),
        ({"compiler_params": {"dimension_semantics": ("arbitrary", "parallel")}}, "[parallel, parallel]"),
    ],
)
def test_axis_of_a_reduction_keeps_its_order(keywords: dict[str, Any], axes: str) -> None:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)

        o_ref[...] += jnp.sum(x_ref[...], axis=1)

    call = pl.pallas_call(kernel, shape(8), grid=(2, 3), in_specs=[CELL], out_specs=ROW, **keywords)
    text = traced(call, f32(8, 12))
    assert f" axes {axes} {{" in text
    assert "@fill" in text  # what is written under a condition only might be read before


def iota_kernel(o_ref: Any) -> None:
    o_ref[pl.program_id(0)] = pl.program_id(0)


def scatter_kernel(x_ref: Any, o_ref: Any) -> None:
    o_ref[x_ref[pl.program_id(0)].astype("int32")] = 1.0


@pytest.mark.parametrize(
    ("kernel", "types", "out", "axes"),
    [
        (iota_kernel, [], pl.ShapeDtypeStruct((8,), "int32"), "[parallel]"),
        (scatter_kernel, [f32(8)], shape(8), "[ordered]"),
    ],
)
def test_indices_of_whole_arrays(kernel: Callable[..., None], types: list[TensorType], out: Any, axes: str) -> None:
    assert f"axes {axes} {{" in traced(pl.pallas_call(kernel, out, grid=8), *types)


def test_symbolic_sizes_need_no_fill_where_the_grid_covers_them() -> None:
    block = pl.BlockSpec((4,), lambda i: i)

    def call_on(grid: Callable[[Any], Any]) -> str:
        with Graph("g", input_types=[f32("n")]) as graph:
            (x,) = graph.inputs
            call = pl.pallas_call(copy, shape(*x.shape), grid=(grid(x.shape[0]),), in_specs=[block], out_specs=block)
            graph.output(call(x))
        module = graph.module
        get_all_passes()["convert-graph-to-tile"]()().apply(Context(), module)
        return str(module)

    assert "@fill" not in call_on(lambda n: pl.cdiv(n, 4))
    assert "@fill" in call_on(lambda n: n // 4)


def test_written_inputs_are_copied_and_aliases_too(check: Check) -> None:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        x_ref[...] = y_ref[...]
        o_ref[...] = o_ref[...] + x_ref[...]

    call = pl.pallas_call(kernel, shape(8), input_output_aliases={1: 0})
    check(
        traced(call, f32(8), f32(8)),
        """
        : func.func @g(%[[X:[a-z0-9]+]]: {{.*}}, %[[Y:[a-z0-9]+]]: {{.*}}, %[[O:[0-9]+]]: {{.*}}) {
        : tile.flatten %[[Y]]
        : tile.flatten %[[O]]
        : tile.launch @copy
        : %[[OWN:[0-9]+]] = tile.buffer ["8"]
        : tile.flatten %[[X]]
        : tile.flatten %[[OWN]]
        : tile.launch @copy
        : tile.launch @kernel grid() (%[[OWN]], %[[Y]], %[[O]])
        """,
    )


def test_alias_that_is_overwritten_whole_is_not_copied() -> None:
    call = pl.pallas_call(copy, shape(8), input_output_aliases={0: 0})
    assert "@copy_2" not in traced(call, f32(8))


def test_equal_calls_have_one_name_in_the_graph() -> None:
    def scaled(x: Any, factor: float) -> Any:
        def kernel(x_ref: Any, o_ref: Any) -> None:
            o_ref[...] = x_ref[...] * factor

        return pl.pallas_call(kernel, shape(8))(x)

    with Graph("g", input_types=[f32(8)]) as graph:
        (x,) = graph.inputs
        graph.output(scaled(scaled(scaled(x, 2.0), 2.0), 3.0))
    names = [line.split('"')[1] for line in str(graph).splitlines() if "graph.custom" in line]
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("pallas_call.kernel.") for name in names)
