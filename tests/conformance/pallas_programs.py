"""Kernels whose results were recorded with JAX 0.10.2 (data/pallas_cases.npz), each on seeded inputs.

A case is a function of an adapter (`pallas_adapter`): it makes its inputs, runs kernels and returns their outputs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Program = Callable[[Any], Any]

F32, I32, BOOL = "float32", "int32", "bool"
VALUE_ERROR, TYPE_ERROR = ["ValueError"], ["TypeError"]
SUMS = (1e-5, 1e-5)
FUNCTIONS = (2e-6, 2e-6)
"""Relative and absolute tolerance of sums and products in float32, and of functions such as exp."""


@dataclass(frozen=True)
class Refusal:
    """The error that a case must meet: a class among ``types``, and all ``words`` in its message."""

    types: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One program, and how near its results must be to the recorded ones; (0, 0) is bit for bit."""

    name: str
    program: Program
    category: str
    tolerance: tuple[float, float]
    raises: Refusal | None


CASES: dict[str, Case] = {}


def case(
    category: str,
    order: str = "parallel",
    needs: Sequence[str] = (),
    tol: tuple[float, float] = (0, 0),
    raises: Refusal | None = None,
) -> Callable[[Program], Program]:
    """Adds a program to `CASES`. ``order`` and ``needs`` say what it rests on, for readers."""

    def add(program: Program) -> Program:
        assert program.__name__ not in CASES
        CASES[program.__name__] = Case(program.__name__, program, category, tol, raises)
        return program

    return add


def values(name: str, *shape: int, lo: float = 0, hi: float = 0, kind: str = "normal") -> Array:
    """Inputs that depend on the name only."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    if kind == "int":
        return generator.integers(int(lo), int(hi), shape).astype(np.int32)
    return generator.standard_normal(shape).astype(np.float32)


def truncated(x: Array) -> Array:
    """float32 numbers cut to what bfloat16 holds."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


# -- grid / program_id


@case("grid")
def grid_iota(api: Any) -> Any:
    """The guide's iota kernel: grid=(8,), o[i] = program_id(0), whole-array output."""

    def k(o: Any) -> None:
        i = api.pl.program_id(0)
        o[i] = i

    return api.call(k, api.sds((8,), I32), grid=(8,))()


@case("grid")
def grid_default_runs_once(api: Any) -> Any:
    """No grid argument: exactly one invocation on whole arrays."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...] + 1.0

    return api.call(k, api.sds((5, 7), F32))(api.array(values("gd", 5, 7)))


def _ids(api: Any, x_shape: Any, block: Any, grid: Any, imap: Any) -> Any:
    def k(o: Any) -> None:
        v = 0
        for ax in range(len(grid)):
            v = v + api.pl.program_id(ax) * 10 ** (len(grid) - 1 - ax)
        o[...] = api.xp.full(o.shape, v, api.dtype(I32))

    return api.call(k, api.sds(x_shape, I32), grid=grid, in_specs=[], out_specs=api.pl.BlockSpec(block, imap))()


@case("grid")
def grid_show_invocations_2d(api: Any) -> Any:
    """Guide example: x (8,6), block (2,3), grid (4,2)."""
    return _ids(api, (8, 6), (2, 3), (4, 2), lambda i, j: (i, j))


@case("grid")
def grid_show_invocations_edge(api: Any) -> Any:
    """Doc example with partial blocks on both axes: x (7,5), block (2,3), grid (4,2)."""
    return _ids(api, (7, 5), (2, 3), (4, 2), lambda i, j: (i, j))


@case("grid")
def grid_negative_axis(api: Any) -> Any:
    """Program_id(-1) is the last axis (Python indexing of the grid)."""

    def k(o: Any) -> None:
        o[...] = api.xp.full(o.shape, 10 * api.pl.program_id(-2) + api.pl.program_id(-1), api.dtype(I32))

    return api.call(k, api.sds((2, 3), I32), grid=(2, 3), out_specs=api.pl.BlockSpec((1, 1), lambda i, j: (i, j)))()


@case("grid", needs=["alias"])
def grid_zero_size_runs_nothing(api: Any) -> Any:
    """A grid with a 0 axis runs no program; the aliased output keeps the input values."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...] * 0.0

    return api.call(k, api.sds((4,), F32), grid=(2, 0), input_output_aliases={0: 0})(api.array(values("gz", 4)))


# -- index maps


