"""CompileOptions: what is refused, which level wins, and what the key holds."""

from __future__ import annotations

from typing import Any

import pytest

from halfulp.compiler.errors import GraphError, GraphTypeError
from halfulp.compiler.options import FASTMATH_FLAGS, CompileOptions, ordered_flags, parse_fastmath


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALFULP_FP_CONTRACT", raising=False)
    monkeypatch.delenv("HALFULP_FASTMATH", raising=False)


def test_defaults() -> None:
    options = CompileOptions()
    assert options.fp_contract == "on"
    assert options.fastmath == frozenset()
    assert (options.strategy, options.bf16) == ("explicit", "round-each")
    assert (options.threads, options.vector_bits, options.opt_level) == (None, None, 2)


@pytest.mark.parametrize(
    ("written", "flags"),
    [
        ("none", ()),
        ("fast", FASTMATH_FLAGS),
        ("nsz", ("nsz",)),
        ("nsz, arcp", ("nsz", "arcp")),
        ({"afn"}, ("afn",)),
        (["nnan", "ninf", "nnan"], ("nnan", "ninf")),
        ((), ()),
    ],
)
def test_fastmath_spellings(written: Any, flags: tuple[str, ...]) -> None:
    assert CompileOptions(fastmath=written).fastmath == frozenset(flags)
    assert ordered_flags(parse_fastmath(written)) == list(flags)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fp_contract": "fats"}, "fp_contract must be one of off, on, fast, not 'fats'; did you mean 'fast'?"),
        ({"fp_contract": True}, "fp_contract must be one of off, on, fast, not True"),
        (
            {"fastmath": {"contrac"}},
            "fastmath has no flag 'contrac'; flags are reassoc, nnan, ninf, nsz, arcp, contract, afn; "
            "did you mean 'contract'?",
        ),
        ({"fastmath": [3]}, "fastmath has no flag 3; flags are reassoc, nnan, ninf, nsz, arcp, contract, afn"),
        (
            {"fp_contract": "off", "fastmath": "fast"},
            "fp_contract='off' forbids every contraction, but fastmath has the flag 'contract'; "
            "use fp_contract='on' or leave 'contract' out",
        ),
        ({"strategy": "both"}, "strategy must be one of explicit, llvm, not 'both'"),
        ({"bf16": "round"}, "bf16 must be one of round-each, excess, not 'round'; did you mean 'round-each'?"),
        ({"threads": 0}, "threads must be None or at least 1, not 0"),
        ({"threads": 2.0}, "threads must be None or at least 1, not 2.0"),
        ({"vector_bits": 64}, "vector_bits must be one of 128, 256, 512, not 64"),
        ({"opt_level": 4}, "opt_level must be one of 0, 1, 2, 3, not 4"),
        ({"opt_level": True}, "opt_level must be one of 0, 1, 2, 3, not True"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError) as error:
        CompileOptions(**arguments)
    assert str(error.value) == message


def test_fastmath_of_another_kind_is_a_type_error() -> None:
    with pytest.raises(GraphTypeError, match=r"^fastmath must be 'none', 'fast' or a set of flags, not 3$"):
        CompileOptions(fastmath=3)  # type: ignore[arg-type]


def test_environment_stands_in_for_missing_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_FP_CONTRACT", "fast")
    monkeypatch.setenv("HALFULP_FASTMATH", "nsz,contract")
    assert CompileOptions().fp_contract == "fast"
    assert CompileOptions().fastmath == {"nsz", "contract"}
    assert (
        CompileOptions(fp_contract="on", fastmath="none").key() == CompileOptions(fp_contract="on", fastmath=()).key()
    )
    assert CompileOptions(fastmath={"afn"}).fastmath == {"afn"}


def test_environment_mistakes_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_FP_CONTRACT", "yes")
    with pytest.raises(GraphError, match=r"^HALFULP_FP_CONTRACT must be one of off, on, fast, not 'yes'$"):
        CompileOptions()
    assert CompileOptions(fp_contract="on").fp_contract == "on"
    monkeypatch.setenv("HALFULP_FP_CONTRACT", "off")
    monkeypatch.setenv("HALFULP_FASTMATH", "unsafe")
    with pytest.raises(GraphError, match=r"^HALFULP_FASTMATH has no flag 'unsafe'; flags are "):
        CompileOptions()
    monkeypatch.setenv("HALFULP_FASTMATH", "contract")
    with pytest.raises(GraphError, match=r"^HALFULP_FP_CONTRACT='off' forbids every contraction, but HALFULP_"):
        CompileOptions()


def test_environment_yields_where_it_contradicts_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALFULP_FASTMATH", "fast")
    assert CompileOptions(fp_contract="off").fastmath == set(FASTMATH_FLAGS) - {"contract"}
    monkeypatch.setenv("HALFULP_FP_CONTRACT", "off")
    assert CompileOptions(fastmath={"contract"}).fp_contract == "on"


def test_replace_keeps_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CompileOptions(fastmath={"nsz"}, vector_bits=256)
    monkeypatch.setenv("HALFULP_FP_CONTRACT", "fast")
    changed = options.replace(threads=1)
    assert changed.key() == options.key()
    assert changed.threads == 1
    message = r"^CompileOptions has no option 'thread'; options: fp_contract, .*; did you mean 'threads'\?$"
    with pytest.raises(GraphTypeError, match=message):
        options.replace(thread=1)


def test_key_holds_what_decides_the_code() -> None:
    options = CompileOptions(fastmath={"contract", "nsz"}, vector_bits=512)
    assert options.key() == (
        "fp_contract=on fastmath=nsz,contract strategy=explicit bf16=round-each vector_bits=512 opt_level=2"
    )
    assert options.key() == options.replace(threads=3).key()
    others: list[dict[str, Any]] = [
        {"fp_contract": "fast"},
        {"fastmath": "none"},
        {"strategy": "llvm"},
        {"bf16": "excess"},
        {"vector_bits": None},
        {"opt_level": 0},
    ]
    assert len({options.replace(**change).key() for change in others} | {options.key()}) == len(others) + 1


def test_options_are_frozen_and_comparable() -> None:
    options = CompileOptions(fastmath={"nsz"})
    assert options == CompileOptions(fastmath=["nsz"])
    assert hash(options) == hash(CompileOptions(fastmath=["nsz"]))
    with pytest.raises(AttributeError):
        options.threads = 2  # type: ignore[misc]
