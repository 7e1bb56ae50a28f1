"""NVIDIA's own tools: ``ptxas`` makes machine code of PTX, ``nvdisasm`` shows it.

Neither is needed to run a graph, since a driver has an assembler of its own. They come with a CUDA toolkit, and from
PyPI as ``nvidia-cuda-nvcc`` and ``nvidia-cuda-nvdisasm``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import CompileError

PACKAGES = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
"""The packages of PyPI that the programs come with."""


@cache
def find_tool(name: str) -> Path:
    """Where a program is: on the path, or in its package. CompileError, with the package, if it is nowhere."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for path in sorted(Path(folder).glob(f"*/bin/{name}")):
            return path
    raise CompileError(f"{name} is not installed; pip install {PACKAGES[name]}, or put a CUDA toolkit on the path")


def _run(name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(find_tool(name)), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"{name} rejects the code: {(done.stderr or done.stdout).strip()}")
    return done


@dataclass(frozen=True)
class KernelUsage:
    """What a kernel takes of a GPU, as ``ptxas`` says. Spills and stack are bytes of slow memory for each thread."""

    kernel: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int

    def __str__(self) -> str:
        return (
            f"{self.kernel}: {self.registers} registers, {self.shared_bytes} bytes of shared memory,"
            f" {self.stack_bytes} of stack, {self.spill_stores} of spill stores, {self.spill_loads} of spill loads"
        )


def assemble(ptx: str, arch: str) -> tuple[bytes, list[KernelUsage]]:
    """The machine code of PTX for an architecture (``sm_90``), and what each kernel takes.

    CompileError, with what ``ptxas`` says, for PTX that it rejects.
    """
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "kernels.ptx"), Path(folder, "kernels.cubin")
        source.write_text(ptx, encoding="utf-8")
        said = _run("ptxas", [f"-arch={arch}", "-v", str(source), "-o", str(target)])
        return target.read_bytes(), _usage(said.stderr + said.stdout)


_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def _usage(text: str) -> list[KernelUsage]:
    """Reads ``ptxas -v``: of each kernel its name, then its stack, then its registers, a line each."""
    found, name, stack = [], "", (0, 0, 0)
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            name = match[1]
        elif match := _STACK.search(line):
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif match := _USED.search(line):
            shared = _SHARED.search(line)
            found.append(KernelUsage(name, int(match[1]), int(shared[1]) if shared else 0, *stack))
    return sorted(found, key=lambda usage: usage.kernel)


def disassemble(ptx: str, arch: str) -> str:
    """The machine instructions of PTX, as ``nvdisasm`` writes them."""
    code, _ = assemble(ptx, arch)
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernels.cubin")
        path.write_bytes(code)
        return _run("nvdisasm", ["-c", str(path)]).stdout
