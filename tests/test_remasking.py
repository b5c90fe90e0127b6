"""Schedules, confidences and rules against the published loops, written out flat, and against enumeration."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from engine import decode, preparation, remasking, token_automaton
from engine.constraints import read
from engine.errors import ConfigError, ModelError
from engine.inference.filtering import keep_top
from engine.trace import Config, Header, StepRecord, Trace
from tests import oracle
from tests.fake import Fake, characters

LETTERS = characters("abcdefgh")
EVERYTHING = token_automaton.everything(LETTERS)
FREE = Config(prompt="go", kind=None, source=None, length=8, steps=8, block_length=8, sampler="midpoint")


def run(config: Config, denoiser: Fake, automaton=EVERYTHING) -> list[StepRecord]:
    preparation.check(config)
    return list(decode.denoise(denoiser, automaton, config))


def softmax(logits: np.ndarray) -> np.ndarray:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


# Schedules.


def dream_counts(masked: int, steps: int) -> list[int]:
    counts = []
    for share in remasking.dream_share(steps):
        counts.append(int(np.float32(masked) * share))
        masked -= counts[-1]
    return counts


def test_dreams_schedule_is_the_published_one() -> None:
    assert dream_counts(8, 8) == [0, 1, 1, 1, 1, 1, 1, 2]
    assert dream_counts(64, 16) == [3, *[4] * 14, 5]
    assert dream_counts(32, 10) == [*[3] * 9, 5]


def test_dreams_shares_are_torchs_float32_to_the_last_bit() -> None:
    for steps in (*range(1, 300), 512, 1000, 4096):
        times = torch.linspace(1, 1e-3, steps + 1)
        expected = (1 - times[1:] / times[:-1]).numpy()
        expected[-1] = 1
        np.testing.assert_array_equal(remasking.dream_share(steps), expected)


# Trajectories at temperature 0.


def dream_sample(logits: np.ndarray, config: Config) -> np.ndarray:
    """Dream's filters as `sample_tokens` has them, on sorted copies: float64 probabilities."""
    logits = logits.astype(np.float64) / (config.temperature or 1.0)
    for row in logits:
        if config.top_p is not None and config.top_p < 1:
            order = np.argsort(-row, kind="stable")
            mass = np.cumsum(softmax(row[order][None])[0])
            removed = np.concatenate([[False], mass[:-1] > config.top_p])
            row[order[removed]] = -np.inf
        if config.top_k is not None:
            row[row < np.sort(row)[-min(config.top_k, row.size)]] = -np.inf
    return softmax(logits)


def dream_confidence(name: str, p: np.ndarray, x0: np.ndarray) -> np.ndarray:
    ordered = -np.sort(-p, axis=1)
    if name == "topk_margin":
        return ordered[:, 0] - ordered[:, 1]
    if name == "entropy":
        return np.sum(p * np.log(p + 1e-10), axis=1)
    return p[np.arange(len(x0)), x0]


def dream_greedy(model: Fake, config: Config) -> list[np.ndarray]:
    """Dream's `_sample` at temperature 0 and batch 1, written out flat: the canvas after every step."""
    prompt, mask = model.encode_prompt(config.prompt), model.vocabulary.mask_id
    x = np.full(config.length, mask, np.int32)
    for i, v in config.pins:
        x[i] = v
    times = torch.linspace(1, 1e-3, config.steps + 1)
    canvases = []
    for i in range(config.steps):
        at = np.flatnonzero(x == mask)
        p = dream_sample(model.logits(prompt, x, i)[at], config)
        x0 = p.argmax(axis=1)
        confidence = dream_confidence(config.remasking, p, x0)
        share = 1 - times[i + 1] / times[i] if i < config.steps - 1 else 1
        k = int(torch.tensor(float(at.size)) * share)
        best = np.argsort(-confidence, kind="stable")[:k]
        x[at[best]] = x0[best]
        canvases.append(x.copy())
    return canvases