@case("index_map")
def imap_reverse(api: Any) -> Any:
    """Read blocks in reverse using num of blocks - 1 - i."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...]

    return api.call(
        k,
        api.sds((12,), F32),
        grid=(4,),
        in_specs=[api.pl.BlockSpec((3,), lambda i: 3 - i)],
        out_specs=api.pl.BlockSpec((3,), lambda i: i),
    )(api.array(values("ir", 12)))


@case("index_map")
def imap_block_transpose(api: Any) -> Any:
    """Out block (j,i) <- transpose of in block (i,j)."""

    def k(x: Any, o: Any) -> None:
        o[...] = api.xp.transpose(x[...])

    return api.call(
        k,
        api.sds((12, 8), F32),
        grid=(2, 3),
        in_specs=[api.pl.BlockSpec((4, 4), lambda i, j: (i, j))],
        out_specs=api.pl.BlockSpec((4, 4), lambda i, j: (j, i)),
    )(api.array(values("it", 8, 12)))


@case("index_map")
def imap_modulo_rotate(api: Any) -> Any:
    """(i+1) % n rotates blocks."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...]

    return api.call(
        k,
        api.sds((10, 2), I32),
        grid=(5,),
        in_specs=[api.pl.BlockSpec((2, 2), lambda i: ((i + 1) % 5, 0))],
        out_specs=api.pl.BlockSpec((2, 2), lambda i: (i, 0)),
    )(api.array(values("im", 10, 2, lo=-9, hi=9, kind="int")))


@case("index_map")
def imap_every_other_block(api: Any) -> Any:
    """2*i selects every other block."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...]

    return api.call(
        k,
        api.sds((6,), F32),
        grid=(3,),
        in_specs=[api.pl.BlockSpec((2,), lambda i: 2 * i)],
        out_specs=api.pl.BlockSpec((2,), lambda i: i),
    )(api.array(values("ie", 12)))


@case("index_map", needs=["pid_in_index_map"])
def imap_program_id_inside(api: Any) -> Any:
    """Program_id / num_programs may be called inside an index_map."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...]

    return api.call(
        k,
        api.sds((8,), F32),
        grid=(4,),
        in_specs=[api.pl.BlockSpec((2,), lambda i: api.pl.num_programs(0) - 1 - api.pl.program_id(0))],
        out_specs=api.pl.BlockSpec((2,), lambda i: i),
    )(api.array(values("ip", 8)))


# -- block shapes


@case("block_shape")
def block_whole_array_default(api: Any) -> Any:
    """BlockSpec() and no spec both mean the whole array for every program."""

    def k(x: Any, y: Any, o: Any) -> None:
        i = api.pl.program_id(0)
        o[...] = api.xp.full(o.shape, api.xp.sum(x[...]) + api.xp.sum(y[...]), api.dtype(I32)) + i

    return api.call(
        k,
        api.sds((6,), I32),
        grid=(3,),
        in_specs=[api.pl.BlockSpec(), api.pl.BlockSpec()],
        out_specs=api.pl.BlockSpec((2,), lambda i: i),
    )(api.array(values("bw", 4, lo=0, hi=9, kind="int")), api.array(values("bw2", 3, 3, lo=0, hi=9, kind="int")))


@case("block_shape")
def block_all_squeezed(api: Any) -> Any:
    """(None, None): a 0-d ref, read and written with [...]."""

    def k(x: Any, o: Any) -> None:
        assert tuple(x.shape) == ()
        assert tuple(o.shape) == ()
        o[...] = x[...] * 2.0

    s = api.pl.BlockSpec((None, None), lambda i, j: (i, j))
    return api.call(k, api.sds((3, 2), F32), grid=(3, 2), in_specs=[s], out_specs=s)(api.array(values("ba", 3, 2)))


