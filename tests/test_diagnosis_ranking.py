"""One best finding first, what says the same told once, and alternatives folded instead of listed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_diagnosis_static import LETTERS, config, diagnosed

from engine.constraints import read
from engine.diagnosis import empty, examination, schema
from engine.diagnosis.merging import merged
from engine.diagnosis.subject import SEVERITIES
from engine.errors import Edit, Finding, Place
from engine.pattern import Union, nodes

BRANCHES = 12


def branch(n: int, value: Any) -> dict[str, Any]:
    properties = {"kind": {"const": f"k{n}"}, "v": value}
    return {"type": "object", "properties": properties, "required": ["kind", "v"], "additionalProperties": False}


def any_of(fault: Callable[[int], Any]) -> str:
    return json.dumps({"anyOf": [branch(n, fault(n)) for n in range(BRANCHES)]})


FAULTS: dict[str, tuple[str, Any]] = {
    "keyword-unknown": ("maxLenght", {"type": "string", "maxLenght": 2}),
    "unique-not-enforced": ("uniqueItems", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    "format-not-enforced": ("format", {"type": "string", "format": "idn-email"}),
    "default-contradicts": ("default", {"type": "integer", "minimum": 5, "default": 2}),
    "pattern-dialect": ("pattern", {"type": "string", "pattern": "^\\d+$"}),
}


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_in_each_of_twelve_branches_is_one_finding_that_names_the_others_and_is_mended_at_once(
    code: str,
) -> None:
    keyword, fault = FAULTS[code]
    asked = config("json_schema", any_of(lambda n: fault), 64)
    found = diagnosed(asked)
    (finding,) = [f for f in found if f.code == code]
    assert finding.where is not None
    assert finding.where.pointer == f"/anyOf/0/properties/v/{keyword}"
    places = [f"/anyOf/{n}/properties/v/{keyword}" for n in range(1, BRANCHES)]
    assert finding.evidence["same_at"] == places
    assert [place.pointer for place in finding.related] == places
    assert "11 more places" in finding.message
    if code != "pattern-dialect":  # a note
        after = examination.examine(dataclasses.replace(asked, **finding.remedies[0].changes), LETTERS).found
        assert code not in [f.code for f in after]


@pytest.mark.parametrize("deep", [0, 5, 11])
def test_of_twelve_branches_that_allow_nothing_the_deepest_is_explained_and_the_others_are_counted(deep: int) -> None:
    shallow = {"type": "string", "minLength": 5, "maxLength": 2}
    bounds = {"type": "integer", "minimum": 5, "maximum": 3}
    deeper = {"type": "object", "properties": {"w": bounds}, "required": ["w"], "additionalProperties": False}
    asked = config("json_schema", any_of(lambda n: deeper if n == deep else shallow), 80)
    found = diagnosed(asked)
    (finding,) = [f for f in found if f.severity == "error"]
    assert found[0] == finding
    assert finding.code == "empty"
    pointers = [place["pointer"] for place in finding.evidence["conflict"]]
    assert pointers[:2] == [f"/anyOf/{deep}/properties/v/properties/w/{name}" for name in ("minimum", "maximum")]
    assert all(pointer.startswith(f"/anyOf/{deep}/") for pointer in pointers)
    assert "the 11 other branches of /anyOf allow nothing either" in finding.message
    for remedy in finding.remedies:
        assert not read("json_schema", remedy.changes["source"]).automaton.is_empty


def test_of_twelve_functions_that_can_not_be_called_one_is_explained() -> None:
    parameters = {"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]}
    source = json.dumps([{"name": f"f{n}", "parameters": parameters} for n in range(BRANCHES)])
    finding = diagnosed(config("tools", source, 80))[0]
    assert (finding.code, finding.where and finding.where.pointer) == ("empty", "/0/parameters/properties/x/enum")
    assert "the 11 other functions allow nothing either" in finding.message


def test_of_twelve_alternatives_of_a_regex_that_match_nothing_one_is_explained() -> None:
    regex = "|".join(f"k{n}(?=a)b" for n in range(BRANCHES))
    finding = diagnosed(config("regex", regex))[0]
    assert finding.code == "empty"
    assert [regex[p["start"] : p["stop"]] for p in finding.evidence["conflict"]] == ["(?=a)", "b"]
    assert "the 11 other alternatives around it allow nothing either" in finding.message


def test_alternatives_outside_of_a_conflict_are_not_said_to_allow_nothing() -> None:
    finding = diagnosed(config("regex", "(?:aa|bb|cc|dd|ee)x(?=b)c"))[0]
    assert finding.code == "empty"
    assert finding.evidence["folded"] == []
    inside = {"anyOf": [{"type": "string", "maxLength": n} for n in range(1, 6)]}
    source = json.dumps({"allOf": [inside, {"type": "integer", "minimum": 5, "maximum": 3}]})
    finding = diagnosed(config("json_schema", source))[0]
    assert "maxLength" not in finding.message


@given(st.integers(4, 7), st.integers(0, 10**6))
def test_what_is_found_in_the_branch_that_is_looked_at_is_a_minimal_conflict_of_it(count: int, seed: int) -> None:
    parts = [f"{'xy'[(seed >> n) & 1] * (1 + n % 3)}(?=a)b" for n in range(count)]
    pattern = read("regex", f"(?:{'|'.join(parts)})z*").pattern
    reduced, folded = empty.one_branch(pattern)
    assert not any(isinstance(n, Union) and len(n.parts) > schema.SEVERAL for n in nodes(reduced))
    assert [lost for lost, _ in folded] == [count - 1]
    assert empty.automaton.compile(reduced).is_empty
    needed = empty.minimal_demands(reduced)
    listed = empty.demands_by_origin(reduced)
    for demand in needed:
        dropped = {path for d in listed if d not in needed or d == demand for path in d.paths}
        assert not empty.automaton.compile(empty.without(reduced, dropped)).is_empty


def test_findings_that_differ_in_more_than_their_place_are_told_each() -> None:
    faults = [{"type": "string", "format": "idn-email"}, {"type": "string", "format": "iri"}, {"type": "string"}]
    source = json.dumps({"anyOf": [branch(n, fault) for n, fault in enumerate(faults)]})
    found = [f for f in examination.examine(config("json_schema", source, 64), LETTERS).found if "format" in f.code]
    assert len(found) == 2
    assert all("same_at" not in f.evidence for f in found)


def test_edits_that_overlap_are_not_made_together() -> None:
    source = "abcdef"

    def finding(start: int, stop: int) -> Finding:
        edits = (Edit("Cut", start, stop, ""), Edit("Write", start, start + 1, "X"))
        return Finding("c", "info", Place(source, start, stop, f"/{start}"), f"At /{start}.", edits=edits)

    (one,) = merged([finding(0, 2), finding(3, 5)])
    assert [edit.apply(source) for edit in one.edits] == ["cf", "XbcXef"]
    (one,) = merged([finding(0, 4), finding(3, 5)])
    assert [edit.apply(source) for edit in one.edits] == ["XbcXef"]


def test_errors_come_before_warnings_and_notes_and_the_one_that_explains_most_comes_first() -> None:
    codes = [*examination.ORDER, "other"]
    severities = SEVERITIES
    mixed = [Finding(code, severity, None, f"{code} {severity}") for code in reversed(codes) for severity in severities]
    assert [(f.severity, f.code) for f in examination.ranked(mixed)] == [(s, c) for s in severities for c in codes]


def test_a_canvas_too_short_hides_no_better_explanation() -> None:
    # Pins, length and blanks are all wrong; what no canvas mends comes first.
    asked = config("regex", r"(?=a)b\s*[0-9]{20}", 8, pins=((0, 3),))
    found = diagnosed(asked)
    assert [f.code for f in found] == ["empty"]
    asked = config("regex", r"b\s*[0-9]{20}", 8, pins=((0, 3),))
    assert [f.code for f in diagnosed(asked)][:2] == ["length", "blanks"]
