"""Nondeterministic automata against listing: bytes against `re`, tokens against text, and how states are joined."""

from __future__ import annotations

import itertools
import math
import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import automaton, composition, token_automaton
from engine.constraints import Constraint, read
from engine.determinise import Determiniser, OverBudgetError
from engine.errors import SizeError
from engine.reduction import bisimilar, reduced
from engine.table import flat
from engine.vocabulary import Vocabulary

AMBIGUOUS = [
    r"[ab]*a[ab]{4}",
    r"(?:a|ab)(?:b|ba|c)*c?",
    r"(?:[ab]*a[ab]{3}|[ab]*b[ab]{2}|c)+",
    r"(?:é|ab?|é?b)*(?:c|é)[abcé]{3}",
    r"(?:a*b*){3}[abc]*a[abc]{2}",
]


def kept(source: str) -> Constraint:
    """A constraint whose automaton is the nondeterministic one, as if the other had passed its budget."""
    constraint = read("regex", source)
    with mock.patch.object(Determiniser, "table", side_effect=OverBudgetError("passes 1 states", None)):
        constraint.__dict__["automaton"] = automaton.compile(constraint.pattern, source)
    return constraint


@pytest.mark.parametrize("source", AMBIGUOUS)
def test_a_kept_automaton_accepts_what_fullmatch_accepts(source: str) -> None:
    machine, reference = kept(source).automaton, re.compile(source)
    assert not machine.deterministic
    deterministic = automaton.compile(read("regex", source).pattern, source)
    assert machine.shortest() == deterministic.shortest()
    for length in range(7):
        for letters in itertools.product("abcé", repeat=length):
            text = "".join(letters)
            assert machine.accepts(text.encode()) == bool(reference.fullmatch(text)), text


@pytest.mark.parametrize("source", AMBIGUOUS)
def test_moves_are_sorted_and_distinct_and_every_state_is_of_use(source: str) -> None:
    machine = kept(source).automaton
    moves = np.stack([machine.source, machine.symbol, machine.target], axis=1)
    assert (np.unique(moves, axis=0) == moves).all()
    assert set(machine.target) | {machine.start} == set(range(machine.states))
    alive = set(np.flatnonzero(machine.accepting))
    while (more := set(machine.source[np.isin(machine.target, list(alive))]) - alive) != set():
        alive |= more
    assert alive == set(range(machine.states))


def test_origins_of_joined_moves_are_united() -> None:
    source = "[ab]*a[ab]{4}"
    machine = kept(source).automaton
    seen = set()
    for to in machine.following(machine.start, ord("a")):
        at = (machine.source == machine.start) & (machine.target == to)
        at &= machine.symbol == machine.byte_class[ord("a")]
        (origin,) = machine.origin[at]
        seen.add(frozenset(machine.leaves[n].start for n in machine.origin_sets[origin]))
    assert seen == {frozenset({0}), frozenset({5})}


RELATIONS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 5)), max_size=14)


@settings(max_examples=200, deadline=None)
@given(RELATIONS, st.lists(st.booleans(), min_size=6, max_size=6))
def test_bisimilar_states_are_those_that_no_round_of_naive_refinement_tells_apart(moves, marked) -> None:
    block = {q: int(marked[q]) for q in range(6)}
    for _ in range(6):
        kinds = {q: (block[q], frozenset((s, block[r]) for p, s, r in moves if p == q)) for q in block}
        numbers = {kind: n for n, kind in enumerate(dict.fromkeys(kinds.values()))}
        block = {q: numbers[kinds[q]] for q in block}
    source, symbol, target = np.asarray(moves, np.int64).reshape(-1, 3).T
    found = bisimilar(source, symbol, target, np.asarray(marked))
    for p, q in itertools.combinations(range(6), 2):
        assert (found[p] == found[q]) == (block[p] == block[q])


