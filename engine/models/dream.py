"""Dream (arXiv:2508.15487): Qwen2's blocks without the causal mask, each position predicted one to its left.

The project's own modelling code loads under transformers 5 with an uninitialised rotary buffer, silently wrong. Its
weights have Qwen2's names, so they are read into transformers' Qwen2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.errors import ModelError
from engine.models.architecture import Architecture, required, token_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL_TYPE = "Dream"
CONTEXT = 2048
"""Tokens that Dream was trained on; its config says what Qwen2.5's positions could reach."""

_COPIED = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "rms_norm_eps",
    "max_position_embeddings",
)


def read(content: Mapping[str, Any], tokenizer: Any) -> Architecture:
    """Translate Dream's config.json.

    Raises:
        ModelError: an entry is missing, or asks for what no published Dream has.
    """
    for name in ("rope_scaling", "use_sliding_window"):
        if content.get(name):
            raise ModelError(
                f"This Dream model has {name} = {content[name]!r}, which is not known here.",
                "Use a published Dream-7B checkpoint, or one without it.",
            )
    eos_id = int(required(content, "eos_token_id", "Dream"))
    config = Qwen2Config(
        **{name: required(content, name, "Dream") for name in _COPIED},
        hidden_act=content.get("hidden_act", "silu"),
        rope_parameters={"rope_type": "default", "rope_theta": float(required(content, "rope_theta", "Dream"))},
        tie_word_embeddings=bool(content.get("tie_word_embeddings", False)),
        use_sliding_window=False,
        bos_token_id=None,
        eos_token_id=eos_id,
        dtype=content.get("torch_dtype") or content.get("dtype"),
    )
    return Architecture(
        family="Dream",
        model_class=Qwen2ForCausalLM,
        config=config,
        mask_id=int(required(content, "mask_token_id", "Dream")),
        eos_ids=(eos_id, *token_ids(tokenizer, "<|im_end|>")),
        shift=True,
        context=min(CONTEXT, int(content["max_position_embeddings"])),
    )
