"""``compute_log_probabilities_ragged``: log-softmax of chosen rows of ragged logits, with their top tokens.

A batch of B sequences. Sequence b owns the rows ``logit_row_offsets[b]`` to ``logit_row_offsets[b + 1]`` of the logits,
likewise its tokens, and asks for the rows ``lp_output_offsets[b]`` to ``lp_output_offsets[b + 1]`` of the output. These
are its last logits rows, in order; the last one scores the sampled token, each one before it scores the prompt token
that follows. An output row has ``2**levels`` slots: the ``2**levels - 1`` most probable tokens, sorted by (logit
descending, token ascending), unused slots (vocab, -inf); the last slot is the scored token.

Four kernels: ``validate`` checks every offset and token before anything is sized by them; ``find_rows`` finds the
logits row and the token of each output row; ``summarise_chunks`` reads the logits, 16384 at a time, and leaves the sum
of exponentials of each chunk and the top tokens of every four; ``merge_chunks`` joins the chunks of a row in ascending
order.

The value is ``(x - M) - log(S)``, M the maximum of the row, S the sum of ``exp(x - M)``, within 2 ulp of the largest
magnitude of the row (plus log(vocab)) and 1e-6. A row that holds NaN or +inf, or nothing but -inf, is NaN, as IEEE
arithmetic has it; its top tokens are those of its numbers.
"""

from __future__ import annotations

from typing import Any

from halfulp.compiler.dtypes import DType

from . import pallas as pl
from .logprobs_reference import log_probabilities_reference
from .pallas import numpy as jnp

NAME = "compute_log_probabilities_ragged"
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

Pair = tuple[Any, Any]


def _wide(ref: Any, index: Any) -> Any:
    """An element of a uint32 reference as int64, in which differences have a sign."""
    return ref[index].astype(jnp.int64)


# -- validate


def validate(
    logits_ref: Any,
    tokens_ref: Any,
    sampled_tokens_ref: Any,
    logit_row_offsets_ref: Any,
    token_row_offsets_ref: Any,
    lp_output_offsets_ref: Any,
    host_lp_output_offsets_ref: Any,
) -> None:
    """Program b checks sequence b. The program after the last sequence checks the tokens that belong to none."""
    sequence = pl.program_id(0)
    batch = sampled_tokens_ref.shape[0]
    absent = sequence >= batch
    rows, vocab = logits_ref.shape
    offsets = {
        "logit_row_offsets": logit_row_offsets_ref,
        "token_row_offsets": token_row_offsets_ref,
        "lp_output_offsets": lp_output_offsets_ref,
        "host_lp_output_offsets": host_lp_output_offsets_ref,
    }
    _check_lengths(offsets, batch, vocab)

    def steps(name: str, limit: Any, what: str) -> Pair:
        return _check_offsets(name, offsets[name], sequence, absent, limit, what)

    logits_span = steps("logit_row_offsets", rows, "rows of logits")
    tokens_span = steps("token_row_offsets", tokens_ref.shape[0], "tokens")
    output_span = steps("lp_output_offsets", rows, "rows of logits")
    _check_host_copy(host_lp_output_offsets_ref, sequence, output_span)
    _check_counts(sequence, absent, logits_span, tokens_span, output_span)
    sampled = _wide(sampled_tokens_ref, sequence)
    message = "sampled_tokens[{}] is {}, but the vocabulary has {} tokens"
    pl.check(absent | (sampled < vocab), message, sequence, sampled, vocab)
    start, end = tokens_span
    _check_prompt_tokens(tokens_ref, vocab, start, jnp.where(absent, tokens_ref.shape[0], end))


def _check_lengths(offsets: dict[str, Any], batch: Any, vocab: Any) -> None:
    pl.check(vocab <= MAX_VOCAB, f"the vocabulary may have at most {MAX_VOCAB} tokens, not {{}}", vocab)
    for name, ref in offsets.items():
        message = f"{name} must have one element more than sampled_tokens, which has {{}}; it has {{}}"
        pl.check(ref.shape[0] == batch + 1, message, batch, ref.shape[0])


