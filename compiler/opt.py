"""`halfulp-opt`: read IR, run passes, print the result of any stage.

This is xDSL's `xdsl-opt` with three differences: it knows xDSL's and halfulp's dialects and passes whatever
else is installed, `--emit` continues to any later stage of compilation, and errors are short. `halfulp opt`
is the same program.

Exit status: 0, 1 for a fault in the input or in a pass, 2 for a command line that cannot be understood.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.universe import XDSL_UNIVERSE
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.diagnostic import Diagnostic
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.mlir_lexer import MLIRLexer
from xdsl.xdsl_opt_main import xDSLOptMain

from .errors import HalfulpError, near_names
from .options import CompileOptions
from .universe import HALFULP_UNIVERSE

PROGRAM = "halfulp-opt"
DESCRIPTION = "Reads IR from a file or from standard input, runs passes and prints the result."

# xDSL 0.75 needs exponential time to see that a string literal lacks its closing quote: a misprint in a long
# line looks like an endless loop. The same pattern with a possessive repetition fails at once.
PATTERN = "_unescaped_characters_regex"
STRING_LITERAL = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')


class CommandLineError(ValueError):
    """An argument that names or sets something that does not exist."""


class HalfulpOptMain(xDSLOptMain):
    """The program as an object: construct it with the arguments, then `run()`.

    Output goes to `sys.stdout` unless `-o` is given. Raises what the parser, the verifier or a pass raises;
    `main()` turns that into messages.
    """

    version_format = f"{PROGRAM} built from xdsl version {{xdsl_version}}"

    def __init__(self, args: Sequence[str] | None = None) -> None:
        super().__init__(DESCRIPTION, args)

    def register_all_dialects(self) -> None:
        for universe in (XDSL_UNIVERSE, HALFULP_UNIVERSE):
            for name, load in universe.all_dialects.items():
                self.ctx.register_dialect(name, load)

    def register_all_passes(self) -> None:
        for universe in (XDSL_UNIVERSE, HALFULP_UNIVERSE):
            self.available_passes.update(universe.all_passes)

    def register_all_frontends(self) -> None:
        self.available_frontends.update(XDSL_UNIVERSE.all_frontends)

    def register_all_targets(self) -> None:
        self.available_targets.update(XDSL_UNIVERSE.all_targets)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = PROGRAM
        ours = ", ".join(HALFULP_UNIVERSE.all_passes)
        arg_parser.epilog = f"Passes of halfulp, in the order of the pipeline: {ours}"
        arg_parser.add_argument(
            "--emit",
            metavar="STAGE",
            help="after the passes, compile on and print a stage: graph, tile, loops, llvm, ll or asm for the CPU;"
            " graph, tile, gpu, llvm, ll, ptx or sass for a GPU",
        )
        arg_parser.add_argument(
            "--arch",  # xDSL has a --target of its own
            metavar="ARCH",
            help="the GPU that --emit compiles for: sm_80, sm_90 or sm_100; without it a CPU, or sm_90 for stages that"
            " only GPUs have",
        )
        arg_parser.add_argument(
            "--options",
            default="",
            help="compile options for --emit, as in 'fp_contract=off fastmath=nsz,arcp vector_bits=256'",
        )

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The input as bytes; whatever a file is called, it holds MLIR text."""
        if self.args.input_file in (None, "-"):
            return sys.stdin.buffer, "mlir"
        return open(self.args.input_file, "rb"), "mlir"

    def setup_pipeline(self) -> None:
        """Check the names and options of the passes before anything is read."""
        for spec in parse_pipeline(self.args.passes):
            load = self.available_passes.get(spec.name)
            if load is None:
                raise CommandLineError(_unknown("pass", spec.name, self.available_passes))
            try:
                load().from_pass_spec(spec)
            except ValueError as error:
                raise CommandLineError(f"pass '{spec.name}': {error}") from error
        super().setup_pipeline()  # type: ignore[no-untyped-call]

    def parse_chunk(self, chunk: IO[bytes], file_extension: str, start_offset: int = 0) -> ModuleOp | None:
        with _as_diagnostics():
            return super().parse_chunk(chunk, file_extension, start_offset)

    def apply_passes(self, prog: ModuleOp) -> None:
        with _as_diagnostics():
            super().apply_passes(prog)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        if self.args.emit is None:
            return super().output_resulting_program(prog)
        from .pipeline import ALL_STAGES, emit

        if self.args.emit not in ALL_STAGES:
            raise CommandLineError(_unknown("stage", self.args.emit, ALL_STAGES))
        with _as_diagnostics():
            return emit(prog, self.args.emit, parse_options(self.args.options), self.args.arch)


