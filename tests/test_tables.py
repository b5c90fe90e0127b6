"""The tables: cells that can be resumed, decoded side by side as alone, and judged by an oracle."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys

import pytest

from engine import decode, models
from engine.__main__ import app
from engine.commands import tables
from engine.errors import ConfigError
from engine.tables import document, executor, latency, oracle, report, results, runner
from engine.tables.cells import ARMS, SAME_WHEN_COLD, Cell, arms, cells
from engine.tables.runner import Run, Work, solve
from engine.tasks import families
from engine.trace import Config

FACTS = {"name": "m", "revision": "1"}
RUNS = {0: Run(True, True, "a"), 1: Run(False, False, "b"), 2: Run(True, False, "c")}


@pytest.fixture(scope="module")
def denoiser():
    return models.load("embedded")


def tried(denoiser, *found: Cell, count: int = 6) -> dict[Cell, list[Run]]:
    runs = solve(denoiser, Work(found[0].task, tuple(range(count)), found))
    return {cell: [runs[n][cell] for n in range(count)] for cell in found}


def test_runs_side_by_side_are_those_that_run_alone(denoiser):
    for task in ("call-json", "format", "sudoku"):
        wanted = list(cells([task], (4, 8)))
        problems = families.named(task).problems(2, "held_out")
        configs = [runner.config_of(cell, p, seed) for cell in wanted for seed, p in enumerate(problems)]
        for config, canvas in zip(configs, runner.decoded(denoiser, configs), strict=True):
            *_, alone = decode.denoise(denoiser, runner._automaton(config, denoiser.vocabulary), config)
            assert canvas == alone.canvas_after.tolist(), config


def test_the_model_answers_each_canvas_of_a_problem_once(denoiser, monkeypatch):
    asked = []

    def batch_logits(prompts, canvases, step):
        asked.extend((p.tobytes(), c.tobytes()) for p, c in zip(prompts, canvases, strict=True))
        return type(denoiser).batch_logits(denoiser, prompts, canvases, step)

    monkeypatch.setattr(denoiser, "batch_logits", batch_logits)
    wanted = tuple(cells(["sudoku"], (4, 8)))
    solve(denoiser, Work("sudoku", (3, 5), wanted))
    assert len(asked) == len(set(asked)) < sum(cell.steps for cell in wanted)


def test_answers_that_no_run_can_come_back_to_are_dropped(denoiser, monkeypatch):
    kept, answer = [], runner._answer

    def watched(model, waiting, keys):
        answer(model, waiting, keys)
        for problem, _ in waiting:
            most = max(masks for (other, _), (masks, _) in zip(waiting, keys, strict=True) if other is problem)
            kept.append((max(masks for masks, _ in problem.answers), most))

    monkeypatch.setattr(runner, "_answer", watched)
    solve(denoiser, Work("sudoku", (3, 5), tuple(cells(["sudoku"], (2, 8)))))
    assert all(masks == most for masks, most in kept)
    assert kept[0][0] > kept[-1][0]


def test_a_text_is_judged_once_for_each_problem_and_canvas(denoiser, monkeypatch):
    judged, satisfies = [], runner.satisfies
    monkeypatch.setattr(
        runner, "satisfies", lambda config, text: judged.append((config.prompt, text)) or satisfies(config, text)
    )
    found = tried(denoiser, Cell("sudoku-exact", "Mar", 0.0, 24), Cell("sudoku-exact", "Mar", 0.0, 12), count=3)
    texts = {(n, run.text) for runs in found.values() for n, run in enumerate(runs)}
    assert len(judged) == len(set(judged)) == len(texts) < 6


def test_an_arm_without_a_cell_at_temperature_0_is_another_one_there(denoiser):
    for arm, other in SAME_WHEN_COLD.items():
        texts = [
            [r.text for r in runs]
            for runs in tried(denoiser, *(Cell("format", a, 0.0, 4) for a in (arm, other))).values()
        ]
        assert texts[0] == texts[1]


def test_exact_arms_satisfy_every_constraint_and_the_others_are_counted_as_they_fall(denoiser):
    for task in ("sudoku", "format", "tools-json", "sql-schema"):
        found = tried(denoiser, *(Cell(task, arm, 1.0, 3) for arm in arms()))
        problems = families.named(task).problems(6, "held_out")
        for cell, runs in found.items():
            accepted = [
                oracle.satisfies(runner.config_of(cell, p, 0), run.text) for p, run in zip(problems, runs, strict=True)
            ]
            # A standard tool leaves open how a value is spelled.
            assert all(a or not run.satisfied for a, run in zip(accepted, runs, strict=True))
            assert task in ("tools-json", "sql-schema") or [run.satisfied for run in runs] == accepted
        assert all(run.satisfied for cell, runs in found.items() if cell.constrained for run in runs)
        assert not all(run.satisfied for run in found[Cell(task, "independent", 1.0, 3)])


def test_a_text_on_which_engine_and_oracle_disagree_is_a_bug(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "satisfies", lambda config, text: False)
    arguments = ("--task", "sudoku", "--share", "16", "--limit", "1", "--out", str(tmp_path / "results.jsonl"))
    with pytest.raises(RuntimeError, match="sudoku Mf T=0 steps=1 problem=0"):
        app(["tables", *arguments, "--arm", "Mf"], standalone_mode=False)
    app(["tables", *arguments, "--arm", "independent"], standalone_mode=False)


@pytest.mark.parametrize(
    ("kind", "source", "syntax", "good", "bad"),
    [
        ("regex", "a|b", None, ["a", "b"], ["ab", ""]),
        ("choices", ("x", "y"), None, ["x"], ["", "xy"]),
        (
            *(
                "tools",
                '[{"name": "f", "parameters": {"type": "dict", "properties": {"n": {"type": "float"}}}}]',
                "json",
            ),
            ['{"name": "f", "arguments": {"n": 1.5}}', '{"name": "f", "arguments": {}}'],
            [
                '{"name": "f", "arguments": {}, "more": 1}',
                *(
                    '{"name": "g", "arguments": {}}',
                    '{"name": "f", "arguments": {"n": "1"}}',
                    '{"name": "f"}',
                    "[",
                    "[]",
                ),
            ],
        ),
        (
            *("tools", '[{"name": "a.f", "parameters": {"properties": {"n": {"type": "any"}}}}]', "python"),
            ["a.f(n=1)", "a.f(n='x')", "a.f()"],
            ["a.f(1)", "a.f(m=1)", "f(n=1)", "a.f(n=x)", "a.f(n=1", "a.f"],
        ),
        (
            *("sql", "CREATE TABLE t (a TEXT, b INTEGER)", None),
            ["SELECT a FROM t WHERE b = 1", "SELECT count(*) FROM t"],
            ["SELECT c FROM t", "SELECT a FROM u", "DELETE FROM t", "SELECT a FROM t; SELECT 1", "SELECT", ""],
        ),
    ],
)
def test_the_oracle_reads_each_language_with_its_standard_tool(kind, source, syntax, good, bad):
    reading = (("call_syntax", syntax),) if syntax else ()
    config = Config(kind=kind, source=source, reading=reading, prompt="", length=1, steps=1, block_length=1)
    assert [text for text in (*good, *bad) if oracle.satisfies(config, text)] == good


def test_bfloat16_is_a_fact_of_the_model_and_leaves_most_answers(denoiser):
    half = executor.load("embedded", "bfloat16")
    assert half.facts["dtype"] == "bfloat16" != denoiser.facts["dtype"]
    cell = Cell("format", "Mar", 0.0, 6)
    texts = [[run.text for run in tried(model, cell, count=12)[cell]] for model in (denoiser, half)]
    assert sum(a == b for a, b in zip(*texts, strict=True)) >= 6
    with pytest.raises(ConfigError, match="doesn't run in 'float13'"):
        executor.load("embedded", "float13")


def test_a_typed_in_mean_field_answers_no_prompts(tmp_path):
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"tokens": ["a"], "eos": None, "mean_field": [[1.0]]}))
    with pytest.raises(ConfigError, match="answers no prompts"):
        executor.load(f"table:{path}", "float32")


def test_cells_cover_arms_steps_and_temperatures_but_map_where_it_is_mf():
    found = list(cells(["call-json"]))
    assert {cell.steps for cell in found} == {40, 20, 10, 5, 2}
    assert {cell.arm for cell in found if cell.temperature == 1} == set(arms())
    assert {cell.arm for cell in found if cell.temperature == 0} == set(arms()) - set(SAME_WHEN_COLD)
    assert set(arms()) <= set(ARMS)
    assert len(set(found)) == len(found)
    assert {cell.steps for cell in cells(["countdown"], (16, 64))} == {1}
    with pytest.raises(ConfigError, match="no arm 'mars'"):
        list(cells(["sudoku"], chosen=["mars"]))
    with pytest.raises(ConfigError, match="no family of problems 'soduko'"):
        list(cells(["soduko"]))


def test_a_wilson_interval_is_where_the_score_test_is_indifferent():
    for successes, count in ((0, 20), (7, 20), (199, 200), (200, 200)):
        found = results.wilson(successes, count)
        assert found.share == successes / count
        for bound in {found.low, found.high} - {0.0, 1.0}:
            score = (found.share - bound) / (bound * (1 - bound) / count) ** 0.5
            assert abs(score) == pytest.approx(1.959964, abs=1e-5)
    assert results.wilson(200, 200).low > 0.97


def test_results_are_read_back_and_a_cut_last_line_is_dropped(tmp_path):
    path = tmp_path / "deep" / "results.jsonl"
    cell, other = Cell("sudoku", "Mar", 0.0, 4), Cell("sudoku", "Mf", 0.0, 4)
    with results.held(path):
        assert results.open_results(path, FACTS) == {}
    results.append(path, "sudoku", {0: {cell: RUNS[0], other: RUNS[1]}})
    whole = path.read_text()
    results.append(path, "sudoku", {1: {cell: RUNS[2]}})
    assert results.open_results(path, FACTS) == {cell: {0: RUNS[0], 1: RUNS[2]}, other: {0: RUNS[1]}}
    path.write_text(path.read_text()[:-20])
    assert results.open_results(path, FACTS) == {cell: {0: RUNS[0]}, other: {0: RUNS[1]}}
    assert path.read_text() == whole


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{}\n", "isn't a file of results"),
        ("hello\n", "isn't a file of results"),
        (json.dumps({"version": 0, "model": FACTS}) + "\n", f"version 0, not of {results.VERSION}"),
        (
            json.dumps({"version": results.VERSION, "model": {**FACTS, "revision": "2"}}) + "\n",
            'model .*"revision": "2"',
        ),
    ],
)
def test_results_of_another_model_or_version_are_refused_untouched(tmp_path, content, told):
    path = tmp_path / "results.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match=told):
        results.open_results(path, FACTS)
    assert path.read_text() == content


def test_two_processes_do_not_write_one_file_of_results(tmp_path):
    path = tmp_path / "results.jsonl"
    arguments = ["tables", "--task", "sudoku", "--share", "16", "--limit", "1", "--arm", "Mf", "--out", str(path)]
    with results.held(path):
        results.open_results(path, FACTS)
        begun = path.read_text()
        with pytest.raises(ConfigError, match=r"Another process is writing .*results\.jsonl"):
            app(arguments, standalone_mode=False)
        assert path.read_text() == begun
    path.unlink()
    app(arguments, standalone_mode=False)
    assert path.read_text().count("\n") == 2


def test_reports_give_shares_with_their_intervals():
    found = {Cell("sudoku", arm, 1.0, steps): RUNS for arm in ("independent", "Mar") for steps in (4, 8)}
    lines = list(report.markdown(found))
    assert lines[:3] == ["**sudoku**, T = 1, n = 3", "", "| steps | independent | Mar |"]
    assert lines[4].startswith("| 8 | 66.7 / 33 (6–79) | 66.7 / 33 (6–79) |")
    rows = list(csv.DictReader(io.StringIO(report.table(found))))
    assert [row["steps"] for row in rows] == ["4", "8", "4", "8"]
    assert float(rows[0]["right"]) == pytest.approx(1 / 3)
    assert (rows[0]["right_run"], rows[0]["wrong_run"]) == ("0", "1")


def test_an_interrupted_command_goes_on_where_it_stopped(tmp_path, capsys):
    out = tmp_path / "results.jsonl"

    def run(*arguments: str) -> list[dict[str, object]]:
        always = ("--task", "countdown", "--limit", "2", "--share", "16", "--out", str(out), "--json")
        app(["tables", *always, *arguments], standalone_mode=False)
        rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)["cells"]
        return rows

    first = run("--arm", "Mar")
    begun = out.read_text()
    rows = run()
    assert out.read_text().startswith(begun)
    assert [row for row in rows if row["arm"] == "Mar"] == first
    assert len(rows) == 2 * len(arms()) - len(SAME_WHEN_COLD)
    done = out.read_text()
    assert run() == rows
    assert out.read_text() == done
    assert {row["count"] for row in run("--limit", "3")} == {3}
    assert out.read_text().startswith(done)
    assert {row["count"] for row in run("--limit", "1")} == {1}
    with pytest.raises(ConfigError, match="Name another file"):
        run("--dtype", "bfloat16")
    with pytest.raises(ConfigError, match="needs a problem"):
        run("--limit", "0")


def test_work_is_what_is_missing_and_no_more():
    wanted = list(cells(["sudoku", "format"], (8,), (0.0,), ("Mf", "Mar")))
    done = {wanted[0]: dict.fromkeys(range(6), RUNS[0]), wanted[1]: dict.fromkeys(range(9), RUNS[0])}
    work = executor.missing(wanted, 9, done)
    assert [part for part in work if part.task == "sudoku"] == [Work("sudoku", (6, 7, 8), (wanted[0],))]
    assert [part.problems for part in work if part.task == "format"] == [(0, 1, 2, 3), (4, 5, 6, 7), (8,)]
    assert executor.missing(wanted[:2], 6, done) == []


@pytest.mark.slow
def test_a_cluster_gives_the_same_cells_and_does_a_lost_workers_again(denoiser, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray isn't installed: it is an optional extra")
    wanted = tuple(Cell("countdown", arm, 1.0, 2) for arm in ("independent", "Mf", "Mar"))
    parts = [Work("countdown", numbers, wanted) for numbers in ((0, 1), (2, 3))]
    work, lost = executor._work, tmp_path / "lost"

    def dying_once(name, dtype, part):
        if part.problems == (2, 3) and not lost.exists():
            lost.touch()
            os._exit(1)
        return work(name, dtype, part)

    monkeypatch.setattr(executor, "_work", dying_once)
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    there = dict(executor.on_ray("local", "embedded", "float32", parts))
    assert lost.exists()
    assert there == dict(executor.here(denoiser, parts))


def test_a_cluster_that_is_not_there_is_said_to_be(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="pip install ray"):
        list(executor.on_ray("local", "embedded", "float32", []))


def paired(arm: str, right: str, satisfied: bool = True) -> tuple[Cell, dict[int, Run]]:
    return Cell("sudoku", arm, 0.0, 4), {n: Run(satisfied, letter == "x", "") for n, letter in enumerate(right)}


def test_claims_are_judged_by_the_problems_on_which_two_arms_part():
    found = dict([paired("Mar", "xxxxxxxxx..x"), paired("Mf", "..........xx"), paired("independent", ".xxxxxxxxx.x")])
    mar, mf, _ = found
    assert document.sign_test(found, mar, mf) == (9, 1, pytest.approx(2 * 11 / 2**10))
    assert document.sign_test(found, mf, mf) == (0, 0, 1.0)
    assert document.sign_test({mf: {0: Run(False, True, "")}, mar: {0: Run(True, True, "")}}, mar, mf, True)[:2] == (
        1,
        0,
    )
    assert document.sign_test({mf: {0: Run(False, True, "")}, mar: {0: Run(True, True, "")}}, mar, mf)[:2] == (0, 0)
    verdicts = {(c.better, c.worse, c.strict): verdict for c, _, verdict, _, _ in document.compared(found)}
    assert verdicts == {
        **dict.fromkeys([("Mar", "independent", True), ("Mar", "independent", False)], "open"),
        **dict.fromkeys([("Mf", "independent", True), ("Mf", "independent", False)], "contrary"),
        ("Mar", "Mf", False): "holds",
    }
    text = "\n".join(document.markdown(found, FACTS, document.facts("the command"), []))
    assert (
        "4 steps, right in whatever spelling: Mf answers 1 problems that independent doesn't, and independent 9" in text
    )
    assert "All 24 runs of the constrained arms" in text


def test_a_difference_that_chance_makes_once_in_twenty_decides_no_claim():
    for alone, verdict in ((5, "open"), (6, "holds")):  # p = 2 / 2^5 and 2 / 2^6
        found = dict([paired("Mar", "x" * alone), paired("Mf", "." * alone)])
        assert [v for _, _, v, _, _ in document.compared(found)] == [verdict]


def test_a_broken_promise_stands_on_the_page_of_results():
    found = dict([paired("Mar", "xx", satisfied=False), paired("independent", "xx", satisfied=False)])
    text = "\n".join(document.markdown(found, FACTS, document.facts(""), []))
    assert "**BROKEN.** 2 of 2 runs" in text
    assert results.broken(found) == [f"sudoku Mar T=0 steps=4 problem={n}: ''" for n in (0, 1)]


def test_what_is_published_holds_the_numbers_of_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "LATENCY_TASKS", ("countdown",))
    monkeypatch.setattr(latency, "REPEATS", 1)
    (tmp_path / "docs").mkdir()
    (tmp_path / "assets").mkdir()
    wanted = ("--task", "countdown", "--share", "16", "--temperature", "1", "--limit", "2")
    app(["tables", *wanted, "--out", str(tmp_path / "r.jsonl"), "--json", "--publish"], standalone_mode=False)
    cells_said = json.loads(capsys.readouterr().out)["cells"]
    read = json.loads((tmp_path / "assets" / "results.json").read_text())
    rows = [dict(zip(read["fields"], cell, strict=True)) for cell in read["cells"]]
    assert [row["arm"] for row in rows] == [row["arm"] for row in cells_said] == list(arms())
    assert [row["right"] for row in rows] == [row["right"] for row in cells_said]
    page = (tmp_path / "docs" / "TABLES.md").read_text()
    assert "| task | canvas | states | forward | unconstrained | chain | midpoint | tree |" in page
    (row,) = re.findall(r"\| countdown \| 16 \| (\d+) \| (\d+) \| (\d+) \| (\d+) \(([+-]\d+)%\)", page)
    states, forward, free, chain, added = map(int, row)
    assert states > 1
    assert forward <= free
    assert added == pytest.approx(100 * (chain / free - 1), abs=100 / free + 100 * chain / free**2 + 1)
    (link,) = re.findall(r"!\[.*\]\((.*)\)", page)
    assert (tmp_path / "docs" / link).is_file()
