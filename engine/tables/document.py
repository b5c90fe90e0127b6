"""The page of a table run: what was measured on which machine, where it disagrees with the paper, all numbers."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.tables import report
from engine.tables.cells import ARMS, Cell
from engine.tables.results import VERSION, broken, rows
from engine.tasks import families

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.tables.latency import Latency
    from engine.tables.results import Results
    from engine.tables.runner import Run

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Claim:
    """What the source paper finds: one arm has more right answers than another.

    Attributes:
        better: the arm that is said to have more.
        worse: the other one.
        words: what that means.
        strict: whether a right answer that breaks its constraint counts as wrong; else any spelling is right.
    """

    better: str
    worse: str
    words: str
    strict: bool = False


CLAIMS = (
    Claim("Mar", "independent", "under the constraint, more answers are right and as asked for", strict=True),
    Claim("Mf", "independent", "so they are with the model's own confidence", strict=True),
    Claim("Mar", "independent", "under the constraint, more answers are right in whatever spelling"),
    Claim("Mf", "independent", "so they are with the model's own confidence"),
    Claim("Mar", "Mf", "the confidence under the constraint chooses better positions than the model's own"),
    Claim("Mar", "local", "a joint draw beats restricting each position by itself", strict=True),
    Claim("Mar", "lookahead", "the exact posterior beats looking ahead"),
)


def facts(command: str) -> dict[str, Any]:
    """Return what a reader must know to measure again: machine, versions, commit and command."""
    import torch

    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        commit = found.stdout.strip()
    except OSError:
        commit = ""
    return {
        "command": command,
        "commit": commit or "unknown",
        "cpu": ", ".join(sorted(names)) or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def summary(results: Results, model: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything of a run but its texts, for the page: JSON of a few hundred bytes a cell."""
    flat = rows(results)
    for row in flat:
        for name, value in row.items():
            row[name] = round(value, 4) if isinstance(value, float) else value
    names = list(flat[0]) if flat else []
    cells = [[row[name] for name in names] for row in flat]
    titles = {family.name: family.title for family in families.FAMILIES}
    found = {"model": dict(model), "measured": dict(measured), "titles": titles, "fields": names, "cells": cells}
    return {"version": VERSION, **found}


def sign_test(results: Results, better: Cell, worse: Cell, strict: bool = False) -> tuple[int, int, float]:
    """Return how many problems only one of two cells answers, and the exact two-sided p of such a difference.

    The cells share problems and noise, so that only the problems on which they part tell anything (McNemar 1947).
    """
    from scipy.stats import binomtest

    def answers(run: Run) -> bool:
        return run.right and (run.satisfied or not strict)

    others = results[worse]
    pairs = [(answers(run), answers(others[n])) for n, run in results[better].items() if n in others]
    gained, lost = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    return gained, lost, float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def compared(results: Results) -> Iterator[tuple[Claim, Cell, str, int, int]]:
    """Yield for each claim and cell whether it `holds`, is `contrary` or `open` (5 % level), and the two counts."""
    for claim in CLAIMS:
        for better in results:
            worse = Cell(better.task, claim.worse, better.temperature, better.steps)
            if better.arm == claim.better and worse in results:
                gained, lost, p = sign_test(results, better, worse, claim.strict)
                verdict = "open" if p >= 0.05 else "holds" if gained > lost else "contrary"
                yield claim, better, verdict, gained, lost


def markdown(
    results: Results, model: Mapping[str, Any], measured: Mapping[str, Any], latencies: Sequence[Latency]
) -> Iterator[str]:
    """Yield the lines of `docs/TABLES.md`."""
    yield "# The papers' tables, on the embedded model"
    yield ""
    yield from _measured(model, measured, max((len(runs) for runs in results.values()), default=0))
    yield from _promise(results)
    yield from _verdicts(results)
    yield from _latency(latencies)
    yield "## Accuracy and satisfaction"
    yield ""
    yield (
        "Each cell: texts that satisfy their constraint / right answers in any spelling, both in per cent, and the "
        "95 % interval (Wilson) of the latter. At temperature 0 `map` is `Mf`, and `reject` is `independent`."
    )
    yield ""
    for task in dict.fromkeys(cell.task for cell in results):
        yield f"### {families.named(task).title}"
        yield ""
        for temperature in sorted({cell.temperature for cell in results if cell.task == task}):
            part = {c: r for c, r in results.items() if c.task == task and c.temperature == temperature}
            yield f"![{task}, T = {temperature:g}]({picture(task, temperature)})"
            yield ""
            yield from report.markdown(part)


