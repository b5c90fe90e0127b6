"""Real architectures in small: checkpoints as their projects publish them, loaded by path as a user does."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from engine import models
from engine.models.architecture import Options
from tests import checkpoints


@pytest.fixture(scope="module")
def llada(tmp_path_factory):
    return checkpoints.llada(tmp_path_factory.mktemp("llada"))


@pytest.fixture(scope="module")
def dream(tmp_path_factory):
    return checkpoints.dream(tmp_path_factory.mktemp("dream"))


def rms(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotated(x, theta):
    """Rotary positions over halves, written out: x is `[heads length width]`."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * float(theta) ** -(torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def transformer(ids, w, heads, kv_heads, theta, eps, names):
    """The published equations of both families over the checkpoint's own names: float64 `[length vocab]`."""
    w = {name: value.double() for name, value in w.items()}
    x = w[names["embed"]][ids]
    length = len(ids)
    for n in range(2):
        at = names["block"].format(n)
        h = rms(x, w[at + names["norm1"]], eps)

        def project(part, count, h=h, at=at):
            y = h @ w[at + names[part] + ".weight"].T
            y = y + w.get(at + names[part] + ".bias", torch.zeros(()))
            return y.view(length, count, -1).transpose(0, 1)

        q, k, v = project("q", heads), project("k", kv_heads), project("v", kv_heads)
        k, v = (y.repeat_interleave(heads // kv_heads, 0) for y in (rotated(k, theta), v))
        scores = rotated(q, theta) @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        mixed = (scores.softmax(-1) @ v).transpose(0, 1).reshape(length, -1)
        x = x + mixed @ w[at + names["o"] + ".weight"].T
        h = rms(x, w[at + names["norm2"]], eps)
        gate = functional.silu(h @ w[at + names["gate"] + ".weight"].T)
        x = x + (gate * (h @ w[at + names["up"] + ".weight"].T)) @ w[at + names["down"] + ".weight"].T
    return rms(x, w[names["norm"]], eps) @ w[names["head"]].T


LLADA_NAMES = {
    "embed": "model.transformer.wte.weight", "norm": "model.transformer.ln_f.weight",
    "head": "model.transformer.ff_out.weight", "block": "model.transformer.blocks.{}.", "norm1": "attn_norm.weight",
    "norm2": "ff_norm.weight", "q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "attn_out", "gate": "ff_proj",
    "up": "up_proj", "down": "ff_out",
}  # fmt: skip
DREAM_NAMES = {
    "embed": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight",
    "block": "model.layers.{}.", "norm1": "input_layernorm.weight", "norm2": "post_attention_layernorm.weight",
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
}  # fmt: skip


def canvas_of(denoiser, length, seed=0):
    rng = np.random.default_rng(seed)
    canvas = np.full(length, denoiser.vocabulary.mask_id, np.int32)
    canvas[rng.permutation(length)[: length // 3]] = rng.integers(40, 200, length // 3)
    return canvas


def test_llada_gives_the_logits_of_its_published_equations_unshifted(llada) -> None:
    denoiser = models.load(str(llada))
    prompt, canvas = denoiser.encode_prompt("the cat"), canvas_of(denoiser, 9)
    expected = transformer(
        np.concatenate([prompt, canvas]).astype(np.int64),
        load_file(llada / "model.safetensors"),
        4,
        4,
        5e5,
        1e-5,
        LLADA_NAMES,
    )
    np.testing.assert_allclose(denoiser.logits(prompt, canvas, 0), expected[len(prompt) :], atol=2e-4)


def test_dream_predicts_each_position_at_its_left_neighbour(dream) -> None:
    denoiser = models.load(str(dream))
    prompt, canvas = denoiser.encode_prompt("the cat"), canvas_of(denoiser, 9)
    weights = load_file(dream / "model.safetensors")
    expected = transformer(np.concatenate([prompt, canvas]).astype(np.int64), weights, 4, 2, 1e6, 1e-6, DREAM_NAMES)
    np.testing.assert_allclose(denoiser.logits(prompt, canvas, 0), expected[len(prompt) - 1 : -1], atol=2e-4)
    # Without a prompt the first row is used twice, as in Dream's own loop.
    alone = transformer(canvas.astype(np.int64), weights, 4, 2, 1e6, 1e-6, DREAM_NAMES)
    found = denoiser.logits(np.zeros(0, np.int32), canvas, 0)
    np.testing.assert_allclose(found, alone[[0, *range(8)]], atol=2e-4)


@pytest.mark.parametrize("family", ["llada", "dream"])
def test_a_batch_gives_what_each_row_gives_alone(family, request) -> None:
    denoiser = models.load(str(request.getfixturevalue(family)))
    prompts = [denoiser.encode_prompt(text) for text in ("a", "the cat sat", "b")]
    canvases = [canvas_of(denoiser, 9, n) for n in range(3)]
    batch = denoiser.batch_logits(prompts, canvases, 0)
    for prompt, canvas, found in zip(prompts, canvases, batch, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, denoiser.logits(prompt, canvas, 0), atol=1e-4)


def test_prompts_stand_in_the_models_own_template(llada, dream) -> None:
    denoiser = models.load(str(llada))
    text = denoiser.tokenizer.decode(denoiser.encode_prompt("Hi <b>"))
    assert text == (
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nHi <b><|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
    denoiser = models.load(str(dream))
    text = denoiser.tokenizer.decode(denoiser.encode_prompt("Hi"))
    assert text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    raw = models.load(str(dream), Options(raw_prompt=True))
    assert raw.tokenizer.decode(raw.encode_prompt("Hi")) == "Hi"


def test_special_ids_and_ids_above_the_tokenizer_are_dead_and_the_padding_eos_comes_first(llada, dream) -> None:
    for folder, eos, eot, mask in ((llada, "<|endoftext|>", "<|eot_id|>", "<|mdm_mask|>"), (dream, "<|endoftext|>", "<|im_end|>", "<|mask|>")):  # fmt: skip
        denoiser = models.load(str(folder))
        known, vocabulary = denoiser.tokenizer.get_vocab(), denoiser.vocabulary
        assert vocabulary.eos_ids == (known[eos], known[eot])
        assert vocabulary.mask_id == known[mask]
        config = json.loads((folder / "config.json").read_text())
        assert vocabulary.size == config["vocab_size"] == len(denoiser.tokenizer) + 6
        assert all(data is None for data in vocabulary.token_bytes[len(denoiser.tokenizer) :])
        assert all(vocabulary.token_bytes[i] is None for text, i in known.items() if text.startswith("<|"))
        assert json.loads(json.dumps(denoiser.facts))["shift"] == (folder == dream)
