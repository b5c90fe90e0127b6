"""Puzzles: a run that fails for one of the reasons that the diagnosis knows, to be mended by whoever learns.

A puzzle is solved when the debugger's own check has nothing to say against the configuration, before the run and after
it, and the constraint still accepts what it is for. No text is compared with a stored answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.lessons import recipes
from engine.errors import Finding, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.trace import Config

MOST_CHARACTERS = 200
LENGTHS = (1, 24)


@dataclass(frozen=True)
class Puzzle:
    """What is broken, and what must stay.

    Attributes:
        tokens: of the typed model.
        row: its distribution, the same at every position; uneven ones make it write what it shouldn't.
        eos: the token that ends a text, if it has one.
        keeps: texts of which the mended constraint still accepts one.
        fixed_length: of the canvas, where it may not be changed.
    """

    tokens: tuple[str, ...]
    row: tuple[float, ...]
    keeps: tuple[str, ...]
    eos: str | None = None
    fixed_length: int | None = None


_DIGITS = tuple("0123456789")
_BLANK = "<end>"
PUZZLES = {
    "short": Puzzle((*_DIGITS, "-"), (0.08,) * 10 + (0.2,), ("2026-11-30",)),
    "gap": Puzzle((*_DIGITS, ":", " "), (0.08,) * 10 + (0.1, 0.1), ("12:34", "12 34"), fixed_length=5),
    "blanks": Puzzle(
        ("{", "}", '"ok"', ":", "true", "false", " ", _BLANK),
        (0.03, 0.03, 0.03, 0.03, 0.02, 0.02, 0.8, 0.04),
        ('{"ok":true}', '{"ok": true}', '{ "ok": true }', '{ "ok" : true }'),
        eos=_BLANK,
        fixed_length=16,
    ),
}


@dataclass(frozen=True)
class Check:
    """What the debugger finds about an attempt.

    Attributes:
        findings: of the diagnosis, errors and warnings only.
        config: of the run, where it could run.
        accepted: whether the run's text is accepted; None where it could not run.
        kept: whether the constraint still accepts what it is for.
    """

    findings: tuple[Finding, ...]
    config: Config | None
    accepted: bool | None
    kept: bool

    @property
    def solved(self) -> bool:
        """Whether nothing speaks against the attempt any more."""
        return not self.findings and bool(self.accepted) and self.kept


def attempt(puzzle: Puzzle, source: str, length: int) -> Check:
    """Diagnose a constraint on a puzzle's model, run it where that is possible, and diagnose the run."""
    from engine import models
    from engine.diagnosis import dynamic, static

    said = {"tokens": list(puzzle.tokens), "eos": puzzle.eos, "mean_field": [list(puzzle.row)] * length}
    model = recipes.TABLE + json.dumps(said, ensure_ascii=False)
    config = recipes.config(source, model, length, steps=1)
    findings = static.findings(config, models.load(model).vocabulary)
    if any(finding.severity == "error" for finding in findings):
        return Check(_serious(findings), None, None, _kept(puzzle, source))
    trace = recipes.recorded(config)
    findings = (*findings, *dynamic.findings(trace))
    return Check(_serious(findings), config, bool(trace.accepted), _kept(puzzle, source))


def _serious(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if finding.severity in ("error", "warning"))


def _kept(puzzle: Puzzle, source: str) -> bool:
    from engine import constraints

    try:
        constraint = constraints.read("regex", source)
        return any(constraint.accepts(text) for text in puzzle.keeps)
    except InputError:
        return False


def plain(check: Check, puzzle: Puzzle) -> dict[str, Any]:
    """Return a check as the page shows it."""
    findings = [
        {
            "code": finding.code,
            "severity": finding.severity,
            "message": finding.message,
            "frame": finding.where.frame() if finding.where else None,
            "fixes": list(finding.fixes),
        }
        for finding in check.findings
    ]
    facts = {"accepted": check.accepted, "kept": check.kept, "solved": check.solved}
    return {**facts, "findings": findings, "keeps": list(puzzle.keeps)}
