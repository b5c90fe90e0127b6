"""The limits of a diagnosis: what it could not compute it says, claims nothing of it, and neither crashes nor hangs."""

from __future__ import annotations

import json
import re
from typing import Any

import fake
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_diagnosis_static import BUGS, LETTERS, REGEXES, config

from engine import effort
from engine.constraints import KINDS, read
from engine.diagnosis import examination, static, strings
from engine.diagnosis.subject import by_weight
from engine.errors import Finding, InputError
from engine.trace import Config

DIGITS = fake.characters("0123456789. ")
PINNED = ((0, 10), (1, 10))
SUBJECTS = {
    "empty": (config("regex", r"a(?=b)c"), LETTERS),
    "empty schema": (config("json_schema", json.dumps(BUGS["xg639-empty-enum"]["input"])), LETTERS),
    "gap": (config("regex", r"[0-9]+(kg)?", 4), DIGITS),
    "pins": (config("regex", r"[0-9]+\.[0-9]*", 4, pins=PINNED), DIGITS),
    "length": (config("regex", r"[0-9]{9}", 4), DIGITS),
    "blanks": (config("regex", REGEXES["commonregex:ipv6"], 64), LETTERS),
}


def codes(found: tuple[Finding, ...]) -> set[str]:
    return {finding.code for finding in found}


def undetermined(found: tuple[Finding, ...]) -> set[str]:
    unknown = {finding.code for finding in found if not finding.evidence.get("determined", True)}
    return unknown | {"blanks"} if "unbounded" in unknown else unknown  # both are read off the same cycles


def work(asked: Config, vocabulary: Any) -> dict[str, float]:
    """How many steps each part of an examination takes."""
    spent: dict[str, float] = {}
    within = examination._within

    def counted(code: str, what: str, find: Any) -> Any:
        with effort.limited(1e6) as budget:
            out = within(code, what, find)
        spent[code] = 1e6 - budget.left
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examination, "_within", counted)
        examination.examine(asked, vocabulary)
    return spent


@pytest.mark.parametrize("name", sorted(SUBJECTS.keys() - {"empty schema"}))
@pytest.mark.parametrize("steps", [0.0, 2.0, 20.0, 200.0, 2_000.0, 20_000.0])
def test_what_takes_too_much_work_is_said_to_be_undetermined_and_all_else_is_what_it_was(
    name: str, steps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, vocabulary = SUBJECTS[name]
    whole = examination.examine(asked, vocabulary).found
    assert not undetermined(whole)
    monkeypatch.setattr(examination, "STEPS", steps)
    found = examination.examine(asked, vocabulary).found
    unknown = undetermined(found)
    assert [f for f in found if f.code not in unknown] == [f for f in whole if f.code not in unknown]
    for finding in found:
        if not finding.evidence.get("determined", True):
            assert "not determined" in finding.message
            assert (finding.where, finding.related, finding.remedies) == (None, (), ())
            assert finding.severity == ("error" if finding.code == "empty" else "info")


@pytest.mark.parametrize("name", ["gap", "pins", "length", "blanks"])
def test_a_limit_between_the_parts_costs_of_two_parts_hides_the_dearer_one_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, vocabulary = SUBJECTS[name]
    spent = work(asked, vocabulary)
    for limit in [steps + 1e-3 for steps in set(spent.values())]:
        with monkeypatch.context() as patch:
            patch.setattr(examination, "STEPS", limit)
            found = examination.examine(asked, vocabulary).found
        dearer = {code for code, steps in spent.items() if steps > limit}
        # Behind a length that isn't known, the pins are looked at all the same.
        assert undetermined(found) - {"pins", "blanks"} == dearer - {"pins"}


def test_an_empty_language_whose_conflict_is_too_much_work_is_still_said_to_be_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examination, "STEPS", 0.0)
    finding = static.findings(*SUBJECTS["empty"])[0]
    assert (finding.code, finding.severity) == ("empty", "error")
    assert "not determined" in finding.message
    assert "conflict" not in finding.evidence
    # The reader of schemas knows by itself which keyword leaves no value.
    read_off = static.findings(*SUBJECTS["empty schema"])[0]
    assert (read_off.code, read_off.severity) == ("unsatisfiable", "error")
    assert read_off.where is not None
    assert read_off.where.pointer == "/properties/x/enum"


