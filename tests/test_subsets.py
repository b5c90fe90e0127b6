"""The compiled loops of determinising and minimising against the same done naively."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import composition, constraints, effort, program, subsets, token_automaton
from engine.determinise import Determiniser, OverBudgetError
from engine.machines import Subsets
from engine.partition import agree, alike, breadth_first, distances, ordered, refine
from engine.pattern import Chars, Concat, Graph, Origin, Pattern, Repeat, Union
from engine.vocabulary import Vocabulary

RANGES = [((97, 97),), ((98, 98),), ((97, 98),), ((97, 99), (233, 233)), ((0, 0xD7FF), (0xE000, 0x10FFFF)), ()]
LEAVES = st.builds(lambda ranges, n: Chars(ranges, Origin(n, n + 1)), st.sampled_from(RANGES), st.integers(0, 4))


def combine(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    parts = st.lists(inner, max_size=3).map(tuple)
    arcs = st.lists(st.tuples(st.integers(0, 2), inner, st.integers(0, 2)), max_size=4).map(tuple)
    return st.one_of(
        st.builds(Concat, parts),
        st.builds(Union, parts),
        st.builds(
            lambda body, least, more: Repeat(body, least, least + more), inner, st.integers(0, 2), st.integers(0, 2)
        ),
        st.builds(lambda body, least: Repeat(body, least, None), inner, st.integers(0, 2)),
        st.builds(Graph, arcs, st.frozensets(st.integers(0, 2))),
    )


PATTERNS = st.recursive(LEAVES, combine, max_leaves=12)


def machine_of(determiniser: Determiniser) -> Subsets:
    machine = determiniser._machine(determiniser.pattern)
    assert type(machine) is Subsets
    return machine


def walked(moves, accepting) -> tuple[list[bool], dict]:
    """An automaton with its states numbered in the order of a search by ascending symbols."""
    out: dict[int, list] = {}
    for p, s, r, o in zip(*(column.tolist() for column in moves[:4]), strict=True):
        out.setdefault(p, []).append((s, r, moves.origin_sets[o]))
    number, queue, rows = {0: 0}, [0], {}
    for state in queue:
        for symbol, target, leaves in sorted(out.get(state, []), key=lambda move: move[0]):
            if target not in number:
                number[target] = len(number)
                queue.append(target)
            rows[number[state], symbol] = (number[target], leaves)
    assert len(queue) == accepting.size
    return [bool(accepting[state]) for state in queue], rows


@settings(max_examples=300, deadline=None)
@given(PATTERNS)
def test_the_compiled_subsets_are_those_made_one_by_one_and_cost_the_same(pattern) -> None:
    determiniser = Determiniser(pattern, 1_000)
    with effort.limited(1e9) as compiled:
        machine = machine_of(determiniser)
        found = determiniser._subsets(machine, 1_000)
    with effort.limited(1e9) as lazy:
        machine = machine_of(determiniser)
        expected = determiniser._one_by_one(machine, 1_000)
    assert walked(*found) == walked(*expected)
    assert compiled.left == pytest.approx(lazy.left, abs=1e-3)


def test_the_compiled_subsets_end_with_their_budgets_and_name_the_repetition() -> None:
    a, b = Chars(((97, 97),), Origin(0, 1)), Chars(((98, 98),), Origin(1, 2))
    both = Union((a, b))
    pattern = Concat((Repeat(both, 0, None, Origin(0, 3)), a, Repeat(both, 16, 16, Origin(4, 9))))
    with pytest.raises(OverBudgetError, match="passes 5,000 states") as error:
        Determiniser(pattern, 5_000).table()
    assert error.value.blame.origin == Origin(4, 9)
    determiniser = Determiniser(pattern, 100_000)
    machine = machine_of(determiniser)
    with effort.limited(30_000), pytest.raises(OverBudgetError, match="too much work") as error:
        determiniser._explored(machine, 100_000)
    assert error.value.is_out_of_steps
    assert error.value.blame.origin == Origin(4, 9)


MOVES = st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 2)), st.integers(0, 7))


def columns(moves: dict) -> np.ndarray:
    return np.asarray([(p, s, r) for (p, s), r in moves.items()], np.int64).reshape(-1, 3).T.copy()


@settings(max_examples=300, deadline=None)
@given(MOVES, st.lists(st.booleans(), min_size=8, max_size=8))
def test_refinement_joins_the_states_that_no_round_of_moore_tells_apart(moves, accepting) -> None:
    source, symbol, target = columns(moves)
    block = dict(enumerate(map(int, accepting)))
    for _ in range(8):
        kinds = {q: (block[q], frozenset((s, block[r]) for (p, s), r in moves.items() if p == q)) for q in block}
        numbers = {kind: n for n, kind in enumerate(dict.fromkeys(kinds.values()))}
        block = {q: numbers[kinds[q]] for q in block}
    for start in (np.asarray(accepting), distances(source, target, np.asarray(accepting)) + 1):
        found = refine(source, symbol, target, start.astype(np.int64))
        expected = block if start.dtype == bool else {q: (block[q], int(start[q])) for q in block}
        for p in block:
            for q in block:
                assert (found[p] == found[q]) == (expected[p] == expected[q])


@pytest.mark.parametrize("seed", range(8))
def test_refinement_of_large_automata_is_that_of_moore_and_no_coarser_one_agrees(seed: int) -> None:
    rng, states, symbols = np.random.default_rng(seed), 400, 1 + seed % 3
    there = rng.random((states, symbols)) < 0.9
    to = rng.integers(0, states, (states, symbols))
    chain = np.arange(states) < seed * 40  # long ways to what tells states apart
    to[chain, 0], there[chain, 0] = np.flatnonzero(chain) + 1, True
    source, symbol = np.nonzero(there)
    target, classes = to[source, symbol], (rng.random(states) < 0.02).astype(np.int64)
    block = classes
    for _ in range(states):
        rows = np.where(there, block[to], -1)
        block = np.unique(np.column_stack([block, rows]), axis=0, return_inverse=True)[1].reshape(-1)
    found = refine(source, symbol, target, classes)
    blocks = block.max() + 1
    assert np.unique(np.stack([found, block]), axis=1).shape[1] == blocks == found.max() + 1
    assert agree(source, symbol, target, found)
    for a, b in rng.integers(0, blocks, (20, 2)).tolist():
        joined = np.where(found == a, b, found)
        same = a == b or classes[found == a][0] != classes[found == b][0]
        assert same or not agree(source, symbol, target, np.unique(joined, return_inverse=True)[1])


@settings(max_examples=100, deadline=None)
@given(MOVES, st.lists(st.booleans(), min_size=8, max_size=8))
def test_distances_are_the_fewest_moves_to_a_goal(moves, goals) -> None:
    source, _, target = columns(moves)
    best = [0 if goal else 99 for goal in goals]
    for _ in range(8):
        for (p, _), r in moves.items():
            best[p] = min(best[p], best[r] + 1)
    found = distances(source, target, np.asarray(goals))
    assert found.tolist() == [-1 if n > 8 else n for n in best]


def test_no_constraint_makes_the_compiled_loops_compile_anew() -> None:
    vocabulary = Vocabulary((b"a", b"b", b"c", b"d"), frozenset(), frozenset())
    loops = (program.run, subsets.explore, refine, alike, ordered, distances, breadth_first, composition.compose)
    counts = []
    for source in ("[ab]{3}c|d", "a", "[ab]*", "", "(?=a)[ab]b", "a|é"):
        token_automaton.compile(constraints.read("regex", source), vocabulary)
        counts.append([len(loop.signatures) for loop in loops])
    assert counts[1:] == counts[:-1]


def ends(pattern: Pattern, text: str, at: int) -> set[int]:
    """Where a match of a pattern that begins at a place may end."""
    match pattern:
        case Chars(ranges):
            return {at + 1} if at < len(text) and any(a <= ord(text[at]) <= b for a, b in ranges) else set()
        case Concat(parts):
            found = {at}
            for part in parts:
                found = {end for begin in found for end in ends(part, text, begin)}
            return found
        case Union(parts):
            return {end for part in parts for end in ends(part, text, at)}
        case Repeat(body, least, most):
            found = ends(Concat((body,) * least), text, at)
            for _ in range(len(text) + 1 if most is None else most - least):
                found |= {end for begin in found for end in ends(body, text, begin)}
            return found
        case Graph(arcs, finals):
            reached = {(0, at)}
            for _ in range(4 * (len(text) + 1)):
                reached |= {
                    (b, end) for n, here in reached for a, part, b in arcs if a == n for end in ends(part, text, here)
                }
            return {here for n, here in reached if n in finals}
    raise AssertionError(pattern)


@settings(max_examples=300, deadline=None)
@given(PATTERNS)
def test_thompsons_automaton_accepts_what_the_pattern_matches(pattern) -> None:
    determiniser = Determiniser(pattern, 1_000)
    machine = machine_of(determiniser)
    for text in ("", "a", "b", "c", "é", "ab", "ba", "aa", "bc", "aba", "abb", "aab", "aaa", "abab"):
        state = machine.initial
        for symbol in map(determiniser.alphabet.symbol, map(ord, text)):
            state = next((to for symbols, to, _ in machine.moves(state) if symbol in symbols), frozenset())
        assert machine.accepts(state) == (len(text) in ends(pattern, text, 0))


def test_a_part_that_stands_in_many_places_has_its_states_once_for_each_continuation() -> None:
    a, b = Chars(((97, 97),), Origin(0, 1)), Chars(((98, 98),), Origin(1, 2))
    word = Concat((a, b) * 50)
    fork = Concat((Union((Concat((a, word)), Concat((b, word)))), b))  # the same states behind both
    assert machine_of(Determiniser(fork, 1_000)).nfa.states < 110
    row = Concat((a, word, word, word, b))
    assert machine_of(Determiniser(row, 1_000)).nfa.states > 300


def test_copies_end_with_the_budget_and_those_of_nothing_take_none() -> None:
    a = Chars(((97, 97),), Origin(0, 1))
    with pytest.raises(OverBudgetError, match="250,000 states") as error:
        Determiniser(Repeat(Repeat(a, 1_000, 1_000, Origin(0, 2)), 0, 1 << 40, Origin(0, 4)), 1_000).table()
    assert error.value.blame.origin == Origin(0, 4)
    assert machine_of(Determiniser(Repeat(Concat(()), 1 << 40, None), 1_000)).nfa.states < 5