@pytest.mark.parametrize("name", ["maskgit_plus", "topk_margin", "entropy"])
@pytest.mark.parametrize("sampler", ["independent", "midpoint", "map"])
@pytest.mark.parametrize("changes", [{}, {"top_p": 0.6}, {"top_k": 3}, {"top_p": 0.9, "top_k": 2}, {"pins": ((1, 2), (4, 0))}])  # fmt: skip
def test_without_constraint_the_greedy_trajectory_is_dreams(name, sampler, changes) -> None:
    for seed, (length, steps) in enumerate([(8, 8), (12, 5), (10, 24), (16, 16), (9, 3), (5, 1)]):
        model = Fake(LETTERS, seed)
        config = dataclasses.replace(
            FREE, length=length, steps=steps, block_length=length, remasking=name, sampler=sampler, **changes
        )
        for record, expected in zip(run(config, model), dream_greedy(model, config), strict=True):
            np.testing.assert_array_equal(record.canvas_after, expected)
            np.testing.assert_allclose(record.confidence_mf, record.confidence_mar, atol=1e-6)


def parallel_greedy(model: Fake, config: Config) -> list[np.ndarray]:
    """Fast-dLLM's block loop without its cache, at temperature 0: `threshold`, or `factor` in its place."""
    prompt, mask = model.encode_prompt(config.prompt), model.vocabulary.mask_id
    x = np.full(config.length, mask, np.int32)
    canvases = []
    for stop in range(config.block_length, config.length + 1, config.block_length):
        while (x[:stop] == mask).any():
            p = softmax(model.logits(prompt, x, 0).astype(np.float64))
            x0 = p.argmax(axis=1)
            open_ = [i for i in range(stop) if x[i] == mask]
            open_.sort(key=lambda i: -p[i, x0[i]])
            for rank, i in enumerate(open_, 1):
                bar = config.threshold if config.factor is None else 1 - config.factor / (rank + 1)
                if rank > 1 and p[i, x0[i]] < bar:
                    break
                x[i] = x0[i]
            canvases.append(x.copy())
    return canvases


@pytest.mark.parametrize("block", [4, 12])
@pytest.mark.parametrize("changes", [{"threshold": 0.7}, {"threshold": 0.95}, {"factor": 0.5}, {"factor": 1.5}])
def test_without_constraint_the_parallel_rules_end_early_as_published(block, changes) -> None:
    lengths = set()
    for seed in range(6):
        # A mask that is drawn stays masked, and upstream then goes round for ever: this model never draws it.
        model = Fake(LETTERS, seed, scale=4.0)
        model._head[:, LETTERS.mask_id] = 0.0
        config = dataclasses.replace(FREE, length=12, steps=12, block_length=block, **changes)
        expected = parallel_greedy(model, config)
        records = run(config, model)
        for record, canvas in zip(records, expected, strict=True):
            np.testing.assert_array_equal(record.canvas_after, canvas)
        lengths.add(len(records))
    assert min(lengths) < 12


