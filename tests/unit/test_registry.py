"""Registered kernels: what a declaration must say, and what a call that does not fit it is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from halfulp import ops
from halfulp.compiler import DeviceRef, Dim, DType, Graph, GraphError, GraphTypeError, NotFoundError, TensorType
from halfulp.compiler.kernel_call import KernelCall, match_call
from halfulp.compiler.opdef import OpDef
from halfulp.compiler.registry import (
    KernelDef,
    OperandSpec,
    OutputSpec,
    ParameterSpec,
    find_kernel,
    find_op,
    register_kernel,
    register_op,
    unregister_kernel,
    unregister_op,
)

CPU, GPU = DeviceRef.CPU(), DeviceRef.GPU()
F32, I64 = DType.float32, DType.int64


def build(builder: Any, call: KernelCall, operands: Sequence[Any], outputs: Sequence[Any]) -> None:
    raise AssertionError("nothing is compiled here")


def build_dims(builder: Any, call: KernelCall, operands: Sequence[Any]) -> dict[str, Any]:
    raise AssertionError("nothing is compiled here")


def even(call: KernelCall) -> None:
    if call.dims["columns"] == 7:
        raise GraphError("ops.custom('pack'): seven columns cannot be packed")


PACK = KernelDef(
    "pack",
    operands=(
        OperandSpec("x", (F32, DType.float64), ("rows", "columns")),
        OperandSpec("index", I64, ("rows",)),
        OperandSpec("ends", DType.uint32, ("batch", 2), host=True),
        OperandSpec("anything", F32, None),
    ),
    outputs=(
        OutputSpec("packed", F32, ("kept", "wide")),
        OutputSpec("origin", I64, ("kept",)),
    ),
    parameters=(
        ParameterSpec("factor", int, accepts=lambda n: n > 0, rule="positive"),
        ParameterSpec("scale", float, default=1.0),
        ParameterSpec("mode", str, default=None),
        ParameterSpec("axes", tuple, default=()),
        ParameterSpec("strict", bool, default=False),
    ),
    dims={"wide": lambda parameters, dims: dims["columns"] * parameters["factor"]},
    computed=("kept",),
    build=build,
    build_dims=build_dims,
    check=even,
)


@pytest.fixture(autouse=True)
def _pack() -> Iterator[None]:
    register_kernel(PACK)
    yield
    unregister_kernel("pack")


def operand_types(**changes: TensorType) -> list[TensorType]:
    types = {
        "x": TensorType(F32, ["r", "c"]),
        "index": TensorType(I64, ["r"]),
        "ends": TensorType(DType.uint32, ["b", 2]),
        "anything": TensorType(F32, [3, "z", 4]),
    }
    return list({**types, **changes}.values())


OUTPUTS = (TensorType(F32, ["k", Dim("c") * 2]), TensorType(I64, ["k"]))


def match(
    operands: Sequence[TensorType] | None = None,
    outputs: Sequence[TensorType] = OUTPUTS,
    parameters: Mapping[str, Any] | None = None,
    device: DeviceRef = CPU,
) -> KernelCall:
    given = {"factor": 2} if parameters is None else parameters
    return match_call(PACK, device, operand_types() if operands is None else operands, outputs, given, "call")


def test_matched_call() -> None:
    call = match(parameters={"factor": 2, "axes": [0, [1]], "scale": 3})
    assert call.dims == {"rows": Dim("r"), "columns": Dim("c"), "batch": Dim("b"), "wide": Dim("c") * 2}
    assert call.computed == {"kept": (Dim("k"),)}
    assert call.parameters == {"factor": 2, "scale": 3.0, "mode": None, "axes": (0, (1,)), "strict": False}
    assert isinstance(call.parameters["scale"], float)


def test_computed_size_may_have_several_names_or_a_known_size() -> None:
    outputs = [TensorType(F32, ["k", Dim("c") * 2]), TensorType(I64, ["r"])]
    assert match(outputs=outputs).computed == {"kept": (Dim("k"), Dim("r"))}
    outputs = [TensorType(F32, [5, Dim("c") * 2]), TensorType(I64, [5])]
    assert match(outputs=outputs).computed == {"kept": (Dim(5),)}


def test_operands_on_a_device_leave_host_operands_on_the_host() -> None:
    on_gpu = {
        "x": TensorType(F32, ["r", "c"], GPU),
        "index": TensorType(I64, ["r"], GPU),
        "anything": TensorType(F32, [], GPU),
    }
    outputs = [TensorType(t.dtype, t.shape, GPU) for t in OUTPUTS]
    types = operand_types(**on_gpu)
    assert match(types, outputs, device=GPU).operands == tuple(types)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (
            {"operands": operand_types()[:2]},
            GraphError,
            "operand 'ends' is missing (2 given); operands in order: x, index, ends, anything",
        ),
        (
            {"operands": operand_types() * 2},
            GraphError,
            "there are 8 operands, but the kernel has 4: x, index, ends, anything",
        ),
        (
            {"outputs": OUTPUTS[:1]},
            GraphError,
            "output 'origin' is missing (1 given); outputs in order: packed, origin",
        ),
        ({"outputs": OUTPUTS * 2}, GraphError, "there are 4 outputs, but the kernel has 2: packed, origin"),
        (
            {"operands": operand_types(x=TensorType(DType.int8, ["r", "c"]))},
            GraphTypeError,
            "operand 'x' must be float32 or float64, not int8",
        ),
        (
            {"operands": operand_types(index=TensorType(I64, ["r", 1]))},
            GraphError,
            "operand 'index' must have rank 1, [rows], not 2: [r, 1]",
        ),
        (
            {"operands": operand_types(index=TensorType(I64, ["q"]))},
            GraphError,
            "axis 0 of operand 'index' must have size 'r' (rows, the size of axis 0 of operand 'x'), not 'q'; "
            "rebind the operand if the two are equal",
        ),
        (
            {"operands": operand_types(ends=TensorType(DType.uint32, ["b", 3]))},
            GraphError,
            "axis 1 of operand 'ends' must have size '2', not '3'; rebind the operand if the two are equal",
        ),
        (
            {"operands": operand_types(index=TensorType(I64, ["r"], GPU))},
            GraphError,
            "operand 'index' must be in the memory of cpu, where the kernel runs, not on gpu:0; move it with .to()",
        ),
        (
            {"operands": operand_types(ends=TensorType(DType.uint32, ["b", 2], GPU))},
            GraphError,
            "operand 'ends' must be in host memory, not on gpu:0; move it with .to()",
        ),
        (
            {"outputs": [TensorType(F32, ["k", Dim("c") * 2], GPU), OUTPUTS[1]]},
            GraphError,
            "output 'packed' must be in the memory of cpu, where the kernel runs, not on gpu:0; state its type on cpu",
        ),
        (
            {"outputs": [TensorType(F32, ["k", Dim("c") * 3]), OUTPUTS[1]]},
            GraphError,
            "axis 1 of output 'packed' must have size '2*c' (wide, as the parameters and operands have it), not '3*c'",
        ),
        ({"parameters": {}}, GraphError, "parameter 'factor' (int) is missing"),
        ({"parameters": {"factor": 0}}, GraphError, "parameter 'factor' must be positive, not 0"),
        ({"parameters": {"factor": 2.0}}, GraphTypeError, "parameter 'factor' must be of type int, not 2.0"),
        ({"parameters": {"factor": True}}, GraphTypeError, "parameter 'factor' must be of type int, not True"),
        (
            {"parameters": {"factor": 1 << 63}},
            GraphError,
            "parameter 'factor': an integer parameter must fit in 64 bits, not 9223372036854775808",
        ),
        (
            {"parameters": {"factor": {}}},
            GraphTypeError,
            "parameter 'factor': a parameter must be a bool, int, float, str, DType, Dim or a list of them, not {}",
        ),
        (
            {"parameters": {"factor": 1, "scal": 1.0}},
            GraphError,
            "unknown parameter 'scal'; parameters: factor, scale, mode, axes, strict; did you mean 'scale'?",
        ),
    ],
)
def test_calls_that_do_not_fit(arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        match(**arguments)
    assert str(error.value) == f"call: {message}"


def test_a_kernel_may_have_rules_of_its_own() -> None:
    with pytest.raises(GraphError, match=r"^ops\.custom\('pack'\): seven columns cannot be packed$"):
        match(operand_types(x=TensorType(F32, ["r", 7])), [TensorType(F32, ["k", 14]), OUTPUTS[1]])


def test_unknown_kernel_lists_near_names_and_the_remedy() -> None:
    with pytest.raises(NotFoundError) as error:
        find_kernel("pakc", "here")
    message = str(error.value)
    assert message.startswith("here: no kernel is registered under that name; did you mean 'pack'? Registered: ")
    assert message.endswith(
        ". To add one, import the module that registers it, or decorate a kernel with "
        "@halfulp.ops.pallas.register_kernel('pakc', operands=..., outputs=...)"
    )
    with pytest.raises(LookupError, match=r"^here: no op is registered under that name\. Import the module that "):
        find_op("no_such_op", "here")


def test_a_name_is_registered_once() -> None:
    assert register_kernel(PACK) is PACK
    other = KernelDef("pack", PACK.operands, (), build)
    with pytest.raises(GraphError) as error:
        register_kernel(other)
    assert str(error.value) == "kernel 'pack' is registered already; choose another name, or pass replace=True"
    assert register_kernel(other, replace=True) is find_kernel("pack", "here")


def test_ops_are_found_by_name() -> None:
    op = register_op(OpDef("test_identity", "map", ("x",), lambda operands, parameters: operands))
    try:
        assert find_op("test_identity", "here") is op
    finally:
        unregister_op("test_identity")
    with pytest.raises(NotFoundError):
        find_op("test_identity", "here")


def test_kernels_of_the_library_are_found_without_importing_it() -> None:
    program = (
        "import sys; from halfulp.compiler.registry import find_kernel; assert 'halfulp.ops' not in sys.modules; "
        "print(find_kernel('compute_log_probabilities_ragged', 'here').name)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "compute_log_probabilities_ragged\n"


X = OperandSpec("x", F32, ("n",))
Y = OutputSpec("y", F32, ("n",))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operands": (X, X)}, "kernel 'k': the names of its operands must differ, but 'x' repeats"),
        (
            {"outputs": (OutputSpec("y", F32, ("m",)),)},
            "kernel 'k': output 'y' has size 'm', which no operand has; "
            "list it in computed or give a rule for it in dims",
        ),
        ({"computed": ("m",)}, "kernel 'k': computed sizes and build_dims come together; give both or neither"),
        ({"build_dims": build_dims}, "kernel 'k': computed sizes and build_dims come together; give both or neither"),
        (
            {"computed": ("n",), "build_dims": build_dims},
            "kernel 'k': 'n' cannot be computed, since an operand or a rule in dims gives it",
        ),
    ],
)
def test_declarations_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError) as error:
        KernelDef(**{"name": "k", "operands": (X,), "outputs": (Y,), "build": build, **arguments})
    assert str(error.value) == message


def test_a_parameter_with_a_check_needs_words_for_it() -> None:
    with pytest.raises(GraphError, match=r"^parameter 'p' has a check, so it needs a rule that says what it accepts$"):
        ParameterSpec("p", int, accepts=bool)


# Through ops.custom, in a graph.


def pack_graph(parameters: Mapping[str, Any], outputs: Sequence[TensorType] = OUTPUTS) -> Graph:
    def forward(*values: Any) -> Any:
        return ops.custom("pack", CPU, values, outputs, parameters)

    return Graph("g", forward, operand_types())


def test_custom_defines_the_computed_symbols() -> None:
    graph = pack_graph({"factor": 2})
    assert [value.type for value in graph.outputs] == list(OUTPUTS)
    assert '"pack"(%input0, %input1, %input2, %input3) on cpu {' in str(graph)
    assert " defines [k] : " in str(graph)


def test_custom_uses_known_sizes_without_defining_them() -> None:
    graph = pack_graph({"factor": 2}, [TensorType(F32, ["r", Dim("c") * 2]), TensorType(I64, ["r"])])
    assert "defines" not in str(graph)


def test_custom_refuses_symbols_that_nothing_gives() -> None:
    with pytest.raises(GraphError) as error:
        pack_graph({"factor": 2}, [TensorType(F32, ["k", Dim("c") * 2]), TensorType(I64, [Dim("m") + 1])])
    assert error.value.message == (
        "ops.custom('pack'): output 1 has size 'm', which is no symbol of an input and which no op computes; "
        "known here: 'b', 'c', 'k', 'r', 'z'"
    )


def test_custom_names_the_users_line() -> None:
    with pytest.raises(GraphError) as error:
        pack_graph({"factor": -1})
    location = error.value.location
    assert location is not None
    assert location.filename == __file__
    assert str(error.value) == (
        "ops.custom('pack'): parameter 'factor' must be positive, not -1\n"
        f'  at {location}: return ops.custom("pack", CPU, values, outputs, parameters)'
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device": "cpu"}, "device must be a DeviceRef, not 'cpu'; write DeviceRef.CPU()"),
        ({"values": 3}, "values must be a list of values, not 3; write [value]"),
        ({"values": [1.5]}, "operand 'x' must be a TensorValue or a Weight, not 1.5"),
        (
            {"out_types": OUTPUTS[0]},
            "out_types must be a list of TensorType, not TensorType(float32, [k, 2*c], cpu); write [type]",
        ),
        ({"out_types": [F32]}, "out_types[0] must be a TensorType, not DType.float32"),
    ],
)
def test_custom_refuses_arguments_of_the_wrong_kind(arguments: dict[str, Any], message: str) -> None:
    with (
        Graph("g", input_types=operand_types()) as graph,
        pytest.raises(GraphTypeError) as error,
    ):
        ops.custom(**{"name": "pack", "device": CPU, "values": graph.inputs, "out_types": OUTPUTS, **arguments})
    assert error.value.message == f"ops.custom('pack'): {message}"


def test_custom_outside_a_graph() -> None:
    with pytest.raises(LookupError) as error:
        ops.custom("pack", CPU, [], [])
    assert str(error.value).startswith(
        "No graph found for ops.custom('pack'): it must be called inside 'with Graph(...) as g:', or in the forward "
        "function of a Graph\n  at "
    )
