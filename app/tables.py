"""The recorded tables on the page: their numbers, their charts, and any of their runs, decoded again."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError
from engine.tables.results import VERSION
from viz import tables as pictures

if TYPE_CHECKING:
    from engine.trace import Config

Answer = dict[str, Any]
ASSETS = Path(__file__).parents[1] / "assets"
RESULTS = ASSETS / "results.json"
"""What `python -m engine tables --publish` wrote."""
WEIGHTS = ASSETS / "model" / "model.safetensors"


def get_tables(_asked: object = None) -> Answer:
    """Return what was measured, with which model, and for which tasks and temperatures there are tables."""
    found = _read(RESULTS)
    if found is None:
        problem = "No results are recorded here: python -m engine tables --publish records them."
        return {"error": "none", "problem": problem}
    rows = found["rows"]
    tasks = [
        {
            "name": name,
            "title": found["titles"].get(name, name),
            "temperatures": sorted({row["temperature"] for row in rows if row["task"] == name}),
        }
        for name in dict.fromkeys(row["task"] for row in rows)
    ]
    stale = found.get("version") != VERSION or found["model"].get("revision") != _revision(WEIGHTS)
    return {"model": found["model"], "measured": found["measured"], "tasks": tasks, "stale": stale}


def get_table(asked: object) -> Answer:
    """Return the rows of `task` at `temperature`, and their chart."""
    words = asked if isinstance(asked, dict) else {}
    found = _read(RESULTS)
    wanted = (words.get("task"), words.get("temperature"))
    rows = [row for row in found["rows"] if (row["task"], row["temperature"]) == wanted] if found else []
    if not rows:
        return {"error": "no such table"}
    return {"rows": rows, "chart": pictures.chart(rows, f"{wanted[0]}, T = {wanted[1]:g}")}


SERVER_FUNCTIONS = (get_tables, get_table)


def config_of(words: Answer) -> Config:
    """Return the settings of one run of a cell.

    Args:
        words: from the browser: `task`, `arm`, `temperature`, `steps` and `problem`.

    Raises:
        InputError: there is no such cell or problem in the recorded tables.
    """
    found = _read(RESULTS)
    cell = {name: words.get(name) for name in ("task", "arm", "temperature", "steps")}
    row = next((row for row in found["rows"] if cell.items() <= row.items()), None) if found else None
    problem = words.get("problem")
    if row is None or type(problem) is not int or not 0 <= problem < row["count"]:
        raise ConfigError("There is no such run in the recorded tables.", "Choose a cell of a table.")
    # They bring compiled loops, which the page does not need to open.
    from engine.tables.cells import Cell
    from engine.tables.runner import config_of as settings
    from engine.tasks import families

    problems = families.named(row["task"]).problems(problem + 1, "held_out")
    return settings(Cell(row["task"], row["arm"], row["temperature"], row["steps"]), problems[problem], problem)


@lru_cache(maxsize=1)
def _read(path: Path) -> Answer | None:
    if not path.is_file():
        return None
    found: Answer = json.loads(path.read_text(encoding="utf-8"))
    rows = [dict(zip(found["fields"], cell, strict=True)) for cell in found.pop("cells")]
    return {**found, "rows": rows}


@lru_cache(maxsize=1)
def _revision(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
