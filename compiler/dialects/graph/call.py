"""`graph.apply` and `graph.custom`: ops whose meaning is in the registry."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...device import DeviceRef
from ...dims import SymbolicDim
from ...errors import quoted_list
from ...options import ordered_flags
from ...types import TensorType
from .parameters import Parameter, parameter_value
from .types import GraphBufferType, GraphTensorType, graph_tensor, parse_device, tensor_type


class RegisteredOp(IRDLOperation, ABC):
    """What `graph.apply` and `graph.custom` share: a name with a definition in the registry, and its parameters."""

    callee = prop_def(StringAttr)
    parameters = prop_def(DictionaryAttr)
    fastmath = opt_prop_def(FastMathFlagsAttr)
    defines = opt_prop_def(ArrayAttr[StringAttr])
    arguments = var_operand_def(BaseAttr(GraphTensorType) | BaseAttr(GraphBufferType))
    outputs = var_result_def(GraphTensorType)

    PROPERTIES: ClassVar = ("callee", "parameters", "fastmath", "defines", "device")

    @property
    def argument_types(self) -> tuple[TensorType, ...]:
        """The types of the operands."""
        return tuple(tensor_type(value) for value in self.arguments)

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of the results."""
        return tuple(tensor_type(value) for value in self.outputs)

    @property
    def device_ref(self) -> DeviceRef:
        """Where the op runs: where its results are."""
        return self.output_types[0].device if self.outputs else DeviceRef.CPU()

    @property
    def parameter_values(self) -> dict[str, Parameter]:
        """The parameters as Python values."""
        return {name: parameter_value(attribute) for name, attribute in self.parameters.data.items()}

    @property
    def flags(self) -> frozenset[str] | None:
        """The fastmath flags that the op itself sets; None leaves them to the options of the compilation."""
        return None if self.fastmath is None else frozenset(flag.value for flag in self.fastmath.data)

    @property
    def defined_symbols(self) -> tuple[str, ...]:
        """The symbols whose values the op computes while the graph runs."""
        return () if self.defines is None else tuple(words(self.defines))

    @property
    def subject(self) -> str:
        """The op in a message: ``graph.apply "add"``."""
        return f'{self.name} "{self.callee.data}"'

    def verify_(self) -> None:
        types = self.argument_types + self.output_types
        if self.flags and not any(t.dtype.is_float for t in types):
            raise VerifyException(
                f"{self.subject}: fastmath flags ({', '.join(ordered_flags(self.flags))}) stand on floats only, "
                "and no operand or result is one"
            )
        if isinstance(self, ApplyOp) and any(isinstance(value.type, GraphBufferType) for value in self.arguments):
            raise VerifyException(f"{self.subject}: takes tensors, but is given a buffer; load it with graph.load")
        alone = {dim.name for t in self.output_types for dim in t.shape if isinstance(dim, SymbolicDim)}
        if missing := [name for name in self.defined_symbols if name not in alone]:
            raise VerifyException(
                f"{self.subject}: defines {quoted_list(missing)}, but no axis of a result is that symbol"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.callee.data)
        printer.print_operands(self.arguments)
        self.print_device(printer)
        if self.parameters.data:
            printer.print_string(" ")
            printer.print_attr_dict(self.parameters.data)
        if self.fastmath is not None:
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)
        if self.defined_symbols:
            printer.print_string(f" defines [{', '.join(self.defined_symbols)}]")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_function_type(self.arguments.types, self.outputs.types)

    def print_device(self, printer: Printer) -> None:
        """Print where the op runs, if it says so itself."""

    @classmethod
    def parse_device(cls, parser: Parser) -> dict[str, Attribute]:
        """The properties that `print_device` prints."""
        return {}

    @classmethod
    def parse(cls, parser: Parser) -> RegisteredOp:
        callee = parser.parse_str_literal(": the name of an op or a kernel")
        operands = parser.parse_op_args_list()
        properties: dict[str, Attribute] = {"callee": StringAttr(callee), **cls.parse_device(parser)}
        properties["parameters"] = DictionaryAttr(parser.parse_optional_attr_dict())
        if parser.parse_optional_keyword("fastmath"):
            properties["fastmath"] = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        if parser.parse_optional_keyword("defines"):
            names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
            properties["defines"] = strings(names)
        attributes = parser.parse_optional_attr_dict_with_keyword(cls.PROPERTIES)
        parser.parse_punctuation(":")
        function_type = parser.parse_function_type()
        arguments = parser.resolve_operands(operands, function_type.inputs.data, parser.pos)
        return cls.create(
            operands=arguments,
            result_types=function_type.outputs.data,
            properties=properties,
            attributes=attributes.data if attributes else {},
        )


