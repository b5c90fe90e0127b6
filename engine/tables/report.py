"""Tables for readers: Markdown with intervals, and CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from engine.tables.cells import ARMS
from engine.tables.results import rows, wilson

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.tables.results import Results
    from engine.tables.runner import Run


def markdown(results: Results) -> Iterator[str]:
    """Yield the lines of a table for each task and temperature: a row for each number of steps, a column an arm."""
    for task, temperature in dict.fromkeys((cell.task, cell.temperature) for cell in results):
        part = {c: runs for c, runs in results.items() if (c.task, c.temperature) == (task, temperature)}
        arms = [arm for arm in ARMS if any(cell.arm == arm for cell in part)]
        counts = sorted({len(runs) for runs in part.values()})
        yield f"**{task}**, T = {temperature:g}, n = {', '.join(map(str, counts))}"
        yield ""
        yield f"| steps | {' | '.join(arms)} |"
        yield "|---" * (1 + len(arms)) + "|"
        for steps in sorted({cell.steps for cell in part}, reverse=True):
            found = {cell.arm: runs for cell, runs in part.items() if cell.steps == steps}
            yield f"| {steps} | {' | '.join(written(found.get(arm)) for arm in arms)} |"
        yield ""


def written(runs: Mapping[int, Run] | None) -> str:
    """Write satisfied / right in per cent, the latter with its 95 % interval."""
    if runs is None:
        return "–"
    satisfied = sum(run.satisfied for run in runs.values()) / len(runs)
    right = wilson(sum(run.right for run in runs.values()), len(runs))
    return f"{100 * satisfied:.1f} / {100 * right.share:.0f} ({100 * right.low:.0f}–{100 * right.high:.0f})"


def table(results: Results) -> str:
    """Return all cells as CSV."""
    flat: list[dict[str, Any]] = rows(results)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(flat[0]) if flat else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()
