"""`python -m engine diagnose`, as people and programs call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_command_line import REALS, call

EXAMPLES = Path(__file__).parents[1] / "assets" / "examples"


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "reals.json"
    path.write_text(json.dumps({"tokens": ["1", ".", "22"], "eos": None, "mean_field": [[0.3, 0.5, 0.2]] * 2}))
    return f"table:{path}"


def test_a_sound_constraint_has_examples_and_says_how_a_text_dies(capsys, table) -> None:
    status, out, _ = call(
        capsys, "diagnose", "--regex", "[12]+", "--model", table, "--text", "12", "--text", "1.", "--json"
    )
    content = json.loads(out)
    assert status == 0
    assert content["length"] == 2
    assert content["shortest"] == ["1", "2", "11"]
    assert [t["accepted"] for t in content["texts"]] == [True, False]
    assert content["texts"][1]["read"] == 1
    assert [f["code"] for f in content["findings"]] == ["unbounded"]


def test_a_mistake_that_can_be_described_is_a_finding_and_not_a_failure(capsys, table) -> None:
    for arguments, code in (
        (("--regex", "(1"), "syntax"),
        (("--regex", r"(1)\1"), "unsupported"),
        (("--regex", "1{5}"), "length"),
        (("--regex", "1(?=2)3"), "empty"),
        (("--regex", "1-1"), "vocabulary"),
        (("--regex", "11", "--pin", "0=."), "pins"),
        (("--regex", "11", "--pin", "7=1"), "input"),
        (("--regex", "11", "--pin", "x"), "input"),
    ):
        status, out, _ = call(capsys, "diagnose", *arguments, "--model", table, "--json")
        assert status == 0
        assert json.loads(out)["findings"][0]["code"] == code, arguments


def test_a_diagnosis_reads_the_constraint_as_it_is_asked_to(capsys, tmp_path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "boolean"}}}}]')
    arguments = ("diagnose", "--tools", str(tools), "--call-syntax", "python", "--text", "f(a=True)", "--json")
    content = json.loads(call(capsys, *arguments)[1])
    assert content["texts"][0]["accepted"]
    assert "f()" in content["shortest"]
    assert not any("JSON" in f["message"] for f in content["findings"])


def test_a_remedy_can_be_given_back_to_the_command(capsys, table) -> None:
    finding = json.loads(call(capsys, "diagnose", "--regex", "1-1", "--model", table, "--json")[1])["findings"][0]
    changed = finding["remedies"][0]["changes"]["source"]
    after = json.loads(call(capsys, "diagnose", "--regex", changed, "--model", table, "--json")[1])["findings"]
    assert "vocabulary" not in [f["code"] for f in after]


def test_a_trace_is_diagnosed_with_the_same_findings_as_in_python(capsys) -> None:
    from engine.diagnosis import dynamic
    from engine.trace_file import load

    path = EXAMPLES / "two-dots-beside.trace"
    status, out, _ = call(capsys, "diagnose", "--trace", str(path), "--json")
    assert status == 0
    content = json.loads(out)
    assert (content["text"], content["accepted"]) == ("..", False)
    expected = json.loads(json.dumps([finding.plain() for finding in dynamic.findings(load(path))]))
    assert content["findings"] == expected


def test_people_read_the_best_finding_with_its_place_and_what_mends_it(capsys, table) -> None:
    status, out, _ = call(capsys, "diagnose", "--regex", "1-1", "--model", table)
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("error [vocabulary]")
    assert lines[1:3] == ["  1-1", "   ^"]
    assert any(line.strip().startswith("mends it: Remove '-'") for line in lines)


@pytest.mark.parametrize(
    "arguments", [(), ("--regex", REALS, "--trace", "x"), ("--trace", "no-such-file"), ("--task", "nothing")]
)
def test_where_there_is_nothing_to_diagnose_the_status_is_2(capsys, arguments: tuple[str, ...]) -> None:
    status, out, err = call(capsys, "diagnose", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("Error:")
