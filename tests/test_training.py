"""The corpus, the tokenizer and the training loop."""

from __future__ import annotations

import itertools
import json
import re
import shlex

import numpy as np
import pytest
import torch

from engine.models import embedded
from engine.training import batches, calls, corpus, optimiser, puzzles, tokenizer, words
from engine.training.train import Recipe, Run, loss_of
from engine.vocabulary import Vocabulary

TINY = Recipe(minutes=None, steps=24, tokens=512, hidden_size=32, intermediate_size=64, layers=2, heads=2)


@pytest.fixture(scope="module")
def small_tokenizer():
    return tokenizer.train_on_corpus(examples=400, size=400)


@pytest.mark.parametrize("family", [*corpus.FAMILIES, "pick", None])
def test_an_example_is_a_function_of_seed_index_and_split(family):
    for split in words.SPLITS:
        first = [corpus.example(3, i, split, family) for i in range(20)]
        assert first == [corpus.example(3, i, split, family) for i in range(20)]
        assert first != [corpus.example(4, i, split, family) for i in range(20)]
        assert first[5:] == list(itertools.islice(corpus.stream(3, split, family, 5), 15)) or family is None


def test_no_prompt_or_value_is_in_both_splits():
    seen = {split: set() for split in words.SPLITS}
    for split, family in itertools.product(words.SPLITS, ("call", "sql", "pick")):
        form = set(words.VERBS)
        for i in range(300):
            example = corpus.example(1, i, split, family)
            # What stands in the answer and in the request alike is a name or a value.
            inside = [set(re.findall("[a-z]+", text)) for text in (example.prompt, example.answer)]
            seen[split] |= (inside[0] & inside[1]) - form
    keywords = {
        "and",
        "nothing",
        "only",
        "s",  # of "ada's box"
        "select",
        "from",
        "where",
        "json",
        "as",
        "of",
        "is",
        "tool",
        "true",
        "false",
    }
    shared = seen["train"] & seen["held_out"] - keywords
    assert shared == set()
    assert len(seen["held_out"]) > 100


def test_grids_and_numbers_are_held_out_too():
    for family in ("sudoku", "format", "countdown"):
        prompts = {
            split: {re.sub(" As .*", "", corpus.example(1, i, split, family).prompt) for i in range(300)}
            for split in words.SPLITS
        }
        assert not prompts["train"] & prompts["held_out"]
    grids = [{re.sub("[^1-4]", "", corpus.example(1, i, s, "sudoku").answer) for i in range(300)} for s in words.SPLITS]
    assert not grids[0] & grids[1]
    assert len(puzzles.SUDOKU_GRIDS) == 288


def test_a_request_is_answered_in_many_spellings_and_one_prompt_in_five_says_which():
    examples = [corpus.example(2, i, family="call") for i in range(600)]
    assert len({example.chosen for example in examples}) == 7
    hinted = np.mean([example.prompt.endswith(f" As {example.chosen}.") for example in examples])
    assert 0.15 < hinted < 0.25


def test_call_spellings_say_the_same_thing():
    call = {
        "city": "Oslo",
        "days": 3,
        "metric": True,
        "tags": ["a", "b"],
        "none": [],
        "note": "two words",
        "quoted": """Ada's "red" \\ box""",
        "stop": {"line": "x'y", "minutes": -4},
    }
    spelled = calls.call_spellings("get_weather", call)
    assert json.loads(spelled["json"]) == json.loads(spelled["compact json"])
    assert json.loads(spelled["json"]) == {"name": "get_weather", "arguments": call}
    for name in ("python", "single quoted python"):
        assert eval(spelled[name], {"get_weather": lambda **given: given}) == call
    shell = {"tags": ["a", "b"], "none": "", "note": "Ada's box", "quoted": 'a "red" box', "path": "a\\b"}
    words_of = shlex.split(calls.call_spellings("get_weather", shell)["command"])
    told = ["a,b", "", "Ada's box", 'a "red" box', "a\\b"]
    assert words_of == [
        "get_weather",
        *(part for key, text in zip(shell, told, strict=True) for part in (f"--{key}", text)),
    ]


def test_every_puzzle_has_one_solution():
    for i in range(60):
        example = corpus.example(5, i, family="sudoku")
        puzzle = re.sub("[^0-4]", "", example.prompt.split(" As ")[0])
        assert [g for g in puzzles.SUDOKU_GRIDS if puzzles.fits(puzzle, g)] == [example.spellings["plain"]]


