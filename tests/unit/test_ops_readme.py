"""The table in ops/README.md is the one that the code writes, and every op is in it."""

from __future__ import annotations

from pathlib import Path

from halfulp import ops
from halfulp.ops.contract import CONTRACTS
from halfulp.ops.table import table

README = Path(__file__).parents[2] / "ops" / "README.md"


def test_table_is_up_to_date() -> None:
    text = README.read_text()
    _, _, written = text.partition("<!-- table -->\n")
    assert written.strip() == table(), "write it anew: python -m halfulp.ops.table"


def test_contracts_are_of_public_ops() -> None:
    assert {name for name in CONTRACTS if getattr(ops, name, None) is not CONTRACTS[name].build} == set()
