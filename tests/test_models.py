"""Real architectures in small: checkpoints as their projects publish them, loaded by path as a user does."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import json
import sys
import types

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from engine import decode, models, preparation, token_automaton
from engine.__main__ import app, main
from engine.errors import ConfigError, ModelError
from engine.models import loading
from engine.models.architecture import Options
from engine.models.pretrained import check_rotary
from engine.trace import Config
from tests import checkpoints
from tests.test_decode import llada_greedy
from tests.test_remasking import dream_greedy


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


# Loops over real models.


@pytest.mark.parametrize(("length", "steps", "block"), [(8, 8, 8), (12, 6, 6), (8, 4, 2), (8, 16, 8)])
def test_a_free_greedy_run_of_llada_is_its_own_loop(llada, length, steps, block) -> None:
    denoiser = models.load(str(llada))
    config = Config("the cat", None, None, str(llada), length, steps, block)
    records = list(decode.denoise(denoiser, token_automaton.everything(denoiser.vocabulary), config))
    for record, expected in zip(records, llada_greedy(denoiser, config), strict=True):
        np.testing.assert_array_equal(record.canvas_after, expected)


@pytest.mark.parametrize("name", ["maskgit_plus", "topk_margin", "entropy"])
def test_a_free_greedy_run_of_dream_is_its_own_loop(dream, name) -> None:
    denoiser = models.load(str(dream))
    for length, steps in ((8, 8), (12, 5), (4, 9)):
        config = Config("the cat", None, None, str(dream), length, steps, length, remasking=name, top_p=0.9)
        records = list(decode.denoise(denoiser, token_automaton.everything(denoiser.vocabulary), config))
        for record, expected in zip(records, dream_greedy(denoiser, config), strict=True):
            np.testing.assert_array_equal(record.canvas_after, expected)


def test_guidance_runs_both_prompts_in_one_batch(llada) -> None:
    denoiser = models.load(str(llada))
    prompt, canvas = denoiser.encode_prompt("the cat"), canvas_of(denoiser, 6)
    given = denoiser.logits(prompt, canvas, 0)
    free = denoiser.logits(np.full_like(prompt, denoiser.vocabulary.mask_id), canvas, 0)
    calls = []
    forward = denoiser._forward
    denoiser._forward = lambda ids, rows: calls.append(ids.shape) or forward(ids, rows)
    found = decode.predict(denoiser, prompt, canvas, 0, 0.5)
    assert calls == [(2, prompt.size + 6)]
    np.testing.assert_allclose(found, free + 1.5 * (given - free), atol=1e-3)


@pytest.mark.parametrize("family", ["llada", "dream", "bert", "modern_bert", "roberta"])
@pytest.mark.parametrize("words", [["--temperature", "0.8", "--remasking", "entropy", "--alg-temp", "0.1"], ["--sampler", "independent"]])  # fmt: skip
def test_each_family_runs_by_path_from_the_command_line(family, words, tmp_path, capsys, monkeypatch) -> None:
    folder = getattr(checkpoints, family)(tmp_path)
    constraint = ["--regex", "(the|a) (cat|mat)"] if "independent" not in words else []
    arguments = ["run", "--model", str(folder), "--prompt", "a cat", "--length", "12", "--steps", "6", "--json", *words]
    monkeypatch.setattr("sys.argv", ["engine", *arguments, *constraint])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    result = json.loads(capsys.readouterr().out)
    assert result["accepted"]
    if constraint:
        assert result["text"] in {f"{a} {b}" for a in ("the", "a") for b in ("cat", "mat")}


# Masked language models.


@pytest.mark.parametrize("family", ["bert", "modern_bert", "roberta"])
def test_a_masked_language_model_sees_prompt_and_canvas_between_its_marks(family, tmp_path) -> None:
    from transformers import AutoModelForMaskedLM

    folder = getattr(checkpoints, family)(tmp_path)
    denoiser = models.load(str(folder))
    tokenizer = denoiser.tokenizer
    prompt, canvas = denoiser.encode_prompt("a cat"), np.full(5, tokenizer.mask_token_id, np.int32)
    whole = torch.tensor([[*prompt, *canvas, tokenizer.sep_token_id]])
    assert whole[0, 0] == tokenizer.cls_token_id
    with torch.no_grad():
        expected = AutoModelForMaskedLM.from_pretrained(folder)(input_ids=whole).logits[0, prompt.size : -1]
    np.testing.assert_allclose(denoiser.logits(prompt, canvas, 0), expected, atol=1e-4)
    assert denoiser.vocabulary.eos_ids == (tokenizer.sep_token_id,)
    assert "masked language model" in denoiser.facts["family"]
    assert denoiser.facts["context"] == (62 if family == "roberta" else 64)


# Loading.


def test_types_of_numbers_are_the_checkpoints_unless_another_is_asked_for(llada, tmp_path) -> None:
    assert models.load(str(llada)).facts["dtype"] == "float32"
    half = models.load(str(llada), Options(dtype="bfloat16"))
    assert half.facts["dtype"] == "bfloat16"
    canvas = canvas_of(half, 6)
    found = half.logits(half.encode_prompt("a"), canvas, 0)
    assert found.dtype == np.float32
    folder = checkpoints.llada(tmp_path, torch_dtype="bfloat16")
    assert models.load(str(folder)).facts["dtype"] == "bfloat16"


def test_loading_tells_its_progress_and_what_the_listener_raises_ends_it(llada) -> None:
    seen = []
    models.load(str(llada), progress=lambda done, total: seen.append((done, total)))
    assert seen[0][0] == 0
    assert seen[-1] == (21, 21)

    def cancel(done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        models.load(str(llada), progress=cancel)
    assert models.load(str(llada)).facts["parameters"] > 0


@pytest.mark.parametrize("family", ["llada", "dream", "bert", "modern_bert", "roberta"])
def test_a_vocabulary_is_read_without_the_weights(family, tmp_path) -> None:
    folder = getattr(checkpoints, family)(tmp_path)
    whole = models.load(str(folder)).vocabulary
    (folder / "model.safetensors").unlink()
    alone = models.vocabulary(str(folder))
    assert alone.size == whole.size
    assert (alone.eos_ids, alone.mask_id) == (whole.eos_ids, whole.mask_id)
    for first in (True, False):
        assert [alone.written(v, first=first) for v in range(whole.size)] == [
            whole.written(v, first=first) for v in range(whole.size)
        ]


def test_compile_and_diagnose_read_no_weights(tmp_path, capsys) -> None:
    folder = checkpoints.llada(tmp_path)
    (folder / "model.safetensors").unlink()
    for command in ("compile", "diagnose"):
        app([command, "--regex", "[0-9]+", "--model", str(folder), "--json"], standalone_mode=False)
        assert json.loads(capsys.readouterr().out)["findings"] is not None


def test_code_of_a_model_runs_when_it_is_trusted_and_never_else(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = checkpoints.custom(tmp_path / "model")
    with pytest.raises(ModelError, match="--trust-remote-code"):
        models.load(str(folder))
    assert not (folder / "ran").exists(), "code ran that nobody trusts"
    with pytest.raises(ModelError, match="--no-shift"):
        models.load(str(folder), Options(trust_remote_code=True))
    denoiser = models.load(str(folder), Options(trust_remote_code=True, shift=False))
    assert (folder / "ran").exists()
    weights = load_file(folder / "model.safetensors")
    prompt, canvas = denoiser.encode_prompt("a b"), np.full(6, denoiser.vocabulary.mask_id, np.int32)
    row = weights["embed.weight"][denoiser.vocabulary.mask_id] @ weights["head.weight"].T + weights["head.bias"]
    np.testing.assert_allclose(denoiser.logits(prompt, canvas, 0)[2], row, rtol=1e-4, atol=1e-5)


def broken(folder, change):
    if change == "no config":
        (folder / "config.json").unlink()
    elif change == "no weights":
        (folder / "model.safetensors").unlink()
    elif change == "cut weights":
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:3000])
    elif change == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif change == "cut tokenizer":
        (folder / "tokenizer.json").write_text('{"version": "1.0"')
    elif change == "cut config":
        (folder / "config.json").write_text('{"model_type"')
    elif change == "other weights":
        weights = load_file(folder / "model.safetensors")
        del weights["model.transformer.blocks.1.up_proj.weight"]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        path = folder / "config.json"
        content = json.loads(path.read_text()) | json.loads(change)
        path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("no config", "config.json"),
        ("cut config", "can't be read"),
        ("no weights", "safetensors"),
        ("cut weights", "can't be read"),
        ("no tokenizer", "tokenizer"),
        ("cut tokenizer", "tokenizer"),
        ("other weights", "up_proj"),
        ('{"mlp_hidden_size": 64}', "shape"),
        ('{"mask_token_id": null}', "mask_token_id"),
        ('{"block_type": "sequential"}', "block_type"),
        ('{"model_type": "llada_moe"}', "--trust-remote-code"),
        ('{"model_type": "diffusion_gemma"}', "random token"),
        ('{"model_type": "gpt2"}', "gpt2"),
    ],
)
def test_what_can_not_be_loaded_says_what_is_wrong_with_it(change, words, tmp_path) -> None:
    folder = checkpoints.llada(tmp_path)
    broken(folder, change)
    with pytest.raises(ModelError) as caught:
        models.load(str(folder))
    assert words in str(caught.value)
    assert caught.value.remedy.endswith(".")


def test_names_that_are_no_model_say_so_without_asking_the_network(monkeypatch) -> None:
    monkeypatch.setattr(loading, "snapshot_download", offline)
    for name in ("nowhere/at-all", "/no/such/folder", "no such name"):
        with pytest.raises(ModelError, match="no model named"):
            models.load(name)


def offline(name: str, **_words):
    """What the hub's client raises under HF_HUB_OFFLINE, and for names that it refuses."""
    if name.count("/") > 1 or " " in name:
        raise loading.HFValidationError("Repo id must be in the form 'repo_name' or 'namespace/repo_name'")
    raise loading.LocalEntryNotFoundError("Cannot find an appropriate cached snapshot folder")


