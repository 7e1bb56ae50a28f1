"""What becomes of a graph: its kernels with bytes, operations and roundings, what contracts, and the memory plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halfulp.compiler.dims import Dim, SymbolicDim
from halfulp.compiler.errors import GraphError, near_names, quoted_list
from halfulp.compiler.graph import Graph
from halfulp.compiler.kernel_costs import KernelCost, kernel_costs
from halfulp.compiler.numerics import Contraction
from halfulp.compiler.options import CompileOptions

from ..binding import ShapePlan
from ..loading import load_graph
from ..memory_report import MemoryReport, memory_report
from .graph_inputs import symbol_size

UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True)
class GraphReport:
    """A compiled graph for someone to look at.

    Attributes:
        graph: its name.
        options: how it is compiled.
        sizes: what its symbols are taken to be, those computed from data included where they were given.
        kernels: the kernels in the order in which they run, with formulas of the symbols.
        contractions: the products and sums that became one fma.
        memory: the memory plan at these sizes.
    """

    graph: str
    options: CompileOptions
    sizes: Mapping[str, int]
    kernels: tuple[KernelCost, ...]
    contractions: tuple[Contraction, ...]
    memory: MemoryReport

    def number(self, formula: Dim | None) -> int | None:
        """The value of a formula at the report's sizes; None if it is not known."""
        if formula is None or any(name not in self.sizes for name in formula.symbols):
            return None
        return formula.evaluate(self.sizes)

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items()) or "no symbols"
        lines = [f"{self.graph}: {len(self.kernels)} steps, {sizes}"]
        for number, cost in enumerate(self.kernels):
            work = quantity(self.number(cost.flops))
            lines.append(
                f"{number:>3} {'  ' * cost.depth}{', '.join(cost.kernels)}: "
                f"reads {byte_text(self.number(cost.read_bytes))}, "
                f"writes {byte_text(self.number(cost.written_bytes))}, {work} float operations, "
                f"{quantity(self.number(cost.roundings))} roundings"
            )
        lines += [f"contracted: {contraction}" for contraction in self.contractions]
        return "\n".join([*lines, str(self.memory)])


def explain_graph(
    graph: Graph, options: CompileOptions | None = None, sizes: Mapping[str, int] | None = None
) -> GraphReport:
    """The report on a graph.

    Args:
        graph: a complete graph.
        options: how to compile it.
        sizes: values of symbols. Symbols of the inputs that are not named get one size, chosen so that no input is
            huge; symbols that the graph computes from data stay unknown.

    Raises:
        GraphError: ``sizes`` names no symbol of the graph, or a size is negative.
        CompileError: the graph cannot be compiled.
    """
    options = options or CompileOptions()
    compiled = load_graph(graph, options).compiled
    bound = _sizes(graph, compiled.computed_dims, dict(sizes or {}))
    shapes = [tuple(dim.evaluate(bound) for dim in tensor.shape) for tensor in graph.input_types]
    computed = {name: bound[name] for name in compiled.computed_dims if name in bound}
    return GraphReport(
        graph=graph.name,
        options=options,
        sizes=bound,
        kernels=tuple(kernel_costs(graph, options)),
        contractions=compiled.contractions,
        memory=memory_report(compiled, ShapePlan(compiled), shapes, computed),
    )


def _sizes(graph: Graph, computed: tuple[str, ...], given: dict[str, int]) -> dict[str, int]:
    """A size for each symbol of the inputs, in their order, and those given for computed ones."""
    symbols = list(
        dict.fromkeys(dim.name for tensor in graph.input_types for dim in tensor.shape if isinstance(dim, SymbolicDim))
    )
    for name, size in given.items():
        if name not in symbols and name not in computed:
            known = [*symbols, *computed]
            hint = near_names(name, known) or f"; it has {quoted_list(known) if known else 'none'}"
            raise GraphError(f"graph '{graph.name}' has no symbol '{name}'{hint}")
        if size < 0:
            raise GraphError(f"graph '{graph.name}': symbol '{name}' must be at least 0, not {size}")
    usual = symbol_size(graph)
    return {name: given.get(name, usual) for name in symbols} | {
        name: given[name] for name in computed if name in given
    }


def byte_text(count: int | None) -> str:
    """A number of bytes, short: ``12.5 MiB``."""
    if count is None:
        return "?"
    for unit, name in UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}" if count < 1000 * unit else f"{count / unit:.0f} {name}"
    return f"{count} B"


def quantity(count: int | None) -> str:
    """A number of operations, short: ``1.6 M``."""
    if count is None:
        return "?"
    for power, name in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if count >= 10**power:
            return f"{count / 10**power:.3g} {name}"
    return str(count)
