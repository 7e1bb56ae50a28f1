"""The table of `ops/README.md`, made from the contracts: ``python -m halfulp.ops.table`` prints it."""

from __future__ import annotations

from collections.abc import Sequence

from halfulp.compiler import DType

from .contract import ALL, BOOL, CONTRACTS, FLOATS, INTEGERS, NUMBERS, SIGNED, Contract

_GROUPS: tuple[tuple[str, tuple[DType, ...]], ...] = (
    ("all", ALL),
    ("numbers", NUMBERS),
    ("integers, bool", INTEGERS + BOOL),
    ("integers", INTEGERS),
    ("floats", FLOATS),
    ("floats, signed integers", FLOATS + SIGNED),
    ("bool", BOOL),
)


def dtypes_text(dtypes: Sequence[DType]) -> str:
    """Element types by the name of a group, or one by one."""
    for name, group in _GROUPS:
        if set(group) == set(dtypes):
            return name
    return ", ".join(dtype.ir_name for dtype in dtypes)


def row(contract: Contract) -> str:
    """One line of the table."""
    where = contract.build.__module__.rpartition(".")[2]
    return f"| `{contract.name}` | {dtypes_text(contract.dtypes)} | {contract.bound} | `{where}.py` |"


def table() -> str:
    """The table, without a line break at its end."""
    head = ["| op | element types | error bound | defined, with its reference, in |", "|---|---|---|---|"]
    return "\n".join([*head, *(row(CONTRACTS[name]) for name in sorted(CONTRACTS))])


if __name__ == "__main__":
    print(table())
