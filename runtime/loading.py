"""From a graph to loaded code, by the shortest way: this process has it, the disk has it, or it is compiled.

On disk an entry of a graph holds everything but the object code, which has an entry of its own under the hash of its
LLVM text: graphs that lower to the same text share it, and it serves graphs without a key (`fingerprint.graph_key`).
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from halfulp.compiler.artifact import CompiledGraph

from . import serialization
from .cache import DiskCache, disk_cache, is_enabled
from .loader import LoadError, NativeLibrary
from .logger import logger

if TYPE_CHECKING:
    from halfulp.compiler.codegen.cpu import CpuTarget
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.options import CompileOptions
    from halfulp.compiler.steps import Progress

LOADED_GRAPHS = 128
"""Compiled graphs that the process remembers; the least recently used goes, its code once no model uses it."""

_log = logger("loading")


@dataclass(frozen=True)
class LoadedGraph:
    """A compiled graph whose code is in memory."""

    compiled: CompiledGraph
    code: NativeLibrary


_loaded: OrderedDict[str, LoadedGraph] = OrderedDict()
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # the owner of the old one may be gone


os.register_at_fork(after_in_child=_after_fork)


def load_code(compiled: CompiledGraph) -> LoadedGraph:
    """Puts the object code in memory.

    Raises:
        LoadError: it is damaged, or calls what the process does not have.
    """
    return LoadedGraph(compiled, NativeLibrary(compiled.object_code, [segment.symbol for segment in compiled.segments]))


def load_graph(graph: Graph, options: CompileOptions, progress: Progress | None = None) -> LoadedGraph:
    """The loaded code of a graph.

    Raises:
        CompileError: the graph cannot be compiled for this machine and these options.
    """
    from halfulp.compiler.codegen.cpu import host_target

    from .fingerprint import graph_key

    key = graph_key(graph, options, host_target(options.vector_bits)) if is_enabled() else None
    if key is None:
        return load_code(_compile(graph, options, progress))
    with _lock:
        found = _loaded.get(key)
        if found is not None:
            _loaded.move_to_end(key)
    if found is None:
        found = _from_disk(key) or _compiled(key, graph, options, progress)
        with _lock:
            found = _loaded.setdefault(key, found)
            _loaded.move_to_end(key)
            while len(_loaded) > LOADED_GRAPHS:
                _loaded.popitem(last=False)
    elif progress is not None:
        progress(1, 1, "loaded")
    # The number of threads is an option that the key leaves out.
    return replace(found, compiled=replace(found.compiled, options=options))


def forget_loaded() -> None:
    """Forgets what the process has loaded; models keep what they use."""
    with _lock:
        _loaded.clear()


def cached_object(text: str, target: CpuTarget, opt_level: int) -> bytes:
    """The object code of an LLVM module, from the disk if it is there.

    Raises:
        CompileError: LLVM rejects the text.
    """
    from halfulp.compiler.codegen.cpu import compile_to_object

    cache = disk_cache()
    return _object(cache, text, target, opt_level) if cache else compile_to_object(text, target, opt_level)


def _object(cache: DiskCache, text: str, target: CpuTarget, opt_level: int) -> bytes:
    from halfulp.compiler.codegen.cpu import compile_to_object

    from .fingerprint import object_key

    key = object_key(text, target, opt_level)
    code = cache.get(key)
    if code is None:
        code = compile_to_object(text, target, opt_level)
        cache.put(key, code)
    return code


def _compile(
    graph: Graph,
    options: CompileOptions,
    progress: Progress | None,
    make_object: Callable[[str, CpuTarget, int], bytes] = cached_object,
) -> CompiledGraph:
    from halfulp.compiler.pipeline import compile_graph

    return compile_graph(graph, options, progress=progress, make_object=make_object)


def _compiled(key: str, graph: Graph, options: CompileOptions, progress: Progress | None) -> LoadedGraph:
    """Compiles and loads the graph, and stores it on disk where that is possible."""
    from .fingerprint import object_key

    used: list[str] = []

    def make_object(text: str, target: CpuTarget, opt_level: int) -> bytes:
        used.append(object_key(text, target, opt_level))
        return cached_object(text, target, opt_level)

    compiled = _compile(graph, options, progress, make_object)
    if cache := disk_cache():
        cache.put(key, serialization.encode_entry(compiled, used[-1]))
    return load_code(compiled)


def _from_disk(key: str) -> LoadedGraph | None:
    from halfulp.compiler.steps import dumps_are_wanted

    cache = None if dumps_are_wanted() else disk_cache()
    entry = cache.get(key) if cache else None
    if cache is None or entry is None:
        return None
    try:
        compiled, object_key = serialization.decode_entry(entry)
        code = cache.get(object_key)
        return load_code(replace(compiled, object_code=code)) if code is not None else None
    except (msgspec.MsgspecError, LoadError) as error:
        # The checksum is right, so whoever wrote it was not this version of us.
        _log.warning("the cache entry %s cannot be used and is made anew: %s", key, error)
        return None