def test_a_parallel_run_ends_within_its_steps_even_where_nothing_is_confident() -> None:
    for block, steps in ((12, 3), (4, 6), (4, 3), (6, 4)):
        config = dataclasses.replace(FREE, length=12, steps=steps, block_length=block, threshold=1.0)
        automaton = token_automaton.compile(read("regex", "[a-h]{12}"), LETTERS)
        records = run(config, Fake(LETTERS, 0, scale=0.1), automaton)
        assert len(records) <= steps
        for record in records:  # a block is left only when nothing of it is masked
            masked = np.flatnonzero(record.canvas == LETTERS.mask_id)
            assert np.flatnonzero(record.committed).max() < (masked[0] // block + 1) * block
        assert automaton.accepts(records[-1].canvas_after.tolist())


@pytest.mark.parametrize("changes", [{"threshold": 0.9}, {"factor": 0.5}, {"remasking": "threshold"}])
def test_a_block_has_the_steps_that_a_confident_block_before_it_saved(changes) -> None:
    model = Fake(LETTERS, 0, scale=0.1)
    plain = model.logits

    def logits(prompt_ids, canvas, step):
        found = plain(prompt_ids, canvas, step)
        found[:4, 2] += 20.0  # the first block is certain, the second one isn't
        return found

    model.logits = logits  # type: ignore[method-assign]
    automaton = token_automaton.compile(read("regex", "[a-h]{8}"), LETTERS)
    config = dataclasses.replace(FREE, steps=4, block_length=4, **changes)
    records = run(config, model, automaton)
    assert [int(record.committed.sum()) for record in records] == [4, 2, 1, 1]
    assert automaton.accepts(records[-1].canvas_after.tolist())


@pytest.mark.parametrize("block", [2, 8])
def test_a_parallel_run_is_finished_when_nothing_is_masked_or_its_steps_are_done(block) -> None:
    ended = set()
    for seed in range(20):  # some of these models draw their mask
        config = dataclasses.replace(FREE, block_length=block, threshold=0.5, sampler="independent", temperature=1.0)
        model = Fake(LETTERS, seed)
        records = tuple(run(dataclasses.replace(config, seed=seed), model))
        whole = Trace(Header(config, model.facts, LETTERS, EVERYTHING), records)
        assert whole.finished
        assert not Trace(whole.header, records[:-1]).finished
        ended.add(((whole.canvas == LETTERS.mask_id).any(), len(records) == 8))
    assert (False, False) in ended
    assert any(masked for masked, _ in ended)
    assert (True, False) not in ended


def guided_greedy(model: Fake, config: Config) -> list[np.ndarray]:
    """LLaDA's loop with classifier-free guidance at temperature 0, one block, one commit a step."""
    prompt, mask = model.encode_prompt(config.prompt), model.vocabulary.mask_id
    x = np.full(config.length, mask, np.int32)
    canvases = []
    for _ in range(config.steps):
        given = model.logits(prompt, x, 0).astype(np.float64)
        free = model.logits(np.full_like(prompt, mask), x, 0).astype(np.float64)
        p = softmax(free + (config.cfg_scale + 1) * (given - free))
        x0 = p.argmax(axis=1)
        best = max((i for i in range(config.length) if x[i] == mask), key=lambda i: p[i, x0[i]])
        x[best] = x0[best]
        canvases.append(x.copy())
    return canvases


def test_guidance_leads_away_from_the_answer_to_a_masked_prompt() -> None:
    moved = 0
    for seed in range(6):
        model = Fake(LETTERS, seed)
        config = dataclasses.replace(FREE, cfg_scale=1.5)
        records = run(config, model)
        for record, expected in zip(records, guided_greedy(model, config), strict=True):
            np.testing.assert_array_equal(record.canvas_after, expected)
        moved += (records[-1].canvas_after != run(FREE, model)[-1].canvas_after).any()
    assert moved


def test_guidance_keeps_what_is_impossible_impossible() -> None:
    class Peaked(Fake):
        def logits(self, prompt_ids, canvas, step):
            found = super().logits(prompt_ids, canvas, step)
            found[:, 3] = -np.inf
            return found

    records = run(dataclasses.replace(FREE, cfg_scale=2.0), Peaked(LETTERS, 0))
    assert all(np.isneginf(record.log_mean_field[:, 3]).all() for record in records)
    assert all(np.isfinite(np.delete(record.log_mean_field, 3, axis=1)).all() for record in records)


def test_guidance_away_from_what_is_impossible_there_alone_is_refused_where_it_is_read() -> None:
    class Narrow(Fake):
        def logits(self, prompt_ids, canvas, step):
            found = super().logits(prompt_ids, canvas, step)
            if (prompt_ids == self.vocabulary.mask_id).all():
                found[2, 3] = -np.inf
            return found

    config = dataclasses.replace(FREE, cfg_scale=2.0)
    with pytest.raises(ModelError, match=r"token 3 at position 2 of step 0 an infinite weight.*Set cfg_scale to 0"):
        run(config, Narrow(LETTERS, 0))
    records = run(dataclasses.replace(config, pins=((2, 1),)), Narrow(LETTERS, 0))  # where nothing is drawn
    assert all(np.isfinite(record.log_mean_field).all() for record in records)


# Confidences, on the mean field and on the posterior.

PATTERN = token_automaton.compile(read("regex", "[a-f]*(ab|c)[d-h]"), characters("abcdefgh", eos=False))
LIMITED = characters("abcdefgh", eos=False)


def laws(logits: np.ndarray, canvas: np.ndarray, automaton) -> tuple[np.ndarray, np.ndarray]:
    """Mean field and posterior, float64 `[length vocab]`, by listing all sequences."""
    truth = oracle.enumerate_all(logits.copy(), canvas, LIMITED.mask_id, automaton)
    return np.exp(truth.log_p), np.exp(truth.log_marginals())


@pytest.mark.parametrize("name", remasking.NAMES)
@pytest.mark.parametrize("temperature", [0.0, 0.6])
def test_mf_and_mar_are_the_same_formula_on_mean_field_and_posterior(name, temperature) -> None:
    """LLaDA's is at temperature 1 and unfiltered, Dream's on what is drawn from (`decoding_loops.md`, test 5)."""
    config = dataclasses.replace(
        FREE, length=4, steps=4, block_length=4, remasking=name, temperature=temperature, top_k=6, kind="regex"
    )
    compared = 0
    for seed in range(6):
        model = Fake(LIMITED, seed, scale=0.7)
        for record in run(dataclasses.replace(config, seed=seed), model, PATTERN):
            logits = model.logits(model.encode_prompt("go"), record.canvas, 0).astype(np.float64)
            if name in remasking.DREAM and not record.filter_lifted:
                with np.errstate(divide="ignore"):
                    logits = np.log(dream_sample(logits, config))
            elif name in remasking.DREAM:
                logits = logits / (temperature or 1.0)
            masked = record.canvas == LIMITED.mask_id
            for p, found in zip(
                laws(logits, record.canvas, PATTERN), (record.confidence_mf, record.confidence_mar), strict=True
            ):
                if name in ("random", "origin"):
                    assert ((found > 0) & (found < 1) | ~masked).all()
                    expected = record.confidence_mf
                else:
                    expected = dream_confidence(name, p, record.drawn)
                np.testing.assert_allclose(found[masked], expected[masked], atol=2e-5)
                assert np.isneginf(found[~masked]).all()
                compared += int(masked.sum())
    assert compared > 50


@pytest.mark.parametrize(
    "changes",
    [
        {"remasking": "low_confidence"},
        {"remasking": "maskgit_plus", "top_p": 0.97},
        {"remasking": "maskgit_plus", "alg_temp": 0.3},
        {"remasking": "topk_margin", "alg_temp": 0.2},
        {"remasking": "entropy", "alg_temp": 0.7},
    ],
)
@pytest.mark.parametrize("confidence", ["mf", "mar"])
@pytest.mark.parametrize("automaton", [PATTERN, token_automaton.everything(LIMITED)], ids=["constrained", "free"])
def test_what_a_step_commits_follows_the_law_of_its_loop(changes, confidence, automaton) -> None:
    """Position and token of the single commit of a first step: frequencies against the sum over all sequences."""
    draws, temperature = 1_200, 0.7
    config = dataclasses.replace(
        FREE, length=3, steps=3 if "low" in changes["remasking"] else 2, block_length=3, kind="regex",
        temperature=temperature, confidence=confidence, **changes,
    )  # fmt: skip
    model = Fake(LIMITED, 3, scale=0.5)
    model._head[:, LIMITED.mask_id] = 0.0
    counts = np.zeros((3, LIMITED.size))
    for seed in range(draws):
        record = next(iter(decode.denoise(model, automaton, dataclasses.replace(config, seed=seed))))
        assert record.committed.sum() == 1
        assert not record.filter_lifted
        counts[np.flatnonzero(record.committed)[0], record.drawn[record.committed][0]] += 1
    canvas = record.canvas
    logits = model.logits(model.encode_prompt("go"), canvas, 0).astype(np.float64)
    with np.errstate(divide="ignore"):
        tempered = np.log(dream_sample(logits, config))
    scored = laws(tempered if changes["remasking"] in remasking.DREAM else logits, canvas, automaton)
    truth = oracle.enumerate_all(tempered, canvas, LIMITED.mask_id, automaton)
    expected = np.zeros_like(counts)
    for x, weight in zip(truth.sequences, truth.probabilities, strict=True):
        c = dream_confidence(changes["remasking"], scored[confidence == "mar"], np.asarray(x))
        chance = np.eye(3)[c.argmax()] if "alg_temp" not in changes else softmax(c[None] / changes["alg_temp"])[0]
        for i in range(3):
            expected[i, x[i]] += weight * chance[i]
    error = np.abs(counts / draws - expected)
    assert (error <= 5 * np.sqrt(expected * (1 - expected) / draws) + 1e-9).all()


def test_origin_commits_each_position_by_itself() -> None:
    draws = 2_000
    config = dataclasses.replace(FREE, length=3, steps=2, block_length=3, remasking="origin", temperature=1.0)
    model = Fake(LIMITED, 0)
    counts: dict[tuple[bool, ...], int] = {}
    for seed in range(draws):
        first, last = run(dataclasses.replace(config, seed=seed), model, token_automaton.everything(LIMITED))
        chosen = tuple(first.committed.tolist())
        counts[chosen] = counts.get(chosen, 0) + 1
        np.testing.assert_array_equal(last.committed, last.canvas == LIMITED.mask_id)
    share = float(1 - (1 + 1e-3) / 2)
    for chosen in itertools.product([False, True], repeat=3):
        p = share ** sum(chosen) * (1 - share) ** (3 - sum(chosen))
        assert abs(counts.get(chosen, 0) / draws - p) <= 5 * np.sqrt(p * (1 - p) / draws)


def test_positions_drawn_with_alg_temp_come_without_replacement() -> None:
    """Two of three: the probability of a pair is a sum over both orders (Plackett–Luce)."""
    confidences, alg_temp, draws = np.asarray([0.9, 0.5, 0.2, -np.inf]), 0.5, 20_000
    p = softmax(confidences[None, :3] / alg_temp)[0]
    rng = np.random.default_rng(0)
    counts = np.zeros((4, 4))
    for u in rng.random((draws, 4)):
        pair = np.flatnonzero(remasking.choose(confidences, 2, alg_temp, u))
        counts[tuple(pair)] += 1
    for i, j in itertools.combinations(range(3), 2):
        expected = p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j])
        assert abs(counts[i, j] / draws - expected) <= 5 * np.sqrt(expected * (1 - expected) / draws)


