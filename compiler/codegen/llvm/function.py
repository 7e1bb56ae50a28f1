"""One function as LLVM text: names of values and blocks, phi nodes, then its instructions in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import llvm
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import llvm_ext
from ...errors import CompileError
from ..selects import Table
from .constants import constant_text
from .selection import CHECKED, selection_key

if TYPE_CHECKING:
    from .module import ModuleText

# Ops that are written inside their users.
_INLINE = frozenset({llvm.ConstantOp, llvm_ext.PoisonOp, llvm.UndefOp, llvm.ZeroOp, llvm.AddressOfOp})


class FunctionText:
    """The state of writing one function; the instruction writers of ``instructions`` work on it."""

    def __init__(self, module: ModuleText, op: llvm.FuncOp) -> None:
        self.module = module
        self.op = op
        self.name: str = op.sym_name.data
        self.types = module.types
        self.lines = module.lines
        self.labels: dict[int, str] = {}
        self.split_edges: dict[int, str] = {}  # cond_br (by id) -> label of the block put on its else edge
        self._refs: dict[int, str] = {}
        self._names: dict[str, int] = {}
        self._incoming: dict[int, list[tuple[str, tuple[SSAValue, ...]]]] = {}

    def ref(self, value: SSAValue) -> str:
        """The operand without its type: ``%x`` or a constant."""
        try:
            return self._refs[id(value)]
        except KeyError:
            raise CompileError(
                f"LLVM text: function @{self.name} uses a value of type {value.type} that it does not define"
            ) from None

    def typed(self, value: SSAValue) -> str:
        """The operand after its type: ``float %x``."""
        return f"{self.types(value.type)} {self.ref(value)}"

    def label(self, block: Block) -> str:
        """The name of a block, without ``%``."""
        return self.labels[id(block)]

    def error(self, op: Operation, text: str) -> CompileError:
        """A CompileError about ``op``, to be raised by the caller."""
        return CompileError(f"LLVM text: {op.name} in function @{self.name} {text}")

    def fresh(self, hint: str) -> str:
        """``%hint`` under a name that nothing else in the function has."""
        return "%" + self._unique(hint)

    def write_body(self) -> None:
        """The blocks. ``name_values`` came first: in the text a use may stand above its definition."""
        blocks = list(self.op.body.blocks)
        for block in blocks:
            self._collect_edges(block)
        if self._incoming.get(id(blocks[0])):
            raise CompileError(f"LLVM text: function @{self.name} branches to its entry block; LLVM forbids that")
        for i, block in enumerate(blocks):
            self.lines.append(f"{self.label(block)}:")
            if i:
                self._write_phis(block)
            self._write_instructions(block)

    def _unique(self, hint: str) -> str:
        count = self._names.get(hint)
        if count is None:
            self._names[hint] = 0
            return hint
        count += 1
        while f"{hint}.{count}" in self._names:
            count += 1
        self._names[hint] = count
        self._names[f"{hint}.{count}"] = 0
        return f"{hint}.{count}"

    def name_values(self) -> None:
        """Gives every block, argument and result its name, and every constant its text."""
        refs, unique = self._refs, self._unique
        for i, block in enumerate(self.op.body.blocks):
            self.labels[id(block)] = unique("entry" if i == 0 else block.name_hint or "bb")
            for argument in block.args:
                refs[id(argument)] = "%" + unique(argument.name_hint or "a")
            for op in block.ops:
                if type(op) in _INLINE:
                    refs[id(op.results[0])] = self._inline(op)
                    continue
                for result in op.results:
                    refs[id(result)] = "%" + unique(result.name_hint or "v")

    def _inline(self, op: Operation) -> str:
        if op.attributes:
            raise self.error(op, f"has the attribute {next(iter(op.attributes))}, which has no LLVM text")
        if isinstance(op, llvm.ConstantOp):
            return constant_text(op.value, op.result.type)
        if isinstance(op, llvm.AddressOfOp):
            return self.module.symbol(op.global_name.root_reference.data)
        if isinstance(op, llvm.UndefOp | llvm_ext.PoisonOp):
            return "undef" if isinstance(op, llvm.UndefOp) else "poison"
        return "null" if isinstance(op.results[0].type, llvm.LLVMPointerType) else "zeroinitializer"

    def _collect_edges(self, block: Block) -> None:
        terminator = block.last_op
        here = self.label(block)
        if terminator is None:
            raise CompileError(f"LLVM text: block {here} of function @{self.name} has no terminator")
        if isinstance(terminator, llvm.BrOp):
            self._edge(terminator.successor, here, tuple(terminator.arguments))
        elif isinstance(terminator, llvm.CondBrOp):
            then_arguments, else_arguments = tuple(terminator.then_arguments), tuple(terminator.else_arguments)
            self._edge(terminator.then_block, here, then_arguments)
            same = terminator.then_block is terminator.else_block
            if same and then_arguments != else_arguments:
                # A phi has one value per block it comes from, so the else edge gets a block of its own.
                here = self.split_edges[id(terminator)] = self._unique(f"{here}.else")
            self._edge(terminator.else_block, here, else_arguments)
        else:
            for successor in terminator.successors:
                self._edge(successor, here, ())

    def _edge(self, target: Block, source: str, values: tuple[SSAValue, ...]) -> None:
        if id(target) not in self.labels:
            raise CompileError(f"LLVM text: block {source} of function @{self.name} branches out of the function")
        self._incoming.setdefault(id(target), []).append((source, values))

    def _write_phis(self, block: Block) -> None:
        edges = self._incoming.get(id(block), ())
        for i, argument in enumerate(block.args):
            if not edges:
                raise CompileError(
                    f"LLVM text: block {self.label(block)} of function @{self.name} takes values,"
                    " but no branch leads to it"
                )
            pairs = ", ".join(f"[ {self.ref(values[i])}, %{label} ]" for label, values in edges)
            self.lines.append(f"  {self.ref(argument)} = phi {self.types(argument.type)} {pairs}")

    def _write_instructions(self, block: Block) -> None:
        from .instructions import WRITERS

        selects = self.module.selects
        for op in block.ops:
            writer = WRITERS.get(type(op))
            if writer is not None:
                if op.attributes:
                    self._check_attributes(op)
                if selects is not None and type(op) in CHECKED:
                    self._check_selects(op, selects)
                writer(self, op)
            elif type(op) not in _INLINE:
                raise self.error(op, "has no LLVM text; lower it to the llvm dialect first")

    def _check_attributes(self, op: Operation) -> None:
        for name in op.attributes:
            if name != "halfulp.loop" or not isinstance(op, llvm.BrOp | llvm.CondBrOp):
                raise self.error(op, f"has the attribute {name}, which has no LLVM text")

    def _check_selects(self, op: Operation, selects: Table) -> None:
        # Looked up by identity: the types of equal ops are mostly the same objects, and this stands on the hot path.
        operands, results = op._operands, op.results
        form = (
            type(op) if type(op) is not llvm.CallIntrinsicOp else id(op.properties["intrin"]),
            id(operands[0].type) if operands else 0,
            id(operands[-1].type) if operands else 0,
            id(results[0].type) if results else 0,
        )
        if form in self.module.selecting:
            return
        key = selection_key(op)
        if key is not None and key[1] not in selects.get(key[0], ()):
            what = f"{key[0]} on {key[1]}" if key[1] else key[0]
            raise self.error(op, f"needs {what}, which {self.module.target} has no instructions for; lower it first")
        if not isinstance(op, llvm_ext.AtomicRMWOp):  # its kind is not part of the form
            self.module.selecting.add(form)

    def result_type(self, op: Operation) -> str:
        """The type of the only result."""
        result: SSAValue[Attribute] = op.results[0]
        return self.types(result.type)
