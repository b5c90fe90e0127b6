"""The denoising loop against a straight-line re-statement of LLaDA's, and its laws against enumeration."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine import decode, preparation, remasking, token_automaton
from engine.constraints import read
from engine.errors import ConfigError
from engine.trace import Config, StepRecord
from tests import oracle
from tests.fake import Fake, characters

LETTERS = characters("abcdefgh")
EVERYTHING = token_automaton.everything(LETTERS)
FREE = Config(prompt="go", kind=None, source=None, length=8, steps=8, block_length=8, sampler="midpoint")


def run(config: Config, denoiser: Fake, automaton=EVERYTHING) -> list[StepRecord]:
    return list(decode.denoise(denoiser, automaton, config))


def llada_greedy(model: Fake, config: Config) -> list[np.ndarray]:
    """LLaDA's `generate` at temperature 0, written out flat: the canvas after every step."""
    prompt = model.encode_prompt(config.prompt)
    mask = model.vocabulary.mask_id
    x = np.full(config.length, mask, np.int32)
    canvases = []
    blocks = config.length // config.block_length
    per_block = config.steps // blocks
    for b in range(blocks):
        begin, end = b * config.block_length, (b + 1) * config.block_length
        todo = int(np.sum(x[begin:end] == mask))
        quota = [todo // per_block + (1 if i < todo % per_block else 0) for i in range(per_block)]
        for i in range(per_block):
            logits = model.logits(prompt, x, 0).astype(np.float64)
            x0 = logits.argmax(1)
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            confidence = [p[j, x0[j]] if x[j] == mask and j < end else -np.inf for j in range(config.length)]
            for j in sorted(range(config.length), key=lambda j: -confidence[j])[: quota[i]]:
                if confidence[j] > -np.inf:
                    x[j] = x0[j]
            canvases.append(x.copy())
    return canvases


@pytest.mark.parametrize("sampler", ["independent", "midpoint", "tree", "chain", "map", "local", "reject"])
@pytest.mark.parametrize(
    ("length", "steps", "block"),
    [(8, 8, 8), (8, 3, 8), (8, 16, 8), (12, 12, 4), (12, 6, 6), (16, 4, 4), (1, 1, 1), (7, 2, 7)],
)
def test_without_constraint_the_greedy_trajectory_is_lladas(sampler, length, steps, block) -> None:
    for seed in range(5):
        model = Fake(LETTERS, seed)
        config = dataclasses.replace(FREE, length=length, steps=steps, block_length=block, sampler=sampler)
        records = run(config, model)
        for record, expected in zip(records, llada_greedy(model, config), strict=True):
            np.testing.assert_array_equal(record.canvas_after, expected)
            np.testing.assert_allclose(record.confidence_mf, record.confidence_mar, atol=1e-12)
            assert record.log_partition == pytest.approx(0.0, abs=1e-12)


def test_the_commit_schedule_is_lladas() -> None:
    assert remasking.commit_counts(32, 10) == [4, 4, 3, 3, 3, 3, 3, 3, 3, 3]
    assert remasking.commit_counts(4, 8) == [1, 1, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("sampler", ["independent", "midpoint", "chain"])
def test_without_constraint_draws_follow_the_tempered_softmax_and_confidence_does_not(
    sampler: str, temperature: float
) -> None:
    model = Fake(LETTERS, 1)
    draws = 3_000
    config = dataclasses.replace(FREE, length=2, steps=1, block_length=2, temperature=temperature, sampler=sampler)
    logits = model.logits(model.encode_prompt("go"), np.full(2, LETTERS.mask_id, np.int32), 0)
    tempered = np.exp(logits / temperature).astype(np.float64)
    tempered /= tempered.sum(1, keepdims=True)
    at_one = np.exp(logits.astype(np.float64))
    at_one /= at_one.sum(1, keepdims=True)
    joint = np.zeros((LETTERS.size, LETTERS.size))
    for seed in range(draws):
        record = run(dataclasses.replace(config, seed=seed), model)[0]
        joint[tuple(record.drawn)] += 1
    np.testing.assert_allclose(record.confidence_mf, at_one[[0, 1], record.drawn], rtol=1e-5)
    expected = tempered[0][:, None] * tempered[1][None]
    error = np.abs(joint / draws - expected)
    assert (error <= 5 * np.sqrt(expected * (1 - expected) / draws) + 2 / draws).all()


def test_a_run_is_a_function_of_its_configuration() -> None:
    model = Fake(LETTERS, 2)
    config = dataclasses.replace(FREE, temperature=1.0, remasking="random", seed=5)
    first, second = run(config, model), run(config, model)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.canvas_after, b.canvas_after)
    other = run(dataclasses.replace(config, seed=6), model)
    assert any((a.drawn != b.drawn).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("sampler", ["midpoint", "tree", "chain", "map"])
@pytest.mark.parametrize("confidence", ["mf", "mar"])
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_every_exact_run_ends_in_the_language_and_commits_by_its_confidence(sampler, confidence, temperature) -> None:
    tested = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        automaton = oracle.random_automaton(rng, 4, LETTERS.size, 0.5)
        automaton.token_class[LETTERS.mask_id] = 0  # dead, as in every compiled automaton
        if not automaton.accepted_lengths(4)[4]:
            continue
        tested += 1
        config = dataclasses.replace(
            FREE, length=4, steps=3, block_length=4, sampler=sampler, confidence=confidence,
            temperature=temperature, seed=seed,
        )  # fmt: skip
        model = Fake(LETTERS, seed)
        records = run(config, model, automaton)
        assert automaton.accepts(records[-1].canvas_after.tolist())
        for record in records:
            np.testing.assert_array_equal(record.path, automaton.path(record.drawn))
            chosen = record.committed_mar if confidence == "mar" else record.committed_mf
            np.testing.assert_array_equal(record.committed, chosen)
            logits = model.logits(model.encode_prompt("go"), record.canvas, 0).astype(np.float64)
            truth = oracle.enumerate_all(logits, record.canvas, LETTERS.mask_id, automaton)
            masked = record.canvas == LETTERS.mask_id
            at = np.arange(4)
            np.testing.assert_allclose(
                record.confidence_mar[masked], np.exp(truth.log_marginals()[at, record.drawn])[masked], rtol=1e-4
            )
            np.testing.assert_allclose(
                record.confidence_mf[masked], np.exp(truth.log_p[at, record.drawn])[masked], rtol=1e-4
            )
            assert record.log_partition_model == pytest.approx(truth.log_partition, abs=1e-5)
    assert tested > 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"length": 0}, "length"),
        ({"length": 12, "block_length": 5}, "divide"),
        ({"length": 12, "block_length": 4, "steps": 7}, "multiple of 3"),
        ({"steps": 0}, "The number of steps is 0"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"sampler": "magic"}, "midpoint"),
        ({"remasking": "magic"}, "low_confidence"),
        ({"confidence": "magic"}, "mar"),
        ({"reject_budget": 0}, "budget"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(changes, words) -> None:
    with pytest.raises(ConfigError, match=words):
        preparation.check(dataclasses.replace(FREE, **changes))


def joint_of_first_steps(sampler: str, seeds: int, **changes) -> tuple[dict, list[StepRecord], oracle.Oracle]:
    """Counts of the first step's draws over seeds, the records, and all accepted sequences: `ab`, `ba`, `aa` of a, b, c."""
    vocabulary = characters("abc", eos=False)
    automaton = token_automaton.compile(read("regex", "ab|ba|aa"), vocabulary)
    model = Fake(vocabulary, 0, scale=0.3)
    config = dataclasses.replace(
        FREE, length=2, steps=1, block_length=2, temperature=1.0, sampler=sampler, kind="regex", source="", **changes
    )
    records = [run(dataclasses.replace(config, seed=n), model, automaton)[0] for n in range(seeds)]
    counts: dict[tuple[int, ...], int] = {}
    for record in records:
        draw = tuple(record.drawn.tolist())
        counts[draw] = counts.get(draw, 0) + 1
    logits = model.logits(model.encode_prompt("go"), records[0].canvas, 0).astype(np.float64)
    return counts, records, oracle.enumerate_all(logits, records[0].canvas, vocabulary.mask_id, automaton)


def assert_frequencies(counts: dict, expected: dict, draws: int) -> None:
    assert set(counts) <= {x for x, p in expected.items() if p > 0}
    for x, p in expected.items():
        assert abs(counts.get(x, 0) / draws - p) <= 5 * np.sqrt(p * (1 - p) / draws) + 1e-9, x


def test_local_draws_each_position_by_itself_from_what_some_completion_allows() -> None:
    counts, _, truth = joint_of_first_steps("local", 4_000)
    allowed = np.where(truth.log_marginals() > -np.inf, np.exp(truth.log_p), 0.0)
    allowed /= allowed.sum(axis=1, keepdims=True)
    assert (allowed[:, :2] > 0).all()  # a and b at both positions,
    assert (allowed[:, 2:] == 0).all()  # and nothing else
    expected = {(v, w): allowed[0, v] * allowed[1, w] for v in range(4) for w in range(4)}
    assert_frequencies(counts, expected, 4_000)
    assert counts[1, 1] > 0  # each b is allowed, and `bb` is not in the language


def test_reject_draws_until_it_is_accepted_or_its_budget_ends() -> None:
    budget, draws = 3, 4_000
    counts, records, truth = joint_of_first_steps("reject", draws, reject_budget=budget)
    p, z = np.exp(truth.log_p), np.exp(truth.log_partition)
    assert 0.05 < z < 0.95
    # Accepted sooner: the posterior, in a share 1 − (1 − Z)^n; else the last of n refused draws.
    expected = {}
    for v in range(4):
        for w in range(4):
            share = (1 - (1 - z) ** budget) / z if (v, w) in truth.sequences else (1 - z) ** (budget - 1)
            expected[v, w] = p[0, v] * p[1, w] * share
    assert_frequencies(counts, expected, draws)
    tries = np.bincount([int(record.tries) for record in records], minlength=budget + 1)[1:] / draws
    np.testing.assert_allclose(tries, [z, z * (1 - z), (1 - z) ** 2], atol=5 * np.sqrt(0.25 / draws))


def test_reject_at_temperature_0_has_one_draw_to_make() -> None:
    vocabulary = characters("abc", eos=False)
    automaton = token_automaton.compile(read("regex", "cc"), vocabulary)
    config = dataclasses.replace(FREE, length=2, steps=1, block_length=2, sampler="reject")
    tries = {int(run(config, Fake(vocabulary, seed), automaton)[0].tries) for seed in range(5)}
    assert tries == {1}
