"""The order of an entry's buffers, segments, launches and checks, which the runtime's tables follow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import DiagnosticException

from halfulp.compiler.artifact import CheckSite
from halfulp.compiler.passes.tile_to_loops.layout import EntryLayout, entry_layout

KERNELS = """
tile.kernel @first() grid() axes [] {
  %true = arith.constant true
  tile.check %true, "one"
  scf.if %true {
    tile.check %true, "two"
  }
  tile.check %true, "three"
  tile.return
}
tile.kernel @second() grid() axes [] {
  tile.return
}
"""

ENTRY = """
func.func @main(%x: !tile.ref<[4], f32, global>) {
  %n = tile.dim %x, 0 : !tile.ref<[4], f32, global>
  tile.set_dim "n", %n
  tile.set_dim "m", %n
  %b = tile.buffer ["n"] : !tile.ref<[?], f32, global>
  tile.launch @second grid() () :
  tile.set_dim "k", %n
  %c = tile.buffer ["k"] : !tile.ref<[?], f32, global>
  %true = arith.constant true
  tile.check %true, "of the entry"
  tile.launch @first grid() () :
  func.return
}
"""


def layout_of(module: ModuleOp) -> EntryLayout:
    (entry,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    return entry_layout(module, entry)


@pytest.fixture
def layout(parse_tile: Callable[[str], ModuleOp]) -> EntryLayout:
    return layout_of(parse_tile(KERNELS + ENTRY))


def test_each_group_of_set_dim_ends_a_segment(layout: EntryLayout) -> None:
    names = [[op.name.partition(".")[2] for op in segment] for segment in layout.segments]
    assert names == [
        ["dim", "set_dim", "set_dim"],
        ["buffer", "launch", "set_dim"],
        ["buffer", "constant", "check", "launch", "return"],
    ]
    assert [layout.defines(number) for number in range(3)] == [("n", "m"), ("k",), ()]
    assert layout.symbols == ("n", "m", "k")


def test_launches_and_checks_of_the_entry_are_numbered_in_order(layout: EntryLayout) -> None:
    assert [(op.name, number) for op, number in layout.launches.items()] == [
        ("tile.launch", 0),
        ("tile.check", 1),
        ("tile.launch", 2),
    ]
    assert layout.sites == (
        (),
        (CheckSite("main", "of the entry"),),
        (CheckSite("first", "one"), CheckSite("first", "two"), CheckSite("first", "three")),
    )


def test_a_launch_with_a_grid_checks_its_size_last(parse_tile: Callable[[str], ModuleOp]) -> None:
    text = KERNELS.replace("@first() grid() axes []", "@first() grid(%i of %n, %j of %m) axes [ordered, ordered]")
    launch = "%c = arith.constant 3 : index\n tile.launch @first grid(%c, %c) () :"
    layout = layout_of(parse_tile(f"{text} func.func @main() {{ {launch} \n func.return }}"))
    assert layout.sites[0][2:] == (
        CheckSite("first", "three", rank=2),
        CheckSite("first", "the grid {} x {} has more than 2**48 programs; let each program do more"),
    )


def test_buffers_keep_their_order(layout: EntryLayout) -> None:
    assert [[text.data for text in op.shape] for op in layout.buffers] == [["n"], ["k"]]


def test_launch_of_a_kernel_that_does_not_exist(parse_tile: Callable[[str], ModuleOp]) -> None:
    module = parse_tile(KERNELS + ENTRY.replace("@second", "@secnd"))
    with pytest.raises(DiagnosticException) as caught:
        layout_of(module)
    assert str(caught.value) == ("tile.launch @secnd: the module has no kernel of that name; did you mean 'second'?")
