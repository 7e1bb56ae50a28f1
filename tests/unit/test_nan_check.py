"""``session.debug.nan_check``: which op made the first NaN or infinity, and what is said about it."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from halfulp import ops
from halfulp.compiler import (
    BufferType,
    CompileOptions,
    DeviceRef,
    DType,
    Graph,
    GraphError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.ops import pallas as pl
from halfulp.runtime import Buffer, ExecutionError, InferenceSession, Model, NanCheckError
from halfulp.runtime.debug.nan_check import PIECE, CheckedModel, non_finite

F32 = DType.float32
VECTOR = TensorType(F32, ["n"])
NAN, INF = float("nan"), float("inf")
HERE = Path(__file__).name


def f32(*elements: float) -> np.ndarray[Any, Any]:
    return np.array(elements, np.float32)


def load(forward: Callable[..., Any], *types: TensorType, allow_inf: bool = False, **arguments: Any) -> Model:
    """A model of a session that checks."""
    session = InferenceSession()
    session.debug.nan_check = True
    session.debug.allow_inf = allow_inf
    return session.load(Graph("g", forward, types or [VECTOR]), **arguments)


def failure(model: Model, *inputs: Any) -> NanCheckError:
    with pytest.raises(NanCheckError) as caught:
        model.execute(*inputs)
    return caught.value


def text(error: NanCheckError) -> str:
    """The text without paths and line numbers."""
    return re.sub(rf"/\S*/{HERE}:\d+", "FILE", str(error))


# --- who made it ---


def logs(x: TensorValue) -> TensorValue:
    shifted = x - 1.0
    logarithm = ops.log(shifted)  # the culprit
    return ops.exp(logarithm) * 2.0


def line_of(comment: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def test_the_op_its_line_the_counts_and_the_index() -> None:
    model = load(logs)
    error = failure(model, f32(3, 0, 1, -2))
    assert text(error) == (
        "model 'g': op 'log' made 2 NaN and 1 inf, the first, nan, at [1] of its result float32 [4]; its operands hold "
        "neither\n"
        "  at FILE: logarithm = ops.log(shifted)  # the culprit\n"
        "  output 0 holds 2 NaN and 0 inf, from op 'log' at FILE"
    )
    assert error.location is not None
    assert (Path(error.location.filename).name, error.location.line) == (HERE, line_of("the culprit"))
    assert (error.op, error.subject, error.nan_count, error.inf_count) == ("log", "op 'log'", 2, 1)
    assert (error.index, error.shape) == ((1,), (4,))
    assert error.outputs == (f"output 0 holds 2 NaN and 0 inf, from op 'log' at {error.location}",)
    assert isinstance(error, ExecutionError)
    (y,) = model.execute(f32(3, 2))
    assert y.to_numpy().tolist() == [4.0, 2.0]


def test_the_error_travels_between_processes() -> None:
    error = failure(load(logs), f32(0))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is NanCheckError
    assert (str(copy), copy.index, copy.location) == (str(error), error.index, error.location)


def test_indices_of_several_axes() -> None:
    x = np.ones((2, 3, 4), np.float32)
    x[1, 0, 2] = -1
    error = failure(load(lambda x: ops.sqrt(x), TensorType(F32, [2, "m", 4])), x)
    assert error.message == (
        "model 'g': op 'sqrt' made 1 NaN and 0 inf, the first, nan, at [1, 0, 2] of its result float32 [2, 3, 4]; its "
        "operands hold neither"
    )


def test_a_nan_that_comes_of_infinities() -> None:
    def forward(x: TensorValue, mask: TensorValue) -> TensorValue:
        return x - mask * 2.0

    error = failure(load(forward, VECTOR, VECTOR), f32(1, INF, 2), f32(0, INF, 0))
    assert error.message == (
        "model 'g': op 'sub' made 1 NaN and 0 inf, the first, nan, at [1] of its result float32 [3]; operand 'lhs' "
        "holds 0 NaN and 1 inf, the first at [1]; operand 'rhs' holds 0 NaN and 1 inf, the first at [1]"
    )


def test_an_overflow() -> None:
    error = failure(load(lambda x: ops.cast(x * 10.0, DType.float16)), f32(1, -7000, 1e30))
    assert error.message == (
        "model 'g': op 'cast' made 0 NaN and 2 inf, the first, -inf, at [1] of its result float16 [3]; its operands "
        "hold neither; "
        "session.debug.allow_inf = True lets infinities pass"
    )


@pytest.mark.parametrize("dtype", [DType.float16, DType.bfloat16, DType.float32, DType.float64], ids=str)
def test_element_types(dtype: DType) -> None:
    model = load(lambda x: x / x, TensorType(dtype, []))
    error = failure(model, np.array(0, dtype.to_numpy()))
    assert error.message == (
        f"model 'g': op 'div' made 1 NaN and 0 inf, the first, nan, at [] of its result {dtype} []; its operands hold "
        "neither"
    )


def test_the_first_in_the_order_of_the_program() -> None:
    """Of two ops that do not read each other, the one that was built first."""

    def forward(x: TensorValue) -> list[TensorValue]:
        first, second = ops.sqrt(x), ops.log(x)
        return [second, first + 1.0, ops.reshape(second, [1, "n"]), x]

    error = failure(load(forward), f32(-1, 1))
    assert error.op == "sqrt"
    assert [re.sub(" at .*", "", line) for line in error.outputs] == [
        "output 0 holds 1 NaN and 0 inf, from op 'log'",
        "output 1 holds 1 NaN and 0 inf, from op 'sqrt'",
        "output 2 holds 1 NaN and 0 inf, from op 'log'",
    ]


def test_one_that_reaches_no_output() -> None:
    error = failure(load(lambda x: ops.where(x > 0.0, ops.sqrt(x), 0.0)), f32(-1, 4))
    assert (error.op, error.outputs) == ("sqrt", ())


# --- what the graph was given ---


def test_a_nan_of_an_input() -> None:
    def forward(x: TensorValue, y: TensorValue) -> TensorValue:
        return ops.negate(x) + y.reshape([3])

    error = failure(
        load(forward, TensorType(F32, [3]), TensorType(F32, [3, 1])), f32(1, 2, 3), f32(0, NAN, INF)[:, None]
    )
    assert text(error) == (
        "model 'g': input 1 ('y') holds 1 NaN and 1 inf, the first, nan, at [1, 0] of float32 [3, 1]; op 'reshape' is "
        "the first to pass on NaN\n"
        "  at FILE: return ops.negate(x) + y.reshape([3])\n"
        "  output 0 holds 1 NaN and 1 inf, from input 1 ('y') at FILE"
    )
    assert (error.op, error.subject) == ("reshape", "input 1 ('y')")


def test_a_nan_of_a_weight_and_of_a_constant() -> None:
    def forward(x: TensorValue) -> TensorValue:
        return x * Weight("scale", F32, [2])

    error = failure(load(forward, TensorType(F32, [2]), weights_registry={"scale": f32(1, NAN)}), f32(1, 2))
    assert error.message == (
        "model 'g': weight 'scale' holds 1 NaN and 0 inf, the first, nan, at [1] of float32 [2]; op 'mul' is the "
        "first to pass on NaN"
    )

    def constant(x: TensorValue) -> TensorValue:
        return x * ops.constant([NAN, 1.0], F32, DeviceRef.CPU())

    error = failure(load(constant, TensorType(F32, [2])), f32(1, 2))
    assert error.message == (
        "model 'g': a constant holds 1 NaN and 0 inf, the first, nan, at [0] of float32 [2]; op 'mul' is the first to "
        "pass on NaN"
    )


def test_an_input_that_is_an_output() -> None:
    error = failure(load(lambda x: x), f32(1, NAN))
    assert error.message == "model 'g': input 0 ('x') holds 1 NaN and 0 inf, the first, nan, at [1] of float32 [2]"
    assert (error.op, len(error.outputs)) == (None, 1)


def test_a_nan_that_no_op_passes_on() -> None:
    def forward(x: TensorValue) -> TensorValue:
        return ops.where(ops.is_nan(x), 0.0, x)

    (y,) = load(forward).execute(f32(1, NAN))
    assert y.to_numpy().tolist() == [1, 0]


def test_infinities_that_were_given_are_no_error() -> None:
    def forward(scores: TensorValue, mask: TensorValue) -> TensorValue:
        hidden = ops.where(scores > 2.0, -INF, scores)
        return ops.softmax(hidden + mask)

    (y,) = load(forward, VECTOR, VECTOR).execute(f32(1, 2, 3), f32(0, -INF, 0))
    assert y.to_numpy().tolist() == [1, 0, 0]


def test_allowed_infinities() -> None:
    def forward(x: TensorValue) -> TensorValue:
        logarithm = ops.log(x)
        return logarithm - logarithm

    assert failure(load(forward), f32(0, 1)).op == "log"
    error = failure(load(forward, allow_inf=True), f32(0, 1))
    assert error.message.startswith("model 'g': op 'sub' made 1 NaN and 0 inf, ")
    error = failure(load(lambda x: ops.log(x), allow_inf=True), f32(0, 1, -1))
    assert error.message.startswith("model 'g': op 'log' made 1 NaN and 1 inf, the first, nan, at [2] of its result")
    model = load(lambda x: ops.log(x), allow_inf=True)
    (y,) = model.execute(f32(0, 1))
    assert y.to_numpy().tolist() == [-INF, 0]


# --- every kind of op ---


def test_inside_of_a_fused_softmax() -> None:
    model = load(lambda x: ops.softmax(x - INF), TensorType(F32, [2, 3]))
    error = failure(model, np.zeros((2, 3), np.float32))
    assert error.location is not None
    assert error.nan_count == 6


def test_a_kernel_of_ones_own() -> None:
    def inverse(x_ref: Any, y_ref: Any) -> None:
        y_ref[...] = 1.0 / x_ref[...]

    def forward(x: TensorValue) -> Any:
        return pl.pallas_call(inverse, out_shape=pl.ShapeDtypeStruct((4,), F32))(x * 2.0)

    error = failure(load(forward, TensorType(F32, [4])), f32(1, 2, 0, 4))
    assert "made 0 NaN and 1 inf, the first, inf, at [2] of its result float32 [4]" in error.message


def test_ops_of_a_called_graph() -> None:
    inner = Graph("inner", lambda x: ops.log(x), [VECTOR])
    error = failure(load(lambda x: ops.call(inner, x - 1.0)[0]), f32(0))
    assert error.op == "log"


def test_sizes_that_the_data_decides() -> None:
    def forward(x: TensorValue) -> TensorValue:
        found = ops.cast(ops.nonzero(ops.exp(x) - 1.0, "count"), F32)
        return ops.log(found)

    error = failure(load(forward), f32(1, 0, 1))
    assert error.message == (
        "model 'g': op 'log' made 0 NaN and 1 inf, the first, -inf, at [0, 0] of its result float32 [2, 1]; its "
        "operands hold neither; "
        "session.debug.allow_inf = True lets infinities pass"
    )


def test_what_a_buffer_holds() -> None:
    with Graph("g", input_types=[VECTOR, BufferType(F32, ["n"])], input_names=["x", "state"]) as graph:
        x, state = graph.inputs
        y = ops.add(x, ops.buffer_load(state))
        ops.buffer_store(state, ops.log(y))
        graph.output(y)
    session = InferenceSession()
    session.debug.nan_check = True
    model, state_buffer = session.load(graph), Buffer.from_numpy(f32(0.5, 2))
    model.execute(f32(0, 0), state_buffer)
    error = failure(model, f32(0, 0), state_buffer)
    assert (error.op, error.nan_count, error.index) == ("log", 1, (0,))
    error = failure(model, f32(0, 0), state_buffer)
    assert error.message == (
        "model 'g': the buffer of input 1 ('state') holds 1 NaN and 0 inf, the first, nan, at [0] of float32 [2]; op "
        "'add' is the first to pass on NaN"
    )


def test_a_round_of_a_loop() -> None:
    def forward(x: TensorValue) -> list[TensorValue]:
        def body(x: TensorValue, k: TensorValue) -> list[TensorValue]:
            return [ops.sqrt(x - 1.0), k + 1]

        start = ops.constant(0, DType.int64, DeviceRef.CPU())
        return ops.while_loop([x, start], lambda x, k: k < 5, body)

    error = failure(load(forward, TensorType(F32, [2])), f32(1e9, 12))
    assert error.message == (
        "model 'g': op 'sqrt' made 1 NaN and 0 inf, the first, nan, at [1] of its result float32 [2], when it ran for "
        "the 4th time; its operands hold neither"
    )
    assert [re.sub(" at .*", "", line) for line in error.outputs] == ["output 0 holds 1 NaN and 0 inf, from op 'sqrt'"]


def test_a_branch() -> None:
    def forward(x: TensorValue, flag: TensorValue) -> TensorValue:
        (y,) = ops.cond(flag, [TensorType(F32, [2])], lambda: ops.log(x), lambda: ops.negate(x))
        return y * 2.0

    model = load(forward, TensorType(F32, [2]), TensorType(DType.bool, []))
    (y,) = model.execute(f32(1, 0), np.array(False))
    assert y.to_numpy().tolist() == [-2, 0]
    error = failure(model, f32(1, 0), np.array(True))
    assert error.op == "log"
    assert [re.sub(" at .*", "", line) for line in error.outputs] == ["output 0 holds 0 NaN and 1 inf, from op 'log'"]


def test_loops_and_branches_inside_of_each_other() -> None:
    """The predicate computes floats too, and the value that it reads comes from a branch of the round before."""

    def forward(x: TensorValue) -> list[TensorValue]:
        def body(x: TensorValue) -> list[TensorValue]:
            big = ops.reshape(x > 100.0, [])
            (y,) = ops.cond(big, [TensorType(F32, [1])], lambda: ops.exp(x), lambda: x * 10.0)
            return [y]

        return ops.while_loop([x], lambda x: ops.reshape(ops.sqrt(x + 1.0) < 1e6, []), body)

    error = failure(load(forward, TensorType(F32, [1])), f32(2))
    assert error.message == (
        "model 'g': op 'exp' made 0 NaN and 1 inf, the first, inf, at [0] of its result float32 [1]; its operands hold "
        "neither; "
        "session.debug.allow_inf = True lets infinities pass"
    )
    assert [re.sub(" at .*", "", line) for line in error.outputs] == ["output 0 holds 0 NaN and 1 inf, from op 'exp'"]


# --- nothing else changes ---


@pytest.mark.parametrize("bf16", ["round-each", "excess"])
@pytest.mark.parametrize("mode", ["off", "on", "fast"])
def test_bits_stay(mode: Any, bf16: Any) -> None:
    def forward(a: TensorValue, b: TensorValue) -> list[TensorValue]:
        product = a * b
        return [product + a, ops.softmax(product - b), ops.sum(product * a), a @ b.T]

    rng = np.random.default_rng(3)
    for numpy_type in (np.float32, ml_dtypes.bfloat16):
        inputs = [rng.standard_normal((5, 70)).astype(numpy_type) for _ in range(2)]
        tensor = TensorType(DType.from_numpy(numpy_type), [5, 70])
        session = InferenceSession()
        model = session.load(Graph("g", forward, [tensor, tensor]), CompileOptions(fp_contract=mode, bf16=bf16))
        wanted = [y.to_numpy().tobytes() for y in model.execute(*inputs)]
        session.debug.nan_check = True
        assert [y.to_numpy().tobytes() for y in model.execute(*inputs)] == wanted


def test_prints_stay(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue) -> TensorValue:
        ops.print("start")
        x.print("watched:0 größe")
        y = ops.log(x)
        y.print("shown:y")
        return y

    failure(load(forward), f32(-1))
    assert capsys.readouterr().out == (
        "start\nwatched:0 größe = tensor([[-1.0000]], dtype=f32, shape=[1])\n"
        "shown:y = tensor([[nan]], dtype=f32, shape=[1])\n"
    )


def test_a_chain_needs_memory_for_two_of_its_values() -> None:
    def forward(x: TensorValue) -> TensorValue:
        for _ in range(20):
            x = ops.negate(ops.exp(x))
        return x

    model = load(forward, TensorType(F32, [1024]))._checked_model()
    assert model.memory_report().peak <= 3 * 4096
    assert isinstance(model, CheckedModel)


def test_it_holds_for_models_loaded_before_and_can_be_turned_off() -> None:
    session = InferenceSession()
    model = session.load(Graph("g", lambda x: ops.log(x), [VECTOR]))
    other = InferenceSession().load(Graph("g", lambda x: ops.log(x), [VECTOR]))
    model.execute(f32(0))
    session.debug.nan_check = True
    failure(model, f32(0))
    other.execute(f32(0))
    session.debug.nan_check = False
    model.execute(f32(0))


def test_several_threads() -> None:
    model = load(logs)
    errors: list[str] = []

    def run(number: int) -> None:
        for _ in range(10):
            errors.append(failure(model, f32(*([3.0] * number), 0)).message)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(errors)) == [
        f"model 'g': op 'log' made 1 NaN and 0 inf, the first, nan, at [{number}] of its result float32 "
        f"[{number + 1}]; its operands hold neither"
        for number in range(4)
    ]
    assert len(errors) == 40


def test_compiled_code_alone_is_not_enough(tmp_path: Path) -> None:
    session = InferenceSession()
    session.load(Graph("g", lambda x: ops.log(x), [VECTOR])).save(tmp_path / "model")
    model = session.load_compiled(tmp_path / "model")
    model.execute(f32(0))
    session.debug.nan_check = True
    with pytest.raises(GraphError) as caught:
        model.execute(f32(0))
    assert str(caught.value) == (
        "model 'g': nan_check needs the graph, and this model was loaded from compiled code; load the graph instead, "
        "or set session.debug.nan_check = False"
    )


# --- counting, and the options ---


def test_counts_over_several_pieces() -> None:
    x = np.zeros((3, PIECE - 1), np.float32)
    x[1, 5], x[2, 7], x[2, 8] = -INF, NAN, INF
    found = non_finite(x)
    assert found is not None
    assert (found.nan_count, found.inf_count, found.first, found.value) == (1, 2, (1, 5), -INF)
    assert non_finite(np.zeros((0, 3), np.float32)) is None


def test_options() -> None:
    debug = InferenceSession().debug
    assert repr(debug) == "DebugOptions(allow_inf=False, nan_check=False)"
    with pytest.raises(TypeError, match=r"^session\.debug\.nan_check must be True or False, not 1$"):
        debug.nan_check = 1  # type: ignore[assignment]
    with pytest.raises(AttributeError, match=r"^session\.debug has no option 'nan_chek'; did you mean 'nan_check'\?$"):
        debug.nan_chek = True  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^session\.debug has no option 'x'; it has allow_inf and nan_check$"):
        debug.x  # type: ignore[attr-defined]  # noqa: B018
