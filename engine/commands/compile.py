"""`python -m engine compile`: what a constraint is for a vocabulary."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
import typer

from engine.commands.console import Json, Model, console, print_finding, print_json
from engine.commands.constraint import Given, takes_constraint
from engine.errors import ConfigError

MOST = 65_536
"""Tokens up to which lengths are looked at; a canvas has far fewer."""


@takes_constraint
def compile_(
    given: Given,
    model: Model = "embedded",
    length: Annotated[int, typer.Option(help="Largest token length that is looked at.")] = 64,
    as_json: Json = False,
) -> None:
    """Compile a constraint for a model's vocabulary and say what came out."""
    from engine import models, token_automaton
    from engine.inference import paths

    if not 0 <= length <= MOST:
        raise ConfigError(f"The length is {length}, and it must be from 0 to {MOST}.", "Choose one in that range.")
    constraint = given.read()
    vocabulary = models.vocabulary(model)
    started = time.perf_counter()
    compiled = token_automaton.compile(constraint, vocabulary)
    compile_ms = 1e3 * (time.perf_counter() - started)
    accepted = np.flatnonzero(compiled.accepted_lengths(length)).tolist()
    findings = [*constraint.findings, *constraint.automaton.findings]
    content = {
        "states": compiled.states,
        "accepting": int(compiled.accepting.sum()),
        "edges": int(compiled.edges.target.size),
        "token_classes": compiled.classes,
        "labels": compiled.edges.labels,
        "deterministic": compiled.deterministic,
        "ambiguous": paths.ambiguous(compiled),
        "min_tokens": accepted[0] if accepted else None,
        "max_tokens": accepted[-1] if accepted else None,
        "accepted_lengths": accepted,
        "findings": [finding.plain() for finding in findings],
        "compile_ms": round(compile_ms, 3),
    }
    if as_json:
        print_json(content)
        return
    for name, value in content.items():
        if name != "findings":
            console.print(f"{name:18} {_lengths(accepted) if name == 'accepted_lengths' else value}", highlight=False)
    for f in findings:
        print_finding(f, whole=f.severity != "info")


def _lengths(lengths: list[int]) -> str:
    """Write lengths as ranges."""
    parts: list[list[int]] = []
    for n in lengths:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in parts) or "none"
