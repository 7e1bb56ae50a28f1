"""What a weights registry must hold, and in which words a wrong one is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from halfulp.compiler.artifact import BufferRole, BufferSpec
from halfulp.compiler.dims import Dim
from halfulp.compiler.dtypes import DType
from halfulp.compiler.errors import GraphError, GraphTypeError
from halfulp.runtime import Buffer
from halfulp.runtime.weights import bind_weights

DECLARED = [
    BufferSpec(BufferRole.WEIGHT, 0, "layer.scale", DType.float32, (Dim(2), Dim(3))),
    BufferSpec(BufferRole.WEIGHT, 1, "layer.bias", DType.float32, (Dim(2),)),
]
GOOD = {"layer.scale": np.zeros((2, 3), np.float32), "layer.bias": np.zeros(2, np.float32)}


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (
            {"layer.scale": None, "layer.bias": None},
            GraphError,
            "graph 'g' needs weights that the registry does not have: 'layer.scale', 'layer.bias'; "
            "pass them in weights_registry",
        ),
        (
            {"layer.bias": None, "layer.bais": np.zeros(2, np.float32)},
            GraphError,
            "graph 'g' needs weights that the registry does not have: 'layer.bias'; unused in it: 'layer.bais'",
        ),
        (
            {"layer.scal": np.ones(1, np.float32)},
            GraphError,
            "graph 'g' has no weight 'layer.scal'; did you mean 'layer.scale' or 'layer.bias'?",
        ),
        (
            {"other": np.ones(1, np.float32)},
            GraphError,
            "graph 'g' has no weight 'other'; its weights are 'layer.scale', 'layer.bias'",
        ),
        (
            {"layer.scale": np.zeros((3, 3), np.float32)},
            GraphError,
            "graph 'g': weight 'layer.scale' must have shape [2, 3], got [3, 3]",
        ),
        (
            {"layer.bias": np.zeros(1, np.float32)},
            GraphError,
            "graph 'g': weight 'layer.bias' must have shape [2], got [1]",
        ),
        (
            {"layer.bias": np.zeros((1, 2), np.float32)},
            GraphError,
            "graph 'g': weight 'layer.bias' must have shape [2], got [1, 2]",
        ),
        (
            {"layer.bias": np.zeros(2)},
            GraphTypeError,
            "graph 'g': weight 'layer.bias' must be float32, got float64; halfulp never converts types unasked, "
            "use x.astype(...)",
        ),
        (
            {"layer.bias": [0.0, 0.0]},
            GraphTypeError,
            "graph 'g': weight 'layer.bias' must be a Buffer or an array, not list; "
            "make one with np.asarray(x, dtype=...)",
        ),
    ],
)
def test_weight_errors(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    registry = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(kind) as error:
        bind_weights("g", DECLARED, registry)
    assert str(error.value) == text


def test_arrays_that_fit_are_not_copied() -> None:
    scale, bias = GOOD["layer.scale"], Buffer(DType.float32, (2,))
    bound = bind_weights("g", DECLARED, {"layer.bias": bias, "layer.scale": scale})
    assert bound["layer.scale"] is scale
    assert np.shares_memory(bound["layer.bias"], bias.to_numpy())


def test_strided_weights_are_copied() -> None:
    scale = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    bound = bind_weights("g", DECLARED, {**GOOD, "layer.scale": scale})["layer.scale"]
    assert bound.flags.c_contiguous
    np.testing.assert_array_equal(bound, scale)
