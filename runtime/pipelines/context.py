"""What a request carries through the pipeline and back to its caller."""

from __future__ import annotations

import msgspec


class LogProbabilities(msgspec.Struct, tag=True, omit_defaults=True):
    """Log-probabilities of consecutive tokens of one sequence; the three lists have an entry for each token.

    Natural logarithms. MessagePack carries every value; JSON has neither infinity nor NaN, so there msgspec writes
    ``null``, which does not read back as a number.

    Args:
        token_log_probabilities: of the token itself.
        top_log_probabilities: the most probable tokens at that place, most probable first, and always the
            token itself, last if it is not among them.
        sampled_token_ids: the tokens. Absent from what older versions wrote, hence the default.
    """

    token_log_probabilities: list[float]
    top_log_probabilities: list[dict[int, float]]
    sampled_token_ids: list[int] = msgspec.field(default_factory=list)