@settings(max_examples=200, deadline=None)
@given(RELATIONS, st.lists(st.booleans(), min_size=6, max_size=6))
@pytest.mark.parametrize("steps", [math.inf, 0])
def test_reduction_keeps_the_language_and_adds_no_path(steps, moves, accepting) -> None:
    rows = [[((s,), r, frozenset({p})) for p, s, r in dict.fromkeys(moves) if p == q] for q in range(6)]
    table = reduced(flat(rows), np.asarray(accepting), steps)

    def paths(edges: list[tuple[int, int, int]], final: np.ndarray, word: tuple[int, ...]) -> int:
        count = {0: 1}
        for symbol in word:
            following: dict[int, int] = {}
            for p, s, r in edges:
                if s == symbol and p in count:
                    following[r] = following.get(r, 0) + count[p]
            count = following
        return sum(n for q, n in count.items() if final[q])

    source = np.repeat(np.arange(table.states), np.diff(table.ptr))
    smaller = list(zip(source.tolist(), table.symbol.tolist(), table.target.tolist(), strict=True))
    assert len(set(smaller)) == len(smaller)
    for length in range(5):
        for word in itertools.product((0, 1), repeat=length):
            before = paths(list(dict.fromkeys(moves)), np.asarray(accepting), word)
            after = paths(smaller, table.accepting, word)
            assert (before > 0) == (after > 0)
            assert after <= before


def test_a_long_chain_is_joined_in_little_time() -> None:
    # Round by round from a coarse start, this would take states² steps.
    states = 30_000
    rows = [[((0,), n + 1, frozenset())] for n in range(states)] + [[]]
    rows[5].append(((0,), states, frozenset()))
    marked = np.arange(states + 1) == states
    assert reduced(flat(rows), marked).states == states + 1


@pytest.mark.parametrize("source", AMBIGUOUS)
@pytest.mark.parametrize("tokens", [("a", "b", "c", "é"), ("a", "ab", "b", "ba", "é", "bc", "c")])
def test_a_canvas_is_accepted_exactly_when_its_text_is(source: str, tokens: tuple[str, ...]) -> None:
    # The bytes of é as tokens too: half characters are states like any other.
    written = (*(t.encode() for t in tokens), b"\xc3", b"\xa9", None, None)
    vocabulary = Vocabulary(written, (len(written) - 2,), len(written) - 1)
    compiled = token_automaton.compile(kept(source), vocabulary)
    reference = token_automaton.compile(read("regex", source), vocabulary)
    assert reference.deterministic
    assert not compiled.deterministic
    for length in range(5):
        for ids in itertools.product(range(vocabulary.size), repeat=length):
            assert compiled.accepts(ids) == reference.accepts(ids), ids
    np.testing.assert_array_equal(compiled.accepted_lengths(9), reference.accepted_lengths(9))


def test_tokens_share_a_class_exactly_when_they_are_one_relation() -> None:
    written = tuple(t.encode() for t in ("a", "b", "ab", "ba", "bb", "aa", "c", "ca"))
    compiled = token_automaton.compile(kept(r"[abc]*a[abc]{3}"), Vocabulary((*written, None), (), len(written)))
    table = {}
    for v in range(len(written)):
        relation = tuple(tuple(compiled.moves(q, v)) for q in range(compiled.states))
        table.setdefault(compiled.token_class[v], relation)
        assert table[compiled.token_class[v]] == relation
    assert len(set(table.values())) == len(table)
    assert any(len(targets) > 1 for relation in table.values() for targets in relation)


def test_a_path_reads_the_tokens_and_accepts_if_any_does() -> None:
    compiled = token_automaton.compile(kept(r"[ab]*a[ab]{2}"), Vocabulary((b"a", b"b", None), (), 2))
    for ids in itertools.product((0, 1), repeat=5):
        path = compiled.path(ids)
        for i, v in enumerate(ids):
            assert path[i] < 0 or path[i + 1] < 0 or path[i + 1] in compiled.moves(int(path[i]), v)
        assert (path[-1] >= 0 and compiled.accepting[path[-1]]) == compiled.accepts(ids)


def test_relations_over_their_budget_are_refused_with_the_construct(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "[ab]*a[ab]{9}"
    constraint = read("regex", source)
    constraint.__dict__["automaton"] = automaton.compile(constraint.pattern, source, budget=15)
    monkeypatch.setattr(composition, "PAIRS", 20)
    with pytest.raises(SizeError, match="passes 20 moves") as caught:
        token_automaton.compile(constraint, Vocabulary((b"a", b"b", None), (), 2))
    assert source[caught.value.place.start : caught.value.place.stop] == "[ab]{9}"
