"""``compute_log_probabilities_ragged``: log-softmax of chosen rows of ragged logits, with their top tokens.

A batch of B sequences. Sequence b owns the rows ``logit_row_offsets[b]`` to ``logit_row_offsets[b + 1]`` of the logits,
likewise its tokens, and asks for the rows ``lp_output_offsets[b]`` to ``lp_output_offsets[b + 1]`` of the output. These
are its last logits rows, in order; the last one scores the sampled token, each one before it scores the prompt token
that follows. An output row has ``2**levels`` slots: the ``2**levels - 1`` most probable tokens, sorted by (logit
descending, token ascending), unused slots (vocab, -inf); the last slot is the scored token.

Four kernels: ``validate`` checks every offset and token before anything is sized by them; ``rows`` finds the logits
row and the token of each output row; ``chunks`` reads the logits, 16384 at a time, and leaves the sum of exponentials
of each chunk and the top tokens of every four; ``merge`` joins the chunks of a row in ascending order.

The value is ``(x - M) - log(S)``, M the maximum of the row, S the sum of ``exp(x - M)``, within 2 ulp of the largest
magnitude of the row (plus log(vocab)) and 1e-6. A row that holds NaN or +inf, or nothing but -inf, is NaN, as IEEE
arithmetic has it; its top tokens are those of its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, TensorType, f32, i32
from xdsl.dialects.utils.fast_math import FastMathFlag

from halfulp.compiler.dims import ceil_div
from halfulp.compiler.dtypes import DType
from halfulp.compiler.kernel_call import KernelCall
from halfulp.compiler.registry import KernelDef, OperandSpec, OutputSpec, ParameterSpec, register_kernel
from halfulp.compiler.tile_builder import EntryBuilder, KernelBuilder, Value

NAME = "compute_log_probabilities_ragged"
OFFSETS = ("logit_row_offsets", "token_row_offsets", "lp_output_offsets", "host_lp_output_offsets")
MAX_LEVELS = 10
"""1023 top tokens; the cost of keeping them sorted grows with their number."""

CHUNK = 16384
"""Logits that are read twice in a row, first for the best and then for the sum: they stay in a core's second cache."""
CHUNKS_PER_PART = 4
"""Chunks per program. Few logits of a later chunk beat the best of those before, which saves sorting them in."""
MAX_VOCAB = 2**31 - 1 - CHUNK
"""Token ids compare as signed 32-bit integers, those of the padding of the last chunk included."""
TOKENS_PER_BLOCK = 64
NO_POSITION = 2**32 - 1
NEGATIVE_INFINITY = -math.inf


def _unsigned(k: KernelBuilder, ref: Value, *indices: Value | int) -> Value:
    """An element of a u32 reference as an index."""
    return k.cast(k.read(ref, *indices), IndexType(), unsigned_source=True)


# -- validate


def validate(k: KernelBuilder) -> None:
    """Program b checks sequence b; the lengths of all operands come first."""
    (sequence,) = k.program_ids
    operands = dict(zip((spec.name for spec in LOG_PROBABILITIES.operands), k.arguments, strict=True))
    batch = k.dim(operands["sampled_tokens"], 0)
    _check_lengths(k, operands, batch)
    absent = sequence >= batch  # an empty batch has one program
    logits_rows, token_count = k.dim(operands["logits"], 0), k.dim(operands["tokens"], 0)
    rows = _check_offsets(k, operands, "logit_row_offsets", (sequence, absent), (logits_rows, "rows of logits"))
    tokens = _check_offsets(k, operands, "token_row_offsets", (sequence, absent), (token_count, "tokens"))
    outputs = _check_offsets(k, operands, "lp_output_offsets", (sequence, absent), (logits_rows, "rows of logits"))
    _check_host_copy(k, operands, sequence, outputs)
    _check_counts(k, sequence, absent, rows, tokens, outputs)
    _check_sampled_token(k, operands, sequence, absent)
    end = k.select(sequence >= batch - 1, token_count, tokens[1])  # the last program also takes tokens of no sequence
    _check_prompt_tokens(k, operands, tokens[0], end)


def _check_lengths(k: KernelBuilder, operands: dict[str, Value], batch: Value) -> None:
    vocab = k.dim(operands["logits"], 1)
    k.check(vocab <= MAX_VOCAB, f"the vocabulary may have at most {MAX_VOCAB} tokens, not {{}}", vocab)
    for name in OFFSETS:
        length = k.dim(operands[name], 0)
        k.check(
            length == batch + 1,
            f"{name} must have one element more than sampled_tokens, which has {{}}; it has {{}}",
            batch,
            length,
        )


