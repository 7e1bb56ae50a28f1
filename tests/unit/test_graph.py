"""The graph builder: what it builds, and what each wrong use is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from halfulp.compiler import (
    DeviceRef,
    Dim,
    DType,
    Graph,
    GraphError,
    GraphTypeError,
    HalfulpError,
    TensorType,
    TensorValue,
    Weight,
)
from halfulp.compiler.dialects.graph import ApplyOp, ConstantOp, GraphOp, Parameter
from halfulp.compiler.dialects.graph import Graph as GraphDialect
from halfulp.compiler.locations import location_of
from halfulp.compiler.opdef import OpDef
from halfulp.compiler.passes.verify_graph import VerifyGraphPass
from halfulp.compiler.registry import ParameterSpec, register_op, unregister_op

F32, I32 = DType.float32, DType.int32
X = TensorType(F32, ["n", 4])


def elementwise(operands: Sequence[TensorType], parameters: Mapping[str, Parameter]) -> list[TensorType]:
    first, *others = operands
    for other in others:
        if other.shape != first.shape:
            raise GraphError(f"axis 0 is '{first.shape[0]}' and '{other.shape[0]}'; rebind one of the two")
    return [first]


def count(operands: Sequence[TensorType], parameters: Mapping[str, Parameter]) -> list[TensorType]:
    size = parameters["size"]
    assert isinstance(size, Dim)
    return [TensorType(DType.int64, [size])]


ADD = OpDef("test_add", "map", ("lhs", "rhs"), elementwise, fastmath=True)
JOIN = OpDef("test_join", "opaque", ("first", "*others"), elementwise)
NONZERO = OpDef("test_nonzero", "opaque", ("x",), count, (ParameterSpec("size", Dim),), defines_symbols=True)
SHAPE = OpDef("test_shape", "opaque", ("x",), count, (ParameterSpec("size", Dim),))


@pytest.fixture(autouse=True)
def _ops() -> Iterator[None]:
    ops = (ADD, JOIN, NONZERO, SHAPE)
    for op in ops:
        register_op(op)
    yield
    for op in ops:
        unregister_op(op.name)


def add(x: object, y: object, fastmath: Any = None) -> TensorValue:
    (result,) = Graph.current("ops.test_add").apply(ADD, [x, y], fastmath=fastmath)
    return result


@contextmanager
def refused(message: str, kind: type[HalfulpError] = GraphError) -> Iterator[None]:
    """Expects an error of this kind with exactly this message, the user's line aside."""
    with pytest.raises(kind) as error:
        yield
    assert error.value.message == message


def verify(graph: Graph) -> ModuleOp:
    module = graph.module
    module.verify()
    VerifyGraphPass().apply(Context(), module)
    return module


def parsed(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, GraphDialect):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def text_of(module: ModuleOp, locations: bool = True) -> str:
    out = StringIO()
    Printer(out, print_debuginfo=locations).print_op(module)
    return out.getvalue()


# Building


def test_context_manager() -> None:
    with Graph("g", input_types=[X, X]) as graph:
        x, y = graph.inputs
        graph.output(add(x, y), x)
    assert str(graph) == (
        "graph.graph @g(%input0: !graph.tensor<[n, 4], f32, cpu>, %input1: !graph.tensor<[n, 4], f32, cpu>) {\n"
        '  %0 = graph.apply "test_add"(%input0, %input1) : (!graph.tensor<[n, 4], f32, cpu>, '
        "!graph.tensor<[n, 4], f32, cpu>) -> !graph.tensor<[n, 4], f32, cpu>\n"
        "  graph.output %0, %input0 : !graph.tensor<[n, 4], f32, cpu>, !graph.tensor<[n, 4], f32, cpu>\n"
        "}"
    )
    verify(graph)


@pytest.mark.parametrize("result", [lambda x, y: add(x, y), lambda x, y: [add(x, y)], lambda x, y: (add(x, y),)])
def test_forward_function(result: Any) -> None:
    graph = Graph("g", result, [X, X])
    assert graph.input_names == ("x", "y")
    assert [value.type for value in graph.outputs] == [X]
    verify(graph)


def test_forward_may_call_output_itself() -> None:
    graph = Graph("g", lambda x: Graph.current().output(x, x), [X])
    assert [value.type for value in graph.outputs] == [X, X]
    message = (
        r"^graph 'g': its forward function returned None; return its outputs, one or a list\n  at .*test_graph.py:"
    )
    with pytest.raises(GraphError, match=message):
        Graph("g", lambda x: None, [X])