@irdl_op_definition
class ApplyOp(RegisteredOp):
    """An op of the library, by name; `halfulp.compiler.registry.OpDef` says what it computes.

    ``%2 = graph.apply "softmax"(%1) {axis = -1 : i64} fastmath<nsz> : (!graph.tensor<[n, 8], f32, cpu>) ->
    !graph.tensor<[n, 8], f32, cpu>``
    """

    name = "graph.apply"

    traits = traits_def(Pure())

    def __init__(
        self,
        callee: str,
        arguments: Sequence[SSAValue],
        result_types: Sequence[TensorType],
        parameters: Mapping[str, Attribute] | None = None,
        flags: frozenset[str] | None = None,
        defines: Sequence[str] = (),
    ) -> None:
        super().__init__(
            operands=[arguments],
            result_types=[[graph_tensor(t) for t in result_types]],
            properties=_call_properties(callee, parameters, flags, defines),
        )


class KernelCallOp(RegisteredOp, ABC):
    """A kernel by name, on a device; `halfulp.compiler.registry.KernelDef` says what it needs and how it is built."""

    device = prop_def(StringAttr)

    def __init__(
        self,
        callee: str,
        device: DeviceRef,
        arguments: Sequence[SSAValue],
        result_types: Sequence[TensorType],
        parameters: Mapping[str, Attribute] | None = None,
        flags: frozenset[str] | None = None,
        defines: Sequence[str] = (),
    ) -> None:
        super().__init__(
            operands=[arguments],
            result_types=[[graph_tensor(t) for t in result_types]],
            properties={"device": StringAttr(str(device)), **_call_properties(callee, parameters, flags, defines)},
        )

    @property
    def device_ref(self) -> DeviceRef:
        """Where the kernel runs."""
        return DeviceRef.parse(self.device.data)

    def print_device(self, printer: Printer) -> None:
        printer.print_string(f" on {self.device.data}")

    @classmethod
    def parse_device(cls, parser: Parser) -> dict[str, Attribute]:
        parser.parse_keyword("on")
        return {"device": StringAttr(str(parse_device(parser)))}


@irdl_op_definition
class CustomOp(KernelCallOp):
    """A kernel whose results depend on its operands alone.

    ``%0 = graph.custom "unique"(%ids) on cpu {sorted = true} defines [count] : (!graph.tensor<[n], i64, cpu>) ->
    !graph.tensor<[count], i64, cpu>``
    """

    name = "graph.custom"

    traits = traits_def(Pure())


@irdl_op_definition
class InplaceCustomOp(KernelCallOp):
    """A kernel that changes some of its operands, which are buffers.

    ``graph.inplace_custom "append"(%cache, %row) on cpu : (!graph.buffer<[n, 8], f32, cpu>, !graph.tensor<[8], f32,
    cpu>) -> ()``
    """

    name = "graph.inplace_custom"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


def fastmath_attribute(flags: frozenset[str]) -> FastMathFlagsAttr:
    """A set of flags, given by name, as xDSL's attribute."""
    return FastMathFlagsAttr([FastMathFlag(flag) for flag in ordered_flags(flags)])


def _call_properties(
    callee: str, parameters: Mapping[str, Attribute] | None, flags: frozenset[str] | None, defines: Sequence[str]
) -> dict[str, Attribute | None]:
    return {
        "callee": StringAttr(callee),
        "parameters": DictionaryAttr(dict(parameters or {})),
        "fastmath": None if flags is None else fastmath_attribute(flags),
        "defines": strings(defines) if defines else None,
    }


def strings(words: Sequence[str]) -> ArrayAttr[StringAttr]:
    """A list of words as an attribute."""
    return ArrayAttr([StringAttr(word) for word in words])


def words(attribute: ArrayAttr[StringAttr]) -> list[str]:
    """The words of such a list."""
    return [word.data for word in attribute]
