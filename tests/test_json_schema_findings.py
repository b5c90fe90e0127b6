"""What is said about a JSON schema, and that each replacement that is offered mends what it is offered for."""

from __future__ import annotations

import itertools
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


MANY_CASES = {
    "unevaluatedProperties": False,
    "allOf": [{"anyOf": [{"properties": {f"{c}{i}": {"type": "null"}}} for i in range(3)]} for c in "abcde"],
}
CONTRADICTIONS = [
    ("default-contradicts", {"type": "integer", "default": "x"}, "/default"),
    ("example-contradicts", {"type": "integer", "examples": [1, "x", 2]}, "/examples/1"),
    ("unsatisfiable", {"type": "integer", "minimum": 5, "maximum": 3}, "/type"),
    ("pattern-dialect", {"type": "string", "pattern": r"\Aa\Z"}, "/pattern"),
    ("pattern-dialect", {"patternProperties": {r"\Aa\Z": True}}, r"/patternProperties/\Aa\Z"),
    ("unique-not-enforced", {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, "/uniqueItems"),
    ("items-too-many", {"type": ["array", "null"], "maxItems": 10**6, "items": {"type": "string"}}, "/maxItems"),
    ("items-too-many", {"type": "array", "minItems": 10**30, "items": {"type": "string"}}, "/minItems"),
    ("properties-too-many", {"minProperties": 1, "maxProperties": 100}, "/maxProperties"),
    ("one-of-as-any-of", {"oneOf": [{"format": "iri"}, {"type": "string", "pattern": "a"}]}, "/oneOf"),
    ("format-unknown", {"type": "string", "format": "phone"}, "/format"),
    ("format-not-enforced", {"type": "string", "format": "iri"}, "/format"),
    ("pattern-not-regular", {"type": "string", "pattern": r"^(a+)\1$"}, "/pattern"),
    ("pattern-not-regular", {"patternProperties": {r"(a+)\1": True}}, r"/patternProperties/(a+)\1"),
    ("pattern-too-large", {"type": "string", "pattern": "(a{900}b{900}){9}"}, "/pattern"),
    ("multiple-too-fine", {"type": "number", "multipleOf": 0.123456789}, "/multipleOf"),
    ("length-not-counted", {"type": "string", "format": "hostname", "maxLength": 253}, "/maxLength"),
    ("not-dropped", {"type": "string", "not": {"pattern": r"^(a+)\1$"}}, "/not/pattern"),
    ("any-depth", {"type": "object", "properties": {"a": {"type": "null"}}}, "/type"),
    ("unevaluated-not-enforced", MANY_CASES, "/unevaluatedProperties"),
    ("any-depth", {"properties": {"a": {"type": "object", "properties": {}}}, "type": "object"}, "/properties/a/type"),
    ("length-too-large", {"type": "string", "maxLength": 70_000}, "/maxLength"),
    ("shadowed", {"anyOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}, "/anyOf/1"),
    ("shadowed", {"anyOf": [{"enum": [1, "a"]}, {"const": True}, {"type": "integer"}, {"const": 4}]}, "/anyOf/3"),
    ("shadowed", {"oneOf": [{"minProperties": 2, "type": "object"}, {"type": "object"}]}, "/oneOf/0"),
    ("dead-alternative", {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 5, "maximum": 3}]}, "/anyOf/1"),
    (
        "dead-alternative",
        {"type": "string", "anyOf": [{"type": "null"}, {"maxLength": 3}, {"minLength": 5}]},
        "/anyOf/0",
    ),
    ("dead-alternative", {"oneOf": [{"type": "string", "enum": [1, 2]}, {"type": "null"}]}, "/oneOf/0"),
]


@pytest.mark.parametrize(("code", "schema", "pointer"), CONTRADICTIONS)
def test_each_change_that_is_offered_mends_what_is_told(code, schema, pointer):
    constraint = read(schema)
    (finding,) = found(constraint, code)
    assert finding.where.pointer == pointer
    assert finding.edits
    for edit in finding.edits:
        assert found(read(edit.apply(constraint.text)), code) == []


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "object", "properties": {"a": {"type": "null"}}}, "Further members of any value are allowed at the root;"),
        ({"items": {"properties": {}, "type": "object"}, "type": "array"}, "Further members of any value are allowed at /items;"),
        ({"type": "object", "properties": {"a": True}, "additionalProperties": False}, "Any value is allowed at /properties/a;"),
    ],
)  # fmt: skip
def test_an_object_that_is_open_is_told_apart_from_a_value_that_may_be_any(schema, told):
    (finding,) = found(read(schema), "any-depth")
    assert finding.message.startswith(told)


