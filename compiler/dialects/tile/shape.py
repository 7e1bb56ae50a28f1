"""Shape ops of the tile dialect: they move or make elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .assembly import IntegerList, integer_values, integers
from .types import block_type, element_type, shape_of, with_shape


def _axis(attribute: IntegerAttr) -> int:
    return attribute.value.data


def _same_element(name: str, operand: Attribute, result: Attribute) -> None:
    if element_type(operand) != element_type(result):
        raise VerifyException(f"{name}: element type must stay {element_type(operand)}, not {result}")


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A block whose every element is the scalar."""

    name = "tile.splat"
    scalar = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$scalar attr-dict `:` type($scalar) `->` type($result)"

    def __init__(self, scalar: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operands=[scalar], result_types=[TensorType(scalar.type, list(shape))])

    def verify_(self) -> None:
        if block_type(self.result.type, "tile.splat: result").element_type != self.scalar.type:
            raise VerifyException(f"tile.splat: a block of {self.scalar.type} is wanted, not {self.result.type}")


@irdl_op_definition
class IotaOp(IRDLOperation):
    """The index of each element along ``axis``, as an integer block (wrapping at the type's width)."""

    name = "tile.iota"
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute, axis: int) -> None:
        super().__init__(properties={"axis": IntegerAttr(axis, i64)}, result_types=[result_type])

    def verify_(self) -> None:
        block = block_type(self.result.type, "tile.iota: result")
        if not isinstance(block.element_type, IntegerType | IndexType):
            raise VerifyException(f"tile.iota: result must hold integers, not {block.element_type}")
        if not 0 <= _axis(self.axis) < block.get_num_dims():
            raise VerifyException(f"tile.iota: axis {_axis(self.axis)} is not an axis of {block}")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Repeats axes of size 1; ranks are equal (reshape first to add axes)."""

    name = "tile.broadcast"
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operands=[operand], result_types=[TensorType(element_type(operand.type), list(shape))])

    def verify_(self) -> None:
        source = block_type(self.operand.type, "tile.broadcast: operand").get_shape()
        target = block_type(self.result.type, "tile.broadcast: result").get_shape()
        _same_element("tile.broadcast", self.operand.type, self.result.type)
        if len(source) != len(target) or any(s not in (1, t) for s, t in zip(source, target, strict=True)):
            raise VerifyException(f"tile.broadcast: {list(source)} does not broadcast to {list(target)}")


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same elements in row-major order under another shape."""

    name = "tile.reshape"
    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand) `->` type($result)"

    def __init__(self, operand: SSAValue, shape: Sequence[int]) -> None:
        super().__init__(operands=[operand], result_types=[TensorType(element_type(operand.type), list(shape))])

    def verify_(self) -> None:
        source = block_type(self.operand.type, "tile.reshape: operand")
        target = block_type(self.result.type, "tile.reshape: result")
        _same_element("tile.reshape", source, target)
        if source.element_count() != target.element_count():
            raise VerifyException(
                f"tile.reshape: {source} has {source.element_count()} elements, {target} {target.element_count()}"
            )


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Permutes axes: axis ``i`` of the result is axis ``permutation[i]`` of the operand."""

    name = "tile.transpose"
    operand = operand_def()
    permutation = prop_def(DenseArrayBase.constr(i64))
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$operand custom<IntegerList>($permutation) attr-dict `:` type($operand) `->` type($result)"
    custom_directives = (IntegerList,)

    def __init__(self, operand: SSAValue, permutation: Sequence[int]) -> None:
        shape = shape_of(operand.type)
        super().__init__(
            operands=[operand],
            properties={"permutation": integers(permutation)},
            result_types=[TensorType(element_type(operand.type), [shape[axis] for axis in permutation])],
        )

    @property
    def axes(self) -> tuple[int, ...]:
        return integer_values(self.permutation)

    def verify_(self) -> None:
        source = block_type(self.operand.type, "tile.transpose: operand").get_shape()
        _same_element("tile.transpose", self.operand.type, self.result.type)
        if sorted(self.axes) != list(range(len(source))):
            raise VerifyException(f"tile.transpose: {list(self.axes)} is no permutation of {len(source)} axes")
        if shape_of(self.result.type) != tuple(source[axis] for axis in self.axes):
            raise VerifyException(f"tile.transpose: {list(self.axes)} of {list(source)} is not {self.result.type}")


@irdl_op_definition
class SliceOp(IRDLOperation):
    """Elements ``start + step * i`` along every axis; all of them lie inside the operand."""

    name = "tile.slice"
    operand = operand_def()
    starts = prop_def(DenseArrayBase.constr(i64))
    steps = prop_def(DenseArrayBase.constr(i64))
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$operand `from` custom<IntegerList>($starts) `step` custom<IntegerList>($steps) attr-dict"
        " `:` type($operand) `->` type($result)"
    )
    custom_directives = (IntegerList,)

    def __init__(
        self,
        operand: SSAValue,
        starts: Sequence[int],
        shape: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> None:
        steps = [1] * len(shape) if steps is None else list(steps)
        super().__init__(
            operands=[operand],
            properties={
                "starts": integers(starts),
                "steps": integers(steps),
            },
            result_types=[TensorType(element_type(operand.type), list(shape))],
        )

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """``(start, step)`` along each axis."""
        return tuple(zip(integer_values(self.starts), integer_values(self.steps), strict=True))

    def verify_(self) -> None:
        source = block_type(self.operand.type, "tile.slice: operand").get_shape()
        target = block_type(self.result.type, "tile.slice: result").get_shape()
        _same_element("tile.slice", self.operand.type, self.result.type)
        if not len(source) == len(target) == len(self.starts.get_values()) == len(self.steps.get_values()):
            raise VerifyException(f"tile.slice: one start and step for each axis of {self.operand.type}")
        for axis, ((start, step), size, extent) in enumerate(zip(self.ranges, target, source, strict=True)):
            last = start + step * (size - 1)
            if size and not (0 <= start < extent and 0 <= last < extent):
                raise VerifyException(
                    f"tile.slice: elements {start} to {last} of axis {axis} leave {self.operand.type}"
                )


@irdl_op_definition
class ConcatOp(IRDLOperation):
    """Blocks joined along ``axis``."""

    name = "tile.concat"
    parts = var_operand_def()
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$axis `of` $parts attr-dict `:` type($parts) `->` type($result)"

    def __init__(self, parts: Sequence[SSAValue], axis: int) -> None:
        shape = list(shape_of(parts[0].type))
        shape[axis] = sum(shape_of(part.type)[axis] for part in parts)
        super().__init__(
            operands=[list(parts)],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[TensorType(element_type(parts[0].type), shape)],
        )

    def verify_(self) -> None:
        result = block_type(self.result.type, "tile.concat: result")
        axis, total = _axis(self.axis), 0
        if not self.parts or not 0 <= axis < result.get_num_dims():
            raise VerifyException(f"tile.concat: needs parts and an axis of {result}, not axis {axis}")
        for part in self.parts:
            shape = block_type(part.type, "tile.concat: a part").get_shape()
            _same_element("tile.concat", part.type, result)
            total += shape[axis] if len(shape) > axis else 0
            if with_shape([*shape[:axis], result.get_shape()[axis], *shape[axis + 1 :]], result.element_type) != result:
                raise VerifyException(f"tile.concat: {part.type} does not fit into {result} along axis {axis}")
        if total != result.get_shape()[axis]:
            raise VerifyException(f"tile.concat: the parts make {total} along axis {axis}, not {result}")


@irdl_op_definition
class ExtractOp(IRDLOperation):
    """One element of a block, as a scalar. An index outside the block gives zero."""

    name = "tile.extract"
    block = operand_def()
    indices = var_operand_def(IndexType)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$block `[` $indices `]` attr-dict `:` type($block) `->` type($result)"

    def __init__(self, block: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[block, list(indices)], result_types=[element_type(block.type)])

    def verify_(self) -> None:
        block = block_type(self.block.type, "tile.extract: operand")
        if len(self.indices) != block.get_num_dims() or self.result.type != block.element_type:
            raise VerifyException(f"tile.extract: {len(self.indices)} indices and a {self.result.type} from {block}")


SHAPE_OPS: list[type[Operation]] = [
    SplatOp,
    IotaOp,
    BroadcastOp,
    ReshapeOp,
    TransposeOp,
    SliceOp,
    ConcatOp,
    ExtractOp,
]
