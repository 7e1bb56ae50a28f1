"""From a graph to what runs it on accelerators: found on disk, or compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from halfulp.compiler.codegen.ptx import ARCHITECTURES
from halfulp.compiler.device import DeviceRef
from halfulp.compiler.ptx_artifact import CompiledPtx

from .. import serialization
from ..cache import disk_cache, is_enabled
from ..device import Device
from ..loading import cached_object
from ..logger import logger

if TYPE_CHECKING:
    from halfulp.compiler.graph import Graph
    from halfulp.compiler.options import CompileOptions
    from halfulp.compiler.steps import Progress

_log = logger("loading")


def compile_for_devices(
    graph: Graph, options: CompileOptions, devices: Mapping[DeviceRef, Device], progress: Progress | None = None
) -> CompiledPtx:
    """Compiles a graph for the oldest of its accelerators, which the others run as well.

    Raises:
        CompileError: the graph cannot be compiled for them and these options.
    """
    from halfulp.compiler.compile_ptx import compile_graph_to_ptx

    target = min((device.heap.architecture for device in devices.values()), key=ARCHITECTURES.index)
    key = _key(graph, options, target)
    found = None if key is None else _from_disk(key)
    if found is not None:
        if progress is not None:
            progress(1, 1, "loaded")
        return replace(found, options=options)  # the number of threads is an option that the key leaves out
    compiled = compile_graph_to_ptx(graph, options, target=target, progress=progress, make_object=cached_object)
    cache = disk_cache()
    if key is not None and cache is not None:
        cache.put(key, serialization.encode(compiled))
    return compiled


def _key(graph: Graph, options: CompileOptions, target: str) -> str | None:
    """The entry's key; None for a graph that calls Python code from outside this package, or without a cache."""
    from halfulp.compiler.codegen.cpu import host_target

    from ..fingerprint import graph_key

    key = graph_key(graph, options, host_target(options.vector_bits)) if is_enabled() else None
    return None if key is None else hashlib.sha256(f"{key} {target}".encode()).hexdigest()


def _from_disk(key: str) -> CompiledPtx | None:
    from halfulp.compiler.steps import dumps_are_wanted

    cache = None if dumps_are_wanted() else disk_cache()
    entry = cache.get(key) if cache else None
    if entry is None:
        return None
    try:
        compiled: CompiledPtx = serialization.decoder(CompiledPtx).decode(entry)
    except msgspec.MsgspecError as error:
        _log.warning("the cache entry %s cannot be used and is made anew: %s", key, error)
        return None
    return compiled
