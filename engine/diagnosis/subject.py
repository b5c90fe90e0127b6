"""What is diagnosed before a run: a configuration with its constraint compiled as far as it can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from engine import constraints, token_automaton
from engine.errors import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.constraints import Constraint
    from engine.pattern import Origin
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

SEVERITIES = ("error", "warning", "info")
READ = {"kind", "source", "reading"}
"""Fields of a configuration that say what the constraint is."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A configuration that compiles.

    Attributes:
        config: of the run.
        vocabulary: of its model.
        constraint: as it was read.
        automaton: the constraint over the vocabulary.
    """

    config: Config
    vocabulary: Vocabulary
    constraint: Constraint
    automaton: TokenAutomaton

    def changed(self, changes: Mapping[str, Any]) -> Subject:
        """Return the subject with fields of its configuration changed; compiles anew where the constraint changes.

        Raises:
            InputError: the changed constraint can't be read or compiled.
        """
        config = replace(self.config, **changes)
        if READ & changes.keys():
            return subject_of(config, self.vocabulary)
        return replace(self, config=config)

    def written(self, token_id: int) -> str:
        """Return the text of a token, with broken characters replaced."""
        return (self.vocabulary.written(token_id) or b"").decode(errors="replace")


def subject_of(config: Config, vocabulary: Vocabulary) -> Subject:
    """Read and compile the constraint of a configuration.

    Raises:
        InputError: it can't be read, passes a budget, or accepts nothing that the vocabulary can write.
    """
    constraint = constraints.read(config.kind or "", config.source, **dict(config.reading))
    return Subject(config, vocabulary, constraint, token_automaton.compile(constraint, vocabulary))


def finding_at(
    code: str, severity: Literal["info", "warning", "error"], places: Sequence[Place], message: str, **more: Any
) -> Finding:
    """Return a finding at the first of its places, to which the others belong."""
    return Finding(code, severity, places[0] if places else None, message, related=tuple(places[1:]), **more)


def by_weight(found: Iterable[Finding], order: Sequence[str]) -> tuple[Finding, ...]:
    """Sort findings by severity, then by their codes as `order` has them, others behind."""
    places = {code: n for n, code in enumerate(order)}
    return tuple(sorted(found, key=lambda f: (SEVERITIES.index(f.severity), places.get(f.code, len(places)))))


def place_of(constraint: Constraint, origin: Origin) -> Place:
    """Return the place of an origin in the constraint's source."""
    return Place(constraint.text, origin.start, origin.stop, origin.pointer)


def places_of(constraint: Constraint, leaves: Iterable[int]) -> tuple[Place, ...]:
    """Return the distinct places of leaves of the byte automaton, in source order."""
    spans = {constraint.automaton.leaves[leaf] for leaf in leaves}
    ordered = sorted(spans, key=lambda origin: (origin.start, origin.stop))
    return tuple(place_of(constraint, origin) for origin in ordered)


def places_at(subject: Subject, states: Iterable[int]) -> tuple[Place, ...]:
    """Return the distinct places that states of the token automaton may write next, in source order."""
    pointers = {(o.start, o.stop): o.pointer for o in subject.constraint.automaton.leaves}
    spans = {span for state in states for span in subject.automaton.state_spans[state]}
    return tuple(Place(subject.constraint.text, *span, pointers.get(span)) for span in sorted(spans))


def named(place: Place | None) -> str:
    """Name a place in a sentence: its JSON pointer, or what stands there."""
    if place is None:
        return "the constraint"
    if place.pointer is not None:
        return place.pointer or "the root"
    text = place.source[place.start : place.stop]
    if not text:
        return "what the source leaves unsaid"
    return quoted(text if len(text) <= 40 else f"{text[:30]}…{text[-8:]}")


def quoted(text: str) -> str:
    """Put a text of the source in quotes as it was written; a backslash in it stays one."""
    return f"'{text}'" if text.isprintable() else repr(text)


def listed(places: Iterable[Place]) -> str:
    """Name places in a sentence: one, two, or the first and how many more."""
    names = list(dict.fromkeys(named(place) for place in places))
    if len(names) > 2:
        return f"{names[0]} and {len(names) - 1} more parts"
    return " and ".join(names)
