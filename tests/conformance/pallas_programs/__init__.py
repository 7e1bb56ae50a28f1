"""Programs for the behaviours of grids, block specs and references that were recorded from JAX's Pallas.

``PROGRAMS`` has one for each record in ``data/pallas_cases.json``, under its name; `program` says what a program is.
"""

from __future__ import annotations

from . import aliases, block_specs, control, dtypes, edges, errors, grids, matmul, reductions, refs
from .program import Call, Run

THEMES = (grids, block_specs, edges, reductions, matmul, refs, control, aliases, dtypes, errors)
PROGRAMS: dict[str, Run] = {name: run for theme in THEMES for name, run in theme.PROGRAMS.items()}

__all__ = ["PROGRAMS", "Call", "Run"]
