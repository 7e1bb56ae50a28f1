"""Host code around compiled graphs: what text generation needs besides the model itself."""

from __future__ import annotations

from .context import LogProbabilities
from .log_probabilities import compute_log_probabilities_ragged, log_probabilities_ragged_graph

__all__ = ["LogProbabilities", "compute_log_probabilities_ragged", "log_probabilities_ragged_graph"]
