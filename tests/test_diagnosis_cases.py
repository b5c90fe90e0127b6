"""Each class of failure on real inputs: reported bugs and functions of BFCL, with the expected class, place and remedy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from test_diagnosis_static import BUGS, DATA, LETTERS, any_accepted, config, diagnosed, marked

from benchmarks import calls
from engine import token_automaton
from engine.constraints import read
from engine.decode import denoise
from engine.diagnosis import dynamic, static
from engine.errors import Finding
from engine.models import table
from engine.trace import Config, Header, Trace

BFCL = {c["id"]: c for c in map(json.loads, (DATA / "bfcl/sample.jsonl").read_text(encoding="utf-8").splitlines())}
TOKENS = [*map(chr, range(0x20, 0x7F)), "<end>"]


def bug(name: str) -> tuple[str, str]:
    given = BUGS[name]["input"]
    return BUGS[name]["kind"], given if isinstance(given, str) else json.dumps(given)


def functions(name: str) -> str:
    return json.dumps(BFCL[name]["functions"])


def truth(name: str, syntax: str) -> str:
    return calls.written(calls.truths(BFCL[name], short=True), syntax)


def believing(texts: dict[str, float], sure: float = 0.95) -> table.Table:
    """A model that believes in some texts, each with its share, and a little in every token at every position."""
    rows = np.full((max(map(len, texts)) + 2, len(TOKENS)), (1 - sure) / len(TOKENS))
    for text, share in texts.items():
        for i, row in enumerate(rows):
            row[TOKENS.index(text[i]) if i < len(text) else -1] += sure * share
    return table.parse(json.dumps({"tokens": TOKENS, "eos": "<end>", "mean_field": rows.tolist()}), "typed")


def run(kind: str, source: str, model: table.Table, sampler: str = "midpoint", **reading: Any) -> Trace:
    length = int(model.facts["length"])
    asked = Config("", kind, source, length=length, steps=length, block_length=length, temperature=1.0, sampler=sampler)
    automaton = token_automaton.compile(read(kind, source, **reading), model.vocabulary)
    return Trace(Header(asked, model.facts, model.vocabulary, automaton), tuple(denoise(model, automaton, asked)))


def said(trace: Trace, code: str) -> Finding:
    return next(f for f in dynamic.findings(trace) if f.code == code)


@pytest.mark.parametrize(
    ("kind", "source", "length", "needed", "place"),
    [
        ("tools", functions("simple_python_22"), 32, 51, "/0/name"),
        ("tools", functions("live_simple_244-126-2"), 24, 46, "/0/name"),
        (*bug("llg293-date"), 8, 12, "/format"),
        (*bug("ol971-const-true"), 12, 25, "/properties/a"),
    ],
)
def test_c4_a_canvas_too_short_for_a_real_constraint_names_its_largest_part_and_the_length(
    kind: str, source: str, length: int, needed: int, place: str
) -> None:
    finding = diagnosed(config(kind, source, length))[0]
    assert (finding.code, finding.severity) == ("length", "error")
    assert finding.where is not None
    assert finding.where.pointer == place
    (remedy,) = finding.remedies
    assert remedy.changes["length"] == needed
    assert not any(f.severity == "error" for f in diagnosed(config(kind, source, needed)))


@pytest.mark.parametrize(
    ("kind", "source", "length", "pins", "blamed"),
    [
        (*bug("oc-found-prefix-alt"), 4, {0: "n", 1: "o", 2: "x"}, [2]),
        (*bug("oc-found-optional-tail"), 6, {1: ".", 5: "7", 4: "."}, [1, 5]),
        (*bug("llg293-date"), 12, {0: '"', 6: "9", 9: "4"}, [6]),
        ("tools", functions("live_simple_244-126-2"), 50, {0: "{", 12: "m"}, [12]),
    ],
)
def test_c6_pins_against_a_real_constraint_are_named_and_taking_one_out_leaves_a_completion(
    kind: str, source: str, length: int, pins: dict[int, str], blamed: list[int]
) -> None:
    ids = {data.decode(): token for token, data in enumerate(LETTERS.token_bytes) if data}
    placed = tuple((i, ids[text]) for i, text in pins.items())
    finding = diagnosed(config(kind, source, length, pins=placed))[0]
    assert (finding.code, finding.severity) == ("pins", "error")
    assert [pin["position"] for pin in finding.evidence["pins"]] == blamed
    assert finding.remedies
    compiled = token_automaton.compile(read(kind, source), LETTERS)
    for remedy in finding.remedies:
        assert any_accepted(compiled, dict(remedy.changes["pins"]), length)


@pytest.mark.parametrize(
    ("name", "wanted", "position", "place", "source"),
    [
        ("ig10-anchors", "abc", 2, "b", "^a(?:b|c)+$"),
        ("rx-unicode-digit", "1a", 1, r"\d", r"(?:\d|a){2}"),
        ("oc-found-optional-tail", "12,50", 2, "[0-9]", None),
    ],
)
def test_c7_what_the_model_wants_beside_a_reported_regex_is_named_and_can_be_allowed(
    name: str, wanted: str, position: int, place: str, source: str | None
) -> None:
    finding = said(run(*bug(name), believing({wanted: 1.0})), "belief")
    assert marked(finding) == place
    assert finding.focus.position == position
    assert f"wanted {wanted[position]!r}" in finding.message
    assert [remedy.changes["source"] for remedy in finding.remedies] == ([source] if source else [])


@pytest.mark.parametrize("name", ["simple_python_22", "live_simple_244-126-2", "simple_python_223"])
def test_c7_a_model_that_calls_in_another_syntax_loses_its_belief_and_one_that_obeys_keeps_it(name: str) -> None:
    source = functions(name)
    asked_for, other = truth(name, "json"), truth(name, "python")
    stray = run("tools", source, believing({other.ljust(len(asked_for)): 1.0}))
    assert stray.accepted
    finding = said(stray, "belief")
    assert finding.severity == "info"
    assert finding.where is not None
    assert finding.where.pointer == "/0/name"
    assert finding.evidence["log_partition"] < -100
    assert sum(part["nats"] for part in finding.evidence["parts"]) == pytest.approx(-finding.evidence["log_partition"])
    calm = said(run("tools", source, believing({asked_for: 1.0})), "belief")
    assert calm.evidence["log_partition"] > -10
    assert "wanted" not in calm.message


@pytest.mark.parametrize("name", ["multiple_78", "multiple_20", "multiple_92"])
def test_c10_of_several_functions_the_one_that_was_called_is_told_with_what_the_others_had(name: str) -> None:
    names = [f["name"] for f in BFCL[name]["functions"]]
    right = truth(name, "python")
    called = names.index(right.partition("(")[0])
    rival = (called + 1) % len(names)
    wrong = names[rival] + right[right.index("(") :]
    trace = run("tools", functions(name), believing({right: 0.6, wrong: 0.4}, 0.98), call_syntax="python")
    assert trace.accepted
    won = names.index(trace.text.partition("(")[0])
    finding = said(trace, "branch")
    assert finding.where is not None
    assert finding.where.pointer == f"/{won}"
    first, *others = finding.evidence["branches"]
    assert first["died"] is None
    assert others
    assert all(branch["died"] is not None and branch["probability"] < 1 for branch in others)
    assert said(trace, "accepted")
    assert not any(f.severity == "error" for f in dynamic.findings(trace))


def test_an_unconstrained_call_in_another_syntax_says_since_when_it_can_not_be_accepted_and_what_is_nearest() -> None:
    name = "live_simple_244-126-2"
    asked_for, other = truth(name, "json"), truth(name, "python")
    trace = run("tools", functions(name), believing({other.ljust(len(asked_for)): 1.0}), "independent")
    finding = dynamic.findings(trace)[0]
    assert (finding.code, finding.severity, trace.accepted) == ("no-return", "error", False)
    assert finding.evidence["conflict"]
    assert read("tools", functions(name)).accepts(finding.evidence["nearest"]["text"])
    assert finding.remedies[0].changes == {"sampler": "midpoint"}


def test_a_nondeterministic_constraint_is_diagnosed_like_any_other() -> None:
    regex = "[ab]*a[ab]{20}"  # as a deterministic automaton 2²¹ states
    text = "ab" * 12
    exact = run("regex", regex, believing({text: 1.0}))
    assert not exact.header.automaton.deterministic
    assert exact.accepted == bool(read("regex", regex).accepts(exact.text))
    assert {"accepted", "belief"} <= {f.code for f in dynamic.findings(exact)}
    failed = run("regex", regex, believing({"b" * 24: 1.0}), "independent")
    finding = dynamic.findings(failed)[0]
    assert finding.code == "no-return"
    assert read("regex", regex).accepts(finding.evidence["nearest"]["text"])
    asked = config("regex", regex, 10)
    assert static.findings(asked, LETTERS)[0].code == "length"
