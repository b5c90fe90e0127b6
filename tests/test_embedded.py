"""The embedded model as the engine reads it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

from engine.errors import ModelError
from engine.models import embedded
from engine.training import tokenizer
from engine.training.train import Recipe, Run


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A tiny run after three steps, and the folder of its exported model."""
    folder = tmp_path_factory.mktemp("model")
    recipe = Recipe(minutes=None, steps=8, tokens=256, hidden_size=32, intermediate_size=64, layers=2, heads=2)
    run = Run(recipe, folder / "run", tokenizer.train_on_corpus(examples=300, size=400))
    run.train(stop_after=3)
    run.export(folder / "model")
    return run, folder / "model"


def test_an_exported_model_gives_the_averaged_weights_logits(exported):
    run, folder = exported
    denoiser = embedded.load(folder)
    prompt = denoiser.encode_prompt("Sudoku 0340 0210 2100 0001")
    canvas = np.full(12, denoiser.vocabulary.mask_id, np.int32)
    run.average.swap()
    try:
        with torch.no_grad():
            rounded = embedded.EmbeddedModel(run.config)
            rounded.load_state_dict({k: v.half().float() for k, v in run.model.state_dict().items()})
            ids = torch.from_numpy(np.concatenate((prompt, canvas)).astype(np.int64))
            expected = rounded(ids[None])[0, len(prompt) :].numpy()
    finally:
        run.average.swap()
    found = denoiser.logits(prompt, canvas, 0)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert denoiser.facts["name"] == denoiser.name == str(folder)
    assert denoiser.facts["parameters"] == sum(p.numel() for p in run.model.parameters())


def test_transformers_reads_the_folder_as_its_own(exported):
    from transformers import AutoModel

    _, folder = exported
    denoiser = embedded.load(folder)
    model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    assert isinstance(model, embedded.EmbeddedModel)
    for a, b in zip(model.parameters(), denoiser.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_shipped_model_is_small_and_writes_no_special_token():
    denoiser = embedded.load()
    assert (embedded.FOLDER / "model.safetensors").stat().st_size < 20_000_000
    vocabulary = denoiser.vocabulary
    prompt = denoiser.encode_prompt("Date: 23 February 1993")
    canvas = np.full(16, vocabulary.mask_id, np.int32)
    logits = denoiser.logits(prompt, canvas, 0)
    assert logits.shape == (16, vocabulary.size)
    dead = [vocabulary.token_bytes[i] is None and i not in vocabulary.eos_ids for i in range(vocabulary.size)]
    assert np.isneginf(logits[:, dead]).all()
    assert np.isfinite(logits[:, ~np.array(dead)]).all()
    assert np.array_equal(logits, denoiser.logits(prompt, canvas, 5))
    assert denoiser.facts["name"] == "embedded"
    assert json.loads(json.dumps(denoiser.facts)) == denoiser.facts


def test_the_shipped_model_looks_both_ways():
    denoiser = embedded.load()
    prompt = denoiser.encode_prompt("Phone 64 890 405 3665")
    canvas = np.full(16, denoiser.vocabulary.mask_id, np.int32)
    pinned = canvas.copy()
    pinned[3] = denoiser.encode("-")[0]
    before, after = (denoiser.logits(prompt, c, 0) for c in (canvas, pinned))
    finite = np.isfinite(before[0])
    assert np.abs(after[0, finite] - before[0, finite]).max() > 0.01


def test_a_batch_is_divided_and_its_rows_keep_their_answers(monkeypatch):
    denoiser, rng = embedded.load(), np.random.default_rng(0)
    prompts = [denoiser.encode_prompt(text) for text in ("Date: 23 February 1993", "Phone 64 890 405 3665")]
    rows = [(prompts[n % 2], rng.integers(4, 1500, 16 + n % 3).astype(np.int32)) for n in range(9)]
    sizes, hidden = [], denoiser.model.hidden
    monkeypatch.setattr(denoiser.model, "hidden", lambda ids: sizes.append(ids.numel()) or hidden(ids))
    monkeypatch.setattr(embedded, "BATCH_TOKENS", 80)
    found = denoiser.batch_logits(*zip(*rows, strict=True), 0)
    assert len(sizes) < len(rows)
    assert max(sizes) <= 80
    for (prompt, canvas), logits in zip(rows, found, strict=True):
        alone = denoiser.logits(prompt, canvas, 0)
        finite = np.isfinite(alone)
        assert logits.shape == alone.shape
        assert np.array_equal(finite, np.isfinite(logits))
        assert np.abs(logits[finite] - alone[finite]).max() < 1e-3


def test_text_that_names_a_special_token_stays_text():
    denoiser = embedded.load()
    for text in ("<eos>", "a<mask>b <pad> <sep>", "", "Ünï 漢字"):
        ids = denoiser.encode(text)
        assert ids.dtype == np.int32
        assert denoiser.vocabulary.decode(ids.tolist()) == text


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_damaged_folder_is_an_error_with_a_remedy(exported, tmp_path, name, damage):
    folder = tmp_path / "model"
    shutil.copytree(exported[1], folder)
    path = folder / name
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        path.write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError) as caught:
        embedded.load(folder)
    assert str(folder) in caught.value.problem
    assert caught.value.remedy.endswith(".")


def test_weights_of_another_size_are_refused(exported, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(exported[1], folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 48}))
    with pytest.raises(ModelError, match="size mismatch"):
        embedded.load(folder)
