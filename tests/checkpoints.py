"""Tiny random checkpoints of each family, written as their projects publish them: what the tests load by path."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

TEXT = [
    "the cat sat on the mat, and 10 dogs ran away.", "a real number is 3.14 or 42", "naïve café – 漢字 😀 Ünïcode",
    "Yes. No! Maybe? don't worry", "0 1 2 3 4 5 6 7 8 9 10 11 12 99 100",
]  # fmt: skip
LLADA_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] }}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
DREAM_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_level(specials: list[str], size: int = 330) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    return tokenizer


def scaled(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Random weights wide enough that logits differ by nats and depend on everything."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                std = 0.7 if "embed" in name or "head" in name else 1.0 / parameter.shape[-1] ** 0.5
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
            else:
                parameter.copy_(1 + 0.2 * torch.randn(parameter.shape, generator=generator))
    return model


def llada(folder: Path, seed: int = 0, *, template: bool = True, extra: int = 6, **changes) -> Path:
    """LLaDA's own config.json, names of weights and tokenizer, in small; the head is wider than the tokenizer."""
    specials = [
        "<|startoftext|>", "<|endoftext|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|mdm_mask|>",
    ]  # fmt: skip
    raw = byte_level(specials)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=specials[0], eos_token=specials[1], pad_token=specials[1],
        additional_special_tokens=specials[2:], clean_up_tokenization_spaces=False,
    )  # fmt: skip
    if template:
        tokenizer.chat_template = LLADA_TEMPLATE
    tokenizer.save_pretrained(folder)
    size = len(tokenizer) + extra
    config = {
        "architectures": ["LLaDAModelLM"], "model_type": "llada", "d_model": 32, "n_heads": 4, "n_kv_heads": 4,
        "n_layers": 2, "mlp_hidden_size": 48, "mlp_ratio": 4, "activation_type": "silu", "block_type": "llama",
        "rope": True, "rope_theta": 500000.0, "alibi": False, "layer_norm_type": "rms", "rms_norm_eps": 1e-5,
        "weight_tying": False, "include_bias": False, "include_qkv_bias": False, "bias_for_layer_norm": False,
        "vocab_size": size, "embedding_size": size, "max_sequence_length": 96, "eos_token_id": 1, "pad_token_id": 1,
        "mask_token_id": 5, "attention_layer_norm": False, "scale_logits": False, "torch_dtype": "float32",
        "auto_map": {"AutoConfig": "configuration_llada.LLaDAConfig", "AutoModel": "modeling_llada.LLaDAModelLM"},
        **changes,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    same = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            tie_word_embeddings=False,
        )
    )  # fmt: skip
    weights = {llada_name(name): value for name, value in scaled(same, seed).state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def llada_name(name: str) -> str:
    """The name that LLaDA's checkpoints have for a weight of Llama."""
    for old, new in (
        ("model.embed_tokens", "model.transformer.wte"), ("model.norm", "model.transformer.ln_f"),
        ("lm_head", "model.transformer.ff_out"), ("model.layers", "model.transformer.blocks"),
        ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ff_norm"), ("self_attn.o_proj", "attn_out"),
        ("self_attn.", ""), ("mlp.gate_proj", "ff_proj"), ("mlp.up_proj", "up_proj"), ("mlp.down_proj", "ff_out"),
    ):  # fmt: skip
        name = name.replace(old, new)
    return name


def dream(folder: Path, seed: int = 0, *, extra: int = 6, **changes) -> Path:
    """Dream's config.json and Qwen2.5's names and tokenizer files (no tokenizer.json), in small."""
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|beginoftext|>", "<|mask|>"]
    folder.mkdir(parents=True, exist_ok=True)
    raw = byte_level([])
    raw.model.save(str(folder))
    first = raw.get_vocab_size()
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "DreamTokenizer",
                "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
                "added_tokens_decoder": {
                    str(first + n): {
                        "content": text,
                        "lstrip": False,
                        "normalized": False,
                        "rstrip": False,
                        "single_word": False,
                        "special": True,
                    }
                    for n, text in enumerate(specials)
                },
                "eos_token": specials[0],
                "pad_token": specials[0],
                "bos_token": specials[3],
                "mask_token": specials[4],
                "chat_template": DREAM_TEMPLATE,
                "model_max_length": 131072,
            }
        )
    )
    size = first + len(specials) + extra
    config = {
        "architectures": ["DreamModel"], "model_type": "Dream", "hidden_size": 32, "intermediate_size": 48,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0, "rope_scaling": None, "tie_word_embeddings": False, "vocab_size": size,
        "max_position_embeddings": 96, "use_sliding_window": False, "sliding_window": None, "max_window_layers": 2,
        "mask_token_id": first + 4, "eos_token_id": first, "pad_token_id": first, "bos_token_id": first + 3,
        "hidden_act": "silu", "torch_dtype": "float32", **changes,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    same = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, tie_word_embeddings=False,
        )
    )  # fmt: skip
    save_file(dict(scaled(same, seed).state_dict()), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def word_piece(*, cleanup: bool = True) -> PreTrainedTokenizerFast:
    """BERT's kind of tokenizer."""
    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece(cleanup=cleanup)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    raw.train_from_iterator(
        TEXT * 3, trainers.WordPieceTrainer(vocab_size=140, special_tokens=specials, show_progress=False)
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip


def sentence_piece(*, strip: bool) -> PreTrainedTokenizerFast:
    """Llama 2's kind (`strip`): marks replaced, bytes fallen back to, one space stripped; or T5's, by Metaspace."""
    specials = ["<unk>", "<s>", "</s>", "<mask>"]
    if strip:
        raw = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        raw.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
        specials += [f"<0x{n:02X}>" for n in range(256)]
        trainer = trainers.BpeTrainer(vocab_size=380, special_tokens=specials, show_progress=False)
        raw.train_from_iterator([f"▁{text}".replace(" ", "▁") for text in TEXT * 3], trainer)
        state = json.loads(raw.to_str())
        state["added_tokens"] = state["added_tokens"][:4]  # the bytes are tokens like any other
        raw = Tokenizer.from_str(json.dumps(state))
    else:
        raw = Tokenizer(models.Unigram())
        raw.pre_tokenizer = pre_tokenizers.Metaspace()
        raw.decoder = decoders.Metaspace()
        raw.train_from_iterator(
            TEXT * 3,
            trainers.UnigramTrainer(vocab_size=120, special_tokens=specials, unk_token="<unk>", show_progress=False),
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="</s>", mask_token="<mask>"
    )


def bert(folder: Path, seed: int = 0) -> Path:
    tokenizer = word_piece()
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64,
    )  # fmt: skip
    scaled(BertForMaskedLM(config), seed).save_pretrained(folder)
    return folder


def modern_bert(folder: Path, seed: int = 0) -> Path:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(specials), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    config = ModernBertConfig(
        vocab_size=len(tokenizer) + 3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64, pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    scaled(ModernBertForMaskedLM(config), seed).save_pretrained(folder)
    return folder


def roberta(folder: Path, seed: int = 0) -> Path:
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(specials), pad_token="<pad>", unk_token="<unk>", cls_token="<s>", sep_token="</s>",
        bos_token="<s>", eos_token="</s>", mask_token="<mask>",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64,
    )  # fmt: skip
    scaled(RobertaForMaskedLM(config), seed).save_pretrained(folder)
    return folder


CUSTOM = '''
"""A model that only its own code can read: its logits are those of an embedding and a linear layer."""

import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput


class CustomConfig(PretrainedConfig):
    model_type = "custom_of_a_test"

    def __init__(self, vocab_size=100, hidden_size=16, **words):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        super().__init__(**words)


class CustomForMaskedLM(PreTrainedModel):
    config_class = CustomConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.head = torch.nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def get_input_embeddings(self):
        return self.embed

    def get_output_embeddings(self):
        return self.head

    def forward(self, input_ids):
        return MaskedLMOutput(logits=self.head(self.embed(input_ids)))
'''


def custom(folder: Path, seed: int = 0) -> Path:
    """Write a checkpoint that brings its own code, which leaves a file behind when it is run."""
    tokenizer = word_piece()
    tokenizer.save_pretrained(folder)
    ran = f"\nfrom pathlib import Path\nPath({str(folder / 'ran')!r}).touch()\n"
    (folder / "modeling_custom.py").write_text(CUSTOM + ran)
    content = {
        "model_type": "custom_of_a_test",
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "auto_map": {
            "AutoConfig": "modeling_custom.CustomConfig",
            "AutoModelForMaskedLM": "modeling_custom.CustomForMaskedLM",
        },
    }
    (folder / "config.json").write_text(json.dumps(content))
    generator = torch.Generator().manual_seed(seed)
    shapes = {"embed.weight": (len(tokenizer), 16), "head.weight": (len(tokenizer), 16), "head.bias": (len(tokenizer),)}
    weights = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
