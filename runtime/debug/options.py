"""`session.debug`: what a session looks for while its models run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfulp.compiler.errors import GraphTypeError, near_names


class DebugOptions:
    """Switches, all off at first. They hold for every execution that starts after they are set.

    Attributes:
        nan_check: an execution in which an op makes a NaN or an infinity out of operands that have none, or passes on
            a NaN of an input or a weight, raises `NanCheckError`, which names the op and its line. Models run op by op
            for it, slower and with the same bits; the first execution under it compiles the model once more.
        allow_inf: infinities that ops make are no error for ``nan_check``.
    """

    __slots__ = ("allow_inf", "nan_check")

    nan_check: bool
    allow_inf: bool

    def __init__(self) -> None:
        self.nan_check = False
        self.allow_inf = False

    if not TYPE_CHECKING:  # a type checker would take any name for one that can be set

        def __setattr__(self, name: str, value: object) -> None:
            if name not in self.__slots__:
                raise AttributeError(_no_option(name))
            if not isinstance(value, bool):
                raise GraphTypeError(f"session.debug.{name} must be True or False, not {value!r}")
            object.__setattr__(self, name, value)

        def __getattr__(self, name: str) -> object:
            # called only for names that are not there
            raise AttributeError(_no_option(name))

    def __repr__(self) -> str:
        return f"DebugOptions({', '.join(f'{name}={getattr(self, name)}' for name in sorted(self.__slots__))})"


def _no_option(name: str) -> str:
    hint = near_names(name, DebugOptions.__slots__) or f"; it has {' and '.join(sorted(DebugOptions.__slots__))}"
    return f"session.debug has no option {name!r}{hint}"