def picture(task: str, temperature: float) -> str:
    """Name the picture of a task and temperature, relative to the page."""
    return f"tables/{task}-T{temperature:g}.svg"


def _measured(model: Mapping[str, Any], measured: Mapping[str, Any], count: int) -> Iterator[str]:
    yield f"    {measured['command']}"
    yield ""
    yield (
        f"Model {model['name']}, revision {model.get('revision', 'unknown')}, {model.get('parameters', 0):,} "
        f"parameters, {model.get('dtype', '')}; commit {measured['commit']}; {measured['cpu']}, {measured['cores']} "
        f"cores, one thread; Python {measured['python']}, torch {measured['torch']}. The first {count} held-out "
        "problems of each task, the same for all arms; a problem's number is its seed. The model is small and was "
        "trained for this project: its numbers show what the methods do to one model, not what they do to a large one."
    )
    yield ""
    yield "| arm | draw | what chooses the positions |"
    yield "|---|---|---|"
    for arm, (sampler, confidence) in ARMS.items():
        yield f"| {arm} | {sampler} | {'posterior (Mar)' if confidence == 'mar' else 'mean field (Mf)'} |"
    yield ""


def _promise(results: Results) -> Iterator[str]:
    wrong = broken(results)
    runs = sum(len(found) for cell, found in results.items() if cell.constrained)
    yield "## The promise"
    yield ""
    if wrong:
        yield f"**BROKEN.** {len(wrong)} of {runs:,} runs of constrained arms do not satisfy their constraint:"
        yield ""
        yield from (f"- `{name}`" for name in wrong[:20])
    else:
        yield (
            f"All {runs:,} runs of the constrained arms (map, Mf, Mar) satisfy their constraint: 100.0 %, each text "
            "judged by an oracle that shares no code with the engine: Python's `re`, `json`, `ast` and `sqlite3`, and "
            "`jsonschema`."
        )
    yield ""


def _verdicts(results: Results) -> Iterator[str]:
    found = list(compared(results))
    yield "## What the paper finds, and what this model shows"
    yield ""
    yield (
        "Each claim is held against every task, temperature and number of steps, by the exact sign test on the "
        "problems that only one of the two arms answers (two-sided, 5 %, not corrected for the number of tests)."
    )
    yield ""
    yield "| claim | arms | holds | not decided | contrary |"
    yield "|---|---|---|---|---|"
    for claim in CLAIMS:
        verdicts = [verdict for of, _, verdict, _, _ in found if of == claim]
        counts = " | ".join(str(verdicts.count(name)) for name in ("holds", "open", "contrary"))
        yield f"| {claim.words} | {claim.better} > {claim.worse} | {counts} |"
    yield ""
    contrary = [row for row in found if row[2] == "contrary"]
    yield "Where this model disagrees with the paper:" if contrary else "Nowhere does this model contradict the paper."
    yield ""
    for claim, cell, _, gained, lost in contrary:
        counted = "right and as asked for" if claim.strict else "right in whatever spelling"
        yield (
            f"- {cell.task}, T = {cell.temperature:g}, {cell.steps} steps, {counted}: {claim.better} answers {gained} "
            f"problems that {claim.worse} doesn't, and {claim.worse} {lost} that {claim.better} doesn't."
        )
    if contrary:
        yield ""


def _latency(found: Sequence[Latency]) -> Iterator[str]:
    free = {row.task: row for row in found if row.sampler == "unconstrained"}
    yield "## Latency"
    yield ""
    yield (
        "Milliseconds a sample, one token a step, T = 1, everything recorded as on the page, compiling left out, and "
        "what that adds to the same model without a constraint, which is recorded too; *forward* is the forward passes "
        "of the latter alone. On a CPU with a model this small the engine's share is at its largest; the source paper "
        "measured a 7B model on a GPU."
    )
    yield ""
    yield "| task | canvas | states | forward | " + " | ".join(dict.fromkeys(row.sampler for row in found)) + " |"
    yield "|---" * (4 + len({row.sampler for row in found})) + "|"
    for task in free:
        part = [row for row in found if row.task == task]
        cells = [
            f"{row.sample_ms:.0f}"
            + ("" if row.sampler == "unconstrained" else f" ({row.sample_ms / free[task].sample_ms - 1:+.0%})")
            for row in part
        ]
        sizes = f"{part[0].length} | {part[0].states} | {free[task].model_ms:.0f}"
        yield f"| {task} | {sizes} | {' | '.join(cells)} |"
    yield ""
