"""What is refused as too large is refused for its own work, counted, and soon."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest

from engine import automaton, constraints, effort
from engine.constraints.json_schema import texts
from engine.determinise import Determiniser
from engine.errors import SizeError
from engine.utf8 import TooManyBytesError, written


def test_limits_nest_and_what_is_spent_inside_counts_outside() -> None:
    with effort.limited(10) as outer:
        with pytest.raises(effort.OutOfStepsError), effort.limited(4):
            effort.spend(6)
        assert outer.left == 4
        with pytest.raises(effort.OutOfStepsError), effort.limited(100):
            effort.spend(5)
        with pytest.raises(effort.OutOfStepsError):
            effort.spend(0)
    effort.spend(1e9)  # nothing limits it any more


def test_a_kept_result_is_paid_for_once_under_each_limit() -> None:
    kept = object()
    with effort.limited(10) as budget:
        for _ in range(3):
            with effort.limited(5):
                effort.pay(kept, 4)
        assert budget.left == 6
    with pytest.raises(effort.OutOfStepsError), effort.limited(3):
        effort.pay(kept, 4)


SCHEMA = {
    "properties": {"d": {"format": "date-time"}, "e": {"format": "email"}, "s": {"pattern": "^[a-z]{1,20}( [a-z]+)*$"}}
}


def test_what_was_read_before_changes_nothing_in_what_is_left() -> None:
    texts._compiled.cache_clear()
    first = constraints.read("json_schema", SCHEMA)
    again = constraints.read("json_schema", SCHEMA)
    assert first.steps == again.steps < automaton.COMPILE_STEPS


ITEM = {"anyOf": [{"properties": {f"p{j}": {"type": "integer"}}, "required": [f"p{j}"]} for j in range(4)]}
LARGE = [
    ("regex", r"(?:\w+\s?){1,200}"),
    ("regex", r"(?:a|b)*a(?:a|b){40}"),
    ("regex", r"(?=.*a.{12})(?=.*b.{12}).*"),
    ("regex", r"(\w{1,100}\s){1,100}"),
    ("regex", r"((a?){60}b?){60}"),
    ("json_schema", {"allOf": [ITEM, ITEM | {"minProperties": 9}, {"not": ITEM}], "maxProperties": 40}),
    ("json_schema", {"$ref": "#/$defs/a", "$defs": {"a": {"oneOf": [{"items": {"$ref": "#/$defs/a"}}] * 3}}}),
    ("json_schema", {"type": "string", "pattern": "^(?=.*a.{9})(?=.*b.{9})[a-z]*$", "maxLength": 300}),
    ("json_schema", {"type": "array", "items": {"enum": list(range(8))}, "uniqueItems": True, "maxItems": 900}),
]
CALLS = 40
"""Calls of Python's functions for a step; it is some ten."""


@pytest.mark.parametrize(("kind", "source"), LARGE, ids=lambda value: str(value)[:30])
def test_the_steps_that_are_counted_are_those_that_are_done(kind, source, monkeypatch) -> None:
    monkeypatch.setattr(automaton, "COMPILE_STEPS", 40_000)
    monkeypatch.setattr(automaton, "LEAST_STEPS", 20_000)
    monkeypatch.setattr(texts, "STEPS", 10_000)
    texts._compiled.cache_clear()
    calls = 0

    def count(_frame, event, _argument) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    constraints.read(kind, "a" if kind == "regex" else {})  # what is imported and kept for all readings
    sys.setprofile(count)
    try:
        with suppress(SizeError):
            constraint = constraints.read(kind, source)
            automaton.compile(constraint.pattern, constraint.text, steps=constraint.steps)
    finally:
        sys.setprofile(None)
    texts._compiled.cache_clear()
    assert calls < CALLS * 60_000


def test_both_attempts_at_an_automaton_and_its_bytes_share_their_steps() -> None:
    constraint = constraints.read("regex", r"(?:\w+\s?){1,200}")
    with effort.limited(1e9) as spent, pytest.raises(SizeError, match="takes too much work"):
        automaton.compile(constraint.pattern, constraint.text, steps=200_000)
    assert 1e9 - spent.left < 210_000


def test_the_writing_of_bytes_ends_with_its_steps() -> None:
    determiniser = Determiniser(constraints.read("regex", r"\w+").pattern, 10)
    table = determiniser.table()
    with effort.limited(50), pytest.raises(TooManyBytesError, match="takes too much work"):
        written(table, determiniser.alphabet, 10_000)


WORDS = ["QUARTZ", "ZINC", "TABLE", "BLED", "LEDGER", "GERMAN", "MANTIS", "TISSUE", "SUE", "UEBER", "BERRY", "RYE"]


def test_what_is_searched_for_in_many_alternatives_takes_little_work() -> None:
    constraint = constraints.read("json_schema", {"type": "string", "pattern": "|".join([*WORDS, "^A", "Z$"])})
    assert automaton.COMPILE_STEPS - constraint.steps < 100_000
    for text in (*WORDS, "xxZINCx", "MANTABLE", "Axx", "xxZ", "xAx", "Zx", "GERMA", ""):
        found = any(word in text for word in WORDS) or text.startswith("A") or text.endswith("Z")
        assert constraint.accepts(f'"{text}"') == found, text


def test_a_schema_inside_itself_by_many_references_is_cut_by_how_often_it_is_inside_itself() -> None:
    members = {name: {"$ref": "#/$defs/node"} for name in "abcdef"}
    node = {"type": "object", "properties": members, "additionalProperties": False}
    constraint = constraints.read("json_schema", {"$ref": "#/$defs/node", "$defs": {"node": node}}, depth=2)
    assert [f.where.pointer for f in constraint.findings if f.code == "recursion-depth"] == ["/$defs/node"]
    assert constraint.accepts('{"a":{"b":{},"c":{}},"f":{}}')
    assert not constraint.accepts('{"a":{"b":{"c":{}}}}')
    assert constraint.automaton.states < 2_000
