"""The weight of a run against listing every run of a small model, where it is unbiased and where it is not."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from engine import decode, token_automaton, trajectory
from engine.constraints import read
from engine.inference import lookahead
from engine.inference.potential import potential
from engine.trace import Branch, Config, Header, Trace
from tests import oracle
from tests.fake import Fake, characters
from tests.test_paths import AMBIGUOUS, LETTERS

VOCABULARY = characters("ab", eos=False)
AUTOMATON = token_automaton.compile(read("regex", "aab|ba[ab]|bbb"), VOCABULARY)
MODEL = Fake(VOCABULARY, 4, scale=0.8, dtype=np.float64)
MODEL._head[:, VOCABULARY.mask_id] = 0
BASE = Config("go", "regex", "", "fake", 3, 3, 3, 1.0, remasking="random")


def traced(config: Config, automaton=AUTOMATON, model=MODEL) -> Trace:
    header = Header(config, model.facts, model.vocabulary, automaton, model.encode_prompt(config.prompt))
    return Trace(header, tuple(decode.denoise(model, automaton, config)))


def mean_field(canvas: tuple[int, ...], model=MODEL) -> np.ndarray:
    logits = model.logits(model.encode_prompt("go"), np.asarray(canvas, np.int32), 0).astype(np.float64)
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def completions(canvas: tuple[int, ...]) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    truth = oracle.enumerate_all(mean_field(canvas), np.asarray(canvas), VOCABULARY.mask_id, AUTOMATON)
    return np.exp(truth.log_weights), truth.sequences


def free_law(canvas: tuple[int, ...], rule) -> dict[tuple[int, ...], float]:
    """Law of the unconstrained run's result: `rule(canvas, draw)` gives the probability of committing each position."""
    masked = [i for i, v in enumerate(canvas) if v == VOCABULARY.mask_id]
    if not masked:
        return {canvas: 1.0}
    p, out = np.exp(mean_field(canvas)), {}
    for values in itertools.product(range(VOCABULARY.size), repeat=len(masked)):
        draw = list(canvas)
        for i, v in zip(masked, values, strict=True):
            draw[i] = v
        weight = np.prod([p[i, v] for i, v in zip(masked, values, strict=True)])
        for i, chance in rule(canvas, tuple(draw)).items():
            after = (*canvas[:i], draw[i], *canvas[i + 1 :])
            if draw[i] == VOCABULARY.mask_id:
                continue  # a mask that is committed: never accepted in the end
            for x, q in free_law(after, rule).items():
                out[x] = out.get(x, 0.0) + weight * chance * q
    return out


def constrained_mean(canvas: tuple[int, ...], rule, weight: float) -> dict[tuple[int, ...], float]:
    """Expectation of the run's weight times its result, over every run of exact steps."""
    masked = [i for i, v in enumerate(canvas) if v == VOCABULARY.mask_id]
    if not masked:
        return {canvas: weight}
    weights, sequences = completions(canvas)
    z, out = weights.sum(), {}
    for x, w in zip(sequences, weights, strict=True):
        for i, chance in rule(canvas, x).items():
            after = (*canvas[:i], x[i], *canvas[i + 1 :])
            left = sum(v for y, v in zip(sequences, weights, strict=True) if y[i] == x[i])
            for y, e in constrained_mean(
                after, rule, weight * z / (left / np.exp(mean_field(canvas)[i, x[i]]))
            ).items():
                out[y] = out.get(y, 0.0) + w / z * chance * e
    return out


def at_random(canvas: tuple[int, ...], _draw) -> dict[int, float]:
    masked = [i for i, v in enumerate(canvas) if v == VOCABULARY.mask_id]
    return {i: 1 / len(masked) for i in masked}


def most_probable(canvas: tuple[int, ...], draw: tuple[int, ...]) -> dict[int, float]:
    masked = [i for i, v in enumerate(canvas) if v == VOCABULARY.mask_id]
    p = mean_field(canvas)
    return {max(masked, key=lambda i: p[i, draw[i]]): 1.0}


EMPTY = (VOCABULARY.mask_id,) * 3


def accepted_part(law: dict) -> dict:
    return {x: p for x, p in law.items() if AUTOMATON.accepts(x)}


@pytest.mark.parametrize("remasking", ["random", "entropy", "topk_margin", "low_confidence"])
def test_the_recorded_weight_is_that_of_listing_all_completions(remasking: str) -> None:
    for seed in range(25):
        run = traced(dataclasses.replace(BASE, remasking=remasking, seed=seed))
        found = trajectory.weight(run)
        total, logs = 0.0, []
        for t, step in enumerate(run.steps):
            before, after = tuple(step.canvas.tolist()), tuple(step.canvas_after.tolist())
            weights, sequences = completions(before)
            p = mean_field(before)
            new = [i for i in range(3) if before[i] != after[i]]
            stays = [w for w, x in zip(weights, sequences, strict=True) if all(x[i] == after[i] for i in new)]
            log_after = np.log(sum(stays)) - sum(p[i, after[i]] for i in new)
            total += np.log(weights.sum()) - log_after
            following = np.log(completions(after)[0].sum()) if t < len(run.steps) - 1 else 0.0
            logs.append(following - log_after)
        assert found.log_total == pytest.approx(total, abs=1e-9)
        np.testing.assert_allclose(found.log_steps, logs, atol=1e-9)
        assert found.log_start == pytest.approx(np.log(completions(EMPTY)[0].sum()), abs=1e-9)


