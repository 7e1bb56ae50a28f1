"""Wrong offsets and tokens given straight to the compiled graph: an error that names them, never a stray read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from logprobs_adapter import loaded_model

from halfulp.runtime.errors import ExecutionError

NAMES = (
    "logits",
    "tokens",
    "sampled_tokens",
    "logit_row_offsets",
    "token_row_offsets",
    "lp_output_offsets",
    "host_lp_output_offsets",
)
HUGE = 2**32 - 1


def u32(*values: int) -> Any:
    return np.array(values, np.uint32)


def operands(**changes: Any) -> list[Any]:
    """Two sequences of three and two tokens over a vocabulary of six; one output row for each token."""
    valid = {
        "logits": np.zeros((5, 6), np.float32),
        "tokens": u32(5, 1, 2, 0, 4),
        "sampled_tokens": u32(3, 1),
        "logit_row_offsets": u32(0, 3, 5),
        "token_row_offsets": u32(0, 3, 5),
        "lp_output_offsets": u32(0, 3, 5),
    }
    valid |= changes
    valid.setdefault("host_lp_output_offsets", valid["lp_output_offsets"])
    return [valid[name] for name in NAMES]


CASES: list[tuple[dict[str, Any], str, int]] = [
    ({"logit_row_offsets": u32(1, 3, 5)}, "logit_row_offsets must start at 0, not at 1", 0),
    ({"token_row_offsets": u32(2, 3, 5)}, "token_row_offsets must start at 0, not at 2", 0),
    ({"lp_output_offsets": u32(1, 3, 5)}, "lp_output_offsets must start at 0, not at 1", 0),
    ({"logit_row_offsets": u32(0, 5, 3)}, "logit_row_offsets must not descend, but goes from 5 to 3 in sequence 1", 1),
    ({"token_row_offsets": u32(0, 5, 4)}, "token_row_offsets must not descend, but goes from 5 to 4 in sequence 1", 1),
    ({"lp_output_offsets": u32(0, 3, 2)}, "lp_output_offsets must not descend, but goes from 3 to 2 in sequence 1", 1),
    (
        {"logit_row_offsets": u32(0, 3, 6)},
        "logit_row_offsets ends sequence 1 at 6, but there are only 5 rows of logits",
        1,
    ),
    (
        {"logit_row_offsets": u32(0, HUGE, HUGE)},
        "logit_row_offsets ends sequence 0 at 4294967295, but there are only 5 rows of logits",
        0,
    ),
    (
        {"token_row_offsets": u32(0, 3, HUGE)},
        "token_row_offsets ends sequence 1 at 4294967295, but there are only 5 tokens",
        1,
    ),
    (
        {"lp_output_offsets": u32(0, 3, HUGE)},
        "lp_output_offsets ends sequence 1 at 4294967295, but there are only 5 rows of logits",
        1,
    ),
    (
        {"host_lp_output_offsets": u32(0, 2, 5)},
        "host_lp_output_offsets must equal lp_output_offsets, but element 1 is 2 and not 3",
        0,
    ),
    (
        {"host_lp_output_offsets": u32(0, 3, HUGE)},
        "host_lp_output_offsets must equal lp_output_offsets, but element 2 is 4294967295 and not 5",
        1,
    ),
    (
        {"lp_output_offsets": u32(0, 1, 5)},
        "sequence 1 asks for 4 rows of log-probabilities, but it has 2 rows of logits",
        1,
    ),
    (
        {"logit_row_offsets": u32(0, 0, 5), "lp_output_offsets": u32(0, 1, 2)},
        "sequence 0 asks for 1 rows of log-probabilities, but it has 0 rows of logits",
        0,
    ),
    (
        {"token_row_offsets": u32(0, 1, 2)},
        "sequence 0 asks for 3 rows of log-probabilities, but only 1 tokens precede the sampled one",
        0,
    ),
    ({"sampled_tokens": u32(3, 6)}, "sampled_tokens[1] is 6, but the vocabulary has 6 tokens", 1),
    ({"sampled_tokens": u32(HUGE, 1)}, "sampled_tokens[0] is 4294967295, but the vocabulary has 6 tokens", 0),
    ({"tokens": u32(5, 1, 6, 0, 4)}, "tokens[2] is 6, but the vocabulary has 6 tokens", 0),
    ({"tokens": u32(5, 1, 2, 0, HUGE)}, "tokens[4] is 4294967295, but the vocabulary has 6 tokens", 1),
    (
        {"logits": np.zeros((5, 0), np.float32)},
        "sampled_tokens[0] is 3, but the vocabulary has 0 tokens",
        0,
    ),
    (
        {"sampled_tokens": u32(3, 1, 2)},
        "logit_row_offsets must have one element more than sampled_tokens, which has 3; it has 3",
        0,
    ),
    (
        {name: u32() for name in NAMES[3:]},
        "logit_row_offsets must have one element more than sampled_tokens, which has 2; it has 0",
        0,
    ),
]


@pytest.mark.parametrize(("changes", "message", "program"), CASES)
@pytest.mark.parametrize("levels", [0, 3])
def test_wrong_operands_are_refused(changes: dict[str, Any], message: str, program: int, levels: int) -> None:
    with pytest.raises(ExecutionError) as raised:
        loaded_model(levels).execute(*operands(**changes))
    kernel = "compute_log_probabilities_ragged_validate"
    assert str(raised.value) == (f"model 'log_probabilities_ragged': {message} (kernel '{kernel}', program {program})")
    assert (raised.value.kernel, raised.value.program) == (kernel, program)


def test_a_wrong_token_deep_in_a_long_prompt_is_found() -> None:
    tokens = np.zeros(5000, np.uint32)
    tokens[4321] = 7
    offsets = u32(0, 5000)
    arguments = operands(
        logits=np.zeros((1, 7), np.float32),
        tokens=tokens,
        sampled_tokens=u32(6),
        logit_row_offsets=u32(0, 1),
        token_row_offsets=offsets,
        lp_output_offsets=u32(0, 1),
    )
    with pytest.raises(ExecutionError, match=r"tokens\[4321\] is 7, but the vocabulary has 7 tokens"):
        loaded_model(3).execute(*arguments)


def test_tokens_of_no_sequence_are_checked_too() -> None:
    with pytest.raises(ExecutionError, match=r"tokens\[6\] is 9, but the vocabulary has 6 tokens"):
        loaded_model(3).execute(*operands(tokens=u32(5, 1, 2, 0, 4, 0, 9)))


def test_offsets_of_different_lengths_are_refused() -> None:
    with pytest.raises(ExecutionError, match=r"symbolic dimension 'batchp1' is 3 .* but 2 "):
        loaded_model(3).execute(*operands(token_row_offsets=u32(0, 5)))


def test_a_model_works_after_a_refusal() -> None:
    with pytest.raises(ExecutionError):
        loaded_model(3).execute(*operands(tokens=u32(5, 1, 6, 0, 4)))
    values, tokens = loaded_model(3).execute(*operands())
    np.testing.assert_allclose(values.to_numpy()[:, :6], -np.log(6), rtol=1e-6)
    assert tokens.to_numpy()[:, -1].tolist() == [1, 2, 3, 4, 1]


@pytest.mark.parametrize("seed", range(20))
def test_arbitrary_offsets_and_tokens_end_in_a_result_or_an_error(seed: int) -> None:
    """Whatever the integers are, the graph returns or refuses; nothing outside the operands is read."""
    rng = np.random.default_rng(seed)
    pick = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 2**31 - 1, 2**31, HUGE], size=(5, 5)).astype(np.uint32)
    arguments = operands(
        tokens=pick[0],
        sampled_tokens=pick[1, :2],
        logit_row_offsets=pick[2, :3],
        token_row_offsets=pick[3, :3],
        lp_output_offsets=pick[4, :3],
    )
    with pytest.raises(ExecutionError):
        loaded_model(3).execute(*arguments)
