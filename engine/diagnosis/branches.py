"""Alternatives of a constraint over a run: what each had of the belief, and when and by which commit it died."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.diagnosis import beliefs, conflict
from engine.errors import Place
from engine.pattern import Chars, Complement, Concat, Intersection, Repeat, Union, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints import Constraint
    from engine.pattern import Pattern
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Trace

MOST_CHOICES = 12
"""Alternatives of the constraint whose branches are followed."""
MOST_BRANCHES = 12
"""Branches of one alternative that are followed."""


@dataclass(frozen=True, eq=False)
class Branch:
    """One branch of an alternative.

    Attributes:
        place: of what it writes.
        states: bool `[states]`, the states that only its texts pass.
    """

    place: Place
    states: np.ndarray


@dataclass(frozen=True, eq=False)
class Life:
    """What became of a branch in a run.

    Attributes:
        branch: whose life it is.
        probability: that an answer takes it, by the first step's beliefs.
        died: the step whose commits left it no completion; None where it is on the last canvas's way.
        killer: the commit of that step that forbids it by itself; None where several do together.
    """

    branch: Branch
    probability: float
    died: int | None
    killer: int | None


def choices(constraint: Constraint, automaton: TokenAutomaton) -> Iterator[tuple[Branch, ...]]:
    """Yield the alternatives that stand once in every text, as far as the automaton tells their branches apart.

    A branch without a state of its own, as where two differ in one character only, is left out; an alternative needs
    two that are told apart.
    """
    for union in list(_unions(constraint.pattern))[:MOST_CHOICES]:
        spans = [_spans(part) for part in union.parts[:MOST_BRANCHES]]
        found = []
        for n, own in enumerate(spans):
            other = {span for m, theirs in enumerate(spans) if m != n for span in theirs}
            only = own - other
            states = np.asarray([bool(s) and set(s) <= only for s in automaton.state_spans], bool)
            if states.any():
                found.append(Branch(_place(constraint, union.parts[n]), states))
        if len(found) > 1:
            yield tuple(found)


def _unions(pattern: Pattern) -> Iterator[Union]:
    """Yield alternatives that no repetition copies, the outermost first."""
    if isinstance(pattern, Union) and len(pattern.parts) > 1:
        yield pattern
    if isinstance(pattern, Concat | Union | Intersection):
        for part in pattern.parts:
            yield from _unions(part)
    elif isinstance(pattern, Repeat) and pattern.most == 1:
        yield from _unions(pattern.body)


def _spans(pattern: Pattern) -> set[tuple[int, int]]:
    written = [n for n in nodes(pattern) if isinstance(n, Chars | Complement)]
    return {(n.origin.start, n.origin.stop) for n in written if n.origin.stop > n.origin.start}


def _place(constraint: Constraint, branch: Pattern) -> Place:
    """Return the place from the first character that a branch writes to the last quantifier behind one."""
    origins = [n.origin for n in nodes(branch) if isinstance(n, Chars | Complement | Repeat)]
    origins = [origin for origin in origins if origin.stop > origin.start]
    start, stop = min(o.start for o in origins), max(o.stop for o in origins)
    return Place(constraint.text, start, stop, _pointer(branch))


def _pointer(pattern: Pattern) -> str | None:
    """Return the longest JSON pointer that all leaves share; None where the source is not JSON."""
    pointers = [n.origin.pointer for n in nodes(pattern) if isinstance(n, Chars) and n.origin.pointer is not None]
    if not pointers:
        return None
    shared = pointers[0].split("/")
    for pointer in pointers[1:]:
        names = pointer.split("/")
        length = next((i for i, (a, b) in enumerate(zip(shared, names, strict=False)) if a != b), None)
        shared = shared[: min(len(shared), len(names)) if length is None else length]
    return "/".join(shared)


def lives(trace: Trace, branches: tuple[Branch, ...]) -> tuple[Life, ...]:
    """Follow the branches of one alternative over a run."""
    first = beliefs.of_step(trace, trace.steps[0])
    total = first.log_partition
    return tuple(_life(trace, first, total, branch) for branch in branches)


def _life(trace: Trace, first: beliefs.Beliefs, total: float, branch: Branch) -> Life:
    avoided = first.log_avoiding(branch.states) - total if total > -np.inf else 0.0
    bits = np.packbits(branch.states)
    alive = [bool((step.live & bits).any()) for step in trace.steps]
    died = next((t - 1 for t, is_alive in enumerate(alive) if not is_alive and t), None)
    if died is None and alive[0] and not _passes(conflict.Canvas(*_canvas(trace, trace.canvas)), branch):
        died = len(trace.steps) - 1
    killer = None if died is None else _killer(trace, died, branch)
    return Life(branch, max(0.0, -float(np.expm1(min(avoided, 0.0)))), died, killer)


def _canvas(trace: Trace, token_ids: np.ndarray) -> tuple[TokenAutomaton, np.ndarray, np.ndarray]:
    return trace.header.automaton, token_ids, token_ids != trace.header.vocabulary.mask_id


def _passes(canvas: conflict.Canvas, branch: Branch) -> bool:
    """Whether some completion of the canvas passes a state of the branch."""
    forward, backward = conflict.fronts(canvas)
    return bool((forward & backward)[:, branch.states].any())


def _killer(trace: Trace, step: int, branch: Branch) -> int | None:
    """Return the position whose commit alone leaves the branch no completion."""
    record = trace.steps[step]
    for position in np.flatnonzero(record.committed).tolist():
        token_ids = record.canvas.copy()
        token_ids[position] = record.drawn[position]
        if not _passes(conflict.Canvas(*_canvas(trace, token_ids)), branch):
            return position
    return None
