"""From when to when buffers between kernels are alive: launches, views, reads, repeated reads, branches and loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from halfulp.compiler.passes.tile_to_loops.layout import entry_layout
from halfulp.compiler.passes.tile_to_loops.lifetimes import lifetimes

VECTOR = "!tile.ref<[?], i64, global>"
ONE = "!tile.ref<[1], i64, global>"

KERNELS = f"""
tile.kernel @copy(%a: {VECTOR}, %b: {VECTOR}) grid() axes [] {{
  tile.return
}}
tile.kernel @fill(%a: {VECTOR}, %n: index) grid() axes [] {{
  tile.return
}}
"""


@pytest.fixture
def alive(parse_tile: Callable[[str], ModuleOp]) -> Callable[[str], list[tuple[int, int]]]:
    """The lifetimes of the buffers of an entry with this body, %x and %y being its arguments."""

    def measure(body: str) -> list[tuple[int, int]]:
        text = f"{KERNELS}\nfunc.func @main(%x: {VECTOR}, %y: {VECTOR}) {{\n{body}\nfunc.return\n}}"
        module = parse_tile(text)
        (entry,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
        return lifetimes(entry_layout(module, entry))

    return measure


def copy(source: str, target: str) -> str:
    return f"tile.launch @copy grid() ({source}, {target}) : {VECTOR}, {VECTOR}\n"


def buffer(name: str) -> str:
    return f'{name} = tile.buffer ["n"] : {VECTOR}\n'


def test_a_buffer_lives_from_its_first_launch_to_its_last(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    body = "".join(map(buffer, ("%a", "%b", "%c")))
    body += copy("%x", "%a") + copy("%a", "%b") + copy("%a", "%c") + copy("%b", "%y")
    assert alive(body) == [(0, 2), (1, 3), (2, 2)]


def test_a_view_keeps_its_buffer_and_an_extent_does_not(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    body = buffer("%a") + copy("%x", "%a")
    body += f"%f = tile.flatten %a : {VECTOR} -> {VECTOR}\n" + copy("%x", "%y") + copy("%f", "%y")
    body += f"%n = tile.dim %a, 0 : {VECTOR}\n"
    body += f"tile.launch @fill grid() (%y, %n) : {VECTOR}, index"
    assert alive(body) == [(0, 2)]


def test_a_buffer_that_nothing_touches_takes_one_step(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    assert alive(buffer("%a") + copy("%x", "%y") + copy("%y", "%x")) == [(0, 0)]


READ = f"""
%w = tile.window %a[%zero] element [1] squeezed [] : {VECTOR} -> {ONE}
%block = tile.load %w : {ONE} -> tensor<1xi64>
%wide = tile.extract %block[%zero] : tensor<1xi64> -> i64
%n = tile.cast %wide : i64 -> index
"""


def test_a_value_that_was_read_keeps_its_buffer_as_long_as_it_is_used(
    alive: Callable[[str], list[tuple[int, int]]],
) -> None:
    head = "%zero = arith.constant 0 : index\n" + buffer("%a") + copy("%x", "%a") + READ
    use = f"tile.launch @fill grid() (%y, %n) : {VECTOR}, index\n"
    # the second segment may read it once more
    set_dim = 'tile.set_dim "m", %n\n'
    assert alive(head + copy("%x", "%y") + use) == [(0, 2)]
    assert alive(head + set_dim + copy("%x", "%y") + use) == [(0, 2)]
    assert alive(head + set_dim + copy("%x", "%y")) == [(0, 0)]


def test_a_check_is_a_step(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    body = "%good = arith.constant true\n" + buffer("%a") + copy("%x", "%y")
    body += 'tile.check %good, "never"\n' + copy("%x", "%a")
    assert alive(body) == [(2, 2)]


def reading(suffix: str) -> str:
    """Reads %go<suffix> from the first element of %a."""
    return f"""
%w{suffix} = tile.window %a[%zero] element [1] squeezed [] : {VECTOR} -> {ONE}
%block{suffix} = tile.load %w{suffix} : {ONE} -> tensor<1xi64>
%number{suffix} = tile.extract %block{suffix}[%zero] : tensor<1xi64> -> i64
%go{suffix} = tile.cmpi ne %number{suffix}, %number{suffix} : i64 -> i1
"""


def loop(body: str, suffix: str = "") -> str:
    """Rounds of ``body``, as long as the first element of %a says."""
    return f"scf.while () : () -> () {{{reading(suffix)}scf.condition(%go{suffix})\n}} do {{\n{body}scf.yield\n}}\n"


HEAD = "%zero = arith.constant 0 : index\n" + buffer("%a") + copy("%x", "%a")


def test_what_a_loop_reads_lives_as_long_as_the_loop(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    body = copy("%b", "%y") + copy("%x", "%y") + copy("%x", "%y")
    assert alive(HEAD + buffer("%b") + copy("%x", "%b") + loop(body) + copy("%x", "%y")) == [(0, 4), (1, 4)]


def test_what_stands_in_a_loop_lives_in_one_round(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    body = buffer("%b") + copy("%x", "%b") + copy("%b", "%y") + buffer("%c") + copy("%x", "%c") + copy("%c", "%a")
    assert alive(HEAD + loop(body)) == [(0, 4), (1, 2), (3, 4)]


def test_a_loop_inside_counts_whole_for_what_stands_around_it(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    inner = loop(copy("%b", "%y") + copy("%x", "%y"), suffix="i")
    assert alive(HEAD + loop(buffer("%b") + copy("%x", "%b") + inner + copy("%x", "%y"))) == [(0, 4), (1, 3)]


def test_a_branch_does_not_lengthen_a_life(alive: Callable[[str], list[tuple[int, int]]]) -> None:
    body = buffer("%b") + copy("%x", "%b") + copy("%b", "%y") + copy("%x", "%y")
    branches = f"scf.if %go {{\n{body}}} else {{\n{body.replace('%b', '%c')}}}\n"
    assert alive(HEAD + reading("") + branches) == [(0, 0), (1, 2), (4, 5)]