def _check_offsets(
    k: KernelBuilder,
    operands: dict[str, Value],
    name: str,
    program: tuple[Value, Value],
    limit: tuple[Value, str],
) -> tuple[Value, Value]:
    """Checks one step of an offsets operand; returns where the sequence starts and ends."""
    sequence, absent = program
    start, end = (_unsigned(k, operands[name], sequence + i) for i in (0, 1))
    k.check((sequence != 0) | (start == 0), f"{name} must start at 0, not at {{}}", start)
    k.check(
        absent | (start <= end),
        f"{name} must not descend, but goes from {{}} to {{}} in sequence {{}}",
        start,
        end,
        sequence,
    )
    k.check(
        absent | (end <= limit[0]),
        f"{name} ends sequence {{}} at {{}}, but there are only {{}} {limit[1]}",
        sequence,
        end,
        limit[0],
    )
    return start, end


def _check_host_copy(
    k: KernelBuilder, operands: dict[str, Value], sequence: Value, outputs: tuple[Value, Value]
) -> None:
    for step, on_device in enumerate(outputs):
        on_host = _unsigned(k, operands["host_lp_output_offsets"], sequence + step)
        k.check(
            on_device == on_host,
            "host_lp_output_offsets must equal lp_output_offsets, but element {} is {} and not {}",
            sequence + step,
            on_host,
            on_device,
        )


def _check_counts(
    k: KernelBuilder,
    sequence: Value,
    absent: Value,
    rows: tuple[Value, Value],
    tokens: tuple[Value, Value],
    outputs: tuple[Value, Value],
) -> None:
    """Each output row needs a row of logits, and each but the last a prompt token."""
    count, row_count, token_count = (end - start for start, end in (outputs, rows, tokens))
    k.check(
        absent | (count <= row_count),
        "sequence {} asks for {} rows of log-probabilities, but it has {} rows of logits",
        sequence,
        count,
        row_count,
    )
    k.check(
        absent | (count <= token_count + 1),
        "sequence {} asks for {} rows of log-probabilities, but only {} tokens precede the sampled one",
        sequence,
        count,
        token_count,
    )


def _check_sampled_token(k: KernelBuilder, operands: dict[str, Value], sequence: Value, absent: Value) -> None:
    token = _unsigned(k, operands["sampled_tokens"], sequence)
    vocab = k.dim(operands["logits"], 1)
    k.check(
        absent | (token < vocab),
        "sampled_tokens[{}] is {}, but the vocabulary has {} tokens",
        sequence,
        token,
        vocab,
    )


def _check_prompt_tokens(k: KernelBuilder, operands: dict[str, Value], start: Value, end: Value) -> None:
    tokens, vocab = operands["tokens"], k.dim(operands["logits"], 1)
    end = k.binary("mins", end, k.dim(tokens, 0))

    def scan(first: Value, found: Value) -> list[Value]:
        token = k.load(k.window(tokens, [first], [TOKENS_PER_BLOCK], indexing="element"))
        position = k.iota([TOKENS_PER_BLOCK], i32) + k.cast(first, i32)
        wrong = k.compare("uge", token, k.cast(vocab, i32)) & k.compare("ult", position, k.cast(end, i32))
        return [k.binary("minu", found, k.reduce("minu", k.select(wrong, position, NO_POSITION)))]

    (found,) = k.for_loop(start, end, [k.constant(NO_POSITION, i32)], scan, step=TOKENS_PER_BLOCK)
    position = k.cast(found, IndexType(), unsigned_source=True)
    k.check(
        found == NO_POSITION,
        "tokens[{}] is {}, but the vocabulary has {} tokens",
        position,
        _unsigned(k, tokens, position),
        vocab,
    )


# -- rows


def find_rows(k: KernelBuilder) -> None:
    """Program r finds what output row r scores: its row of logits and its token."""
    tokens, sampled_tokens, logit_offsets, token_offsets, output_offsets, logits_rows, scored_tokens = k.arguments
    (row,) = k.program_ids
    sequence = _sequence_of(k, output_offsets, row, k.dim(sampled_tokens, 0))
    before_last = _unsigned(k, output_offsets, sequence + 1) - row - 1
    k.write(k.cast(_unsigned(k, logit_offsets, sequence + 1) - 1 - before_last, i32), logits_rows, row)
    prompt_token = k.read(tokens, _unsigned(k, token_offsets, sequence + 1) - before_last)
    token = k.select(before_last == 0, k.read(sampled_tokens, sequence), prompt_token)
    k.write(token, scored_tokens, row)


