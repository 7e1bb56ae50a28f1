"""How many random examples a test tries whose examples are slow."""

from __future__ import annotations

from hypothesis import settings


def examples(usual: int) -> int:
    """``usual`` in every run, ten times as many under ``HYPOTHESIS_PROFILE=explore``."""
    return usual if settings.default is None else max(usual * settings.default.max_examples // 100, 1)
