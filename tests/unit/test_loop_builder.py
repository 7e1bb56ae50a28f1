"""Index arithmetic of the loop builder: what folds, what is known never to be negative, how loops are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, VectorType, f32, i1, i8
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from halfulp.compiler.passes.tile_to_loops.loop_builder import MOST, Index, LoopBuilder


@pytest.fixture
def block() -> Block:
    return Block(arg_types=[IndexType()] * 2)


@pytest.fixture
def builder(block: Block) -> LoopBuilder:
    return LoopBuilder(block)


def ops(block: Block) -> list[str]:
    return [op.name for op in block.ops]


@pytest.mark.parametrize(
    ("function", "a", "b", "result"),
    [
        (LoopBuilder.add, 2, 3, 5),
        (LoopBuilder.sub, 2, 3, -1),
        (LoopBuilder.mul, 2, 3, 6),
        (LoopBuilder.div, 7, 2, 3),
        (LoopBuilder.rem, 7, 2, 1),
        (LoopBuilder.min, 7, 2, 2),
        (LoopBuilder.max, 7, 2, 7),
        (LoopBuilder.add, MOST, 1, -MOST - 1),
        (LoopBuilder.mul, 2**62, 4, 0),
        (LoopBuilder.sub, -MOST, 2, MOST),
    ],
)
def test_constants_fold_and_wrap(
    builder: LoopBuilder, block: Block, function: Callable[..., Index], a: int, b: int, result: int
) -> None:
    assert function(builder, a, b) == result
    assert ops(block) == []


def test_neutral_operands_fold(builder: LoopBuilder, block: Block) -> None:
    (a, _) = block.args
    assert builder.add(a, 0) is builder.add(0, a) is builder.sub(a, 0) is a
    assert builder.mul(a, 1) is builder.mul(1, a) is builder.div(a, 1) is a
    assert builder.mul(a, 0) == builder.rem(a, 1) == 0
    assert ops(block) == []


def test_a_constant_is_made_once_at_the_top(builder: LoopBuilder, block: Block) -> None:
    (a, _) = block.args
    builder.add(a, 7)
    builder.mul(a, 7)
    assert ops(block) == ["arith.constant", "arith.addi", "arith.muli"]


def test_zeros_of_both_signs_are_two_constants(builder: LoopBuilder) -> None:
    assert builder.scalar(0.0, f32) is not builder.scalar(-0.0, f32)
    assert builder.scalar(-0.0, f32) is builder.scalar(-0.0, f32)


def test_sums_and_products_of_naturals_are_natural_as_long_as_they_fit(builder: LoopBuilder, block: Block) -> None:
    a, b = block.args
    builder.mark_natural(a, 1000)
    builder.mark_natural(b, 2**60)
    assert builder.most(builder.add(a, 24)) == 1024
    assert builder.most(builder.mul(a, 4)) == 4000
    assert builder.most(builder.div(a, 8)) == 125
    assert builder.most(builder.rem(b, 64)) == 64
    assert builder.most(builder.min(a, b)) == 1000
    assert builder.most(builder.max(a, b)) == 2**60
    assert not builder.is_natural(builder.mul(b, 8))
    assert not builder.is_natural(builder.sub(a, 1))


def test_nothing_is_known_of_an_argument(builder: LoopBuilder, block: Block) -> None:
    a, b = block.args
    assert not builder.is_natural(a)
    assert not builder.is_natural(builder.add(a, 1))
    assert not builder.is_natural(builder.min(a, 5))
    assert builder.most(builder.max(a, 0)) == MOST
    builder.mark_natural(b)
    assert not builder.is_natural(builder.add(b, 1))


def test_the_larger_of_a_natural_and_zero_is_the_natural(builder: LoopBuilder, block: Block) -> None:
    (a, _) = block.args
    builder.mark_natural(a, 9)
    assert builder.max(a, 0) is builder.max(0, a) is a
    assert ops(block) == []


def counters(loop: Callable[..., object], lower: Index, upper: Index, step: Index) -> list[Index]:
    seen: list[Index] = []

    def body(index: Index, carried: list[SSAValue]) -> Sequence[SSAValue]:
        seen.append(index)
        return ()

    loop(lower, upper, step, (), body)
    return seen


def test_loops_of_one_round_or_none_are_no_loops(builder: LoopBuilder, block: Block) -> None:
    assert counters(builder.loop, 4, 8, 4) == [4]
    assert counters(builder.loop, 4, 4, 1) == []
    assert ops(block) == []


def test_a_counter_from_a_natural_is_natural(builder: LoopBuilder, block: Block) -> None:
    (a, _) = block.args
    (counter,) = counters(builder.loop, 0, 10, 1)
    assert builder.most(counter) == 9
    (counter,) = counters(builder.loop, 0, a, 1)
    assert builder.most(counter) == MOST
    (counter,) = counters(builder.loop, a, 10, 1)
    assert not builder.is_natural(counter)


def loops_of(block: Block) -> list[scf.ForOp]:
    return [op for op in block.ops if isinstance(op, scf.ForOp)]


def test_a_loop_by_one_counts_itself(builder: LoopBuilder, block: Block) -> None:
    a, b = block.args
    counters(builder.counted_loop, a, b, 1)
    assert ops(block) == ["arith.constant", "scf.for"]


def test_a_loop_that_could_overflow_counts_its_rounds(builder: LoopBuilder, block: Block) -> None:
    a, b = block.args
    (counter,) = counters(builder.counted_loop, a, b, 3)
    (loop,) = loops_of(block)
    assert isinstance(loop.ub.owner, Operation)
    assert loop.ub.owner.name == "vector_ext.select"
    assert isinstance(counter, SSAValue)
    assert isinstance(counter.owner, arith.AddiOp)
    assert not builder.is_natural(counter)


def test_a_loop_below_a_known_extent_needs_no_count(builder: LoopBuilder, block: Block) -> None:
    (a, _) = block.args
    builder.mark_natural(a, 2**62)
    counters(builder.counted_loop, 0, a, 3)
    (loop,) = loops_of(block)
    assert loop.ub is a


@pytest.mark.parametrize("step", [0, -2])
def test_a_step_must_be_positive(builder: LoopBuilder, block: Block, step: int) -> None:
    (a, _) = block.args
    with pytest.raises(DiagnosticException, match=rf"^scf\.for: the step must be positive, not {step}$"):
        counters(builder.counted_loop, 0, a, step)


def test_a_mask_of_a_known_count_is_a_constant(builder: LoopBuilder, block: Block) -> None:
    mask = builder.lane_mask(3, 8)
    assert isinstance(mask.owner, arith.ConstantOp)
    assert mask.type == VectorType(i1, [8])
    assert ops(block) == ["arith.constant"]


def test_frame_memory_is_added_up(builder: LoopBuilder) -> None:
    for element, size in ((f32, 10), (i8, 3), (IndexType(), 2)):
        builder.alloca(element, size)
    assert builder.frame_bytes == 10 * 4 + 3 + 2 * 8
