"""Why a token is allowed at a position, or not, against walking all beginnings and all endings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import oracle
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from engine.diagnosis import tokens
from engine.token_automaton import TokenAutomaton

VOCAB = 4


@st.composite
def cases(draw) -> tuple[TokenAutomaton, oracle.Oracle, np.ndarray]:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    automaton = oracle.random_automaton(rng, draw(st.integers(1, 5)), VOCAB, draw(st.sampled_from((0.3, 0.6))))
    length = draw(st.integers(1, 5))
    logits = oracle.random_logits(rng, length, VOCAB, draw(st.sampled_from((1.0, 20.0, 700.0))))
    canvas = oracle.random_canvas(rng, length, VOCAB, draw(st.sampled_from((0.2, 0.7))))
    truth = oracle.enumerate_all(logits, canvas, VOCAB, automaton)
    mass = np.full((length, automaton.classes), -np.inf)
    for k in range(automaton.classes):
        members = np.flatnonzero(automaton.token_class == k)
        if members.size:
            mass[:, k] = np.logaddexp.reduce(truth.log_p[:, members], axis=1)
    return automaton, truth, mass


def walks(truth: oracle.Oracle, begin: int, stop: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """All that may stand from one position to another, with its log probability."""
    choices = [np.flatnonzero(truth.log_p[i] > -np.inf).tolist() for i in range(begin, stop)]
    for x in itertools.product(*choices):
        yield x, sum(float(truth.log_p[begin + n, v]) for n, v in enumerate(x))


def end_of(automaton: TokenAutomaton, state: int, x: tuple[int, ...]) -> tuple[int, int]:
    """The state behind `x`, -1 where it leaves the language, and how many tokens it read."""
    for n, v in enumerate(x):
        after = automaton.move(state, v)
        if after < 0:
            return -1, n
        state = after
    return state, len(x)


def all_places(case: tuple[TokenAutomaton, oracle.Oracle, np.ndarray]) -> Iterator[tuple[int, int, tokens.Verdict]]:
    automaton, truth, mass = case
    for position in range(truth.log_p.shape[0]):
        for v in range(VOCAB):
            yield position, v, tokens.judge(automaton, mass, position, v)


@given(cases())
def test_a_token_is_accepted_exactly_where_a_beginning_and_an_ending_meet_it(
    case: tuple[TokenAutomaton, oracle.Oracle, np.ndarray],
) -> None:
    automaton, truth, _ = case
    length = truth.log_p.shape[0]
    for position, v, found in all_places(case):
        around = itertools.product(walks(truth, 0, position), walks(truth, position + 1, length))
        assert (found.reason == "accepted") == any(automaton.accepts((*x, v, *y)) for (x, _), (y, _) in around)
        assert found.given == bool(
            (truth.log_p[position, automaton.token_class == automaton.token_class[v]] > -np.inf).any()
        )


@given(cases())
def test_every_move_says_whether_it_has_a_beginning_and_an_ending(
    case: tuple[TokenAutomaton, oracle.Oracle, np.ndarray],
) -> None:
    automaton, truth, _ = case
    length = truth.log_p.shape[0]
    for position, v, found in all_places(case):
        front = {end_of(automaton, automaton.start, x)[0] for x, _ in walks(truth, 0, position)} - {-1}
        ends = {
            s: {end_of(automaton, s, y)[0] for y, _ in walks(truth, position + 1, length)}
            for s in range(automaton.states)
        }
        follows = {s for s, to in ends.items() if any(t >= 0 and automaton.accepting[t] for t in to)}
        assert set(found.front.tolist()) == front
        assert set(np.flatnonzero(found.follows).tolist()) == follows
        assert found.state.tolist() == [s for s in range(automaton.states) if automaton.move(s, v) >= 0]
        for s, to, reached, completed in zip(found.state, found.target, found.reached, found.completed, strict=True):
            assert to == automaton.move(int(s), v)
            assert reached == (s in front)
            assert completed == (to in follows)


@given(cases())
def test_the_reasons_against_a_token_are_told_apart_and_say_how_far_the_ways_go(
    case: tuple[TokenAutomaton, oracle.Oracle, np.ndarray],
) -> None:
    automaton, truth, _ = case
    length = truth.log_p.shape[0]
    for position, v, found in all_places(case):
        beginnings = [end_of(automaton, automaton.start, x) for x, _ in walks(truth, 0, position)]
        front = {s for s, _ in beginnings} - {-1}
        readers = [s for s in range(automaton.states) if automaton.move(s, v) >= 0]
        behind = {automaton.move(s, v) for s in readers if s in front}
        if found.reason == "accepted":
            assert found.stops_at is None
        elif not readers:
            assert found.reason == "unread"
        elif not front:
            assert (found.reason, found.stops_at) == ("lost", max(read for _, read in beginnings))
        elif not behind:
            assert found.reason == "local"
        else:
            furthest = max(end_of(automaton, s, y)[1] for s in behind for y, _ in walks(truth, position + 1, length))
            assert (found.reason, found.stops_at) == ("completion", position + 1 + furthest)


@given(cases())
def test_shares_and_posteriors_are_those_of_the_accepted_sequences(
    case: tuple[TokenAutomaton, oracle.Oracle, np.ndarray],
) -> None:
    automaton, truth, _ = case
    length = truth.log_p.shape[0]
    states = truth.states(automaton) if truth.sequences else np.zeros((length + 1, automaton.states))
    for position, v, found in all_places(case):
        posterior = np.zeros(automaton.states)
        posterior[found.live] = found.posterior
        np.testing.assert_allclose(posterior, states[position], atol=1e-9)
        assert (np.diff(found.posterior) <= 0).all()
        log_weight: dict[int, float] = {}
        for (x, before), (y, after) in itertools.product(walks(truth, 0, position), walks(truth, position + 1, length)):
            if automaton.accepts((*x, v, *y)):
                s = end_of(automaton, automaton.start, x)[0]
                log_weight[s] = float(np.logaddexp(log_weight.get(s, -np.inf), before + after))
        total = np.logaddexp.reduce(list(log_weight.values())) if found.given and log_weight else np.inf
        expected = [np.exp(log_weight.get(int(s), -np.inf) - total) for s in found.state]
        np.testing.assert_allclose(found.share, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("canvas", "position", "token", "reason", "stops_at"),
    [
        ("___", 0, ".", "accepted", None),
        ("__.", 0, ".", "completion", 2),  # the second dot
        (".__", 1, ".", "local", None),
        (".._", 2, "4", "lost", 1),
        ("___", 1, "x", "unread", None),
        (".", 0, ".", "completion", 1),  # a dot alone ends where nothing is accepted
    ],
)
def test_a_real_number_forbids_a_second_dot_in_three_ways(
    canvas: str, position: int, token: str, reason: str, stops_at: int | None
) -> None:
    vocabulary, automaton = synthetic.real_number(eos=False)
    vocabulary, automaton = (
        replace(vocabulary, token_bytes=(*vocabulary.token_bytes, b"x")),
        replace(automaton, token_class=np.append(automaton.token_class, 0).astype(np.int32)),
    )
    ids = {(data or b"").decode(): v for v, data in enumerate(vocabulary.token_bytes)}
    mass = np.zeros((len(canvas), automaton.classes))
    for i, character in enumerate(canvas):
        if character != "_":
            mass[i] = np.where(np.arange(automaton.classes) == automaton.token_class[ids[character]], 0.0, -np.inf)
    found = tokens.judge(automaton, mass, position, ids[token])
    assert (found.reason, found.stops_at) == (reason, stops_at)


def test_a_banned_token_is_accepted_but_not_given() -> None:
    run = synthetic.trace(synthetic.real_number(), 4, 4)
    header = replace(run.header, config=replace(run.header.config, bans=((1, 3),)))
    found = [tokens.of_step(replace(run, header=header), 0, 1, v) for v in (3, 4)]
    assert [(one.reason, one.given) for one in found] == [("accepted", False), ("accepted", True)]
    assert found[1].share.sum() == pytest.approx(1.0)