def test_where_positions_do_not_depend_on_the_draw_weighted_runs_have_the_models_accepted_law() -> None:
    expected = accepted_part(free_law(EMPTY, at_random))
    exact = constrained_mean(EMPTY, at_random, 1.0)
    for x, p in expected.items():
        assert exact[x] == pytest.approx(p, rel=1e-9)
    # Without the weights the runs have another law: there is something to correct.
    plain = {x: 0.0 for x in expected}
    logs, ends = [], []
    for seed in range(3_000):
        run = traced(dataclasses.replace(BASE, seed=seed))
        found = trajectory.weight(run)
        assert found.reason is None
        logs.append(found.log_total)
        ends.append(tuple(run.canvas.tolist()))
        plain[ends[-1]] += 1 / 3_000
    weights = np.exp(logs)
    mass = sum(expected.values())
    assert abs(weights.mean() - mass) < 5 * weights.std() / np.sqrt(weights.size)
    for x, p in expected.items():
        terms = weights * np.asarray([end == x for end in ends])
        assert abs(terms.mean() - p) < 5 * terms.std() / np.sqrt(weights.size)
    assert sum(abs(plain[x] - p / mass) for x, p in expected.items()) / 2 > 0.1
    # Self-normalised, the sum is one and the estimate of the accepted mass is the mean weight.
    summed = trajectory.reweighted(logs)
    assert summed.weights.sum() == pytest.approx(1)
    assert summed.log_accepted == pytest.approx(np.log(weights.mean()))
    assert 1 < summed.effective_runs < 3_000
    for x, p in expected.items():
        share = summed.weights[[end == x for end in ends]].sum()
        assert share == pytest.approx(p / mass, abs=0.05)


def test_with_the_confidence_of_the_drawn_token_the_weight_is_biased_and_not_offered() -> None:
    true_mass = sum(accepted_part(free_law(EMPTY, most_probable)).values())
    mean = sum(constrained_mean(EMPTY, most_probable, 1.0).values())
    assert abs(mean - true_mass) > 0.01
    found = trajectory.weight(traced(dataclasses.replace(BASE, remasking="low_confidence", confidence="mf")))
    assert "low_confidence" in found.reason
    assert np.isfinite(found.log_total)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"temperature": 0.0}, "temperature 0"),
        ({"sampler": "map"}, "map"),
        ({"sampler": "local"}, "local"),
        ({"sampler": "lookahead"}, "lookahead"),
        ({"remasking": "maskgit_plus"}, "maskgit_plus"),
        ({"remasking": "threshold"}, "threshold"),
    ],
)
def test_where_the_weight_says_nothing_it_gives_the_reason(changes: dict, words: str) -> None:
    assert words in trajectory.weight(traced(dataclasses.replace(BASE, **changes))).reason


def test_an_unfinished_or_edited_run_is_not_offered() -> None:
    run = traced(BASE)
    assert "not finished" in trajectory.weight(Trace(run.header, run.steps[:2])).reason
    assert "no finished step" in trajectory.weight(Trace(run.header, ())).reason
    forked = dataclasses.replace(run.header, branches=(Branch("", 1),))
    assert "by hand" in trajectory.weight(Trace(forked, run.steps)).reason


def test_a_run_whose_filters_were_lifted_is_not_offered() -> None:
    reasons = set()
    for seed in range(40):
        run = traced(dataclasses.replace(BASE, seed=seed, top_p=0.6), model=Fake(VOCABULARY, seed, scale=0.8))
        lifted = run.column("filter_lifted").any()
        reason = trajectory.weight(run).reason
        assert (reason is not None) == lifted
        reasons.add(reason)
    assert len(reasons) > 1, "some are lifted and some are not"


def test_a_mask_that_is_drawn_changes_nothing_of_the_log_partition() -> None:
    drawn = 0
    for seed in range(10):
        run = traced(dataclasses.replace(BASE, sampler="independent", seed=seed), model=Fake(VOCABULARY, seed))
        for step in run.steps:
            if (step.canvas_after == step.canvas).all():
                drawn += 1
                assert step.log_partition_after == step.log_partition
    assert drawn


