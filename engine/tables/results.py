"""Results on disk: a header, then a line a cell, only ever appended to; and their statistics."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError
from engine.tables.cells import Cell
from engine.tables.runner import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VERSION = 1
"""Of the file, and of the problems, constraints and judges behind its numbers: raise it when one of them changes."""


@dataclass(frozen=True)
class Interval:
    """A share and its 95 % interval, from 0 to 1."""

    share: float
    low: float
    high: float


def wilson(successes: int, count: int) -> Interval:
    """Return Wilson's score interval, which holds near 0 and 1 where the normal one does not."""
    # scipy.stats takes a second to import.
    from scipy.stats import binomtest

    found = binomtest(successes, count).proportion_ci(0.95, "wilson")
    return Interval(successes / count, max(0.0, float(found.low)), min(1.0, float(found.high)))


def open_results(path: Path, facts: Mapping[str, Any]) -> dict[Cell, Outcome]:
    """Read the finished cells of a file, which is begun where there is none; a last line cut short is dropped.

    Args:
        path: of the file.
        facts: of the model that goes on with it.

    Raises:
        ConfigError: the file was written by another version or model.
    """
    header = {"version": VERSION, "model": dict(facts)}
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(header) + "\n", encoding="utf-8")
        return {}
    first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    _check(path, first, header)
    if lines and not lines[-1].endswith("\n"):
        path.write_text("".join((first, *lines[:-1])), encoding="utf-8")
        lines.pop()
    return dict(_read(line) for line in lines)


def _check(path: Path, line: str, expected: Mapping[str, Any]) -> None:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.keys() != expected.keys():
        raise ConfigError(f"{path} isn't a file of results.", "Name another file, or one that doesn't exist yet.")
    for name, value in expected.items():
        if found[name] != value:
            raise ConfigError(
                f"{path} has results of {name} {json.dumps(found[name])}, not of {json.dumps(value)}.",
                "Name another file: results of two of them don't belong in one table.",
            )


def append(path: Path, cell: Cell, outcome: Outcome) -> None:
    """Add a finished cell."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"cell": asdict(cell), "outcome": asdict(outcome)}) + "\n")


def _read(line: str) -> tuple[Cell, Outcome]:
    row = json.loads(line)
    outcome = row["outcome"]
    lists = {name: tuple(outcome[name]) for name in ("satisfied", "right", "texts")}
    return Cell(**row["cell"]), Outcome(seconds=outcome["seconds"], **lists)


def rows(results: Mapping[Cell, Outcome]) -> list[dict[str, Any]]:
    """Return a flat row for each cell: what it is, both shares with their intervals, and seconds."""
    found = []
    for cell, outcome in results.items():
        row: dict[str, Any] = asdict(cell)
        for name in ("satisfied", "right"):
            interval = wilson(sum(getattr(outcome, name)), len(outcome.texts))
            row |= {name: interval.share, f"{name}_low": interval.low, f"{name}_high": interval.high}
        found.append({**row, "seconds": outcome.seconds})
    return found