def test_input_names() -> None:
    def named(first: object, second: object, extra: int = 0) -> Any:
        return first

    def starred(*values: Any) -> Any:
        return values[0]

    assert Graph("g", named, [X, X]).input_names == ("first", "second")
    assert Graph("g", starred, [X, X]).input_names == ("input0", "input1")
    assert Graph("g", input_types=[X, X]).input_names == ("input0", "input1")
    graph = Graph("g", named, [X, X], input_names=["hidden_1", "hidden_2"])
    assert graph.input_names == ("hidden_1", "hidden_2")
    (op,) = verify(graph).ops
    assert isinstance(op, GraphOp)
    assert list(op.inputs) == ["hidden_1", "hidden_2"]


def test_values_know_their_type() -> None:
    graph = Graph("g", input_types=[TensorType(DType.uint8, ["n", 2 * 3], DeviceRef.GPU(1))])
    (x,) = graph.inputs
    assert (x.dtype, x.shape, x.rank, x.device) == (DType.uint8, (Dim("n"), Dim(6)), 2, DeviceRef.GPU(1))
    assert x.tensor is x
    assert repr(x) == "TensorValue(dtype=uint8, shape=[n, 6], device=gpu:1)"
    assert repr(graph) == "Graph('g', inputs=[input0: uint8 [n, 6] on gpu:1])"


def test_graphs_may_nest_and_run_in_threads() -> None:
    with Graph("outer", input_types=[X]) as outer:
        inner = Graph("inner", lambda x: x, [X])
        assert Graph.current() is outer
        outer.output(outer.inputs[0])
    seen: list[str] = []

    def in_thread() -> None:
        with pytest.raises(LookupError) as error:
            Graph.current()
        seen.append(str(error.value))

    with outer:
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
    assert len(inner.outputs) == 1
    assert seen[0].startswith("No graph found for an op: ")


def test_an_error_closes_the_graph() -> None:
    with pytest.raises(RuntimeError, match="stop"), Graph("g"):
        raise RuntimeError("stop")
    with pytest.raises(LookupError):
        Graph.current()


def test_the_graph_is_not_used_up_by_passes() -> None:
    graph = Graph("g", lambda x: add(x, x), [X])
    before = str(graph)
    for _ in range(2):
        module = verify(graph)
        (op,) = module.ops
        assert str(op) == before
        op.detach()


def test_weights_are_listed_once_and_come_first() -> None:
    scale = Weight("layers.0.scale", F32, [2, 4])
    with Graph("g", input_types=[TensorType(F32, [2, 4])]) as graph:
        first = add(graph.inputs[0], scale)
        second = add(first, Weight("bias", F32, [2, 4]))
        graph.output(add(second, Weight("layers.0.scale", F32, [2, 4])), scale)
    assert list(graph.weights) == ["layers.0.scale", "bias"]
    lines = str(graph).splitlines()
    assert lines[1] == '  %layers.0.scale = graph.weight "layers.0.scale" : !graph.tensor<[2, 4], f32, cpu>'
    assert lines[2] == '  %bias = graph.weight "bias" : !graph.tensor<[2, 4], f32, cpu>'
    assert "(%2, %layers.0.scale)" not in lines[3]
    assert str(graph).count("graph.weight") == 2
    (op,) = verify(graph).ops
    assert isinstance(op, GraphOp)
    assert {name: weight.type for name, weight in op.weights.items()} == {
        name: weight.type for name, weight in graph.weights.items()
    }


def test_constants() -> None:
    data = np.array([[1.5, -0.0], [np.nan, 3]], np.float32)
    with Graph("g") as graph:
        graph.output(graph.constant(data.tobytes(), TensorType(F32, [2, 2])))
    op = next(op for op in verify(graph).walk() if isinstance(op, ConstantOp))
    array = op.array()
    assert array.tobytes() == data.tobytes()
    assert array.shape == (2, 2)
    assert not array.flags.writeable
    with pytest.raises(GraphError, match=r"^a constant of type float32 \[2\] on cpu takes 8 bytes, but 4 are given\n"):
        Graph("g").constant(bytes(4), TensorType(F32, [2]))
    with pytest.raises(GraphError, match=r"^a constant must have numbers for sizes, not \[n\]\n"):
        Graph("g").constant(b"", TensorType(F32, ["n"]))


