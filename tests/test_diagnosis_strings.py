"""The string tester, against Python's `re` and against listing."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.constraints import read
from engine.diagnosis import strings

PATTERNS = (r"[01]+(\.[01]*)?|\.[01]+", r"(ab|a)*c", r"ba?b|aab", r"", r"a{2,3}(b|c\.)?", r"[c.]+", r"(?:c|ab){2}")
CASES = [json.loads(line) for line in (Path(__file__).parent / "data/bugs/cases.jsonl").read_text().splitlines()]
TEXT_CASES = [
    c for c in CASES if c["kind"] in ("regex", "choices") and c["id"] not in ("rx-backref", "rx-counted-linear")
]


@given(st.sampled_from(PATTERNS), st.text("abc.01", max_size=6))
def test_a_text_is_accepted_where_re_accepts_it_and_dies_at_the_first_character_that_no_accepted_text_has(
    pattern: str, text: str
) -> None:
    reading = strings.read(read("regex", pattern), text)
    assert reading.accepted == bool(re.fullmatch(pattern, text))
    alive = [n for n in range(len(text) + 1) if can_begin(pattern, text[:n])]
    assert reading.read == max(alive)
    assert len(reading.states) == reading.read + 1
    assert len(reading.places) == reading.read


def can_begin(pattern: str, text: str) -> bool:
    """Whether some accepted text begins so; for these patterns four more characters are enough."""
    return any(
        re.fullmatch(pattern, text + "".join(rest)) for n in range(5) for rest in itertools.product("abc.0", repeat=n)
    )


def test_a_death_is_told_in_string_source_and_automaton_at_once() -> None:
    reading = strings.read(read("regex", "(?:red|blue): [0-9]{2}"), "red: 4x")
    assert reading.message == "Dies at character 7, 'x'; expected '0' to '9'."
    (place,) = reading.expected_places
    assert place.source[place.start : place.stop] == "[0-9]"
    assert [p.source[p.start : p.stop] for places in reading.places for p in places] == [
        "r",
        "e",
        "d",
        ":",
        " ",
        "[0-9]",
    ]
    assert reading.states[0] == (0,)
    assert len(set(reading.states)) == 7, "each prefix of this text is another state"


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        ("yes|no", "ye", "Ends too early, after 2 characters; expected 's'."),
        ("yes|no", "yesno", "Dies at character 4, 'n'; expected the end of the text."),
        ("yes|no", "", "Ends too early, after 0 characters; expected 'n' or 'y'."),
        ('"name": "[a-z]*"', "x", "Dies at character 1, 'x'; expected '\"name\": \"'."),
        ("caf[éè]", "cafe", "Dies at character 4, 'e'; expected a character beyond ASCII."),
        ("[ab]+", "ab", "Accepted, all 2 characters."),
        ("[^x]", "\ud800", "Dies at character 1, '\\ud800'; expected "),
    ],
)
def test_the_message_says_what_was_expected(pattern: str, text: str, message: str) -> None:
    assert strings.read(read("regex", pattern), text).message.startswith(message)


@given(st.sampled_from(PATTERNS), st.integers(1, 5))
def test_the_shortest_texts_are_the_shortest(pattern: str, count: int) -> None:
    found = strings.shortest(read("regex", pattern).automaton, count)
    assert all(re.fullmatch(pattern, text) for text in found)
    assert len(set(found)) == len(found)
    lengths = sorted(
        len(t)
        for n in range(5)
        for t in map("".join, itertools.product("abc.01d", repeat=n))
        if re.fullmatch(pattern, t)
    )
    assert [len(t) for t in found][: len(lengths)] == lengths[: len(found)]


def test_a_language_of_two_texts_has_two_shortest_and_letters_come_first() -> None:
    assert strings.shortest(read("choices", ["no", "yes"]).automaton) == ("no", "yes")
    assert strings.shortest(read("regex", ".").automaton) == ("a", "b", "c")
    assert strings.shortest(read("regex", "[a-z]{200}").automaton)[0] == "a" * 200
    assert strings.shortest(read("regex", r"[^\s\S]").automaton) == ()


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda c: c["id"])
def test_sampled_texts_are_accepted_and_printable_where_they_can_be(case: dict) -> None:
    constraint = read(case["kind"], case["input"])
    found = strings.sampled(constraint.automaton, seed=3)
    assert found
    assert len(set(found)) == len(found) <= 3
    assert all(constraint.accepts(text) for text in found)
    assert strings.sampled(constraint.automaton, seed=3) == found


@pytest.mark.parametrize("case", TEXT_CASES, ids=lambda c: c["id"])
def test_the_tester_agrees_with_the_reports(case: dict) -> None:
    constraint = read(case["kind"], case["input"])
    for text in case["must_accept"]:
        assert strings.read(constraint, text).accepted
    for text in case["must_reject"]:
        reading = strings.read(constraint, text)
        assert not reading.accepted
        assert reading.read <= len(text)
