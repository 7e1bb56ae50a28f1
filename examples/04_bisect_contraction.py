"""Which op did it? A longer graph whose result changes under ``fast``, and the search for the op that changes it.

The same from the command line: ``halfulp fastmath 04_bisect_contraction.py:graph --bisect``.
"""

from halfulp import ops
from halfulp.compiler import DType, Graph, TensorType, TensorValue
from halfulp.runtime.debug import bisect_flags, fastmath_matrix

STEPS = 20


def forward(x: TensorValue, y: TensorValue) -> TensorValue:
    """Many steps that round the same in every mode, and one in which a product meets a sum."""
    for step in range(STEPS):
        x = ops.maximum(ops.negate(ops.add(x, y)), y)
        if step == STEPS // 2:
            x = ops.sub(x, ops.mul(x, y))
    return x


graph = Graph("search", forward, [TensorType(DType.float32, ["n"])] * 2)


def main() -> None:
    print(fastmath_matrix(graph, modes=["on", "fast"], timed=False))
    print()
    print(bisect_flags(graph, mode="fast"))


if __name__ == "__main__":
    main()
