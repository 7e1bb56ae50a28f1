"""PTX text -> `Module`: directives, variables, kernels and functions with their statements in order."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from .errors import PtxSyntaxError, UnsupportedPtxError
from .instruction_parser import integer_value, parse_instruction, split_list
from .syntax import BranchTargets, Function, Item, Label, Module, Registers, Variable
from .types import TYPES

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s*")
_LINE_DIRECTIVE = re.compile(r"\.(version|target|address_size|file|loc)\b([^\n]*)")
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\b\s*")
_VARIABLE_SPACE = re.compile(r"\.(global|const|shared|local|param)\b")
_FUNCTION = re.compile(r"\.(entry|func)\b\s*(?:\.noreturn\s*)?(\([^)]*\))?\s*([\w$]+)\s*(\((?:[^()]|\([^()]*\))*\))?")
_FUNCTION_DIRECTIVE = re.compile(r"\s*\.(reqntid|maxntid|minnctapersm|maxnreg|noreturn|pragma)\b([^.{;]*)")
_LABEL = re.compile(r"([\w$%]+)\s*:(?!:)")
_STATEMENT = re.compile(r"[^;]*;")
_REGISTERS = re.compile(r"\.reg \.(\w+) (?:([\w$%]+) ?<(\d+)>|([\w$%]+(?:, ?[\w$%]+)*))")
_VARIABLE = re.compile(
    r"\.(?P<space>\w+)\s*(?P<attributes>(?:\.\w+\s*\d*\s*)*?)\.(?P<type>[a-z]+\d+(?:x2)?)\s+"
    r"(?:\.ptr\s*(?:\.\w+\s*)?(?:\.align\s+\d+\s*)?)?"
    r"(?P<name>[\w$%]+)\s*(?P<array>\[\s*\d*\s*\])?\s*(?:=\s*(?P<initial>.*))?",
    re.DOTALL,
)
_ALIGN = re.compile(r"\.align\s+(\d+)")


def parse_ptx(text: str) -> Module:
    """Parses a module.

    Raises:
        PtxSyntaxError: the text is not of that form.
        UnsupportedPtxError: a directive or a type that the emulator does not cover.
    """
    return _Parser(_COMMENT.sub(_newlines, text)).module()


def _newlines(match: re.Match[str]) -> str:
    """Comments vanish, the numbers of the lines stay."""
    return " " + "\n" * match[0].count("\n")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def module(self) -> Module:
        module = Module()
        while self.skip_space():
            if match := self.take(_LINE_DIRECTIVE):
                if match[1] in ("version", "target"):
                    setattr(module, match[1], match[2].strip())
                elif match[1] == "address_size" and match[2].strip() != "64":
                    raise self.unsupported(f".address_size{match[2]}; addresses have 64 bits")
                continue
            linkage = match[1] if (match := self.take(_LINKAGE)) else ""
            if match := self.take(_FUNCTION):
                self.function(module, match)
            elif _VARIABLE_SPACE.match(self.text, self.place):
                module.variables.append(self.variable(self.statement(), linkage == "extern"))
            else:
                raise self.unexpected("a directive")
        return module

    def function(self, module: Module, match: re.Match[str]) -> None:
        line = self.line_of(match.start())
        kind, results, name, parameters = match.groups()
        threads: tuple[int, int, int] | None = None
        most: int | None = None
        while directive := self.take(_FUNCTION_DIRECTIVE):
            sizes = [integer_value(part) for part in split_list(directive[2])] if "ntid" in directive[1] else []
            x, y, z = [*sizes, 1, 1, 1][:3]
            if directive[1] == "reqntid":
                threads = (x, y, z)
            elif directive[1] == "maxntid":
                most = x * y * z
        self.skip_space()
        if self.text.startswith(";", self.place):
            self.place += 1
            body = None
        else:
            body = tuple(self.body())
        function = Function(
            line,
            name,
            kind == "entry",
            tuple(self.parameters(results)),
            tuple(self.parameters(parameters)),
            body,
            threads,
            most,
        )
        if body is not None or name not in module.functions:
            module.functions[name] = function

    def parameters(self, text: str | None) -> Iterator[Variable]:
        for part in split_list(text[1:-1]) if text else []:
            yield self.variable(part, is_extern=False)

    def body(self) -> Iterator[Item]:
        """The statements between the braces; inner scopes are flattened."""
        self.expect("{")
        depth = 1
        while depth:
            if not self.skip_space():
                raise self.unexpected("'}'")
            sign = self.text[self.place]
            if sign in "{}":
                depth += 1 if sign == "{" else -1
                self.place += 1
            elif not self.take(_LINE_DIRECTIVE):
                item = self.item()
                if item is not None:
                    yield item

    def item(self) -> Item | None:
        if label := self.take(_LABEL):
            self.skip_space()
            if self.text.startswith(".branchtargets", self.place):
                targets = self.statement().removeprefix(".branchtargets")
                return BranchTargets(label[1], tuple(split_list(targets)))
            return Label(label[1])
        line = self.line_of(self.place)
        text = self.statement()
        if not text.startswith("."):
            return parse_instruction(text, line)
        if text.startswith(".reg"):
            return self.registers(text, line)
        if _VARIABLE_SPACE.match(text):
            return self.variable(text, is_extern=False, line=line)
        if text.startswith(".pragma"):
            return None
        raise UnsupportedPtxError(f"PTX line {line}: {text}: the emulator does not know this directive")

    def registers(self, text: str, line: int) -> Registers:
        match = _REGISTERS.fullmatch(text)
        if match is None:
            raise PtxSyntaxError(f"PTX line {line}: {text}: expected .reg, a type and names")
        type, name, count, names = match.groups()
        if type not in TYPES:
            raise UnsupportedPtxError(
                f"PTX line {line}: {text}: the emulator has registers of up to 64 bits, without vectors"
            )
        if count:
            return Registers(type, (name,), int(count))
        return Registers(type, tuple(split_list(names)), None)

    def variable(self, text: str, is_extern: bool, line: int | None = None) -> Variable:
        match = _VARIABLE.fullmatch(text)
        line = self.line_of(self.place) if line is None else line
        if match is None:
            raise PtxSyntaxError(f"PTX line {line}: {text}: expected a variable")
        if match["type"] not in TYPES:
            raise UnsupportedPtxError(f"PTX line {line}: {text}: the emulator does not know the type .{match['type']}")
        element = TYPES[match["type"]].nbytes
        array = match["array"]
        length = array.strip("[] \t\n") if array else ""
        size = None if array and not length else element * int(length or 1)
        align = _ALIGN.search(match["attributes"])
        initial = _initial_bytes(match["initial"], element, text, line) if match["initial"] else None
        if size is None and initial is not None:
            size = len(initial)
        if size is not None and initial is not None:
            initial = initial.ljust(size, b"\0")
        if size is None and not (match["space"] == "shared" and is_extern):
            raise PtxSyntaxError(f"PTX line {line}: {text}: only .extern .shared arrays may leave out their length")
        alignment = int(align[1]) if align else element
        return Variable(line, match["space"], match["name"], alignment, size, initial, match["type"], array is not None)

    # the text

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.place)
        if match:
            self.place = match.end()
        return match

    def skip_space(self) -> bool:
        """Whether any text is left."""
        self.take(_SPACE)
        return self.place < len(self.text)

    def statement(self) -> str:
        """The text up to the semicolon, with single spaces."""
        match = self.take(_STATEMENT)
        if match is None:
            raise self.unexpected("a statement that ends with ';'")
        return " ".join(match[0][:-1].split())

    def expect(self, sign: str) -> None:
        if not self.text.startswith(sign, self.place):
            raise self.unexpected(repr(sign))
        self.place += len(sign)

    def line_of(self, place: int) -> int:
        return bisect_right(self.line_starts, place)

    def unexpected(self, wanted: str) -> PtxSyntaxError:
        line = self.text[self.place :].partition("\n")[0].strip()
        return PtxSyntaxError(f"PTX line {self.line_of(self.place)}: {line or 'end of text'}: expected {wanted}")

    def unsupported(self, what: str) -> UnsupportedPtxError:
        return UnsupportedPtxError(f"PTX line {self.line_of(self.place)}: {what}")


def _initial_bytes(text: str, element: int, statement: str, line: int) -> bytes:
    """The bytes of an initialiser: numbers in (nested) braces, or one number."""
    values = []
    for part in re.sub(r"[{}]", " ", text).split(","):
        literal = part.strip()
        if not literal:
            continue
        try:
            value = int(literal[2:], 16) if literal[:2] in ("0f", "0d", "0F", "0D") else integer_value(literal)
        except ValueError:
            raise UnsupportedPtxError(
                f"PTX line {line}: {statement}: the emulator initialises variables with numbers only, not {literal!r}"
            ) from None
        values.append((value % (1 << 8 * element)).to_bytes(element, "little"))
    return b"".join(values)
