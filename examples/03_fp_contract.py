"""One rounding or two: a * b + c under the three modes of fp_contract, and what halfulp did."""

import numpy as np

from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.runtime import InferenceSession

vector = TensorType(DType.float32, ["n"])
graph = Graph("axpy", lambda a, b, c: ops.add(ops.mul(a, b), c), [vector] * 3)


def main() -> None:
    a, b, c = np.random.default_rng(0).standard_normal((3, 100_000)).astype(np.float32)
    exact = a.astype(np.float64) * b + c
    results = {}
    for mode in ("off", "on", "fast"):
        model = InferenceSession().load(graph, CompileOptions(fp_contract=mode, fastmath="none"))
        results[mode] = model.execute(a, b, c)[0].to_numpy()
        error = np.abs(results[mode] - exact).max()
        differing = np.count_nonzero(results[mode] != results["off"])
        print(f"{mode:5} {differing:6} elements differ from off, largest error {error:.2e}")
        for contraction in model.numerics_report():
            print("     ", contraction)


if __name__ == "__main__":
    main()
