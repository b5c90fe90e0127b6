"""What can be said of a constraint and its canvas before a run, the most important first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import constraints, effort, token_automaton
from engine.diagnosis import empty, gaps, lengths, loops, pins, specials, spelling
from engine.diagnosis.subject import READ, Subject, named, place_of
from engine.errors import (
    EmptyLanguageError,
    Finding,
    InputError,
    NotRegularError,
    PatternSyntaxError,
    Remedy,
    SizeError,
)
from engine.pattern import Repeat, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.constraints import Constraint
    from engine.errors import Place
    from engine.pattern import Origin
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

STEPS = 1_000_000
"""Of work for each part of a diagnosis; see `engine.effort`."""
MANY_STATES = 2_000
"""From this size on the parts that make the most states are worth telling."""
ORDER = ("syntax", "unsupported", "size", "empty", "vocabulary", "special", "pins", "length", "blanks")
"""Codes by how much they explain, among findings of one severity; others come after these."""
SEVERITIES = ("error", "warning", "info")


def findings(config: Config, vocabulary: Vocabulary) -> tuple[Finding, ...]:
    """Diagnose a configuration; each remedy has been tried.

    Args:
        config: of the run; its constraint, length, pins and bans are looked at.
        vocabulary: of its model.

    Returns:
        The findings, the best explanation first.
    """
    found, subject = _compiled(config, vocabulary)
    found = [*found, *_on_canvas(subject)] if subject else found
    return tuple(_with_remedies(finding, found, config, vocabulary, subject) for finding in ranked(found))


def of_subject(subject: Subject) -> tuple[Finding, ...]:
    """Diagnose a configuration whose constraint is compiled already, as `findings` does."""
    found = [*_of_constraint(subject), *_on_canvas(subject)]
    return tuple(
        _with_remedies(finding, found, subject.config, subject.vocabulary, subject) for finding in ranked(found)
    )


def ranked(found: Iterable[Finding]) -> list[Finding]:
    """Sort by severity, then by what explains most."""
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), _order(finding.code)))


def _order(code: str) -> int:
    return ORDER.index(code) if code in ORDER else len(ORDER)


def _compiled(config: Config, vocabulary: Vocabulary) -> tuple[list[Finding], Subject | None]:
    """Go as far as the constraint compiles; what the canvas adds is not in it."""
    try:
        constraint = constraints.read(config.kind or "", config.source, **dict(config.reading))
    except InputError as error:
        return [refusal(error)], None
    found = list(constraint.findings)
    try:
        if constraint.automaton.is_empty:
            return _once(found, empty.finding(constraint)), None
    except SizeError as error:
        return [*found, refusal(error)], None
    try:
        subject = Subject(config, vocabulary, constraint, token_automaton.compile(constraint, vocabulary))
    except EmptyLanguageError as error:
        missing = _gaps(constraint, vocabulary)
        return [*found, *(missing or [refusal(error)])], None
    return _of_constraint(subject), subject


def _once(found: list[Finding], nothing: Finding) -> list[Finding]:
    """Tell of an empty language once: by the conflict over the whole source where it was determined."""
    others = [f for f in found if f.code != "unsatisfiable"]
    return [*others, nothing] if len(others) == len(found) or "conflict" in nothing.evidence else found


def _of_constraint(subject: Subject) -> list[Finding]:
    """Say what a compiled constraint asks of this vocabulary, whatever the canvas."""
    constraint = subject.constraint
    known = [*constraint.findings, *constraint.automaton.findings]
    tokens = [*_gaps(constraint, subject.vocabulary), *specials.findings(constraint, subject.vocabulary)]
    return [*known, *tokens, *_size(constraint), *loops.findings(subject)]


def _gaps(constraint: Constraint, vocabulary: Vocabulary) -> list[Finding]:
    try:
        with effort.limited(STEPS):
            return gaps.findings(constraint, vocabulary)
    except effort.OutOfStepsError:
        message = (
            "Whether the vocabulary can write every part of the constraint was not determined: that takes too long."
        )
        return [Finding("vocabulary", "info", None, message)]


def _on_canvas(subject: Subject) -> list[Finding]:
    """Hold the canvas and what is pinned on it against the constraint."""
    found = lengths.findings(subject)
    return found if any(f.severity == "error" for f in found) else [*found, *pins.findings(subject)]


def refusal(error: InputError) -> Finding:
    """Return a refusal as a finding."""
    code = {PatternSyntaxError: "syntax", NotRegularError: "unsupported", SizeError: "size"}.get(type(error), "input")
    return Finding(code, "error", error.place, error.problem, (error.remedy,))


def _size(constraint: Constraint) -> list[Finding]:
    """Name the parts that make the most states of a large automaton."""
    compiled = constraint.automaton
    if compiled.states < MANY_STATES:
        return []
    states = np.zeros(len(compiled.leaves), np.int64)
    written = {
        (state, leaf)
        for state, origin in set(zip(compiled.source.tolist(), compiled.origin.tolist(), strict=True))
        for leaf in compiled.origin_sets[origin]
    }
    for _, leaf in written:
        states[leaf] += 1
    largest = [leaf for leaf in np.argsort(-states, kind="stable")[:5].tolist() if states[leaf]]
    places = [place_of(constraint, _copied(constraint, compiled.leaves[leaf])) for leaf in largest]
    message = (
        f"The constraint has {compiled.states:,} states over bytes; {states[largest[0]]:,} of them can write "
        f"{named(places[0])}."
    )
    evidence = {
        "states": compiled.states,
        "parts": [{"place": p.plain(), "states": int(states[leaf])} for p, leaf in zip(places, largest, strict=True)],
    }
    advice = "Lower the bound of its repetition if runs are slow."
    return [Finding("large", "info", places[0], message, (advice,), related=tuple(places[1:]), evidence=evidence)]


def _copied(constraint: Constraint, leaf: Origin) -> Origin:
    """Return the repetition around a leaf that makes the most copies of it, or the leaf."""
    around = [
        node
        for node in nodes(constraint.pattern)
        if isinstance(node, Repeat) and node.origin.start <= leaf.start and leaf.stop <= node.origin.stop
    ]
    most = max(around, key=lambda node: node.most or node.least, default=None)
    return most.origin if most is not None and (most.most or most.least) > 1 else leaf


def _with_remedies(
    finding: Finding, found: list[Finding], config: Config, vocabulary: Vocabulary, subject: Subject | None
) -> Finding:
    """Add the changes after which the finding is gone and no error has come."""

    def mends(changes: dict[str, Any]) -> bool:
        if subject is not None and not READ & changes.keys():
            on_canvas = {f.code for f in _on_canvas(subject)}
            after = [f for f in found if f.code not in on_canvas] + _on_canvas(subject.changed(changes))
        else:
            after, changed = _compiled(replace(config, **changes), vocabulary)
            after = [*after, *_on_canvas(changed)] if changed else after
        left = [f for f in after if f.code == finding.code]
        if finding.code in ("blanks", "unbounded"):
            # One finding tells of all such places: it is mended where its own place is no longer among them.
            gone = all(_key(p) != _key(finding.where) for f in left for p in (f.where, *f.related))
        else:
            gone = len(left) < sum(f.code == finding.code for f in found)
        # An error that comes later in the order was hidden by this one, or was there before.
        hidden = ORDER[_order(finding.code) + 1 :] if finding.severity == "error" else ()
        known = {f.code for f in found if f.severity == "error"}.union(hidden)
        return gone and all(f.severity != "error" or f.code in known for f in after)

    tried = [Remedy(label, change) for label, change in _candidates(finding, config, subject) if mends(change)]
    return replace(finding, remedies=tuple(tried))


def _key(place: Place | None) -> object:
    """What stays of a place when the text behind it changes."""
    return None if place is None else place.pointer or place.start


def _candidates(finding: Finding, config: Config, subject: Subject | None) -> list[tuple[str, dict[str, Any]]]:
    out = []
    if isinstance(config.source, str):
        out = [(edit.label, {"source": edit.apply(config.source)}) for edit in finding.edits]
    if spelling.concerns(finding):
        out += spelling.remedies(finding, config)
    elif finding.code == "empty":
        out += empty.remedies(finding, config)
    elif finding.code in ("size", "large"):
        out += loops.remedies_of_size(finding, config)
    elif finding.code == "special":
        out += specials.remedies(finding, config)
    elif finding.code == "vocabulary":
        out += gaps.remedies(finding, config)
    elif subject is not None and finding.code in ("length", "tight"):
        out += lengths.remedies(finding, subject)
    elif subject is not None and finding.code == "pins":
        out += pins.remedies(finding, subject)
    elif subject is not None and finding.code in ("blanks", "unbounded"):
        out += loops.remedies(finding, subject)
    return out
