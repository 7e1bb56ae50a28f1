"""The numeric modes that experiments compare, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from halfulp.compiler.errors import NotFoundError, near_names
from halfulp.compiler.options import FASTMATH_FLAGS, CompileOptions

_PLAIN: dict[str, Any] = {"fp_contract": "on", "fastmath": "none", "strategy": "explicit", "bf16": "round-each"}

MODES: Mapping[str, Mapping[str, Any]] = {
    "off": _PLAIN | {"fp_contract": "off"},
    "on": _PLAIN,
    "fast": _PLAIN | {"fp_contract": "fast"},
    "llvm": _PLAIN | {"fp_contract": "fast", "strategy": "llvm"},
    **{flag: _PLAIN | {"fastmath": flag} for flag in FASTMATH_FLAGS},
    "reassoc-nsz": _PLAIN | {"fastmath": "reassoc,nsz"},  # LLVM reorders sums only where both stand
    "all-flags": _PLAIN | {"fastmath": "fast"},
    "round-each": _PLAIN,
    "excess": _PLAIN | {"bf16": "excess"},
    "excess-fast": _PLAIN | {"bf16": "excess", "fp_contract": "fast"},
}
"""What each mode sets of `CompileOptions`; ``on`` and ``round-each`` are the defaults, under two names."""

BASELINE = "on"


def mode_options(mode: str, base: CompileOptions | None = None) -> CompileOptions:
    """The options of a mode; target, threads and effort are those of ``base``. The environment has no say.

    Raises:
        NotFoundError: there is no such mode.
    """
    if mode not in MODES:
        hint = near_names(mode, MODES) or f"; modes are {', '.join(MODES)}"
        raise NotFoundError(f"there is no mode '{mode}'{hint}")
    kept = base or CompileOptions(fp_contract="on", fastmath="none")
    return kept.replace(**MODES[mode])


def chosen_modes(modes: Iterable[str] | None) -> list[str]:
    """The modes asked for, each once, all of them for None.

    Raises:
        NotFoundError: there is no such mode.
    """
    chosen = list(MODES) if modes is None else list(dict.fromkeys(modes))
    for mode in chosen:
        mode_options(mode)
    return chosen
