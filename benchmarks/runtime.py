"""What the runtime costs, beside numpy and torch in the same process: threads, small executions, caches, memory.

    python benchmarks/runtime.py [--rounds 15] [--rows 256] [--vocab 128256]

Contenders take turns and each figure is a median; "warm" means that the pool's workers have not gone to sleep. torch is
optional. Compile times leave the imports out; the disk cache is a folder of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType
from halfulp.compiler.codegen.cpu import compile_to_object, host_target
from halfulp.runtime import Buffer, InferenceSession, Model
from halfulp.runtime.loader import NativeLibrary
from halfulp.runtime.loading import forget_loaded
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

Contender = Callable[[], Any]
THREADS = 2

# `times` regions of two rounds that wait for each other, so that a worker must take one of them
REGIONS = """
define void @meet(ptr %arrived, i64 %round) {
entry:
  %before = atomicrmw add ptr %arrived, i64 1 seq_cst, align 8
  %odd = or i64 %before, 1
  %all = add i64 %odd, 1
  br label %wait
wait:
  %there = load atomic i64, ptr %arrived seq_cst, align 8
  %both = icmp sge i64 %there, %all
  br i1 %both, label %end, label %wait
end:
  ret void
}
define void @regions(ptr %arrived, ptr %times) {
entry:
  %count = load i64, ptr %times, align 8
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  call void @halfulp_parallel_for(i64 2, i64 2, ptr @meet, ptr %arrived)
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %count
  br i1 %more, label %next, label %end
end:
  ret void
}
declare void @halfulp_parallel_for(i64, i64, ptr, ptr)
"""

# What a process does that finds the graph in the cache: the seconds of load() alone, and of the imports before it.
NEW_PROCESS = """
import time
start = time.perf_counter()
import halfulp.compiler, halfulp.runtime.session, halfulp.runtime.model, halfulp.runtime.buffer
from halfulp.compiler import DeviceRef, Graph, CompileOptions
from halfulp.runtime import InferenceSession
imported = time.perf_counter() - start
import llvmlite.binding, halfulp.ops, halfulp.runtime.fingerprint, halfulp.compiler.pipeline, halfulp.runtime.threads
from halfulp.runtime.pipelines import log_probabilities_ragged_graph
graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3)
start = time.perf_counter()
InferenceSession().load(graph)
print(time.perf_counter() - start, imported)
"""


def medians(contenders: dict[str, Contender], rounds: int, repeat: int = 1) -> dict[str, float]:
    """Seconds of each contender; they take turns, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            for _ in range(repeat):
                run()
            if number:
                seconds[name].append((time.perf_counter() - start) / repeat)
    return {name: statistics.median(times) for name, times in seconds.items()}


def report(title: str, seconds: dict[str, float], unit: float, name: str) -> None:
    """One line for each contender, and its ratio to ours."""
    print(f"\n{title}")
    ours = seconds["halfulp"]
    for contender, value in seconds.items():
        print(f"  {contender:24} {value / unit:10.2f} {name}  {value / ours:7.2f} x halfulp")


def regions(rounds: int) -> None:
    code = compile_to_object(REGIONS, host_target())
    run = NativeLibrary(code, ["regions"]).entry("regions")
    times, arrived = (ctypes.c_int64 * 1)(100), (ctypes.c_int64 * 1)()
    found = medians({"halfulp": lambda: run(ctypes.addressof(arrived), ctypes.addressof(times))}, 50 * rounds)
    print(f"a parallel region, both threads in it, warm: {found['halfulp'] / 100 * 1e6:.2f} us")


def tiny(rounds: int, torch: Any) -> None:
    """x + y of four floats."""
    f4 = TensorType(DType.float32, [4])
    model = InferenceSession().load(Graph("tiny", lambda x, y: x + y, [f4, f4]))
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    a, b = Buffer.from_numpy(x), Buffer.from_numpy(y)
    contenders: dict[str, Contender] = {
        "halfulp": lambda: model.execute(a, b),
        "halfulp, numpy arrays": lambda: model.execute(x, y),
        "numpy": lambda: np.add(x, y),
    }
    if torch is not None:
        s, t = torch.from_numpy(x), torch.from_numpy(y)
        contenders["torch"] = lambda: torch.add(s, t)
    report("a tiny graph, execute with Buffers", medians(contenders, rounds, 2000), 1e-6, "us")


