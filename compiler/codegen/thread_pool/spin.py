"""Waiting without sleep, for a while."""

from __future__ import annotations

from .block import SPIN_NANOSECONDS
from .system import pause


def spin(again: str, expired: str, arch: str) -> str:
    """Blocks ``spin`` and ``spin.clock``: pause and go to ``again``, or to ``expired`` 50 us after ``%since``.

    ``%pauses`` counts the pauses so far; the clock is read after every 16.
    """
    return f"""spin:
  {pause(arch)}
  %spin.pauses = add i64 %pauses, 1
  %spin.low = and i64 %spin.pauses, 15
  %spin.look = icmp eq i64 %spin.low, 0
  br i1 %spin.look, label %spin.clock, label %{again}
spin.clock:
  %spin.time = call i64 @now()
  %spin.spent = sub i64 %spin.time, %since
  %spin.over = icmp sgt i64 %spin.spent, {SPIN_NANOSECONDS}
  br i1 %spin.over, label %{expired}, label %{again}"""