def _check_offsets(name: str, ref: Any, sequence: Any, absent: Any, limit: Any, what: str) -> Pair:
    """Checks one step of an offsets operand; returns where the sequence starts and ends."""
    start, end = _wide(ref, sequence), _wide(ref, sequence + 1)
    pl.check((sequence != 0) | (start == 0), f"{name} must start at 0, not at {{}}", start)
    message = f"{name} must not descend, but goes from {{}} to {{}} in sequence {{}}"
    pl.check(absent | (start <= end), message, start, end, sequence)
    message = f"{name} ends sequence {{}} at {{}}, but there are only {{}} {what}"
    pl.check(absent | (end <= limit), message, sequence, end, limit)
    return start, end


def _check_host_copy(host_ref: Any, sequence: Any, output_span: Pair) -> None:
    for step, on_device in enumerate(output_span):
        on_host = _wide(host_ref, sequence + step)
        message = "host_lp_output_offsets must equal lp_output_offsets, but element {} is {} and not {}"
        pl.check(on_device == on_host, message, sequence + step, on_host, on_device)


def _check_counts(sequence: Any, absent: Any, logits_span: Pair, tokens_span: Pair, output_span: Pair) -> None:
    """Each output row needs a row of logits, and each but the last a prompt token."""
    count, rows, tokens = (end - start for start, end in (output_span, logits_span, tokens_span))
    message = "sequence {} asks for {} rows of log-probabilities, but it has {} rows of logits"
    pl.check(absent | (count <= rows), message, sequence, count, rows)
    message = "sequence {} asks for {} rows of log-probabilities, but only {} tokens precede the sampled one"
    pl.check(absent | (count <= tokens + 1), message, sequence, count, tokens)


def _check_prompt_tokens(tokens_ref: Any, vocab: Any, start: Any, end: Any) -> None:
    end = jnp.minimum(end, tokens_ref.shape[0])

    def scan(block: Any, found: Any) -> Any:
        first = start + block * TOKENS_PER_BLOCK
        token = pl.load(tokens_ref, pl.ds(first, TOKENS_PER_BLOCK), other=0)
        position = jnp.iota((TOKENS_PER_BLOCK,), dtype=jnp.uint32) + first.astype(jnp.uint32)
        wrong = (token >= vocab.astype(jnp.uint32)) & (position < end.astype(jnp.uint32))
        return jnp.minimum(found, jnp.min(jnp.where(wrong, position, jnp.uint32(NO_POSITION))))

    found = pl.fori_loop(0, pl.cdiv(end - start, TOKENS_PER_BLOCK), scan, jnp.uint32(NO_POSITION))
    message = "tokens[{}] is {}, but the vocabulary has {} tokens"
    pl.check(found == NO_POSITION, message, found, tokens_ref[found], vocab)


# -- rows


def find_rows(
    tokens_ref: Any,
    sampled_tokens_ref: Any,
    logit_row_offsets_ref: Any,
    token_row_offsets_ref: Any,
    lp_output_offsets_ref: Any,
    logits_row_ref: Any,
    scored_token_ref: Any,
) -> None:
    """Program r finds what output row r scores: its row of logits and its token."""
    row = pl.program_id(0)
    sequence = _sequence_of(lp_output_offsets_ref, row, sampled_tokens_ref.shape[0])
    before_last = _wide(lp_output_offsets_ref, sequence + 1) - row - 1
    logits_row_ref[...] = (_wide(logit_row_offsets_ref, sequence + 1) - 1 - before_last).astype(jnp.uint32)
    prompt_token = tokens_ref[_wide(token_row_offsets_ref, sequence + 1) - before_last]
    scored_token_ref[...] = jnp.where(before_last == 0, sampled_tokens_ref[sequence], prompt_token)


def _sequence_of(lp_output_offsets_ref: Any, row: Any, batch: Any) -> Any:
    """The first sequence that ends after ``row``, by bisection."""

    def halve(bounds: Pair) -> Pair:
        low, high = bounds
        middle = (low + high) // 2
        ends_after = _wide(lp_output_offsets_ref, middle + 1) > row
        return jnp.where(ends_after, low, middle + 1), jnp.where(ends_after, middle, high)

    return pl.while_loop(lambda bounds: bounds[0] < bounds[1], halve, (jnp.int32(0), batch))[0]


