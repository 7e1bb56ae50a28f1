"""The state of lowering one function: where new ops go, and which new value stands for which old one.

Lowering is one recursive walk that builds new ops, not pattern rewriting: a pattern driver costs 40-80 us an op,
building one 5-13 us. For the same reason types are looked up by identity and ops are built with ``create``, which
skips the argument handling of their constructors; the pass verifies nothing, ``--verify`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.arith import CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    VectorType,
    i1,
    i16,
    i32,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...codegen.llvm.types import intrinsic_suffix
from ...dialects import llvm_ext
from ...dialects.gpu_ext import GLOBAL_SPACE, SHARED_SPACE, space_of
from ...dialects.vector_ext import bit_width, element_of, lanes_of
from ...errors import CompileError

PTR = llvm.LLVMPointerType()
NO_FLAGS = llvm.FastMathAttr(None)
_NO_BUNDLES = DenseArrayBase.from_list(i32, ())

_FLOAT_PREDICATES = {p.value: llvm_ext.FloatPredicateAttr(p) for p in llvm_ext.FloatPredicate}
_INTEGER_PREDICATES = {name: IntegerAttr(i, 64) for i, name in enumerate(CMPI_COMPARISON_OPERATIONS)}


@cache
def integer_type(width: int) -> IntegerType:
    """The one object for a width, so that lookups by identity find it."""
    return IntegerType(width)


_FLAGS: dict[frozenset[Any], llvm.FastMathAttr] = {frozenset(): NO_FLAGS}


def fastmath(op: Operation) -> llvm.FastMathAttr:
    """The fastmath flags of an op of ``arith``, ``math`` or ``vector_ext`` as the ``llvm`` dialect has them."""
    flags = op.properties.get("fastmath")
    if "fastmath" in op.attributes:
        # Some of upstream's constructors (math.fma, arith.negf) put the flags among the attributes.
        flags = op.attributes["fastmath"]
    if flags is None:
        return NO_FLAGS
    assert isinstance(flags, FastMathFlagsAttr)
    known = _FLAGS.get(flags.data)
    if known is None:
        known = _FLAGS[flags.data] = llvm.FastMathAttr(flags.data)
    return known


def without_poison(flags: llvm.FastMathAttr) -> llvm.FastMathAttr:
    """The flags without nnan and ninf, for comparisons and selects that a lowering makes of one op.

    The promise stands on the op; on the parts it would make poison of what decides between them.
    """
    left = flags.data - {FastMathFlag.NO_NANS, FastMathFlag.NO_INFS}
    return llvm.FastMathAttr(left) if left else NO_FLAGS


def without_approximations(flags: llvm.FastMathAttr, options: LoweringOptions) -> llvm.FastMathAttr:
    """The flags of a division or root without ``afn`` for a GPU, where LLVM would take ``div.approx``.

    No interpreter can say what that gives; the flag allows it and does not ask for it.
    """
    if options.arch != "nvptx64" or FastMathFlag.APPROX_FUNC not in flags.data:
        return flags
    return llvm.FastMathAttr(flags.data - {FastMathFlag.APPROX_FUNC})


def flag_properties(flags: llvm.FastMathAttr) -> dict[str, Attribute]:
    """The properties of an op that carries these flags."""
    return {"fastmathFlags": flags}


_INTERNED: dict[Attribute, Attribute] = {}


class TypeLowering:
    """Types of the loops stage -> types of the ``llvm`` dialect, remembered by identity.

    ``index`` becomes i64, a flat memref a pointer, and bf16 i16, since LLVM's bf16 code on CPUs flushes subnormals
    (even its ``select`` does); everything else stays.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Attribute, Attribute]] = {}

    def __call__(self, t: Attribute) -> Attribute:
        known = self._known.get(id(t))
        if known is None:
            lowered = self._lower(t)
            # Equal types become one object, for the lookups by identity of the writer of LLVM text.
            known = self._known[id(t)] = (t, _INTERNED.setdefault(lowered, lowered))  # t stays alive: its id is its own
        return known[1]

    @staticmethod
    def _lower(t: Attribute) -> Attribute:
        if isinstance(t, IndexType | BFloat16Type):
            return i64 if isinstance(t, IndexType) else i16
        if isinstance(t, VectorType):
            if len(t.shape.data) != 1 or t.get_num_scalable_dims():
                raise CompileError(
                    f"convert-loops-to-llvm: vectors must be fixed and 1-D, not {t}; lower to 1-D vectors first"
                )
            element = TypeLowering._lower(t.element_type)
            return t if element is t.element_type else VectorType(element, t.shape)
        if isinstance(t, MemRefType):
            verify_flat(t)
            space = space_of(t)
            return llvm.LLVMPointerType(IntAttr(space)) if space else PTR
        if isinstance(t, IntegerType) or t.name in ("f16", "f32", "f64"):
            return t
        raise CompileError(
            f"convert-loops-to-llvm: type {t} is not in the loops subset (index, i1 to i64, f16, bf16, f32, f64,"
            " their 1-D vectors, and flat memrefs)"
        )