# Filters.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("vocab", [9, 2000])
def test_filters_keep_what_dreams_keep(dtype, vocab) -> None:
    rng = np.random.default_rng(0)
    for top_p, top_k in [(0.3, None), (0.9, None), (0.999, None), (None, 1), (None, 40), (0.95, 5), (1.0, 10**9)]:
        for spread in (0.01, 1.0, 30.0):
            rows = (rng.normal(size=(4, vocab)) * spread).astype(dtype)
            rows[0, :3] = -np.inf
            kept = rows.copy()
            keep_top(kept, top_p, top_k)
            expected = dream_sample(rows, dataclasses.replace(FREE, top_p=top_p, top_k=top_k)) > 0
            vanished = softmax(rows.astype(np.float64)) == 0  # possible, and its probability underflows here alone
            np.testing.assert_array_equal(np.isfinite(kept)[~vanished], expected[~vanished])
            np.testing.assert_array_equal(kept[np.isfinite(kept)], rows[np.isfinite(kept)])


def test_equals_at_the_edge_of_top_p_are_cut_by_id_and_of_top_k_all_stay() -> None:
    row = np.zeros((1, 4))
    keep_top(row, 0.5, None)
    assert np.isfinite(row).tolist() == [[True, True, True, False]]  # the mass before the third is 0.5, not more
    row = np.zeros((1, 4))
    keep_top(row, None, 1)
    assert np.isfinite(row).all()