def _sequence_of(k: KernelBuilder, output_offsets: Value, row: Value, batch: Value) -> Value:
    """The first sequence that ends after ``row``, by bisection."""

    def halve(low: Value, high: Value) -> list[Value]:
        middle = (low + high) // 2
        ends_after = _unsigned(k, output_offsets, middle + 1) > row
        return [k.select(ends_after, low, middle + 1), k.select(ends_after, middle, high)]

    return k.while_loop([k.index(0), batch], lambda low, high: low < high, halve)[0]


# -- chunks


def summarise_chunks(k: KernelBuilder, kept: int) -> None:
    """Program (r, p): the sum of exponentials of each chunk of part p of output row r, and the part's best tokens.

    What is subtracted under the exponentials is the best logit of the part so far, so none of them exceeds 1; it is
    left in ``shifts``. A NaN is never the best, but makes the sum NaN.
    """
    logits, logits_rows, shifts, sums, best_values, best_tokens = k.arguments
    row, part = k.program_ids
    logits_row = _unsigned(k, logits_rows, row)

    def summarise(chunk: Value, values: Value, tokens: Value) -> tuple[Value, Value]:
        window = k.window(logits, [logits_row, chunk], [1, CHUNK], squeezed=[0])
        block = k.load(window, other=NEGATIVE_INFINITY)
        values, tokens = k.top_merge(values, tokens, block, k.iota([CHUNK], i32) + k.cast(chunk * CHUNK, i32))
        largest = k.extract(values, 0)
        total = k.reduce("add", k.exp(block - _or_zero(k, largest), upper_bounded=True))
        k.write(largest, shifts, row, chunk)
        k.write(total, sums, row, chunk)
        return values, tokens

    first = part * CHUNKS_PER_PART
    end = k.binary("mins", first + CHUNKS_PER_PART, k.dim(shifts, 1))
    best = k.for_loop(first, end, _empty_slots(k, kept, k.dim(logits, 1)), summarise)
    for slots, ref in zip(best, (best_values, best_tokens), strict=True):
        k.store(slots, k.window(ref, [row, part, 0], [1, 1, kept], squeezed=[0, 1]))


def _or_zero(k: KernelBuilder, largest: Value) -> Value:
    """What to subtract: the largest logit, but 0 where there is nothing but -inf, for -inf - -inf is NaN."""
    return k.select(largest == NEGATIVE_INFINITY, 0.0, largest)


def _empty_slots(k: KernelBuilder, kept: int, vocab: Value) -> tuple[Value, Value]:
    return k.constant(NEGATIVE_INFINITY, TensorType(f32, [kept])), k.splat(k.cast(vocab, i32), [kept])


# -- merge


def merge_chunks(k: KernelBuilder, top: int, kept: int) -> None:
    """Program r: joins the chunks of output row r and writes its slots."""
    logits, logits_rows, scored_tokens, shifts, sums, best_values, best_tokens, values_out, tokens_out = k.arguments
    (row,) = k.program_ids
    empty = _empty_slots(k, kept, k.dim(logits, 1))

    def merge(part: Value, values: Value, tokens: Value) -> tuple[Value, Value]:
        windows = [k.window(ref, [row, part, 0], [1, 1, kept], squeezed=[0, 1]) for ref in (best_values, best_tokens)]
        return k.top_merge(values, tokens, *map(k.load, windows))

    values, tokens = k.for_loop(0, k.dim(best_values, 1), empty, merge)
    maximum = k.extract(values, 0)  # of all that are numbers; a NaN shows in the sum
    log_sum = k.log(_total(k, shifts, sums, row, _or_zero(k, maximum)))

    def log_probability(logit: Value) -> Value:
        return ((logit - maximum) - log_sum) + 0.0  # + 0 turns the -0 of a sure token into 0

    token = k.read(scored_tokens, row)
    logit = k.read(logits, _unsigned(k, logits_rows, row), k.cast(token, IndexType(), unsigned_source=True))
    k.write(log_probability(logit), values_out, row, top)
    k.write(token, tokens_out, row, top)
    if not top:
        return
    unused = values == NEGATIVE_INFINITY
    shown = k.select(unused, NEGATIVE_INFINITY, log_probability(values))
    for slots, ref in ((shown, values_out), (k.select(unused, empty[1], tokens), tokens_out)):
        k.store(slots, k.window(ref, [row, 0], [1, top], indexing="element", squeezed=[0]))


