"""Models on the emulated accelerator, alone and beside the host: what they take, compute, print and refuse."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_runs import DEVICE, GPU, BothDevices
from differential import Array

from halfulp import ops
from halfulp.compiler import (
    BufferType,
    CompileOptions,
    DeviceRef,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.codegen.ptx import ptx_target
from halfulp.compiler.errors import CompileError
from halfulp.compiler.interpreter import interpret
from halfulp.compiler.pipeline import compile_graph, lower
from halfulp.ops import pallas as pl
from halfulp.runtime import (
    CPU,
    Accelerator,
    Buffer,
    ExecutionError,
    InferenceSession,
    Model,
    NanCheckError,
    OutOfDeviceMemoryError,
)

HOST = DeviceRef.CPU()
F32 = DType.float32
OTHER = Accelerator(1, emulated=True)


def tensor(*shape: Any, dtype: DType = F32, device: DeviceRef = GPU) -> TensorType:
    return TensorType(dtype, shape, device)


def load(graph: Graph, *devices: Any, **more: Any) -> Model:
    return InferenceSession(devices=devices or [DEVICE]).load(graph, **more)


def there(array: Any, device: Any = DEVICE) -> Buffer:
    return Buffer.from_numpy(np.asarray(array)).to(device)


def back(buffer: Buffer) -> Array:
    return buffer.to(CPU()).to_numpy()


def raised(kind: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        call()
    error: Any = caught.value
    return str(getattr(error, "message", error))


def floats(*shape: int) -> Array:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(np.float32)


# -- where things are


def test_outputs_stay_on_the_device_and_go_into_the_next_model() -> None:
    model = load(Graph("double", lambda x: x + x, [tensor("n")]))
    (first,) = model(there(floats(7)))
    assert first.device == DEVICE
    assert [m.device for m in (*model.input_metadata, *model.output_metadata)] == [GPU, GPU]
    (second,) = model(first)
    np.testing.assert_array_equal(back(second), floats(7) * 4)


def test_nothing_is_moved_unasked() -> None:
    model = load(Graph("g", lambda x, y: (x, y), [tensor("n"), tensor("n", device=HOST)]))
    x = floats(3)
    wanted = "model 'g': input 0 ('x') must be on gpu:0 (Accelerator(0, emulated=True)), got"
    move = "move it with x.to(Accelerator(0, emulated=True))"
    assert raised(GraphTypeError, lambda: model(Buffer.from_numpy(x), x)) == f"{wanted} a host buffer; {move}"
    assert raised(GraphTypeError, lambda: model(there(x, OTHER), x)) == (
        f"{wanted} a buffer on Accelerator(1, emulated=True); {move}"
    )
    assert raised(GraphTypeError, lambda: model(x, x)) == (
        f"{wanted} ndarray in host memory; move it with Buffer.from_numpy(x).to(Accelerator(0, emulated=True))"
    )
    assert raised(GraphTypeError, lambda: model(there(x), there(x))) == (
        "model 'g': input 1 ('y') must be on cpu, got a buffer on emulated gpu:0; move it with .to(CPU())"
    )
    assert raised(GraphTypeError, lambda: model(there(x.astype(np.float64)), x)) == (
        "model 'g': input 0 ('x') must be float32 [n], got float64 [3]; halfulp never converts types unasked, cast it "
        "before it is moved"
    )


def test_sizes_are_checked_as_on_the_host() -> None:
    model = load(Graph("g", lambda x, y: x + y, [tensor("n"), tensor("n")]))
    assert raised(ExecutionError, lambda: model(there(floats(3)), there(floats(4)))) == (
        "model 'g': symbolic dimension 'n' is 3 on axis 0 of input 0 ('x') but 4 on axis 0 of input 1 ('y'); "
        "the two must "
        "be equal"
    )
    assert raised(GraphTypeError, lambda: model(there(floats(3)))) == "model 'g' takes 2 inputs (x, y), got 1"


def test_a_session_without_the_device_is_refused() -> None:
    graph = Graph("g", lambda x: ops.exp(x.to(DeviceRef.GPU(1))).to(HOST), [tensor("n", device=HOST)])
    assert raised(GraphError, lambda: load(graph)) == (
        "graph 'g': a value between ops is on gpu:1, but the session has only emulated gpu:0, cpu; build the "
        "graph for a device of the session"
    )
    np.testing.assert_array_equal(load(graph, DEVICE, OTHER)(np.zeros(2, np.float32))[0].to_numpy(), [1, 1])


def test_accelerators_are_numbered_by_their_place_in_the_session() -> None:
    model = load(Graph("g", lambda x: x * 2.0, [tensor("n")]), OTHER, CPU(), DEVICE)
    (y,) = model(there(np.array([1, 2], np.float32), OTHER))
    assert y.device == OTHER


# -- two devices


def test_values_go_both_ways() -> None:
    def forward(x: TensorValue, y: TensorValue) -> list[TensorValue]:
        moved = ops.transfer_to(x * 3.0, GPU)
        product = ops.exp(moved) * y
        total = ops.transfer_to(ops.sum(product), HOST)
        return [total + ops.sum(x), product, ops.transfer_to(total - 1.0, GPU)]

    both = Graph("both", forward, [tensor("r", "n", device=HOST), tensor("r", "n")])
    model = load(both, CPU(), DEVICE)
    x, y = floats(5, 40), floats(40, 5).T.copy()
    outputs = model(x, there(y))
    assert [output.device for output in outputs] == [CPU(), DEVICE, DEVICE]
    alone = Graph("alone", _on_host, [tensor("r", "n", device=HOST)] * 2)
    for some, other in zip(outputs, InferenceSession().load(alone)(x, y), strict=True):
        assert back(some).tobytes() == other.to_numpy().tobytes()


def test_an_output_on_the_host_that_the_system_refuses_is_named() -> None:
    model = load(Graph("g", lambda x: ops.transfer_to(ops.broadcast_to(x, ["n", 2**50]), HOST), [tensor("n", 1)]))
    assert raised(MemoryError, lambda: model(there(floats(512, 1)))) == (
        "model 'g': output 0 ('output_0') of shape [512, 1125899906842624] needs 2305843009213693952 bytes, and the "
        "system refuses them"
    )


def test_the_interpreter_runs_transfers_too() -> None:
    graph = Graph("g", lambda x: ops.transfer_to(ops.transfer_to(x, GPU) + 1.0, HOST), [tensor("n", device=HOST)])
    module = graph.module.clone()
    lower(module, "tile", CompileOptions(), ptx_target("sm_90"))
    x = floats(5)
    constant, output = np.ones(1, np.float32), np.zeros(5, np.float32)
    interpret(module, "g", [x, constant, output], {"n": 5})
    (wanted,) = load(graph)(x)
    assert output.tobytes() == wanted.to_numpy().tobytes()


def test_a_graph_that_moves_values_is_no_graph_of_the_host() -> None:
    graph = Graph("g", lambda x: ops.transfer_to(x, GPU), [tensor("n", device=HOST)])
    assert raised(CompileError, lambda: compile_graph(graph)) == (
        "graph 'g' moves values between devices, and code for the host alone reaches no other; load it in a session "
        "with an accelerator, or compile it with --target"
    )


def _on_host(x: TensorValue, y: TensorValue) -> list[TensorValue]:
    product = ops.exp(x * 3.0) * y
    total = ops.sum(product)
    return [total + ops.sum(x), product, total - 1.0]


def test_between_two_accelerators() -> None:
    second = DeviceRef.GPU(1)
    model = load(Graph("g", lambda x: ops.exp(x).to(second) + 1.0, [tensor("n")]), DEVICE, OTHER)
    (y,) = model(there(np.zeros(4, np.float32)))
    assert y.device == OTHER
    assert back(y).tolist() == [2, 2, 2, 2]


def test_a_transfer_to_where_a_value_is_gives_the_value() -> None:
    with Graph("g", input_types=[tensor("n")]) as graph:
        (x,) = graph.inputs
        assert ops.transfer_to(x, GPU) is x
        graph.output(x)
    (same,) = load(graph)(there(floats(2)))
    np.testing.assert_array_equal(back(same), floats(2))


def test_operands_of_two_devices_are_refused_where_the_op_is_built() -> None:
    remedy = "move one of them with ops.transfer_to(x, DeviceRef.GPU(0))"
    assert raised(GraphError, lambda: Graph("g", lambda x, y: x + y, [tensor("n"), tensor("n", device=HOST)])) == (
        f"ops.add: operand 'lhs' is on gpu:0 and operand 'rhs' on cpu; {remedy}"
    )
    where: Any = "gpu"
    assert raised(GraphTypeError, lambda: Graph("g", lambda x: ops.transfer_to(x, where), [tensor("n")])) == (
        "ops.transfer_to: device must be a DeviceRef such as DeviceRef.GPU(0), not 'gpu'"
    )


def test_kernels_of_the_host_check_and_print_beside_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    def checked(x: Any, y: Any) -> None:
        pl.check(x[0] < 3, "first is {}", x[0])
        pl.debug_print("first {}", x[0])
        y[...] = x[...]

    call = pl.pallas_call(checked, pl.ShapeDtypeStruct((2,), "int32"))
    graph = Graph("g", lambda x: ops.transfer_to(call(x), GPU) + 1, [tensor(2, dtype=DType.int32, device=HOST)])
    model = load(graph)
    assert back(model(np.array([1, 2], np.int32))[0]).tolist() == [2, 3]
    assert capsys.readouterr().out == "first 1\n"
    assert raised(ExecutionError, lambda: model(np.array([7, 2], np.int32))) == (
        "model 'g': first is 7 (kernel 'checked', program 0)"
    )


# -- what a graph can hold


def test_weights_and_constants_are_copied_when_the_model_is_loaded() -> None:
    weight = Weight("w", F32, [3], GPU)
    graph = Graph("g", lambda x: x * weight + np.array([1, 2, 3], np.float32), [tensor("n", 3)])
    values = floats(3)
    for held in (values, there(values), Buffer.from_numpy(values)):
        model = load(graph, weights_registry={"w": held})
        np.testing.assert_array_equal(
            back(model(there(np.ones((2, 3), np.float32)))[0])[1], values + np.array([1, 2, 3], np.float32)
        )
    assert raised(GraphError, lambda: load(graph, weights_registry={"w": there(values, OTHER)})) == (
        "graph 'g': weight 'w' must be on gpu:0 (Accelerator(0, emulated=True)) or on the host, got a buffer on "
        "Accelerator(1, emulated=True); move it with .to()"
    )
    assert raised(GraphError, lambda: load(graph, weights_registry={"w": there(floats(4))})) == (
        "graph 'g': weight 'w' must have shape [3], got [4]"
    )


def test_branches_and_loops_are_decided_by_values_on_the_device() -> None:
    def build(device: DeviceRef) -> Graph:
        def forward(x: TensorValue) -> list[TensorValue]:
            total = ops.reshape(ops.sum(x), [])
            (larger,) = ops.cond(total > 0.0, [x.type], lambda: x * 2.0, lambda: x - 1.0)
            (grown,) = ops.while_loop([total], lambda t: t < 100.0, lambda t: t * t + 2.0)
            return [larger, grown]

        return Graph("g", forward, [tensor(6, device=device)])

    both = BothDevices(build)
    for sign in (1, -1):
        both.check([sign * np.abs(floats(6))])


def test_a_loop_goes_to_the_device_and_back_in_each_round() -> None:
    def graph(device: DeviceRef) -> Graph:
        def body(t: TensorValue) -> TensorValue:
            return (ops.exp(t.to(device)) * 0.5).to(HOST) + 1.0

        def small(t: TensorValue) -> TensorValue:
            return ops.reshape(ops.sum(t), []) < 50.0

        return Graph("g", lambda x: ops.while_loop([x], small, body), [tensor("n", device=HOST)])

    (there_and_back,) = load(graph(GPU))(np.zeros(3, np.float32))
    (alone,) = InferenceSession().load(graph(HOST))(np.zeros(3, np.float32))
    assert there_and_back.to_numpy().tobytes() == alone.to_numpy().tobytes()


def test_what_was_compiled_is_found_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HALFULP_CACHE", "1")
    monkeypatch.setenv("HALFULP_CACHE_DIR", str(tmp_path / "cache"))
    steps: list[str] = []
    results = []
    for _ in range(2):
        graph = Graph("g", lambda x: ops.exp(ops.transfer_to(x * 3.0, GPU)), [tensor("n", device=HOST)])
        steps.clear()
        model = load(graph, progress=lambda done, total, step: steps.append(step))
        results.append(back(model(floats(6))[0]).tobytes())
    assert steps == ["loaded"]
    assert results[0] == results[1]


def test_sizes_that_only_the_data_decides() -> None:
    both = BothDevices(lambda device: Graph("g", lambda x: ops.nonzero(x, "found") * 2, [tensor("n", device=device)]))
    for array in (np.zeros(5, np.float32), np.array([0, 1, 0, 2], np.float32), np.ones(300, np.float32)):
        both.check([array])


def test_buffers_are_changed_on_the_device() -> None:
    with Graph("g", input_types=[BufferType(F32, ["n"], GPU), tensor("n")]) as graph:
        buffer, x = graph.inputs
        buffer[...] = buffer[...] + x
        graph.output(buffer[...] * 2.0)
    model, state, one = load(graph), there(np.zeros(3, np.float32)), there(np.ones(3, np.float32))
    for count in (1, 2):
        (doubled,) = model(state, one)
        assert back(doubled).tolist() == [2 * count] * 3
    assert back(state).tolist() == [2, 2, 2]
    assert raised(ExecutionError, lambda: model(state, state)) == (
        "model 'g': input 0 ('input0') is changed by the model, but its memory is that of input 1 "
        "('input1'), too; pass a "
        "copy for one of them"
    )


def test_checks_are_reported_as_on_the_host() -> None:
    def build(device: DeviceRef) -> Graph:
        types = [tensor("n", device=device), tensor("k", dtype=DType.int64, device=device)]
        return Graph("g", lambda x, i: ops.gather(x, i, axis=0), types)

    both, x = BothDevices(build), floats(4)
    both.check([x, np.array([0, 3, -4], np.int64)])
    wrong = np.array([0, 4, -7], np.int64)
    errors = []
    for model, arguments in ((both.on_cpu, (x, wrong)), (both.on_device, (there(x), there(wrong)))):
        with pytest.raises(ExecutionError) as caught:
            model.execute(*arguments)
        error = caught.value
        errors.append((type(error), str(error), error.kernel, error.program, error.values, error.check))
    assert errors[0] == errors[1]


def test_a_bounds_check_names_the_program_of_the_device() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]

    call = pl.pallas_call(
        kernel,
        pl.ShapeDtypeStruct((4, 4), "float32"),
        grid=(2, 3),
        in_specs=[pl.BlockSpec((2, 2), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((2, 2), lambda i, j: (i, j)),
        debug=True,
    )
    errors = []
    for array in (np.ones((4, 4), np.float32), there(np.ones((4, 4), np.float32))):
        with pytest.raises(IndexError) as caught:
            call(array)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_the_grid_has_a_limit() -> None:
    def build(device: DeviceRef) -> Graph:
        def kernel(x: Any, o: Any) -> None:
            o[...] = x[...]

        call = pl.pallas_call(kernel, pl.ShapeDtypeStruct((1,), "float32"), grid=(1 << 25, 1 << 25))
        return Graph("g", call, [tensor(1, device=device)])

    message = BothDevices(build).check([floats(1)])
    assert message == (
        "model 'g': the grid 33554432 x 33554432 has more than 2**48 programs; let each program do more "
        "(kernel 'kernel', program 0)"
    )


def test_prints_show_values_of_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    def forward(x: TensorValue) -> TensorValue:
        y = x * 2.0
        y.print("doubled")
        ops.print("a line")
        ops.sum(y).print("total")
        return y

    texts = []
    for device in (HOST, GPU):
        model = load(Graph("g", forward, [tensor("n", device=device)]))
        x = floats(3)
        model(x if device.is_host else there(x))
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith("doubled = tensor(")


def test_nan_check_looks_at_values_of_the_device() -> None:
    session = InferenceSession(devices=[DEVICE])
    model = session.load(Graph("g", lambda x: ops.sqrt(ops.log(x)) + 1.0, [tensor("n")]))
    session.debug.nan_check = True
    np.testing.assert_array_equal(back(model(there(np.ones(3, np.float32)))[0]), [1, 1, 1])
    with pytest.raises(NanCheckError) as caught:
        model(there(np.array([1, 0.5], np.float32)))
    assert caught.value.op == "sqrt"


@pytest.mark.parametrize("options", [{"fp_contract": "off"}, {"fp_contract": "fast"}, {"bf16": "excess"}])
def test_options_of_the_numerics_hold_on_the_device(options: dict[str, Any]) -> None:
    def build(device: DeviceRef) -> Graph:
        types = [tensor("n", dtype=dtype, device=device) for dtype in (F32, F32, DType.bfloat16, DType.bfloat16)]
        return Graph("g", lambda x, y, p, q: [x * y + x, p * q + p], types)

    arrays = [floats(200), floats(200)[::-1].copy()]
    narrow = [array.astype(DType.bfloat16.to_numpy()) for array in arrays]
    both = BothDevices(build, CompileOptions(**options))
    both.check([*arrays, *narrow])
    assert both.on_device.options.fp_contract == both.on_cpu.options.fp_contract
    assert len(both.on_device.numerics_report()) == len(both.on_cpu.numerics_report())


# -- memory


def test_intermediate_results_are_given_back_as_soon_as_nobody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(x: TensorValue) -> TensorValue:
        for _ in range(8):
            x = ops.cumsum(ops.exp(ops.cumsum(x, axis=0) * 0.0), axis=0)
        return x

    model, size = load(Graph("g", forward, [tensor("n")])), 1 << 12
    x, heap, free = there(np.zeros(size, np.float32)), DEVICE.heap, []
    gc.collect()
    heap.trim()
    allocate, before = heap.driver.alloc, heap.driver.free_bytes()

    def watched(nbytes: int) -> int:
        address = allocate(nbytes)
        free.append(heap.driver.free_bytes() or 0)
        return address

    monkeypatch.setattr(heap.driver, "alloc", watched)
    model(x)
    assert before is not None
    assert before - min(free) < 5 * 4 * size


def test_a_model_that_does_not_fit_says_what_it_needs() -> None:
    model = load(Graph("g", lambda x: ops.broadcast_to(x, [1 << 20, 1 << 20]) + 1.0, [tensor(1, 1)]))
    message = raised(OutOfDeviceMemoryError, lambda: model(there(np.zeros((1, 1), np.float32))))
    assert message.startswith(
        "model 'g': output 0 ('output_0') of shape [1048576, 1048576] needs 4398046511104 bytes on Accelerator(0, "
        "emulated=True), and only "
    )


def test_a_model_for_an_accelerator_cannot_be_saved(tmp_path: Path) -> None:
    model = load(Graph("g", lambda x: x + 1.0, [tensor("n")]))
    assert raised(GraphError, lambda: model.save(tmp_path / "file")) == (
        "model 'g': a model for Accelerator(0, emulated=True) cannot be saved; the cache keeps what was "
        "compiled for it by "
        "itself"
    )
    assert repr(model) == "Model(g: (x: float32 [n]) -> (float32 [n]))"
    assert model.memory_report((5,)).inputs == 20


def test_an_eager_kernel_runs_where_its_buffers_are() -> None:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] * y[...]

    call = pl.pallas_call(kernel, pl.ShapeDtypeStruct((4,), "float32"))
    x, y = floats(4), floats(5)[1:]
    assert call(there(x), there(y)).device == DEVICE
    assert back(call(there(x), there(y))).tobytes() == call(x, y).tobytes()
    assert raised(GraphError, lambda: call(there(x), there(y, OTHER))) == (
        "kernel 'kernel' is called on buffers of Accelerator(0, emulated=True) and Accelerator(1, "
        "emulated=True); move them "
        "to one device with .to()"
    )
