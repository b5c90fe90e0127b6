"""Runs that stay in a loop of the automaton, or end because the canvas does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine.diagnosis import graphs, loops
from engine.diagnosis.subject import Subject, finding_at, named
from engine.errors import Finding, Focus, InputError, Remedy
from engine.partition import distances

if TYPE_CHECKING:
    from engine.constraints import Constraint
    from engine.diagnosis.run import Run
    from engine.errors import Place
    from engine.pattern import Origin
    from engine.token_automaton import TokenAutomaton

LONG_RUN = 10
"""Positions in one part of the source from which on it is looked at; on a longer canvas three eighths of it."""
EXIT_CHANCE = 0.5
"""Where the model would leave the loop with this chance at some position, it is no trap."""
CUT = 0.2
"""Belief in a longer text, at one position, from which on the canvas counts as too short."""


def findings(run: Run) -> list[Finding]:
    """Look for a trap and for a canvas that cut the answer short."""
    return [*_trap(run), *_cut_short(run)]


def _components(automaton: TokenAutomaton, within_parts: bool) -> np.ndarray:
    """Return the strongly connected component of each state, -1 outside of cycles and for the end.

    Args:
        automaton: the constraint over tokens.
        within_parts: count only moves between states that write the same parts of the source.
    """
    edges = automaton.edges
    source = np.repeat(np.arange(automaton.states), np.diff(edges.ptr))
    inside = (source != automaton.end) & (edges.target != automaton.end)
    if within_parts:
        known: dict[object, int] = {}
        part = np.asarray([known.setdefault(spans, len(known)) for spans in automaton.state_spans])
        inside &= part[source] == part[edges.target]
    return graphs.components(source[inside], edges.target[inside], automaton.states)


def longest_stay(run: Run, component: np.ndarray) -> tuple[int, int]:
    """Return `[start, stop)`, the most neighbouring positions whose tokens stay in one component."""
    path = run.path
    best, start = (0, 0), 0
    for i in range(path.size - 1):
        stays = path[i + 1] >= 0 and component[path[i]] >= 0 and component[path[i]] == component[path[i + 1]]
        if not stays:
            start = i + 1
        elif i + 1 - start > best[1] - best[0]:
            best = (start, i + 1)
    return best


def exit_chances(run: Run, component: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return float64 `[stop - start]`: the mean field's mass of leaving the loop, where and when each was committed.

    Of tokens that lead anywhere in the language; NaN where a position was pinned.
    """
    automaton = run.trace.header.automaton
    out = np.full(stop - start, np.nan)
    for i in range(start, stop):
        step = int(run.committed_at[i])
        if step >= 0:
            log_mass = run.trace.steps[step].log_class_mass[i]
            classes, targets = _moves(automaton, int(run.path[i]))
            leaves = component[targets] != component[run.path[i]]
            out[i - start] = np.exp(log_mass[classes[leaves]].astype(np.float64)).sum()
    return out