@case("block_shape")
def block_larger_than_array(api: Any) -> Any:
    """Block (4,8) over an array (3,5): out-of-range writes are dropped."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...] * 2.0

    s = api.pl.BlockSpec((4, 8), lambda i: (0, 0))
    return api.call(k, api.sds((3, 5), F32), grid=(1,), in_specs=[s], out_specs=s)(api.array(values("bl", 3, 5)))


# -- edge blocks


@case("edge", tol=FUNCTIONS)
def edge_elementwise_1d(api: Any) -> Any:
    """1-d length 10, block 4: partial last block."""

    def k(x: Any, o: Any) -> None:
        o[...] = api.xp.exp(x[...])

    s = api.pl.BlockSpec((4,), lambda i: i)
    return api.call(k, api.sds((10,), F32), grid=(api.pl.cdiv(10, 4),), in_specs=[s], out_specs=s)(
        api.array(values("e1", 10))
    )


@case("edge", order="inner", tol=SUMS)
def edge_masked_sum(api: Any) -> Any:
    """Sum of 10 elements in blocks of 4; the tail must be masked by the kernel."""
    n, bs = 10, 4

    def k(x: Any, o: Any) -> None:
        i = api.pl.program_id(0)

        @api.pl.when(i == 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] = api.xp.zeros_like(o[...])

        v = api.xp.where(api.iota(bs) + i * bs < n, x[...], 0.0)
        o[...] = o[...] + api.xp.sum(v)

    return api.call(
        k,
        api.sds((1,), F32),
        grid=(3,),
        in_specs=[api.pl.BlockSpec((bs,), lambda i: i)],
        out_specs=api.pl.BlockSpec((1,), lambda i: 0),
    )(api.array(values("es", n)))


@case("edge", needs=["interp_oob_nan"])
def edge_read_pad_int_min(api: Any) -> Any:
    """Interpret-mode convention: out-of-range int reads are iinfo.min, bool reads are False."""

    def k(x: Any, b: Any, o: Any, ob: Any) -> None:
        o[...] = x[...]
        ob[...] = b[...]

    s = api.pl.BlockSpec((3,), lambda i: i)
    return api.call(k, (api.sds((6,), I32), api.sds((6,), BOOL)), grid=(2,), in_specs=[s, s], out_specs=(s, s))(
        api.array(np.ones(5, np.int32)), api.array(np.ones(5, np.bool_))
    )


@case("edge", order="inner", tol=SUMS)
def edge_matmul_k_masked(api: Any) -> Any:
    """Matmul with K=10 in steps of 4: the kernel masks the K tail of both operands."""
    size, bk = 10, 4

    def k(x: Any, y: Any, o: Any) -> None:
        kk = api.pl.program_id(2)

        @api.pl.when(kk == 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] = api.xp.zeros_like(o[...])

        ok = api.iota(bk) + kk * bk < size
        xv = api.xp.where(ok[None, :], x[...], 0.0)
        yv = api.xp.where(ok[:, None], y[...], 0.0)
        o[...] += api.xp.dot(xv, yv)

    return api.call(
        k,
        api.sds((8, 8), F32),
        grid=(2, 2, 3),
        in_specs=[api.pl.BlockSpec((4, bk), lambda i, j, q: (i, q)), api.pl.BlockSpec((bk, 4), lambda i, j, q: (q, j))],
        out_specs=api.pl.BlockSpec((4, 4), lambda i, j, q: (i, j)),
    )(api.array(values("ek", 8, size)), api.array(values("ek2", size, 8)))


# -- reductions / revisiting


@case("reduce", tol=SUMS)
def reduce_row_sum(api: Any) -> Any:
    """Row sums, one row block per program."""

    def k(x: Any, o: Any) -> None:
        o[...] = api.xp.sum(x[...], axis=1)

    return api.call(
        k,
        api.sds((8,), F32),
        grid=(4,),
        in_specs=[api.pl.BlockSpec((2, 32), lambda i: (i, 0))],
        out_specs=api.pl.BlockSpec((2,), lambda i: i),
    )(api.array(values("rr", 8, 32)))


@case("reduce", order="inner", tol=SUMS)
def reduce_matmul_k_accumulate(api: Any) -> Any:
    """Matmul 32x32x64, tiles 16x16, K in 4 steps accumulated in the output."""

    def k(x: Any, y: Any, o: Any) -> None:
        @api.pl.when(api.pl.program_id(2) == 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] = api.xp.zeros_like(o[...])

        o[...] += api.xp.dot(x[...], y[...])

    return api.call(
        k,
        api.sds((32, 32), F32),
        grid=(2, 2, 4),
        in_specs=[
            api.pl.BlockSpec((16, 16), lambda i, j, q: (i, q)),
            api.pl.BlockSpec((16, 16), lambda i, j, q: (q, j)),
        ],
        out_specs=api.pl.BlockSpec((16, 16), lambda i, j, q: (i, j)),
    )(api.array(values("rm", 32, 64)), api.array(values("rm2", 64, 32)))


@case("reduce", order="inner")
def reduce_running_max_argmax(api: Any) -> Any:
    """Running max and its column index over column blocks, two outputs revisited together."""
    bs = 8

    def k(x: Any, m: Any, a: Any) -> None:
        j = api.pl.program_id(1)
        v = x[...]
        bm = api.xp.max(v, axis=1)
        ba = api.xp.argmax(v, axis=1).astype(api.dtype(I32)) + j * bs

        @api.pl.when(j == 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            m[...] = bm
            a[...] = ba

        @api.pl.when(j > 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            better = bm > m[...]
            a[...] = api.xp.where(better, ba, a[...])
            m[...] = api.xp.where(better, bm, m[...])

    o = api.pl.BlockSpec((4,), lambda i, j: i)
    return api.call(
        k,
        (api.sds((8,), F32), api.sds((8,), I32)),
        grid=(2, 4),
        in_specs=[api.pl.BlockSpec((4, bs), lambda i, j: (i, j))],
        out_specs=(o, o),
    )(api.array(values("ra", 8, 32)))


@case("reduce", tol=(1e-5, 1e-5))
def reduce_layernorm(api: Any) -> Any:
    """Layer norm with scale and shift, 3 rows per program."""

    def k(x: Any, g: Any, b: Any, o: Any) -> None:
        v = x[...]
        mu = api.xp.sum(v, axis=1, keepdims=True) / 24.0
        c = v - mu
        var = api.xp.sum(c * c, axis=1, keepdims=True) / 24.0
        o[...] = c / api.xp.sqrt(var + 1e-5) * g[...] + b[...]

    w = api.pl.BlockSpec((1, 24), lambda i: (0, 0))
    s = api.pl.BlockSpec((3, 24), lambda i: (i, 0))
    return api.call(k, api.sds((6, 24), F32), grid=(2,), in_specs=[s, w, w], out_specs=s)(
        api.array(values("ln", 6, 24)), api.array(values("lg", 1, 24)), api.array(values("lb", 1, 24))
    )


@case("reduce", order="serial")
def reduce_non_consecutive_revisit(api: Any) -> Any:
    """Out block i % 2 revisited non-consecutively: interpret mode keeps earlier values."""

    def k(x: Any, o: Any) -> None:
        i = api.pl.program_id(0)

        @api.pl.when(i < 2)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] = x[...]

        @api.pl.when(i >= 2)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] += x[...]

    return api.call(
        k,
        api.sds((4,), I32),
        grid=(6,),
        in_specs=[api.pl.BlockSpec((2,), lambda i: i)],
        out_specs=api.pl.BlockSpec((2,), lambda i: i % 2),
    )(api.array(values("nc", 12, lo=0, hi=9, kind="int")))


# -- ref indexing


@case("indexing")
def index_embedding_lookup(api: Any) -> Any:
    """Row gather: ids ref gives the row, table is a whole-array ref (dynamic scalar index)."""

    def k(ids: Any, t: Any, o: Any) -> None:
        o[...] = t[ids[api.pl.program_id(0)]]

    return api.call(
        k,
        api.sds((6, 5), F32),
        grid=(6,),
        in_specs=[api.pl.BlockSpec(), api.pl.BlockSpec()],
        out_specs=api.pl.BlockSpec((None, 5), lambda i: (i, 0)),
    )(api.array(values("el", 6, lo=0, hi=9, kind="int")), api.array(values("et", 9, 5)))


@case("indexing")
def index_static_slices(api: Any) -> Any:
    """Static ints (also negative), Python slices with negative bounds, ellipsis."""

    def k(x: Any, o: Any) -> None:
        o[0:2, :] = x[2:4, :]
        o[2, ...] = x[-1, ...]
        o[3, 0:3] = x[0, -3:]
        o[3, 3:] = x[1, :-3]

    return api.call(k, api.sds((4, 6), I32))(api.array(values("ss", 5, 6, lo=0, hi=100, kind="int")))


@case("indexing", needs=["gather"])
def index_vector_scatter(api: Any) -> Any:
    """Integer-array indexing on the store side (permutation scatter)."""

    def k(x: Any, p: Any, o: Any) -> None:
        o[p[...]] = x[...]

    return api.call(k, api.sds((8,), F32))(
        api.array(values("vs", 8)), api.array(np.array([2, 0, 7, 3, 1, 6, 5, 4], np.int32))
    )


@case("indexing", needs=["ref_at"])
def index_ref_at_views(api: Any) -> Any:
    """X.at[...] sub-views read and written through."""

    def k(x: Any, o: Any) -> None:
        v = x.at[api.pl.ds(2, 6)]
        w = o.at[api.pl.ds(0, 4)]
        w[...] = v[api.pl.ds(1, 4)] * 2.0
        o[api.pl.ds(4, 4)] = v[0:4]

    return api.call(k, api.sds((8,), F32))(api.array(values("ra2", 10)))


# -- masks


@case("mask", needs=["load_store"])
def mask_store_keeps_old(api: Any) -> Any:
    """Pl.store with a mask leaves the unmasked elements as they were."""

    def k(x: Any, o: Any) -> None:
        o[...] = api.xp.full((8,), 9.0, api.dtype(F32))
        api.pl.store(o, (slice(None),), x[...], mask=api.iota(8) % 2 == 0)

    return api.call(k, api.sds((8,), F32))(api.array(values("ms", 8)))


@case("mask", needs=["load_store"], tol=FUNCTIONS)
def mask_softmax_padded_row(api: Any) -> Any:
    """Pallas_test softmax: 2-d index (row, iota), columns padded to a power of two, other=-inf."""
    n, p = 11, 16

    def k(x: Any, o: Any) -> None:
        r = api.pl.program_id(0)
        c = api.iota(p)
        m = c < n
        v = api.pl.load(x, (r, c), mask=m, other=-float("inf"))
        e = api.xp.exp(v - api.xp.max(v, axis=0))
        api.pl.store(o, (r, c), e / api.xp.sum(e, axis=0), mask=m)

    return api.call(k, api.sds((3, n), F32), grid=(3,))(api.array(values("mp", 3, n)))


# -- control flow


@case("control")
def ctl_fori_dynamic_bound(api: Any) -> Any:
    """Loop bound depends on program_id: o[i] = sum of x[0..i]."""

    def k(x: Any, o: Any) -> None:
        i = api.pl.program_id(0)
        o[i] = api.fori(0, i + 1, lambda j, a: a + x[j], api.xp.int32(0))

    return api.call(k, api.sds((6,), I32), grid=(6,))(api.array(values("fb", 6, lo=-9, hi=9, kind="int")))


@case("control", needs=["while"])
def ctl_while_gcd(api: Any) -> Any:
    """Data-dependent while: gcd of pairs of ints."""

    def k(x: Any, o: Any) -> None:
        i = api.pl.program_id(0)
        a, _b = api.while_(lambda c: c[1] != 0, lambda c: (c[1], c[0] % c[1]), (x[i, 0], x[i, 1]))
        o[i] = a

    return api.call(k, api.sds((5,), I32), grid=(5,))(
        api.array(np.array([[12, 18], [100, 75], [17, 5], [0, 9], [270, 192]], np.int32))
    )


@case("control", needs=["cond"])
def ctl_cond_value(api: Any) -> Any:
    """Conditional returning a value chosen by program_id."""

    def k(x: Any, o: Any) -> None:
        v = x[...]
        o[...] = api.cond(api.pl.program_id(0) % 2 == 0, lambda u: u * 2.0, lambda u: -u, v)

    s = api.pl.BlockSpec((3,), lambda i: i)
    return api.call(k, api.sds((12,), F32), grid=(4,), in_specs=[s], out_specs=s)(api.array(values("cv", 12)))


@case("control")
def ctl_when_python_bool(api: Any) -> Any:
    """Pl.when(True) runs the body, pl.when(False) skips it, nested when."""

    def k(x: Any, o: Any) -> None:
        i = api.pl.program_id(0)
        o[...] = x[...]

        @api.pl.when(False)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] = x[...] * 100

        @api.pl.when(i > 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            @api.pl.when(i < 3)  # type: ignore[untyped-decorator]  # the adapter's type is Any
            def _() -> None:
                o[...] = x[...] + 1000

    s = api.pl.BlockSpec((2,), lambda i: i)
    return api.call(k, api.sds((8,), I32), grid=(4,), in_specs=[s], out_specs=s)(
        api.array(values("wb", 8, lo=0, hi=9, kind="int"))
    )


@case("control")
def ctl_mandelbrot(api: Any) -> Any:
    """Fixed-count loop on 2-d tiles, escape counts as int32."""

    def k(cr: Any, ci: Any, o: Any) -> None:
        a, b = cr[...], ci[...]
        z0 = api.xp.zeros((8, 8), api.dtype(F32))
        n0 = api.xp.zeros((8, 8), api.dtype(I32))

        def body(_: Any, c: Any) -> Any:
            x, y, n = c
            alive = x * x + y * y <= 4.0
            return (
                api.xp.where(alive, x * x - y * y + a, x),
                api.xp.where(alive, 2.0 * x * y + b, y),
                n + alive.astype(api.dtype(I32)),
            )

        o[...] = api.fori(0, 12, body, (z0, z0, n0))[2]

    s = api.pl.BlockSpec((8, 8), lambda i, j: (i, j))
    re, im = np.meshgrid(np.arange(16, dtype=np.float32) / 8 - 1.5, np.arange(16, dtype=np.float32) / 8 - 1)
    return api.call(k, api.sds((16, 16), I32), grid=(2, 2), in_specs=[s, s], out_specs=s)(
        api.array(np.ascontiguousarray(re)), api.array(np.ascontiguousarray(im))
    )


# -- aliasing


@case("alias", needs=["alias"])
def alias_partial_write(api: Any) -> Any:
    """Only block 1 of 4 is written; the rest keeps the aliased input's values."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...] * 10

    s = api.pl.BlockSpec((2,), lambda i: i + 1)
    return api.call(k, api.sds((8,), I32), grid=(1,), in_specs=[s], out_specs=s, input_output_aliases={0: 0})(
        api.array(values("ap", 8, lo=0, hi=9, kind="int"))
    )


