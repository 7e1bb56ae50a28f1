"""Log-probabilities, softmax and matmul on an NVIDIA GPU, beside torch. Says so where there is none.

    python benchmarks/gpu.py [--device 0] [--rows 64] [--vocab 128256] [--size 2048] [--rounds 20]

Both take turns in one process, each figure is the median time of a call up to the end of its work on the GPU; operands
and results stay there. GB/s counts each operand and each result once. torch is optional; its matmul is in float32
(no TF32), its row of log-probabilities is log_softmax, topk and gather.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from halfulp import ops
from halfulp.compiler import DeviceRef, DType, Graph, TensorType
from halfulp.runtime import Accelerator, Buffer, DeviceError, InferenceSession, Model
from halfulp.runtime.pipelines import log_probabilities_ragged_graph

GPU = DeviceRef.GPU(0)
LEVELS, TOP = 3, 5
Run = Callable[[], Any]


def torch_or_none() -> Any:
    """torch, if it is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch if torch.cuda.is_available() else None


def medians(contenders: dict[str, tuple[Run, Run]], rounds: int) -> dict[str, float]:
    """Seconds of each contender, a call and what waits for it; they take turns, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(rounds + 1):
        for name, (run, wait) in contenders.items():
            wait()
            start = time.perf_counter()
            run()
            wait()
            if round_:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


class Comparison:
    """Runs the same work by both and prints a line for each."""

    def __init__(self, device: Accelerator, rounds: int) -> None:
        self.device = device
        self.rounds = rounds
        self.torch = torch_or_none()
        self.place = f"cuda:{device.ref.index}"

    def load(self, graph: Graph) -> Model:
        """The graph on the GPU."""
        return InferenceSession(devices=[self.device]).load(graph)

    def show(self, title: str, nbytes: int, operations: float, ours: Run, theirs: Run | None) -> None:
        """Measures and prints; ``operations`` counts products and sums, 0 where the memory is what counts."""
        contenders = {"halfulp": (ours, self.device.heap.driver.synchronize)}
        if theirs is not None:
            contenders["torch"] = (theirs, self.torch.cuda.synchronize)
        found = medians(contenders, self.rounds)
        print(f"\n{title}")
        for name, seconds in found.items():
            work = (
                f"{operations / seconds / 1e12:8.2f} Tflop/s" if operations else f"{nbytes / seconds / 1e9:8.1f} GB/s"
            )
            ratio = f"   torch takes {seconds / found['halfulp']:.2f} times as long" if name == "torch" else ""
            print(f"  {name:8} {seconds * 1e6:10.1f} us {work}{ratio}")

    def log_probabilities(self, rows: int, vocab: int) -> None:
        """Rows of logits, each with its sampled token."""
        rng = np.random.default_rng(rows)
        logits = rng.normal(scale=3.0, size=(rows, vocab)).astype(np.float32)
        tokens, offsets = rng.integers(vocab, size=rows).astype(np.uint32), np.arange(rows + 1, dtype=np.uint32)
        model = self.load(log_probabilities_ragged_graph(GPU, levels=LEVELS))
        operands = (logits, tokens, tokens, offsets, offsets, offsets)
        held = [Buffer.from_numpy(array).to(self.device) for array in operands]
        theirs = None
        if (torch := self.torch) is not None:
            x = torch.from_numpy(logits).to(self.place)
            index = torch.from_numpy(tokens.astype(np.int64))[:, None].to(self.place)

            def theirs() -> Any:
                values = torch.log_softmax(x, dim=-1)
                return torch.topk(values, TOP), values.gather(1, index)

        title = f"log-probabilities, {rows} x {vocab} float32"
        self.show(title, logits.nbytes, 0, lambda: model.execute(*held, offsets), theirs)

    def softmax(self, rows: int, size: int) -> None:
        """Softmax of rows."""
        x = np.random.default_rng(rows).normal(size=(rows, size)).astype(np.float32)
        model = self.load(Graph("softmax", ops.softmax, [TensorType(DType.float32, ["rows", "n"], GPU)]))
        held, theirs = Buffer.from_numpy(x).to(self.device), None
        if (torch := self.torch) is not None:
            given = torch.from_numpy(x).to(self.place)

            def theirs() -> Any:
                return torch.softmax(given, dim=-1)

        self.show(f"softmax, {rows} x {size} float32", 2 * x.nbytes, 0, lambda: model.execute(held), theirs)

    def matmul(self, size: int) -> None:
        """The product of two square matrices."""
        x, y = np.random.default_rng(size).normal(size=(2, size, size)).astype(np.float32)
        kind = TensorType(DType.float32, ["n", "n"], GPU)
        model = self.load(Graph("matmul", ops.matmul, [kind, kind]))
        held, theirs = [Buffer.from_numpy(array).to(self.device) for array in (x, y)], None
        if (torch := self.torch) is not None:
            a, b = (torch.from_numpy(array).to(self.place) for array in (x, y))

            def theirs() -> Any:
                return a @ b

        self.show(f"matmul, {size} x {size} float32", 0, 2.0 * size**3, lambda: model.execute(*held), theirs)


def main() -> None:
    """Prints all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", type=int, default=0, help="which GPU")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--vocab", type=int, default=128256)
    parser.add_argument("--size", type=int, default=2048, help="of the matrices")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    try:
        device = Accelerator(options.device)
    except DeviceError as error:
        sys.exit(f"nothing to measure: {error}")
    print(f"{device.name}, code for {device.architecture}")
    comparison = Comparison(device, options.rounds)
    if comparison.torch is None:
        print("torch is not installed, or sees no GPU: only our own times")
    comparison.log_probabilities(options.rows, options.vocab)
    comparison.softmax(options.rows * 16, 8192)
    comparison.matmul(options.size)


if __name__ == "__main__":
    main()
