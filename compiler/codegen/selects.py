"""The table of what selects: (target, instruction or intrinsic, types) that LLVM has code for, without calling a
library.

It is checked in as ``selects.json`` and filled by trying (``probes``), because asking LLVM for something it cannot
select may end the process. The writer of LLVM text refuses what the table lacks.

``python -m halfulp.compiler.codegen.selects --update`` fills it anew; do so after a change of llvmlite.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ..errors import NotFoundError, quoted_list

PATH = Path(__file__).with_name("selects.json")

Table = Mapping[str, frozenset[str]]
"""Name of an instruction or intrinsic -> the types it selects for, as ``llvm.selection`` writes both."""


@cache
def _all_tables() -> dict[str, Table]:
    content = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        target: {op: frozenset(types) for op, types in table.items()} for target, table in content["targets"].items()
    }


@cache
def selects_on(target: str) -> Table:
    """The table of one target: ``x86_64/512``, ``x86_64/256``, ``x86_64/128``, ``aarch64/128`` or ``nvptx64/sm_90``.

    NotFoundError for a target that was never probed.
    """
    tables = _all_tables()
    if target not in tables:
        raise NotFoundError(f"nothing is known of what selects on {target!r}; known targets: {quoted_list(tables)}")
    return tables[target]


def _write(tables: Mapping[str, Mapping[str, Sequence[str]]], version: Sequence[int]) -> None:
    """One line per instruction, so that a change reads well."""
    targets = []
    for target, table in tables.items():
        lines = ",\n".join(f"   {json.dumps(op)}: {json.dumps(list(types))}" for op, types in table.items())
        targets.append(f"  {json.dumps(target)}: {{\n{lines}\n  }}")
    body = ",\n".join(targets)
    PATH.write_text(f'{{\n "llvm": {json.dumps(list(version))},\n "targets": {{\n{body}\n }}\n}}\n', encoding="utf-8")


def update() -> None:
    """Probes every target and writes the table."""
    import llvmlite.binding as llvm

    from .probes import TARGETS, probe

    _write({name: probe(name) for name in TARGETS}, llvm.llvm_version_info)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table, or fills it with ``--update``."""
    parser = argparse.ArgumentParser(prog="python -m halfulp.compiler.codegen.selects", description=main.__doc__)
    parser.add_argument("--update", action="store_true", help="probe every target in child processes")
    parser.add_argument("--child", nargs=2, metavar=("TARGET", "START"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        from .probes import TARGETS, run_child

        run_child(TARGETS[options.child[0]], int(options.child[1]))
    elif options.update:
        update()
    else:
        for target, table in _all_tables().items():
            for op, types in table.items():
                print(f"{target} {op}: {', '.join(sorted(types))}")


if __name__ == "__main__":
    main()
