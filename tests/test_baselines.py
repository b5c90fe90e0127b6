"""The baselines' compiled loops, token for token against their definition: all scores, all completions."""

from __future__ import annotations

import itertools

import numpy as np
import oracle
import pytest

from engine import noise
from engine.inference import independent, lookahead
from engine.inference.potential import potential

VOCAB, LENGTH, STEP = 5, 4, 3
CASES = range(60)


def case(seed, kind=np.float64):
    """A random automaton, mean field and canvas, whose mask id is the size of the vocabulary."""
    rng = np.random.default_rng(seed)
    automaton = oracle.random_automaton(rng, 5, VOCAB, 0.7)
    logits = oracle.random_logits(rng, LENGTH, VOCAB, [2.0, 12.0, 300.0][seed % 3]).astype(kind)
    canvas = oracle.random_canvas(rng, LENGTH, VOCAB, 0.3)
    return potential(logits, canvas, VOCAB, automaton, [0.5, 1.0, 3.0][seed // 3 % 3])


def score(found, position, seed, attempt=0):
    """The Gumbel scores of a row; without noise where there is no attempt."""
    x = found.logits[position].astype(np.float64) * np.float64(found.scale)
    if attempt is None:
        return x
    u = noise.uniforms(seed, STEP, noise.GUMBEL + attempt, position * VOCAB, VOCAB)
    return x - np.log(-np.log(u))


def one_draw(found, allowed, seed, attempt):
    drawn = found.canvas.copy()
    for i in found.masked:
        x = np.where(allowed[i, found.automaton.token_class], score(found, i, seed, attempt), -np.inf)
        drawn[i] = x.argmax()
    return drawn


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("noisy", [True, False])
def test_each_position_has_the_token_of_the_largest_allowed_score(kind, noisy):
    for seed in CASES:
        found = case(seed, kind)
        allowed = np.random.default_rng(seed).random((LENGTH, found.automaton.classes)) < 0.6
        everything = np.ones_like(allowed)
        attempt = 0 if noisy else None
        drawn = independent.draw(found, allowed, noisy, seed, STEP)[0]
        assert drawn.tolist() == one_draw(found, allowed, seed, attempt).tolist()
        drawn = independent.draw(found, None, noisy, seed, STEP)[0]
        assert drawn.tolist() == one_draw(found, everything, seed, attempt).tolist()


def test_no_token_is_passed_over_that_noise_would_lift_above_all_others():
    rng = np.random.default_rng(0)
    vocab = 400
    automaton = oracle.random_automaton(rng, 3, vocab, 0.7)
    for seed in range(200):
        logits = (rng.standard_normal((2, vocab)) * rng.choice([0.01, 1.0, 30.0])).astype(np.float32)
        found = potential(logits, np.full(2, vocab, np.int32), vocab, automaton, rng.choice([0.3, 1.0]))
        drawn = independent.draw(found, None, True, seed, STEP)[0]
        for i in range(2):
            u = noise.uniforms(seed, STEP, noise.GUMBEL, i * vocab, vocab)
            assert drawn[i] == (logits[i] * np.float64(found.scale) - np.log(-np.log(u))).argmax()


def test_draws_end_with_the_first_that_is_accepted_and_else_with_the_last_one_whole():
    tries = []
    for seed in CASES:
        found = case(seed)
        everything = np.ones((LENGTH, found.automaton.classes), bool)
        made = [one_draw(found, everything, seed, attempt) for attempt in range(4)]
        ends = [n for n, x in enumerate(made) if found.automaton.accepts(x)]
        last = ends[0] if ends else 3
        drawn, count = independent.draw(found, None, True, seed, STEP, 4)
        assert (drawn.tolist(), count) == (made[last].tolist(), last + 1)
        tries.append(count)
    assert set(tries) == {1, 2, 3, 4}


def test_a_draw_with_a_token_behind_the_vocabulary_is_never_accepted():
    found = next(found for found in map(case, CASES) if found.masked.size < LENGTH)
    beyond = found.canvas.copy()
    beyond[next(i for i in range(LENGTH) if i not in found.masked)] = VOCAB + 3
    found = potential(found.logits, beyond, VOCAB, found.automaton)
    assert independent.draw(found, None, True, 0, STEP, 6)[1] == 6


@pytest.mark.parametrize("noisy", [True, False])
def test_lookahead_proposes_by_score_and_keeps_what_has_a_completion(noisy):
    dead = 0
    for seed in CASES:
        found = case(seed)
        log_p = found.all_log_mean_field().astype(np.float64)
        possible = found.log_class_mass > -np.inf
        accepted = [
            x
            for x in itertools.product(range(VOCAB), repeat=LENGTH)
            if all(possible[i, found.automaton.token_class[v]] for i, v in enumerate(x)) and found.automaton.accepts(x)
        ]
        accepted = [x for x in accepted if all(x[i] == found.canvas[i] for i in set(range(LENGTH)) - {*found.masked})]
        dead += not accepted
        expected, checked = found.canvas.copy(), 0
        for row in np.argsort(-log_p.max(axis=1), kind="stable"):
            i = found.masked[row]
            x = log_p[row] - (
                np.log(-np.log(noise.uniforms(seed, STEP, noise.GUMBEL, i * VOCAB, VOCAB))) if noisy else 0
            )
            classes = {found.automaton.token_class[y[i]] for y in accepted}
            kept = [v for v in range(VOCAB) if found.automaton.token_class[v] in classes] or list(range(VOCAB))
            expected[i] = max(kept, key=lambda v: x[v])
            checked += 1 + int((x > x[expected[i]]).sum())
            chosen = found.automaton.token_class[expected[i]]
            accepted = [y for y in accepted if found.automaton.token_class[y[i]] == chosen]
        drawn, count = lookahead.draw(found, seed, STEP, noisy)
        assert (drawn.tolist(), count) == (expected.tolist(), checked), seed
    assert 0 < dead < len(CASES) // 2
