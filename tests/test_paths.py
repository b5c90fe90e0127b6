"""Nondeterministic automata in inference: the law by paths, the language's own law, and that they differ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine import decode, token_automaton
from engine.inference import chain, draws, midpoint, paths, tree
from engine.inference.potential import Potential, potential
from engine.token_automaton import TokenAutomaton
from engine.trace import Config
from tests import oracle
from tests.fake import Fake, characters
from tests.test_nondeterministic import kept

LETTERS = characters("abc", eos=False)
AMBIGUOUS = token_automaton.compile(kept("(?:a|ab)*b?(?:a|ba|c)*[abc]"), LETTERS)
"""For example `aba` has the paths a·ba, ab·a and more."""
UNAMBIGUOUS = token_automaton.compile(kept("[abc]*a[abc]{2}"), LETTERS)


def count(automaton: TokenAutomaton, token_ids: tuple[int, ...]) -> int:
    """Accepting paths, by walking each."""
    ends = [automaton.start]
    for v in token_ids:
        ends = [int(r) for q in ends for r in automaton.moves(q, v)]
    return sum(bool(automaton.accepting[q]) for q in ends)


def case(automaton: TokenAutomaton, seed: int, length: int = 4, peak: float = 2.0) -> tuple[Potential, oracle.Oracle]:
    rng = np.random.default_rng(seed)
    logits = oracle.random_logits(rng, length, LETTERS.size, peak)
    logits[:, LETTERS.mask_id] = -np.inf
    canvas = np.full(length, LETTERS.mask_id, np.int32)
    canvas[seed % length] = rng.integers(0, 3) if seed % 2 else LETTERS.mask_id
    found = potential(logits, canvas, LETTERS.mask_id, automaton)
    return found, oracle.enumerate_all(logits.copy(), canvas, LETTERS.mask_id, automaton)


def laws(automaton: TokenAutomaton, truth: oracle.Oracle) -> tuple[dict, dict]:
    """Sequence -> probability, by paths and of the language."""
    by_paths = truth.probabilities * [count(automaton, x) for x in truth.sequences]
    by_paths /= by_paths.sum()
    return (
        dict(zip(truth.sequences, by_paths.tolist(), strict=True)),
        dict(zip(truth.sequences, truth.probabilities.tolist(), strict=True)),
    )


def assert_frequencies(drawn: np.ndarray, expected: dict) -> None:
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    observed = dict(zip(map(tuple, found.tolist()), (counts / len(drawn)).tolist(), strict=True))
    assert set(observed) <= set(expected)
    for x, p in expected.items():
        assert abs(observed.get(x, 0.0) - p) <= 5 * np.sqrt(p * (1 - p) / len(drawn)) + 1e-9, x


def distance(a: dict, b: dict) -> float:
    return sum(abs(p - b[x]) for x, p in a.items()) / 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("peak", [2.0, 700.0])
def test_log_partition_marginals_and_states_count_each_sequence_once_for_each_path(seed: int, peak: float) -> None:
    found, truth = case(AMBIGUOUS, seed, peak=peak)
    posterior = chain.posterior(found)
    if not truth.sequences:
        assert not posterior.possible
        return
    log_counts = np.log([count(AMBIGUOUS, x) for x in truth.sequences])
    weighted = oracle.Oracle(truth.sequences, truth.log_weights + log_counts, truth.log_p)
    np.testing.assert_allclose(posterior.log_partition, weighted.log_partition, rtol=1e-12, atol=1e-9)
    lift = chain.log_lift(found, posterior)[:, AMBIGUOUS.token_class]
    with np.errstate(invalid="ignore"):
        log_q = np.where(np.isneginf(truth.log_p), -np.inf, truth.log_p + lift)
    np.testing.assert_allclose(log_q, weighted.log_marginals(), rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_sequence_does_not_count_paths(seed: int) -> None:
    found, truth = case(AMBIGUOUS, seed)
    tokens, path = chain.best(found)
    assert tuple(tokens.tolist()) == truth.sequences[int(truth.log_weights.argmax())]
    for i, v in enumerate(tokens.tolist()):
        assert path[i + 1] in AMBIGUOUS.moves(int(path[i]), v)


@pytest.mark.parametrize("automaton", [AMBIGUOUS, UNAMBIGUOUS])
def test_the_log_number_of_paths_is_that_of_walking_each(automaton: TokenAutomaton) -> None:
    sequences = list(itertools.product(range(LETTERS.size), repeat=4))
    found = paths.log_paths(automaton, automaton.token_class[np.asarray(sequences)])
    with np.errstate(divide="ignore"):
        expected = np.log([count(automaton, x) for x in sequences])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.isneginf(found).any()
    assert (found > np.log(1.5)).any() == (automaton is AMBIGUOUS)


def test_a_number_of_paths_beyond_float64_is_right() -> None:
    # Two states that both move to both: 2^length paths into each.
    doubling = TokenAutomaton(
        start=0, end=-1, accepting=np.asarray([True, True]), token_class=np.ones(1, np.int32),
        class_ptr=np.asarray([0, 0, 4], np.int32), class_source=np.asarray([0, 0, 1, 1], np.int32),
        class_target=np.asarray([0, 1, 0, 1], np.int32), state_spans=((), ()),
    )  # fmt: skip
    found = paths.log_paths(doubling, np.ones((1, 2_000), np.int32))
    np.testing.assert_allclose(found, 2_000 * np.log(2), rtol=1e-12)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("(?:a|ab)(?:c|bc)", True), ("[abc]*a[abc]{3}", False), ("(?:a*b*)*c", False), ("(?:[abc]*a|[abc]*b)c?", False),
        ("(?:[abc]*a[abc]{3}|[abc]*b[abc]{2})", True), ("(?:a|b|ab)*[abc]*c", True),
    ],
)  # fmt: skip
def test_ambiguity_is_decided_as_listing_finds_it(source: str, expected: bool) -> None:
    automaton = token_automaton.compile(kept(source), LETTERS)
    counted = any(count(automaton, x) > 1 for length in range(7) for x in itertools.product(range(3), repeat=length))
    assert paths.ambiguous(automaton) is counted
    if expected:
        assert counted
    assert paths.ambiguous(AMBIGUOUS) is True


def test_ambiguity_is_left_open_where_the_budget_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PAIRS", 0)
    assert paths.ambiguous(UNAMBIGUOUS) is None


@pytest.mark.parametrize("sampler", ["chain", "midpoint", "tree", "batch"])
def test_every_sampler_draws_by_paths_and_that_is_not_the_language(sampler: str) -> None:
    found, truth = case(AMBIGUOUS, 2)
    by_paths, own = laws(AMBIGUOUS, truth)
    assert distance(by_paths, own) > 0.1
    posterior, number = chain.posterior(found), 4_000

    def path(seed: int) -> np.ndarray:
        if sampler == "chain":
            return chain.draw(found, posterior, seed, 0)
        if sampler == "midpoint":
            return midpoint.draw(found, posterior, seed, 0, 4).path
        return tree.draw(found, seed, 0, 4).path

    if sampler == "batch":
        drawn = draws.tokens(found, draws.draw(found, posterior, 3, 0, 20_000))
    else:
        number = 1_500 if sampler == "tree" else number
        drawn = np.stack([chain.draw_tokens(found, path(seed), seed, 0) for seed in range(number)])
    assert_frequencies(drawn, by_paths)


def test_corrected_draws_are_of_the_language_and_their_means_estimate_its_partition() -> None:
    found, truth = case(AMBIGUOUS, 2)
    by_paths, own = laws(AMBIGUOUS, truth)
    posterior = chain.posterior(found)
    results = [paths.corrected(found, posterior, seed, 0, 8) for seed in range(6_000)]
    kept_ones = [r for r in results if not r.path_weighted]
    assert_frequencies(np.stack([r.tokens for r in kept_ones]), own)
    rate = truth.log_partition - posterior.log_partition
    estimates = np.asarray([r.inverse_paths for r in results])
    assert abs(estimates.mean() - np.exp(rate)) < 5 * estimates.std() / np.sqrt(len(results))
    shares = np.asarray([r.kept / r.tries for r in results])
    assert abs(shares.mean() - np.exp(rate)) < 5 * shares.std() / np.sqrt(len(results))
    # The mean of 1 / paths is the better estimate of the two.
    assert estimates.std() < shares.std()
    for r in results[:200]:
        assert r.log_paths == pytest.approx(np.log(count(AMBIGUOUS, tuple(r.tokens.tolist()))))
    uncorrected = [paths.corrected(found, posterior, seed, 0, 0) for seed in range(6_000)]
    assert all(r.path_weighted and r.kept == 0 for r in uncorrected)
    assert_frequencies(np.stack([r.tokens for r in uncorrected]), by_paths)


def test_when_no_try_is_kept_the_draw_says_that_it_is_by_paths() -> None:
    found, _ = case(AMBIGUOUS, 2)
    posterior = chain.posterior(found)
    results = [paths.corrected(found, posterior, seed, 0, 1) for seed in range(400)]
    assert {r.path_weighted for r in results} == {True, False}
    assert all(r.path_weighted == (r.kept == 0) for r in results)
    one_path, _ = case(UNAMBIGUOUS, 2)
    posterior = chain.posterior(one_path)
    assert not any(paths.corrected(one_path, posterior, seed, 0, 1).path_weighted for seed in range(400))


@pytest.mark.parametrize("committed", [False, True])
def test_the_first_of_many_draws_is_the_single_draw_and_the_others_are_independent(committed: bool) -> None:
    rng = np.random.default_rng(3)
    automaton = oracle.random_automaton(rng, 4, 5, 0.7)
    logits = oracle.random_logits(rng, 5, 5, 3.0)
    canvas = np.full(5, 5, np.int32)
    canvas[2] = 1 if committed else 5
    found = potential(logits, canvas, 5, automaton)
    posterior = chain.posterior(found)
    drawn = draws.draw(found, posterior, 7, 2, 30_000)
    tokens = draws.tokens(found, drawn)
    path = chain.draw(found, posterior, 7, 2)
    np.testing.assert_array_equal(drawn.paths[0], path)
    np.testing.assert_array_equal(tokens[0], chain.draw_tokens(found, path, 7, 2))
    truth = oracle.enumerate_all(logits.copy(), canvas, 5, automaton)
    expected = dict(zip(truth.sequences, truth.probabilities.tolist(), strict=True))
    assert_frequencies(tokens, expected)
    pairs = np.concatenate([tokens[:-1:2], tokens[1::2]], axis=1)  # neighbours share nothing
    joint = {(*x, *y): p * q for (x, p), (y, q) in itertools.product(expected.items(), repeat=2) if p * q > 1e-3}
    found_pairs, counts = np.unique(pairs, axis=0, return_counts=True)
    observed = dict(zip(map(tuple, found_pairs.tolist()), (counts / len(pairs)).tolist(), strict=True))
    for x, p in joint.items():
        assert abs(observed.get(x, 0.0) - p) <= 5 * np.sqrt(p * (1 - p) / len(pairs))


@pytest.mark.parametrize("sampler", ["midpoint", "chain", "tree"])
def test_a_run_records_paths_and_its_draws_are_of_the_language(sampler: str) -> None:
    model = Fake(LETTERS, 0, scale=0.3)
    config = Config("go", "regex", "", "fake", 4, 1, 4, 1.0, sampler=sampler)
    runs = 300 if sampler == "tree" else 1_500
    records = [next(decode.denoise(model, AMBIGUOUS, Config(**{**vars(config), "seed": n}))) for n in range(runs)]
    logits = model.logits(model.encode_prompt("go"), records[0].canvas, 0).astype(np.float64)
    truth = oracle.enumerate_all(logits, records[0].canvas, LETTERS.mask_id, AMBIGUOUS)
    _, own = laws(AMBIGUOUS, truth)
    assert not any(record.path_weighted for record in records)  # 64 tries
    assert_frequencies(np.stack([record.drawn for record in records]), own)
    for record in records[:50]:
        assert record.tries == 64
        assert record.log_paths == pytest.approx(np.log(count(AMBIGUOUS, tuple(record.drawn.tolist()))))
        for i, v in enumerate(record.drawn.tolist()):
            assert record.path[i + 1] in AMBIGUOUS.moves(int(record.path[i]), v)
        estimate = record.log_partition + np.log(record.inverse_paths)
        assert estimate == pytest.approx(truth.log_partition, abs=0.5)
        if sampler != "chain":
            assert np.isfinite(record.midpoint_log_probability[1:]).all()


def test_a_deterministic_run_has_one_path_and_nothing_to_correct() -> None:
    automaton = token_automaton.compile(kept("ab|ba"), LETTERS)
    assert automaton.deterministic
    record = next(decode.denoise(Fake(LETTERS), automaton, Config("go", "regex", "", "fake", 2, 1, 2, 1.0)))
    assert (record.log_paths, record.inverse_paths, record.tries) == (0, 1, 1)
    assert np.isnan(record.paths_kept)
    assert not record.path_weighted