def test_a_model_in_the_cache_loads_while_the_hub_is_offline(llada, monkeypatch) -> None:
    asked = {}

    def cached(name: str, **words):
        asked.update(words, name=name)
        return str(llada)

    monkeypatch.setattr(loading, "snapshot_download", cached)
    found = models.load("someone/tiny-llada").facts
    assert (found["name"], found["revision"]) == ("someone/tiny-llada", llada.name)
    assert asked["name"] == "someone/tiny-llada"
    assert not any(pattern.endswith((".py", ".bin", ".pt")) for pattern in asked["allow_patterns"])


def test_too_little_memory_is_told_before_loading(llada, monkeypatch) -> None:
    monkeypatch.setattr(loading, "_free", lambda _device: (1000, "the CPU"))
    with pytest.raises(ModelError, match=r"GiB free"):
        models.load(str(llada))


def test_wrong_devices_and_types_are_refused_with_what_there_is(llada) -> None:
    with pytest.raises(ModelError, match="float64"):
        models.load(str(llada), Options(dtype="float64"))
    with pytest.raises(ModelError, match="device"):
        models.load(str(llada), Options(device="warp"))
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="no GPU"):
            models.load(str(llada), Options(device="cuda"))


def test_a_missing_chat_template_and_a_long_prompt_are_clear_mistakes(tmp_path) -> None:
    folder = checkpoints.llada(tmp_path, template=False)
    config = Config("the cat", None, None, str(folder), 8, 8, 8)
    with pytest.raises(ModelError, match="--raw-prompt"):
        preparation.prepare(config)
    raw = Options(raw_prompt=True)
    _, header = preparation.prepare(config, options=raw)
    assert header.prompt_ids.size < 8
    with pytest.raises(ConfigError, match="96 in all"):
        preparation.prepare(dataclasses.replace(config, prompt="the cat " * 40), options=raw)


