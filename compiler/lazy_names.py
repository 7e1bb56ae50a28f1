"""Names of a package that load on first use, so that importing the package costs little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    namespace: dict[str, Any], modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        namespace: its ``globals()``, which keep what has been loaded.
        modules: for each name the module of the package that defines it.
    """
    package = namespace["__name__"]

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{modules[name]}", package), name)
        namespace[name] = value  # the next look-up does not come here
        return value

    return load, lambda: sorted({*namespace, *namespace["__all__"]})
