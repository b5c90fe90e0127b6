"""Parts of a constraint that nothing bounds: where a run can spend the whole canvas, on blanks above all."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import effort
from engine.diagnosis import graphs, schema, strings
from engine.diagnosis.subject import finding_at, listed, named, place_of, places_of
from engine.errors import Finding
from engine.pattern import Chars, Repeat

if TYPE_CHECKING:
    from engine.constraints import Constraint
    from engine.diagnosis.subject import Subject
    from engine.errors import Place
    from engine.pattern import Ranges
    from engine.trace import Config

_QUANTIFIER = re.compile(r"(?:\*|\+|\{(\d*),\})\??$")
_COUNTED = re.compile(r"\{(\d*),(\d*)\}\??$")
QUICK_STATES = 2_400
"""Copies times states up to which a bound is offered where nothing is wrong yet."""
LEAST_COPIES, MOST_COPIES = 8, 32
"""Bounds that are offered: each copy takes its own states."""


def loops(constraint: Constraint, blanks: bool) -> set[int]:
    """Return the leaves that some cycle writes: any, or those that write blanks alone, in a cycle of nothing else."""
    automaton = constraint.automaton
    ptr, _, target, origin = strings.Walker(automaton).moves
    source = np.repeat(np.arange(automaton.states), np.diff(ptr))
    if blanks:
        blank = _blank_leaves(constraint)
        kept = np.asarray([set(leaves) <= blank for leaves in automaton.origin_sets], bool)[origin]
        source, target, origin = source[kept], target[kept], origin[kept]
    component = graphs.components(source, target, automaton.states)
    inside = (component[source] >= 0) & (component[source] == component[target])
    return {leaf for o in np.unique(origin[inside]) for leaf in automaton.origin_sets[o]}


def _blank_leaves(constraint: Constraint) -> set[int]:
    """The leaves whose characters are all blanks."""
    characters = [(n.origin, n.ranges) for n in constraint.nodes if isinstance(n, Chars)]
    other = {origin for origin, ranges in characters if not _blank(ranges)}
    blank = {origin for origin, _ in characters} - other
    return {leaf for leaf, origin in enumerate(constraint.automaton.leaves) if origin in blank}


@lru_cache(maxsize=1_024)
def _blank(ranges: Ranges) -> bool:
    return all(high - low < 32 and all(chr(c).isspace() for c in range(low, high + 1)) for low, high in ranges)


def findings(subject: Subject) -> list[Finding]:
    """Tell of blanks that nothing bounds, and of other parts that nothing bounds."""
    constraint = subject.constraint
    effort.spend(0.1 * constraint.automaton.source.size)
    everything = places_of(constraint, loops(constraint, blanks=False))
    if not everything:
        return []
    out = []
    if blank := places_of(constraint, loops(constraint, blanks=True)):
        message = f"Nothing bounds the blanks of {listed(blank)}: a run may spend all its tokens on them."
        advice = "Allow at most one blank there, or a fixed spelling."
        out.append(finding_at("blanks", "warning", blank, message, fixes=(advice,)))
    rest = tuple(place for place in everything if place not in blank)
    if rest:
        message = f"Nothing bounds {listed(rest)}: only the canvas ends it."
        advice = "Give it an upper bound if a run tends to stay in it."
        out.append(finding_at("unbounded", "info", rest, message, fixes=(advice,)))
    return out


def remedies(finding: Finding, subject: Subject, copies: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the changes that bound the repetitions around the finding's places, untried; of a schema only the first.

    Args:
        finding: whose places stand in them.
        subject: whose constraint is to be changed.
        copies: the bound; by default 1 for blanks, else the canvas.
    """
    if not isinstance(subject.config.source, str):
        return []
    places = [place for place in (finding.where, *finding.related) if place is not None]
    if copies is None:
        copies = 1 if finding.code == "blanks" else _copies(subject)
    if not copies:
        return []
    if subject.config.kind in schema.KINDS:
        first = finding.where
        if first is None or first.pointer is None:
            return []
        changed = schema.bounded(subject.config.source, first.pointer, copies)
        return [(f"Bound {named(first)} to {copies}", {"source": changed})] if changed != subject.config.source else []
    if subject.config.kind != "regex":
        return []
    spans = [p for p in _unbounded(subject.constraint) if any(p.start <= q.start and q.stop <= p.stop for q in places)]
    if finding.code == "blanks":
        spans = [p for p in spans if any((p.start, q.stop) == (q.start, q.stop) or p.start == q.start for q in places)]
    source = subject.config.source
    for place in sorted(spans, key=lambda p: -p.stop):
        source = source[: place.start] + _bounded(source[place.start : place.stop], copies) + source[place.stop :]
    return [(f"Bound {listed(tuple(places))} to {copies}", {"source": source})] if spans else []


def _copies(subject: Subject) -> int:
    """Return a bound that takes milliseconds to try; 0 where none does."""
    room = QUICK_STATES // subject.automaton.states
    return 0 if room < LEAST_COPIES else min(subject.config.length, MOST_COPIES, room)


def remedies_of_size(finding: Finding, config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Return the change that takes out what makes too many states, of a repetition only its upper limit; untried."""
    place, source = finding.where, config.source
    if place is None or not isinstance(source, str):
        return []
    if config.kind in schema.KINDS:
        if finding.code != "size" or not place.pointer:
            return []
        return [(f"Remove {place.pointer}", {"source": schema.removed(source, place.pointer)})]
    if config.kind != "regex":
        return []
    text = source[place.start : place.stop]
    found = _COUNTED.search(text)
    if not found or not found[2]:
        return []
    free = f"{text[: found.start()]}{{{found[1] or 0},}}"
    return [
        (
            f"Take the limit {found[2]} from {named(place)}",
            {"source": source[: place.start] + free + source[place.stop :]},
        )
    ]


def _unbounded(constraint: Constraint) -> list[Place]:
    """The places of the repetitions without an upper limit."""
    found = {n.origin for n in constraint.nodes if isinstance(n, Repeat) and n.most is None}
    return [place_of(constraint, origin) for origin in found]


def _bounded(text: str, copies: int) -> str:
    """Give the quantifier at the end of a regex an upper bound."""
    found = _QUANTIFIER.search(text)
    if not found:
        return text
    least = 1 if found[0].startswith("+") else int(found[1] or 0)
    bound = "?" if (least, copies) == (0, 1) else "" if least == copies == 1 else f"{{{least},{max(copies, least)}}}"
    return text[: found.start()] + bound