def test_ops_keep_the_users_line() -> None:
    with Graph("g", input_types=[X]) as graph:
        graph.output(add(graph.inputs[0], graph.inputs[0]))
    locations = {op.name: location_of(op) for op in graph.module.walk()}
    here = locations["graph.output"]
    assert here is not None
    assert (here.filename, here.with_source()) == (
        __file__,
        f"{__file__}:{here.line}: graph.output(add(graph.inputs[0], graph.inputs[0]))",
    )
    opened = locations["graph.graph"]
    assert opened is not None
    assert opened.line == here.line - 1
    assert locations["graph.apply"] is not None


def test_printed_ir_is_parsed_back_with_locations() -> None:
    with Graph("g", input_types=[X], input_names=["x_1"]) as graph:
        x = graph.inputs[0]
        y = add(add(x, x, fastmath="none"), x, fastmath={"contract"})
        (indices,) = graph.apply(NONZERO, [y], {"size": Dim("found")})
        graph.output(y, indices, graph.constant(bytes(range(100)), TensorType(DType.uint8, [100])))
    module = verify(graph)
    for locations in (True, False):
        text = text_of(module, locations)
        again = parsed(text)
        again.verify()
        assert text_of(again, locations) == text
    assert f'loc("{__file__}":' in text_of(module)


# Symbols that ops define


def test_op_may_define_a_symbol() -> None:
    with Graph("g", input_types=[X]) as graph:
        (indices,) = graph.apply(NONZERO, graph.inputs, {"size": Dim("found")})
        (again,) = graph.apply(SHAPE, [indices], {"size": Dim("found") * 2 + Dim("n")})
        (known,) = graph.apply(NONZERO, [indices], {"size": Dim("found")})
        graph.output(again, known)
    assert str(graph).count("defines") == 1
    assert '{size = #graph.dim<"found">} defines [found] : ' in str(graph)
    verify(graph)


def test_other_ops_may_not() -> None:
    with Graph("g", input_types=[X]) as graph, pytest.raises(GraphError) as error:
        graph.apply(SHAPE, graph.inputs, {"size": Dim("found")})
    assert error.value.message == (
        "ops.test_shape: output 0 has size 'found', which is no symbol of an input and which no op computes; "
        "known here: 'n'"
    )


# Fastmath


def flags_of(graph: Graph) -> list[frozenset[str] | None]:
    return [op.flags for op in graph.module.walk() if isinstance(op, ApplyOp)]


def test_innermost_flags_win() -> None:
    with Graph("g", input_types=[X]) as graph:
        (x,) = graph.inputs
        add(x, x)
        with graph.fastmath("nsz", "contract"):
            add(x, x)
            with graph.fastmath({"afn"}):
                add(x, x)
                add(x, x, fastmath={"ninf"})
            with graph.fastmath("none"):
                add(x, x)
            add(x, x, fastmath="none")
            add(x, x)
        graph.output(add(x, x))
    assert flags_of(graph) == [
        None,
        {"nsz", "contract"},
        {"afn"},
        {"ninf"},
        frozenset(),
        frozenset(),
        {"nsz", "contract"},
        None,
    ]
    verify(graph)


def test_region_leaves_ops_without_floats_alone() -> None:
    with Graph("g", input_types=[TensorType(I32, ["n"]), X]) as graph:
        integers, floats = graph.inputs
        with graph.fastmath("fast"):
            add(integers, integers)
            graph.apply(JOIN, [floats])
        graph.output(integers)
    assert flags_of(graph) == [None, None]


def test_flags_where_none_can_stand() -> None:
    with Graph("g", input_types=[TensorType(I32, ["n"])]) as graph:
        with refused(
            "ops.test_add: fastmath flags (nsz, contract) stand on floats only, and it computes none; "
            "leave fastmath out"
        ):
            add(graph.inputs[0], graph.inputs[0], fastmath={"nsz", "contract"})
        flags = "flags are reassoc, nnan, ninf, nsz, arcp, contract, afn; did you mean"
        with refused(f"ops.test_add: fastmath has no flag 'nsy'; {flags} 'nsz'?"):
            add(graph.inputs[0], graph.inputs[0], fastmath="nsy")
        with refused(f"graph 'g': fastmath() has no flag 'contrct'; {flags} 'contract'?"):
            graph.fastmath("contrct")


# Wrong uses


def test_second_output() -> None:
    graph = Graph("g", lambda x: x, [X])
    with pytest.raises(GraphError) as error:
        graph.output(graph.inputs[0])
    assert error.value.message.startswith(f"graph 'g': output() was already called at {__file__}:")
    assert error.value.message.endswith("; pass all outputs to one call")


