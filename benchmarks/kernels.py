"""Kernels as a user writes them: a blocked matmul beside ops.matmul, an add in blocks beside numpy.

    python benchmarks/kernels.py [--rounds 30] [--threads 1]

All contenders take turns in one process, numpy on one thread, and each figure is a median. What JAX 0.10.2 takes in
interpret mode, its only one on a CPU, was measured once, elsewhere.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy starts its threads, which spin beside the next contender

import numpy as np

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.ops import pallas as pl
from halfulp.ops.pallas import numpy as jnp
from halfulp.runtime import Buffer, InferenceSession

Contender = Callable[[], Any]
SIZE = 512
ELEMENTS = 1 << 22
JAX_MATMUL = {32: 303.0, 64: 43.0, 128: 6.4, 256: 3.1}
JAX_ADD = {4096: 2793.0, 65536: 184.0, 1 << 20: 33.0}
"""Milliseconds by the size of a block."""


def matmul_kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)

    o_ref[...] += jnp.dot(x_ref[...], y_ref[...])


def add_kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + y_ref[...]


def blocked_matmul(block: int, threads: int | None) -> pl.PallasCall:
    """512 x 512 float32, accumulated over the last axis of the grid."""
    programs = SIZE // block
    return pl.pallas_call(
        matmul_kernel,
        pl.ShapeDtypeStruct((SIZE, SIZE), "float32"),
        grid=(programs, programs, programs),
        in_specs=[
            pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
            pl.BlockSpec((block, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        compiler_params={"threads": threads},
    )


def blocked_add(block: int, threads: int | None) -> pl.PallasCall:
    """4M float32."""
    spec = pl.BlockSpec((block,), lambda i: i)
    return pl.pallas_call(
        add_kernel,
        pl.ShapeDtypeStruct((ELEMENTS,), "float32"),
        grid=(ELEMENTS // block,),
        in_specs=[spec, spec],
        out_specs=spec,
        compiler_params={"threads": threads},
    )


def graph_matmul(threads: int | None) -> Any:
    """``ops.matmul`` as a model."""
    square = TensorType(DType.float32, [SIZE, SIZE])
    with Graph("matmul", input_types=[square, square]) as graph:
        graph.output(ops.matmul(*graph.inputs))
    return InferenceSession().load(graph, options=CompileOptions(threads=threads))


def medians(contenders: dict[str, Contender], rounds: int) -> dict[str, float]:
    """Milliseconds of each contender; they take turns, after one round that does not count.

    In its turn each runs twice, and the second run counts: else it would matter whose operands the caches hold.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(rounds + 1):
        for name, run in contenders.items():
            run()
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) * 1e3 for name, times in seconds.items()}


def table(title: str, found: dict[str, float], base: str, jax: dict[int, float]) -> None:
    """Prints one table, ratios to ``base``."""
    print(f"\n{title}")
    for name, milliseconds in found.items():
        block = int(name.split()[-1]) if name.startswith("block") else 0
        beside = f"  JAX interpreted {jax[block]:8.1f} ms" if block in jax else ""
        print(f"  {name:14} {milliseconds:9.3f} ms  {milliseconds / found[base]:6.2f} x {base}{beside}")


def compare(rounds: int, threads: int | None) -> None:
    """Both tables."""
    generator = np.random.default_rng(0)
    a, b = (Buffer.from_numpy(generator.normal(size=(SIZE, SIZE)).astype(np.float32)) for _ in range(2))
    model = graph_matmul(threads)
    contenders: dict[str, Contender] = {"ops.matmul": lambda: model.execute(a, b)}
    for block in JAX_MATMUL:
        contenders[f"block {block}"] = partial(blocked_matmul(block, threads), a, b)
    left, right = a.to_numpy(), b.to_numpy()
    contenders["numpy"] = lambda: left @ right
    table(f"matmul {SIZE} x {SIZE} float32", medians(contenders, rounds), "ops.matmul", JAX_MATMUL)

    x, y = (Buffer.from_numpy(generator.normal(size=ELEMENTS).astype(np.float32)) for _ in range(2))
    result = np.empty(ELEMENTS, np.float32)
    contenders = {"numpy": lambda: np.add(x.to_numpy(), y.to_numpy(), out=result)}
    for block in JAX_ADD:
        contenders[f"block {block}"] = partial(blocked_add(block, threads), x, y)
    table(f"add of {ELEMENTS} float32", medians(contenders, rounds), "numpy", JAX_ADD)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    compare(arguments.rounds, arguments.threads)


if __name__ == "__main__":
    main()
