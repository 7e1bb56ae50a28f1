"""The passes, in their order; which of them a compilation runs is said in `halfulp.compiler.pipeline`.

One file per pass, and one name in four spellings: the pass `fuse-ops` is the class `FuseOpsPass` in `fuse_ops.py`,
tested by `tests/filecheck/passes/fuse-ops.mlir`.
So the table holds names only, and a pass module is imported when the pass is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PASSES: tuple[str, ...] = (
    "verify-graph",
    "set-op-numerics",
    "widen-small-floats",
    "contract-fma",
    "set-fastmath-flags",
    "fuse-ops",
    "convert-graph-to-tile",
    "deduplicate-kernels",
    "mark-parallel-axes",
    "clear-fastmath-flags",
    "drop-unsafe-flags",
    "expand-small-floats",
    "expand-math",
    "convert-tile-to-loops",
    "convert-tile-to-gpu",
    "insert-barriers",
    "convert-loops-to-llvm",
)


def module_name(pass_name: str) -> str:
    """The module of a pass: `fuse-ops` -> `fuse_ops`."""
    return pass_name.replace("-", "_")


def class_name(pass_name: str) -> str:
    """The class of a pass: `fuse-ops` -> `FuseOpsPass`."""
    return "".join(word.capitalize() for word in pass_name.split("-")) + "Pass"


def _loader(pass_name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        module = import_module(f".{module_name(pass_name)}", __name__)
        pass_class: type[ModulePass] = getattr(module, class_name(pass_name))
        return pass_class

    return load


def get_all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes by name, in pipeline order, each as a function that imports it."""
    return {name: _loader(name) for name in PASSES}
