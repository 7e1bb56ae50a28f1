"""A `CompiledGraph` as bytes (MessagePack): for the cache, and for the files of precompiled models."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import msgspec

from halfulp.compiler.artifact import CompiledGraph
from halfulp.compiler.dims import Dim, parse_dim


class Entry(msgspec.Struct, frozen=True):
    """An entry of the cache: a graph without its object code, and the key of that."""

    graph: CompiledGraph
    object_key: str


def encode(value: object) -> bytes:
    """The bytes of a value made of our types."""
    return msgspec.msgpack.encode(value, enc_hook=_to_plain)


@cache
def decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of a type; its ``decode`` raises ``msgspec.MsgspecError`` for anything else."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_from_plain)


def encode_entry(graph: CompiledGraph, object_key: str) -> bytes:
    """An entry of the cache."""
    return encode(Entry(replace(graph, object_code=b""), object_key))


def decode_entry(data: bytes) -> tuple[CompiledGraph, str]:
    """The graph, whose object code is empty, and the key of its object code.

    Raises:
        msgspec.MsgspecError: the bytes are no such entry.
    """
    entry: Entry = decoder(Entry).decode(data)
    return entry.graph, entry.object_key


def _to_plain(value: object) -> object:
    if isinstance(value, Dim):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no plain form")


def _from_plain(kind: type, value: Any) -> object:
    if issubclass(kind, Dim):
        return parse_dim(value)
    raise NotImplementedError(f"{kind.__name__} has no plain form")
