"""The recorded tables as the page and the model card have them: what may be asked for, what a cell's run is."""

from __future__ import annotations

import json
import re

import pytest

from app import tables
from engine import decode
from engine.errors import ConfigError
from engine.models import embedded
from engine.tables import document, runner
from engine.tables.cells import Cell
from engine.tables.runner import Work, solve

CELLS = tuple(Cell("countdown", arm, temperature, 4) for temperature in (0.0, 1.0) for arm in ("independent", "Mar"))


@pytest.fixture(scope="module")
def denoiser():
    return embedded.load()


@pytest.fixture(scope="module")
def runs(denoiser):
    return solve(denoiser, Work("countdown", (0, 1, 2), CELLS))


@pytest.fixture
def recorded(denoiser, runs, tmp_path, monkeypatch):
    results = {cell: {n: runs[n][cell] for n in runs} for cell in CELLS}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(document.summary(results, denoiser.facts, document.facts("the command"))))
    monkeypatch.setattr(tables, "RESULTS", path)
    return results


def test_a_cell_opens_the_run_that_was_counted(recorded, denoiser):
    for cell, runs in recorded.items():
        words = {"task": cell.task, "arm": cell.arm, "temperature": cell.temperature, "steps": cell.steps}
        for problem, run in runs.items():
            config = tables.config_of({**words, "problem": problem})
            *_, last = decode.denoise(denoiser, runner._automaton(config, denoiser.vocabulary), config)
            assert denoiser.vocabulary.decode(last.canvas_after.tolist()) == run.text


def test_tables_are_told_with_their_numbers_and_where_they_come_from(recorded):
    told = tables.get_tables()
    assert told["measured"]["command"] == "the command"
    assert [(task["name"], task["temperatures"]) for task in told["tasks"]] == [("countdown", [0.0, 1.0])]
    assert told["stale"] is False
    table = tables.get_table({"task": "countdown", "temperature": 1.0})
    assert {row["arm"]: row["right"] for row in table["rows"]} == {
        cell.arm: pytest.approx(sum(run.right for run in runs.values()) / 3, abs=1e-4)
        for cell, runs in recorded.items()
        if cell.temperature == 1
    }
    assert table["chart"].startswith("<svg")


def test_results_of_another_revision_of_the_model_are_called_stale(recorded, monkeypatch, tmp_path):
    other = tmp_path / "weights"
    other.write_bytes(b"others")
    monkeypatch.setattr(tables, "WEIGHTS", other)
    assert tables.get_tables()["stale"] is True


def test_results_of_another_way_to_draw_are_called_stale(recorded):
    found = json.loads(tables.RESULTS.read_text())
    for version in ({}, {"version": found.pop("version") - 1}):
        tables.RESULTS.write_text(json.dumps({**found, **version}))
        assert tables.get_tables()["stale"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"problem": 3},
        {"problem": -1},
        {"problem": "0"},
        {"problem": True},
        {"task": "soduko"},
        {"steps": 5},
        {"arm": ["Mar"]},
        {"temperature": None},
    ],
)
def test_a_run_outside_of_the_tables_is_refused(recorded, change):
    words = {"task": "countdown", "arm": "Mar", "temperature": 1.0, "steps": 4, "problem": 0}
    tables.config_of(words)
    with pytest.raises(ConfigError, match="no such run"):
        tables.config_of({**words, **change})
    assert tables.get_table({**words, **change}).get("error") == (
        "no such table" if {"task", "temperature"} & change.keys() else None
    )
    assert tables.get_table("anything") == {"error": "no such table"}


def test_without_recorded_results_the_page_says_how_to_record_them(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "RESULTS", tmp_path / "none.json")
    assert "python -m engine tables --publish" in tables.get_tables()["problem"]
    assert tables.get_table({"task": "countdown", "temperature": 1.0}) == {"error": "no such table"}


def test_the_shipped_results_are_those_of_the_shipped_model_and_its_card_has_their_numbers():
    assert tables.get_tables()["stale"] is False
    found = json.loads(tables.RESULTS.read_text())
    cells = [dict(zip(found["fields"], values, strict=True)) for values in found["cells"]]
    row = re.compile(
        r"^\| (\S+) \((\d+)\) \| \d+ \| ([\d.]+) / ([\d.]+) \(.*\) \| ([\d.]+) \(.*\) \| ([\d.]+) \(.*\) \|$", re.M
    )
    told = {}
    for task, steps, satisfied, *right in row.findall((tables.ASSETS / "model" / "README.md").read_text()):
        arms = zip(("independent", "Mf", "Mar"), right, strict=True)
        told |= {(task, int(steps), arm, "right"): float(share) for arm, share in arms}
        told[task, int(steps), "independent", "satisfied"] = float(satisfied)
    assert len({task for task, *_ in told}) == len({cell["task"] for cell in cells})
    known = {(c["task"], c["steps"], c["arm"]): c for c in cells if c["temperature"] == 0}
    assert told == {key: pytest.approx(100 * known[key[:3]][key[3]], abs=0.06) for key in told}
