"""What is said of the form before a run, without a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from test_events import values

from app import checking, events, examples, form, loading, running, sessions, views
from engine.diagnosis import dynamic
from engine.errors import InputError

DIGITS = [*"0123456789", "."]
REAL = r"[0-9]+(\.[0-9]*)?|\.[0-9]+"


def asked(table: Callable[..., str], **changes: Any) -> tuple[Any, ...]:
    return values(**{"model": table([[1.0] * 11] * 4), "source": REAL, **changes})


def codes(told: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in told["findings"]]


def mended(given: tuple[Any, ...]) -> dict[str, Any]:
    """What the page shows of a form: its findings, and then the changes that mend them."""
    told = checking.check(given)
    asked = json.loads(json.dumps(told["asked"]))
    tried = (
        checking.get_remedies(asked)["findings"] if asked else [{"remedies": [], "untried": 0}] * len(told["findings"])
    )
    return {**told, "findings": [{**a, **b} for a, b in zip(told["findings"], tried, strict=True)]}


def applied(given: tuple[Any, ...], told: dict[str, Any], remedy: int = 0) -> tuple[Any, ...]:
    """Apply a remedy of the best finding, as the page does."""
    sent = json.loads(json.dumps(told["findings"][0]["remedies"][remedy]["changes"]))
    return checking.applied(given, sent)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"source": "[0-9]{5,}"}, "length"),
        ({"source": "[0-9]{4}|é"}, "vocabulary"),
        ({"pins": "0=.\n1=."}, "pins"),
        ({"kind": "json_schema", "source": '{"type": "integer", "minimum": 5, "maximum": 3}'}, "empty"),
    ],
)
def test_a_remedy_that_is_applied_to_the_form_mends_what_it_was_offered_for(
    table: Callable[..., str], changes: dict[str, Any], code: str
) -> None:
    given = asked(table, **changes)
    told = mended(given)
    assert codes(told)[0] == code
    assert code not in codes(checking.check(applied(given, told)))


def test_a_block_that_does_not_divide_a_new_length_has_changes_that_mend_it_while_the_rest_is_still_told(
    table: Callable[..., str],
) -> None:
    given = asked(table, length=6, block_length=4, steps=6)
    told = mended(given)
    assert [(finding["code"], finding["severity"]) for finding in told["findings"]] == [("settings", "error")]
    assert told["constraint"] is not None
    labels = [remedy["label"] for remedy in told["findings"][0]["remedies"]]
    assert labels == ["Set the block length to 6", "Set the block length to 3", "Set the length to 8"]
    for number in range(len(labels)):
        assert "settings" not in codes(checking.check(applied(given, told, number)))


FAILURES = [card for card in examples.gallery() if card.failure]
FINDING = {
    "C1": "syntax",
    "C2": "unique-not-enforced",
    "C3": "empty",
    "C4": "length",
    "C5": "vocabulary",
    "C6": "pins",
    "C7": "belief",
    "C8": "trap",
    "C9": "size",
    "C10": "branch",
}


def test_the_gallery_has_an_example_for_each_class_of_failure() -> None:
    assert {card.failure for card in FAILURES} == set(FINDING)


@pytest.mark.parametrize("card", [card for card in FAILURES if card.form], ids=lambda card: card.name)
def test_an_example_of_the_form_shows_its_finding_its_evidence_and_a_change_that_mends_it(
    card: examples.Example,
) -> None:
    given = events.example_form(card.name, views.view(None))
    assert given is not None
    told = mended(given)
    finding = told["findings"][0]
    assert finding["code"] == FINDING[card.failure]
    assert finding["frame"] or finding["evidence"]
    after = checking.check(applied(given, told))
    assert finding["code"] not in codes(after)
    assert not [found for found in after["findings"] if found["severity"] == "error"]


@pytest.mark.parametrize("card", [card for card in FAILURES if card.files], ids=lambda card: card.name)
def test_an_example_of_a_run_shows_its_finding_and_a_change_after_which_a_run_has_it_no_more(
    card: examples.Example,
) -> None:
    recorded = sessions.find(card.run_ids[0])
    assert recorded is not None
    code = FINDING[card.failure]
    finding = next(found for found in dynamic.findings(recorded.trace) if found.code == code)
    assert finding.evidence
    now = views.view(None, a=recorded.run_id)
    changes = json.loads(json.dumps(dict(finding.remedies[0].changes)))
    *_, after = running.remedy(now, "me", {"run": recorded.run_id, "changes": changes})
    mended = sessions.find(after["b"])
    assert mended is not None
    left = [found for found in dynamic.findings(mended.trace) if found.code == code]
    if code == "belief":  # it is told of every run; what it wanted there is allowed now
        assert mended.trace.steps[0].log_partition > recorded.trace.steps[0].log_partition + 1.0
        assert finding.message.split(": ")[-1] not in left[0].message
    else:
        assert left == []


def test_a_form_with_nothing_wrong_has_accepted_examples(table: Callable[..., str]) -> None:
    told = checking.check(asked(table))
    assert {finding["severity"] for finding in told["findings"]} <= {"info"}
    assert told["open"] is None
    assert len(told["shortest"]) == len(told["sampled"]) == 3
    for text in (*told["shortest"], *told["sampled"]):
        assert re.fullmatch(REAL, text)
        assert checking.get_reading({**told["constraint"], "text": text})["accepted"]
    for nothing in ({"kind": "none"}, {"source": ""}, {"source": None}):
        assert checking.check(asked(table, **nothing)) == {
            "findings": [],
            "asked": None,
            "constraint": None,
            "shortest": [],
            "sampled": [],
            "open": None,
        }


def test_a_model_that_is_not_loaded_is_not_loaded_to_check_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_fresh", lambda name: pytest.fail(f"{name} was loaded"))
    given = values(model="someone/large", source="[0-9]{9}")
    told = checking.check(given)
    assert told["findings"] == []
    assert "once someone/large is loaded" in told["open"]
    assert told["shortest"]
    kept = checking.applied((*given[:12], "0=7", *given[13:]), {"length": 9})
    assert (kept[form.FIELDS.index("length")], kept[form.FIELDS.index("pins")]) == (9, "0=7")


def test_no_change_is_offered_before_it_was_tried_and_how_many_may_mend_it_is_said_at_once(
    table: Callable[..., str],
) -> None:
    given = asked(table, source="[0-9]{5,}")
    first = checking.check(given)["findings"][0]
    assert (first["code"], first["remedies"], first["may_mend"]) == ("length", [], 1)
    assert len(mended(given)["findings"][0]["remedies"]) == 1
    none = checking.check(asked(table, source="[0-9]{2}"))
    assert all(finding["may_mend"] for finding in none["findings"]) == bool(none["asked"])


def test_without_the_tokens_of_a_large_model_a_mistake_in_the_text_is_still_mended() -> None:
    given = values(model="someone/large", source="(a|b:[0-9]")
    finding = mended(given)["findings"][0]
    assert finding["code"] == "syntax"
    assert {"source": "(a|b):[0-9]"} in [remedy["changes"] for remedy in finding["remedies"]]


def test_both_sides_of_a_conflict_are_shown_with_their_lines(table: Callable[..., str]) -> None:
    source = '{\n "type": "integer",\n "minimum": 5,\n "maximum": 3\n}'
    finding = checking.check(asked(table, kind="json_schema", source=source))["findings"][0]
    assert '"minimum": 5' in finding["frame"]
    assert [side["pointer"] for side in finding["frames"]] == ["/maximum", "/type"]
    assert '"maximum": 3' in finding["frames"][0]["frame"]


@pytest.mark.parametrize(
    "words", [None, {}, {"values": None}, {"values": [1, 2]}, {"values": ["x"] * len(form.FIELDS)}]
)
def test_whatever_a_stranger_asks_to_have_mended_is_answered(words: object) -> None:
    said = checking.get_remedies(words)
    assert said["error"] == "mistake"
    assert said["remedy"]


def test_a_mistake_in_the_source_is_told_with_its_lines(table: Callable[..., str]) -> None:
    told = checking.check(asked(table, source="(a|b"))
    assert codes(told) == ["syntax"]
    assert told["findings"][0]["frame"] == "  (a|b\n  ^"
    assert told["constraint"] is None
    assert codes(checking.check(asked(table, length=None))) == ["input"]


@pytest.mark.parametrize("changes", [None, 3, {"nonsense": 1}, {"source": "x", "model": None, "y": 2}])
def test_a_change_that_no_finding_offers_is_refused(table: Callable[..., str], changes: object) -> None:
    with pytest.raises(InputError):
        checking.applied(asked(table), changes)


def test_a_text_is_marked_where_it_dies_in_the_source_and_in_the_automaton() -> None:
    told = checking.get_reading({"kind": "regex", "source": "ab|cd", "reading": [], "text": "cx"})
    assert (told["accepted"], told["read"]) == (False, 1)
    assert [place["start"] for place in told["places"][0]] == [3]
    assert told["spans"] == [[4, 5]]
    states = told["states"][-1]
    assert {f"q{q}" for q in states} <= {box["id"] for box in told["graph"]["boxes"]}
    assert f"id=q{states[0]} " in told["graph"]["dot"] or f'id="q{states[0]}"' in told["graph"]["dot"]
    assert re.search(r'label=" d "', told["graph"]["dot"]), "edges say which bytes they read"


@pytest.mark.parametrize(
    "words",
    [
        None,
        {},
        {"text": 3, "kind": "regex", "source": "a"},
        {"text": "a", "kind": "nonsense", "source": "a"},
        {"text": "a", "kind": "regex", "source": "("},
        {"text": "a", "kind": "regex", "source": ["a", 3]},
        {"text": "a", "kind": "regex", "source": "a", "reading": [["x"]]},
        {"text": "a", "kind": "json_schema", "source": "{}", "reading": [["depth", "x"]]},
        {"text": "a" * 10_001, "kind": "regex", "source": "a"},
    ],
)
def test_whatever_a_stranger_asks_of_the_tester_is_answered(words: object) -> None:
    said = checking.get_reading(words)
    assert said["error"] == "mistake"
    assert said["problem"]
    assert said["remedy"]
