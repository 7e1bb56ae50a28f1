"""What the names in a graph mean: ops of the library (`OpDef`) and custom kernels (`KernelDef`).

The compiler names no op and no kernel. Packages above it register theirs when they are imported, and entry points
of the group ``halfulp.registry`` say which modules to import when a name is not known yet::

    SCALE = register_kernel(
        KernelDef(
            "scale",
            operands=(OperandSpec("x", DType.float32, ("rows", "columns")),),
            outputs=(OutputSpec("y", DType.float32, ("rows", "columns")),),
            parameters=(ParameterSpec("factor", float),),
            build=build_scale,
        )
    )

Sizes are matched by name: every axis that a kernel calls ``rows`` must have the same size. What a call looks like once
it is matched is in `halfulp.compiler.kernel_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from .dtypes import DType
from .errors import GraphError, NotFoundError, near_names, quoted_list
from .opdef import OpDef

if TYPE_CHECKING:
    from .dims import Dim
    from .graph import Graph
    from .kernel_call import KernelCall
    from .options import CompileOptions

SizePattern: TypeAlias = "str | int"
ParameterKind: TypeAlias = "type[bool | int | float | str | DType | Dim | tuple[Any, ...]]"


class _Required:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()


@dataclass(frozen=True)
class ParameterSpec:
    """A parameter, known while the graph is built.

    ``accepts`` decides on a value of the right kind; ``rule`` says in words what it accepts, for the message
    "parameter 'levels' must be <rule>". An int is taken where a float is wanted.
    """

    name: str
    kind: ParameterKind
    default: Any = REQUIRED
    accepts: Callable[[Any], bool] | None = None
    rule: str = ""

    def __post_init__(self) -> None:
        if self.accepts is not None and not self.rule:
            raise GraphError(f"parameter {self.name!r} has a check, so it needs a rule that says what it accepts")


@dataclass(frozen=True)
class OperandSpec:
    """An operand: element types and shape that a kernel takes.

    ``shape`` has an entry for each axis: a number, or a name that stands for the same size wherever the kernel uses
    it. None takes any shape. ``host`` operands must be in host memory whatever device the kernel runs on. ``mutable``
    ones are buffers, which the kernel may change (``ops.inplace_custom``).
    """

    name: str
    dtypes: DType | tuple[DType, ...]
    shape: tuple[SizePattern, ...] | None
    host: bool = False
    mutable: bool = False

    @property
    def allowed_dtypes(self) -> tuple[DType, ...]:
        """The element types as a tuple."""
        return self.dtypes if isinstance(self.dtypes, tuple) else (self.dtypes,)


@dataclass(frozen=True)
class OutputSpec(OperandSpec):
    """An output, whose type the caller states and the kernel checks. Names in ``shape`` are those of the operands, of
    `KernelDef.dims` and of `KernelDef.computed`."""


class KernelBuilder(Protocol):
    """Emits the kernels of one call and their launches into the entry function of the graph.

    ``builder`` is the tile builder of the entry function; ``operands`` and ``outputs`` are references, in the order of
    the specs. Every output must be written.
    """

    def __call__(self, builder: Any, call: KernelCall, operands: Sequence[Any], outputs: Sequence[Any], /) -> None: ...


class DimsBuilder(Protocol):
    """Emits the code that computes the sizes in `KernelDef.computed` from the operands, and returns them by name.

    It runs before the outputs exist: they are allocated with these sizes.
    """

    def __call__(self, builder: Any, call: KernelCall, operands: Sequence[Any], /) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class KernelDef:
    """A kernel that a graph calls by name through ``ops.custom``.

    Args:
        name: the name, unique in the process.
        operands: what it takes, in order.
        outputs: what it returns, in order.
        build: emits the tile kernels and their launches.
        parameters: what must be known while the graph is built.
        dims: sizes that follow from parameters and from the operands' sizes, as functions of the parameters and
            of the sizes matched so far.
        computed: names of sizes that only the data decides. A caller gives them new symbols (or a size that they
            must turn out to have). Their values come from ``build_dims``.
        build_dims: emits the code that computes them.
        check: any rule that the specs cannot say; raises `GraphError`.
        reference: the outputs as arrays, floats in float64, from the operands (floats as float64) and the parameters
            by name. It tells how large the kernel's own error is.
    """

    name: str
    operands: tuple[OperandSpec, ...]
    outputs: tuple[OutputSpec, ...]
    build: KernelBuilder
    parameters: tuple[ParameterSpec, ...] = ()
    dims: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Dim]], Dim | int]] = field(default_factory=dict)
    computed: tuple[str, ...] = ()
    build_dims: DimsBuilder | None = None
    check: Callable[[KernelCall], None] | None = None
    reference: Callable[..., Sequence[Any]] | None = None

    def __post_init__(self) -> None:
        subject = f"kernel {self.name!r}"
        for what, specs in (("operands", self.operands), ("outputs", self.outputs), ("parameters", self.parameters)):
            names = [spec.name for spec in specs]
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise GraphError(f"{subject}: the names of its {what} must differ, but {quoted_list(repeated)} repeats")
        if bool(self.computed) != (self.build_dims is not None):
            raise GraphError(f"{subject}: computed sizes and build_dims come together; give both or neither")
        known = {size for spec in self.operands for size in spec.shape or ()} | set(self.dims)
        if both := sorted(known.intersection(self.computed), key=str):
            listed = quoted_list(map(str, both))
            raise GraphError(f"{subject}: {listed} cannot be computed, since an operand or a rule in dims gives it")
        for output in self.outputs:
            for size in output.shape or ():
                if isinstance(size, str) and size not in known and size not in self.computed:
                    raise GraphError(
                        f"{subject}: output {output.name!r} has size {size!r}, which no operand has; "
                        "list it in computed or give a rule for it in dims"
                    )


PROVIDERS = "halfulp.registry"
"""The group of entry points whose modules register ops and kernels."""

EXECUTORS = "halfulp.executor"
"""The group of entry points whose modules register what runs graphs on arrays at once."""

Executor: TypeAlias = "Callable[[Graph, CompileOptions, Any], Callable[..., Sequence[Any]]]"
"""Compiles a graph and gives a function from arrays to buffers, which raises `FailedCheckError` for a failed check.

