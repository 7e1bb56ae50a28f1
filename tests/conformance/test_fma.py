"""What another compiler and torch made of ``a * b + c``, recorded: every rounding here is one of the two readings.

The files hold 4096 triples as bit patterns, and the results of torch (eager, and ``addcmul``) and of a compiler that
fuses across ops (in one graph, in two, with the product printed, and with bf16 cast to f32 first).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import CompileOptions, DeviceRef, DType, Graph, TensorType
from halfulp.runtime import CPU, InferenceSession
from halfulp.runtime.debug import classify
from halfulp.runtime.debug.readings import EXCESS, FMA_LEFT, multiply_add_readings

DATA = Path(__file__).parent / "data"
Array = np.ndarray[Any, np.dtype[Any]]

FUSED_BY_OTHERS = ("max_one_graph", "max_f32_upcast", "torch_addcmul")
SEPARATE_BY_OTHERS = ("max_split", "max_print_p", "torch_eager")


def recorded(name: str) -> dict[str, Array]:
    with np.load(DATA / f"fma_{name}.npz") as file:
        return dict(file)


def computed(data: dict[str, Array], dtype: DType, options: CompileOptions, *, upcast: bool = False) -> Array:
    """The bits of ``a * b + c``, computed in ``dtype`` or, with ``upcast``, in f32 by casts in the graph."""
    tensor = TensorType(dtype, ["n"], DeviceRef.CPU())
    with Graph("fma", input_types=[tensor] * 3) as graph:
        a, b, c = (ops.cast(x, DType.float32) if upcast else x for x in graph.inputs)
        graph.output(ops.cast(ops.add(ops.mul(a, b), c), dtype))
    kind = np.dtype(ml_dtypes.bfloat16) if dtype is DType.bfloat16 else np.dtype(np.float32)
    arrays = [data[name].view(kind) for name in "abc"]
    (result,) = InferenceSession(devices=[CPU()]).load(graph, options).execute(*arrays)
    return result.to_numpy().view(data["a"].dtype)


@pytest.mark.parametrize("mode", ["off", "on"])
def test_f32_off_and_on_round_product_and_sum_separately(mode: Any) -> None:
    data = recorded("f32")
    a, b, c = (data[name].view(np.float32) for name in "abc")
    bits = computed(data, DType.float32, CompileOptions(fp_contract=mode))
    assert np.array_equal(bits, (a * b + c).view(np.int32))
    assert all(np.array_equal(bits, data[name]) for name in SEPARATE_BY_OTHERS)


@pytest.mark.parametrize("strategy", ["explicit", "llvm"])
def test_f32_fast_is_the_correctly_rounded_fma(strategy: Any) -> None:
    data = recorded("f32")
    a, b, c = (data[name].view(np.float32).astype(np.longdouble) for name in "abc")
    bits = computed(data, DType.float32, CompileOptions(fp_contract="fast", strategy=strategy))
    # 48 bits of product in the 64 of a long double: the sum is rounded once there, and so finely that the second
    # rounding differs from the only one in no triple of these.
    assert np.array_equal(bits, (a * b + c).astype(np.float32).view(np.int32))
    assert all(np.array_equal(bits, data[name]) for name in FUSED_BY_OTHERS)
    assert np.count_nonzero(bits != data["torch_eager"]) == 973


@pytest.mark.parametrize("mode", ["off", "on", "fast"])
def test_bf16_rounds_after_every_op(mode: Any) -> None:
    data = recorded("bf16")
    bits = computed(data, DType.bfloat16, CompileOptions(fp_contract=mode))
    assert all(np.array_equal(bits, data[name]) for name in (*SEPARATE_BY_OTHERS, "max_one_graph"))


def test_bf16_with_excess_precision_is_the_fma_of_f32_rounded_once() -> None:
    data = recorded("bf16")
    options = CompileOptions(fp_contract="fast", bf16="excess")
    bits = computed(data, DType.bfloat16, options)
    assert np.array_equal(bits, data["max_f32_upcast"])
    assert np.array_equal(bits, data["torch_addcmul"])
    assert np.count_nonzero(bits != data["torch_eager"]) == 904
    upcast = computed(data, DType.bfloat16, CompileOptions(fp_contract="fast"), upcast=True)
    assert np.array_equal(upcast, bits)


# Which reading explains each recorded result; None where it has the bits of rounding product and sum separately.
CAUSES = {
    "f32": dict.fromkeys(FUSED_BY_OTHERS, FMA_LEFT) | dict.fromkeys(SEPARATE_BY_OTHERS),
    "bf16": {"max_f32_upcast": EXCESS, "torch_addcmul": EXCESS, "max_one_graph": None}
    | dict.fromkeys(SEPARATE_BY_OTHERS),
}
DIFFERING = {"f32": 973, "bf16": 904}


@pytest.mark.parametrize("name", ["f32", "bf16"])
def test_every_element_that_differs_is_explained(name: str) -> None:
    data = recorded(name)
    kind = np.dtype(ml_dtypes.bfloat16) if name == "bf16" else np.dtype(np.float32)
    readings = multiply_add_readings(*(data[letter].view(kind) for letter in "abc"))
    causes = {key: classify(data[key], readings) for key in CAUSES[name]}
    assert {key: found.cause for key, found in causes.items()} == CAUSES[name]
    assert set(CAUSES[name]) == set(data) - set("abc")
    for found in causes.values():
        assert found.explained == found.differing
        assert found.differing in (0, DIFFERING[name])
        assert found.whole
