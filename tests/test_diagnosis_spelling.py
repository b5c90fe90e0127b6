"""Changes that let a source be read, or that leave out what is not enforced: offered only where they do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import constraints, models
from engine.diagnosis import static
from engine.errors import Finding
from engine.trace import Config

BUGS = Path(__file__).parent / "data" / "bugs" / "cases.jsonl"
CASES = {case["id"]: case for case in map(json.loads, BUGS.read_text(encoding="utf-8").splitlines())}
VOCABULARY = models.load("embedded").vocabulary


def found(kind: str, source: str) -> list[Finding]:
    config = Config("", kind, source, length=48, steps=48, block_length=48)
    return list(static.findings(config, VOCABULARY))


def mended(kind: str, source: str, code: str, label: str) -> str:
    """Return the source after the change that is offered for a finding, which it no longer has."""
    finding = next(finding for finding in found(kind, source) if finding.code == code)
    remedy = next(remedy for remedy in finding.remedies if re.search(label, remedy.label))
    after: str = dict(remedy.changes)["source"]
    assert code not in [finding.code for finding in found(kind, after)]
    return after


@pytest.mark.parametrize(
    ("kind", "source", "label", "after"),
    [
        ("regex", "(a|b:[0-9]", "behind '.a.b'", "(a|b):[0-9]"),
        ("regex", "[0-9", "behind", "[0-9]"),
        ("regex", "a+b)", "as itself", r"a+b\)"),
        ("regex", "*a", "as itself", r"\*a"),
        ("json_schema", '{"type": "integer",}', "comma", '{"type": "integer"}'),
        ("json_schema", '{"enum": [1, 2', "Close", '{"enum": [1, 2]}'),
        ("json_schema", "{'type': 'null'}", "double", '{"type": "null"}'),
        ("json_schema", '{"type": "strnig"}', "Write", '{"type": "string"}'),
        ("json_schema", '{"type": ["null", "Float"]}', "Write", '{"type": ["null", "number"]}'),
    ],
)
def test_c1_a_slip_is_mended_by_the_change_that_is_offered(kind: str, source: str, label: str, after: str) -> None:
    assert mended(kind, source, "syntax", label) == after


def case(name: str) -> tuple[str, str]:
    known: dict[str, Any] = CASES[name]
    source = known["input"]
    return known["kind"], source if isinstance(source, str) else json.dumps(source)


@pytest.mark.parametrize(
    ("name", "code", "label"),
    [
        ("rx-backref", "unsupported", "group again"),
        ("oc-maxlen-blowup", "length-too-large", "maxLength"),
        ("oc231-escapes", "any-depth", "no other members"),
    ],
)
def test_c2_what_is_not_enforced_in_a_reported_case_can_be_left_out(name: str, code: str, label: str) -> None:
    kind, source = case(name)
    mended(kind, source, code, label)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        (r"(?P<q>['\"])[a-z]*(?P=q)", r"(?P<q>['\"])[a-z]*(?:['\"])"),
        (r"(a|(b))c\2", r"(a|(b))c(?:b)"),
        (r"[(](x)\1", r"[(](x)(?:x)"),
    ],
)
def test_c2_a_back_reference_becomes_the_pattern_of_its_own_group(source: str, after: str) -> None:
    assert mended("regex", source, "unsupported", "group again") == after


def test_a_change_is_offered_only_where_the_finding_is_gone_after_it() -> None:
    for kind, source in (("regex", "(a[b"), ("json_schema", '{"a": nonsense}')):
        for finding in found(kind, source):
            for remedy in finding.remedies:
                after = replace(Config("", kind, source), **dict(remedy.changes))
                constraints.read(kind, after.source)