def test_tokens_write_the_text_byte_by_byte(small_tokenizer):
    config = embedded.EmbeddedConfig(vocab_size=len(small_tokenizer))
    vocabulary = Vocabulary.from_tokenizer(small_tokenizer, len(small_tokenizer), (2,), 3)
    samples = [corpus.example(9, i) for i in range(200)]
    for text in ["Ünï — 漢字\t🙂\n", *(t for e in samples for t in (e.prompt, e.answer))]:
        ids = small_tokenizer.encode(text)
        assert vocabulary.data(ids) == text.encode()
        assert small_tokenizer.decode(ids) == text
    assert [vocabulary.written(i) for i in (*config.dead_ids, 2)] == [None] * 4


def test_a_name_has_the_same_tokens_wherever_it_stands_and_digits_are_single(small_tokenizer):
    alone = small_tokenizer.encode("plantrio")
    for text in ("get plantrio now", '{"plantrio": 1}', "plantrio=2"):
        ids = small_tokenizer.encode(text)
        assert any(ids[i : i + len(alone)] == alone for i in range(len(ids)))
    assert len(small_tokenizer.encode("20261130")) == 8
    assert len(small_tokenizer.encode('": {"')) == 1


def test_batches_hide_answers_alone_and_end_in_eos(small_tokenizer):
    config = embedded.EmbeddedConfig(vocab_size=len(small_tokenizer))
    made = list(batches.batches(small_tokenizer.backend_tokenizer, config, 0, 3, 0.1, 2048))
    assert sum(len(batch.ids) for batch in made) == batches.POOL
    for batch in made:
        assert batch.ids.size <= 2048 or len(batch.ids) == 1
        starts = (batch.ids == config.sep_token_id).argmax(1)
        positions = np.arange(batch.ids.shape[1])
        assert not (batch.masked & (positions <= starts[:, None])).any()
        assert batch.masked.any(1).all()
    again = list(batches.batches(small_tokenizer.backend_tokenizer, config, 0, 3, 0.1, 2048))
    assert all(np.array_equal(a.masked, b.masked) for a, b in zip(made, again, strict=True))


def test_the_loss_is_each_rows_mean_cross_entropy_at_its_hidden_tokens():
    torch.manual_seed(0)
    config = embedded.EmbeddedConfig(
        vocab_size=12, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    model = embedded.EmbeddedModel(config)
    ids = torch.tensor([[4, 5, 6, 7], [8, 9, 10, 11]])
    masked = torch.tensor([[False, True, True, True], [False, False, True, False]])
    with torch.no_grad():
        log_p = model(ids.masked_fill(masked, 3)).log_softmax(-1).gather(-1, ids[..., None])[..., 0]
    expected = -(log_p[0, 1:].mean() + log_p[1, 2]) / 2
    # The loss runs in bfloat16, whose numbers have 8 bits.
    assert loss_of(model, ids, masked).item() == pytest.approx(float(expected), rel=0.02)


def test_muon_steps_are_nearly_orthogonal():
    torch.manual_seed(1)
    for shape in ((24, 8), (8, 24), (16, 16)):
        update = optimiser.orthogonalised(torch.randn(shape))
        singular = torch.linalg.svdvals(update)
        assert singular.min() > 0.4
        assert singular.max() < 1.3


def test_loss_falls_and_a_stopped_run_goes_on_as_if_it_had_not(tmp_path, small_tokenizer):
    whole = Run(TINY, tmp_path / "whole", small_tokenizer)
    losses = whole.train()
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.5
    assert whole.progress == 1
    half = Run(TINY, tmp_path / "half", small_tokenizer)
    first = half.train(stop_after=11)
    second = Run.resume(tmp_path / "half").train()
    assert first + second == losses
    resumed = Run.resume(tmp_path / "half")
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(whole.average.values, resumed.average.values, strict=True):
        assert torch.equal(a, b)


def test_sigterm_ends_a_run_after_its_step(tmp_path, small_tokenizer):
    import os
    import signal

    run = Run(TINY, tmp_path, small_tokenizer)
    step = run._step

    def interrupted(batch):
        os.kill(os.getpid(), signal.SIGTERM)
        return step(batch)

    run._step = interrupted
    before = signal.getsignal(signal.SIGTERM)
    assert len(run.train()) == 1
    assert signal.getsignal(signal.SIGTERM) is before
    assert Run.resume(tmp_path).state.step == 1
