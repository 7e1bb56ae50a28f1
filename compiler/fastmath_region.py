"""The part of a program whose ops carry fastmath flags of its own: ``with graph.fastmath("nsz"): ...``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graph import Graph


class FastmathRegion:
    """Sets the flags of a graph's region for the time of a ``with`` block."""

    def __init__(self, graph: Graph, flags: frozenset[str]) -> None:
        self._graph = graph
        self._flags = flags
        self._outer: list[frozenset[str] | None] = []

    def __enter__(self) -> None:
        self._outer.append(self._graph.region_flags)
        self._graph.region_flags = self._flags

    def __exit__(self, *exception: object) -> None:
        self._graph.region_flags = self._outer.pop()
