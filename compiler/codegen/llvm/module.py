"""A module of the ``llvm`` dialect as LLVM text, in one pass.

Nothing is dropped: an op or attribute without a text is a CompileError that names it. Upstream's own conversion
drops fastmath flags on several ops and rejects bf16, hence this one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from ...errors import CompileError
from ..selects import selects_on
from .attributes import NVVM_KERNEL, argument_text, function_text
from .constants import constant_text, quoted_bytes
from .function import FunctionText
from .types import TypeTexts, type_text

_PLAIN_SYMBOL = re.compile(r"[A-Za-z$._-][A-Za-z0-9$._-]*")
_VISIBILITY = {0: "", 1: "hidden ", 2: "protected "}
_FOR_THE_RUNTIME = frozenset({"halfulp.thread_arena"})
_MODULE_ATTRIBUTES = {"llvm.target_triple": "target triple", "llvm.data_layout": "target datalayout"}


class ModuleText:
    """The state of writing one module: lines so far, declared intrinsics, metadata nodes."""

    def __init__(self, function_attributes: Mapping[str, str], target: str | None = None) -> None:
        self.target = target
        self.selects = None if target is None else selects_on(target)
        self.selecting: set[tuple[object, ...]] = set()  # forms of ops found in the table, for speed
        self.lines: list[str] = []
        self.types = TypeTexts()
        self._function_attributes = function_attributes
        self._declarations: dict[str, str] = {}
        self._metadata: list[str] = []
        self._shared_metadata: dict[str, str] = {}
        self._symbols: dict[str, str] = {}

    def symbol(self, name: str) -> str:
        """``@name``, quoted where LLVM needs it."""
        text = self._symbols.get(name)
        if text is None:
            text = f"@{name}" if _PLAIN_SYMBOL.fullmatch(name) else f"@{quoted_bytes(name.encode())}"
            self._symbols[name] = text
        return text

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        """Declares an intrinsic once. CompileError if it was called before with other types."""
        known = self._declarations.get(name)
        line = f"declare {result} @{name}({', '.join(arguments)})"
        if known is None:
            self._declarations[name] = line
        elif known != line:
            raise CompileError(f"LLVM text: intrinsic {name} is called as both {known!r} and {line!r}")

    def metadata(self, text: str) -> str:
        """``!n`` for a node with this text, shared by equal texts."""
        if text not in self._shared_metadata:
            self._shared_metadata[text] = f"!{len(self._metadata)}"
            self._metadata.append(text)
        return self._shared_metadata[text]

    def loop_metadata(self, hints: Sequence[str]) -> str:
        """``!n`` for the node of one loop: distinct, and its own first operand (LangRef, "llvm.loop")."""
        parts = [self.metadata(hint) for hint in hints]
        node = f"!{len(self._metadata)}"
        self._metadata.append(f"distinct !{{{', '.join([node, *parts])}}}")
        return node

    def write_global(self, op: llvm.GlobalOp) -> None:
        """``@table = internal constant [4 x float] [...], align 64``."""
        name = op.sym_name.data
        if op.attributes or op.body.blocks or (op.visibility_ is not None and op.visibility_.value.data):
            what = next(iter(op.attributes), "an initializer region" if op.body.blocks else "visibility_")
            raise CompileError(f"LLVM text: global @{name} has {what}, which has no LLVM text here")
        linkage = op.linkage.linkage.data
        words = [
            "" if linkage == "external" and op.value is not None else linkage,
            "dso_local" if op.dso_local is not None else "",
            "thread_local" if op.thread_local_ is not None else "",
            llvm.UNNAMED_ADDR_KEYWORD_BY_KEY.get(op.unnamed_addr.value.data, "") if op.unnamed_addr else "",
            f"addrspace({op.addr_space.value.data})" if op.addr_space.value.data else "",
            "constant" if op.constant is not None else "global",
            type_text(op.global_type),
        ]
        if op.value is not None:
            words.append(constant_text(op.value, op.global_type))
        elif linkage not in ("external", "extern_weak"):
            raise CompileError(f"LLVM text: global @{name} is {linkage} but has no value; give it one")
        section = f", section {quoted_bytes(op.section.data.encode())}" if op.section is not None else ""
        align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
        text = " ".join(word for word in words if word)
        self.lines.append(f"{self.symbol(name)} = {text}{section}{align}")

    def write_function(self, op: llvm.FuncOp) -> None:
        """A definition, or a declaration if the function has no body."""
        is_definition = bool(op.body.blocks)
        writer = FunctionText(self, op)
        linkage = op.linkage.linkage.data
        linkage = "" if linkage == "external" else f"{linkage} "
        convention = op.CConv.convention.data
        convention = "" if convention == "ccc" else f"{convention} "
        if NVVM_KERNEL in op.attributes:
            convention = "ptx_kernel "
        unnamed = op.unnamed_addr.value.data if isinstance(op.unnamed_addr, IntegerAttr) else 0
        unnamed_text = f" {llvm.UNNAMED_ADDR_KEYWORD_BY_KEY[unnamed]}" if unnamed else ""
        attributes = function_text(op, self._function_attributes if is_definition else {})
        if is_definition:
            writer.name_values()
        head = (
            f"{linkage}{_VISIBILITY[op.visibility_.value.data]}{convention}{self._result(op)}"
            f" {self.symbol(writer.name)}({self._arguments(op, writer)}){unnamed_text}{attributes}"
        )
        if not is_definition:
            self.lines.append(f"declare {head}")
            return
        self.lines.append(f"define {head} {{")
        writer.write_body()
        self.lines.append("}")

    def _result(self, op: llvm.FuncOp) -> str:
        text = self.types(op.function_type.output)
        if op.res_attrs is not None and len(op.res_attrs):
            return f"{argument_text(op.res_attrs.data[0], f'the result of @{op.sym_name.data}')} {text}".strip()
        return text

    def _arguments(self, op: llvm.FuncOp, writer: FunctionText) -> str:
        entry = op.body.blocks.first
        parts = []
        for i, t in enumerate(op.function_type.inputs):
            text = self.types(t)
            if op.arg_attrs is not None:
                text += argument_text(op.arg_attrs.data[i], f"argument {i} of @{op.sym_name.data}")
            parts.append(f"{text} {writer.ref(entry.args[i])}" if entry is not None else text)
        if op.function_type.is_variadic:
            parts.append("...")
        return ", ".join(parts)

    def write_op(self, op: Operation) -> None:
        """One op of the module. CompileError for anything but a function or a global."""
        if isinstance(op, llvm.FuncOp):
            self.lines.append("")
            self.write_function(op)
        elif isinstance(op, llvm.GlobalOp):
            self.write_global(op)
        else:
            raise CompileError(
                f"LLVM text: a module holds llvm.func and llvm.mlir.global only, not {op.name};"
                " run convert-loops-to-llvm first"
            )

    def text(self) -> str:
        """The whole module."""
        tail = [""] if self._declarations or self._metadata else []
        tail.extend(self._declarations[name] for name in sorted(self._declarations))
        tail.extend(f"!{i} = {node}" for i, node in enumerate(self._metadata))
        return "\n".join([*self.lines, *tail, ""]).lstrip("\n")


def emit_llvm(
    module: ModuleOp, *, function_attributes: Mapping[str, str] | None = None, target: str | None = None
) -> str:
    """The LLVM text of a module in the ``llvm`` and ``llvm_ext`` dialects.

    ``function_attributes`` are string attributes for every function defined, such as
    ``{"prefer-vector-width": "512"}``. The module attributes ``llvm.target_triple`` and ``llvm.data_layout`` become
    the lines of that name; what the module tells the runtime is left out. ``target`` (as in ``codegen.selects``)
    refuses what that target cannot compile.

    Raises CompileError, naming it, for an op, type or attribute that has no LLVM text or does not select on the target.
    """
    writer = ModuleText(function_attributes or {}, target)
    for name, value in module.attributes.items():
        if name in _FOR_THE_RUNTIME:
            continue
        if name not in _MODULE_ATTRIBUTES or not isinstance(value, StringAttr):
            raise CompileError(f"LLVM text: the module has the attribute {name}, which has no LLVM text")
        writer.lines.append(f"{_MODULE_ATTRIBUTES[name]} = {quoted_bytes(value.data.encode())}")
    for op in module.body.block.ops:
        writer.write_op(op)
    return writer.text()
