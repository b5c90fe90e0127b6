"""`python -m engine tables`: the papers' tables on a model that runs here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from engine.commands.console import Json, Model, console, errors, print_json
from engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.tables.cells import Cell
    from engine.tables.runner import Run, Work

    _Done = tuple[Work, Mapping[int, Mapping[Cell, Run]]]

OUT = Path("build") / "tables.jsonl"


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
    as_json: Json = False,
) -> None:
    """Measure satisfaction and accuracy by arm, temperature and steps; go on where an earlier call stopped."""
    from engine.tables import executor, report, results
    from engine.tables.cells import SHARES, TEMPERATURES, cells
    from engine.tasks.families import FAMILIES

    if limit < 1 or min(share or SHARES) < 1 or min(temperature or TEMPERATURES) < 0:
        raise ConfigError(
            "A table needs a problem, a step and a temperature of at least 0.", "Raise what is below that."
        )
    names = task or [family.name for family in FAMILIES]
    wanted = list(cells(names, share or SHARES, temperature or TEMPERATURES, arm or ()))
    denoiser = executor.load(model, dtype)
    done = results.open_results(out, denoiser.facts)
    work = executor.missing(wanted, limit, done)
    found = executor.on_ray(ray, model, dtype, work) if ray else executor.here(denoiser, work)
    for part, runs in _tracked(found, work):
        results.append(out, part.task, runs)
        results.add(done, runs)
    shown = results.first(done, wanted, limit)
    if csv is not None:
        csv.write_text(report.table(shown), encoding="utf-8")
    if as_json:
        print_json({"model": denoiser.facts, "cells": results.rows(shown)})
        _promised(results.broken(shown))
        return
    for line in report.markdown(shown):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    _promised(results.broken(shown))


def _promised(broken: Sequence[str]) -> None:
    """Refuse to end well where a constrained arm left its language, which is a bug."""
    if broken:
        raise RuntimeError(f"{len(broken)} runs of constrained arms don't satisfy their constraints: {broken[:5]}")


def _tracked(found: Iterator[_Done], work: Sequence[Work]) -> Iterator[_Done]:
    return iter(track(found, "Problems", total=len(work), console=errors, disable=not errors.is_terminal))
