"""Generated JSON schemas and regexes with instances, judged by `jsonschema` and by `re`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import jsonschema
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchmarks.instances import in_schema_order
from engine.automaton import ByteAutomaton

NAMES = st.sampled_from(["a", "b", "é", 'q"', "long name"])
TEXTS = st.text(st.sampled_from('abé"\\ 1'), max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-20, 20) | TEXTS | st.sampled_from([0.5, -2.25, 10.0])


def _some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw an object that has some of these keywords."""
    return st.fixed_dictionaries({}, optional=keywords)


def _typed(kind: str, keywords: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return keywords.map(lambda found: {"type": kind, **found})


_SMALL = st.integers(0, 4)
_BOUND = st.integers(-12, 12) | st.sampled_from([0.5, -1.5])
_LEAVES = st.one_of(
    st.sampled_from([True, {"type": "boolean"}, {"type": "null"}, {"type": ["integer", "string"]}]),
    st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=4, unique_by=json.dumps)),
    st.builds(lambda value: {"const": value}, SCALARS),
    _typed("integer", _some(minimum=_BOUND, maximum=_BOUND, multipleOf=st.integers(1, 5))),
    _typed("number", _some(exclusiveMinimum=_BOUND, exclusiveMaximum=_BOUND, multipleOf=st.sampled_from([0.5, 2, 10]))),
    _some(minimum=_BOUND, minLength=_SMALL, minItems=_SMALL, minProperties=_SMALL),
    _typed(
        "string",
        _some(minLength=_SMALL, maxLength=_SMALL, pattern=st.sampled_from(["^a", "b$", "[ab]{2}", r"\d", "^(a|é)+$"])),
    ),
)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    two = st.lists(inner, min_size=1, max_size=2)
    members = st.dictionaries(NAMES, inner, max_size=3)
    listed = st.lists(NAMES, max_size=2, unique=True)
    return st.one_of(
        _some(
            patternProperties=st.dictionaries(st.sampled_from(["^a", "é", "n.*e$"]), inner, max_size=2),
            propertyNames=inner,
            dependentRequired=st.dictionaries(NAMES, listed, max_size=2),
            dependentSchemas=st.dictionaries(NAMES, inner, max_size=1),
            minProperties=_SMALL,
            required=listed,
            properties=members,
            unevaluatedProperties=st.just(False) | inner,
        ),
        _typed(
            "array",
            _some(
                contains=inner,
                minContains=st.integers(0, 2),
                maxContains=st.integers(0, 3),
                uniqueItems=st.booleans(),
                items=inner,
                maxItems=_SMALL,
                unevaluatedItems=st.just(False) | inner,
            ),
        ),
        inner.map(lambda part: {"not": part}),
        _typed(
            "object",
            _some(
                properties=members,
                required=st.lists(NAMES, max_size=2, unique=True),
                additionalProperties=st.just(False) | inner,
                maxProperties=_SMALL,
            ),
        ),
        _typed("array", _some(prefixItems=two, items=inner | st.just(False), minItems=_SMALL, maxItems=_SMALL)),
        two.map(lambda parts: {"anyOf": parts}),
        two.map(lambda parts: {"oneOf": parts}),
        two.map(lambda parts: {"allOf": parts}),
        st.builds(lambda part, other: {"allOf": [part, {"not": other}]}, inner, inner),
        st.builds(lambda c, t, e: {"if": c, "then": t, "else": e}, inner, inner, inner),
    )