def _total(k: KernelBuilder, shifts: Value, sums: Value, row: Value, maximum: Value) -> Value:
    """The sum of ``exp(x - maximum)`` over a row, chunks in ascending order."""

    def add(chunk: Value, so_far: Value) -> list[Value]:
        return [so_far + k.read(sums, row, chunk) * k.exp(k.read(shifts, row, chunk) - maximum, upper_bounded=True)]

    return k.for_loop(0, k.dim(shifts, 1), [k.constant(0.0, f32)], add)[0]


# -- the recipe


def emit_row_count(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value]) -> dict[str, Value]:
    """Launches the checks and reads the number of output rows: the last host offset, 0 if there is none."""
    batch = entry.dim(operands[2], 0)
    entry.launch(f"{NAME}_validate", operands, [entry.binary("maxs", batch, 1)], validate)
    offsets = operands[-1]
    last = entry.read(offsets, entry.dim(offsets, 0) - 1)
    return {"rows": entry.cast(last, IndexType(), unsigned_source=True)}


def emit_rows(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """Launches the kernels that fill the results."""
    # NaN and infinity have a meaning here, whatever flags the user chose
    with entry.changed_fastmath(drop=[FastMathFlag.NO_NANS, FastMathFlag.NO_INFS]):
        _emit_kernels(entry, call, operands, results)


def _emit_kernels(entry: EntryBuilder, call: KernelCall, operands: Sequence[Value], results: Sequence[Value]) -> None:
    logits, tokens, sampled_tokens, *offsets = operands[:6]
    levels = call.parameters["levels"]
    assert isinstance(levels, int)
    top = 2**levels - 1
    kept = max(top, 1)  # the best logit is wanted in any case
    row_dim, vocab = str(call.computed["rows"][0]), call.dims["vocab"]
    chunk_dim, part_dim = (str(ceil_div(vocab, size)) for size in (CHUNK, CHUNK * CHUNKS_PER_PART))
    rows = entry.dim(results[0], 0)
    found = [entry.buffer([row_dim], i32) for _ in range(2)]
    entry.launch(f"{NAME}_rows", [tokens, sampled_tokens, *offsets, *found], [rows], find_rows)
    sums = [entry.buffer([row_dim, chunk_dim], f32) for _ in range(2)]
    best = [entry.buffer([row_dim, part_dim, str(kept)], element) for element in (f32, i32)]
    entry.launch(
        f"{NAME}_chunks",
        [logits, found[0], *sums, *best],
        [rows, entry.dim(best[0], 1)],
        lambda k: summarise_chunks(k, kept),
    )
    entry.launch(
        f"{NAME}_merge", [logits, *found, *sums, *best, *results], [rows], lambda k: merge_chunks(k, top, kept)
    )


LOG_PROBABILITIES = register_kernel(
    KernelDef(
        NAME,
        operands=(
            OperandSpec("logits", DType.float32, ("logits_rows", "vocab")),
            OperandSpec("tokens", DType.uint32, ("tokens",)),
            OperandSpec("sampled_tokens", DType.uint32, ("batch",)),
            OperandSpec("logit_row_offsets", DType.uint32, ("batch_plus_1",)),
            OperandSpec("token_row_offsets", DType.uint32, ("batch_plus_1",)),
            OperandSpec("lp_output_offsets", DType.uint32, ("batch_plus_1",)),
            OperandSpec("host_lp_output_offsets", DType.uint32, ("batch_plus_1",), host=True),
        ),
        outputs=(
            OutputSpec("log_probabilities", DType.float32, ("rows", "slots")),
            OutputSpec("slot_tokens", DType.uint32, ("rows", "slots")),
        ),
        parameters=(
            ParameterSpec(
                "levels",
                int,
                accepts=lambda levels: 0 <= levels <= MAX_LEVELS,
                rule=f"from 0 to {MAX_LEVELS}",
            ),
        ),
        dims={"slots": lambda parameters, dims: 2 ** parameters["levels"]},
        computed=("rows",),
        build_dims=emit_row_count,
        build=emit_rows,
    )
)
