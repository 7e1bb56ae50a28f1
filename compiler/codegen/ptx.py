"""NVIDIA GPUs as a target, and LLVM text -> PTX, made in a child process.

LLVM ends the process over some things that NVPTX has no code for. So it runs in a child; a child that dies becomes a
CompileError that names the kernel.

The interface between a kernel and its launcher
-----------------------------------------------

``PtxKernel`` (``compiler/ptx_artifact``) describes each ``.entry``. Its parameters are, in order:

- ``status``: a global pointer to ``1 + 4 * blocks`` i64 words, or 0 for a kernel without checks.
- ``scratch``: a global pointer to ``blocks * scratch_bytes`` bytes at a multiple of 256, or 0 if there are none.
- the grid's sizes, an i64 each.
- the kernel's own arguments: for a reference a global pointer and then an i64 for each extent, the static ones too;
  for a scalar its value in its own type (an index is an i64, a bool a byte, f16 and bf16 two bytes).

It is launched with ``blocks x 1 x 1`` blocks of ``threads x 1 x 1`` threads and no dynamic shared memory. The leading
``split`` axes of the grid are parallel; a *task* is a point of theirs, and block b takes tasks b, b + blocks, ... So
any number of blocks is right. The axes behind run in order inside a block. A grid with a size of zero or less is not
launched, nor is one of more than 2^48 programs.

Memory is in C order; a bool takes a byte. All pointers are aligned to 16 bytes.

Checks: before a launch ``status[0]`` is all ones. It ends as the least ``program << 15 | check`` of those that failed,
in unsigned order, where ``program`` is the row-major number in the grid and ``check`` that in the kernel's text. Its
values are in ``status[1 + 4 * block]`` and on, where block is the remainder by ``blocks`` of ``program`` divided by the
product of the sizes behind ``split``.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from ..errors import CompileError, quoted_list

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
DEFAULT_ARCHITECTURE = "sm_90"


@dataclass(frozen=True)
class PtxTarget:
    """A generation of GPUs: ``sm_90``. What is compiled for one runs on the later ones, too."""

    cpu: str

    triple = TRIPLE
    arch = "nvptx64"
    vector_bits = 0  # a thread takes one element at a time
    scales = False  # no instruction multiplies by a power of two
    permutes = 0  # nor takes elements of a table

    @property
    def name(self) -> str:
        """The target's name in the table of what selects: ``nvptx64/sm_90``."""
        return f"{self.arch}/{self.cpu}"

    @property
    def function_attributes(self) -> dict[str, str]:
        """String attributes every function compiled for this target gets."""
        return {}


def ptx_target(name: str) -> PtxTarget:
    """The target of this name. CompileError, with the known ones, for another."""
    if name not in ARCHITECTURES:
        raise CompileError(f"target {name!r} is none that halfulp compiles for; use {quoted_list(ARCHITECTURES)}")
    return PtxTarget(name)


# -- the child


def make_ptx(llvm_text: str, cpu: str, opt_level: int) -> str:
    """LLVM text to PTX, in this process: LLVM may end it. RuntimeError for text that LLVM rejects."""
    import llvmlite.binding as llvm

    from .cpu import optimize

    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, opt=opt_level)
    module = llvm.parse_assembly(llvm_text, context=llvm.create_context())
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    module.verify()
    optimize(module, machine, opt_level)
    text: str = machine.emit_assembly(module)
    return text


def _write(stream: IO[bytes], text: str) -> None:
    data = text.encode()
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def _read(stream: IO[bytes]) -> str | None:
    """The next text; None at the end of the stream, also if that comes before the end of the text."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    length = int.from_bytes(head, "little")
    data = stream.read(length)
    return data.decode() if len(data) == length else None


def serve() -> None:
    """The child: answers each request, ``cpu opt_level`` and LLVM text, by ``ptx`` or ``error`` and a text."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (settings := _read(source)) is not None and (text := _read(source)) is not None:
        cpu, opt_level = settings.split()
        try:
            kind, answer = "ptx", make_ptx(text, cpu, int(opt_level))
        except RuntimeError as error:
            kind, answer = "error", str(error)
        _write(sink, kind)
        _write(sink, answer)


