"""Constraint × vocabulary: token automata against the bytes that the tokens write."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.constraints import vocabulary
from engine import token_automaton
from engine.constraints import read
from engine.errors import EmptyLanguageError
from engine.vocabulary import Vocabulary

HERE = Path(__file__).parent
CASES = [
    case
    for case in map(json.loads, (HERE / "data" / "bugs" / "cases.jsonl").read_text().splitlines())
    if case["kind"] == "tokens"
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_reported_token_level_bugs_are_not_ours(case: dict) -> None:
    compiled = token_automaton.compile(read("regex", case["input"]["regex"]), vocabulary(case))
    assert [t for t in case["must_accept"] if not compiled.accepts(t)] == []
    assert [t for t in case["must_reject"] if compiled.accepts(t)] == []


TOKENS = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=7, unique=True)
PATTERNS = st.sampled_from([r"a*b", r"(ab|ba)*", r"a?(\.b)+", r"[ab]{2,3}", r"(?!.*bb)[ab]+", r"a{4}|b", r"\.a|a\."])


@settings(max_examples=150, deadline=None)
@given(TOKENS, PATTERNS, st.booleans())
def test_a_canvas_is_accepted_exactly_when_its_text_is_and_only_eos_follows(tokens, pattern, has_eos) -> None:
    eos = len(tokens)
    written = (*(t.encode() for t in tokens), *((None,) if has_eos else ()), None)
    vocabulary = Vocabulary(written, (eos,) if has_eos else (), len(written) - 1)
    reference = re.compile(pattern)

    def expected(ids: tuple[int, ...]) -> bool:
        stop = ids.index(eos) if has_eos and eos in ids else len(ids)
        if any(i != eos for i in ids[stop:]) or any(written[i] is None for i in ids[:stop]):
            return False
        return bool(reference.fullmatch("".join(tokens[i] for i in ids[:stop])))

    try:
        compiled = token_automaton.compile(read("regex", pattern), vocabulary)
    except EmptyLanguageError:
        compiled = None
    for length in range(1, 4):
        accepted = [ids for ids in itertools.product(range(len(written)), repeat=length) if expected(ids)]
        if compiled is None:
            assert not accepted
            continue
        found = [ids for ids in itertools.product(range(len(written)), repeat=length) if compiled.accepts(ids)]
        assert found == accepted
        assert compiled.accepted_lengths(length)[length] == bool(accepted)


@settings(max_examples=60, deadline=None)
@given(TOKENS, PATTERNS)
def test_tokens_share_a_class_exactly_when_they_move_every_state_alike(tokens, pattern) -> None:
    vocabulary = Vocabulary((*(t.encode() for t in tokens), None), (), len(tokens))
    try:
        compiled = token_automaton.compile(read("regex", pattern), vocabulary)
    except EmptyLanguageError:
        return
    columns = {}
    for token_id in range(vocabulary.size):
        column = tuple(compiled.move(q, token_id) for q in range(compiled.states))
        columns.setdefault(compiled.token_class[token_id], column)
        assert columns[compiled.token_class[token_id]] == column
    assert len(set(columns.values())) == len(columns)
    assert all(q == -1 for q in columns.get(0, ()))
    edges = compiled.edges
    pairs = {
        (q, int(edges.target[e]), int(c))
        for q in range(compiled.states)
        for e in range(edges.ptr[q], edges.ptr[q + 1])
        for c in edges.label_class[edges.label_ptr[edges.label[e]] : edges.label_ptr[edges.label[e] + 1]]
    }
    assert pairs == {
        (q, column[q], int(c)) for c, column in columns.items() for q in range(compiled.states) if column[q] >= 0
    }


def test_special_tokens_are_dead_and_eos_is_absorbing() -> None:
    vocabulary = Vocabulary((b"a", None, b"b", None, None), (3, 4), 1)
    compiled = token_automaton.compile(read("regex", "a*"), vocabulary)
    assert compiled.accepts([0, 3, 4])
    assert not compiled.accepts([0, 1])
    assert not compiled.accepts([3, 0])
    assert not compiled.accepts([0, 7])
    assert compiled.token_class[1] == compiled.token_class[2] == 0


def test_a_constraint_without_texts_says_so_and_one_without_tokens_names_the_shortest_text() -> None:
    vocabulary = Vocabulary((b"a", None), (), 1)
    with pytest.raises(EmptyLanguageError, match="accepts nothing"):
        token_automaton.compile(read("regex", r"[^\s\S]"), vocabulary)
    with pytest.raises(EmptyLanguageError, match="'xyz'"):
        token_automaton.compile(read("regex", "xyz"), vocabulary)


def test_states_know_what_can_be_written_next() -> None:
    source = "ab|cd"
    vocabulary = Vocabulary((b"a", b"b", b"c", b"d", b"ab", None), (), 5)
    compiled = token_automaton.compile(read("regex", source), vocabulary)
    assert compiled.state_spans[compiled.start] == ((0, 1), (3, 4))
    behind_a = compiled.move(compiled.start, 0)
    assert compiled.state_spans[behind_a] == ((1, 2),)


def test_the_automaton_that_accepts_everything_accepts_every_canvas() -> None:
    vocabulary = Vocabulary((b"a", None, None), (1,), 2)
    compiled = token_automaton.everything(vocabulary)
    assert compiled.accepts([1, 0, 2, 2])
    np.testing.assert_array_equal(compiled.accepted_lengths(3), True)