def test_op_after_output() -> None:
    with Graph("g", input_types=[X]) as graph:
        graph.output(graph.inputs[0])
        with pytest.raises(GraphError) as error:
            add(graph.inputs[0], graph.inputs[0])
    assert error.value.message.startswith(f"graph 'g' ended with output() at {__file__}:")
    assert error.value.message.endswith("; build its ops before that")


def test_unfinished_graph_has_no_module() -> None:
    graph = Graph("g", input_types=[X])
    with pytest.raises(GraphError, match=r"^graph 'g' has no outputs yet; end it with output\(\.\.\.\)$"):
        _ = graph.module


def test_value_of_another_graph() -> None:
    other = Graph("other", lambda x: x, [X])
    with Graph("g", input_types=[X]) as graph:
        remedy = "is a value of graph 'other', not of graph 'g'; make it an input of this graph"
        with refused(f"ops.test_add: operand 'rhs' {remedy}"):
            add(graph.inputs[0], other.inputs[0])
        with refused(f"graph 'g': output 1 {remedy}"):
            graph.output(graph.inputs[0], other.inputs[0])


def test_outputs_that_are_no_values() -> None:
    with Graph("g", input_types=[X]) as graph:
        with refused("graph 'g': output 0 must be a TensorValue or a Weight, not 3", GraphTypeError):
            graph.output(3)  # type: ignore[arg-type]
        with refused(
            "graph 'g': output 0 must be a TensorValue or a Weight, not [TensorValue(dtype=float32, shape=[n, 4], "
            "device=cpu)]; pass the values one by one",
            GraphTypeError,
        ):
            graph.output(list(graph.inputs))  # type: ignore[arg-type]


def test_algebraic_input_dim() -> None:
    with refused(
        "graph 'g', input 'input1': axis 1 is '2*n', but the sizes of an input must be numbers or symbols, from which "
        "the values of all symbols are taken; give the axis a symbol of its own"
    ):
        Graph("g", input_types=[X, TensorType(F32, ["n", Dim("n") * 2])])


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"name": ""}, GraphTypeError, "the name of a Graph must be a str that is not empty, not ''"),
        (
            {"input_types": X},
            GraphTypeError,
            "graph 'g': input_types must be a list of TensorType, not TensorType(float32, [n, 4], cpu)",
        ),
        (
            {"input_types": [X, F32]},
            GraphTypeError,
            "graph 'g': input_types[1] must be a TensorType, not DType.float32",
        ),
        (
            {"input_types": [X], "input_names": ["a", "b"]},
            GraphError,
            "graph 'g': there are 1 input_types, but 2 input_names",
        ),
        (
            {"input_types": [X], "input_names": ["a b"]},
            GraphError,
            "graph 'g': an input cannot be named 'a b'; use letters, digits and '_'",
        ),
        (
            {"input_types": [X, X], "input_names": ["a", "a"]},
            GraphError,
            "graph 'g': input_names must differ, but 'a' is repeated",
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], kind: type[HalfulpError], message: str) -> None:
    with refused(message, kind):
        Graph(**{"name": "g", **arguments})


def test_errors_of_shape_rules_show_op_operands_and_line() -> None:
    with Graph("g", input_types=[X, TensorType(F32, ["m", 4])]) as graph, pytest.raises(GraphError) as error:
        add(*graph.inputs)
    assert error.value.message == (
        "ops.test_add on float32 [n, 4], float32 [m, 4]: axis 0 is 'n' and 'm'; rebind one of the two"
    )
    assert error.value.location is not None
    assert error.value.location.filename == __file__


def test_number_of_operands() -> None:
    with Graph("g", input_types=[X]) as graph:
        (x,) = graph.inputs
        assert graph.apply(JOIN, [x, x, x])[0].type == X
        with refused("ops.test_add: takes 2 operands (lhs, rhs), not 1"):
            graph.apply(ADD, [x])
        with refused("ops.test_join: takes at least 1 operands (first, *others), not 0"):
            graph.apply(JOIN, [])
        with refused("ops.test_join: operand 1 must be a TensorValue or a Weight, not 2", GraphTypeError):
            graph.apply(JOIN, [x, 2])


@pytest.mark.parametrize("kind", [int, float])
def test_a_value_as_a_number(kind: Any) -> None:
    (x,) = Graph("g", input_types=[X]).inputs
    with refused(
        f"TensorValue(dtype=float32, shape=[n, 4], device=cpu) has no elements while the graph is built, so it is no "
        f"Python {kind.__name__}; keep it as a tensor, show it with .print(), or make it an output",
        GraphTypeError,
    ):
        kind(x)