def log_probabilities(rounds: int, rows: int, vocab: int, torch: Any) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3.0, size=(rows, vocab)).astype(np.float32)
    tokens = rng.integers(vocab, size=rows).astype(np.uint32)
    offsets = np.arange(rows + 1, dtype=np.uint32)
    buffers = [Buffer.from_numpy(a) for a in (logits, tokens, tokens, offsets, offsets, offsets, offsets)]

    def load(threads: int) -> Model:
        graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3)
        return InferenceSession().load(graph, options=CompileOptions(threads=threads))

    two, one = load(THREADS), load(1)
    contenders: dict[str, Contender] = {
        "halfulp": lambda: two.execute(*buffers),
        "halfulp, one thread": lambda: one.execute(*buffers),
        "numpy sum": logits.sum,
    }
    if torch is not None:
        torch.set_num_threads(THREADS)
        x, index = torch.from_numpy(logits), torch.from_numpy(tokens.astype(np.int64))[:, None]

        def run() -> Any:
            values = torch.log_softmax(x, dim=-1)
            return torch.topk(values, 5), values.gather(1, index)

        contenders["torch"] = run
    report(f"log-probabilities and top 5, {rows} x {vocab}, two threads", medians(contenders, rounds), 1e-3, "ms")


def outputs(rounds: int, torch: Any) -> None:
    """64 MB results: where the memory comes from decides."""
    x = np.ones((4096, 4096), np.float32)
    matrix = TensorType(DType.float32, ["n", "m"])
    model = InferenceSession().load(Graph("add", lambda x: x + x, [matrix]), options=CompileOptions(threads=THREADS))
    buffer = Buffer.from_numpy(x)
    contenders: dict[str, Contender] = {"halfulp": lambda: model.execute(buffer), "numpy": lambda: np.add(x, x)}
    if torch is not None:
        t = torch.from_numpy(x)
        contenders["torch"] = lambda: torch.add(t, t)
    report("x + x of 64 MB into new results", medians(contenders, rounds), 1e-3, "ms")


def caches(rounds: int) -> None:
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3)
    session = InferenceSession()
    start = time.perf_counter()
    session.load(graph)
    cold = time.perf_counter() - start
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        session.load(graph)
        seconds.append(time.perf_counter() - start)
    print(f"\nload: compiled {cold * 1e3:.1f} ms, same graph again {statistics.median(seconds) * 1e3:.3f} ms")
    runs = []
    for _ in range(min(rounds, 7)):
        run = subprocess.run([sys.executable, "-c", NEW_PROCESS], capture_output=True, text=True, check=True)
        runs.append(tuple(map(float, run.stdout.split())))
    load, imports = (statistics.median(column) * 1e3 for column in zip(*runs, strict=True))
    print(f"in a new process: from the disk cache {load:.1f} ms, imports of compiler and runtime {imports:.0f} ms")


def peaks() -> None:
    """How near the arena comes to what is alive at once."""
    from random import Random

    ratios = []
    for seed in range(20):
        chosen = Random(seed)

        def forward(x: Any, y: Any, chosen: Random = chosen) -> Any:
            values = [x, y]
            for _ in range(10):
                a, b = chosen.choice(values[-6:]), chosen.choice(values)
                kind = chosen.randrange(3)
                values.append(
                    ops.softmax(a) if kind == 0 else ops.transpose(a, 0, 1) * b if kind == 1 else ops.sum(a, axis=0) + b
                )
            return values[-1]

        square = TensorType(DType.float32, ["n", "n"])
        model = InferenceSession().load(Graph(f"random{seed}", forward, [square, square]), CompileOptions(opt_level=1))
        found = model.memory_report((50, 50), (50, 50))
        ratios.append(found.peak / found.lower_bound if found.lower_bound else 1.0)
    print(f"\npeak of intermediates / alive at once, 20 random graphs: {max(ratios):.3f} at most")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--vocab", type=int, default=128256)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        torch = None
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HALFULP_CACHE_DIR"] = str(Path(folder) / "cache")
        os.environ["HALFULP_CACHE"] = "1"
        forget_loaded()
        caches(arguments.rounds)
        regions(arguments.rounds)
        tiny(arguments.rounds, torch)
        outputs(arguments.rounds, torch)
        log_probabilities(arguments.rounds, arguments.rows, arguments.vocab, torch)
        peaks()


if __name__ == "__main__":
    main()