@case("alias", order="serial", needs=["alias"])
def alias_scatter_add_serial(api: Any) -> Any:
    """Scatter-add with duplicate ids: relies on programs running one after another."""

    def k(ids: Any, v: Any, acc: Any, o: Any) -> None:
        i = api.pl.program_id(0)
        j = ids[i]
        o[j] = o[j] + v[i]

    return api.call(k, api.sds((5,), I32), grid=(8,), input_output_aliases={2: 0})(
        api.array(np.array([0, 2, 2, 4, 0, 2, 1, 4], np.int32)),
        api.array(values("sa", 8, lo=1, hi=9, kind="int")),
        api.array(np.zeros(5, np.int32)),
    )


# -- pytrees / several outputs


@case("pytree")
def tree_out_list_becomes_tuple(api: Any) -> Any:
    """Out_shape given as a list: the result is a tuple (asserted)."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[...]

    r = api.call(k, [api.sds((3,), F32)])(api.array(values("tl", 3)))
    assert isinstance(r, tuple)
    assert len(r) == 1
    return r


@case("pytree")
def tree_outputs_different_blocks(api: Any) -> Any:
    """Outputs with different rank, dtype and block shape."""

    def k(x: Any, s: Any, f: Any) -> None:
        v = x[...]
        s[...] = api.xp.sum(v, axis=1).astype(api.dtype(I32))
        f[...] = v > 0

    return api.call(
        k,
        (api.sds((6,), I32), api.sds((6, 4), BOOL)),
        grid=(3,),
        in_specs=[api.pl.BlockSpec((2, 4), lambda i: (i, 0))],
        out_specs=(api.pl.BlockSpec((2,), lambda i: i), api.pl.BlockSpec((2, 4), lambda i: (i, 0))),
    )(api.array(values("tb", 6, 4, lo=-9, hi=9, kind="int")))


# -- dtypes


@case("dtype", needs=["bfloat16"])
def dtype_bf16_add(api: Any) -> Any:
    """Bf16 + bf16 rounds to nearest even."""

    def k(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...]

    s = api.pl.BlockSpec((8,), lambda i: i)
    return api.call(k, api.sds((24,), "bfloat16"), grid=(3,), in_specs=[s, s], out_specs=s)(
        api.array(truncated(values("b1", 24)), "bfloat16"), api.array(truncated(values("b2", 24)), "bfloat16")
    )


@case("dtype", order="inner", needs=["bfloat16", "scratch"], tol=(1e-2, 1e-2))
def dtype_bf16_matmul_f32_acc(api: Any) -> Any:
    """Bf16 operands, float32 accumulation in scratch, bf16 result."""

    def k(x: Any, y: Any, o: Any, acc: Any) -> None:
        @api.pl.when(api.pl.program_id(2) == 0)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            acc[...] = api.xp.zeros_like(acc[...])

        acc[...] += api.xp.dot(x[...].astype(api.dtype(F32)), y[...].astype(api.dtype(F32)))

        @api.pl.when(api.pl.program_id(2) == api.pl.num_programs(2) - 1)  # type: ignore[untyped-decorator]  # the adapter's type is Any
        def _() -> None:
            o[...] = acc[...].astype(api.dtype("bfloat16"))

    return api.call(
        k,
        api.sds((16, 16), "bfloat16"),
        grid=(2, 2, 4),
        in_specs=[api.pl.BlockSpec((8, 8), lambda i, j, q: (i, q)), api.pl.BlockSpec((8, 8), lambda i, j, q: (q, j))],
        out_specs=api.pl.BlockSpec((8, 8), lambda i, j, q: (i, j)),
        scratch_shapes=[api.scratch((8, 8), F32)],
    )(api.array(truncated(values("bm1", 16, 32)), "bfloat16"), api.array(truncated(values("bm2", 32, 16)), "bfloat16"))


@case("dtype")
def dtype_int32_wrap_and_divmod(api: Any) -> Any:
    """Int32 multiply wraps; // and % follow Python sign rules."""

    def k(x: Any, y: Any, m: Any, q: Any, r: Any) -> None:
        a, b = x[...], y[...]
        m[...] = a * 1103515245 + 12345
        q[...] = a // b
        r[...] = a % b

    x = np.array([7, -7, 7, -7, 2147483647, -2147483648, 0, 123456789], np.int32)
    y = np.array([2, 2, -2, -2, 3, 7, 5, -1000], np.int32)
    return api.call(k, (api.sds((8,), I32),) * 3)(api.array(x), api.array(y))


