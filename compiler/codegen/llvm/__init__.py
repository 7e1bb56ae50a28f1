"""The ``llvm`` dialect as LLVM text, with every flag and attribute kept."""

from __future__ import annotations

from .module import emit_llvm

__all__ = ["emit_llvm"]
