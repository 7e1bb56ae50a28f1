"""What the `xdsl.universe` entry point hands to xDSL's tools.

With it, plain `xdsl-opt` knows our dialects and passes.
"""

from __future__ import annotations

from xdsl.universe import Universe

from .dialects import get_all_dialects
from .passes import get_all_passes

HALFULP_UNIVERSE = Universe(all_dialects=get_all_dialects(), all_passes=get_all_passes())
