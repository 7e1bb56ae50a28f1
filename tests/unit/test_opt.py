"""halfulp-opt: its options, its exit status and its messages."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.ir import Attribute
from xdsl.universe import Universe

from halfulp.compiler.dialects import get_all_dialects
from halfulp.compiler.opt import CommandLineError, excerpt, main, parse_options
from halfulp.compiler.options import CompileOptions
from halfulp.compiler.passes import get_all_passes

SQUARE = """\
func.func @square(%x: f32) -> f32 {
  %y = arith.mulf %x, %x fastmath<nnan> : f32
  func.return %y : f32
}
"""
# Two values are returned where one is declared.
WRONG = SQUARE.replace("%y : f32\n}", "%x, %y : f32, f32\n}")
# Long enough for a lexer that backtracks to take years.
UNCLOSED = '"test.op() {' + "a = 1, " * 12 + "b = 2} : () -> ()"

Opt = Callable[..., tuple[int, str, str]]


@pytest.fixture
def opt(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Opt:
    """Runs halfulp-opt on a text, written to the file `in.mlir` of an empty folder: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(text: str | bytes, *arguments: str) -> tuple[int, str, str]:
        Path("in.mlir").write_bytes(text if isinstance(text, bytes) else text.encode())
        status = main(["in.mlir", *arguments])
        return (status, *capsys.readouterr())

    return run


def test_output_can_be_read_again(opt: Opt) -> None:
    status, output, errors = opt(SQUARE)
    assert (status, errors) == (0, "")
    assert opt(output) == (0, output, "")


def test_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in ([], ["-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SQUARE.encode())))
        assert main(arguments) == 0
        assert "func.func @square" in capsys.readouterr().out


def test_writes_the_file_of_option_o(opt: Opt) -> None:
    assert opt(SQUARE, "-o", "out.mlir") == (0, "", "")
    assert "func.func @square" in Path("out.mlir").read_text()


ERRORS: dict[str, tuple[str | bytes, list[str], int, str]] = {
    "failed verification": (
        WRONG,
        [],
        1,
        "Expected arguments to have the same types as the function output types: expected [f32], got [f32, f32]\n"
        '    "func.return"(%x, %y) : (f32, f32) -> ()\n'
        "    ^^^^^^^^^^^^^\n",
    ),
    "syntax": ("%x 1", [], 1, "in.mlir:1:4\n%x 1\n   ^\n   Expected '=' after operation result list\n"),
    "string without end": (
        UNCLOSED,
        [],
        1,
        f"in.mlir:1:1\n{UNCLOSED}\n^\nEnd of file reached before closing string literal.\n",
    ),
    "not text": (b"//\xff", [], 1, "the input must be UTF-8 text, and byte 2 of it is not\n"),
    "unknown pass": (
        SQUARE,
        ["-p", "cse,no-such-pass"],
        2,
        "halfulp-opt: error: there is no pass 'no-such-pass'; halfulp-opt --help lists them\n",
    ),
    "misspelt pass": (
        SQUARE,
        ["-p", "licn"],
        2,
        "halfulp-opt: error: there is no pass 'licn'; did you mean 'licm'?\n",
    ),
    "unknown pass option": (
        SQUARE,
        ["-p", "cse{depth=1}"],
        2,
        "halfulp-opt: error: pass 'cse': Provided arguments [\"depth\"] not found in expected arguments []\n",
    ),
    "pipeline syntax": (
        SQUARE,
        ["-p", "cse{"],
        2,
        "halfulp-opt: error: Error parsing pass pipeline specification:\n"
        "pass-pipeline:1:5\ncse{\n    ^\n    Expected argument name here\n\n",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_error_is_a_short_message(opt: Opt, case: str) -> None:
    text, arguments, status, message = ERRORS[case]
    assert opt(text, *arguments) == (status, "", message)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (
            "graph",
            "the module is at stage loops and cannot go back to graph; stages from there are loops, llvm, ll, asm\n",
        ),
        (
            "ptx",
            "the module is at stage loops, from which no way leads to nvptx64/sm_90; give a module of an earlier "
            "stage, graph or tile\n",
        ),
    ],
)
def test_stages_that_the_input_cannot_reach(opt: Opt, stage: str, message: str) -> None:
    assert opt(SQUARE, "--emit", stage) == (1, "", message)


def test_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no/such.mlir"]) == 1
    assert capsys.readouterr().err == "halfulp-opt: error: no/such.mlir: No such file or directory\n"


def test_unknown_option_ends_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--no-such-option"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith("halfulp-opt: error: unrecognized arguments: --no-such-option\n")


def test_disable_verify_holds_for_one_run_only(opt: Opt) -> None:
    post_init = Attribute.__post_init__
    assert opt(WRONG, "--disable-verify")[0] == 0
    assert Attribute.__post_init__ is post_init
    assert opt(WRONG)[0] == 1


def test_excerpt_shows_every_marked_op() -> None:
    note = """\
"m"() ({
  "a"() : () -> ()
  ^^^-----
  | first
  "b"() : () -> ()
  ^^^-----
  | second
}) : () -> ()
"""
    assert excerpt(note) == '  "a"() : () -> ()\n  ^^^\n  "b"() : () -> ()\n  ^^^'


def test_excerpt_keeps_a_note_without_marks() -> None:
    assert excerpt("see there\n") == "see there\n"


def test_options_are_written_like_their_key() -> None:
    options = CompileOptions(fp_contract="fast", fastmath={"nsz", "arcp"}, vector_bits=256)
    assert parse_options(options.key()) == options
    assert parse_options("") == CompileOptions()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fp_contract", "--options takes name=value, not 'fp_contract'"),
        ("fp_contract=of", "--options: fp_contract must be one of off, on, fast, not 'of'; did you mean 'off'?"),
        ("vector_bits=100", "--options: vector_bits must be one of 128, 256, 512, not 100"),
    ],
)
def test_wrong_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(CommandLineError) as error:
        parse_options(text)
    assert str(error.value) == message


def test_plain_xdsl_opt_knows_our_dialects_and_passes() -> None:
    everything = Universe.get_multiverse()  # raises if a name of ours is one of xDSL's
    assert get_all_dialects().keys() <= everything.all_dialects.keys()
    assert get_all_passes().keys() <= everything.all_passes.keys()


@pytest.mark.parametrize("name", get_all_dialects())
def test_dialect_is_registered_under_its_own_name(name: str) -> None:
    assert get_all_dialects()[name]().name == name