@pytest.mark.parametrize("name", ["empty", "length", "pins", "blanks"])
def test_changes_that_there_is_no_time_to_try_are_counted_and_not_offered(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, vocabulary = SUBJECTS[name]
    examined = examination.examine(asked, vocabulary)
    may_mend = [len(static.candidates(finding, examined)) for finding in examined.found]
    assert any(may_mend)
    if name == "pins":  # it takes work to know which to leave out
        may_mend = [
            count if finding.code != "pins" else 0 for finding, count in zip(examined.found, may_mend, strict=True)
        ]
    monkeypatch.setattr(static, "STEPS", 0.0)
    found = static.mended(examined, vocabulary)
    assert [finding.untried for finding in found] == may_mend
    assert not any(finding.remedies for finding in found)
    monkeypatch.undo()
    assert not any(finding.untried for finding in static.mended(examined, vocabulary))


def test_a_change_whose_own_diagnosis_is_undetermined_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, vocabulary = SUBJECTS["blanks"]
    examined = examination.examine(asked, vocabulary)
    assert any(finding.remedies for finding in static.mended(examined, vocabulary))
    may_mend = [len(static.candidates(finding, examined)) for finding in examined.found]
    monkeypatch.setattr(examination, "STEPS", 0.0)
    found = static.mended(examined, vocabulary)
    assert not any(finding.remedies for finding in found)
    assert all(finding.untried <= count for finding, count in zip(found, may_mend, strict=True))
    assert any(finding.untried for finding in found)


@pytest.mark.parametrize("regex", ["[a-z]{10000}", "(?s:.){0,10000}", "a{10000}", "(a|bc){3000}"])
def test_examples_of_long_texts_take_work_that_grows_with_their_length_alone(regex: str) -> None:
    automaton = read("regex", regex).automaton
    found = strings.shortest(automaton)
    assert len(set(found)) == len(found)
    for text in (*found, *strings.sampled(automaton, seed=0)):
        assert automaton.accepts(text.encode())


# Odd inputs through the whole of it


WORDS = re.findall(
    r"\S+",
    "type enum const minimum maximum multipleOf minLength maxLength pattern format items prefixItems minItems maxItems "
    "contains uniqueItems properties required additionalProperties patternProperties minProperties allOf anyOf oneOf "
    "not if then else $ref $defs default title dependentRequired propertyNames nonsense",
)


def schemas() -> st.SearchStrategy[Any]:
    words = st.sampled_from(["a", "b", "", "~", "/", "é", "x" * 40, "$ref", "\n"])
    numbers = st.one_of(st.integers(-3, 9), st.floats(-4, 4), st.sampled_from([10**30, -0.0, 1e300]))
    leaf = st.one_of(st.none(), st.booleans(), numbers, words)
    names = st.sampled_from(WORDS)
    types = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null", "strnig"])

    def member(inner: Any) -> Any:
        return st.one_of(leaf, types, inner, st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=2))

    return st.recursive(
        st.dictionaries(names, st.one_of(leaf, types), max_size=3),
        lambda inner: st.dictionaries(names, member(inner), max_size=3),
        max_leaves=6,
    )


PIECES = [
    "a",
    "[a-f]",
    "\\d",
    ".",
    "(",
    ")",
    "[",
    "]",
    "{2,3}",
    "{3,}",
    "*",
    "+?",
    "|",
    "(?=a)",
    "(?",
    "\n",
    "(?<!b)",
    "\\b",
    "^",
    "$",
    "(?>a+)",
    "\\1",
    " ",
    "é",
    "\\p{L}",
    "[^\\s\\S]",
    "(?i)",
    "\\",
    "}",
    "😀",
    "\x00",
]
regexes = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
sources = st.one_of(
    st.tuples(st.just("regex"), regexes),
    st.tuples(st.just("json_schema"), schemas().map(json.dumps)),
    st.tuples(st.sampled_from(sorted(KINDS)), st.text(max_size=12)),
    st.tuples(st.just("choices"), st.lists(st.text(max_size=4), max_size=4).map(tuple)),
    st.tuples(st.just("tools"), schemas().map(lambda s: json.dumps([{"name": "f", "parameters": s}]))),
    st.tuples(
        st.just("all"),
        regexes.map(lambda r: json.dumps([{"kind": "regex", "source": r}, {"kind": "regex", "source": "[ab]*"}])),
    ),
    st.sampled_from(sorted(KINDS)).flatmap(lambda k: st.integers(0, 60).map(lambda n: (k, KINDS[k].example[:n]))),
)


@settings(max_examples=120)
@given(
    sources, st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 96)), max_size=3), st.booleans()
)
def test_any_source_is_diagnosed_without_an_exception_and_what_is_offered_mends(
    written: tuple[str, Any], length: int, pins: list[tuple[int, int]], plain: bool
) -> None:
    kind, source = written
    placed = tuple(sorted({i: v for i, v in pins if i < length}.items()))
    vocabulary = LETTERS if plain else fake.characters('abé01"{}:[], ', eos=False)
    placed = tuple((i, v % vocabulary.size) for i, v in placed)
    asked = config(kind, source, length, pins=placed)
    with effort.limited(4_000_000):
        try:
            examined = examination.examine(asked, vocabulary)
            found = static.mended(examined, vocabulary)
        except effort.OutOfStepsError:
            return
    assert found == by_weight(found, examination.ORDER)
    for finding in found:
        json.dumps(finding.plain(), allow_nan=False)
        for place in filter(None, (finding.where, *finding.related)):
            assert 0 <= place.start <= place.stop <= len(place.source)
            place.frame()
    if examined.subject is not None and not any(f.severity == "error" for f in found):
        assert examined.subject.automaton.accepted_lengths(length)[length]


@given(sources, st.text(max_size=6))
def test_any_text_is_held_against_any_source_that_can_be_read(written: tuple[str, Any], text: str) -> None:
    try:
        constraint = read(written[0], written[1])
        automaton = constraint.automaton
    except InputError:
        return
    reading = strings.read(constraint, text)
    assert reading.accepted == constraint.accepts(text)
    assert 0 <= reading.read <= len(text)
    for example in (*strings.shortest(automaton), *strings.sampled(automaton, seed=1)):
        assert constraint.accepts(example)
