"""`python -m engine tables`: the papers' tables on a model that runs here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from engine.commands.console import Json, Model, console, errors, print_json
from engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.tables.cells import Cell
    from engine.tables.runner import Outcome

OUT = Path("build") / "tables.jsonl"


def tables(
    task: Annotated[list[str] | None, typer.Option(help="Only these families of problems.")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only these arms.")] = None,
    temperature: Annotated[list[float] | None, typer.Option(help="Only these; 0 and 1 by default.")] = None,
    share: Annotated[list[int] | None, typer.Option(help="Steps: the canvas divided by these.")] = None,
    limit: Annotated[int, typer.Option(help="Held-out problems a cell.")] = 200,
    out: Annotated[Path, typer.Option(help="Results, a line a cell; finished cells in it aren't run again.")] = OUT,
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
    wanted = list(cells(names, limit, share or SHARES, temperature or TEMPERATURES, arm or ()))
    denoiser = executor.load(model, dtype)
    done = results.open_results(out, denoiser.facts)
    missing = [cell for cell in wanted if cell not in done]
    found = executor.on_ray(ray, model, dtype, missing) if ray else executor.here(denoiser, missing)
    for cell, outcome in _tracked(found, missing):
        results.append(out, cell, outcome)
        done[cell] = outcome
    shown = {cell: done[cell] for cell in wanted}
    if csv is not None:
        csv.write_text(report.table(shown), encoding="utf-8")
    if as_json:
        print_json({"model": denoiser.facts, "cells": results.rows(shown)})
        return
    for line in report.markdown(shown):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _tracked(found: Iterator[tuple[Cell, Outcome]], cells: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]]:
    return iter(track(found, "Cells", total=len(cells), console=errors, disable=not errors.is_terminal))
