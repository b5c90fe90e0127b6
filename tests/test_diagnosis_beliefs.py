"""Where the log partition is lost, against listing all sequences."""

from __future__ import annotations

import itertools

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diagnosis.beliefs import Beliefs

VOCAB = 4


@st.composite
def cases(draw) -> tuple[Beliefs, oracle.Oracle]:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    automaton = oracle.random_automaton(rng, draw(st.integers(1, 5)), VOCAB, 0.6)
    length = draw(st.integers(1, 5))
    logits = oracle.random_logits(rng, length, VOCAB, draw(st.sampled_from((1.0, 20.0, 700.0))))
    truth = oracle.enumerate_all(logits, oracle.random_canvas(rng, length, VOCAB, 0.2), VOCAB, automaton)
    mass = np.full((length, automaton.classes), -np.inf)
    for k in range(automaton.classes):
        members = np.flatnonzero(automaton.token_class == k)
        if members.size:
            mass[:, k] = np.logaddexp.reduce(truth.log_p[:, members], axis=1)
    return Beliefs(automaton, mass), truth


@given(cases())
def test_a_recorded_step_gives_back_its_log_partition_and_posterior(case: tuple[Beliefs, oracle.Oracle]) -> None:
    beliefs, truth = case
    assert beliefs.log_partition == pytest.approx(truth.log_partition, abs=1e-9)
    np.testing.assert_allclose(beliefs.posterior, truth.states(beliefs.automaton), atol=1e-9)


@given(cases())
def test_the_fronts_are_the_sums_over_all_beginnings_and_all_endings(case: tuple[Beliefs, oracle.Oracle]) -> None:
    beliefs, truth = case
    automaton, length = beliefs.automaton, truth.log_p.shape[0]
    forward, backward = (np.zeros((length + 1, automaton.states)) for _ in range(2))
    for boundary in range(length + 1):
        for start in range(automaton.states):
            for x in itertools.product(range(VOCAB), repeat=boundary):
                state = start
                for v in x:
                    state = automaton.move(state, v) if state >= 0 else state
                if state < 0:
                    continue
                at = np.arange(boundary)
                if start == automaton.start:
                    forward[boundary, state] += np.exp(truth.log_p[at, list(x)].sum())
                if automaton.accepting[state]:
                    backward[length - boundary, start] += np.exp(truth.log_p[length - boundary + at, list(x)].sum())
    for found, expected in zip(beliefs.fronts, (forward, backward), strict=True):
        np.testing.assert_allclose(np.exp(found), expected, rtol=1e-9, atol=1e-300)


@given(cases())
def test_the_losses_are_divergences_that_sum_to_the_lost_log_partition(case: tuple[Beliefs, oracle.Oracle]) -> None:
    beliefs, truth = case
    losses = beliefs.losses()
    assert (losses >= 0).all()
    if truth.sequences:
        assert losses.sum() == pytest.approx(-truth.log_partition, abs=1e-8)
    else:
        assert not losses.any()


@given(cases())
def test_each_loss_is_the_divergence_of_the_next_token_given_the_state(case: tuple[Beliefs, oracle.Oracle]) -> None:
    beliefs, truth = case
    joint: dict[tuple[int, int, int], float] = {}
    for x, weight in zip(truth.sequences, truth.probabilities if truth.sequences else [], strict=True):
        path = beliefs.automaton.path(x)
        for i, v in enumerate(x):
            joint[i, int(path[i]), v] = joint.get((i, int(path[i]), v), 0.0) + float(weight)
    expected = np.zeros_like(beliefs.losses())
    states = truth.states(beliefs.automaton) if truth.sequences else None
    for (i, s, v), weight in joint.items():
        if weight > 0 and states is not None:
            expected[i, s] += weight * (np.log(weight / states[i, s]) - truth.log_p[i, v])
    np.testing.assert_allclose(beliefs.losses(), np.maximum(expected, 0), atol=1e-8)


@given(cases(), st.integers(0, 31))
def test_the_mass_that_avoids_some_states_is_that_of_the_sequences_that_do(
    case: tuple[Beliefs, oracle.Oracle], bits: int
) -> None:
    beliefs, truth = case
    avoided = np.asarray([bool(bits >> q & 1) for q in range(beliefs.automaton.states)])
    weights = [
        w
        for x, w in zip(truth.sequences, truth.log_weights, strict=True)
        if not avoided[beliefs.automaton.path(x)].any()
    ]
    expected = np.logaddexp.reduce(weights) if weights else -np.inf
    assert beliefs.log_avoiding(avoided) == pytest.approx(expected, abs=1e-9)