@case("dtype")
def dtype_casts(api: Any) -> Any:
    """Float->int truncates toward zero, int->float, bool->int, int->bool."""

    def k(x: Any, y: Any, i: Any, f: Any, t: Any) -> None:
        i[...] = x[...].astype(api.dtype(I32))
        f[...] = y[...].astype(api.dtype(F32)) * 0.5
        t[...] = (y[...].astype(api.dtype(BOOL))).astype(api.dtype(I32))

    return api.call(k, (api.sds((6,), I32), api.sds((6,), F32), api.sds((6,), I32)))(
        api.array(np.array([1.9, -1.9, 0.5, -0.5, 1e6, -0.0], np.float32)),
        api.array(np.array([0, 1, -1, 7, 256, -256], np.int32)),
    )


@case("dtype", tol=FUNCTIONS)
def dtype_float_specials(api: Any) -> Any:
    """Inf/nan flow: max/min with nan, exp overflow, log of 0 and negatives, 0*inf."""

    def k(x: Any, o: Any) -> None:
        v = x[...]
        o[0, :] = api.xp.exp(v)
        o[1, :] = api.xp.log(v)
        o[2, :] = v * 0.0
        o[3, :] = api.xp.maximum(v, 0.0)
        o[4, :] = api.xp.where(api.xp.isnan(v), -1.0, v)

    v = np.array([0.0, -1.0, 1.0, float("inf"), float("-inf"), float("nan"), 100.0, -100.0], np.float32)
    return api.call(k, api.sds((5, 8), F32))(api.array(v))