def test_filters_that_leave_no_completion_are_lifted_for_the_step_and_that_is_recorded() -> None:
    automaton = token_automaton.compile(read("regex", "abcd"), LETTERS)
    model = Fake(LETTERS, 0)
    config = dataclasses.replace(FREE, length=4, steps=4, block_length=4, top_k=1, temperature=0.7)
    records = run(config, model, automaton)
    assert automaton.accepts(records[-1].canvas_after.tolist())
    assert records[0].filter_lifted
    unfiltered = run(dataclasses.replace(config, top_k=None), model, automaton)
    assert records[0].log_partition == unfiltered[0].log_partition
    assert not any(record.filter_lifted for record in unfiltered)
    # A baseline has no completion to lose: its filter stays, and the trace says that nothing is accepted.
    free = run(dataclasses.replace(config, sampler="independent"), model, automaton)
    assert not free[0].filter_lifted
    assert np.isneginf(free[0].log_partition)


# EOS.


def with_two_ends(confident_end: float, seed: int = 0) -> Fake:
    vocabulary = dataclasses.replace(characters("abcd"), eos_ids=(4, 3))  # EOS, then EoT
    model = Fake(vocabulary, seed)
    head = model._head
    model._head = np.concatenate([head[:, :3], head[:, 3:5] * 0.2, head[:, 5:] * 0], axis=1)
    model._ends = confident_end
    plain = model.logits

    def logits(prompt_ids, canvas, step):
        found = plain(prompt_ids, canvas, step)
        found[:, 3:5] += confident_end
        found[:, 5] = -np.inf
        return found

    model.logits = logits  # type: ignore[method-assign]
    return model


