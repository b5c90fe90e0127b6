"""Inference against listing all sequences, in float64 to 1e-9, also where probabilities are near 1e-300."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import EmptyLanguageError
from engine.inference import chain, draws, midpoint, moves, tree
from engine.inference.chain import Posterior
from engine.inference.potential import Potential, potential
from tests import oracle

CASES = [
    (seed, peak, committed)
    for seed in range(40)
    for peak, committed in ((3.0, 0.0), (3.0, 0.4), (700.0, 0.0), (700.0, 0.3))
]


def case(seed: int, peak: float, committed: float) -> tuple[Potential, Posterior, oracle.Oracle]:
    rng = np.random.default_rng([seed, int(peak), int(10 * committed)])
    length, vocab = int(rng.integers(1, 6)), int(rng.integers(2, 6))
    automaton = oracle.random_automaton(rng, int(rng.integers(1, 6)), vocab, rng.choice([0.4, 0.7]))
    logits = oracle.random_logits(rng, length, vocab, peak)
    canvas = oracle.random_canvas(rng, length, vocab, committed)
    found = potential(logits, canvas, vocab, automaton)
    return found, chain.posterior(found), oracle.enumerate_all(logits.copy(), canvas, vocab, automaton)


@pytest.fixture(params=CASES, ids=lambda c: f"seed{c[0]}-peak{c[1]:.0f}-committed{c[2]}")
def small(request: pytest.FixtureRequest) -> tuple[Potential, Posterior, oracle.Oracle]:
    return case(*request.param)


def test_the_log_partition_is_the_probability_that_a_draw_is_accepted(small) -> None:
    _, posterior, truth = small
    assert posterior.possible == bool(truth.sequences)
    np.testing.assert_allclose(posterior.log_partition, truth.log_partition, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    "choose",
    [
        chain.best,
        lambda p: chain.draw(p, chain.posterior(p), 0, 0),
        lambda p: draws.draw(p, chain.posterior(p), 0, 0, 2),
        lambda p: midpoint.draw(p, chain.posterior(p), 0, 0, 2),
    ],
    ids=["best", "chain", "draws", "midpoint"],
)
def test_no_path_is_chosen_where_nothing_is_accepted(choose) -> None:
    empty = [found for found, posterior, truth in (case(*c) for c in CASES) if not truth.sequences]
    assert empty
    for found in empty:
        with pytest.raises(EmptyLanguageError, match="none can be drawn"):
            choose(found)


def test_the_log_partition_after_commits_is_that_of_the_canvas_with_them(small) -> None:
    found, posterior, _ = small
    vocab = found.logits.shape[1]
    rng = np.random.default_rng(found.logits.size)
    for count in range(min(3, found.masked.size) + 1):
        committed = np.isin(np.arange(found.length), rng.permutation(found.masked)[:count])
        # Any token, also one that the model or the constraint rules out.
        tokens = rng.integers(0, vocab, found.length).astype(np.int32)
        canvas = np.where(committed, tokens, found.canvas)
        truth = oracle.enumerate_all(found.logits.copy(), canvas, vocab, found.automaton)
        after = chain.log_partition_after(found, posterior, committed, tokens)
        np.testing.assert_allclose(after, truth.log_partition, rtol=1e-12, atol=1e-9)


def test_forward_times_backward_is_the_same_at_every_boundary(small) -> None:
    _, posterior, _ = small
    if not posterior.possible:
        return
    products = posterior.log_forward + posterior.log_backward
    for i in range(posterior.live_ptr.size - 1):
        at = products[posterior.live_ptr[i] : posterior.live_ptr[i + 1]]
        np.testing.assert_allclose(np.logaddexp.reduce(at), posterior.log_partition, rtol=1e-12, atol=1e-9)


def test_token_marginals_are_the_mean_field_times_the_lift(small) -> None:
    found, posterior, truth = small
    if not posterior.possible:
        assert np.isneginf(chain.log_lift(found, posterior)).all()
        return
    lift = chain.log_lift(found, posterior)[:, found.automaton.token_class]
    with np.errstate(invalid="ignore"):
        log_q = np.where(np.isneginf(truth.log_p), -np.inf, truth.log_p + lift)
    np.testing.assert_allclose(log_q, truth.log_marginals(), rtol=1e-11, atol=1e-9)


def test_entropy_divergence_and_forbidden_mass_are_those_of_the_enumerated_marginals(small) -> None:
    found, posterior, truth = small
    if not posterior.possible:
        return
    log_q, log_p = truth.log_marginals(), truth.log_p
    q, p = np.exp(log_q), np.exp(log_p)
    with np.errstate(invalid="ignore"):
        entropy_q = -np.where(q > 0, q * log_q, 0).sum(axis=1)
        entropy_p = -np.where(p > 0, p * log_p, 0).sum(axis=1)
        kl = np.where(q > 0, q * (log_q - log_p), 0).sum(axis=1)
    np.testing.assert_allclose(posterior.entropy, entropy_q, atol=1e-9)
    np.testing.assert_allclose(found.entropy, entropy_p, atol=1e-9)
    np.testing.assert_allclose(posterior.kl, kl, atol=1e-9)
    np.testing.assert_allclose(posterior.forbidden_mass, np.where(np.isneginf(log_q), p, 0).sum(axis=1), atol=1e-12)


def test_state_posteriors_are_the_shares_of_the_enumerated_paths(small) -> None:
    found, posterior, truth = small
    if not posterior.possible:
        return
    states = found.automaton.states
    ids, probability, bits = chain.top_states(found, posterior, states)
    dense = np.zeros((found.length + 1, states + 1))
    np.put_along_axis(dense, ids, probability, axis=1)
    expected = truth.states(found.automaton)
    np.testing.assert_allclose(dense[:, :states], expected, atol=1e-6)
    live = np.unpackbits(bits, axis=1, count=states).astype(bool)
    passed = np.zeros_like(live)
    for x in truth.sequences:
        passed[np.arange(len(x) + 1), found.automaton.path(x)] = True
    np.testing.assert_array_equal(live, passed)


def test_the_best_sequence_is_the_most_probable_accepted_one(small) -> None:
    found, posterior, truth = small
    if not posterior.possible:
        return
    tokens, path = chain.best(found)
    np.testing.assert_array_equal(path, found.automaton.path(tokens))
    weights = dict(zip(truth.sequences, truth.log_weights, strict=True))
    assert weights[tuple(tokens.tolist())] == pytest.approx(truth.log_weights.max(), abs=1e-9)


def test_midpoint_and_tree_draw_the_same_states_and_record_the_same_conditionals(small) -> None:
    found, posterior, _ = small
    if not posterior.possible:
        return
    for seed in range(5):
        sparse = midpoint.draw(found, posterior, seed, 0, 4)
        dense = tree.draw(found, seed, 0, 4)
        np.testing.assert_array_equal(sparse.path, dense.path)
        np.testing.assert_allclose(sparse.entropy, dense.entropy, atol=1e-6)
        np.testing.assert_allclose(sparse.log_probability, dense.log_probability, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(sparse.probability, dense.probability, atol=1e-6)


SAMPLERS = {
    "chain": lambda p, m, seed: chain.draw(p, m, seed, 0),
    "midpoint": lambda p, m, seed: midpoint.draw(p, m, seed, 0, 2).path,
    "moves": lambda p, m, seed: moves.draw(p, moves.compose(p), seed, 0, 2).path,
    "tree": lambda p, m, seed: tree.draw(p, seed, 0, 2).path,
}


def interesting_seeds(count: int) -> list[int]:
    """The first seeds whose case has some choice to make at three or more positions."""
    cases = ((seed, case(seed, 3.0, 0.0)) for seed in range(200))
    return [seed for seed, (p, _, truth) in cases if p.length > 2 and len(truth.sequences) > 4][:count]


INTERESTING = interesting_seeds(3)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("seed", INTERESTING)
def test_frequencies_of_draws_are_the_posterior(sampler: str, seed: int) -> None:
    found, posterior, truth = case(seed, 3.0, 0.0)
    draws = 4_000 if sampler == "tree" else 50_000
    counts = dict.fromkeys(truth.sequences, 0)
    for n in range(draws):
        path = SAMPLERS[sampler](found, posterior, n)
        counts[tuple(chain.draw_tokens(found, path, n, 0).tolist())] += 1
    p = truth.probabilities
    error = np.abs(np.asarray(list(counts.values())) / draws - p)
    assert (error <= 5 * np.sqrt(p * (1 - p) / draws) + 1e-9).all()


def test_a_forced_path_is_recorded_with_its_conditionals() -> None:
    found, posterior, _ = case(INTERESTING[0], 3.0, 0.0)
    path = chain.draw(found, posterior, 7, 0)
    sparse = midpoint.draw(found, posterior, 0, 0, 4, forced=path)
    dense = tree.draw(found, 0, 0, 4, forced=path)
    np.testing.assert_array_equal(sparse.path, path)
    np.testing.assert_array_equal(dense.path, path)
    np.testing.assert_allclose(sparse.log_probability, dense.log_probability, atol=1e-5)
    edge_sum = 0.0  # the product of all conditionals is the posterior of the path
    for i in range(1, found.length + 1):
        edge_sum += sparse.log_probability[i]
    log_labels = np.log(found.labels[0]) + np.where(found.labels[0] > 0, found.labels[1], 0) * 256 * np.log(2)
    edges = found.automaton.edges
    total = 0.0
    for i in range(found.length):
        q = path[i]
        e = next(e for e in range(edges.ptr[q], edges.ptr[q + 1]) if edges.target[e] == path[i + 1])
        total += log_labels[i, edges.label[e]]
    assert edge_sum == pytest.approx(total - posterior.log_partition, abs=1e-4)
