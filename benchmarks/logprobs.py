"""Log-probabilities and top 5 of rows of 128256 float32 logits, beside torch and numpy.

    python benchmarks/logprobs.py [--rows 256 64 8 1] [--vocab 128256] [--rounds 15] [--threads 1]

Ours and torch get the threads, numpy uses one. All contenders take turns in one process and each figure is a median. In
its turn a contender runs three times: the first time after others have had the caches and its threads have gone to
sleep ("first"), then twice more ("again"). Of small inputs those are two different figures.
"sum" is a plain float32 sum of the same bytes: what reading them costs. torch is optional; its row is log_softmax, topk
and gather.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ["HALFULP_CACHE"] = "0"  # the compile time is that of a graph never seen before

import numpy as np

from halfulp.compiler import CompileOptions, DeviceRef
from halfulp.runtime import CPU, Buffer, InferenceSession, Model
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

LEVELS = 3
TOP = 5
PAUSE = 0.01
"""Seconds between two contenders: OpenMP's threads, which torch uses, spin for milliseconds after their last work."""
Contender = Callable[[], Any]


def load(threads: int) -> tuple[Model, float]:
    """The compiled graph and the seconds it took; what compiling imports is imported before."""
    import llvmlite.binding  # noqa: F401

    import halfulp.compiler.codegen.llvm
    import halfulp.compiler.pipeline
    import halfulp.runtime.loader  # noqa: F401
    from halfulp.compiler.passes import get_all_passes

    for import_pass in get_all_passes().values():
        import_pass()
    start = time.perf_counter()
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=LEVELS)
    model = InferenceSession(devices=[CPU()]).load(graph, options=CompileOptions(threads=threads))
    return model, time.perf_counter() - start


def halfulp_contender(model: Model, logits: Any, tokens: Any) -> Contender:
    """One sequence for each row, each scoring its sampled token."""
    offsets = np.arange(len(logits) + 1, dtype=np.uint32)
    buffers = [Buffer.from_numpy(a) for a in (logits, tokens, tokens, offsets, offsets, offsets, offsets)]
    return lambda: model.execute(*buffers)


def numpy_contender(logits: Any, tokens: Any) -> Contender:
    """Log-softmax of the chosen entries, the top through argpartition."""
    rows = np.arange(len(logits))[:, None]

    def run() -> Any:
        largest = logits.max(axis=1, keepdims=True)
        normaliser = largest + np.log(np.exp(logits - largest).sum(axis=1, keepdims=True))
        best = np.argpartition(logits, -TOP, axis=1)[:, -TOP:]
        return logits[rows, best] - normaliser, logits[rows, tokens[:, None]] - normaliser

    return run


def torch_contenders(logits: Any, tokens: Any, threads: int) -> dict[str, Contender]:
    """Nothing where torch is not installed."""
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))  # before torch starts its threads
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(threads)
    x, index = torch.from_numpy(logits), torch.from_numpy(tokens.astype(np.int64))[:, None]

    def run() -> Any:
        values = torch.log_softmax(x, dim=-1)
        return torch.topk(values, TOP), values.gather(1, index)

    return {"torch": run, "torch sum": lambda: x.sum()}


def medians(contenders: dict[str, Contender], rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds of each contender, (first, again); they take turns, after one round that does not count."""
    first: dict[str, list[float]] = {name: [] for name in contenders}
    again: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(rounds + 1):
        for name, run in contenders.items():
            settled = time.perf_counter() + PAUSE
            while time.perf_counter() < settled:
                pass  # a sleep would send this core to sleep, too
            for times in (first[name], again[name], again[name]):
                start = time.perf_counter()
                run()
                if round_:
                    times.append(time.perf_counter() - start)
    return {name: (statistics.median(first[name]), statistics.median(again[name])) for name in contenders}


def compare(model: Model, rows: int, vocab: int, rounds: int, threads: int) -> None:
    """Prints one table."""
    rng = np.random.default_rng(rows)
    logits = rng.normal(scale=3.0, size=(rows, vocab)).astype(np.float32)
    tokens = rng.integers(vocab, size=rows).astype(np.uint32)
    contenders: dict[str, Contender] = {
        "halfulp": halfulp_contender(model, logits, tokens),
        "numpy": numpy_contender(logits, tokens),
        "numpy sum": logits.sum,
        **torch_contenders(logits, tokens, threads),
    }
    found = medians(contenders, rounds)
    print(f"\n{rows} x {vocab} float32, {logits.nbytes / 1e6:.0f} MB, threads: {threads}")
    print("             first run                        again")
    for name, seconds in found.items():
        parts = []
        for time_, ours in zip(seconds, found["halfulp"], strict=True):
            parts.append(f"{time_ * 1e3:9.3f} ms {logits.nbytes / time_ / 1e9:6.1f} GB/s {time_ / ours:7.2f} x halfulp")
        print(f"  {name:10} {'   '.join(parts)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[256, 64, 8, 1])
    parser.add_argument("--vocab", type=int, default=128256)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    model, seconds = load(arguments.threads)
    print(f"cold compile after imports: {seconds:.3f} s")
    for rows in arguments.rows:
        compare(model, rows, arguments.vocab, arguments.rounds, arguments.threads)


if __name__ == "__main__":
    main()
