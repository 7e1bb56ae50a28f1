"""Files of precompiled models: what a graph compiled to, and for which CPU and by which version.

Format: eight bytes that name it, the SHA-256 of the rest, and a MessagePack record. Code is tied to the CPU it was
made for, and the record to the version that wrote it, so both are checked before anything is loaded.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from halfulp.compiler.artifact import ABI_VERSION, CompiledGraph

from .loader import LoadError
from .serialization import decoder, encode

if TYPE_CHECKING:
    from halfulp.compiler.codegen.cpu import CpuTarget

_MAGIC = b"HALFULPM"
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size


class Origin(msgspec.Struct, frozen=True):
    """Who made the code, and for which CPU. ``features`` are LLVM's names of what the CPU must have."""

    version: str
    abi: int
    triple: str
    cpu: str
    features: tuple[str, ...]


class Precompiled(msgspec.Struct, frozen=True):
    """The content of a file. ``graph`` is a `CompiledGraph`, left undecoded until the origin is known to fit."""

    origin: Origin
    graph: msgspec.Raw


def write_precompiled(graph: CompiledGraph, path: Path) -> None:
    """Writes the file, under another name first, so that nobody sees half of it.

    Raises:
        OSError: it cannot be written.
    """
    from halfulp.compiler.codegen.cpu import host_target

    origin = origin_of(host_target(graph.options.vector_bits))
    content = encode(Precompiled(origin, msgspec.Raw(encode(graph))))
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        unfinished.write_bytes(_MAGIC + hashlib.sha256(content).digest() + content)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def read_precompiled(path: Path) -> CompiledGraph:
    """The compiled graph in the file.

    Raises:
        LoadError: the file is none of ours, is damaged, or was made for another CPU or by another version.
        OSError: it cannot be read.
    """
    subject = f"compiled model {str(path)!r}"
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        raise LoadError(f"{subject}: this is no file that Model.save() wrote")
    content = data[_HEADER:]
    if data[len(_MAGIC) : _HEADER] != hashlib.sha256(content).digest():
        raise LoadError(f"{subject} is damaged: its checksum does not fit; save it again")
    try:
        # Versions that change this record change _MAGIC; the graph's own form may change with every version.
        found: Precompiled = decoder(Precompiled).decode(content)
        _check_origin(subject, found.origin)
        graph: CompiledGraph = decoder(CompiledGraph).decode(found.graph)
    except msgspec.MsgspecError as error:
        raise LoadError(f"{subject} cannot be read: {error}; save it again") from None
    return graph


def origin_of(target: CpuTarget) -> Origin:
    """The origin of code that this version makes for a CPU."""
    from importlib.metadata import version

    features = tuple(name[1:] for name in target.features.split(",") if name.startswith("+"))
    return Origin(version("halfulp"), ABI_VERSION, target.triple, target.cpu, features)


def _check_origin(subject: str, origin: Origin) -> None:
    from halfulp.compiler.codegen.cpu import host_target

    here = origin_of(host_target())
    remedy = "compile it here with InferenceSession.load() and save it again"
    if (origin.version, origin.abi) != (here.version, here.abi):
        raise LoadError(
            f"{subject} was made by halfulp {origin.version} (interface {origin.abi}), and this is {here.version} "
            f"(interface {here.abi}); {remedy}"
        )
    if origin.triple != here.triple:
        raise LoadError(f"{subject} was made for {origin.triple}, and this is {here.triple}; {remedy}")
    if missing := [name for name in origin.features if name not in here.features]:
        raise LoadError(
            f"{subject} was made for a CPU {origin.cpu!r} with {', '.join(missing)}, which this CPU, {here.cpu!r}, "
            f"lacks; {remedy}"
        )
