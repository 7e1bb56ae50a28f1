"""How a graph is compiled: rounding first of all, then target and effort.

Three levels, the inner one wins: an argument of `CompileOptions`, the environment, the default. The environment is
for experiments on a whole program: ``HALFULP_FP_CONTRACT=fast``, ``HALFULP_FASTMATH=nsz,arcp``. Inside a graph,
``with g.fastmath(...)`` and the argument of a single op win over all three.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, cast, get_args

from .errors import GraphError, GraphTypeError, near_names, quoted_list

FpContract = Literal["off", "on", "fast"]
Strategy = Literal["explicit", "llvm"]
Bf16 = Literal["round-each", "excess"]

FASTMATH_FLAGS = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
"""LLVM's fastmath flags, in the order LLVM prints them."""

VECTOR_BITS = (128, 256, 512)
FP_CONTRACT_VARIABLE = "HALFULP_FP_CONTRACT"
FASTMATH_VARIABLE = "HALFULP_FASTMATH"


@dataclass(frozen=True, init=False)
class CompileOptions:
    """Options of `InferenceSession.load`. Two options that compare equal compile to the same code.

    Args:
        fp_contract: when a product and a sum may become one fma, rounded once. ``"off"``: never, matmul included.
            ``"on"``: only inside one op, where its own definition says so. ``"fast"``: across ops too.
            Default: the environment variable ``HALFULP_FP_CONTRACT``, else ``"on"``.
        fastmath: the flags of ops that set none themselves: ``"none"``, ``"fast"`` (all), one flag, several
            separated by commas, or any iterable of flags from `FASTMATH_FLAGS`.
            Default: ``HALFULP_FASTMATH``, else none.
        strategy: who contracts under ``"fast"``: ``"explicit"``, our pass, so that the result depends on the graph
            alone; ``"llvm"``, LLVM, which sees the flags and decides as it likes.
        bf16: ``"round-each"`` rounds bfloat16 and float16 after every op; ``"excess"`` keeps float32 between ops.
        threads: the most threads one execution may use; None takes what the machine and the process's limits give.
            Never changes a result.
        vector_bits: vector width: 128, 256, 512, or None for the widest this CPU has. Never changes a result.
        opt_level: LLVM's effort, 0 to 3. Never changes a result.

    Raises:
        GraphError: an unknown value or flag, or ``fp_contract="off"`` together with the flag ``contract``.
        GraphTypeError: an argument of the wrong Python type.

    >>> CompileOptions(fp_contract="fast", fastmath={"nsz"}).key()
    'fp_contract=fast fastmath=nsz strategy=explicit bf16=round-each vector_bits=native opt_level=2'
    """

    fp_contract: FpContract
    fastmath: frozenset[str]
    strategy: Strategy
    bf16: Bf16
    threads: int | None
    vector_bits: int | None
    opt_level: int

    def __init__(
        self,
        *,
        fp_contract: FpContract | None = None,
        fastmath: str | Iterable[str] | None = None,
        strategy: Strategy = "explicit",
        bf16: Bf16 = "round-each",
        threads: int | None = None,
        vector_bits: int | None = None,
        opt_level: int = 2,
    ) -> None:
        mode, flags = _rounding(fp_contract, fastmath, os.environ)
        _set(
            self,
            fp_contract=mode,
            fastmath=flags,
            strategy=_one_of("strategy", strategy, get_args(Strategy)),
            bf16=_one_of("bf16", bf16, get_args(Bf16)),
            threads=_threads(threads),
            vector_bits=None if vector_bits is None else _one_of("vector_bits", vector_bits, VECTOR_BITS),
            opt_level=_one_of("opt_level", opt_level, (0, 1, 2, 3)),
        )

    def replace(self, **changes: Any) -> CompileOptions:
        """A copy with some options changed; the environment is not read again."""
        current = {f.name: getattr(self, f.name) for f in fields(self)}
        if unknown := changes.keys() - current.keys():
            raise GraphTypeError(
                f"CompileOptions has no option {quoted_list(sorted(unknown))}; options: {', '.join(current)}"
                f"{near_names(min(unknown), current)}"
            )
        return CompileOptions(**{**current, **changes})

    def key(self) -> str:
        """The options that decide which code comes out, as text that is stable between processes and versions.

        The number of threads is not part of it: code is the same for every number.
        """
        values = {
            "fp_contract": self.fp_contract,
            "fastmath": ",".join(ordered_flags(self.fastmath)) or "none",
            "strategy": self.strategy,
            "bf16": self.bf16,
            "vector_bits": self.vector_bits or "native",
            "opt_level": self.opt_level,
        }
        return " ".join(f"{name}={value}" for name, value in values.items())


