"""What is said about a JSON schema, and that each replacement that is offered mends what it is offered for."""

from __future__ import annotations

import json

import pytest

from engine import constraints

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def read(schema, **options):
    return constraints.read("json_schema", schema, **options)


def found(constraint, code):
    return [finding for finding in constraint.findings if finding.code == code]


MENDED = [
    ("keyword-of-another-draft", {"dependencies": {"a": ["b"]}}, '{"a": 1}'),
    ("keyword-of-another-draft", {"dependencies": {"a": {"minProperties": 2}}}, '{"a": 1}'),
    ("keyword-of-another-draft", {"$schema": DRAFT_7, "dependentRequired": {"a": ["b"]}}, '{"a": 1}'),
    ("keyword-of-another-draft", {"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}, "2"),
    ("keyword-unknown", {"type": "string", "maxlength": 3}, '"abcd"'),
    ("keyword-unknown", {"type": "object", "require": ["a"]}, "{}"),
    ("draft-unknown", {"$schema": "https://example.com/mine", "type": "null"}, None),
    ("items-listed", {"items": [{"type": "integer"}], "additionalItems": False}, None),
]


@pytest.mark.parametrize(("code", "schema", "rejected"), MENDED)
def test_a_keyword_that_says_nothing_is_told_and_what_is_offered_makes_it_speak(code, schema, rejected):
    constraint = read(schema)
    (finding,) = found(constraint, code)
    assert finding.where.pointer is not None
    (edit,) = finding.edits
    mended = read(edit.apply(constraint.text))
    assert found(mended, code) == []
    if rejected is None:
        return
    assert constraint.accepts(rejected)
    assert not mended.accepts(rejected)


def test_openapi_nullable_is_told_with_the_type_that_does_it():
    constraint = read({"type": "string", "nullable": True})
    (finding,) = found(constraint, "keyword-unknown")
    assert not constraint.accepts("null")
    assert read(finding.edits[0].apply(constraint.text)).accepts("null")


def test_the_names_of_members_and_extensions_are_no_keywords():
    schema = {"properties": {"dependencies": {"type": "string"}, "maxlength": True}, "x-internal": 1, "$comment": "c"}
    assert not {"keyword-unknown", "keyword-of-another-draft"} & {f.code for f in read(schema).findings}


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        ({"$schema": DRAFT_7, "prefixItems": [{"type": "string"}]}, "[1]", None),
        ({"$schema": DRAFT_7, "contains": {"const": 1}, "minContains": 2}, "[1]", "[2]"),
        ({"$schema": DRAFT_7, "dependencies": {"a": ["b"]}}, '{"b": 1}', '{"a": 1}'),
        ({"$schema": DRAFT_7, "items": [True], "additionalItems": False}, "[1]", "[1, 2]"),
        ({"items": [True], "additionalItems": False}, "[1]", "[1, 2]"),
        ({"$recursiveRef": "#/nowhere"}, "1", None),
    ],
)
def test_each_draft_has_its_own_keywords(schema, accepted, rejected):
    constraint = read(schema)
    assert constraint.accepts(accepted)
    assert rejected is None or not constraint.accepts(rejected)


@pytest.mark.parametrize("least", [0, 1, 2])
def test_a_single_item_has_no_equal(least):
    unique = read({"type": "array", "uniqueItems": True, "minItems": min(least, 1), "maxItems": 1})
    repeated = read({"type": "array", "not": {"uniqueItems": True}, "maxItems": 1})
    for item in (1.5, "a", None, [1], {"a": 1}):
        assert unique.accepts(json.dumps([item]))
        assert not repeated.accepts(json.dumps([item]))
    assert unique.accepts("[]") == (least == 0)