# -- chunks


def summarise_chunks(
    logits_ref: Any,
    logits_row_ref: Any,
    shifts_ref: Any,
    sums_ref: Any,
    best_values_ref: Any,
    best_tokens_ref: Any,
) -> None:
    """Program (r, p): the sum of exponentials of each chunk of part p of output row r, and the part's best tokens.

    What is subtracted under the exponentials is the best logit of the part so far, so none of them exceeds 1; it is
    left in ``shifts``. A NaN is never the best, but makes the sum NaN.
    """
    row, vocab = logits_row_ref[...], logits_ref.shape[1]
    part_start = pl.program_id(1) * (CHUNKS_PER_PART * CHUNK)
    places = jnp.iota((CHUNKS_PER_PART,))

    def summarise(chunk: Any, carried: Any) -> Any:
        values, tokens, shifts, sums = carried
        start = part_start + chunk * CHUNK
        logits = pl.load(logits_ref, (row, pl.ds(start, CHUNK)), other=-jnp.inf)
        values, tokens = pl.top_merge(values, tokens, logits, jnp.iota((CHUNK,)) + start)
        largest = values[0]
        total = jnp.sum(jnp.exp(logits - _or_zero(largest), upper_bounded=True))
        here = places == chunk
        return values, tokens, jnp.where(here, largest, shifts), jnp.where(here, total, sums)

    chunks = jnp.minimum(pl.cdiv(vocab - part_start, CHUNK), CHUNKS_PER_PART)
    none = jnp.full((CHUNKS_PER_PART,), 0, jnp.float32)
    carried = (*_empty_slots(best_values_ref.shape[0], vocab), none, none)
    best_values_ref[...], best_tokens_ref[...], shifts_ref[...], sums_ref[...] = pl.fori_loop(
        0, chunks, summarise, carried
    )


def _or_zero(largest: Any) -> Any:
    """What to subtract: the largest logit, but 0 where there is nothing but -inf, for -inf - -inf is NaN."""
    return jnp.where(largest == -jnp.inf, 0.0, largest)


def _empty_slots(kept: int, vocab: Any) -> Pair:
    return jnp.full((kept,), -jnp.inf, jnp.float32), jnp.full((kept,), vocab)


# -- merge


def merge_chunks(
    logits_ref: Any,
    logits_row_ref: Any,
    scored_token_ref: Any,
    shifts_ref: Any,
    sums_ref: Any,
    best_values_ref: Any,
    best_tokens_ref: Any,
    values_ref: Any,
    tokens_ref: Any,
) -> None:
    """Program r: joins the chunks of output row r and writes its slots."""
    row, vocab = pl.program_id(0), logits_ref.shape[1]
    _, parts, kept = best_values_ref.shape
    empty_values, empty_tokens = _empty_slots(kept, vocab)

    def merge(part: Any, best: Pair) -> Pair:
        return pl.top_merge(*best, best_values_ref[row, part], best_tokens_ref[row, part])

    values, tokens = pl.fori_loop(0, parts, merge, (empty_values, empty_tokens))
    maximum = values[0]  # of all that are numbers; a NaN shows in the sum
    log_sum = jnp.log(_total(shifts_ref, sums_ref, row, _or_zero(maximum)))

    def log_probability(logit: Any) -> Any:
        return ((logit - maximum) - log_sum) + 0.0  # + 0 turns the -0 of a sure token into 0

    token, top = scored_token_ref[...], values_ref.shape[0] - 1
    values_ref[top] = log_probability(logits_ref[logits_row_ref[...], token])
    tokens_ref[top] = token
    if top:
        unused = values == -jnp.inf
        values_ref[:top] = jnp.where(unused, -jnp.inf, log_probability(values))
        tokens_ref[:top] = jnp.where(unused, empty_tokens, tokens).astype(jnp.uint32)


