"""The peers in the benchmarks do the same work as we do: a fast wrong answer would be no comparison."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import cases, peers
from benchmarks.timing import Ratio
from engine import constraints, token_automaton
from engine.inference import chain
from engine.inference.potential import potential
from engine.vocabulary import Vocabulary

BYTES = Vocabulary((*(bytes([b]) for b in range(128)), b"ab", b'": "', None), eos_ids=(130,), mask_id=131)


@pytest.mark.parametrize(("pattern", "length"), [("(ab)*a?", 5), ("a+b{1,3}|b", 4), (cases.function_call("f"), 150)])
def test_the_dense_peer_agrees_on_log_z_and_draws_an_accepted_path(pattern: str, length: int) -> None:
    automaton = token_automaton.compile(constraints.read("regex", pattern), BYTES)
    rng = np.random.default_rng(3)
    logits = rng.normal(0.0, 1.0, (length, BYTES.size))
    canvas = np.full(length, BYTES.mask_id, np.int32)
    found = potential(logits, canvas, BYTES.mask_id, automaton)
    weights = peers.dense_weights(torch.from_numpy(np.exp(found.log_class_mass)), automaton)
    log_partition, path = peers.dense_chain(
        weights,
        automaton.start,
        torch.from_numpy(automaton.accepting.astype(np.float64)),
        torch.from_numpy(rng.random(length)),
    )
    assert log_partition == pytest.approx(chain.posterior(found).log_partition, rel=1e-9)
    assert automaton.accepting[path[-1]]
    assert all(weights[i, path[i], path[i + 1]] > 0 for i in range(length))


def test_a_ratio_above_its_bar_does_not_hold() -> None:
    ratio = Ratio("name", "what", 3.0, "peer", 10.0, 0.25, {})
    assert not ratio.holds
    assert ratio.ratio == pytest.approx(0.3)
