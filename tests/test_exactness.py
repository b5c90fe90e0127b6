"""The meter of exactness: it lets exact samplers pass and sees the others fail, as often as it says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine import decode, token_automaton
from engine.constraints import read
from engine.errors import ConfigError
from engine.inference import chain, draws, exactness
from engine.inference.potential import potential
from engine.trace import Config, Header, StepRecord
from tests import oracle
from tests.fake import Fake, characters

VOCABULARY = characters("abcdefghijkl", eos=False)
AUTOMATON = token_automaton.compile(read("regex", "(?:a[b-d]|[e-h]{2})*(?:[a-l][i-l]?|b)"), VOCABULARY)


def step(number: int = 1, **changes) -> tuple[Header, StepRecord]:
    model = Fake(VOCABULARY, 1, scale=0.7)
    config = dataclasses.replace(Config("go", "regex", "", "fake", 6, 3, 6, 1.0), **changes)
    header = Header(config, model.facts, VOCABULARY, AUTOMATON, model.encode_prompt("go"))
    return header, list(decode.denoise(model, AUTOMATON, config))[number]


@pytest.mark.parametrize("sampler", ["chain", "midpoint", "tree"])
@pytest.mark.parametrize("changes", [{}, {"temperature": 0.6}, {"top_k": 5}])
def test_exact_samplers_pass(sampler: str, changes: dict) -> None:
    header, record = step(**changes)
    found = exactness.of_step(header, record, sampler, 300 if sampler == "tree" else 1_000)
    assert found.exact
    assert found.accepted == found.draws
    sums = np.bincount(found.position, found.expected)
    np.testing.assert_allclose(sums[np.unique(found.position)], 1.0, atol=1e-6)
    np.testing.assert_allclose(np.bincount(found.position, found.observed)[np.unique(found.position)], 1.0)
    assert (found.low <= found.high).all()
    assert found.false_alarm == 1e-3


@pytest.mark.parametrize("sampler", ["independent", "local", "lookahead"])
def test_the_baselines_are_seen_failing(sampler: str) -> None:
    found = exactness.of_step(*step(0), sampler)
    assert not found.exact
    assert found.outside.any()
    if sampler == "lookahead":
        assert found.accepted == found.draws  # accepted always, and still not the posterior
    else:
        assert found.accepted < found.draws


def test_expected_shares_are_the_enumerated_marginals() -> None:
    header, record = step()
    found = exactness.of_step(header, record)
    logits = np.zeros((6, VOCABULARY.size))
    logits[record.canvas == VOCABULARY.mask_id] = record.log_mean_field
    truth = oracle.enumerate_all(logits, record.canvas, VOCABULARY.mask_id, AUTOMATON)
    q = np.exp(truth.log_marginals())
    for position, token_id, expected in zip(found.position, found.token_id, found.expected, strict=True):
        if token_id >= 0:
            assert expected == pytest.approx(q[position, token_id], abs=1e-5)


def test_an_exact_sampler_is_called_inexact_no_more_often_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    # At one in five, to see it in few repetitions.
    monkeypatch.setattr(exactness, "FALSE_ALARM", 0.2)
    header, record = step()
    alarms = sum(not exactness.of_step(header, record, count=200, seed=n).exact for n in range(200))
    assert alarms <= 200 * 0.2 + 3 * np.sqrt(200 * 0.2 * 0.8)
    assert alarms > 0


def test_a_small_shift_of_one_marginal_is_seen_with_many_draws() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, VOCABULARY.size))
    canvas = np.full(5, VOCABULARY.mask_id, np.int32)
    found = potential(logits, canvas, VOCABULARY.mask_id, AUTOMATON)
    posterior = chain.posterior(found)
    drawn = draws.tokens(found, draws.draw(found, posterior, 0, 0, 20_000))
    assert exactness.measured(found, posterior, drawn, "chain").exact
    shifted = logits.copy()
    shifted[0, 0] += 0.3
    other = potential(shifted, canvas, VOCABULARY.mask_id, AUTOMATON)
    wrong = chain.posterior(other)
    assert not exactness.measured(other, wrong, drawn, "chain").exact


def test_what_can_not_be_measured_is_refused_with_the_reason() -> None:
    header, record = step()
    with pytest.raises(ConfigError, match="magic"):
        exactness.of_step(header, record, "magic")
    with pytest.raises(ConfigError, match="mean field"):
        exactness.of_step(header, dataclasses.replace(record, log_mean_field=None))
    dead = np.where(record.canvas == VOCABULARY.mask_id, record.canvas, 11).astype(np.int32)
    dead[:4] = 11
    masked = int((dead == VOCABULARY.mask_id).sum())
    lost = dataclasses.replace(record, canvas=dead, log_mean_field=record.log_mean_field[:masked])
    with pytest.raises(ConfigError, match="accepted"):
        exactness.of_step(header, lost)
