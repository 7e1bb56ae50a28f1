"""Text from a small model in one call: the loop over tokens runs inside the graph, and stops at the end of the text.

The model is a table: how probable each character is after each other one. Its counts come from this file's own text.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from halfulp import ops
from halfulp.compiler import BufferType, BufferValue, DType, Graph, TensorType, TensorValue, Weight
from halfulp.runtime import InferenceSession

F32, I64 = DType.float32, DType.int64
LONGEST = 60

text = Path(__file__).read_text()
alphabet = sorted(set(text))
number = {character: index for index, character in enumerate(alphabet)}
counts = np.zeros((len(alphabet), len(alphabet)), np.float32)
for first, second in pairwise(text):
    counts[number[first], number[second]] += 1


def generate(token: TensorValue, noise: TensorValue, written: BufferValue) -> TensorValue:
    """Writes tokens to ``written``; gives how many. A line break ends the text."""
    table = Weight("counts", F32, counts.shape)

    def goes_on(place: TensorValue, token: TensorValue) -> TensorValue:
        return ops.logical_and(place < LONGEST, ops.not_equal(token, number["\n"]))

    def step(place: TensorValue, token: TensorValue) -> list[TensorValue]:
        written[...] = ops.scatter(written[...], token.reshape((1,)), place.reshape((1,)))
        row = ops.gather(table, token.reshape((1,)), axis=0)
        # the largest of probability / noise is a sample: noise of the exponential distribution
        row = row / ops.gather(noise, place.reshape((1,)), axis=0)
        return [place + 1, ops.argmax(row, axis=-1).reshape(())]

    place, _ = ops.while_loop([ops.constant(0, I64), token], goes_on, step)
    return place


graph = Graph(
    "generate",
    generate,
    [TensorType(I64, []), TensorType(F32, [LONGEST, len(alphabet)]), BufferType(I64, [LONGEST])],
)
model = InferenceSession().load(graph, weights_registry={"counts": counts})
generator = np.random.default_rng(0)
for start in "dfg":
    written = np.zeros(LONGEST, np.int64)
    noise = generator.exponential(size=(LONGEST, len(alphabet))).astype(np.float32)
    (count,) = model.execute(np.array(number[start]), noise, written)
    print(repr("".join(alphabet[token] for token in written[: int(count.to_numpy())])))
