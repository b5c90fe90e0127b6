"""Pins and bans that leave nothing accepted: which of them, and where the two fronts stop short of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.diagnosis import conflict
from engine.diagnosis.subject import finding_at, places_at
from engine.errors import Finding, Focus
from engine.inference import support

if TYPE_CHECKING:
    from engine.diagnosis.subject import Subject


def findings(subject: Subject) -> list[Finding]:
    """Find the pins that contradict the constraint together; nothing where they and the bans leave a completion."""
    config, automaton = subject.config, subject.automaton
    if not config.pins and not config.bans:
        return []
    found = support.conflict(automaton, config.length, config.pins, config.bans)
    if found is None:
        return []
    if not found:
        message = f"The {len(config.bans)} banned tokens leave nothing of {config.length} tokens that is accepted."
        return [Finding("pins", "error", None, message, ("Remove some of the bans.",))]
    canvas = _canvas(subject, found)
    forward, backward = conflict.fronts(canvas)
    reached = int(np.flatnonzero(forward.any(axis=1))[-1])
    needed = int(np.flatnonzero(backward.any(axis=1))[0])
    places = places_at(subject, np.flatnonzero(forward[reached]).tolist())
    alone = conflict.impossible_alone(canvas)
    evidence = {
        "pins": [
            {"position": i, "token_id": v, "text": subject.written(v), "impossible_alone": bool(alone[i])}
            for i, v in found
        ],
        "last_boundary_reached": reached,
        "first_boundary_that_finishes": needed,
    }
    return [
        finding_at(
            "pins",
            "error",
            places,
            _message(subject, found, len(found) == 1 and bool(alone[found[0][0]])),
            fixes=("Remove or move one of them, or change the constraint or the length.",),
            focus=Focus(step=0, position=found[-1][0]),
            evidence=evidence,
        )
    ]


def _canvas(subject: Subject, placed: tuple[tuple[int, int], ...]) -> conflict.Canvas:
    token_ids = np.zeros(subject.config.length, np.int32)
    committed = np.zeros(subject.config.length, bool)
    for position, token_id in placed:
        token_ids[position], committed[position] = token_id, True
    return conflict.Canvas(subject.automaton, token_ids, committed)


def _message(subject: Subject, found: tuple[tuple[int, int], ...], alone: bool) -> str:
    texts = [f"{subject.written(v)!r} at {i}" for i, v in found]
    length = subject.config.length
    if alone:
        return f"No accepted text of {length} tokens has {texts[0]}, where it is pinned."
    if len(texts) == 1:
        return f"With the bans, no accepted text of {length} tokens has {texts[0]}, where it is pinned."
    listed = f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"No accepted text of {length} tokens has the pins {listed} together; without any one of them there is one."


def remedies(finding: Finding, subject: Subject) -> list[tuple[str, dict[str, Any]]]:
    """Return changes that leave out one pin of the conflict each, and more where other conflicts remain; untried."""
    out = []
    config = subject.config
    for pin in reversed(finding.evidence.get("pins", ())):
        kept = [p for p in config.pins if p[0] != pin["position"]]
        while rest := support.conflict(subject.automaton, config.length, kept, config.bans):
            kept.remove(rest[-1])
        removed = [p for p in config.pins if p not in kept]
        texts = " and ".join(f"{subject.written(v)!r} at {i}" for i, v in removed)
        out.append((f"Remove the pin{'s' if len(removed) > 1 else ''} {texts}", {"pins": tuple(kept)}))
    return out
