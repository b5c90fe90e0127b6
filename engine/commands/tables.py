"""`python -m engine tables`: the papers' tables on a model that runs here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from engine.commands.console import Json, Model, console, errors, print_json, write_file
from engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.models import Denoiser
    from engine.tables.cells import Cell
    from engine.tables.results import Results
    from engine.tables.runner import Run, Work

    _Done = tuple[Work, Mapping[int, Mapping[Cell, Run]]]

ROOT = Path(__file__).parents[2]
OUT = Path("build") / "tables.jsonl"
LATENCY_TASKS, LATENCY_PROBLEMS = ("call-json", "sudoku", "sql"), 3


def tables(
    task: Annotated[list[str] | None, typer.Option(help="Only these families of problems.")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only these arms.")] = None,
    temperature: Annotated[list[float] | None, typer.Option(help="Only these; 0 and 1 by default.")] = None,
    share: Annotated[list[int] | None, typer.Option(help="Steps: the canvas divided by these.")] = None,
    limit: Annotated[int, typer.Option(help="Held-out problems of each task.")] = 200,
    out: Annotated[Path, typer.Option(help="Results, a line a problem; what is in it isn't run again.")] = OUT,
    csv: Annotated[Path | None, typer.Option(help="Write all cells as CSV too.")] = None,
    model: Model = "embedded",
    dtype: Annotated[str, typer.Option(help="Of the model's blocks: float32, or bfloat16 to be faster.")] = "float32",
    ray: Annotated[str | None, typer.Option(help="Run on the Ray cluster at this address; local starts one.")] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="Write docs/TABLES.md with its pictures, and assets/results.json.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure satisfaction and accuracy by arm, temperature and steps; go on where an earlier call stopped."""
    from engine import preparation
    from engine.tables import executor, report, results
    from engine.tables.cells import SHARES, TEMPERATURES, cells
    from engine.tasks.families import FAMILIES
    from engine.trace import Config

    if limit < 1 or min(share or SHARES) < 1:
        raise ConfigError("A table needs a problem and a step.", "Raise what is below 1.")
    for each in temperature or TEMPERATURES:
        preparation.check(Config("", None, None, temperature=each))
    names = task or [family.name for family in FAMILIES]
    wanted = list(cells(names, share or SHARES, temperature or TEMPERATURES, arm or ()))
    denoiser = executor.load(model, dtype)
    with results.held(out):
        done = results.open_results(out, denoiser.facts)
        work = executor.missing(wanted, limit, done)
        found = executor.on_ray(ray, model, dtype, work) if ray else executor.here(denoiser, work)
        for part, runs in _tracked(found, work):
            results.append(out, part.task, runs)
            results.add(done, runs)
    shown = results.first(done, wanted, limit)
    if csv is not None:
        write_file(csv, report.table(shown))
    if publish:
        _publish(denoiser, shown)
    if as_json:
        print_json({"model": denoiser.facts, "cells": results.rows(shown)})
        _promised(results.broken(shown))
        return
    for line in report.markdown(shown):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    _promised(results.broken(shown))


def _publish(denoiser: Denoiser, shown: Results) -> None:
    """Write the page of results, its pictures, and what the browser's page shows of them."""
    from engine.tables import document, executor, latency, results
    from viz import tables

    measured = document.facts(" ".join(("python -m engine", *sys.argv[1:])))
    with executor.one_thread():
        times = list(latency.measure(denoiser, LATENCY_TASKS, LATENCY_PROBLEMS))
    page = "\n".join(document.markdown(shown, denoiser.facts, measured, times))
    (ROOT / "docs" / "TABLES.md").write_text(page, encoding="utf-8")
    summary = document.summary(shown, denoiser.facts, measured)
    (ROOT / "assets" / "results.json").write_text(json.dumps(summary, separators=(",", ":")) + "\n", encoding="utf-8")
    rows = results.rows(shown)
    for task, temperature in dict.fromkeys((row["task"], row["temperature"]) for row in rows):
        part = [row for row in rows if (row["task"], row["temperature"]) == (task, temperature)]
        path = ROOT / "docs" / document.picture(task, temperature)
        path.parent.mkdir(exist_ok=True)
        path.write_text(tables.chart(part, f"{task}, T = {temperature:g}"), encoding="utf-8")
    errors.print("Wrote docs/TABLES.md, docs/tables and assets/results.json.", highlight=False)


def _promised(broken: Sequence[str]) -> None:
    """Refuse to end well where a constrained arm left its language, which is a bug."""
    if broken:
        raise RuntimeError(f"{len(broken)} runs of constrained arms don't satisfy their constraints: {broken[:5]}")


def _tracked(found: Iterator[_Done], work: Sequence[Work]) -> Iterator[_Done]:
    return iter(track(found, "Problems", total=len(work), console=errors, disable=not errors.is_terminal))