SCHEMAS = st.builds(
    lambda schema, again: schema if isinstance(schema, bool) else schema | {"$defs": {"again": again}},
    st.recursive(_LEAVES | st.just({"$ref": "#/$defs/again"}), _around, max_leaves=5),
    _LEAVES | st.just({"type": "array", "items": {"$ref": "#/$defs/again"}}),
)
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5
)
"""Instances that no schema is behind; most are not valid."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    """Draw a schema with instances: some close to what it asks for, some of no schema."""
    schema = draw(SCHEMAS)
    return schema, [*draw(st.lists(_close(schema), min_size=2, max_size=4)), draw(ANY_JSON)]


_SPEAKS_OF = dict.fromkeys(("properties", "patternProperties", "required", "minProperties"), "object")


def _close(schema: Any) -> st.SearchStrategy[Any]:
    """Draw instances that follow a schema's types, members and alternatives, but not its bounds."""
    if isinstance(schema, bool):
        return ANY_JSON
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]]) | SCALARS
    parts = [part for keyword in ("anyOf", "oneOf", "allOf") for part in schema.get(keyword, [])]
    parts += [schema[keyword] for keyword in ("if", "then", "else") if keyword in schema]
    match schema.get("type") or next((kind for keyword, kind in _SPEAKS_OF.items() if keyword in schema), None):
        case "object":
            more = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
            others = {
                name: _close(part) for part in schema.get("patternProperties", {}).values() for name in ("a", "é")
            }
            members = {name: _close(part) for name, part in schema.get("properties", {}).items()}
            return st.fixed_dictionaries({}, optional={"more": _close(more)} | others | members)
        case "array":
            items = [*schema.get("prefixItems", []), schema.get("items", True), schema.get("contains", True)]
            return st.lists(st.one_of(*map(_close, items)), max_size=4)
        case "string":
            return TEXTS
        case "integer" | "number":
            return st.integers(-20, 20) | st.sampled_from([0.5, -2.25, 10.0])
        case _:
            return st.one_of(*map(_close, parts)) if parts else SCALARS


def texts(schema: Any, instances: list[Any]) -> tuple[list[str], list[str]]:
    """Write instances with their keys in the order of the schema, compact and spaced.

    Returns:
        Those that `jsonschema` accepts, and those that it doesn't. A valid one whose numbers have an exponent is left
        out: how such numbers are written is a policy.
    """
    validator = jsonschema.Draft202012Validator(schema)
    accepted, rejected = [], []
    for instance in instances:
        ordered = in_schema_order(schema, instance)
        written = [json.dumps(ordered, ensure_ascii=False, separators=by) for by in ((",", ":"), (", ", ": "))]
        if not validator.is_valid(instance):
            rejected += written
        elif not re.search(r"\d[eE][-+]?\d", written[0]):
            accepted += written
    return accepted, rejected


REGEX_LEAVES = st.sampled_from(["a", "b", "é", ".", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\b", "(?=a)", "(?!b)"])
REGEXES = st.recursive(
    REGEX_LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.builds(
            lambda part, times: f"(?:{part}){times}",
            inner,
            st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?", "{0,2}?"]),
        ),
        inner.map(lambda part: f"(?<={part[0]})" if part[0] in "abé" else part),
    ),
    max_leaves=6,
)


@st.composite
def regex_cases(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a regex with texts: some that Hypothesis makes for it, some over the same few characters."""
    source = draw(REGEXES)
    looks = "(?" in source.replace("(?:", "")
    own = [] if looks else draw(st.lists(st.from_regex(source, fullmatch=True), max_size=2))
    return source, own + draw(st.lists(st.text(st.sampled_from("abé1 \n"), max_size=5), min_size=4, max_size=8))


def near(machine: ByteAutomaton, rng: random.Random) -> list[str]:
    """Return random walks through an automaton, and the same with one character changed, dropped or doubled."""
    found = []
    for _ in range(8):
        state, data = machine.start, bytearray()
        for _ in range(60):
            if machine.accepting[state] and rng.random() < 0.3:
                break
            moves = [b for b in range(256) if machine.move[state, machine.byte_class[b]] >= 0]
            if not moves:
                break
            data.append(rng.choice(moves))
            state = machine.move[state, machine.byte_class[data[-1]]]
        text = data.decode("utf-8", "ignore")
        at = rng.randrange(len(text) + 1)
        found += [
            text,
            text[:at] + text[at + 1 :],
            text[:at] + text[at : at + 1] + text[at:],
            text[:at] + "~é1"[at % 3] + text[at:],
        ]
    # A long run of "a" takes Python exponential time on some of these patterns; ours has no such trouble to test.
    return [text for text in found if len(text) < 40]


def run(drawn: st.SearchStrategy[Any], check: Callable[[Any], None], count: int) -> None:
    """Check `count` drawn cases, always the same ones."""

    @seed(1)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn)
    def checked(case: Any) -> None:
        check(case)

    checked()
