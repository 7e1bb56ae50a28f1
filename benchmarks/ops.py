"""Ops of neural networks beside torch and numpy, on matrices of 1024 x 4096; matrix products; a cold compilation.

    python benchmarks/ops.py [--threads 1] [--rounds 15] [--only matmul]

All contenders take turns in one process and each figure is a median. torch is optional. Results go to memory that is
used again: numpy and torch get ``out=`` where they have it, the operators below torch's functions included, and the
runtime reuses the memory of results that nobody holds any more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

# Before numpy is imported: OpenBLAS is to choose its kernels for this CPU, and to start no threads of its own.
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)
os.environ["OMP_NUM_THREADS"] = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]

import numpy as np

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue, Weight
from halfulp.compiler.pipeline import compile_graph
from halfulp.runtime import Buffer, InferenceSession, Model

ROWS, COLUMNS = 1024, 4096
MATRICES = ((512, 512, 512), (1024, 1024, 1024), (1000, 777, 1333), (2048, 2048, 2048))
BATCH = (16, 256, 64, 256)
WEIGHT = 4096
CYCLES = 8
PAUSE, LONG_PAUSE = 0.005, 0.1
"""Seconds between contenders; with several threads, those of OpenBLAS and torch go on spinning for a while."""
FEWEST_SECONDS = 2e-3
"""A call that is shorter is repeated up to this for one sample."""

Contender = Callable[[], Any]
Table = tuple[str, dict[str, Contender], Callable[[float], str]]
"""A title, who takes part, and what else to show of a contender's seconds."""


def random(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def torch_with(threads: int) -> Any:
    """torch, set to a number of threads; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    return torch


def model_of(build: Callable[..., TensorValue], shapes: list[tuple[int, ...]], threads: int, **weights: Any) -> Model:
    """A graph of one op on float32 inputs of these shapes, then weights by name."""
    with Graph("ops", input_types=[TensorType(DType.float32, shape) for shape in shapes]) as graph:
        held = [Weight(name, DType.float32, array.shape) for name, array in weights.items()]
        graph.output(build(*graph.inputs, *held))
    return InferenceSession().load(graph, options=CompileOptions(threads=threads), weights_registry=weights)


def row_ops(threads: int) -> Iterator[Table]:
    """Maps and normalizations."""
    x, gain, shift, out = random(ROWS, COLUMNS), random(COLUMNS), random(COLUMNS), np.empty((ROWS, COLUMNS), np.float32)
    buffer, torch = Buffer.from_numpy(x), _TorchRows(torch_with(threads), x, gain, shift, out)

    def table(name: str, build: Callable[..., TensorValue], rivals: dict[str, Contender], **weights: Any) -> Table:
        model = model_of(build, [(ROWS, COLUMNS)], threads, **weights)
        mine: dict[str, Contender] = {"halfulp": lambda: model.execute(buffer), "copy": lambda: np.copyto(out, x)}
        return f"{name} of {ROWS} x {COLUMNS}", mine | torch.contenders(name) | rivals, lambda _: ""

    yield table("gelu tanh", lambda v: ops.gelu(v, "tanh"), {"numpy": lambda: _numpy_gelu(x, out)})
    yield table("gelu erf", lambda v: ops.gelu(v, "none"), {})
    yield table("softmax", ops.softmax, {"numpy": lambda: _numpy_softmax(x, out)})
    layer, rms = lambda: _numpy_layer_norm(x, gain, shift, out), lambda: _numpy_rms_norm(x, gain, out)
    yield table("layer_norm", lambda v, g, s: ops.layer_norm(v, g, s, 1e-5), {"numpy": layer}, gain=gain, shift=shift)
    yield table("rms_norm", lambda v, g: ops.rms_norm(v, g, 1e-5), {"numpy": rms}, gain=gain)


class _TorchRows:
    """torch's contenders on rows, by the title of their table."""

    def __init__(self, torch: Any, *arrays: Any) -> None:
        self.torch = torch
        if torch is not None:
            self.x, self.gain, self.shift, self.out = map(torch.from_numpy, arrays)
            self.mean, self.deviation = torch.empty(ROWS, 1), torch.empty(ROWS, 1)

    def contenders(self, name: str) -> dict[str, Contender]:
        if self.torch is None:
            return {}
        aten, x, gain, out = self.torch.ops.aten, self.x, self.gain, self.out
        by_name: dict[str, Contender] = {
            "gelu tanh": lambda: aten.gelu.out(x, approximate="tanh", out=out),
            "gelu erf": lambda: aten.gelu.out(x, approximate="none", out=out),
            "softmax": lambda: self.torch.softmax(x, -1, out=out),
            "layer_norm": lambda: aten.native_layer_norm.out(
                x, [COLUMNS], gain, self.shift, 1e-5, out0=out, out1=self.mean, out2=self.deviation
            ),
            "rms_norm": lambda: self.torch.nn.functional.rms_norm(x, (COLUMNS,), gain, 1e-5),
        }
        return {"torch": by_name[name]}


def _numpy_gelu(x: Any, out: Any) -> None:
    np.multiply(x, x, out=out)
    np.multiply(out, np.float32(0.044715 * 0.7978845608), out=out)
    np.add(out, np.float32(0.7978845608), out=out)
    np.multiply(out, x, out=out)
    np.tanh(out, out=out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, np.float32(0.5), out=out)


def _numpy_softmax(x: Any, out: Any) -> None:
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(-1, keepdims=True), out=out)


