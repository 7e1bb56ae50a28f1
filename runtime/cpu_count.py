"""How many threads this process should use: what its CPU affinity and its cgroups allow.

A container with a quota of two CPUs on a machine with 64 still sees 64; more threads than the quota only get
throttled. Linux's cgroup v2 (``cpu.max``) and v1 (``cpu.cfs_quota_us``) are read, at every level above the process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from halfulp.compiler.errors import GraphError

VARIABLE = "HALFULP_NUM_THREADS"


def default_threads() -> int:
    """``HALFULP_NUM_THREADS``, else the CPUs that affinity and cgroup quota leave to this process; at least 1.

    Raises:
        GraphError: the variable is set to something that is not a positive number.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if text:
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise GraphError(f"{VARIABLE} must be a number of threads, at least 1, not {text!r}; unset it for all CPUs")
        return int(text)
    return max(1, min(_affinity(), quota()))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS has no affinity


def quota(root: Path = Path("/")) -> int:
    """The CPUs of the tightest cgroup quota above this process, rounded up; a large number where there is none.

    Args:
        root: the root of the file system, for tests.
    """
    limits = [math.ceil(cpus) for cpus in _quotas(root)]
    return min(limits, default=1 << 20)


def _quotas(root: Path) -> Iterator[float]:
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    mounts = root / "sys/fs/cgroup"
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for base in (mounts, mounts / "unified"):
                for folder in _upwards(base, path):
                    yield from _version_2(folder)
        elif "cpu" in controllers.split(","):
            for base in (mounts / controllers, mounts / "cpu"):
                for folder in _upwards(base, path):
                    yield from _version_1(folder)


def _upwards(base: Path, path: str) -> Iterator[Path]:
    """The group's folder and those above it. In a container the path may be the host's, and only the base exists."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for length in range(len(parts), -1, -1):
        yield base.joinpath(*parts[:length])


def _version_2(folder: Path) -> Iterator[float]:
    words = _words(folder / "cpu.max")
    if len(words) == 2 and words[0] != "max":
        yield int(words[0]) / int(words[1])


def _version_1(folder: Path) -> Iterator[float]:
    allowed, period = _words(folder / "cpu.cfs_quota_us"), _words(folder / "cpu.cfs_period_us")
    if allowed and period and int(allowed[0]) > 0:
        yield int(allowed[0]) / int(period[0])


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except OSError:
        return []