def test_a_rotary_buffer_of_other_numbers_is_refused(llada) -> None:
    """What other projects' code leaves there under transformers 5: uninitialised memory, and no error."""
    denoiser = models.load(str(llada))
    check_rotary(denoiser.model, 5e5)
    with pytest.raises(ModelError, match="rotary"):
        check_rotary(denoiser.model, 1e4)
    for wrong in (float("nan"), 1e20):
        buffer = denoiser.model.model.rotary_emb.inv_freq
        kept = buffer[1].item()
        buffer[1] = wrong
        with pytest.raises(ModelError, match="rotary"):
            check_rotary(denoiser.model, None)
        buffer[1] = kept


def test_the_forward_pass_is_wrapped_where_the_spaces_package_is_there(llada, monkeypatch) -> None:
    plain = models.load(str(llada))
    wrapped = []
    monkeypatch.setitem(sys.modules, "spaces", types.SimpleNamespace(GPU=lambda f: wrapped.append(f) or f, __spec__=importlib.machinery.ModuleSpec("spaces", None)))  # fmt: skip
    denoiser = models.load(str(llada))
    assert len(wrapped) == 1
    canvas = canvas_of(denoiser, 6)
    prompt = denoiser.encode_prompt("a")
    np.testing.assert_array_equal(denoiser.logits(prompt, canvas, 0), plain.logits(prompt, canvas, 0))
