"""Building a graph from Python.

>>> from halfulp.compiler import DType, Graph, TensorType
>>> with Graph("identity", input_types=[TensorType(DType.float32, ["n"])]) as graph:
...     graph.output(graph.inputs[0])
>>> print(graph)
graph.graph @identity(%input0: !graph.tensor<[n], f32, cpu>) {
  graph.output %input0 : !graph.tensor<[n], f32, cpu>
}

Ops act on the graph whose ``with`` block is the innermost one around them. Every rule is checked where an op is built,
so that an error comes from the user's own line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from .device import DeviceRef
from .dialects.graph import (
    ApplyOp,
    CondOp,
    ConstantOp,
    CustomOp,
    GraphOp,
    InplaceCustomOp,
    LoadOp,
    OutputOp,
    PrintOp,
    PrintTextOp,
    RegisteredOp,
    StoreOp,
    WeightOp,
    WhileOp,
    parameter_attribute,
)
from .dialects.graph.printing import check_text
from .dialects.graph.symbols import algebraic_input_message, first_algebraic, undefined_symbols
from .dialects.graph.types import tensor_type
from .dims import SymbolicDim
from .errors import GraphError, GraphTypeError, NotFoundError, quoted_list
from .fastmath_region import FastmathRegion
from .graph_inputs import checked_input_types, input_names_for
from .kernel_call import match_call, match_parameters
from .locations import Located, location_attribute, location_of, user_location
from .op_call import Flags, call_flags, check_arity, check_devices, infer_types, operand_role
from .opdef import OpDef
from .options import ordered_flags, parse_fastmath
from .regions import OpenBlocks
from .registry import find_kernel
from .types import BufferType, TensorType, shape_text
from .values import BufferValue, TensorValue, Weight

TensorLike: TypeAlias = TensorValue | Weight
Forward: TypeAlias = "Callable[..., TensorValue | Sequence[TensorValue] | None]"
GraphOperation: TypeAlias = (
    ConstantOp | RegisteredOp | CondOp | WhileOp | LoadOp | StoreOp | PrintOp | PrintTextOp | OutputOp
)

_open_graphs: ContextVar[tuple[Graph, ...]] = ContextVar("_open_graphs", default=())


class Graph:
    """A graph under construction, then a finished one. Loading it, once or often, does not change it.

    Args:
        name: its name, in messages and in the IR.
        forward: called at once with the inputs; what it returns becomes the outputs. Without it, use the graph as
            a context manager and end with `output`.
        input_types: one `TensorType` for each input. Sizes are ints or symbols; a symbol that stands more than once
            is one size, checked when the graph runs.
        input_names: names by which a caller may pass inputs. Default: the parameter names of ``forward``, else
            ``input0``, ``input1``, ...

    Raises:
        GraphError: a size of an input is an expression, or names are not legal or not different.
        GraphTypeError: an argument of the wrong Python type.
    """

    def __init__(
        self,
        name: str,
        forward: Forward | None = None,
        input_types: Iterable[TensorType] = (),
        *,
        input_names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise GraphTypeError(f"the name of a Graph must be a str that is not empty, not {name!r}")
        with Located():
            types = checked_input_types(name, input_types)
            names = input_names_for(name, forward, input_names, len(types))
            for input_name, input_type in zip(names, types, strict=True):
                if (algebraic := first_algebraic(input_type.shape)) is not None:
                    raise GraphError(f"graph {name!r}, {algebraic_input_message(f'input {input_name!r}', *algebraic)}")
        self.name = name
        self._op = GraphOp(name, dict(zip(names, types, strict=True)))
        self._op.location = location_attribute(user_location())
        self.blocks = OpenBlocks(self._op.body.block)
        self._symbols = {symbol for input_type in types for symbol in input_type.symbols}
        self.region_flags: frozenset[str] | None = None
        self._devices = {input_type.device for input_type in types}
        self._weights: dict[str, tuple[Weight, TensorValue]] = {}
        # A BufferValue for each BufferType, a TensorValue for any other; so that both can be used without a cast.
        self.inputs: tuple[Any, ...] = tuple(map(self.value, self.blocks.root.args))
        if forward is not None:
            with self:
                self._finish(forward(*self.inputs))

    @staticmethod
    def current(subject: str = "an op") -> Graph:
        """The graph whose ``with`` block, or forward function, is running. ``subject`` is what asks for it.

        Raises:
            NotFoundError: there is none (a LookupError).
        """
        graphs = _open_graphs.get()
        if not graphs:
            raise NotFoundError(
                f"No graph found for {subject}: it must be called inside 'with Graph(...) as g:', or in the forward "
                "function of a Graph",
                user_location(),
            )
        return graphs[-1]

    def __enter__(self) -> Graph:
        _open_graphs.set((*_open_graphs.get(), self))
        return self

    def __exit__(self, *exception: object) -> None:
        _open_graphs.set(_open_graphs.get()[:-1])

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(self._op.inputs)

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """The types of the inputs, in order."""
        return tuple(value.type for value in self.inputs)

    @property
    def weights(self) -> dict[str, Weight]:
        """The weights that the graph uses, by name."""
        return {name: weight for name, (weight, _) in self._weights.items()}

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that have a value when the graph runs: those of the inputs, and what ops built so far define."""
        return frozenset(self._symbols)

    @property
    def devices(self) -> frozenset[DeviceRef]:
        """The devices that its inputs and the results of its ops are on."""
        return frozenset(self._devices)

    @property
    def outputs(self) -> tuple[TensorValue, ...]:
        """The outputs, in order.

        Raises:
            GraphError: `output` was not called yet.
        """
        output = self._output_op
        if output is None:
            raise GraphError(f"graph {self.name!r} has no outputs yet; end it with output(...)")
        return tuple(self.value(value) for value in output.values)

    @property
    def module(self) -> ModuleOp:
        """The IR of the finished graph: a module of its own each time, which passes may change.

        Raises:
            GraphError: `output` was not called yet.
        """
        _ = self.outputs
        return ModuleOp([self._op.clone()])

    def rewritten(self, change: Callable[[ModuleOp], None]) -> Graph:
        """A copy of the finished graph whose IR ``change`` has changed; inputs, weights and name stay what they are.

        For experiments: ``graph.rewritten(lambda module: SetOpNumericsPass(ops=(3,)).apply(Context(), module))``.

        Raises:
            GraphError: `output` was not called yet.
        """
        module = self.module
        change(module)
        (op,) = (part for part in module.body.block.ops if isinstance(part, GraphOp))
        module.body.block.detach_op(op)
        result = copy(self)
        result._op, result.blocks = op, OpenBlocks(op.body.block)
        result.inputs = tuple(map(result.value, op.body.block.args))
        used = op.weights
        result._weights = {
            name: (weight, result.value(used[name].result))
            for name, (weight, _) in self._weights.items()
            if name in used
        }
        return result

    def __str__(self) -> str:
        return str(self._op)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {t}" for name, t in zip(self.input_names, self.input_types, strict=True))
        return f"Graph({self.name!r}, inputs=[{inputs}])"

    def output(self, *values: TensorLike) -> None:
        """End the graph with these outputs, in order. An input may be an output, and a value may be one twice.

        Raises:
            GraphError: the graph has its outputs already, or a value belongs to another graph.
            GraphTypeError: something else than a value.
        """
        with Located():
            if self._output_op is not None:
                raise GraphError(
                    f"graph {self.name!r}: output() was already called{self._end_place()}; pass all outputs to one call"
                )
            subject = f"graph {self.name!r}"
            if (place := self.blocks.place) is not None:
                raise GraphError(f"{subject}: output() is called inside {place}; return the values from it instead")
            outputs = [self.operand(value, subject, f"output {i}") for i, value in enumerate(values)]
        self.insert(OutputOp([value.ssa for value in outputs]))
        self._drop_unused_weights()

    def fastmath(self, *flags: str | Iterable[str]) -> FastmathRegion:
        """A region whose ops carry these flags, whatever the options say: ``with g.fastmath("nsz", "contract"):``.

        ``"none"`` and ``"fast"`` stand for no and for all flags. The innermost region decides alone, and an op's own
        argument over it. Ops that compute no float are left as they are.

        Raises:
            GraphError: an unknown flag, or ``"none"`` beside flags.
        """
        subject = f"graph {self.name!r}: fastmath()"
        with Located():
            sets = [parse_fastmath(flag, subject) for flag in flags]
            if "none" in flags and any(sets):
                listed = ", ".join(ordered_flags(frozenset().union(*sets)))
                raise GraphError(f"{subject} is given 'none' and the flags {listed}; leave out one or the other")
        return FastmathRegion(self, frozenset().union(*sets))

    def operand(self, value: object, subject: str, role: str) -> TensorValue:
        """The value that an op was given, a `Weight` made one; ``subject`` and ``role`` are for messages.

        Raises:
            GraphError: it belongs to another graph, or a weight contradicts one of the same name.
            GraphTypeError: it is neither a value nor a weight.
        """
        with Located():
            if isinstance(value, Weight):
                return self._weight(value)
            if not isinstance(value, TensorValue):
                remedy = "; pass the values one by one" if isinstance(value, list | tuple) else ""
                remedy = "; load it with ops.buffer_load" if isinstance(value, BufferValue) else remedy
                raise GraphTypeError(f"{subject}: {role} must be a TensorValue or a Weight, not {value!r}{remedy}")
            self._check_own(value, subject, role)
            self.blocks.check_visible(value.ssa, subject, role)
            return value

    def buffer(self, value: object, subject: str, role: str) -> BufferValue:
        """The buffer that an op was given.

        Raises:
            GraphError: it belongs to another graph.
            GraphTypeError: it is no buffer.
        """
        with Located():
            if not isinstance(value, BufferValue):
                raise GraphTypeError(
                    f"{subject}: {role} must be a BufferValue, not {value!r}; make it an input of the graph of type "
                    "BufferType"
                )
            self._check_own(value, subject, role)
            return value

    def _check_own(self, value: TensorValue | BufferValue, subject: str, role: str) -> None:
        if value.graph is not self:
            raise GraphError(
                f"{subject}: {role} is a value of graph {value.graph.name!r}, not of graph {self.name!r}; "
                "make it an input of this graph"
            )

    def constant(self, data: bytes, result_type: TensorType) -> TensorValue:
        """A constant from its elements' bytes, row-major and little-endian.

        Raises:
            GraphError: the number of bytes does not fit the type, or a size is symbolic.
        """
        with Located():
            if not result_type.is_static:
                raise GraphError(f"a constant must have numbers for sizes, not {shape_text(result_type.shape)}")
            wanted = int(result_type.num_elements) * result_type.dtype.size_in_bytes
            if len(data) != wanted:
                raise GraphError(f"a constant of type {result_type} takes {wanted} bytes, but {len(data)} are given")
        return self.insert(ConstantOp(data, result_type))[0]

    def apply(
        self,
        op: OpDef,
        values: Sequence[object],
        parameters: Mapping[str, Any] | None = None,
        fastmath: Flags = None,
    ) -> list[TensorValue]:
        """Build an op of the library; its shape rule gives the types of the results.

        Raises:
            GraphError, GraphTypeError: the op's rules are broken; the message starts with ``ops.<name>``.
        """
        subject = f"ops.{op.name}"
        with Located():
            operands = [self.operand(v, subject, operand_role(op.operands, i)) for i, v in enumerate(values)]
            check_arity(subject, op, len(operands))
            matched = match_parameters(op.parameters, parameters or {}, subject)
            types = [value.type for value in operands]
            check_devices(subject, op, types)
            result_types = infer_types(op, types, matched)
            is_float = any(t.dtype.is_float for t in (*types, *result_types))
            flags = call_flags(subject, fastmath, self.region_flags, allowed=op.fastmath and is_float)
            defines = self._new_symbols(result_types) if op.defines_symbols else []
            self._check_defines(subject, defines)
            self._check_symbols(subject, result_types, defines)
        attributes = {name: parameter_attribute(value) for name, value in matched.items()}
        ssa = [value.ssa for value in operands]
        return self.insert(ApplyOp(op.name, ssa, result_types, attributes, flags, defines))

    def custom(
        self,
        name: str,
        device: DeviceRef,
        values: Sequence[object],
        out_types: Sequence[TensorType],
        parameters: Mapping[str, Any] | None = None,
        fastmath: Flags = None,
        *,
        subject: str | None = None,
        inplace: bool = False,
    ) -> list[TensorValue]:
        """Build a call of a registered kernel; ``ops.custom`` is the public spelling, ``subject`` what messages name.

        ``inplace``: it may take buffers, and change them (``ops.inplace_custom``).

        Raises:
            NotFoundError: no kernel has the name.
            GraphError, GraphTypeError: the call does not fit what the kernel declares.
        """
        subject = subject or f"ops.{'inplace_custom' if inplace else 'custom'}({name!r})"
        with Located():
            kernel = find_kernel(name, subject)
            names = [spec.name for spec in kernel.operands]
            operands = [
                (self.buffer if inplace and isinstance(v, BufferValue) else self.operand)(
                    v, subject, operand_role(names, i)
                )
                for i, v in enumerate(values)
            ]
            types = [value.type for value in operands]
            call = match_call(kernel, device, types, out_types, parameters or {}, subject)
            computed = {dim.name for dims in call.computed.values() for dim in dims if isinstance(dim, SymbolicDim)}
            defines = [symbol for symbol in self._new_symbols(out_types) if symbol in computed]
            self._check_defines(subject, defines)
            self._check_symbols(subject, out_types, defines)
            is_float = any(t.dtype.is_float for t in (*types, *out_types))
            flags = call_flags(subject, fastmath, self.region_flags, allowed=is_float)
        attributes = {key: parameter_attribute(value) for key, value in call.parameters.items()}
        ssa = [value.ssa for value in operands]
        kind = InplaceCustomOp if inplace else CustomOp
        return self.insert(kind(name, device, ssa, out_types, attributes, flags, defines))

    def print(self, value: object, label: str) -> None:
        """Build a print of a value; ``ops.print`` is the public spelling.

        Raises:
            GraphError: the value belongs to another graph, or the label is no Unicode text.
            GraphTypeError: it is no value, or the label no str.
        """
        subject = "ops.print"
        with Located():
            check_text(subject, "label", label)
            operand = self.operand(value, subject, "what is printed")
        self.insert(PrintOp(operand.ssa, label))

    def print_text(self, text: str, label: str | None = None) -> None:
        """Build a print of a line of text; ``ops.print`` is the public spelling. Errors as for `print`."""
        with Located():
            check_text("ops.print", "the text", text)
            check_text("ops.print", "label", "" if label is None else label)
        self.insert(PrintTextOp(text if label is None else f"[{label}] {text}"))

    def _finish(self, result: TensorValue | Sequence[TensorValue] | None) -> None:
        """Make what the forward function returned the outputs; None if it called `output` itself."""
        if result is None and self._output_op is None:
            raise GraphError(
                f"graph {self.name!r}: its forward function returned None; return its outputs, one or a list",
                user_location(),
            )
        if result is None:
            return
        if isinstance(result, list | tuple):
            self.output(*result)
        else:
            self.output(result)  # type: ignore[arg-type]

    def insert(self, op: GraphOperation) -> list[TensorValue]:
        """Add an op where the graph is being built, at the user's source line; gives its results.

        Raises:
            GraphError: `output` was called already.
        """
        if self._output_op is not None:
            raise GraphError(
                f"graph {self.name!r} ended with output(){self._end_place()}; build its ops before that",
                user_location(),
            )
        op.location = location_attribute(user_location())
        self.blocks.current.add_op(op)
        if isinstance(op, RegisteredOp):
            self._symbols.update(op.defined_symbols)
        values = [self.value(result) for result in op.results]
        self._devices.update(value.device for value in values)
        return values

    def value(self, ssa: SSAValue) -> Any:
        """A value of the graph's IR as ops take it: a `TensorValue`, or a `BufferValue`."""
        kind = tensor_type(ssa)
        return (BufferValue if isinstance(kind, BufferType) else TensorValue)(self, ssa, kind)

    @property
    def _output_op(self) -> OutputOp | None:
        last = self.blocks.root.last_op
        return last if isinstance(last, OutputOp) else None

    def _end_place(self) -> str:
        location = None if self._output_op is None else location_of(self._output_op)
        return "" if location is None else f" at {location}"

    def _weight(self, weight: Weight) -> TensorValue:
        known = self._weights.get(weight.name)
        if known is not None:
            if known[0].type != weight.type:
                raise GraphError(
                    f"graph {self.name!r}: weight {weight.name!r} was used as {known[0].type} before, and now as "
                    f"{weight.type}; give different weights different names"
                )
            return known[1]
        op = WeightOp(weight.name, weight.type)
        op.location = location_attribute(user_location())
        if SSAValue.is_valid_name(weight.name):
            op.result.name_hint = weight.name
        # at the top, so that every later use, in whatever region, comes after it
        root = self.blocks.root
        first = next((o for o in root.ops if not isinstance(o, WeightOp)), None)
        if first is None:
            root.add_op(op)
        else:
            root.insert_op_before(op, first)
        value: TensorValue = self.value(op.result)
        self._weights[weight.name] = (weight, value)
        return value

    def _drop_unused_weights(self) -> None:
        """Weights that only a branch used whose building failed, or an op that was refused, are none of the graph's."""
        root = self.blocks.root
        used = {operand for op in self._op.body.walk() for operand in op.operands}
        for op in list(root.ops):
            if isinstance(op, WeightOp) and op.result not in used:
                del self._weights[op.weight_name.data]
                root.detach_op(op)

    def _new_symbols(self, types: Sequence[TensorType]) -> list[str]:
        """Symbols that stand alone in one of the shapes and are not known yet, in order."""
        names = [dim.name for t in types for dim in t.shape if isinstance(dim, SymbolicDim)]
        return [name for name in dict.fromkeys(names) if name not in self._symbols]

    def _check_defines(self, subject: str, defines: Sequence[str]) -> None:
        if defines and (place := self.blocks.place) is not None:
            raise GraphError(
                f"{subject}: defines the size {quoted_list(defines)}, which is not possible inside {place}, since "
                "memory is laid out before that runs; define it before, and use the result inside"
            )

    def _check_symbols(self, subject: str, types: Sequence[TensorType], defines: Sequence[str]) -> None:
        known = self._symbols.union(defines)
        for index, result_type in enumerate(types):
            if unknown := undefined_symbols(result_type.shape, known):
                raise GraphError(
                    f"{subject}: output {index} has size {quoted_list(unknown)}, which is no symbol of an input and "
                    f"which no op computes; known here: {quoted_list(sorted(known))}"
                )
