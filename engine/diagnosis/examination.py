"""What can be said of a constraint and its canvas before a run; no change is tried yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import constraints, effort, token_automaton
from engine.diagnosis import empty, gaps, lengths, loops, pins, settings, specials
from engine.diagnosis.merging import merged
from engine.diagnosis.subject import Subject, by_weight, named, place_of
from engine.errors import (
    EmptyLanguageError,
    Finding,
    InputError,
    NotRegularError,
    PatternSyntaxError,
    SizeError,
)
from engine.pattern import Repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.automaton import ByteAutomaton
    from engine.constraints import Constraint
    from engine.pattern import Origin
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

STEPS = 1_000_000
"""Of work for each part of an examination; see `engine.effort`."""
MANY_STATES = 2_000
"""From this size on the parts that make the most states are worth telling."""
SHOWN = 5
"""Parts of a large constraint that are told with their states."""
ORDER = ("syntax", "unsupported", "size", "empty", "settings", "vocabulary", "special", "pins", "length", "blanks")
"""Codes by how much they explain, among findings of one severity; others come after these."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What is known of a configuration.

    Attributes:
        config: of the run.
        found: the findings, the best explanation first.
        constraint: as it was read; None where it can't be read.
        subject: it over the vocabulary; None where it does not compile that far.
    """

    config: Config
    found: tuple[Finding, ...]
    constraint: Constraint | None = None
    subject: Subject | None = None


def examine(config: Config, vocabulary: Vocabulary) -> Examined:
    """Find what is wrong with a configuration, as far as it can be looked at.

    Args:
        config: of the run; its constraint, length, pins and bans are looked at.
        vocabulary: of its model.
    """
    text = examine_text(config)
    constraint = text.constraint
    if constraint is None or any(f.code in ("size", "settings") for f in text.found) or constraint.automaton.is_empty:
        return text
    try:
        subject = Subject(config, vocabulary, constraint, token_automaton.compile(constraint, vocabulary))
    except EmptyLanguageError as error:
        missing = _gaps(constraint, vocabulary)
        found = [*constraint.findings, *(missing or [refusal(error)])]
        return Examined(config, ranked(found), constraint)
    return examine_subject(subject)


def examine_text(config: Config) -> Examined:
    """Find what is wrong with a constraint whatever the vocabulary, and with the settings whatever the constraint."""
    refused = settings.findings(config)
    try:
        constraint = constraints.read(config.kind or "", config.source, **dict(config.reading))
    except InputError as error:
        return Examined(config, ranked([refusal(error), *refused]))
    found = [*constraint.findings, *refused]
    try:
        if constraint.automaton.is_empty:
            found = _once(found, _conflict(constraint))
    except SizeError as error:
        found.append(refusal(error))
    return Examined(config, ranked(found), constraint)


def examine_subject(subject: Subject) -> Examined:
    """Find what is wrong with a configuration whose constraint is compiled already."""
    constraint = subject.constraint
    known = [*constraint.findings, *constraint.automaton.findings]
    tokens = [*_gaps(constraint, subject.vocabulary), *_specials(subject)]
    found = [*known, *tokens, *_size(constraint), *_loops(subject), *on_canvas(subject)]
    return Examined(subject.config, ranked(found), constraint, subject)


def on_canvas(subject: Subject) -> list[Finding]:
    """Hold the canvas and what is pinned on it against the constraint."""
    found = _within("length", "Which lengths are accepted", lambda: lengths.findings(subject))
    if any(f.severity == "error" for f in found):
        return found
    return [*found, *_within("pins", "Whether the pins contradict the constraint", lambda: pins.findings(subject))]


def ranked(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity, then by what explains most; what holds at several places is told once."""
    return by_weight(merged(found), ORDER)


def _within(code: str, what: str, find: Callable[[], list[Finding]]) -> list[Finding]:
    """Look for findings within the limit of work, or say that what they would tell is not known."""
    try:
        with effort.limited(STEPS):
            return find()
    except effort.OutOfStepsError:
        message = f"{what} was not determined: that takes too much work."
        return [Finding(code, "info", None, message, evidence={"determined": False})]


def _gaps(constraint: Constraint, vocabulary: Vocabulary) -> list[Finding]:
    what = "Whether tokens can write every part of the constraint"
    return _within("vocabulary", what, lambda: gaps.findings(constraint, vocabulary))


def _specials(subject: Subject) -> list[Finding]:
    what = "Whether the constraint writes out special tokens"
    return _within("special", what, lambda: specials.findings(subject.constraint, subject.vocabulary))


def _loops(subject: Subject) -> list[Finding]:
    return _within("unbounded", "Which parts nothing bounds", lambda: loops.findings(subject))


def _conflict(constraint: Constraint) -> Finding:
    """Say that nothing is accepted, and why if that is found within the limit of work."""
    try:
        with effort.limited(STEPS):
            return empty.finding(*empty.places(constraint))
    except effort.OutOfStepsError:
        return empty.undetermined()


def _once(found: list[Finding], nothing: Finding) -> list[Finding]:
    """Tell of an empty language once: by the conflict over the whole source where it was determined."""
    others = [f for f in found if f.code != "unsatisfiable"]
    return [*others, nothing] if len(others) == len(found) or "conflict" in nothing.evidence else found


def refusal(error: InputError) -> Finding:
    """Return a refusal as a finding."""
    code = {PatternSyntaxError: "syntax", NotRegularError: "unsupported", SizeError: "size"}.get(type(error), "input")
    return Finding(code, "error", error.place, error.problem, (error.remedy,))


def _size(constraint: Constraint) -> list[Finding]:
    """Name the parts that make the most states of a large automaton."""
    compiled = constraint.automaton
    if compiled.states < MANY_STATES:
        return []
    states = _states_by_leaf(compiled)
    largest = [leaf for leaf in np.argsort(-states, kind="stable")[:SHOWN].tolist() if states[leaf]]
    repeats = [node for node in constraint.nodes if isinstance(node, Repeat)]
    places = [place_of(constraint, _copied(repeats, compiled.leaves[leaf])) for leaf in largest]
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


def _states_by_leaf(automaton: ByteAutomaton) -> np.ndarray:
    """Return int `[leaves]`: how many states have a move that each leaf may write."""
    number, sets = automaton.state_leaves
    found = np.zeros(len(automaton.leaves), np.int64)
    for leaves, states in zip(sets, np.bincount(number).tolist(), strict=True):
        found[list(leaves)] += states
    return found


def _copied(repeats: list[Repeat], leaf: Origin) -> Origin:
    """Return the repetition around a leaf that makes the most copies of it, or the leaf."""
    around = [r for r in repeats if r.origin.start <= leaf.start and leaf.stop <= r.origin.stop]
    most = max(around, key=lambda node: node.most or node.least, default=None)
    return most.origin if most is not None and (most.most or most.least) > 1 else leaf
