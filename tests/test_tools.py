"""Lists of functions as calls, in JSON and in Python's syntax."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from benchmarks import calls
from benchmarks.constraints import read_calls
from engine import constraints
from engine.errors import ConfigError, PatternSyntaxError

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/bfcl/sample.jsonl").read_text(encoding="utf-8").split("\n")
    if line
]
# Where every argument is given that the ground truth lists, one of them breaks the schema of its own function.
BREAKS_ITS_SCHEMA = {
    "live_simple_234-123-1",
    "live_simple_58-27-0",
    "live_simple_30-8-0",
    "live_simple_151-95-8",
    "live_multiple_154-58-8",
}
TOOL = {
    "type": "function",
    "function": {
        "name": "a.note",
        "parameters": {
            "type": "dict",
            "properties": {
                "text": {"type": "string"},
                "n": {"type": "integer"},
                "x": {"type": "float"},
                "any": {"type": "any"},
            },
            "required": ["text"],
        },
    },
}


@pytest.mark.parametrize("syntax", ["json", "python"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_ground_truth_of_a_call_is_accepted(case, syntax):
    constraint = read_calls(case, syntax)
    for short in (False, True):
        truths = calls.truths(case, short=short)
        breaks = any(calls.broken(case, call) for call in truths)
        assert breaks == (not short and case["id"] in BREAKS_ITS_SCHEMA)
        assert constraint.accepts(calls.written(truths, syntax)) == (not breaks)


@pytest.mark.parametrize(
    "content", ["it's", 'say "x"', "both ' and \"", "a\\b", "line\nend\ttab", "é😀", "\x00\x7f\xa0\u2028", ""]
)
def test_a_string_is_written_as_python_writes_it(content):
    constraint = constraints.read("tools", [TOOL], call_syntax="python")
    text = f"a.note(text={content!r})"
    assert ast.literal_eval(repr(content)) == content
    assert constraint.accepts(text)
    for wrong in (text.replace(repr(content), content or "x"), text[:-1], text.replace("text=", "")):
        assert not constraint.accepts(wrong)


def test_arguments_are_keywords_in_order_or_in_any_order():
    ordered = constraints.read("tools", [TOOL], call_syntax="python")
    free = constraints.read("tools", [TOOL], call_syntax="python", key_order="any")
    for text, in_order in (("a.note(text='a', n=1, x=2.5)", True), ("a.note(n=1,text='a')", False)):
        assert ordered.accepts(text) == in_order
        assert free.accepts(text)
    for wrong in (
        "a.note()",
        "a.note(text='a', n=1.0)",
        "a.note(text='a', z=1)",
        "a.note(text='a', text='a')",
        "a.note(n=1)",
    ):
        assert not free.accepts(wrong)


def test_values_are_literals_of_the_language_of_the_call():
    for syntax, accepted, rejected in (
        (
            "json",
            '{"name": "a.note", "arguments": {"text": "a", "any": [true, null]}}',
            '{"name": "a.note", "arguments": {"text": "a", "any": [True]}}',
        ),
        ("python", "a.note(text='a', any=[True, None, {'k': 1.5}])", "a.note(text='a', any=[true])"),
    ):
        constraint = constraints.read("tools", {"tools": [TOOL]}, call_syntax=syntax)
        assert constraint.accepts(accepted)
        assert not constraint.accepts(rejected)


def test_a_function_without_parameters_takes_none():
    for parameters in ({}, {"parameters": {"type": "object", "properties": {}}}):
        constraint = constraints.read("tools", [{"name": "f"} | parameters])
        assert constraint.accepts('{"name": "f", "arguments": {}}')
        assert not constraint.accepts('{"name": "f", "arguments": {"a": 1}}')


def test_a_name_that_python_does_not_have_is_refused_with_its_place():
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a-b": {"type": "integer"}}}}
    with pytest.raises(ConfigError) as caught:
        constraints.read("tools", [tool], call_syntax="python")
    assert caught.value.place.pointer == "/0/parameters/properties/a-b"


@pytest.mark.parametrize("source", ["[]", '{"a": 1}', "[{}]", "[3]"])
def test_what_is_no_list_of_functions_is_refused(source):
    with pytest.raises(PatternSyntaxError):
        constraints.read("tools", source)


def test_several_calls_are_a_list_of_one_or_more():
    for syntax, one, two in (
        ("python", "a.note(text='x')", "[a.note(text='x'), a.note(text='y', n=2)]"),
        (
            "json",
            '{"name": "a.note", "arguments": {"text": "x"}}',
            '[{"name": "a.note", "arguments": {"text": "x"}}, {"name": "a.note", "arguments": {"text": "y"}}]',
        ),
    ):
        several = constraints.read("tools", [TOOL], call_syntax=syntax, calls="several")
        assert several.accepts(two)
        assert several.accepts(f"[{one}]")
        for wrong in (one, "[]", f"[{one}", f"[{one},]", f"{one}, {one}"):
            assert not several.accepts(wrong)


VALUES = {
    "text": ["", "it's", 'a "b"', "tab\t\n", "\\", "é😀", "\x7f\xa0\u2028"],
    "n": [0, -3, 10**20],
    "x": [0.5, -2.25, 3],
    "any": [None, True, [1, [2.5]], {"k": "v", "l": {"m": []}}, (), "s"],
}


def test_what_python_reads_as_a_call_with_such_arguments_is_accepted():
    constraint = constraints.read("tools", [TOOL], call_syntax="python", key_order="any")
    for name, values in VALUES.items():
        for value in values:
            given = {"text": "t"} | {name: list(value) if isinstance(value, tuple) else value}
            for order in (given, dict(reversed(given.items()))):
                text = f"a.note({', '.join(f'{key}={item!r}' for key, item in order.items())})"
                call = ast.parse(text, mode="eval").body
                assert {word.arg: ast.literal_eval(word.value) for word in call.keywords} == given
                assert constraint.accepts(text), text