def _moves(automaton: TokenAutomaton, state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that move a state, and where to."""
    at = np.flatnonzero(automaton.class_source == state)
    return np.searchsorted(automaton.class_ptr, at, side="right") - 1, automaton.class_target[at]


def _trap(run: Run) -> list[Finding]:
    """Find a long stay in one part of the source, or one in any loop that only the end of the canvas ended."""
    length = run.trace.header.config.length
    component = _components(run.trace.header.automaton, within_parts=True)
    start, stop = longest_stay(run, component)
    if stop - start < max(LONG_RUN, 3 * length // 8):
        component = _components(run.trace.header.automaton, within_parts=False)
        start, stop = longest_stay(run, component)
        if stop - start < max(LONG_RUN, length // 2) or (run.path[-1] == run.trace.header.automaton.end):
            return []
    chances = exit_chances(run, component, start, stop)
    highest = float(np.nanmax(chances)) if np.isfinite(chances).any() else np.nan
    if not highest < EXIT_CHANCE:
        return []
    states = np.unique(run.path[start:stop])
    places = _looping_first(run, run.places(states.tolist()))
    text = run.trace.header.vocabulary.decode(run.trace.canvas[start:stop].tolist())
    shown = text if len(text) <= 24 else f"{text[:16]}…{text[-6:]}"
    place = places[0] if places else None
    message = (
        f"{stop - start} of {length} positions, from {start} on, are {shown!r} inside {named(place)}; the chance to "
        f"leave it stayed under {highest + 0.0005:.1%}."
    )
    evidence = {
        "start": start,
        "stop": stop,
        "states": states.tolist(),
        "exit_chances": [None if np.isnan(c) else float(c) for c in chances],
    }
    found = finding_at(
        "trap",
        "warning" if stop - start >= length // 2 and not _ended(run) else "info",
        places,
        message,
        fixes=("Bound the repetition.",),
        focus=Focus(step=max(int(run.committed_at[start]), 0), position=start, state=int(run.path[start])),
        evidence=evidence,
    )
    return [replace(found, remedies=_bounds(run, found, stop - start))]


def _ended(run: Run) -> bool:
    """Whether an accepted answer ended by itself, before the canvas did."""
    return bool(run.trace.accepted and run.path[-1] == run.trace.header.automaton.end)


def _looping_first(run: Run, places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Put the places that go round before those that a state in the loop may write to leave it."""
    if run.constraint is None:
        return places
    round_and_round = {(origin.start, origin.stop) for origin in _looping(run.constraint)}
    return tuple(sorted(places, key=lambda place: (place.start, place.stop) not in round_and_round))


def _bounds(run: Run, found: Finding, spent: int) -> tuple[Remedy, ...]:
    """Offer a bound under which the loop is gone from the constraint, so that no run can stay in it."""
    trace, constraint = run.trace, run.constraint
    if constraint is None or found.where is None:
        return ()
    subject = Subject(trace.header.config, trace.header.vocabulary, constraint, trace.header.automaton)
    out = []
    for label, changes in loops.remedies(found, subject, copies=max(1, spent // 2)):
        try:
            changed = subject.changed(changes)
        except InputError:
            continue
        left = {constraint_leaf.start for constraint_leaf in _looping(changed.constraint)}
        if found.where.start not in left and changed.automaton.accepted_lengths(trace.header.config.length)[-1]:
            out.append(Remedy(label, changes))
    return tuple(out)


def _looping(constraint: Constraint) -> list[Origin]:
    leaves = constraint.automaton.leaves
    return [leaves[leaf] for leaf in loops.loops(constraint, blanks=False)]


def _cut_short(run: Run) -> list[Finding]:
    """Find where the language allows going on and the canvas has no room for it, though the model would."""
    trace = run.trace
    automaton, length = trace.header.automaton, trace.header.config.length
    to_go = tokens_to_go(automaton)
    if not trace.accepted:
        return _cut_off(run, to_go)
    best = (0.0, -1)
    for i in np.flatnonzero(run.committed_at >= 0).tolist():
        classes, targets = _moves(automaton, int(run.path[i]))
        beyond = to_go[targets] > length - (i + 1)
        log_mass = trace.steps[int(run.committed_at[i])].log_class_mass[i, classes[beyond]]
        best = max(best, (float(np.exp(log_mass.astype(np.float64)).sum()), i))
    mass, position = best
    if mass < CUT:
        return []
    step = int(run.committed_at[position])
    places = run.places([int(run.path[position])])
    message = (
        f"The canvas ended the answer: at position {position} the model gave {mass:.0%} to texts that go on there and "
        f"need more than the {length} positions."
    )
    return [
        finding_at(
            "cut-short",
            "warning",
            places,
            message,
            fixes=("Give the canvas more positions.",),
            focus=Focus(step=step, position=position, state=int(run.path[position])),
            evidence={"mass": mass, "position": position, "length": length},
        )
    ]


def _cut_off(run: Run, to_go: np.ndarray) -> list[Finding]:
    """Find a full canvas that is the beginning of an accepted text."""
    last = int(run.path[-1])
    if last < 0 or run.masked.any():
        return []
    length = run.trace.header.config.length
    places = run.places([last])
    message = (
        f"The answer is the beginning of an accepted one, cut off by the canvas: {int(to_go[last])} more tokens end it."
    )
    return [
        finding_at(
            "cut-short",
            "warning",
            places,
            message,
            fixes=(f"Give the canvas at least {length + int(to_go[last])} positions.",),
            focus=Focus(step=len(run.trace.steps) - 1, position=length - 1, state=last),
            evidence={"missing": int(to_go[last]), "length": length},
        )
    ]


def tokens_to_go(automaton: TokenAutomaton) -> np.ndarray:
    """Return int64 `[states]`: the fewest tokens from each state to acceptance."""
    edges = automaton.edges
    source = np.repeat(np.arange(automaton.states), np.diff(edges.ptr))
    found: np.ndarray = distances(source, edges.target.astype(np.int64), automaton.accepting)
    return found
