"""``set-fastmath-flags``: puts fastmath flags on the ops that a pattern fits."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..errors import CompileError
from ..fastmath import carries_flags, matches, own_flags, parse_option, put_flags
from ..locations import location_of


@dataclass(frozen=True)
class SetFastmathFlagsPass(ModulePass):
    """Adds ``flags`` to every op that can carry them and that ``match`` fits: a glob on the op's name or its callee.

    ``set-fastmath-flags{flags=nsz,arcp match="arith.mul*"}``, before::

        %p = arith.mulf %a, %b fastmath<contract> : f32
        %s = arith.addf %p, %c : f32

    After::

        %p = arith.mulf %a, %b fastmath<nsz,arcp,contract> : f32
        %s = arith.addf %p, %c : f32

    With ``only-unset`` graph ops that have flags of their own, even ``fastmath<none>``, are left alone: so compiling
    gives ``CompileOptions.fastmath`` to the others. Ops on integers are passed over, unless ``match`` is the very
    name of one.

    Raises:
        GraphError: an unknown flag.
        CompileError: ``match`` is the name of an op that carries no flags, or fits no op at all.
    """

    name = "set-fastmath-flags"

    flags: tuple[str, ...] = ()
    match: str = "*"
    only_unset: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        flags = parse_option(self.flags, f"{self.name}: flags")
        for candidate in select_ops(self.name, self.match, op):
            own = own_flags(candidate)
            if own is None or not self.only_unset:
                put_flags(candidate, (own or frozenset()) | flags)


def select_ops(pass_name: str, pattern: str, module: ModuleOp) -> list[Operation]:
    """The ops that ``pattern`` fits and that carry flags.

    Raises:
        CompileError: the pattern fits no op, or it names an op that carries none.
    """
    fitting = [op for op in module.walk() if matches(op, pattern)]
    selected = [op for op in fitting if carries_flags(op)]
    is_name = not any(character in pattern for character in "*?[")
    if is_name and fitting and not selected:
        wrong = fitting[0]
        raise CompileError(
            f"{pass_name}: {wrong.name} computes no float here, so it carries no fastmath flags; "
            f"match={pattern} must name ops on floats",
            location_of(wrong),
        )
    if not fitting and pattern != "*":
        raise CompileError(f"{pass_name}: no op fits match={pattern}; it is a glob on names such as arith.addf")
    return selected