def verify_flat(t: MemRefType) -> None:
    """CompileError unless ``t`` is rank 1, contiguous and in memory that has a number, or none."""
    space = t.memory_space
    is_known = isinstance(space, NoneAttr) or space_of(t) in (GLOBAL_SPACE, SHARED_SPACE)
    if len(t.shape.data) != 1 or not isinstance(t.layout, NoneAttr) or not is_known:
        raise CompileError(
            f"convert-loops-to-llvm: memrefs must be flat (rank 1, contiguous, in default memory), not {t}"
        )


@dataclass(frozen=True)
class LoweringOptions:
    """What the lowering knows of the target.

    ``arch`` as in the triple, ``x86_64``, ``aarch64`` or ``nvptx64``; ``permutes``: the bits of a register whose f32 an
    instruction permutes by indices, 0 without one.
    """

    arch: str = "x86_64"
    permutes: int = 0


class FunctionLowering:
    """Builds the body of one ``llvm.func``. ``table`` maps op classes to their lowering functions."""

    def __init__(self, name: str, table: Mapping[type[Operation], LoweringFunction], options: LoweringOptions) -> None:
        self.name = name
        self.options = options
        self.type = TypeLowering()
        self.region = Region()
        self.entry_allocas: list[Operation] = []
        self.outlined: list[llvm.FuncOp] = []  # bodies that other threads run, functions of their own
        self.globals: list[llvm.GlobalOp] = []  # memory that the threads of a GPU's block share, constant tables
        self.tables: dict[Attribute, llvm.GlobalOp] = {}
        self.stack_bytes = 0
        self.location: LocationAttr | None = None  # of the op being lowered; new ops take it over
        self._table = table
        self._values: dict[int, SSAValue] = {}
        self._constants: dict[tuple[int, int], Attribute] = {}
        self._like: dict[tuple[int, int], Attribute] = {}
        self.block = self.new_block("entry")

    def nested(self, name: str) -> FunctionLowering:
        """The state of lowering a function that stands behind this one, and shares its globals."""
        nested = FunctionLowering(name, self._table, self.options)
        nested.globals, nested.tables = self.globals, self.tables
        return nested

    def place_allocas(self) -> None:
        """Puts the stack buffers first in the function, once it is complete."""
        entry = self.region.blocks.first
        assert entry is not None
        assert entry.first_op is not None
        entry.insert_ops_before(self.entry_allocas, entry.first_op)

    # Blocks

    def new_block(self, name: str, argument_types: Sequence[Attribute] = ()) -> Block:
        """A block at the end of the function; ops go to it once ``self.block`` is set to it."""
        block = Block(arg_types=argument_types)
        block.name_hint = name
        self.region.add_block(block)
        return block

    def branch(self, target: Block, values: Sequence[SSAValue] = ()) -> Operation:
        """Ends the current block with a jump to ``target``."""
        op = llvm.BrOp.create(operands=values, successors=(target,))
        self.block.add_op(op)
        return op

    def conditional_branch(
        self,
        condition: SSAValue,
        then_block: Block,
        then_values: Sequence[SSAValue],
        else_block: Block,
        else_values: Sequence[SSAValue],
    ) -> None:
        """Ends the current block with a choice of two."""
        self.block.add_op(llvm.CondBrOp(condition, then_block, then_values, else_block, else_values))

    def lower_ops(self, ops: Sequence[Operation] | Any) -> None:
        """Lowers a run of ops, regions included."""
        table = self._table
        for op in ops:
            lower = table.get(type(op))
            if lower is None:
                raise self.unknown(op)
            self.location = op.location
            lower(self, op)

    def unknown(self, op: Operation) -> CompileError:
        """The error for an op outside the subset."""
        dialect = op.name.partition(".")[0]
        remedy = {
            "math": "run expand-math first",
            "tile": "run the lowering of tile kernels first",
            "graph": "run the lowering of graphs first",
        }.get(dialect, "lower it first")
        return self.error(op, f"is not in the loops subset; {remedy}")

    def error(self, op: Operation, text: str) -> CompileError:
        """A CompileError about ``op``, for the caller to raise."""
        return CompileError(f"convert-loops-to-llvm: {op.name} in function @{self.name} {text}")

    # Values

    def get(self, value: SSAValue) -> SSAValue:
        """The new value that stands for an old one."""
        try:
            return self._values[id(value)]
        except KeyError:
            raise CompileError(
                f"convert-loops-to-llvm: function @{self.name} uses a value of type {value.type} before it is defined"
            ) from None

    def set(self, old: SSAValue, new: SSAValue) -> None:
        """Lets ``new`` stand for ``old`` from here on, under its name."""
        self._values[id(old)] = new
        hint = old.name_hint
        if hint is not None and new.name_hint is None:
            new.name_hint = hint

    def like(self, t: Attribute, element: Attribute) -> Attribute:
        """``element``, with the vector shape of ``t`` if it has one; one object per pair."""
        if not isinstance(t, VectorType):
            return element
        key = id(t), id(element)
        known = self._like.get(key)
        if known is None:
            self.type(t), self.type(element)  # keep both alive
            known = self._like[key] = self.type(VectorType(element, t.shape))
        return known

    # Ops

    def emit(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        """Adds an op with one result, and gives the result."""
        op = op_class.create(
            operands=operands, result_types=(result_type,), properties=properties, location=self.location
        )
        self.block.add_op(op)
        return op.results[0]

    def emit_void(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute] = {},
    ) -> None:
        """Adds an op without results."""
        self.block.add_op(op_class.create(operands=operands, properties=properties))

    def call_intrinsic(
        self,
        name: str,
        operands: Sequence[SSAValue],
        result_type: Attribute,
        flags: llvm.FastMathAttr = NO_FLAGS,
        overloads: Sequence[Attribute] | None = None,
    ) -> SSAValue:
        """Calls ``name`` mangled with ``overloads`` (by default the result type); ``()`` for a plain name."""
        overloads = (result_type,) if overloads is None else overloads
        op = intrinsic_op(name, operands, (result_type,), flags, overloads)
        self.block.add_op(op)
        return op.results[0]

    def fcmp(self, predicate: str, lhs: SSAValue, rhs: SSAValue, flags: llvm.FastMathAttr = NO_FLAGS) -> SSAValue:
        """``fcmp`` by predicate name: ``olt``, ``uno``, ..."""
        properties: dict[str, Attribute] = {"predicate": _FLOAT_PREDICATES[predicate], "fastmathFlags": flags}
        return self.emit(llvm_ext.FCmpOp, (lhs, rhs), self.like(lhs.type, i1), properties)

    def icmp(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """``icmp`` by predicate name: ``eq``, ``slt``, ..."""
        properties = {"predicate": _INTEGER_PREDICATES[predicate]}
        return self.emit(llvm.ICmpOp, (lhs, rhs), self.like(lhs.type, i1), properties)

    def select(
        self,
        condition: SSAValue,
        true_value: SSAValue,
        false_value: SSAValue,
        flags: llvm.FastMathAttr = NO_FLAGS,
    ) -> SSAValue:
        """``select`` by one i1, or lane by lane. Integers take no flags, so those of a bf16 select end here."""
        if flags.data and isinstance(element_of(true_value.type), IntegerType):
            flags = NO_FLAGS
        target = llvm_ext.SelectOp if isinstance(condition.type, VectorType) else llvm.SelectOp
        return self.emit(target, (condition, true_value, false_value), true_value.type, {"fastmathFlags": flags})

    def bits_of(self, value: SSAValue) -> SSAValue:
        """The bit pattern of a float, as an integer of the same width; an integer is its own."""
        width = bit_width(element_of(value.type))
        return self.bitcast(value, self.like(value.type, integer_type(width)))

    def bitcast(self, value: SSAValue, t: Attribute) -> SSAValue:
        """The same bits as another type of the same size."""
        return value if value.type == t else self.emit(llvm.BitcastOp, (value,), t)

    # Constants

    def integer(self, t: Attribute, value: int) -> SSAValue:
        """An integer constant; on a vector type, in every lane. ``value`` is taken modulo the width."""
        return self._constant(t, value)

    def float(self, t: Attribute, value: float) -> SSAValue:
        """A float constant that the type holds exactly; on a vector type, in every lane."""
        element = element_of(t)
        assert isinstance(element, AnyFloat)
        data = element.pack((value,))
        return self._constant(t, int.from_bytes(data, "little"))

    def _constant(self, t: Attribute, bits: int) -> SSAValue:
        attribute = self._constants.get((id(t), bits))
        if attribute is None:
            attribute = self._constants[id(t), bits] = _splat(t, bits)
            self.type(t)  # keeps t alive
        return self.emit(llvm.ConstantOp, (), t, {"value": attribute})


LoweringFunction = Callable[[FunctionLowering, Any], None]


def _splat(t: Attribute, bits: int) -> Attribute:
    element = element_of(t)
    assert isinstance(element, IntegerType | AnyFloat)
    if isinstance(element, IntegerType):
        bits &= (1 << element.width.data) - 1
    data = bits.to_bytes(element.compile_time_size, "little")
    if isinstance(t, VectorType):
        return DenseIntOrFPElementsAttr(t, BytesAttr(data * lanes_of(t)))
    if isinstance(element, IntegerType):
        return IntegerAttr(bits, element, truncate_bits=True)
    return FloatAttr(element.unpack(data, 1)[0], element)


def intrinsic_op(
    name: str,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    flags: llvm.FastMathAttr = NO_FLAGS,
    overloads: Sequence[Attribute] = (),
) -> llvm.CallIntrinsicOp:
    """``llvm.call_intrinsic`` with the full, mangled name."""
    suffix = "".join(f".{intrinsic_suffix(t)}" for t in overloads)
    return llvm.CallIntrinsicOp.create(
        operands=operands,
        result_types=result_types,
        properties={
            "intrin": _intrinsic_name(name + suffix),
            "fastmathFlags": flags,
            "op_bundle_sizes": _NO_BUNDLES,
            "operandSegmentSizes": _segments(len(operands)),
        },
    )


@cache
def _intrinsic_name(name: str) -> StringAttr:
    return StringAttr(name)


@cache
def _segments(arguments: int) -> DenseArrayBase[IntegerType]:
    return DenseArrayBase.from_list(i32, (arguments, 0))
