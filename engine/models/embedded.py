"""The embedded model: a small masked diffusion language model of LLaDA's form, in a folder."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModel,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from engine.errors import ModelError
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parents[2] / "assets" / "model"
BATCH_TOKENS = 512
"""Tokens of a batch: what the blocks make of more leaves the caches, and each then takes a fifth longer."""


class EmbeddedConfig(PreTrainedConfig):
    """Sizes of the transformer, and the ids with a meaning.

    Attributes:
        dead_ids: ids that are never an answer: pad, separator and mask.
        sep_token_id: stands between the prompt and the canvas.
        mix_neighbours: each block adds to what its attention reads of a position a learnt share of the
            positions on its left and right; not in LLaDA.
    """

    model_type = "denoiscope"

    vocab_size: int = 1536
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    rope_theta: float = 10_000.0
    max_position_embeddings: int = 1536
    rms_norm_eps: float = 1e-6
    pad_token_id: int = 0
    sep_token_id: int = 1
    eos_token_id: int = 2
    mask_token_id: int = 3
    tie_word_embeddings: bool = True
    mix_neighbours: bool = False

    @property
    def dead_ids(self) -> tuple[int, ...]:
        """Ids whose logit is -inf."""
        return (self.pad_token_id, self.sep_token_id, self.mask_token_id)


class _Norm(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        # Under autocast the weight would stay in float32, and the fused kernel wants one type.
        return functional.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class _NeighbourMix(nn.Module):
    """Add to each row its neighbours, weighted by channel: copying needs to know what came before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(2, width))

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.weights.to(x.dtype)
        before = functional.pad(x[:, :-1], (0, 0, 1, 0))
        after = functional.pad(x[:, 1:], (0, 0, 0, 1))
        mixed: Tensor = x + left * before + right * after
        return mixed