def test_of_a_name_that_stands_twice_the_one_that_is_not_used_can_be_taken_out():
    constraint = read('{"type": "string", "maxLength": 3, "type": "null"}')
    (finding,) = found(constraint, "duplicate-key")
    mended = read(finding.edits[0].apply(constraint.text))
    assert found(mended, "duplicate-key") == []
    assert mended.accepts("null")
    assert not mended.accepts('"a"')


def test_no_change_is_offered_where_the_place_says_nothing_of_it():
    for schema in (
        {"type": "object"},
        {"properties": {"a": True}},
        {"oneOf": [{"format": "iri"}, True], "anyOf": [True]},
    ):
        assert [f.edits for f in read(schema).findings if f.code in ("any-depth", "one-of-as-any-of")] != []
        assert not any(f.edits for f in read(schema).findings if f.code in ("any-depth", "one-of-as-any-of"))


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"anyOf": [{"type": "number", "minimum": 2}, {"type": "integer"}]},
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"anyOf": [{"pattern": "^a", "type": "string"}, {"pattern": "b$", "type": "string"}]},
        {"type": "string", "default": "a", "examples": ["b", "c"]},
    ],
)
def test_alternatives_of_which_each_adds_something_and_samples_that_fit_are_not_told_of(schema):
    told = {"shadowed", "dead-alternative", "default-contradicts", "example-contradicts"}
    assert not told & {f.code for f in read(schema).findings}


def test_taking_out_an_alternative_that_nothing_takes_keeps_the_language():
    schema = {
        "type": ["string", "null"],
        "anyOf": [{"type": "integer"}, {"maxLength": 1, "type": "string"}, {"const": None}],
    }
    constraint = read(schema)
    (finding,) = found(constraint, "dead-alternative")
    less = read(finding.edits[0].apply(constraint.text))
    texts = ["null", "1", '""', '"a"', '"ab"', "true"]
    assert [text for text in texts if constraint.accepts(text)] == ["null", '""', '"a"']
    assert [text for text in texts if less.accepts(text)] == ["null", '""', '"a"']


def test_the_alternatives_of_what_accepts_nothing_are_not_told_one_by_one():
    nothing = {"type": "boolean", "anyOf": [{"type": "integer"}, {"type": "string"}]}
    schema = {"properties": {"a": {"type": "null", "enum": [1]}, "b": nothing}, "type": "object"}
    assert found(read(schema), "unsatisfiable")
    assert found(read(schema), "dead-alternative") == []


@pytest.mark.parametrize(
    ("source", "superfluous"),
    [
        (r"a|ab|\w+", {"a", "ab"}),
        (r"(foo|foobar|fo{1,2})x|bar", {"foo"}),
        (r"x(?:|a|)", {""}),
        (r"(?:a|b)|c", set()),
        (r"ab?|a(?=b)b|(?!b)c", set()),
        (r"(?>a|ab)c", set()),
    ],
)
def test_a_regexs_superfluous_alternatives_are_told_and_taking_one_out_keeps_the_language(source, superfluous):
    constraint = constraints.read("regex", source)
    told = found(constraint, "shadowed")
    assert {source[f.where.start : f.where.stop].strip("|)") for f in told} == superfluous
    for finding in told:
        less = constraints.read("regex", finding.edits[0].apply(source))
        texts = [text for n in range(4) for text in map("".join, itertools.product("abxfo", repeat=n))]
        assert [t for t in texts if less.accepts(t) != constraint.accepts(t)] == []
