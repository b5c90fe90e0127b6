"""Classes of many tokens, which are looked into block by block: masses, lists and draws against plain sums and sorts."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ModelError
from engine.inference import batch, chain, draws, tokens
from engine.inference.potential import Potential, potential, potentials
from engine.token_automaton import TokenAutomaton

VOCAB, MASK = 3001, 3001
TEMPERATURES = (1.0, 0.2)


def automaton() -> TokenAutomaton:
    """Two states; classes of 1, 40, 255, 256, 600 and about 1,750 tokens, and a dead one."""
    rng = np.random.default_rng(1)
    sizes = (100, 1, 40, 255, 256, 600)
    token_class = np.repeat(np.arange(len(sizes) + 1), (*sizes, VOCAB - sum(sizes))).astype(np.int32)
    source = np.asarray([0, 0, 1, 0, 1, 1, 0], np.int32)
    target = np.asarray([0, 1, 0, 0, 1, 0, 1], np.int32)
    return TokenAutomaton(
        start=0,
        end=-1,
        accepting=np.ones(2, bool),
        token_class=rng.permutation(token_class),
        class_ptr=np.asarray([0, 0, 1, 3, 4, 5, 6, 7], np.int32),
        class_source=source,
        class_target=target,
        state_spans=((), ()),
    )


AUTOMATON = automaton()


def logits(dtype: type, spread: float = 2.0) -> np.ndarray:
    values = np.random.default_rng(2).normal(0.0, spread, (5, VOCAB))
    values[1, AUTOMATON.token_class == 3] = -np.inf
    values[2, AUTOMATON.token_class == 6] -= 2000.0  # no float holds the weights of these beside the others'
    values[3, ::7] = -np.inf
    return values.astype(dtype)


def found(dtype: type = np.float64) -> list[Potential]:
    canvas = np.asarray([MASK, MASK, MASK, MASK, 17], np.int32)
    return potentials(logits(dtype), canvas, MASK, AUTOMATON, TEMPERATURES)


def log_p(dtype: type, temperature: float) -> np.ndarray:
    values = logits(dtype).astype(np.float64)[:4] / temperature
    return values - np.logaddexp.reduce(values, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noise_of_1_draws_a_possible_token_where_the_last_blocks_of_a_class_are_impossible(dtype: type) -> None:
    members = np.flatnonzero(AUTOMATON.token_class == 6)
    values = logits(dtype)
    values[0, members[10:]] = -np.inf
    canvas = np.asarray([MASK, 17, 17, 17, 17], np.int32)
    for got in potentials(values, canvas, MASK, AUTOMATON, TEMPERATURES):
        for rest in (1.0, np.nextafter(1.0, 0.0)):
            drawn = tokens.draw_tokens(
                *(got.logits, canvas, got.masked, got.scale, got.block_peak, got.block_weight),
                *(np.full(1, 6, np.int32), np.full(1, rest), AUTOMATON.edges.blocks),
            )
            assert values[0, drawn[0]] > -np.inf


@pytest.mark.parametrize("shape", [(4, VOCAB), (5, VOCAB - 1), (5, VOCAB + 1)])
def test_logits_of_another_canvas_or_vocabulary_are_refused(shape: tuple[int, int]) -> None:
    canvas = np.full(5, MASK, np.int32)
    with pytest.raises(ModelError, match="shape"):
        potentials(np.zeros(shape), canvas, MASK, AUTOMATON, (1.0,))


@pytest.mark.parametrize(("dtype", "precision"), [(np.float64, 1e-11), (np.float32, 2e-6)])
def test_class_masses_at_each_temperature_are_sums_over_their_tokens(dtype: type, precision: float) -> None:
    for temperature, got in zip(TEMPERATURES, found(dtype), strict=True):
        p = log_p(dtype, temperature)
        expected = np.stack(
            [np.logaddexp.reduce(p[:, AUTOMATON.token_class == c], axis=1) for c in range(AUTOMATON.classes)], axis=1
        )
        np.testing.assert_allclose(got.log_class_mass[:4], expected, rtol=precision, atol=precision)
        terms = np.exp(p) * np.where(p > -np.inf, p, 0.0)
        np.testing.assert_allclose(got.entropy[:4], -terms.sum(axis=1), rtol=10 * precision)
        assert got.log_class_mass[4, AUTOMATON.token_class[17]] == 0.0


@pytest.mark.parametrize("which", [0, 1])
def test_the_listed_tokens_are_the_first_of_a_sort(which: int) -> None:
    here, top = found()[which], 12
    posterior = chain.posterior(here)
    ids, log_mean_field, log_posterior = chain.top_tokens(here, posterior, top)
    p = log_p(np.float64, TEMPERATURES[which])
    q = p + posterior.log_lift[:4, AUTOMATON.token_class]
    for n, score in enumerate((p, q)):
        order = np.argsort(-score, axis=1)[:, :top]
        np.testing.assert_array_equal(ids[:4, n], np.where(np.take_along_axis(score, order, 1) > -np.inf, order, -1))
        np.testing.assert_allclose(log_mean_field[:4, n], np.take_along_axis(p, order, 1), rtol=1e-6)
        np.testing.assert_allclose(log_posterior[:4, n], np.take_along_axis(q, order, 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("temperature", [1.0, 0.2, 3.0])
def test_tokens_for_which_a_model_writes_a_very_low_logit_are_impossible_and_not_listed(dtype, temperature) -> None:
    rng, canvas = np.random.default_rng(5), np.full(4, MASK, np.int32)
    values = rng.normal(size=(4, VOCAB)).astype(dtype)
    values[:, 5:] = -np.inf
    for low in (-np.inf, -1e9, np.finfo(dtype).min):
        low_values = np.where(np.isneginf(values), dtype(low), values)
        for filters in ((None, None), (0.9, None), (None, 9)):
            here = potential(low_values, canvas, MASK, AUTOMATON, temperature, *filters)
            posterior = chain.posterior(here)
            ids, log_p, _ = chain.top_tokens(here, posterior, 12)
            assert (ids < 5).all()
            assert (log_p > -1e3)[ids >= 0].all()
            np.testing.assert_allclose(np.exp(log_p[:, 0]).sum(axis=1), 1.0, rtol=1e-5)
            assert (here.all_log_mean_field()[:, 5:] < -1e6).all()
            if posterior.possible:
                assert (draws.tokens(here, draws.draw(here, posterior, 0, 0, 5)) < 5).all()


@pytest.mark.parametrize("row", range(4))
def test_evenly_spread_noise_draws_each_token_of_a_class_as_often_as_it_is_probable(row: int) -> None:
    count = 1000
    tiled = np.tile(logits(np.float64)[row], (count, 1))
    canvas = np.full(count, MASK, np.int32)
    for temperature, here in zip(TEMPERATURES, potentials(tiled, canvas, MASK, AUTOMATON, TEMPERATURES), strict=True):
        for c in (1, 2, 4, 5, 6):
            drawn = tokens_of(here, c, (np.arange(count) + 0.5) / count)
            p = log_p(np.float64, temperature)[row] - here.log_class_mass[row, c]
            expected = count * np.exp(np.where(AUTOMATON.token_class == c, p, -np.inf))
            assert np.abs(np.bincount(drawn, minlength=VOCAB) - expected).max() <= 2.0


def test_tokens_of_many_draws_are_those_of_single_draws() -> None:
    here = found()[0]
    u, edges = np.random.default_rng(3).random((50, 5)), AUTOMATON.edges
    by_class = edges.class_tokens_ptr, edges.class_tokens
    for c in (1, 2, 4, 5, 6):
        classes = np.full((50, 4), c, np.int32)
        many = batch.draw_tokens(here.logits[:4] * here.scale, classes, u[:, :4], *by_class)
        single = np.stack([tokens_of(here, c, row) for row in u])
        np.testing.assert_array_equal(many, single[:, :4])


def tokens_of(here: Potential, c: int, rest: np.ndarray) -> np.ndarray:
    of_blocks = here.block_peak, here.block_weight
    classes, blocks = np.full(rest.size, c, np.int32), AUTOMATON.edges.blocks
    return tokens.draw_tokens(here.logits, here.canvas, here.masked, here.scale, *of_blocks, classes, rest, blocks)


def test_the_last_bit_does_not_depend_on_where_arrays_lie_in_memory() -> None:
    small = TokenAutomaton(
        start=0,
        end=-1,
        accepting=np.ones(1, bool),
        token_class=np.asarray([1, 2, 3, 0, 3], np.int32),
        class_ptr=np.asarray([0, 0, 1, 2, 3], np.int32),
        class_source=np.zeros(3, np.int32),
        class_target=np.zeros(3, np.int32),
        state_spans=((),),
    )
    rng, canvas = np.random.default_rng(4), np.full(2, 5, np.int32)
    for _ in range(5000):
        values = rng.normal(0.0, 0.3, (2, 5))
        values[:, 3] = -np.inf
        kept = [np.empty(n) for n in rng.integers(1, 200, 5)]  # moves what is allocated next
        seen = set()
        for offset in range(4):
            room = np.empty(values.size + 8)
            room[offset : offset + values.size] = values.reshape(-1)
            moved = room[offset : offset + values.size].reshape(values.shape)
            got = potentials(moved, canvas, 5, small, (1.0,))[0]
            seen.add((got.labels[0].tobytes(), got.log_class_mass.tobytes(), got.mean_log.tobytes()))
        assert len(seen) == 1, len(kept)
