"""Messages on automata as large as real ones, against a plain log-space pass over edges.

Nine cases: a small format, a function call and one of many calls, each under a random, a peaked (down to 1e-300 a token)
and a half-committed mean field.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from benchmarks import cases, large
from engine import constraints, token_automaton
from engine.inference import chain
from engine.inference.chain import Posterior
from engine.inference.potential import Potential, potential
from engine.token_automaton import TokenAutomaton
from engine.vocabulary import Vocabulary

PIECES = [bytes([b]) for b in range(128)] + [b'": "', b'", "', b"ab", b"name", b"20", b"-1", b'\\"']
VOCABULARY = Vocabulary((*PIECES, None), eos_ids=(len(PIECES),), mask_id=len(PIECES) + 1)
CONSTRAINTS = {
    "date": (r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", 24),
    "call": (cases.function_call("f"), 160),
    "tools": (large.tool_calls(12), 160),
}
FIELDS = ("random", "peaked", "half-committed")


@functools.cache
def automaton(name: str) -> TokenAutomaton:
    return token_automaton.compile(constraints.read("regex", CONSTRAINTS[name][0]), VOCABULARY)


def logits_of(field: str, length: int) -> np.ndarray:
    rng = np.random.default_rng([length, len(field)])
    spread = 690.0 if field == "peaked" else 3.0
    values = rng.random((length, VOCABULARY.size)) if field == "peaked" else rng.normal(size=(length, VOCABULARY.size))
    return values * spread


@functools.cache
def case(name: str, field: str) -> tuple[Potential, Posterior, np.ndarray]:
    length = CONSTRAINTS[name][1]
    logits = logits_of(field, length)
    canvas = np.full(length, VOCABULARY.mask_id, np.int32)
    if field == "half-committed":
        found = potential(logits, canvas, VOCABULARY.mask_id, automaton(name))
        path = chain.draw(found, chain.posterior(found), 0, 0)
        tokens = chain.draw_tokens(found, path, 0, 0)
        assert automaton(name).accepts(tokens.tolist())
        kept = np.random.default_rng(length).permutation(length)[: length // 2]
        canvas[kept] = tokens[kept]
    found = potential(logits, canvas, VOCABULARY.mask_id, automaton(name))
    return found, chain.posterior(found), reference(logits, canvas, automaton(name))


def reference(logits: np.ndarray, canvas: np.ndarray, automaton: TokenAutomaton) -> np.ndarray:
    """Log mass of the accepted completions from each state, float64 `[boundaries states]`, move by move."""
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    committed = np.flatnonzero(canvas != VOCABULARY.mask_id)
    log_p[committed] = -np.inf
    log_p[committed, canvas[committed]] = 0.0
    log_mass = np.full((automaton.classes, len(canvas)), -np.inf)
    np.logaddexp.at(log_mass, automaton.token_class, log_p.T)
    class_of = np.repeat(np.arange(automaton.classes), np.diff(automaton.class_ptr))
    out = np.full((len(canvas) + 1, automaton.states), -np.inf)
    out[-1, automaton.accepting] = 0.0
    for i in range(len(canvas) - 1, -1, -1):
        moves = log_mass[class_of, i] + out[i + 1, automaton.class_target]
        np.logaddexp.at(out[i], automaton.class_source, moves)
    return out


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_log_z_is_that_of_a_log_space_pass(name: str, field: str) -> None:
    found, posterior, log_backward = case(name, field)
    expected = log_backward[0, found.automaton.start]
    assert np.isfinite(expected)
    assert posterior.log_partition == pytest.approx(expected, abs=1e-6, rel=0)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_backward_message_is_that_of_a_log_space_pass(name: str, field: str) -> None:
    found, posterior, log_backward = case(name, field)
    boundary = np.repeat(np.arange(found.length + 1), np.diff(posterior.live_ptr))
    np.testing.assert_allclose(posterior.log_backward, log_backward[boundary, posterior.live], rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_forward_times_backward_has_one_sum_at_every_boundary(name: str, field: str) -> None:
    _, posterior, _ = case(name, field)
    products = posterior.log_forward + posterior.log_backward
    sums = np.logaddexp.reduceat(products, posterior.live_ptr[:-1])
    np.testing.assert_allclose(sums, posterior.log_partition, rtol=0, atol=1e-9 * max(1.0, -posterior.log_partition))


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_peaked_fields_reach_beyond_float64(name: str) -> None:
    # Else the cases above would prove nothing of the numbers.
    _, posterior, _ = case(name, "peaked")
    assert posterior.log_partition < -750.0
    assert np.ptp(posterior.log_backward) > 750.0


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_nothing_is_possible_exactly_where_the_canvas_contradicts(name: str) -> None:
    found, posterior, _ = case(name, "half-committed")
    contradicted = found.canvas.copy()
    contradicted[0] = PIECES.index(b"\x7f")
    broken = chain.posterior(potential(found.logits, contradicted, VOCABULARY.mask_id, found.automaton))
    assert posterior.possible
    assert not broken.possible
    assert broken.log_partition == -np.inf


def test_a_canvas_that_is_lost_has_no_live_states_however_peaked_the_field_is() -> None:
    # Exponents may span more than the plain sweep holds on one side while there is nothing on the other.
    compiled, mask_id = automaton("date"), VOCABULARY.mask_id
    for seed in range(20):
        logits = np.random.default_rng(seed).uniform(-9e5, 0.0, (24, VOCABULARY.size))
        canvas = np.full(24, mask_id, np.int32)
        canvas[seed % 24] = ord("x") if seed % 2 else ord("5" if seed < 10 else "-")
        canvas[-1] = ord("x")
        found = potential(logits, canvas, mask_id, compiled)
        assert not found.live[1].size
        assert chain.posterior(found).log_partition == -np.inf
