"""The tables: cells that can be resumed, decoded side by side as alone, and judged by an oracle."""

from __future__ import annotations

import csv
import io
import json
import os
import sys

import pytest

from engine import decode, models
from engine.__main__ import app
from engine.errors import ConfigError
from engine.tables import executor, report, results, runner
from engine.tables.cells import ARMS, Cell, arms, cells
from engine.tables.runner import Outcome
from engine.tasks import families

FACTS = {"name": "m", "revision": "1"}
OUTCOME = Outcome((True, False, True), (True, False, False), ("a", "b", "c"), 0.5)


@pytest.fixture(scope="module")
def denoiser():
    return models.load("embedded")


def test_runs_side_by_side_are_those_that_run_alone(denoiser):
    for task, arm, temperature in (("call-json", "Mar", 0.0), ("format", "Mf", 1.0), ("sudoku", "independent", 1.0)):
        cell = Cell(task, arm, temperature, 4, 5)
        problems = families.named(task).problems(5, "held_out")
        configs = [runner.config_of(cell, problem, seed) for seed, problem in enumerate(problems)]
        for config, canvas in runner.decoded(denoiser, configs):
            *_, alone = decode.denoise(denoiser, runner._automaton(config, denoiser.vocabulary), config)
            assert canvas == alone.canvas_after.tolist(), config


def test_exact_arms_satisfy_every_constraint_and_the_others_are_counted_as_they_fall(denoiser):
    satisfied = {}
    for arm in arms():
        for task in ("sudoku", "format"):
            outcome = runner.run_cell(denoiser, Cell(task, arm, 1.0, 3, 6))
            satisfied[arm, task] = outcome.satisfied
            problems = families.named(task).problems(6, "held_out")
            accepted = [runner.satisfies(runner.config_of(Cell(task, arm, 1.0, 3, 6), p, 0), text)
                        for p, text in zip(problems, outcome.texts, strict=True)]  # fmt: skip
            assert [*outcome.satisfied] == accepted
    for arm in ("map", "Mf", "Mar"):
        assert all(satisfied[arm, "sudoku"] + satisfied[arm, "format"]), arm
    assert not all(satisfied["independent", "sudoku"])


def test_a_text_on_which_engine_and_oracle_disagree_is_a_bug(denoiser, monkeypatch):
    monkeypatch.setattr(runner, "satisfies", lambda config, text: False)
    with pytest.raises(RuntimeError, match="sudoku Mar T=0 steps=2"):
        runner.run_cell(denoiser, Cell("sudoku", "Mar", 0.0, 2, 1))


def test_bfloat16_is_a_fact_of_the_model_and_leaves_most_answers(denoiser):
    half = executor.load("embedded", "bfloat16")
    assert half.facts["dtype"] == "bfloat16" != denoiser.facts["dtype"]
    cell = Cell("format", "Mar", 0.0, 6, 12)
    texts = [runner.run_cell(model, cell).texts for model in (denoiser, half)]
    assert sum(a == b for a, b in zip(*texts, strict=True)) >= 6
    with pytest.raises(ConfigError, match="doesn't run in 'float13'"):
        executor.load("embedded", "float13")


def test_cells_cover_arms_steps_and_temperatures_but_map_where_it_is_mf():
    found = list(cells(["call-json"], 200))
    assert {cell.steps for cell in found} == {40, 20, 10, 5, 2}
    assert {cell.arm for cell in found if cell.temperature == 1} == set(arms())
    assert {cell.arm for cell in found if cell.temperature == 0} == set(arms()) - {"map"}
    assert set(arms()) <= set(ARMS)
    assert len(set(found)) == len(found)
    with pytest.raises(ConfigError, match="no arm 'mars'"):
        list(cells(["sudoku"], 1, chosen=["mars"]))
    with pytest.raises(ConfigError, match="no family of problems 'soduko'"):
        list(cells(["soduko"], 1))


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
    cell, other = Cell("sudoku", "Mar", 0.0, 4, 3), Cell("sudoku", "Mf", 0.0, 4, 3)
    assert results.open_results(path, FACTS) == {}
    results.append(path, cell, OUTCOME)
    whole = path.read_text()
    results.append(path, other, OUTCOME)
    assert results.open_results(path, FACTS) == {cell: OUTCOME, other: OUTCOME}
    path.write_text(path.read_text()[:-20])
    assert results.open_results(path, FACTS) == {cell: OUTCOME}
    assert path.read_text() == whole


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "isn't a file of results"),
        ("{}\n", "isn't a file of results"),
        ("hello\n", "isn't a file of results"),
        (json.dumps({"version": 0, "model": FACTS}) + "\n", "version 0, not of 1"),
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


def test_reports_give_shares_with_their_intervals():
    found = {Cell("sudoku", arm, 1.0, steps, 3): OUTCOME for arm in ("independent", "Mar") for steps in (4, 8)}
    lines = list(report.markdown(found))
    assert lines[:3] == ["**sudoku**, T = 1, n = 3", "", "| steps | independent | Mar |"]
    assert lines[4].startswith("| 8 | 66.7 / 33 (6–79) | 66.7 / 33 (6–79) |")
    rows = list(csv.DictReader(io.StringIO(report.table(found))))
    assert [row["steps"] for row in rows] == ["4", "8", "4", "8"]
    assert float(rows[0]["right"]) == pytest.approx(1 / 3)


def test_an_interrupted_command_goes_on_where_it_stopped(tmp_path, capsys):
    out = tmp_path / "results.jsonl"

    def tables(*arguments: str) -> list[dict[str, object]]:
        always = ("--task", "countdown", "--limit", "2", "--share", "16", "--out", str(out), "--json")
        app(["tables", *always, *arguments], standalone_mode=False)
        rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)["cells"]
        return rows

    first = tables("--arm", "Mar")
    begun = out.read_text()
    rows = tables()
    assert out.read_text().startswith(begun)
    assert [row for row in rows if row["arm"] == "Mar"] == first
    assert len(rows) == 2 * len(arms()) - 1 == len(out.read_text().splitlines()) - 1
    with pytest.raises(ConfigError, match="Name another file"):
        tables("--dtype", "bfloat16")
    with pytest.raises(ConfigError, match="needs a problem"):
        tables("--limit", "0")
    assert len(out.read_text().splitlines()) == len(rows) + 1


@pytest.mark.slow
def test_a_cluster_gives_the_same_cells_and_does_a_lost_workers_again(denoiser, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray isn't installed: it is an optional extra")
    wanted = [Cell("countdown", arm, 1.0, 2, 4) for arm in ("independent", "Mf", "Mar")]
    work, lost = executor._work, tmp_path / "lost"

    def dying_once(name, dtype, cell):
        if cell.arm == "Mf" and not lost.exists():
            lost.touch()
            os._exit(1)
        return work(name, dtype, cell)

    monkeypatch.setattr(executor, "_work", dying_once)
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    there = dict(executor.on_ray("local", "embedded", "float32", wanted))
    assert lost.exists()
    assert {c: (o.texts, o.right) for c, o in there.items()} == {
        c: (o.texts, o.right) for c, o in executor.here(denoiser, wanted)
    }


def test_a_cluster_that_is_not_there_is_said_to_be(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="pip install ray"):
        list(executor.on_ray("local", "embedded", "float32", []))
