"""Names of dumped tensors, such as ``model.layers.0.mlp-output``, taken apart so that those of two programs compare.

A name is the path of a layer, ``(2)`` if the layer ran more than once in the step, and what of it was looked at: an
input or the output, with the number or name of an argument or field. Other names are paths alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

Path = tuple[str, ...]

_NAME = re.compile(
    r"(?P<path>.*?)(?:\((?P<call>\d+)\))?-(?P<port>input|output)(?:_(?P<field>.+?))?(?:\((?P<run>\d+)\))?"
)
_PLAIN = re.compile(r"(?P<path>.*?)(?:\((?P<run>\d+)\))?")

WRAPPERS = frozenset(
    ("model", "language_model", "text_model", "transformer", "module", "backbone", "base_model", "decoder", "_orig_mod")
)
"""Layers at the root that hold the whole model: how many of them there are differs between programs."""

SYNONYMS = {
    "h": "layers", "blocks": "layers", "block": "layers",
    "wte": "embed_tokens", "tok_embeddings": "embed_tokens", "word_embeddings": "embed_tokens",
    "attn": "self_attn", "attention": "self_attn", "self_attention": "self_attn",
    "feed_forward": "mlp", "ffn": "mlp",
    "ln_1": "input_layernorm", "attention_norm": "input_layernorm", "attn_norm": "input_layernorm",
    "ln_2": "post_attention_layernorm", "ffn_norm": "post_attention_layernorm", "mlp_norm": "post_attention_layernorm",
    "ln_f": "norm", "final_layernorm": "norm", "final_norm": "norm",
    "wq": "q_proj", "wk": "k_proj", "wv": "v_proj", "wo": "o_proj", "out_proj": "o_proj",
    "query": "q_proj", "key": "k_proj", "value": "v_proj",
    "w1": "gate_proj", "w2": "down_proj", "w3": "up_proj",
    "act": "act_fn", "activation": "act_fn", "activation_fn": "act_fn", "gelu": "act_fn", "silu": "act_fn",
    "Wqkv": "qkv_proj", "wqkv": "qkv_proj", "qkv": "qkv_proj", "query_key_value": "qkv_proj", "c_attn": "qkv_proj",
    "in_proj": "qkv_proj", "gate_up": "gate_up_proj", "w13": "gate_up_proj",
}  # fmt: skip
"""What layers are called elsewhere, and here."""

FUSED: dict[str, tuple[str, ...]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "kv_proj": ("k_proj", "v_proj"),
}
"""Products of matrices that some programs compute as one: the parts lie side by side in the last axis."""

_ORDER = (
    "embed_tokens", "rotary_emb", "layers", "input_layernorm", "self_attn", "q_proj", "k_proj", "v_proj", "qkv_proj",
    "q_norm", "k_norm", "o_proj", "post_attention_layernorm", "mlp", "gate_proj", "up_proj", "gate_up_proj", "act_fn",
    "down_proj", "norm", "lm_head",
)  # fmt: skip
_RANKS = {name: rank for rank, name in enumerate(_ORDER)}


@dataclass(frozen=True)
class TensorName:
    """A name taken apart.

    Attributes:
        path: the layers from the root on.
        call: which call of the layer in its step, from 1.
        port: ``"input"``, ``"output"``, or "" of other names.
        field: which argument or part of a result, "" if there is one only.
        run: which execution, from 1, where files of several lie in one folder.
    """

    path: Path
    call: int = 1
    port: str = ""
    field: str = ""
    run: int = 1

    @property
    def canonical(self) -> TensorName:
        """The same with the names of layers that are used here, without the layers that only wrap a model."""
        return replace(self, path=canonical_path(self.path))

    @property
    def numbers(self) -> Path:
        """The parts of the path that are numbers: the indices of layers."""
        return tuple(part for part in self.path if part.isdigit())


@lru_cache(maxsize=1 << 16)
def parse_name(text: str) -> TensorName:
    """A name taken apart; every text is one."""
    match = _NAME.fullmatch(text) or _PLAIN.fullmatch(text)
    found = match.groupdict() if match else {"path": text}  # a name with a line break
    path = tuple(found["path"].split("."))
    call, run = int(found.get("call") or 1), int(found.get("run") or 1)
    return TensorName(path, call, found.get("port") or "", found.get("field") or "", run)


def canonical_path(path: Path) -> Path:
    """The path with our names, wrappers at the root dropped and ``layers.layers`` written once.

    >>> canonical_path(("model", "model", "layers", "0", "attn"))
    ('layers', '0', 'self_attn')
    """
    found: list[str] = []
    for part in path:
        if not found and part in WRAPPERS:
            continue
        part = SYNONYMS.get(part, part)
        if not found or found[-1] != part or part.isdigit():
            found.append(part)
    return tuple(found)


def execution_key(text: str) -> tuple[object, ...]:
    """Sorts names as a decoder would execute them, for folders that do not tell their order.

    What goes into a layer comes before the layer's own parts and its output after them; layers are in the order of
    their numbers, else in that of the transformers that all follow, else in that of the alphabet.
    """
    name = parse_name(text).canonical
    parts: list[tuple[int, int, str]] = []
    for part in name.path:
        parts.append((1, int(part), "") if part.isdecimal() else (1, _RANKS.get(part, len(_RANKS)), part))
    end = {"input": 0, "": 1, "output": 2}[name.port]
    field = int(name.field) if name.field.isdecimal() else -1
    return (name.run, (*parts, (end, field, name.field)), name.call, text)


def renamed(text: str, renamings: dict[str, str]) -> str:
    """A name after the renamings of ``--map``: each replaces whole parts of the path wherever they come.

    >>> renamed("model.h.0.mlp-output", {"model.h": "decoder.layers"})
    'decoder.layers.0.mlp-output'
    """
    for old, new in renamings.items():
        text = re.sub(rf"(?<![^.]){re.escape(old)}(?![^.\-(])", lambda _, new=new: new, text)  # type: ignore[misc]
    return text