def test_without_a_constraint_every_weight_is_one() -> None:
    run = traced(dataclasses.replace(BASE, kind=None, source=None), token_automaton.everything(VOCABULARY))
    found = trajectory.weight(run)
    assert found.reason is None
    np.testing.assert_allclose([found.log_total, *found.log_steps], 0.0, atol=1e-12)


def test_a_run_weighted_by_paths_is_weighed_against_the_language_and_a_corrected_one_is_not_offered() -> None:
    model = Fake(LETTERS, 0, scale=0.7)
    config = dataclasses.replace(BASE, length=3, path_tries=0)
    weights = []
    for seed in range(3_000):
        found = trajectory.weight(traced(dataclasses.replace(config, seed=seed), AMBIGUOUS, model))
        assert found.reason is None
        weights.append(np.exp(found.log_total))

    def mass(canvas: tuple[int, ...]) -> float:
        masked = [i for i, v in enumerate(canvas) if v == LETTERS.mask_id]
        if not masked:
            return float(AMBIGUOUS.accepts(canvas))
        p = np.exp(mean_field(canvas, model))
        return sum(p[i, v] / len(masked) * mass((*canvas[:i], v, *canvas[i + 1 :])) for i in masked for v in range(3))

    weights = np.asarray(weights)
    assert abs(weights.mean() - mass((LETTERS.mask_id,) * 3)) < 5 * weights.std() / np.sqrt(weights.size)
    corrected = traced(dataclasses.replace(config, path_tries=8), AMBIGUOUS, model)
    assert "only estimated" in trajectory.weight(corrected).reason


def lookahead_law(log_p: np.ndarray, canvas: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Tokens in order of the best one's probability, each from `p` where some accepted completion has it."""
    order = sorted((i for i, v in enumerate(canvas) if v == VOCABULARY.mask_id), key=lambda i: -log_p[i].max())
    law = {canvas: 1.0}
    for i in order:
        following = {}
        for x, p in law.items():
            allowed = np.exp(log_p[i])
            for v in range(VOCABULARY.size):
                tried = (*x[:i], v, *x[i + 1 :])
                free = [range(2) if w == VOCABULARY.mask_id else (w,) for w in tried]
                allowed[v] *= v != VOCABULARY.mask_id and any(map(AUTOMATON.accepts, itertools.product(*free)))
            for v in np.flatnonzero(allowed):
                following[(*x[:i], int(v), *x[i + 1 :])] = p * allowed[v] / allowed.sum()
        law = following
    return law


def test_lookahead_never_dies_and_its_law_is_a_measured_way_from_the_posterior() -> None:
    draws, mask = 4_000, VOCABULARY.mask_id
    # Half of `a` at position 0 is a dead end but for one completion that has next to no mass.
    p = np.asarray([[0.45, 0.45, 0.1], [0.1, 0.8, 0.1], [0.85, 0.05, 0.1]])
    canvas = np.full(3, mask, np.int32)
    found = potential(np.log(p), canvas, mask, AUTOMATON)
    expected = lookahead_law(np.log(p), EMPTY)
    counts = dict.fromkeys(expected, 0)
    checked = []
    for seed in range(draws):
        tokens, tries = lookahead.draw(found, seed, 0, noisy=True)
        counts[tuple(tokens.tolist())] += 1
        checked.append(tries)
        assert AUTOMATON.accepts(tokens.tolist())
    for x, q in expected.items():
        assert abs(counts[x] / draws - q) < 5 * np.sqrt(q * (1 - q) / draws)
    truth = oracle.enumerate_all(np.log(p), canvas, mask, AUTOMATON)
    exact = dict(zip(truth.sequences, truth.probabilities.tolist(), strict=True))
    distance = sum(abs(expected.get(x, 0) - q) for x, q in exact.items()) / 2
    assert distance > 0.3
    assert min(checked) == 3
    assert max(checked) > 3


def test_lookahead_at_temperature_0_proposes_the_most_probable_token_first() -> None:
    p = np.asarray([[0.5, 0.4, 0.1], [0.1, 0.7, 0.2], [0.3, 0.6, 0.1]])
    found = potential(np.log(p), np.full(3, VOCABULARY.mask_id, np.int32), VOCABULARY.mask_id, AUTOMATON)
    tokens, checked = lookahead.draw(found, 0, 0, noisy=False)
    assert tokens.tolist() == [1, 1, 1]  # b and b are kept, then `a` is proposed first and refused
    assert checked == 4


def test_lookahead_where_nothing_is_accepted_keeps_every_first_proposal() -> None:
    logits = np.log(np.asarray([[0.2, 0.7, 0.1]] * 3))
    logits[:, 0] = -np.inf
    logits[2, 1] = -np.inf
    found = potential(logits, np.full(3, VOCABULARY.mask_id, np.int32), VOCABULARY.mask_id, AUTOMATON)
    tokens, checked = lookahead.draw(found, 0, 0, noisy=False)
    assert tokens.tolist() == [1, 1, 2]
    assert checked == 3