def _total(shifts_ref: Any, sums_ref: Any, row: Any, maximum: Any) -> Any:
    """The sum of ``exp(x - maximum)`` over a row, chunks in ascending order."""

    def add(chunk: Any, so_far: Any) -> Any:
        return so_far + sums_ref[row, chunk] * jnp.exp(shifts_ref[row, chunk] - maximum, upper_bounded=True)

    return pl.fori_loop(0, shifts_ref.shape[1], add, jnp.float32(0))


# -- the op


def count_rows(*operands: Any, levels: int) -> Any:
    """Checks all operands; the number of output rows is the last host offset, 0 if there is none."""
    batch = operands[2].shape[0]
    pl.pallas_call(validate, (), grid=batch + 1)(*operands)
    return operands[-1][-1]


@pl.register_kernel(
    NAME,
    operands=[
        pl.OperandSpec("logits", DType.float32, ("logits_rows", "vocab")),
        pl.OperandSpec("tokens", DType.uint32, ("tokens",)),
        pl.OperandSpec("sampled_tokens", DType.uint32, ("batch",)),
        pl.OperandSpec("logit_row_offsets", DType.uint32, ("batch_plus_1",)),
        pl.OperandSpec("token_row_offsets", DType.uint32, ("batch_plus_1",)),
        pl.OperandSpec("lp_output_offsets", DType.uint32, ("batch_plus_1",)),
        pl.OperandSpec("host_lp_output_offsets", DType.uint32, ("batch_plus_1",), host=True),
    ],
    outputs=[
        pl.OutputSpec("log_probabilities", DType.float32, ("rows", "slots")),
        pl.OutputSpec("slot_tokens", DType.uint32, ("rows", "slots")),
    ],
    parameters=[
        pl.ParameterSpec(
            "levels", int, accepts=lambda levels: 0 <= levels <= MAX_LEVELS, rule=f"from 0 to {MAX_LEVELS}"
        )
    ],
    dims={"slots": lambda parameters, dims: 2 ** parameters["levels"]},
    computed={"rows": count_rows},
    special_values=True,
    reference=log_probabilities_reference,
)
def log_probabilities(
    logits: Any,
    tokens: Any,
    sampled_tokens: Any,
    logit_row_offsets: Any,
    token_row_offsets: Any,
    lp_output_offsets: Any,
    host_lp_output_offsets: Any,
    *,
    levels: int,
    rows: Any,
) -> Any:
    """The launches that fill the outputs."""
    vocab = logits.shape[1]
    slots = 2**levels
    kept = max(slots - 1, 1)  # the best logit is wanted in any case
    chunks, parts = pl.cdiv(vocab, CHUNK), pl.cdiv(vocab, CHUNK * CHUNKS_PER_PART)
    one_of_row = pl.BlockSpec((None,), lambda r, *_: r)
    logits_rows, scored_tokens = pl.pallas_call(
        find_rows, [pl.ShapeDtypeStruct((rows,), "uint32")] * 2, grid=rows, out_specs=[one_of_row] * 2
    )(tokens, sampled_tokens, logit_row_offsets, token_row_offsets, lp_output_offsets)

    of_chunks = pl.ShapeDtypeStruct((rows, chunks), "float32")
    best = [pl.ShapeDtypeStruct((rows, parts, kept), dtype) for dtype in ("float32", "int32")]
    chunk_block = pl.BlockSpec((None, CHUNKS_PER_PART), lambda r, p: (r, p))
    best_block = pl.BlockSpec((None, None, kept), lambda r, p: (r, p, 0))
    summaries = pl.pallas_call(
        summarise_chunks,
        [of_chunks, of_chunks, *best],
        grid=(rows, parts),
        in_specs=[None, one_of_row],
        out_specs=[chunk_block, chunk_block, best_block, best_block],
    )(logits, logits_rows)

    row_block = pl.BlockSpec((None, slots), lambda r: (r, 0))
    return pl.pallas_call(
        merge_chunks,
        [pl.ShapeDtypeStruct((rows, slots), dtype) for dtype in ("float32", "uint32")],
        grid=rows,
        in_specs=[None, one_of_row, one_of_row, None, None, None, None],
        out_specs=[row_block, row_block],
    )(logits, logits_rows, scored_tokens, *summaries)
