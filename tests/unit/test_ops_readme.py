"""The table in ops/README.md is the one that the code writes, and every op is in it."""

from __future__ import annotations

import inspect
from pathlib import Path

from halfulp import ops
from halfulp.ops.contract import CONTRACTS
from halfulp.ops.table import table

README = Path(__file__).parents[2] / "ops" / "README.md"
WITHOUT_NUMBERS = {
    "buffer_load",
    "buffer_store",
    "call",
    "cond",
    "custom",
    "getitem",
    "inplace_custom",
    "print",
    "transfer_to",
    "while_loop",
}
"""What only arranges other ops, or shows their results: it computes nothing that could be off."""


def test_table_is_up_to_date() -> None:
    text = README.read_text()
    _, _, written = text.partition("<!-- table -->\n")
    assert written.strip() == table(), "write it anew: python -m halfulp.ops.table"


def test_contracts_are_of_public_ops() -> None:
    assert {name for name in CONTRACTS if getattr(ops, name, None) is not CONTRACTS[name].build} == set()


def test_every_op_has_a_contract() -> None:
    public = {
        name
        for name, function in vars(ops).items()
        if inspect.isfunction(function) and function.__module__.startswith("halfulp.ops.")
    }
    assert public - set(CONTRACTS) - WITHOUT_NUMBERS == set()
