"""Intersections and complements against operations on sets of strings: all strings over a small alphabet."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import automaton
from engine.constraints import read
from engine.errors import InputError, SizeError
from engine.pattern import (
    ANY,
    Chars,
    Complement,
    Concat,
    Intersection,
    Look,
    Origin,
    Pattern,
    Repeat,
    Union,
    difference,
)
from tests import origins

ALPHABET = "abé"
WORDS = ["".join(w) for n in range(5) for w in itertools.product(ALPHABET, repeat=n)]
HERE = Origin(0, 1)


def char(*characters: str) -> Chars:
    return Chars(tuple(sorted((ord(c), ord(c)) for c in characters)), HERE)


def language(pattern: Pattern) -> frozenset[str]:
    """What of `WORDS` is matched, by set operations on listed strings."""
    match pattern:
        case Chars(ranges):
            return frozenset(w for w in WORDS if len(w) == 1 and any(low <= ord(w) <= high for low, high in ranges))
        case Concat(parts):
            found = frozenset({""})
            for part in parts:
                found = joined(found, language(part))
            return found
        case Union(parts):
            return frozenset().union(*map(language, parts))
        case Repeat(body, least, most):
            once, found, power = language(body), frozenset[str](), frozenset({""})
            for n in range(max(least, 5) + 5 if most is None else most + 1):
                found |= power if n >= least else frozenset()
                power = joined(power, once)
            return found
        case Intersection(parts):
            return frozenset(WORDS).intersection(*map(language, parts))
        case Complement(body):
            return frozenset(WORDS) - language(body)
    raise AssertionError(pattern)


def joined(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    return frozenset(a + b for a in left for b in right if len(a + b) <= 4)


def nested(inner: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        parts.map(Concat),
        parts.map(Union),
        parts.map(Intersection),
        inner.map(lambda body: Complement(body, HERE)),
        st.builds(Repeat, inner, st.integers(0, 1), st.sampled_from([None, 1, 2])),
    )


LEAVES = st.sampled_from(
    [char("a"), char("b"), char("é"), char("a", "b"), char("b", "é"), Chars(ANY, HERE), Chars((), HERE)]
)


@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES, nested, max_leaves=8))
def test_the_automaton_accepts_what_set_operations_leave(pattern: Pattern) -> None:
    machine = automaton.compile(pattern)
    assert [w for w in WORDS if machine.accepts(w.encode())] == [w for w in WORDS if w in language(pattern)]


def test_a_complement_holds_every_character_and_no_byte_string_beside() -> None:
    machine = automaton.compile(Complement(char("a"), HERE))
    for text in ("", "aa", "b", "\0", "߿", "ࠀ", "￿", "𐀀", "\U0010ffff", "é𝄞日"):
        assert machine.accepts(text.encode()), text
    for data in (b"a", b"\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc3", b"\xff"):
        assert not machine.accepts(data), data


def test_a_look_around_in_an_operand_sees_no_further_than_the_operand() -> None:
    # Between quotes, a text that begins with "a": "^" holds behind the quote.
    start = Look(Chars(ANY, HERE), ahead=False, negative=True)
    inner = Intersection((Concat((start, char("a"), Repeat(Chars(ANY, HERE), 0, None))),))
    machine = automaton.compile(Concat((char('"'), inner, char('"'))))
    assert machine.accepts(b'"ab"')
    assert not machine.accepts(b'"ba"')


def test_what_is_written_comes_from_every_part_of_an_intersection() -> None:
    def at(n: int, characters: str) -> Chars:
        return Chars(tuple((ord(c), ord(c)) for c in characters), Origin(n, n + 1))

    left = Concat((at(0, "ab"), at(1, "bc")))
    right = Concat((at(2, "b"), at(3, "cd")))
    both = Intersection((left, right))
    expected = [{(0, 1), (2, 3)}, {(1, 2), (3, 4)}]
    assert origins.spans(automaton.compile(both), b"bc") == expected
    # The same as part of a longer pattern, where it is a table inside Thompson's automaton.
    assert origins.spans(automaton.compile(Concat((at(4, "x"), both))), b"xbc") == [{(4, 5)}, *expected]
    less = difference(left, Concat((at(2, "a"), at(3, "b"))), Origin(7, 9))
    assert origins.spans(automaton.compile(less), b"bc") == [{(0, 1), (7, 9)}, {(1, 2), (7, 9)}]


def test_an_intersection_of_large_parts_is_as_small_as_what_both_match() -> None:
    # Each part alone has 2^20 states; together they allow one text.
    def nth_from_end(letter: str) -> Pattern:
        some = Repeat(char("a", "b"), 0, None)
        return Concat((some, char(letter), Repeat(char("a", "b"), 20, 20)))

    short = Concat((char("a"), Repeat(char("b"), 20, 20)))
    machine = automaton.compile(Intersection((nth_from_end("a"), short)))
    assert machine.states == 22
    assert automaton.compile(Intersection((nth_from_end("b"), short))).is_empty


def test_over_the_budget_a_nondeterministic_automaton_is_kept_and_the_construct_with_most_states_is_named() -> None:
    source = "x{900}(?:a|b)*a(?:a|b){16}"
    machine = automaton.compile(read("regex", source).pattern, source, budget=10_000)
    assert not machine.deterministic
    (finding,) = machine.findings
    assert source[finding.where.start : finding.where.stop] == "(?:a|b){16}"
    assert "10,000 states" in finding.message
    assert "16 copies" in finding.message
    assert machine.states == finding.evidence["states"] == 918


def test_over_the_budget_of_both_kinds_the_construct_is_refused_by_name() -> None:
    source = "x{900}(?:a|b)*a(?:a|b){16}"
    with pytest.raises(SizeError, match="900 copies"):
        automaton.compile(read("regex", source).pattern, source, budget=900)


def test_over_the_budget_in_an_operand_the_operands_construct_is_named() -> None:
    source = "(?:a|b)*a(?:a|b){16}"
    pattern = Concat((Complement(read("regex", source).pattern, Origin(0, 3)), char("c")))
    with pytest.raises(SizeError, match="16 copies"):
        automaton.compile(pattern, source, budget=10_000)


def test_a_construction_that_takes_too_much_work_is_refused_with_its_construct() -> None:
    source = "(?:(?=a|b)(?:a|b))*a(?:a|b){30}"
    with pytest.raises(SizeError, match=r"takes too much work.*30 copies"):
        automaton.compile(read("regex", source).pattern, source, budget=10**9, steps=50_000)


BOTH = r"""[
  {"kind": "regex", "source": "(?:a|b\\u0063|\"){2,3}"},
  {"kind": "regex", "source": "a.*"},
  {"kind": "choices", "source": ["aa", "a\""], "but_not": true}
]"""


def test_several_constraints_hold_at_once_and_those_with_but_not_do_not() -> None:
    constraint = read("all", BOTH)
    texts = ["".join(w) for n in range(5) for w in itertools.product('abc"', repeat=n)]
    wanted = [t for t in texts if re.fullmatch(r'(?:a|bc|"){2,3}', t) and t[:1] == "a" and t not in ("aa", 'a"')]
    assert [t for t in texts if constraint.accepts(t)] == wanted
    assert wanted


def test_what_several_constraints_write_comes_from_each_of_them() -> None:
    machine = read("all", BOTH).automaton
    found = origins.parts(machine, BOTH, b"abc")
    third = '{"kind": "choices", "source": ["aa", "a\\""], "but_not": true}'
    assert found[0] == {"a", third}
    assert found[1] == {"b", ".", third}
    assert found[2] == {r"\\u0063", ".", third}


def test_findings_of_a_part_stand_in_the_list_and_turn_round_where_it_is_not_wanted() -> None:
    grammar = {"kind": "grammar", "source": 'start: "(" start ")" |', "but_not": True}
    constraint = read("all", [{"kind": "regex", "source": r"\d+?"}, grammar])
    lazy = next(f for f in constraint.findings if f.code == "lazy")
    assert constraint.text[lazy.where.start : lazy.where.stop] == r"\\d+?"
    cut = next(f for f in constraint.findings if f.code == "recursion-cut")
    assert cut.accepts == "too much"
    assert constraint.text[cut.where.start : cut.where.stop] == "start"


def test_a_list_may_stand_in_a_list_and_its_parts_be_of_any_kind() -> None:
    inner = {"kind": "all", "source": [{"kind": "json_schema", "source": {"type": "integer", "minimum": 5}}]}
    constraint = read("all", [inner, {"kind": "regex", "source": "."}])
    assert [d for d in "0123456789" if constraint.accepts(d)] == list("56789")


@pytest.mark.parametrize(
    ("source", "words"),
    [("[]", "no list"), ('[{"kind": "regex"}]', "Part 1"), ('[{"kind": "regex", "source": "a"}, {"kind": "regex", "source": "(a"}]', "Part 2.*never closed")],
)  # fmt: skip
def test_a_mistake_in_a_list_names_its_part(source: str, words: str) -> None:
    with pytest.raises(InputError, match=re.compile(words, re.DOTALL)):
        read("all", source)


@pytest.mark.parametrize(
    "part",
    [
        '{"kind": "regex", "source": 5}', '{"kind": "regex", "source": {"a": 1}}', '{"kind": "choices", "source": [1, 2]}',
        '{"kind": "choices", "source": true}', '{"kind": "grammar", "source": ["start: A"]}', '{"kind": ["regex"], "source": "a"}',
        '{"kind": {}, "source": "a"}', '{"kind": "json_schema", "source": []}', '{"kind": "choices", "source": []}',
        '{"kind": "regex", "source": "a", "options": null}', '{"kind": "regex", "source": "a", "options": [1]}',
        '{"kind": "regex", "source": "a", "options": {"strict": "no"}}', '{"kind": "regex", "source": "a", "but_not": "no"}',
        '{"kind": "json_schema", "source": {}, "options": {"depth": "3"}}', '{"kind": "grammar", "source": "start: \\"a\\"", "options": {"depth": null}}',
    ],
)  # fmt: skip
def test_a_part_of_another_type_is_refused_and_not_read_as_its_text(part: str) -> None:
    with pytest.raises(InputError):
        read("all", f"[{part}]")