def _numpy_layer_norm(x: Any, gain: Any, shift: Any, out: Any) -> None:
    np.subtract(x, x.mean(-1, keepdims=True), out=out)
    variance = np.einsum("ij,ij->i", out, out) / COLUMNS
    np.multiply(out, (1 / np.sqrt(variance + np.float32(1e-5)))[:, None], out=out)
    np.multiply(out, gain, out=out)
    np.add(out, shift, out=out)


def _numpy_rms_norm(x: Any, gain: Any, out: Any) -> None:
    squares = np.einsum("ij,ij->i", x, x) / COLUMNS
    np.multiply(x, (1 / np.sqrt(squares + np.float32(1e-5)))[:, None], out=out)
    np.multiply(out, gain, out=out)


def products(threads: int) -> Iterator[Table]:
    """Matrix products, one batched."""
    torch = torch_with(threads)
    for m, k, n in MATRICES:
        yield _product(f"matmul {m} x {k} x {n}", random(m, k), random(k, n), threads, torch)
    batch, m, k, n = BATCH
    yield _product(f"matmul {batch} of {m} x {k} x {n}", random(batch, m, k), random(batch, k, n), threads, torch)


def _product(title: str, a: Any, b: Any, threads: int, torch: Any) -> Table:
    out, model = a @ b, model_of(ops.matmul, [a.shape, b.shape], threads)
    buffers = Buffer.from_numpy(a), Buffer.from_numpy(b)
    contenders: dict[str, Contender] = {
        "halfulp": lambda: model.execute(*buffers),
        "numpy": lambda: np.matmul(a, b, out=out),
    }
    if torch is not None:
        left, right, target = map(torch.from_numpy, (a, b, out))
        contenders["torch"] = lambda: torch.matmul(left, right, out=target)
    flops = 2 * out.size * a.shape[-1]
    return title, contenders, lambda seconds: f"{flops / seconds / 1e9:7.1f} GFLOP/s"


def weight_products(threads: int) -> Iterator[Table]:
    """Few rows by a large weight: memory is the limit."""
    torch, weight = torch_with(threads), random(WEIGHT, WEIGHT)
    for rows in (1, 8, 16):
        yield _weight_product(random(rows, WEIGHT), weight, threads, torch)


def _weight_product(x: Any, weight: Any, threads: int, torch: Any) -> Table:
    out, model, buffer = x @ weight, model_of(ops.matmul, [x.shape], threads, weight=weight), Buffer.from_numpy(x)
    contenders: dict[str, Contender] = {
        "halfulp": lambda: model.execute(buffer),
        "numpy": lambda: np.matmul(x, weight, out=out),
        "read": lambda: weight.max(),
    }
    if torch is not None:
        left, right, target = map(torch.from_numpy, (x, weight, out))
        contenders["torch"] = lambda: torch.matmul(left, right, out=target)
    title = f"{len(x)} x {WEIGHT} by a weight of {WEIGHT} x {WEIGHT}"
    return title, contenders, lambda seconds: f"{weight.nbytes / seconds / 1e9:7.1f} GB/s"


def print_table(table: Table, rounds: int, pause: float) -> None:
    """Medians; the contenders take turns, after a round that does not count."""
    title, contenders, more = table
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    repeats = {name: 1 + int(FEWEST_SECONDS / _seconds(run, 2)) for name, run in contenders.items()}
    for _ in range(rounds):
        for name, run in contenders.items():
            settled = time.perf_counter() + pause
            while time.perf_counter() < settled:
                pass  # a sleep would send this core to sleep, too
            samples[name].append(_seconds(run, repeats[name]))
    found = {name: statistics.median(times) for name, times in samples.items()}
    print(f"\n{title}")
    for name, median in found.items():
        print(f"  {name:8} {median * 1e3:9.3f} ms  {median / found['halfulp']:6.2f} x halfulp  {more(median)}")


def _seconds(run: Contender, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def large_graph(cycles: int) -> Graph:
    """Ops of many kinds, as a network has them, over and over; each time with other constants."""
    with Graph("large", input_types=[TensorType(DType.float32, ["rows", 64])]) as graph:
        value = graph.inputs[0]
        for cycle in range(cycles):
            value = ops.gelu(ops.matmul(value, random(64, 64)) + random(64))
            value = ops.tanh(ops.exp(value * (0.5 + cycle)) - ops.mean(value, axis=-1))
            value = ops.concat([value[:, 32:], value[:, :32]], axis=1)
            value = ops.softmax(ops.rms_norm(value, ops.constant(random(64)), 1e-5))
        graph.output(value)
    return graph


def compile_large(rounds: int) -> None:
    """Seconds to compile a graph with no cache; the imports of LLVM and its first use are done."""
    compile_graph(large_graph(1))
    graph = large_graph(CYCLES)
    count = sum(op.name == "graph.apply" for op in graph.module.walk())
    found = statistics.median(_seconds(lambda: compile_graph(graph), 1) for _ in range(min(rounds, 3)))
    print(f"\ncold compilation of {count} ops: {found:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="show tables whose title holds this text")
    arguments = parser.parse_args()
    print(f"float32, {arguments.threads} thread{'s' if arguments.threads > 1 else ''}")
    for family in (row_ops, products, weight_products):
        for table in family(arguments.threads):
            if arguments.only in table[0]:
                print_table(table, arguments.rounds, PAUSE if arguments.threads == 1 else LONG_PAUSE)
    if arguments.only in "compilation":
        compile_large(arguments.rounds)


if __name__ == "__main__":
    main()