# -- element-offset (unblocked) indexing


@case("unblocked", needs=["unblocked"], tol=SUMS)
def unblocked_2d_halo(api: Any) -> Any:
    """4x4 tile with a halo of 1 from a padded array: 5-point stencil."""

    def k(x: Any, o: Any) -> None:
        v = x[...]
        o[...] = v[1:5, 1:5] * 4.0 - v[0:4, 1:5] - v[2:6, 1:5] - v[1:5, 0:4] - v[1:5, 2:6]

    return api.call(
        k,
        api.sds((8, 8), F32),
        grid=(2, 2),
        in_specs=[api.unblocked((6, 6), lambda i, j: (4 * i, 4 * j))],
        out_specs=api.pl.BlockSpec((4, 4), lambda i, j: (i, j)),
    )(api.array(values("uh", 10, 10)))


@case("unblocked", needs=["unblocked_padding"], tol=SUMS)
def unblocked_padding_conv(api: Any) -> Any:
    """Padding ((1,1),): offsets are into the padded array; pad values are unspecified so the
    kernel masks them (JAX today pads NaN, the mid-2024 API padded 0)."""
    n, b = 8, 4

    def k(x: Any, o: Any) -> None:
        pos = api.pl.program_id(0) * b - 1 + api.iota(b + 2)
        v = api.xp.where(api.xp.logical_and(pos >= 0, pos < n), x[...], 0.0)
        o[...] = 0.25 * v[0:4] + 0.5 * v[1:5] + 0.25 * v[2:6]

    return api.call(
        k,
        api.sds((n,), F32),
        grid=(2,),
        in_specs=[api.unblocked((b + 2,), lambda i: b * i, ((1, 1),))],
        out_specs=api.pl.BlockSpec((b,), lambda i: i),
    )(api.array(values("up", n)))