The last argument is what the graph's ``DeviceRef.GPU(0)`` stands for: the ``device`` of the buffers that come; else
None.
"""

_executors: list[Executor] = []

_kernels: dict[str, KernelDef] = {}
_ops: dict[str, OpDef] = {}

Definition = TypeVar("Definition", KernelDef, OpDef)


def register_kernel(kernel: KernelDef, *, replace: bool = False) -> KernelDef:
    """Make a kernel callable by its name; returns it.

    Raises:
        GraphError: another kernel has the name and ``replace`` is not set.
    """
    return _register(_kernels, kernel, "kernel", replace)


def register_op(op: OpDef, *, replace: bool = False) -> OpDef:
    """Make an op known by its name; returns it.

    Raises:
        GraphError: another op has the name and ``replace`` is not set.
    """
    return _register(_ops, op, "op", replace)


def unregister_kernel(name: str) -> None:
    """Forget a kernel. Graphs that call it can no longer be compiled; compiled ones stay as they are."""
    _kernels.pop(name, None)


def unregister_op(name: str) -> None:
    """Forget an op."""
    _ops.pop(name, None)


def find_kernel(name: str, subject: str) -> KernelDef:
    """The kernel of this name. ``subject`` starts the message if there is none.

    Raises:
        NotFoundError: no kernel has the name.
    """
    kernel = _find(_kernels, name)
    if kernel is None:
        raise NotFoundError(
            f"{subject}: no kernel is registered under that name{near_names(name, _kernels) or '.'} "
            f"Registered: {quoted_list(sorted(_kernels))}. To add one, import the module that registers it, or "
            f"decorate a kernel with @halfulp.ops.pallas.register_kernel({name!r}, operands=..., outputs=...)"
        )
    return kernel


def find_op(name: str, subject: str) -> OpDef:
    """The op of this name. ``subject`` starts the message if there is none.

    Raises:
        NotFoundError: no op has the name.
    """
    op = _find(_ops, name)
    if op is None:
        raise NotFoundError(
            f"{subject}: no op is registered under that name{near_names(name, _ops) or '.'} "
            "Import the module that registers it, such as halfulp.ops"
        )
    return op


def register_executor(executor: Executor) -> None:
    """Make this what runs graphs for eager calls, from now on."""
    _executors.append(executor)


def find_executor(subject: str) -> Executor:
    """What runs graphs for eager calls. ``subject`` starts the message if there is nothing.

    Raises:
        NotFoundError: nothing is registered.
    """
    if not _executors:
        _import_group(EXECUTORS)
    if not _executors:
        raise NotFoundError(
            f"{subject}: no executor is registered, so arrays cannot be computed on; import halfulp.runtime.eager, or "
            "pass interpret=True"
        )
    return _executors[-1]


def first_op(fits: Callable[[OpDef], bool]) -> OpDef | None:
    """The first registered op that fits, such as the one with a part in contraction; None if there is none."""
    found = next(filter(fits, _ops.values()), None)
    if found is None:
        _import_providers()
        found = next(filter(fits, _ops.values()), None)
    return found


def _find(table: Mapping[str, Definition], name: str) -> Definition | None:
    if name not in table:
        _import_providers()
    return table.get(name)


def _import_providers() -> None:
    _import_group(PROVIDERS)


@cache
def _import_group(group: str) -> None:
    from importlib.metadata import entry_points  # 20 ms, on the first unknown name only

    for provider in entry_points(group=group):
        provider.load()


def _register(table: dict[str, Definition], definition: Definition, what: str, replace: bool) -> Definition:
    known = table.get(definition.name)
    if known is not None and known is not definition and not replace:
        raise GraphError(f"{what} {definition.name!r} is registered already; choose another name, or pass replace=True")
    table[definition.name] = definition
    return definition