def test_logits_eos_inf_takes_the_padding_eos_away_and_no_other() -> None:
    model = with_two_ends(4.0)
    config = dataclasses.replace(FREE, length=6, steps=6, block_length=6, temperature=1.0)
    automaton = token_automaton.everything(model.vocabulary)
    assert any((r.drawn == 4).any() for r in run(config, model, automaton))
    records = run(dataclasses.replace(config, logits_eos_inf=True), model, automaton)
    assert not any((r.drawn == 4).any() for r in records)
    assert any((r.drawn == 3).any() for r in records)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("upstream_bugs", [False, True])
def test_confidence_eos_eot_inf_commits_both_last_or_as_upstreams_code_does(temperature, upstream_bugs) -> None:
    """LLaDA issue 137: above temperature 0 upstream's line reaches EoT alone."""
    seen = set()
    for seed in range(12):
        model = with_two_ends(1.0, seed)
        config = dataclasses.replace(
            FREE, length=4, steps=4, block_length=4, temperature=temperature, seed=seed,
            confidence_eos_eot_inf=True, upstream_bugs=upstream_bugs,
        )  # fmt: skip
        late = [3] if upstream_bugs and temperature > 0 else [3, 4]
        for record in run(config, model, token_automaton.everything(model.vocabulary)):
            masked = record.canvas == model.vocabulary.mask_id
            logits = model.logits(model.encode_prompt("go"), record.canvas, 0).astype(np.float64)
            logits[:, late] = -np.inf
            expected = softmax(logits)[np.arange(4), record.drawn]
            np.testing.assert_allclose(record.confidence_mf[masked], expected[masked], rtol=1e-4)
            np.testing.assert_allclose(record.confidence_mar[masked], expected[masked], rtol=1e-4)
            seen |= set(record.drawn[masked].tolist())
    assert {3, 4} <= seen


@pytest.mark.parametrize("remasking", ["low_confidence", "threshold", "factor"])
def test_a_run_ends_where_the_model_believes_in_nothing_but_ends(remasking) -> None:
    letters = characters("01")
    automaton = token_automaton.compile(read("regex", "[01]+"), letters)
    config = dataclasses.replace(
        FREE, length=4, steps=8, block_length=2, remasking=remasking, confidence="mf", confidence_eos_eot_inf=True
    )
    for seed in range(9):
        records = run(config, Fake(letters, seed, scale=3000.0), automaton)
        assert not any(np.isnan(r.confidence_mf).any() or np.isnan(r.confidence_mar).any() for r in records)
        assert (records[-1].canvas_after != letters.mask_id).all()


# Settings.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"top_p": 0.0}, "top p"),
        ({"top_p": 1.1}, "top p"),
        ({"top_k": 0}, "top k"),
        ({"alg_temp": -1.0, "remasking": "entropy"}, "alg temp"),
        ({"threshold": 0.0}, "threshold"),
        ({"factor": float("nan")}, "factor"),
        ({"cfg_scale": -0.5}, "cfg scale"),
        ({"threshold": 0.5, "factor": 1.0}, "two rules"),
        ({"threshold": 0.5, "remasking": "factor"}, "two rules"),
        ({"threshold": 0.5, "remasking": "entropy"}, "no probability"),
        ({"factor": 0.5, "remasking": "origin"}, "no probability"),
        ({"alg_temp": 0.5}, "alg_temp"),
        ({"alg_temp": 0.5, "remasking": "maskgit_plus", "threshold": 0.9}, "alg_temp"),
        ({"confidence_eos_eot_inf": True, "remasking": "random"}, "low_confidence"),
    ],
)
def test_settings_that_no_loop_has_are_refused(changes, words) -> None:
    with pytest.raises(ConfigError, match=words):
        preparation.check(dataclasses.replace(FREE, **changes))


@pytest.mark.parametrize("noise", [1e-15, -1e-15, 3e-14])
@pytest.mark.parametrize("value", [1.0, 0.3, 1e-9, -2.5, 0.0])
def test_last_bits_do_not_say_which_of_equals_is_committed(value: float, noise: float) -> None:
    confidences = np.asarray(
        [-np.inf, value, value - noise * (value or 1.0), value + noise * (value or 1.0), value - 1.0]
    )
    np.testing.assert_array_equal(remasking.choose(confidences, 2), [False, True, True, False, False])


def test_what_differs_by_more_than_rounding_is_told_apart() -> None:
    confidences = np.asarray([0.5, 0.5 + 1e-9, 2e-9, 1e-9, 0.0])
    np.testing.assert_array_equal(remasking.choose(confidences, 1), [False, True, False, False, False])
    np.testing.assert_array_equal(remasking.choose(confidences[2:], 1), [True, False, False])
