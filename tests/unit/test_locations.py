"""The user's line on the stack."""

from __future__ import annotations

from typing import Any

import pytest

from halfulp.compiler.locations import user_location


@pytest.mark.parametrize(("module", "file"), [("model", "<string>"), ("halfulp.ops.arithmetic", __file__)])
def test_the_innermost_line_that_is_not_ours(module: str, file: str) -> None:
    assert found_in(module).filename == file


def test_under_a_command_of_ours_no_line_is_the_users() -> None:
    assert found_in("halfulp.runtime.cli.fastmath") is None


def found_in(module: str) -> Any:
    """What is found from a line of this module."""
    names: dict[str, Any] = {"__name__": module, "user_location": user_location}
    exec("location = user_location()", names)
    return names["location"]
