"""What compiled code depends on, as text for cache keys: the graph, the options, the CPU, and our own compiler.

Threads, weights and addresses are no part of it. A graph that calls kernels or ops from outside this package has no
key: what their Python code emits can change while the graph stays the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from halfulp.compiler.artifact import ABI_VERSION
from halfulp.compiler.registry import find_kernel, find_op

if TYPE_CHECKING:
    from halfulp.compiler.codegen.cpu import CpuTarget
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.options import CompileOptions

OURS = "halfulp."

_graphs: WeakKeyDictionary[Graph, _GraphText] = WeakKeyDictionary()
_known: dict[int, tuple[object, bool]] = {}  # by id, with the definition, so that the id stays its own


@dataclass(frozen=True)
class _GraphText:
    """A complete graph, which takes no more ops: its text and the names of what it calls."""

    text: str
    ops: frozenset[str]
    kernels: frozenset[str]


@cache
def sources() -> str:
    """A hash of the sources that decide which code comes out: all of the compiler and the ops."""
    import halfulp.compiler
    import halfulp.ops

    digest = hashlib.sha256()
    for package in (halfulp.compiler, halfulp.ops):
        root = os.path.dirname(str(package.__file__))
        for path in sorted(_source_files(root)):
            with open(path, "rb", buffering=0) as file:
                content = file.read()
            digest.update(f"{path[len(root):]} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _source_files(folder: str) -> Iterator[str]:
    """The files below a folder that code can depend on. pathlib takes three times as long, half of all of load()."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".json")):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _source_files(entry.path)


@cache
def tools() -> str:
    """The versions of what compiles with us."""
    import llvmlite
    import llvmlite.binding as llvm
    import xdsl

    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return f"llvm={llvm_version} llvmlite={llvmlite.__version__} xdsl={xdsl.__version__} abi={ABI_VERSION}"


def target_text(target: CpuTarget) -> str:
    """Everything that LLVM is told about the CPU."""
    return f"{target.triple} {target.cpu} {target.vector_bits} {target.features}"


def graph_key(graph: Graph, options: CompileOptions, target: CpuTarget) -> str | None:
    """The key of a complete graph; None if it calls Python code from outside this package."""
    if graph not in _graphs:
        _graphs[graph] = _read(graph)
    found = _graphs[graph]
    subject = f"graph '{graph.name}'"
    definitions = [find_op(name, subject) for name in found.ops]
    kernels = [find_kernel(name, subject) for name in found.kernels]
    if not all(_definition_is_ours(definition) for definition in (*definitions, *kernels)):
        return None
    return _digest("graph", found.text, options.key(), target_text(target), tools(), sources())


def object_key(llvm_text: str, target: CpuTarget, opt_level: int) -> str:
    """The key of the object code of an LLVM module."""
    return _digest("object", llvm_text, target_text(target), str(opt_level), tools(), sources())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _read(graph: Graph) -> _GraphText:
    from halfulp.compiler.dialects.graph import ApplyOp, CustomOp

    module = graph.module
    ops = frozenset(op.callee.data for op in module.walk() if isinstance(op, ApplyOp))
    kernels = frozenset(op.callee.data for op in module.walk() if isinstance(op, CustomOp))
    return _GraphText(str(module), ops, kernels)


def _definition_is_ours(definition: object) -> bool:
    known = _known.get(id(definition))
    if known is None:
        known = _known[id(definition)] = (definition, is_ours(definition))
    return known[1]


def is_ours(value: object, seen: set[int] | None = None) -> bool:
    """Whether all Python code that a value reaches is part of this package.

    A function of ours that holds a function of the user (what a decorator returns, say) does not count as ours, so
    closures, defaults and fields are followed. What is not known to be data counts as foreign code.
    """
    seen = set() if seen is None else seen
    if id(value) in seen or value is None or isinstance(value, bool | int | float | str | bytes | Enum | ModuleType):
        return True
    seen.add(id(value))
    if isinstance(value, Mapping):
        return all(is_ours(part, seen) for pair in value.items() for part in pair)
    if isinstance(value, tuple | list | set | frozenset):
        return all(is_ours(part, seen) for part in value)
    if isinstance(value, type):
        return _module_is_known(value.__module__)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = (cells, value.__defaults__, value.__kwdefaults__, vars(value))
        return value.__module__.startswith(OURS) and is_ours(held, seen)
    if isinstance(value, MethodType):
        return is_ours((value.__func__, value.__self__), seen)
    kind = type(value)
    if not _module_is_known(kind.__module__):
        return False
    slots = [getattr(value, name, None) for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    return is_ours((slots, getattr(value, "__dict__", None)), seen)


def _module_is_known(name: str) -> bool:
    return name == "builtins" or name.partition(".")[0] in ("halfulp", "xdsl", "numpy", "ml_dtypes")
