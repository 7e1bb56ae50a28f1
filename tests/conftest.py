"""Settings of all tests."""

from __future__ import annotations

import os

import hypothesis
import pytest

from halfulp.compiler.options import FASTMATH_VARIABLE, FP_CONTRACT_VARIABLE

# Every run tries the same examples, so a failure is there for everybody; HYPOTHESIS_PROFILE=explore looks further.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Make the tests independent of the developer's own settings."""
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
    for variable in (FP_CONTRACT_VARIABLE, FASTMATH_VARIABLE, "HALFULP_NUM_THREADS", "HALFULP_DUMP"):
        os.environ.pop(variable, None)
    os.environ["HALFULP_CACHE"] = "0"  # tests of the cache turn it on, in a folder of their own


LEFT_OUT = (
    "matmul in other element types than its first, ops that state examples in others than their first and last, rows "
    "and vectors of more than 257 elements, all combinations of special values (257 of them are taken), random graphs"
)
"""What the tests in tests/emulated do not run on the emulated accelerator."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not run on the emulated accelerator."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    if any(getattr(report, "nodeid", "").startswith("tests/emulated/") for report in reports):
        terminalreporter.write_line(f"left out on the emulated accelerator, for time: {LEFT_OUT}")
