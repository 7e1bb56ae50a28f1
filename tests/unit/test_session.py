"""Sessions: from a graph to results, and what is refused before anything is compiled."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, GraphError, GraphTypeError, TensorType, Weight
from halfulp.runtime import CPU, InferenceSession

F32 = DType.float32


def identity(device: DeviceRef | None = None) -> Graph:
    return Graph("identity", lambda x: x, [TensorType(F32, ["n", 2], device)])


def scaled(shape: tuple[int, ...] = (2,), device: DeviceRef | None = None) -> Graph:
    """Hands out its weight."""
    return Graph("scaled", lambda x: [x, Weight("layer.scale", F32, shape, device)], [TensorType(F32, ["n"])])


def raised(kind: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    return str(error.value)


def test_load_and_run() -> None:
    model = InferenceSession(devices=[CPU()]).load(identity())
    assert repr(model) == "Model(identity: (x: float32 [n, 2]) -> (float32 [n, 2]))"
    for n in (3, 0, 1):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        (y,) = model(x=x)
        np.testing.assert_array_equal(y.to_numpy(), x)
        assert not np.shares_memory(y.to_numpy(), x)


def test_one_graph_loads_with_several_options() -> None:
    graph, session = identity(), InferenceSession()
    narrow = CompileOptions(vector_bits=128, fp_contract="off")
    first, second = session.load(graph), session.load(graph, narrow)
    assert (first.options, second.options) == (CompileOptions(), narrow)
    x = np.ones((5, 2), np.float32)
    assert first(x)[0].to_numpy().tobytes() == second(x)[0].to_numpy().tobytes() == x.tobytes()


def test_weights_reach_the_model() -> None:
    scale = np.array([3, 4], np.float32)
    model = InferenceSession().load(scaled(), weights_registry={"layer.scale": scale})
    x, weight = model(np.zeros(1, np.float32))
    assert (x.shape, weight.to_numpy().tolist()) == ((1,), [3, 4])
    assert not np.shares_memory(weight.to_numpy(), scale)


def test_weights_are_checked_against_the_graph() -> None:
    session = InferenceSession()
    assert raised(GraphError, lambda: session.load(scaled())) == (
        "graph 'scaled' needs weights that the registry does not have: 'layer.scale'; pass them in weights_registry"
    )
    registry = {"layer.scale": np.zeros((3, 1), np.float32)}
    assert raised(GraphError, lambda: session.load(scaled(), weights_registry=registry)) == (
        "graph 'scaled': weight 'layer.scale' must have shape [2], got [3, 1]"
    )
    assert raised(GraphError, lambda: session.load(identity(), weights_registry=registry)) == (
        "graph 'identity' has no weight 'layer.scale'; its weights are none"
    )


@pytest.mark.parametrize(
    ("graph", "subject"),
    [
        (identity(DeviceRef.GPU(1)), "graph 'identity': input 0 ('x') is on gpu:1"),
        (scaled(device=DeviceRef.GPU(0)), "graph 'scaled': weight 'layer.scale' is on gpu:0"),
    ],
    ids=["input", "weight"],
)
def test_graph_for_a_device_that_the_session_lacks(graph: Graph, subject: str) -> None:
    assert raised(GraphError, lambda: InferenceSession().load(graph)) == (
        f"{subject}, but the session has only cpu; build the graph for a device of the session"
    )


def test_arguments_of_the_wrong_type() -> None:
    session = InferenceSession()
    assert raised(GraphTypeError, lambda: session.load("identity")) == (  # type: ignore[arg-type]
        "load() takes a Graph, not str; load_compiled() takes a file"
    )
    assert raised(GraphTypeError, lambda: session.load(identity(), {"fp_contract": "off"})) == (  # type: ignore[arg-type]
        "load(options=...) takes a CompileOptions, not {'fp_contract': 'off'}"
    )
    assert raised(GraphTypeError, lambda: InferenceSession(devices=["cpu"])) == (  # type: ignore[list-item]
        "InferenceSession(devices=...) takes devices such as CPU(), not 'cpu'"
    )


def test_graph_without_outputs() -> None:
    with Graph("open", input_types=[TensorType(F32, ["n"])]) as graph:
        pass
    assert raised(GraphError, lambda: InferenceSession().load(graph)) == (
        "graph 'open' has no outputs yet; end it with output(...)"
    )


def test_the_host_belongs_to_every_session() -> None:
    assert InferenceSession().devices == InferenceSession(devices=[]).devices == (CPU(),)
    assert InferenceSession(devices=[CPU(), CPU()]).devices == (CPU(),)


def test_importing_the_runtime_loads_no_heavy_module() -> None:
    code = "import halfulp.runtime, sys; print([m for m in ('numpy', 'xdsl', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