def parse_fastmath(flags: str | Iterable[str], subject: str = "fastmath") -> frozenset[str]:
    """The set of flags that a user wrote as ``"none"``, ``"fast"``, ``"nsz,arcp"`` or ``{"nsz", "arcp"}``.

    Args:
        flags: what the user wrote.
        subject: the name of the argument or variable, for messages.

    Raises:
        GraphError: an unknown flag.
        GraphTypeError: not text and not an iterable of text.
    """
    if isinstance(flags, str):
        if flags in ("none", ""):
            return frozenset()
        if flags == "fast":
            return frozenset(FASTMATH_FLAGS)
        names: list[Any] = [name.strip() for name in flags.split(",")]
    elif isinstance(flags, Iterable):
        names = list(flags)
    else:
        raise GraphTypeError(f"{subject} must be 'none', 'fast' or a set of flags, not {flags!r}")
    for name in names:
        if name not in FASTMATH_FLAGS:
            hint = near_names(name, FASTMATH_FLAGS) if isinstance(name, str) else ""
            raise GraphError(f"{subject} has no flag {name!r}; flags are {', '.join(FASTMATH_FLAGS)}{hint}")
    return frozenset(names)


def ordered_flags(flags: Iterable[str]) -> list[str]:
    """The flags in the order in which LLVM prints them."""
    present = set(flags)
    return [flag for flag in FASTMATH_FLAGS if flag in present]


def _rounding(
    fp_contract: object, fastmath: str | Iterable[str] | None, environment: Mapping[str, str]
) -> tuple[FpContract, frozenset[str]]:
    """Resolve the two rounding options against the environment, and refuse a contradiction.

    Where one side of a contradiction comes from the environment, that side yields: an experiment on a whole
    program must not make a graph with a rule of its own impossible to load.
    """
    from_environment = environment.get(FP_CONTRACT_VARIABLE) if fp_contract is None else None
    mode_subject = "fp_contract" if from_environment is None else FP_CONTRACT_VARIABLE
    mode = fp_contract if from_environment is None else from_environment
    mode = _one_of(mode_subject, "on" if mode is None else mode, get_args(FpContract))

    flags_subject = "fastmath" if fastmath is not None else FASTMATH_VARIABLE
    flags = parse_fastmath(environment.get(FASTMATH_VARIABLE, "") if fastmath is None else fastmath, flags_subject)

    if mode == "off" and "contract" in flags:
        if fp_contract is not None and fastmath is None:
            flags -= {"contract"}
        elif fp_contract is None and fastmath is not None:
            mode = "on"
        else:
            raise GraphError(
                f"{mode_subject}='off' forbids every contraction, but {flags_subject} has the flag 'contract'; "
                f"use {mode_subject}='on' or leave 'contract' out"
            )
    return cast(FpContract, mode), flags


def _one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    # bool is an int and 1.0 == 1 in Python; neither is meant here
    if type(value) is not type(allowed[0]) or value not in allowed:
        shown = ", ".join(str(a) for a in allowed)
        hint = near_names(value, allowed) if isinstance(value, str) and isinstance(allowed[0], str) else ""
        raise GraphError(f"{name} must be one of {shown}, not {value!r}{hint}")
    return value


def _threads(threads: object) -> int | None:
    if threads is None or (type(threads) is int and threads >= 1):
        return threads
    raise GraphError(f"threads must be None or at least 1, not {threads!r}")


def _set(options: CompileOptions, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(options, name, value)