def parse_options(text: str, subject: str = "--options") -> CompileOptions:
    """The options of `--options`, written as `CompileOptions.key()` prints them. `subject` begins the messages.

    Raises CommandLineError for anything but known names with possible values.
    """
    changes: dict[str, str | int | None] = {}
    for setting in text.split():
        name, equals, value = setting.partition("=")
        if not equals:
            raise CommandLineError(f"{subject} takes name=value, not '{setting}'")
        changes[name] = None if value == "native" else int(value) if value.isdecimal() else value
    try:
        return CompileOptions().replace(**changes)
    except HalfulpError as error:
        raise CommandLineError(f"{subject}: {error}") from error


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    remedy = near_names(name, known) or f"; {PROGRAM} --help lists them"
    return f"there is no {kind} '{name}'{remedy}"


@contextmanager
def _as_diagnostics() -> Iterator[None]:
    """Turn the faults that input can have into xDSL diagnostics, and keep their notes short.

    xDSL attaches the whole module, in generic form, to every failed verification.
    """
    try:
        yield
    except DiagnosticException as error:
        error.__notes__ = [excerpt(note) for note in getattr(error, "__notes__", [])]
        raise
    except HalfulpError as error:
        raise DiagnosticException(str(error)) from error
    except UnicodeDecodeError as error:
        raise DiagnosticException(f"the input must be UTF-8 text, and byte {error.start} of it is not") from error


def excerpt(note: str) -> str:
    """The marked op of a note of xDSL's `Diagnostic`, and the carets under it.

    The marker is a line of carets, filled up with dashes to the width of the message box that follows. A
    note without a marker is returned whole.
    """
    lines = note.splitlines()
    marked = [i for i, line in enumerate(lines) if i > 0 and line.lstrip().startswith("^^")]
    if not marked:
        return note
    return "\n".join(line for i in marked for line in (lines[i - 1], lines[i].rstrip("-")))


def describe(error: BaseException) -> str:
    """The message of an error followed by its notes, each on lines of its own."""
    parts = [str(error), *getattr(error, "__notes__", [])]
    return "\n".join(part.rstrip("\n") for part in parts)


@contextmanager
def _adjusted_xdsl() -> Iterator[None]:
    """Replace xDSL's string pattern and, at the end, undo every change of xDSL's classes.

    `--disable-verify` and `--syntax-highlight` too work by changing classes, for the whole process.
    """
    post_init, colored, pattern = Attribute.__post_init__, Diagnostic.colored, getattr(MLIRLexer, PATTERN)
    setattr(MLIRLexer, PATTERN, STRING_LITERAL)
    try:
        yield
    finally:
        Attribute.__post_init__ = post_init  # type: ignore[method-assign]
        Diagnostic.colored = colored
        setattr(MLIRLexer, PATTERN, pattern)


def main(args: Sequence[str] | None = None) -> int:
    """Run the program on `args` (default: those of the process) and return its exit status."""
    try:
        with _adjusted_xdsl():
            HalfulpOptMain(args).run()  # type: ignore[no-untyped-call]
    except (CommandLineError, ArgSpecParseError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    except (ParseError, DiagnosticException) as error:
        print(describe(error), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{PROGRAM}: error: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