class _Block(nn.Module):
    def __init__(self, config: EmbeddedConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.norm_attention = _Norm(width, config.rms_norm_eps)
        self.mix = _NeighbourMix(width) if config.mix_neighbours else nn.Identity()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.norm_query = _Norm(width // self.heads, config.rms_norm_eps)
        self.norm_key = _Norm(width // self.heads, config.rms_norm_eps)
        self.output = nn.Linear(width, width, bias=False)
        self.norm_inner = _Norm(width, config.rms_norm_eps)
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        mixed = self.qkv(self.mix(self.norm_attention(hidden)))
        query, key, value = mixed.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query = _rotate(self.norm_query(query), cos, sin)
        key = _rotate(self.norm_key(key), cos, sin)
        seen = _attention(query, key, value)
        hidden = hidden + self.output(seen.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate_up(self.norm_inner(hidden)).chunk(2, dim=-1)
        inner: Tensor = self.down(functional.silu(gate) * up)
        return hidden + inner


def _attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend, `[batch heads length head]`.

    Two products, as rows are short: on a CPU the fused kernel and its gradient take five times as long
    at length 80.
    """
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2)
    seen: Tensor = scores.softmax(dim=-1) @ value
    return seen


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (i, i + half) of a head by its position's angle (RoPE, arXiv:2104.09864)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).type_as(x)


class EmbeddedModel(PreTrainedModel):
    """A bidirectional transformer: RMSNorm, RoPE, QK-norm, SwiGLU, no biases, tied embedding."""

    config: EmbeddedConfig
    config_class = EmbeddedConfig
    _supports_sdpa = True

    def __init__(self, config: EmbeddedConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList(_Block(config) for _ in range(config.num_hidden_layers))
        self.norm = _Norm(config.hidden_size, config.rms_norm_eps)
        self._angles: tuple[Tensor, Tensor] | None = None
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
        elif isinstance(module, nn.Embedding):
            # The tied head reads a normed row, so this makes the first logits about 1 / 3 wide.
            nn.init.normal_(module.weight, std=0.02)
        elif isinstance(module, _Norm):
            nn.init.ones_(module.weight)

    def hidden(self, input_ids: Tensor) -> Tensor:
        """Return the normed output of the last layer, `[batch length hidden_size]`."""
        length = input_ids.shape[1]
        if self._angles is None or self._angles[0].shape[0] < length:
            self._angles = _angles(self.config, max(length, 256))
        cos, sin = (table[:length] for table in self._angles)
        hidden = self.embedding(input_ids).to(next(self.blocks.parameters()).dtype)
        for block in self.blocks:
            hidden = block(hidden, cos, sin)
        normed: Tensor = self.norm(hidden.float())
        return normed

    def head(self, hidden: Tensor) -> Tensor:
        """Return logits `[... vocab_size]` of hidden vectors, -inf at the dead ids."""
        logits = functional.linear(hidden, self.embedding.weight)
        logits[..., list(self.config.dead_ids)] = -math.inf
        return logits

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return logits `[batch length vocab_size]` for ids `[batch length]`."""
        return self.head(self.hidden(input_ids))


def _angles(config: EmbeddedConfig, length: int) -> tuple[Tensor, Tensor]:
    half = config.hidden_size // config.num_attention_heads // 2
    rates = config.rope_theta ** (-torch.arange(half) / half)
    angles = torch.arange(length)[:, None] * rates
    return angles.cos(), angles.sin()


AutoConfig.register("denoiscope", EmbeddedConfig, exist_ok=True)
AutoModel.register(EmbeddedConfig, EmbeddedModel, exist_ok=True)


class Embedded:
    """A model of this project's form, as the engine sees it (`engine.models.Denoiser`)."""

    def __init__(
        self,
        name: str,
        model: EmbeddedModel,
        tokenizer: PreTrainedTokenizerFast,
        facts: dict[str, Any],
    ) -> None:
        self.name = name
        self.facts = facts
        self.model = model.requires_grad_(False)
        self.model.eval()
        self.tokenizer = tokenizer
        config = model.config
        self.vocabulary = Vocabulary.from_tokenizer(
            tokenizer, config.vocab_size, (config.eos_token_id,), config.mask_token_id
        )

    def use_bfloat16(self) -> None:
        """Run the blocks in bfloat16 from now on, for throughput: three times as fast, with 8 bits of precision.

        The head stays in float32, so that logits don't tie.
        """
        self.model.blocks.bfloat16()
        self.facts = {**self.facts, "dtype": "bfloat16"}

    def encode_prompt(self, prompt: str) -> np.ndarray:
        """Return int32 `[prompt_length]`: the prompt's tokens, and the separator."""
        return np.append(self.encode(prompt), np.int32(self.model.config.sep_token_id))

    def encode(self, text: str) -> np.ndarray:
        """Return int32 `[tokens]` of a text; the name of a special token is plain text too."""
        # Unless told so, the tokenizer reads "<eos>" in a text as the special token.
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = True
        return np.asarray(backend.encode(text, add_special_tokens=False).ids, np.int32)

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Run the model once.

        Args:
            prompt_ids: int32 `[prompt_length]`.
            canvas: int32 `[length]`, the mask id where masked.
            step: not used; the model sees the noise from the masks.

        Returns:
            float32 `[length vocab]`, natural logarithms up to a constant a row; -inf at pad,
            separator and mask.
        """
        return self.batch_logits([prompt_ids], [canvas], step)[0]

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        """Run the model on rows of one total length together, as many at a time as a processor's caches hold."""
        del step
        rows = [np.concatenate(pair).astype(np.int64) for pair in zip(prompts, canvases, strict=True)]
        found: list[np.ndarray] = [np.empty(0)] * len(rows)
        for size in {row.size for row in rows}:
            alike = [n for n, row in enumerate(rows) if row.size == size]
            together = max(BATCH_TOKENS // size, 1)
            for at in range(0, len(alike), together):
                part = alike[at : at + together]
                with torch.no_grad():
                    hidden = self.model.hidden(torch.from_numpy(np.stack([rows[n] for n in part])))
                    for n, states in zip(part, hidden, strict=True):
                        found[n] = self.model.head(states[len(prompts[n]) :]).numpy()
        return found


def load(folder: Path | None = None) -> Embedded:
    """Read a model from a folder, the one that ships with the engine by default.

    Raises:
        ModelError: the folder lacks a file, or a file is damaged.
    """
    name = "embedded" if folder is None else str(folder)
    folder = FOLDER if folder is None else folder
    weights = folder / "model.safetensors"
    for path in (weights, folder / "config.json", folder / "tokenizer.json"):
        if not path.is_file():
            raise ModelError(
                f"The model {name} has no file {path.name} in {folder}.",
                "Name a folder that `python -m engine.training --export` wrote, or restore "
                "assets/model from the repository.",
            )
    model = _read_model(folder)
    tokenizer = _read_tokenizer(folder)
    if len(tokenizer) > model.config.vocab_size:
        raise _damaged(folder, f"{len(tokenizer)} tokens for {model.config.vocab_size} logits")
    facts = {
        "name": name,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "dtype": "float32",
        "revision": hashlib.sha256(weights.read_bytes()).hexdigest()[:12],
    }
    return Embedded(name, model, tokenizer, facts)


def _read_model(folder: Path) -> EmbeddedModel:
    try:
        model_type = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _damaged(folder, f"config.json: {error}") from error
    if model_type != EmbeddedConfig.model_type:
        raise ModelError(
            f"The model in {folder} has the type {model_type!r}, not {EmbeddedConfig.model_type!r}.",
            "Use a model of this project's form; `python -m engine.training` makes one.",
        )
    try:
        model = EmbeddedModel(EmbeddedConfig.from_pretrained(folder, local_files_only=True))
        # Not `from_pretrained`: it fills what is missing with noise, and draws a progress bar.
        model.load_state_dict(load_file(folder / "model.safetensors"))
    except (OSError, ValueError, RuntimeError, TypeError, SafetensorError) as error:
        raise _damaged(folder, " ".join(f"{type(error).__name__}: {error}".split())[:200]) from error
    return model


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    try:
        tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        # The Rust reader raises a bare Exception for a damaged file, and nothing narrower.
        if not isinstance(error, OSError | ValueError | LookupError) and type(error) is not Exception:
            raise
        raise _damaged(folder, f"tokenizer.json: {error}".splitlines()[0]) from error
    return tokenizer


def _damaged(folder: Path, detail: str) -> ModelError:
    return ModelError(
        f"The model in {folder} can't be read ({detail}).",
        "Restore it from the repository, or train again with `python -m engine.training`.",
    )
