"""A loaded module: its variables in device memory, its kernels decoded, and launches of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halfulp.compiler.errors import near_names

from ..driver import Argument
from .decoder import decode_kernel
from .errors import LaunchError, PtxSyntaxError, Triple
from .global_memory import GlobalMemory
from .lanes import Lanes, Launch
from .layout import Layout
from .memory_instructions import Spaces
from .parser import parse_ptx
from .program import Program
from .races import RaceDetector
from .scheduler import Scheduler
from .spaces import FixedSpace, GenericSpace, GlobalSpace, LocalSpace, SharedSpace
from .syntax import Function, Module, Variable
from .types import TYPES, U8, U64, Array

# As CUDA has them for compute capability 8.0 and later.
_MAX_THREADS = 1024
_MAX_BLOCK: Triple = (1024, 1024, 64)
_MAX_GRID: Triple = (2**31 - 1, 65535, 65535)
_MAX_SHARED = 227 * 1024
_LANES_AT_ONCE = 1 << 13
_FILL = 0xFF  # fresh shared and local memory: NaN in every float type


@dataclass(frozen=True)
class Checks:
    """What a launch looks for beside wrong accesses, and for how many steps of a batch it goes on."""

    races: bool
    uninitialized: bool
    max_steps: int


@dataclass
class Kernel:
    """A decoded kernel and the memory of its parameters."""

    program: Program
    parameters: FixedSpace
    addresses: tuple[int, ...]


class EmulatedModule:
    """PTX that is loaded; implements `runtime.cuda.driver.LoadedModule`."""

    def __init__(self, ptx: str, memory: GlobalMemory, checks: Checks) -> None:
        self.memory = memory
        self.checks = checks
        self.module = parse_ptx(ptx)
        self.variables: dict[str, tuple[str, int]] = {}
        self._allocated: list[int] = []
        self.constants = self._place_variables(self.module)
        self.kernels = {
            function.name: self._kernel(function)
            for function in self.module.functions.values()
            if function.is_kernel and function.body is not None
        }

    def unload(self) -> None:
        """Frees the module's variables; its kernels are gone."""
        with self.memory.lock:
            for address in self._allocated:
                self.memory.free(address)
        self._allocated.clear()
        self.kernels.clear()

    def launch(
        self, kernel: str, grid: Triple, block: Triple, shared_bytes: int, arguments: Sequence[Argument]
    ) -> None:
        """Runs a kernel to its end; see `LoadedModule.launch`.

        Raises:
            LaunchError: before anything runs.
            KernelFaultError: the kernel did something that is undefined.
        """
        found = self.kernels.get(kernel)
        if found is None:
            raise LaunchError(f"the module has no kernel {kernel!r}{near_names(kernel, self.kernels)}")
        launch = Launch(kernel, grid, block, shared_bytes)
        check_launch(launch, found.program)
        with self.memory.lock, np.errstate(all="ignore"):
            _require_subnormals(kernel)
            pack_arguments(kernel, found, arguments)
            if found.program.dynamic_shared:
                found.program.shared.resize_last(shared_bytes)
            self._run(found.program, launch)

    def _run(self, program: Program, launch: Launch) -> None:
        races = None
        if self.checks.races:
            races = RaceDetector(launch, self.checks.uninitialized)
        blocks_at_once = max(1, _LANES_AT_ONCE // launch.lanes)
        for first in range(0, launch.blocks, blocks_at_once):
            blocks = range(first, min(first + blocks_at_once, launch.blocks))
            lanes = Lanes(launch, blocks, [])
            lanes.shared = np.full(_words(program.shared.nbytes) * len(blocks), _FILL, U8)
            lanes.local_bytes = _words(program.local.nbytes)
            lanes.local = np.full(lanes.local_bytes * lanes.count, _FILL, U8)
            lanes.registers = [initial(lanes) for initial in program.initial]
            if races is not None:
                races.start_batch(lanes)
                lanes.races = races
            Scheduler(program, lanes, self.checks.max_steps).run()

    def _kernel(self, function: Function) -> Kernel:
        layout = Layout()
        addresses = tuple(layout.place(p.name, p.size or 0, p.alignment) for p in function.parameters)
        parameters = FixedSpace(layout, "param", np.zeros(_words(layout.nbytes), U8))

        def make_spaces(shared: SharedSpace, local: LocalSpace) -> Spaces:
            spaces: dict[str, GlobalSpace | SharedSpace | LocalSpace | FixedSpace | GenericSpace] = {
                "global": GlobalSpace(self.memory),
                "shared": shared,
                "local": local,
                "const": self.constants,
                "param": parameters,
            }
            spaces["generic"] = GenericSpace(dict(spaces))
            return spaces

        named = {p.name: ("param", a) for p, a in zip(function.parameters, addresses, strict=True)}
        program = decode_kernel(self.module, function, {**self.variables, **named}, make_spaces)
        return Kernel(program, parameters, addresses)

    def _place_variables(self, module: Module) -> FixedSpace:
        """Global variables get memory of their own; constants go together into the space that is returned."""
        layout = Layout()
        constants: list[tuple[int, bytes]] = []
        for variable in module.variables:
            if variable.space == "global":
                self.variables[variable.name] = "global", self._place_global(variable)
            elif variable.space == "const":
                address = layout.place(variable.name, variable.size or 0, variable.alignment)
                constants.append((address, variable.initial or bytes(variable.size or 0)))
                self.variables[variable.name] = "const", address
            elif variable.space != "shared":
                raise PtxSyntaxError(f"PTX line {variable.line}: a module has no .{variable.space} variables")
        data = np.zeros(_words(layout.nbytes), U8)
        for address, initial in constants:
            data[address : address + len(initial)] = np.frombuffer(initial, U8)
        return FixedSpace(layout, "const", data)

    def _place_global(self, variable: Variable) -> int:
        size = variable.size or 0
        allocation = self.memory.allocate(size, variable.name)
        self._allocated.append(allocation.address)
        allocation.data[:size] = np.frombuffer(variable.initial or bytes(size), U8)
        return allocation.address


def _require_subnormals(kernel: str) -> None:
    """Numpy computes with the flags the thread has; some libraries leave flush-to-zero set in it."""
    if (np.array([2.0**-149], np.float32) * np.float32(1.0) == 0).any():
        raise LaunchError(
            f"kernel {kernel!r}: this thread flushes subnormal floats to zero, so numpy rounds otherwise than PTX; "
            "undo what set it (a library built with -ffast-math, torch.set_flush_denormal) before launching"
        )


def _words(nbytes: int) -> int:
    """Rounded up to the widest access, so that the memory of the next block or lane is aligned too."""
    return -(-nbytes // 16) * 16


def check_launch(launch: Launch, program: Program) -> None:
    """The rules of a launch. Raises LaunchError."""
    name = f"kernel {launch.kernel!r}"
    for what, sizes, limits in (("grid", launch.grid, _MAX_GRID), ("block", launch.block, _MAX_BLOCK)):
        if len(sizes) != 3 or not all(1 <= size <= limit for size, limit in zip(sizes, limits, strict=True)):
            raise LaunchError(f"{name}: {what} must be three numbers from 1 to {limits}, not {sizes}")
    if launch.threads > _MAX_THREADS:
        raise LaunchError(f"{name}: a block has at most {_MAX_THREADS} threads, not {launch.block} = {launch.threads}")
    function = program.function
    if function.required_threads not in (None, launch.block):
        raise LaunchError(f"{name} requires blocks of {function.required_threads} threads, not {launch.block}")
    if function.most_threads is not None and launch.threads > function.most_threads:
        raise LaunchError(f"{name} allows at most {function.most_threads} threads in a block, not {launch.threads}")
    if launch.dynamic_shared < 0 or (launch.dynamic_shared and not program.dynamic_shared):
        raise LaunchError(
            f"{name} has no .extern .shared array, so shared_bytes must be 0, not {launch.dynamic_shared}"
        )
    shared = program.static_shared + launch.dynamic_shared
    if shared > _MAX_SHARED:
        raise LaunchError(f"{name}: a block has at most {_MAX_SHARED} bytes of shared memory, not {shared}")


def pack_arguments(name: str, kernel: Kernel, arguments: Sequence[Argument]) -> None:
    """Writes the arguments into the memory of the parameters. Raises LaunchError if number or kind do not fit."""
    parameters = kernel.program.function.parameters
    if len(arguments) != len(parameters):
        raise LaunchError(f"kernel {name!r} takes {len(parameters)} arguments, not {len(arguments)}")
    for parameter, address, argument in zip(parameters, kernel.addresses, arguments, strict=True):
        data = _argument_bytes(name, parameter, argument)
        kernel.parameters.data[address : address + data.size] = data


def _argument_bytes(name: str, parameter: Variable, argument: Argument) -> Array:
    subject = f"kernel {name!r}, parameter {parameter.name!r}"
    type = TYPES[parameter.type]
    if isinstance(argument, bytes) or parameter.is_array:
        if not isinstance(argument, bytes) or len(argument) != parameter.size:
            given = f"{len(argument)} bytes" if isinstance(argument, bytes) else repr(argument)
            raise LaunchError(f"{subject} takes {parameter.size} bytes, not {given}")
        return np.frombuffer(argument, U8)
    if isinstance(argument, np.generic) and argument.dtype.itemsize == type.nbytes:
        return np.frombuffer(argument.tobytes(), U8)
    if type.is_float:
        return np.array([float(argument)]).astype(type.dtype).view(U8)
    if not math.isfinite(argument) or int(argument) != argument:
        raise LaunchError(f"{subject} is a .{type.name}, so it takes a whole number, not {argument!r}")
    number = int(argument)
    if not -(1 << type.bits - 1) <= number < 1 << type.bits:
        raise LaunchError(f"{subject} is a .{type.name}, which does not hold {number}")
    return np.array([number % (1 << type.bits)], U64).view(U8)[: type.nbytes]