# -- errors


def err(names: list[str], *words: str, **keywords: Any) -> Callable[[Program], Program]:
    return case("error", raises=Refusal(tuple(names), words), **keywords)


def _copy(x: Any, o: Any) -> None:
    o[...] = x[...]


@err(VALUE_ERROR, "block shape", "same number of dimensions")
def err_block_rank_mismatch(api: Any) -> Any:
    """Block_shape rank != array rank."""
    return api.call(_copy, api.sds((8,), F32), grid=(4,), in_specs=[api.pl.BlockSpec((2, 2), lambda i: (i, 0))])(
        api.array(np.zeros(8, np.float32))
    )


@err(TYPE_ERROR, "missing", "positional argument")
def err_index_map_arity(api: Any) -> Any:
    """Index_map takes more arguments than the grid has axes."""
    return api.call(_copy, api.sds((8,), F32), grid=(4,), in_specs=[api.pl.BlockSpec((2,), lambda i, j: i)])(
        api.array(np.zeros(8, np.float32))
    )


@err(VALUE_ERROR, "in_specs", "tuple or a list")
def err_in_specs_not_sequence(api: Any) -> Any:
    """In_specs must be a sequence."""
    return api.call(_copy, api.sds((8,), F32), in_specs=api.pl.BlockSpec((8,), lambda: 0))(
        api.array(np.zeros(8, np.float32))
    )