# -- the parent


class _Child:
    """A process that makes PTX, one text after another."""

    def __init__(self) -> None:
        self.said = TemporaryFile()  # noqa: SIM115 (closed when the child has ended)
        command = [sys.executable, "-m", __name__]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.said)

    def ask(self, llvm_text: str, cpu: str, opt_level: int) -> tuple[str, str]:
        """``ptx`` or ``error`` with a text; ``died`` with what the child last said if LLVM ended it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            _write(self.process.stdin, f"{cpu} {opt_level}")
            _write(self.process.stdin, llvm_text)
            kind = _read(self.process.stdout)
            answer = _read(self.process.stdout)
        except OSError:
            kind = answer = None
        if kind is None or answer is None:
            return "died", self.end()
        return kind, answer

    def end(self) -> str:
        """Ends the child; what it wrote to its standard error."""
        self.process.communicate()
        with self.said:
            self.said.seek(0)
            return self.said.read().decode(errors="replace")

    def leave(self) -> None:
        """Closes what this process, a fork, has of the pipes: the child is its parent's and ends when that closes them.

        A request may be half written, and the buffer's lock may be held by a thread that this process does not have;
        so the descriptors are replaced and not the files closed.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (self.process.stdin, self.process.stdout, self.said):
            os.dup2(nowhere, stream.fileno(), inheritable=False)
        os.close(nowhere)
        self.process.poll()  # no child of this process, so it counts as ended


_lock = threading.Lock()
_children: list[_Child] = []
"""The one that waits for a text or works on one; none before the first text, and after one that died."""
_left: list[_Child] = []
"""Those of the process that this one was forked from: kept, since closing their files is not for us."""


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # the owner of the old one may be gone
    _left.extend(_children)
    for child in _children:
        child.leave()
    _children.clear()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end_children() -> None:
    for child in _children:
        child.end()
    _children.clear()


def _ask(llvm_text: str, target: PtxTarget, opt_level: int) -> tuple[str, str]:
    """One text at a time; a child is kept for the next one."""
    with _lock:
        if not _children:
            _children.append(_Child())
        child, kind = _children[0], "died"
        try:
            kind, answer = child.ask(llvm_text, target.cpu, opt_level)
        except BaseException:  # Ctrl-C: its answer would be taken for that to the next text
            child.process.kill()
            child.end()
            raise
        finally:
            if kind == "died":
                _children.remove(child)
        return kind, answer


def compile_to_ptx(llvm_text: str, target: PtxTarget, opt_level: int = 2) -> str:
    """Optimises a module of kernels and gives its PTX.

    Raises:
        CompileError: LLVM rejects the text, or died over it; the message has what it said.
    """
    kind, answer = _ask(llvm_text, target, opt_level)
    if kind == "error":
        raise CompileError(f"LLVM rejects the module: {answer.strip()}")
    if kind == "died":
        raise _fatal(llvm_text, target, opt_level, answer)
    return answer


def _fatal(llvm_text: str, target: PtxTarget, opt_level: int, said: str) -> CompileError:
    """The error about the kernel that LLVM dies over: each is tried alone."""
    kernels = _kernels_alone(llvm_text)
    names = list(kernels)
    for name, text in kernels.items() if len(kernels) > 1 else ():
        kind, answer = _ask(text, target, opt_level)
        if kind == "died":
            names, said = [name], answer
            break
    last_words = next((line for line in said.splitlines() if "LLVM ERROR" in line), said.strip()[-200:])
    return CompileError(f"LLVM cannot make PTX of the kernel {quoted_list(names)}: {last_words}")


def _kernels_alone(llvm_text: str) -> dict[str, str]:
    """Of each kernel a module that has no other: its function, and all that stands outside of functions."""
    outside: list[str] = []
    functions: dict[str, list[str]] = {}
    current = outside
    for line in llvm_text.splitlines():
        if line.startswith("define ptx_kernel"):
            current = functions.setdefault(line.partition("@")[2].partition("(")[0], [])
        current.append(line)
        if line == "}":
            current = outside
    return {name: "\n".join([*outside, *lines]) for name, lines in functions.items()}


if __name__ == "__main__":
    serve()
