"""Log-probabilities of real logits, the first job halfulp was built for.

SmolLM2-135M-Instruct has read three prompts of different lengths; ``data/`` holds its logits. The graph gives each
prompt token, and the token sampled after the prompt, its log-probability and the most probable alternatives.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from halfulp.compiler import DeviceRef
from halfulp.runtime import CPU, InferenceSession
from halfulp.runtime.pipelines import compute_log_probabilities_ragged, log_probabilities_ragged_graph

DATA = Path(__file__).parent / "data"
TOP = 5


def show(prompt: str, result: Any, pieces: dict[str, str]) -> None:
    """A line for each token: its text, its log-probability, and the most probable tokens at its place."""
    print(f"\n{prompt!r}")
    for token, top in zip(result.sampled_token_ids, result.top_log_probabilities, strict=True):
        best = [f"{pieces[str(other)]!r} {top[other]:.2f}" for other in list(top)[:TOP]]
        print(f"  {pieces[str(token)]!r:14}{top[token]:7.2f}   {'  '.join(best)}")


def largest_difference(logits: Any, offsets: Any, results: list[Any]) -> float:
    """From a log-softmax in float64, over all values of all results."""
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=1, keepdims=True)
    exact -= np.log(np.exp(exact).sum(axis=1, keepdims=True))
    return max(
        abs(float(value - exact[row, token]))
        for start, result in zip(offsets, results, strict=False)
        for row, top in enumerate(result.top_log_probabilities, start)
        for token, value in top.items()
    )


def main() -> None:
    texts = json.loads((DATA / "smollm2_logits.json").read_text())
    stored = np.load(DATA / "smollm2_logits.npz")
    offsets, tokens, sampled = (stored[name] for name in ("input_row_offsets", "tokens", "sampled_tokens"))
    logits = stored["logits"].astype(np.float32)
    start = time.perf_counter()
    graph = log_probabilities_ragged_graph(DeviceRef.CPU(), levels=3)  # keeps 2**3 - 1 top tokens
    model = InferenceSession(devices=[CPU()]).load(graph)
    compile_seconds = time.perf_counter() - start

    results = compute_log_probabilities_ragged(
        CPU(),
        model,
        input_row_offsets=offsets,
        logits=logits,
        next_token_logits=logits[offsets[1:] - 1],
        tokens=tokens,
        sampled_tokens=sampled,
        batch_top_n=[TOP] * len(sampled),
        batch_echo=[True] * len(sampled),
    )
    print(f"token, log-probability, and the {TOP} most probable tokens at its place")
    for prompt, result in zip(texts["prompts"], results, strict=True):
        show(prompt, result, texts["pieces"])
    print(f"\nlargest difference from float64: {largest_difference(logits, offsets, results):.1e}")
    print(f"compile time: {compile_seconds:.3f} s")

    seconds = []
    for _ in range(50):
        start = time.perf_counter()
        model.execute(logits, tokens, sampled, offsets, offsets, offsets, offsets)
        seconds.append(time.perf_counter() - start)
    print(f"kernel: {logits.nbytes / np.median(seconds) / 1e9:.1f} GB of logits per second")


if __name__ == "__main__":
    main()
