"""LLaDA (arXiv:2502.09992): Llama's blocks without the causal mask, under OLMo's names for the weights.

The project's own modelling code does not load under transformers 5, so its safetensors and its config.json are read
into transformers' Llama: pre-norm RMSNorm, rotary positions over halves, SwiGLU, no biases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import LlamaConfig, LlamaForCausalLM

from engine.errors import ModelError
from engine.models.architecture import Architecture, required, token_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL_TYPE = "llada"

KEY_MAPPING = {
    r"^model\.transformer\.wte\.": "model.embed_tokens.",
    r"^model\.transformer\.ln_f\.": "model.norm.",
    r"^model\.transformer\.ff_out\.": "lm_head.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_norm\.": r"model.layers.\1.input_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_norm\.": r"model.layers.\1.post_attention_layernorm.",
    r"^model\.transformer\.blocks\.(\d+)\.q_proj\.": r"model.layers.\1.self_attn.q_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.k_proj\.": r"model.layers.\1.self_attn.k_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.v_proj\.": r"model.layers.\1.self_attn.v_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.attn_out\.": r"model.layers.\1.self_attn.o_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_proj\.": r"model.layers.\1.mlp.gate_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.up_proj\.": r"model.layers.\1.mlp.up_proj.",
    r"^model\.transformer\.blocks\.(\d+)\.ff_out\.": r"model.layers.\1.mlp.down_proj.",
}

_MEANT = {
    "block_type": "llama",
    "layer_norm_type": "rms",
    "activation_type": "silu",
    "rope": True,
    "alibi": False,
    "include_bias": False,
    "include_qkv_bias": False,
    "bias_for_layer_norm": False,
    "attention_layer_norm": False,
    "input_emb_norm": False,
    "scale_logits": False,
}
"""Switches of the config and the one setting that this reading is for; absent means this."""


def read(content: Mapping[str, Any], tokenizer: Any) -> Architecture:
    """Translate LLaDA's config.json.

    Raises:
        ModelError: an entry is missing, or asks for a block that no published LLaDA has.
    """
    for name, meant in _MEANT.items():
        if content.get(name, meant) not in (meant, None):
            raise ModelError(
                f"This LLaDA model has {name} = {content[name]!r}, and only {meant!r} is known here.",
                "Use a published LLaDA-8B checkpoint, or one with the same blocks.",
            )
    width, heads = required(content, "d_model", "LLaDA"), required(content, "n_heads", "LLaDA")
    context = int(required(content, "max_sequence_length", "LLaDA"))
    eos_id = int(required(content, "eos_token_id", "LLaDA"))
    config = LlamaConfig(
        vocab_size=content.get("embedding_size") or required(content, "vocab_size", "LLaDA"),
        hidden_size=width,
        intermediate_size=content.get("mlp_hidden_size") or width * content.get("mlp_ratio", 4),
        num_hidden_layers=required(content, "n_layers", "LLaDA"),
        num_attention_heads=heads,
        num_key_value_heads=content.get("n_kv_heads") or heads,
        rms_norm_eps=content.get("rms_norm_eps", 1e-5),
        rope_parameters={"rope_type": "default", "rope_theta": float(content.get("rope_theta", 10_000.0))},
        max_position_embeddings=context,
        tie_word_embeddings=bool(content.get("weight_tying", False)),
        bos_token_id=None,
        eos_token_id=eos_id,
        dtype=content.get("torch_dtype") or content.get("dtype"),
    )
    return Architecture(
        family="LLaDA",
        model_class=LlamaForCausalLM,
        config=config,
        key_mapping=KEY_MAPPING,
        mask_id=int(required(content, "mask_token_id", "LLaDA")),
        eos_ids=(eos_id, *token_ids(tokenizer, "<|eot_id|>")),
        shift=False,
        context=context,
    )
