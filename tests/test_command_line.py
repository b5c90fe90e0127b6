"""`python -m engine` as its users and other programs call it: output, exit status and messages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine import __main__ as command_line
from engine import trace_file

ROOT = Path(__file__).parent.parent
REALS = r"[0-9]+\.?[0-9]*|\.[0-9]+"


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "reals.json"
    row = [0.3, 0.7]
    path.write_text(json.dumps({"tokens": ["1", "."], "eos": None, "mean_field": [row, row]}))
    return f"table:{path}"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["engine", *arguments])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_independent_draws_write_two_points_and_exact_ones_a_number(capsys, table) -> None:
    common = ("run", "--prompt", "x", "--regex", REALS, "--model", table, "--length", "2", "--steps", "1", "--json")
    status, out, _ = call(capsys, *common, "--sampler", "independent")
    assert (status, json.loads(out)["text"], json.loads(out)["accepted"]) == (0, "..", False)
    status, out, _ = call(capsys, *common)
    result = json.loads(out)
    assert (status, result["accepted"]) == (0, True)
    # 1 − P(..) = 1 − .7² = .51, by hand
    assert result["steps"][0]["log_partition"] == pytest.approx(-0.6733445532637656)
    assert result["steps"][0]["committed"] == [0, 1]
    assert {"log_partition", "committed", "tries", "filter_lifted", "model_ms", "engine_ms"} <= set(result["steps"][0])


def test_a_recorded_run_can_be_inspected(capsys, table, tmp_path) -> None:
    path = str(tmp_path / "a.trace")
    status, _, _ = call(
        capsys, "run", "--prompt", "x", "--regex", REALS, "--model", table, "--length", "2", "--trace", path
    )
    assert status == 0
    whole = json.loads(call(capsys, "inspect", path, "--json")[1])
    assert [row["step"] for row in whole["rows"]] == [0, 1]
    assert whole["accepted"]
    one = json.loads(call(capsys, "inspect", path, "--step", "0", "--json")[1])
    assert [row["position"] for row in one["rows"]] == [0, 1]
    tokens = json.loads(call(capsys, "inspect", path, "--step", "0", "--position", "1", "--json")[1])
    # q(second is '.') = .21/.51, by hand
    assert {r["token"]: round(r["posterior"], 4) for r in tokens["rows"]} == {"1": 0.5882, ".": 0.4118}
    assert "log_partition" in call(capsys, "inspect", path)[1]


@pytest.mark.parametrize(("sampler", "confidence"), [("local", "mf"), ("lookahead", "mf"), ("chain", "mar")])
def test_a_baseline_is_led_by_the_model_and_an_exact_run_by_the_constraint(
    capsys, table, tmp_path, sampler, confidence
) -> None:
    path = str(tmp_path / "a.trace")
    call(capsys, "run", "--prompt", "x", "--model", table, "--length", "2", "--sampler", sampler, "--trace", path)
    assert json.loads(call(capsys, "inspect", path, "--json")[1])["confidence"] == confidence


def test_draws_are_weighed_where_that_is_unbiased_and_the_reason_is_given_where_not(capsys, table) -> None:
    common = ("run", "--prompt", "x", "--regex", REALS, "--model", table, "--length", "2", "--json", "--draws", "4")
    _, out, _ = call(capsys, *common, "--temperature", "1", "--remasking", "random")
    result = json.loads(out)
    assert result["reweighting"]["valid"]
    # The table does not depend on the canvas: every run has the weight Z = .51.
    assert [d["weight"] for d in result["draws"]] == pytest.approx([0.25] * 4)
    assert result["reweighting"]["log_accepted"] == pytest.approx(-0.6733445532637656)
    assert sum(result["reweighting"]["texts"].values()) == pytest.approx(1)
    _, out, _ = call(capsys, *common, "--temperature", "1")
    assert json.loads(out)["reweighting"]["valid"] is False
    assert "low_confidence" in json.loads(out)["reweighting"]["reason"]
    _, out, _ = call(capsys, *common)
    assert "temperature 0" in json.loads(out)["reweighting"]["reason"]


def test_a_nondeterministic_constraint_compiles_with_a_finding(capsys, table) -> None:
    status, out, _ = call(capsys, "compile", "--regex", r"[1.]*1[1.]{25}", "--model", table, "--json")
    result = json.loads(out)
    assert (status, result["deterministic"], result["states"]) == (0, False, 27)
    assert [f["code"] for f in result["findings"]] == ["not-deterministic"]


def test_draws_take_the_following_seeds(capsys, table) -> None:
    _, out, _ = call(
        capsys, "run", "--prompt", "x", "--choices", "1.", ".1", "--model", table, "--length", "2",
        "--temperature", "1", "--draws", "5", "--seed", "3", "--json",
    )  # fmt: skip
    draws = json.loads(out)["draws"]
    assert [d["seed"] for d in draws] == [3, 4, 5, 6, 7]
    assert all(d["accepted"] for d in draws)


def test_pins_are_committed_before_the_first_step(capsys, table) -> None:
    common = ("run", "--prompt", "x", "--regex", REALS, "--model", table, "--length", "2", "--json")
    assert json.loads(call(capsys, *common, "--pin", "0=1")[1])["text"] == "1."
    assert json.loads(call(capsys, *common, "--pin", "0=1", "--pin", "1=1")[1])["text"] == "11"


def test_compile_says_what_came_out(capsys, table) -> None:
    status, out, _ = call(capsys, "compile", "--regex", REALS, "--model", table, "--length", "5", "--json")
    content = json.loads(out)
    assert status == 0
    assert content["accepted_lengths"] == [1, 2, 3, 4, 5]
    assert (content["states"], content["token_classes"], content["deterministic"]) == (4, 3, True)
    assert "1–5" in call(capsys, "compile", "--regex", REALS, "--model", table, "--length", "5")[1]


def test_compile_says_whether_a_nondeterministic_automaton_is_ambiguous(capsys, table) -> None:
    for regex, ambiguous in (("[ab]*a[ab]{20}", False), ("[ab]*a[ab]*a[ab]{20}", True), ("ab", False)):
        arguments = ("compile", "--regex", regex, "--json", "--length", "30")
        content = json.loads(call(capsys, *arguments)[1])
        assert (content["deterministic"], content["ambiguous"]) == (regex == "ab", ambiguous), regex


def test_a_constraint_is_read_as_its_options_say(capsys, tmp_path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "array", "items": {"type": "integer"}}')
    texts = ("[1,2]", "[1, 2]", "[1.0]")
    for options, expected in (
        ((), [True, True, True]),
        (("--option", "whitespace=compact"), [True, False, True]),
        (("--option", "whitespace=single-space", "--option", "plain_integers=true"), [False, True, False]),
    ):
        out = call(capsys, "accepts", "--json-schema", str(schema), *options, "--json", *texts)[1]
        assert json.loads(out)["accepts"] == expected, options


def test_what_can_not_be_enforced_is_refused_under_strict(capsys, tmp_path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}')
    assert call(capsys, "accepts", "--json-schema", str(schema), "[1,1]")[0] == 0
    status, out, err = call(capsys, "accepts", "--json-schema", str(schema), "--strict", "[1,1]")
    assert (status, out) == (2, "")
    assert "/uniqueItems" in err


def test_accepts_answers_per_text(capsys, monkeypatch) -> None:
    assert call(capsys, "accepts", "--regex", REALS, "1.", "..")[1].split() == ["true", "false"]
    assert call(capsys, "accepts", "--choices", "a", "b", "--", "b", "c")[1].split() == ["true", "false"]
    monkeypatch.setattr("sys.stdin", io.StringIO('["1", "x"]'))
    assert json.loads(call(capsys, "accepts", "--regex", REALS, "--json", "-")[1]) == {"accepts": [True, False]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--regex", "[0-9"), ("line 1, column 1", "^", "never closed")),
        (("--regex", r"(1)\1"), ("back-reference", "finite automaton")),
        (("--regex", r"[^\s\S]"), ("accepts nothing",)),
        (("--regex", "1{5}"), ("the nearest accepted length is 5.", "Set the length to 5, or")),
        (("--regex", "1{70}1*"), ("the nearest accepted length is 70.",)),
        (("--regex", "1{900}"), ("needs more than",)),
        (("--regex", "[1.]+", "--pin", "1=2"), ("No sequence", "'2'")),
        (("--regex", "[1.]+", "--pin", "2=1"), ("0 to 1",)),
        (("--regex", "1+", "--pin", "0=."), ("position 0", "contradicts")),
        (("--regex", "1.|.1", "--pin", "x"), ("POSITION=TEXT",)),
        (("--regex", "1.|.1", "--pin", "0=1", "--pin", "0=."), ("two pins at position 0",)),
        (("--regex", "1+", "--block-length", "3"), ("divide", "1, 2")),
        (("--regex", "1+", "--steps", "0"), ("steps",)),
        (("--regex", "1+", "--length", "3"), ("has 2 rows",)),
        (("--regex", "1+", "--choices", "a"), ("two constraints",)),
        (("--regex", "1+", "--draws", "0"), ("0 draws",)),
        (("--regex", "1+", "--sampler", "x"), ("midpoint",)),
        (("--task", "nothing"), ("no task",)),
    ],
)
def test_a_mistake_ends_with_status_2_and_says_what_to_do(capsys, table, arguments, words) -> None:
    settings = ("--model", table, *(() if "--length" in arguments else ("--length", "2")))
    status, out, err = call(capsys, "run", "--prompt", "x", *settings, *arguments)
    assert (status, out) == (2, "")
    for word in words:
        assert word in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "isn't JSON"), ("{}", "no 'mean_field'"), ('{"tokens": ["a", "a"], "mean_field": [[1, 1]]}', "distinct"),
        ('{"tokens": ["a"], "mean_field": [[1, 1]]}', "2 entries"), ('{"tokens": ["a"], "mean_field": [[-1]]}', "not a distribution"),
        ('{"tokens": ["a"], "mean_field": [[0]]}', "only zeros"), ('{"tokens": ["a"], "eos": "b", "mean_field": [[1]]}', "EOS"),
        ("[" * 100_000, "isn't JSON"), ('{"tokens": ["\\ud800"], "mean_field": [[1]]}', "UTF-8"),
        ('{"tokens": ["a"], "mean_field": [[1' + "0" * 400 + "]]}", "not a distribution"), ('{"tokens": ["a"], "mean_field": [[1e301]]}', "not a distribution"),
        ('{"tokens": ["a", "b"], "mean_field": [[5e-324, 3]]}', "lost"),
        ('{"tokens": ["a"], "steps": [[[1]], [[1], [1]]]}', "Matrix 1"), ('{"tokens": ["a"], "mean_field": [[NaN]]}', "not a distribution"),
    ],
)  # fmt: skip
def test_a_table_that_is_none_is_refused_with_the_reason(capsys, tmp_path, content, words) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    status, _, err = call(capsys, "run", "--prompt", "x", "--regex", "a", "--length", "1", "--model", f"table:{path}")
    assert status == 2
    assert words in err


def test_a_table_that_is_no_csv_and_texts_that_are_no_json_are_refused(capsys, tmp_path, monkeypatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1" * 200_000 + ",1\n")
    status, _, err = call(capsys, "run", "--prompt", "x", "--length", "1", "--model", f"table:{path}")
    assert (status, "isn't CSV" in err) == (2, True)
    monkeypatch.setattr("sys.stdin", io.StringIO("[" * 100_000))
    status, _, err = call(capsys, "accepts", "--regex", "a", "-")
    assert (status, "isn't JSON" in err) == (2, True)


@pytest.mark.parametrize("arguments", [("accepts", "--regex", "a", "-"), ("compile", "--json-schema", "-")])
def test_a_closed_standard_input_is_refused(capsys, monkeypatch, arguments) -> None:
    monkeypatch.setattr("sys.stdin", None)  # what Python has where it is closed
    status, out, err = call(capsys, *arguments)
    assert (status, out, err.startswith("Error: Standard input is closed.")) == (2, "", True)


def test_a_table_may_be_csv_and_its_rows_are_normalised(capsys, tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1,.\n3,1\n1,3\n")
    out = call(
        capsys,
        "run",
        "--prompt",
        "x",
        "--regex",
        REALS,
        "--length",
        "2",
        "--steps",
        "1",
        "--model",
        f"table:{path}",
        "--json",
    )[1]
    assert json.loads(out)["text"] == "1."


@pytest.mark.parametrize("model", ["nothing", "table:none.json"])
def test_a_model_that_is_not_there_is_named(capsys, model) -> None:
    status, _, err = call(capsys, "run", "--prompt", "x", "--regex", "a", "--model", model)
    assert status == 2
    assert model.removeprefix("table:") in err


def test_inspecting_what_is_not_there_says_so(capsys, tmp_path) -> None:
    (tmp_path / "no.trace").write_text("hello")
    assert "not a trace" in call(capsys, "inspect", str(tmp_path / "no.trace"))[2]
    assert "can't be read" in call(capsys, "inspect", str(tmp_path / "none.trace"))[2]


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine", "accepts", "--regex", "a|b", "b"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "true\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--prompt", "x", "--regex", "1+", "--length", "0"), ("length is 0",)),
        (("run", "--prompt", "x", "--task", "phone", "--length", "0"), ("length is 0",)),
        (("compile", "--regex", "1+", "--length", "-1"), ("length is -1", "from 0 to")),
        (("compile", "--regex", "1+", "--length", "10000000000000"), ("from 0 to",)),
        (("run", "--prompt", "x", "--length", "2", "--choices", "--json"), ("no choice behind --choices",)),
        (("run", "--prompt", "x", "--length", "2", "--choices"), ("no choice behind --choices",)),
        (("run", "--prompt", "\udcff", "--regex", "1+", "--length", "2"), ("lone surrogate", "character 0")),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--pin", "0=\udcff"), ("No sequence",)),
        (("run", "--prompt", "x", "--regex", "1+", "--pin", f"{'9' * 5000}=1"), ("POSITION=TEXT",)),
        (("compile", "--regex", "1+", "--option", "strict=²"), ("true or false",)),
        (("compile", "--grammar", str(ROOT / "pyproject.toml"), "--option", "depth=²"), ("a whole number",)),
        (("compile", "--grammar", str(ROOT / "pyproject.toml"), "--depth", "3", "--option", "depth=5"), ("depth is given twice",)),
        (("compile", "--grammar", str(ROOT / "pyproject.toml"), "--option", "depth=5", "--option", "depth=5"), ("depth is given twice",)),
        (("compile", "--regex", "1+", "--strict", "--option", "strict=false"), ("strict is given twice",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--temperature", "1e-6"), ("at least 0.001",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--remasking", "entropy", "--alg-temp", "1e-320"), ("alg temp",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--seed", str(2**63 - 1), "--draws", "2"), ("seeds",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--device", "cuda"), ("device cuda",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--dtype", "float16"), ("dtype float16",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--no-shift"), ("shift False",)),
        (("run", "--prompt", "x", "--regex", "1+", "--length", "2", "--trace", "/dev/full"), ("No space",)),
        (("tables", "--limit", "1", "--temperature", "nan"), ("temperature is nan",)),
        (("tables", "--limit", "1", "--task", "sudoku", "--out", "."), ("can't be read or written",)),
    ],
)  # fmt: skip
def test_what_no_command_can_do_is_refused_and_not_taken_for_something_else(capsys, table, arguments, words) -> None:
    needs = arguments[0] in ("run", "compile") and "--task" not in arguments
    status, out, err = call(capsys, *arguments, *(("--model", table) if needs else ()))
    assert "Traceback" not in err
    assert (status, out) == (2, "")
    for word in words:
        assert word in err


def test_a_length_of_0_is_a_finding_and_not_the_usual_length(capsys, table) -> None:
    status, out, _ = call(capsys, "diagnose", "--regex", "1+", "--length", "0", "--model", table)
    assert (status, "length is 0" in out) == (0, True)


def test_what_stands_behind_two_dashes_is_a_text(capsys) -> None:
    out = call(capsys, "accepts", "--regex", "--choices|b", "--", "a", "b", "--choices")[1]
    assert out.split() == ["false", "true", "true"]


def test_strict_false_is_not_strict(capsys, tmp_path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}')
    for value, status in (("false", 0), ("true", 2)):
        assert (
            call(capsys, "accepts", "--json-schema", str(schema), "--option", f"strict={value}", "[1,1]")[0] == status
        )


def test_two_runs_do_not_write_one_trace(capsys, table, tmp_path) -> None:
    path = tmp_path / "a.trace"
    arguments = ("run", "--prompt", "x", "--regex", REALS, "--model", table, "--length", "2", "--trace", str(path))
    assert call(capsys, *arguments)[0] == 0
    first = trace_file.load(path)
    with trace_file.Writer(path, first.header) as writer:
        writer.append(first.steps[0])
        status, _, err = call(capsys, *arguments)
        assert (status, "another run" in err) == (2, True)
        writer.append(first.steps[1])
    assert trace_file.load(path).fingerprint == first.fingerprint
    assert call(capsys, *arguments)[0] == 0
    assert trace_file.load(path).fingerprint == first.fingerprint
