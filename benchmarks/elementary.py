"""A float32 sum in order R and exp, beside torch, numpy and a copy of the same bytes.

    python benchmarks/elementary.py [--threads 1] [--rounds 15]

All contenders take turns in one process and each figure is a median. torch is optional. Results are written to memory
that is used again, as with ``out=``: the runtime reuses the memory of results that nobody holds any more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType, TensorValue
from halfulp.runtime import CPU, Buffer, InferenceSession, Model

ROWS, COLUMNS = 256, 128256
EXP_ELEMENTS = 16 << 20
PAUSE = 0.01
"""Seconds between contenders: torch's threads go on spinning for some milliseconds and would slow the next one."""
Contender = Callable[[], Any]


def model_of(build: Callable[[TensorValue], TensorValue], threads: int) -> Model:
    """A graph of one op on a vector."""
    with Graph("elementary", input_types=[TensorType(DType.float32, ["n"])]) as graph:
        graph.output(build(graph.inputs[0]))
    return InferenceSession(devices=[CPU()]).load(graph, options=CompileOptions(threads=threads))


def sums(threads: int) -> dict[str, Contender]:
    """Sums of 131 MB."""
    x = np.random.default_rng(0).normal(size=ROWS * COLUMNS).astype(np.float32)
    rows = x.reshape(ROWS, COLUMNS)
    with Graph("sum", input_types=[TensorType(DType.float32, ["rows", "columns"])]) as graph:
        graph.output(ops.sum(graph.inputs[0], axis=-1))
    model = InferenceSession(devices=[CPU()]).load(graph, options=CompileOptions(threads=threads))
    buffer = Buffer.from_numpy(rows)
    contenders: dict[str, Contender] = {
        "halfulp": lambda: model.execute(buffer),
        "numpy": lambda: rows.sum(axis=1),
    }
    if (torch := torch_with(threads)) is not None:
        tensor = torch.from_numpy(rows)
        contenders["torch rows"] = lambda: tensor.sum(dim=1)
        contenders["torch all"] = lambda: tensor.sum()
    return contenders


def exponentials(threads: int) -> dict[str, Contender]:
    """exp of 16M elements."""
    x = np.random.default_rng(0).normal(size=EXP_ELEMENTS).astype(np.float32)
    out = np.empty_like(x)
    model, buffer = model_of(ops.exp, threads), Buffer.from_numpy(x)
    contenders: dict[str, Contender] = {
        "halfulp": lambda: model.execute(buffer),
        "copy": lambda: np.copyto(out, x),
        "numpy": lambda: np.exp(x, out=out),
    }
    if (torch := torch_with(threads)) is not None:
        source, target = torch.from_numpy(x), torch.from_numpy(out)
        contenders["torch out="] = lambda: torch.exp(source, out=target)
    return contenders


def torch_with(threads: int) -> Any:
    """torch, set to a number of threads; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    return torch


def compare(title: str, contenders: dict[str, Contender], rounds: int) -> None:
    """Prints one table of medians; the contenders take turns, after a round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(rounds + 1):
        for name, run in contenders.items():
            settled = time.perf_counter() + PAUSE
            while time.perf_counter() < settled:
                pass  # a sleep would send this core to sleep, too
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    found = {name: statistics.median(times) for name, times in seconds.items()}
    print(f"\n{title}")
    for name, median in found.items():
        print(f"  {name:10} {median * 1e3:9.3f} ms  {median / found['halfulp']:7.2f} x halfulp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(arguments.threads))
    threads = f"{arguments.threads} thread{'s' if arguments.threads > 1 else ''}"
    compare(f"sum of {ROWS} x {COLUMNS} float32, {threads}", sums(arguments.threads), arguments.rounds)
    compare(f"exp of {EXP_ELEMENTS} float32, {threads}", exponentials(arguments.threads), arguments.rounds)


if __name__ == "__main__":
    main()
