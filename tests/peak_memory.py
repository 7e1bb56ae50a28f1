"""The most memory that a process has had, to be printed by the process itself."""

from __future__ import annotations

PRINT_PEAK_KIB = """
import re
print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""
"""Python source. ``ru_maxrss`` would not do: a child starts with the peak of the process that forked it."""