@err(VALUE_ERROR, "out_specs", "do not match")
def err_out_specs_structure(api: Any) -> Any:
    """Out_specs list, out_shape a single leaf."""
    b = api.pl.BlockSpec((2,), lambda i: i)
    return api.call(_copy, api.sds((8,), F32), grid=(4,), in_specs=[b], out_specs=[b])(
        api.array(np.zeros(8, np.float32))
    )


@err(TYPE_ERROR, "positional argument")
def err_kernel_arity(api: Any) -> Any:
    """Kernel without an output parameter."""
    return api.call(lambda x: None, api.sds((8,), F32))(api.array(np.zeros(8, np.float32)))


@err([*VALUE_ERROR, "AssertionError", "RuntimeError"])
def err_program_id_outside_kernel(api: Any) -> Any:
    """Program_id outside a kernel (JAX: bare AssertionError without a message)."""
    return api.pl.program_id(0)


@err(VALUE_ERROR, "input_output_aliases", "different abstract value", needs=["alias"])
def err_alias_shape(api: Any) -> Any:
    """Aliased shapes differ."""
    return api.call(lambda x, o: None, api.sds((4,), F32), input_output_aliases={0: 0})(
        api.array(np.zeros(8, np.float32))
    )


@err(VALUE_ERROR, "invalid shape", needs=["strict_store"])
def err_store_shape(api: Any) -> Any:
    """Storing a scalar into a vector ref is an error: no implicit broadcast (JAX is strict here)."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[0]

    return api.call(k, api.sds((8,), F32))(api.array(np.zeros(8, np.float32)))


@err(VALUE_ERROR + TYPE_ERROR, "longer than")
def err_too_many_indices(api: Any) -> Any:
    """More indices than ref axes."""

    def k(x: Any, o: Any) -> None:
        o[...] = x[0, 0]

    return api.call(k, api.sds((), F32))(api.array(np.zeros(8, np.float32)))


@err(["TracerBoolConversionError", "TypeError", "ValueError"], needs=["traced"])
def err_python_if_on_program_id(api: Any) -> Any:
    """Python `if` on a traced program_id must be refused in a traced mode."""

    def k(x: Any, o: Any) -> None:
        if api.pl.program_id(0) == 0:
            o[...] = x[...]

    return api.call(k, api.sds((8,), F32), grid=(2,))(api.array(np.zeros(8, np.float32)))
