"""LLVM text of what stands beside the instructions: fastmath flags, attributes of arguments and functions, loop hints.

Whatever has no text here is an error that names it: nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.dialects.llvm import FastMathAttr, FuncOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute

from ...errors import CompileError, near_names
from .constants import quoted_bytes

_FLAG_TEXTS: dict[frozenset[FastMathFlag], str] = {
    frozenset(): "",
    frozenset(FastMathFlag): " fast",
}


def flags_text(flags: Attribute | None) -> str:
    """`` nnan nsz`` with a space in front, `` fast`` for all seven, or nothing."""
    if flags is None:
        return ""
    assert isinstance(flags, FastMathAttr)
    text = _FLAG_TEXTS.get(flags.data)
    if text is None:
        text = "".join(f" {flag.value}" for flag in FastMathFlag if flag in flags.data)
        _FLAG_TEXTS[flags.data] = text
    return text


_UNIT_ARGUMENT = (
    "noalias",
    "nocapture",
    "nofree",
    "nonnull",
    "noundef",
    "readnone",
    "readonly",
    "signext",
    "writeonly",
    "zeroext",
)
_SIZED_ARGUMENT = {"align": "align {}", "dereferenceable": "dereferenceable({})"}


def argument_text(attributes: DictionaryAttr, owner: str) -> str:
    """Attributes of one argument or result, each with a space in front: `` noalias align 64``."""
    parts = []
    for name, value in attributes.data.items():
        short = name.removeprefix("llvm.")
        if short in _UNIT_ARGUMENT and isinstance(value, UnitAttr):
            # LLVM 21 replaced nocapture by captures(none).
            parts.append("captures(none)" if short == "nocapture" else short)
        elif short in _SIZED_ARGUMENT and isinstance(value, IntegerAttr):
            parts.append(_SIZED_ARGUMENT[short].format(value.value.data))
        else:
            raise CompileError(
                f"LLVM text: {owner} has the attribute {name} = {value}, which has no LLVM text"
                f"{near_names(name, [f'llvm.{n}' for n in (*_UNIT_ARGUMENT, *_SIZED_ARGUMENT)])}"
            )
    return "".join(f" {part}" for part in parts)


_ENUM_FUNCTION = frozenset(
    {
        "alwaysinline",
        "cold",
        "hot",
        "minsize",
        "mustprogress",
        "noinline",
        "norecurse",
        "nosync",
        "nounwind",
        "optnone",
        "optsize",
        "willreturn",
    }
)
_UNIT_FUNCTION = {"no_inline": "noinline", "no_unwind": "nounwind", "optimize_none": "optnone"}
_STRING_FUNCTION = {"target_cpu": "target-cpu", "tune_cpu": "tune-cpu", "frame_pointer": "frame-pointer"}
NVVM_KERNEL = "nvvm.kernel"
"""On a function that the host of a GPU launches, as MLIR marks it; upstream's ``CConv`` has no word for it."""

_WRITTEN_ELSEWHERE = frozenset(
    {
        NVVM_KERNEL,
        "CConv",
        "arg_attrs",
        "function_type",
        "linkage",
        "res_attrs",
        "sym_name",
        "sym_visibility",  # who may refer to the symbol inside the IR; the text has the linkage
        "unnamed_addr",
        "visibility_",
    }
)


def _passthrough_texts(entries: Attribute, owner: str) -> Iterable[str]:
    """``["noinline", ["fp-contract", "on"]]``: enum attributes by name, others as string pairs."""
    assert isinstance(entries, ArrayAttr)
    for entry in entries:
        if isinstance(entry, StringAttr) and entry.data in _ENUM_FUNCTION:
            yield entry.data
        elif isinstance(entry, StringAttr):
            yield quoted_bytes(entry.data.encode())
        elif isinstance(entry, ArrayAttr) and all(isinstance(part, StringAttr) for part in entry):
            yield "=".join(quoted_bytes(part.data.encode()) for part in entry)
        else:
            raise CompileError(f"LLVM text: {owner} passes through {entry}; use a string or a pair of strings")


def function_text(op: FuncOp, extra: Mapping[str, str]) -> str:
    """Attributes of a function, each with a space in front; ``extra`` holds further string attributes."""
    owner = f"function @{op.sym_name.data}"
    parts: list[str] = []
    # The parser of upstream's llvm.func leaves in `attributes` what its constructor puts in `properties`.
    for name, value in (*op.properties.items(), *op.attributes.items()):
        if name in _WRITTEN_ELSEWHERE:
            continue
        if name in _UNIT_FUNCTION:
            parts.append(_UNIT_FUNCTION[name])
        elif name == "passthrough":
            parts.extend(_passthrough_texts(value, owner))
        elif name == "target_features":
            features = ",".join(feature.data for feature in value.features)  # type: ignore[attr-defined]
            parts.append(f'"target-features"={quoted_bytes(features.encode())}')
        elif name in _STRING_FUNCTION:
            text = str(value.data)  # type: ignore[attr-defined]
            parts.append(f'"{_STRING_FUNCTION[name]}"={quoted_bytes(text.encode())}')
        else:
            raise CompileError(f"LLVM text: {owner} has the attribute {name} = {value}, which has no LLVM text")
    parts.extend(f'"{key}"={quoted_bytes(value.encode())}' for key, value in extra.items())
    return "".join(f" {part}" for part in parts)


def loop_hints(hints: Attribute, owner: str) -> list[str]:
    """The metadata nodes for ``halfulp.loop = {unroll = 4 : i64, vectorize = false}`` on the branch of a loop.

    ``unroll``: a count, or false to forbid it. ``vectorize``: false to forbid it.
    """
    nodes = []
    assert isinstance(hints, DictionaryAttr)
    for name, value in hints.data.items():
        is_bool = isinstance(value, IntegerAttr) and value.type == i1
        number = value.value.data if isinstance(value, IntegerAttr) else None
        if name == "unroll" and is_bool and not number:
            nodes.append('!{!"llvm.loop.unroll.disable"}')
        elif name == "unroll" and not is_bool and number is not None and number > 0:
            nodes.append(f'!{{!"llvm.loop.unroll.count", i32 {number}}}')
        elif name == "vectorize" and is_bool and not number:
            nodes.append('!{!"llvm.loop.vectorize.enable", i1 false}')
        else:
            raise CompileError(
                f"LLVM text: {owner} has the loop hint {name} = {value}; use unroll = false or a count,"
                " vectorize = false"
            )
    return nodes
