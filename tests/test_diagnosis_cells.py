"""The numbers of one cell of the trellis: they add up to the messages, which are sums over all beginnings and endings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from test_diagnosis_beliefs import VOCAB, cases

from engine.diagnosis import cells


def total(terms: cells.Terms) -> float:
    return float(np.logaddexp.reduce(terms.log_term)) if terms.edge.size else -np.inf


@given(cases())
def test_the_terms_of_every_cell_add_up_to_its_messages_and_posterior(case) -> None:
    believed, truth = case
    automaton, length = believed.automaton, truth.log_p.shape[0]
    posterior = truth.states(automaton) if truth.sequences else np.zeros((length + 1, automaton.states))
    for boundary, state in itertools.product(range(length + 1), range(automaton.states)):
        cell = cells.of_state(believed, boundary, state)
        assert cell.posterior == pytest.approx(posterior[boundary, state], abs=1e-9)
        if boundary:
            assert total(cell.into) == pytest.approx(cell.log_forward, abs=1e-9)
        else:
            assert (cell.into.edge.size, cell.log_forward) == (0, 0.0 if state == automaton.start else -np.inf)
        if boundary < length:
            assert total(cell.out) == pytest.approx(cell.log_backward, abs=1e-9)
        else:
            assert (cell.out.edge.size, cell.log_backward) == (0, 0.0 if automaton.accepting[state] else -np.inf)
        for terms in (cell.into, cell.out):
            assert (np.diff(terms.log_term) <= 0).all()


@given(cases())
def test_a_term_is_the_mass_of_the_tokens_that_make_the_move_times_the_message_behind_it(case) -> None:
    believed, truth = case
    automaton, length = believed.automaton, truth.log_p.shape[0]
    for boundary, state in itertools.product(range(length), range(automaton.states)):
        found = cells.of_state(believed, boundary, state).out
        weight = {
            to: np.logaddexp.reduce([truth.log_p[boundary, v] for v in range(VOCAB) if automaton.move(state, v) == to])
            for to in {automaton.move(state, v) for v in range(VOCAB)} - {-1}
        }
        behind = {to: cells.of_state(believed, boundary + 1, to).log_backward for to in weight}
        wanted = {to: w for to, w in weight.items() if w + behind[to] > -np.inf}
        assert dict(zip(found.state.tolist(), found.log_weight.tolist(), strict=True)) == pytest.approx(
            wanted, abs=1e-9
        )
        assert found.log_message.tolist() == pytest.approx([behind[to] for to in found.state.tolist()], abs=1e-9)
