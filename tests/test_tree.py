"""The dense tree over live states: the sparse tree's draws to the last state, and which of the two runs on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.inference import chain, midpoint, tree
from engine.inference.potential import potential
from tests import oracle


def cases() -> list:
    found = []
    for seed in range(40):
        for peak in (3.0, 700.0):
            rng = np.random.default_rng([seed, int(peak)])
            length, vocab = int(rng.integers(1, 9)), int(rng.integers(2, 6))
            automaton = oracle.random_automaton(rng, int(rng.integers(1, 7)), vocab, 0.6)
            logits = oracle.random_logits(rng, length, vocab, peak)
            case = potential(logits, oracle.random_canvas(rng, length, vocab, 0.2), vocab, automaton)
            if case.live[1].size:
                found.append(case)
    return found


def assert_same(a: midpoint.Midpoints, b: midpoint.Midpoints) -> None:
    np.testing.assert_array_equal(a.path, b.path)
    np.testing.assert_allclose(a.log_probability[1:], b.log_probability[1:], atol=1e-5)
    np.testing.assert_allclose(a.entropy[1:], b.entropy[1:], atol=1e-5)
    np.testing.assert_allclose(a.probability, b.probability, atol=1e-5)


def test_matrices_of_live_states_draw_what_the_sparse_tree_draws() -> None:
    widths = set()
    for found in cases():
        messages = chain.messages(found)
        top = min(found.automaton.states, 4)
        drawn = tree.draw(found, 5, 0, top)
        assert_same(drawn, midpoint.draw(found, messages, 5, 0, top))
        np.testing.assert_array_equal(tree.draw(found, 6, 0, top, drawn.path).path, drawn.path)
        widths.add(tree.width(found) < np.unique(found.live[1]).size)
    assert widths == {True, False}  # narrower than all live states together, in some


def test_a_gpu_is_used_where_live_states_are_few_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    found = next(case for case in cases() if tree.width(case) > 1)
    messages = chain.messages(found)
    used = []
    monkeypatch.setattr(tree, "draw", lambda *arguments: used.append((*arguments, "cpu")[5]))
    tree.draw_where_it_pays(found, messages, 0, 0, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    tree.draw_where_it_pays(found, messages, 0, 0, 1)
    monkeypatch.setattr(tree, "WIDEST", tree.width(found) - 1)
    sparse = tree.draw_where_it_pays(found, messages, 0, 0, 1)
    assert used == ["cpu", "cuda"]
    assert_same(sparse, midpoint.draw(found, messages, 0, 0, 1))