def test_truth_of_a_value() -> None:
    (x,) = Graph("g", input_types=[X]).inputs
    assert issubclass(GraphTypeError, TypeError)
    with refused(
        "TensorValue(dtype=float32, shape=[n, 4], device=cpu) has no elements while the graph is built, so it is "
        "neither true nor false; choose between values with ops.where, or between computations with ops.cond",
        GraphTypeError,
    ):
        bool(x)


def test_numpy_leaves_operators_to_values() -> None:
    class Adding(TensorValue):
        def __radd__(self, other: object) -> TensorValue:
            return self

    (x,) = Graph("g", input_types=[X]).inputs
    array: Any = np.ones(3)
    value = Adding(x.graph, x.ssa, x.type)
    assert array + value is value


def test_weights_that_contradict() -> None:
    with Graph("g", input_types=[TensorType(F32, [4])]) as graph:
        add(graph.inputs[0], Weight("w", F32, [4]))
        with refused(
            "graph 'g': weight 'w' was used as float32 [4] on cpu before, and now as float32 [1] on cpu; "
            "give different weights different names"
        ):
            add(graph.inputs[0], Weight("w", F32, [1]))


def test_wrong_weights() -> None:
    with refused(
        "the shape of Weight 'w' must be numbers, not [n, 4]; a tensor whose size varies is an input of the graph"
    ):
        Weight("w", F32, ["n", 4])
    with refused("the name of a Weight must not be empty"):
        Weight("", F32, [4])
    with refused("the name of a Weight must be a str, not 3", GraphTypeError):
        Weight(3, F32, [4])  # type: ignore[arg-type]
    assert repr(Weight("w", F32, [4])) == "Weight('w', dtype=float32, shape=[4], device=cpu)"


def test_wrong_types() -> None:
    with refused("dtype of a TensorType must be a DType such as DType.float32, not 'f'", GraphTypeError):
        TensorType("f", [4])  # type: ignore[arg-type]
    with refused("a shape must be a sequence of ints, names and dims, not 'n'; write ['n']", GraphTypeError):
        TensorType(F32, "n")
    with refused("device of a TensorType must be a DeviceRef, not 'cpu'; write DeviceRef.CPU()", GraphTypeError):
        TensorType(F32, [4], "cpu")  # type: ignore[arg-type]
    with refused("size -1 of axis 1 must be between 0 and 2**63 - 1"):
        TensorType(F32, ["n", -1])
    with refused("a tensor of float32 [2305843009213693952, n] would take more than 2**63 - 1 bytes"):
        TensorType(F32, [1 << 61, "n"])
    assert TensorType(F32, [1 << 61, 0]).rank == 2


# The pass on calls of ops; FileCheck files hold the rest


def test_verify_graph_compares_results_with_the_shape_rule() -> None:
    template = 'graph.graph @g(%x: T) {{ %0 = graph.apply "{}"(%x){} : (T) -> {}\n graph.output %0 : {} }}'
    tensor, wrong = "!graph.tensor<[n, 4], f32, cpu>", "!graph.tensor<[n, 5], f32, cpu>"

    def run(name: str, tail: str, result: str) -> None:
        module = parsed(template.format(name, tail, result, result).replace("T", tensor))
        module.verify()
        VerifyGraphPass().apply(Context(), module)

    run("test_join", "", tensor)
    with pytest.raises(VerifyException) as error:
        run("test_join", "", wrong)
    assert str(error.value) == (
        'graph.apply "test_join": its results must be float32 [n, 4] on cpu, not float32 [n, 5] on cpu'
    )
    with pytest.raises(VerifyException, match=r'^graph\.apply "test_join": takes no fastmath flags, but has nsz, afn'):
        run("test_join", " fastmath<afn, nsz>", tensor)
    with pytest.raises(VerifyException, match=r'^graph\.apply "test_join": unknown parameter \'k\'; it has none'):
        run("test_join", " {k = 1 : i64}", tensor)
    defining = "!graph.tensor<[found], i64, cpu>"
    run("test_nonzero", ' {size = #graph.dim<"found">} defines [found]', defining)
    with pytest.raises(VerifyException, match=r"\"test_shape\": defines 'found', but it computes no size"):
        run("test_shape", ' {size = #graph.dim<"found">} defines [found]', defining)
