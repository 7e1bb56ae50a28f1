"""``clear-fastmath-flags``: takes fastmath flags off the ops that a pattern fits."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..fastmath import own_flags, parse_option, put_flags
from .set_fastmath_flags import select_ops


@dataclass(frozen=True)
class ClearFastmathFlagsPass(ModulePass):
    """Removes ``flags`` (by default all) from every op that ``match`` fits, a glob on the op's name or its callee.

    ``clear-fastmath-flags{flags=contract}``, before::

        %p = arith.mulf %a, %b fastmath<nsz,contract> : f32

    After::

        %p = arith.mulf %a, %b fastmath<nsz> : f32

    A graph op without flags of its own stays so; it still takes those of the options. Compiling removes ``contract``
    with it when kernels are made, since every fma is explicit by then and LLVM would make more.

    Raises:
        GraphError: an unknown flag.
        CompileError: ``match`` is the name of an op that carries no flags, or fits no op at all.
    """

    name = "clear-fastmath-flags"

    flags: tuple[str, ...] = ("fast",)
    match: str = "*"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        flags = parse_option(self.flags, f"{self.name}: flags")
        for candidate in select_ops(self.name, self.match, op):
            own = own_flags(candidate)
            if own:
                put_flags(candidate, own - flags)
