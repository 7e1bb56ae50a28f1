"""The tile dialect's texts: what is printed reads back as the same ops."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from halfulp.compiler.dialects.tile import Tile

EXAMPLES = Path(__file__).parents[1] / "filecheck" / "dialects" / "tile.mlir"


def printed(module: ModuleOp, generic: bool) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


@pytest.mark.parametrize("generic", [False, True])
def test_every_op_survives_printing_and_parsing(generic: bool, parse_tile: Callable[[str], ModuleOp]) -> None:
    module = parse_tile(EXAMPLES.read_text(encoding="utf-8"))
    text = printed(module, generic)
    again = parse_tile(text)
    assert again.is_structurally_equivalent(module)
    assert printed(again, generic) == text


def test_the_examples_hold_every_op(parse_tile: Callable[[str], ModuleOp]) -> None:
    texts = (path.read_text(encoding="utf-8") for path in (EXAMPLES, EXAMPLES.with_name("tile-printing.mlir")))
    found = {op.name for text in texts for op in parse_tile(text).walk()}
    assert {op.name for op in Tile.operations} <= found


def test_a_kernel_keeps_attributes_and_a_launch_may_take_nothing(parse_tile: Callable[[str], ModuleOp]) -> None:
    text = """builtin.module {
  tile.kernel @k() grid() axes [] attributes {"fp_contract" = "off"} {
    tile.return
  }
  func.func @main() {
    tile.launch @k grid() () :
    func.return
  }
}
"""
    module = parse_tile(text)
    assert parse_tile(printed(module, False)).is_structurally_equivalent(module)
    assert 'attributes {fp_contract = "off"}' in printed(module, False)
