"""What compiled code depends on, as text for cache keys: the graph, the options, the CPU, and our own compiler.

Threads, weights and addresses are no part of it. A graph that calls kernels or ops from outside this package has no
key: what their Python code emits can change while the graph stays the same.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from halfulp.compiler.artifact import ABI_VERSION
from halfulp.compiler.registry import find_kernel, find_op

from .code_text import code_text

if TYPE_CHECKING:
    from halfulp.compiler.codegen.cpu import CpuTarget
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.options import CompileOptions

REMEMBERED_DEFINITIONS = 4096

_called: WeakKeyDictionary[Graph, tuple[frozenset[str], frozenset[str]]] = WeakKeyDictionary()
_texts: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()
# by id, with the definition itself, so that an id stays that of its object
_definitions: OrderedDict[int, tuple[object, str]] = OrderedDict()


@cache
def sources() -> str:
    """A hash of the sources that decide which code comes out: all of the compiler and the ops."""
    digest = hashlib.sha256()
    for name in ("halfulp.compiler", "halfulp.ops"):
        package = find_spec(name)
        assert package is not None
        root = os.path.dirname(str(package.origin))
        for path in sorted(_source_files(root)):
            with open(path, "rb", buffering=0) as file:
                content = file.read()
            digest.update(f"{path[len(root) :]} {len(content)}\n".encode())
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
    from halfulp.compiler.codegen.cpu import llvm_version

    return f"llvm={llvm_version()} xdsl={_xdsl_version()} abi={ABI_VERSION}"


def _xdsl_version() -> str:
    """What is installed, by the name of its metadata. Asking importlib.metadata takes 15 ms, most of them imports."""
    import xdsl

    site = os.path.dirname(os.path.dirname(str(xdsl.__file__)))
    found = sorted(name for name in os.listdir(site) if name.startswith("xdsl-") and name.endswith("-info"))
    return ",".join(found) or str(xdsl.__version__)


def target_text(target: CpuTarget) -> str:
    """Everything that LLVM is told about the CPU."""
    return f"{target.triple} {target.cpu} {target.vector_bits} {target.features}"


def graph_key(graph: Graph, options: CompileOptions, target: CpuTarget) -> str | None:
    """The key of a complete graph; None if it calls Python code from outside this package."""
    # A complete graph takes no more ops, so what has been read from it stays true.
    if graph not in _called:
        _called[graph] = _names(graph)
    subject = f"graph '{graph.name}'"
    ops, kernels = _called[graph]
    definitions: list[object] = [find_op(name, subject) for name in sorted(ops)]
    definitions += [find_kernel(name, subject) for name in sorted(kernels)]
    code: list[str] = []
    for definition in definitions:
        text = _definition_text(definition)
        if text is None:
            return None
        code.append(text)
    if graph not in _texts:
        _texts[graph] = str(graph.module)
    lines = ""
    if options.fp_contract == "fast" or "contract" in options.fastmath or "contract" in _texts[graph]:
        lines = _lines(graph)  # which the report on contractions shows
    return _digest("graph", _texts[graph], lines, *code, options.key(), target_text(target), tools(), sources())


def object_key(llvm_text: str, target: CpuTarget, opt_level: int) -> str:
    """The key of the object code of an LLVM module."""
    return _digest("object", llvm_text, target_text(target), str(opt_level), tools(), sources())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _names(graph: Graph) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the ops and of the kernels that a graph calls."""
    from halfulp.compiler.dialects.graph import ApplyOp, KernelCallOp

    parts = list(graph.module.walk())
    ops = frozenset(op.callee.data for op in parts if isinstance(op, ApplyOp))
    return ops, frozenset(op.callee.data for op in parts if isinstance(op, KernelCallOp))


def _lines(graph: Graph) -> str:
    """The user's source line of each op."""
    from halfulp.compiler.locations import location_of

    return "\n".join(str(location_of(op)) for op in graph.module.walk())


def _definition_text(definition: object) -> str | None:
    known = _definitions.get(id(definition))
    if known is None:
        text = code_text(definition)
        if text is None:
            return None  # not remembered: there may be any number of them, with arrays in their closures
        known = _definitions[id(definition)] = (definition, text)
        if len(_definitions) > REMEMBERED_DEFINITIONS:
            _definitions.popitem(last=False)
    return known[1]
