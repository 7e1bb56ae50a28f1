"""Writes tile IR from Python: what recipes of ops, custom kernels and the kernel language are built with."""

from __future__ import annotations

from .builder import TileBuilder
from .control import ControlBuilder, EntryBuilder, KernelBuilder
from .value import Value

__all__ = ["ControlBuilder", "EntryBuilder", "KernelBuilder", "TileBuilder", "Value"]
