"""Results on disk: a header, then a line a problem, only ever appended to; and their statistics."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError
from engine.tables.cells import Cell
from engine.tables.runner import Run
from engine.trace_file import only_writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Results = dict[Cell, dict[int, Run]]
"""The finished runs of each cell, by the number of the problem."""
VERSION = 3
"""Of the file, and of the problems, constraints, draws and judges behind its numbers: raise it when one changes."""


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


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep a file of results, made where there is none, to this process in a block.

    Raises:
        ConfigError: another process goes on with it, or it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = only_writer(path)
    except BlockingIOError as error:
        raise ConfigError(f"Another process is writing {path}.", "Wait for it, or name another file.") from error
    except OSError as error:
        raise _refused(path, error) from error
    with file:
        yield


def open_results(path: Path, facts: Mapping[str, Any]) -> Results:
    """Read the finished runs of a file, which is begun where it is empty; a last line cut short is dropped.

    Args:
        path: of the file.
        facts: of the model that goes on with it.

    Raises:
        ConfigError: the file was written by another version or model, is damaged, or can't be read or written.
    """
    header = {"version": VERSION, "model": dict(facts)}
    try:
        return _opened(path, header)
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError | UnicodeDecodeError) -> ConfigError:
    return ConfigError(f"{path} can't be read or written: {error}.", "Name another file with --out.")


def _opened(path: Path, header: Mapping[str, Any]) -> Results:
    first, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True) or [""]
    if not first:
        path.write_text(json.dumps(header) + "\n", encoding="utf-8")
        return {}
    _check(path, first, header)
    if lines and not lines[-1].endswith("\n"):
        path.write_text("".join((first, *lines[:-1])), encoding="utf-8")
        lines.pop()
    found: Results = {}
    for number, line in enumerate(lines, 2):
        try:
            add(found, _read(line))
        except (ValueError, LookupError, TypeError) as error:
            raise ConfigError(
                f"Line {number} of {path} is damaged ({error}).", "Remove it; what it held is run again."
            ) from error
    return found


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


def append(path: Path, task: str, found: Mapping[int, Mapping[Cell, Run]]) -> None:
    """Add finished problems of a task, a line each."""
    with path.open("a", encoding="utf-8") as file:
        for problem, runs in found.items():
            rows = [[c.arm, c.temperature, c.steps, r.satisfied, r.right, r.text] for c, r in runs.items()]
            file.write(json.dumps({"task": task, "problem": problem, "runs": rows}) + "\n")


def add(results: Results, found: Mapping[int, Mapping[Cell, Run]]) -> None:
    """Put finished problems beside those that are there."""
    for problem, runs in found.items():
        for cell, run in runs.items():
            results.setdefault(cell, {})[problem] = run


def _read(line: str) -> dict[int, dict[Cell, Run]]:
    row = json.loads(line)
    runs = {Cell(row["task"], arm, temperature, steps): Run(*run) for arm, temperature, steps, *run in row["runs"]}
    return {row["problem"]: runs}


def first(results: Results, cells: Iterable[Cell], count: int) -> Results:
    """Return of some cells the first problems, all of which are done."""
    return {cell: {n: run for n, run in sorted(results[cell].items()) if n < count} for cell in cells}


def rows(results: Results) -> list[dict[str, Any]]:
    """Return a flat row for each cell: what it is, how many problems, both shares with their intervals.

    `right_run` and `wrong_run` number the first problem that was answered right and the first that wasn't, to be
    opened in the debugger; null where there is none.
    """
    found = []
    for cell, runs in results.items():
        row: dict[str, Any] = {**asdict(cell), "constrained": cell.constrained, "count": len(runs)}
        for name in ("satisfied", "right"):
            interval = wilson(sum(getattr(run, name) for run in runs.values()), len(runs))
            row |= {name: interval.share, f"{name}_low": interval.low, f"{name}_high": interval.high}
        for name, wanted in (("right_run", True), ("wrong_run", False)):
            row[name] = next((n for n, run in runs.items() if run.right == wanted), None)
        found.append(row)
    return found


def broken(results: Results) -> list[str]:
    """Name the runs that break a promise: of constrained arms, those whose text doesn't satisfy its constraint."""
    return [
        f"{cell.key} problem={n}: {run.text!r}"
        for cell, runs in results.items()
        for n, run in runs.items()
        if cell.constrained and not run.satisfied
    ]
