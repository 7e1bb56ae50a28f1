"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from halfulp.compiler.dialects.tile import Tile


@pytest.fixture(scope="session")
def parse_tile() -> Callable[[str], ModuleOp]:
    """Parses and verifies a module of tile IR."""

    def parse(text: str) -> ModuleOp:
        context = Context()
        for dialect in (builtin.Builtin, arith.Arith, math.Math, scf.Scf, func.Func, Tile):
            context.load_dialect(dialect)
        module = Parser(context, text).parse_module()
        module.verify()
        return module

    return parse
