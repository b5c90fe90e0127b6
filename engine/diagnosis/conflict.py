"""Commits that leave nothing accepted: since which step, which of them together, and what would have been accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import effort
from engine.inference import kernels, support, sweeps

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Trace

WORST_LOG_MASS = -1e3
"""Preferences below this count as this: they only order accepted sequences that change equally many positions."""


@dataclass(frozen=True, eq=False)
class Canvas:
    """A canvas seen through an automaton.

    Attributes:
        automaton: the constraint over tokens.
        token_ids: int32 `[length]`.
        committed: bool `[length]`.
    """

    automaton: TokenAutomaton
    token_ids: np.ndarray
    committed: np.ndarray

    @property
    def length(self) -> int:
        """Number of positions."""
        return int(self.token_ids.size)

    @property
    def classes(self) -> np.ndarray:
        """int32 `[length]`: the class of each token; an id behind the vocabulary is dead."""
        known = self.automaton.token_class
        inside = self.token_ids < known.size
        return np.where(inside, known[np.where(inside, self.token_ids, 0)], 0)

    @property
    def placed(self) -> list[tuple[int, int]]:
        """The committed positions with their tokens."""
        return [(int(i), int(self.token_ids[i])) for i in np.flatnonzero(self.committed)]


def canvas_of(automaton: TokenAutomaton, token_ids: np.ndarray, mask_id: int) -> Canvas:
    """Take every position without the mask id as committed."""
    return Canvas(automaton, token_ids, token_ids != mask_id)


def fronts(canvas: Canvas) -> tuple[np.ndarray, np.ndarray]:
    """Return `(forward, backward)`, bool `[boundaries states]`: reached from the start, and reaching acceptance.

    Where nothing is accepted they never meet; the boundaries between where the one ends and the other begins are the
    gap.
    """
    automaton, classes = canvas.automaton, canvas.classes
    edges = automaton.edges
    anything = np.repeat(np.arange(automaton.states), np.diff(edges.ptr)), edges.target
    effort.spend(1e-2 * int((~canvas.committed).sum()) * edges.target.size)
    forward = np.zeros((canvas.length + 1, automaton.states), bool)
    backward = np.zeros_like(forward)
    forward[0, automaton.start] = True
    backward[-1] = automaton.accepting

    def moves(i: int) -> tuple[np.ndarray, np.ndarray]:
        if not canvas.committed[i]:
            return anything
        one = slice(automaton.class_ptr[classes[i]], automaton.class_ptr[classes[i] + 1])
        return automaton.class_source[one], automaton.class_target[one]

    for i in range(canvas.length):
        source, target = moves(i)
        forward[i + 1, target[forward[i, source]]] = True
    for i in reversed(range(canvas.length)):
        source, target = moves(i)
        backward[i, source[backward[i + 1, target]]] = True
    return forward, backward


def completable(canvas: Canvas) -> bool:
    """Whether some accepted sequence agrees with every committed position, whatever the model thinks of it."""
    return support.acceptable(canvas.automaton, canvas.length, canvas.placed)


def point_of_no_return(trace: Trace) -> int | None:
    """Return the first step whose commits leave no accepted completion; None where the last canvas still has one."""
    header = trace.header
    mask_id = header.vocabulary.mask_id

    def dead(step: int) -> bool:
        return not completable(canvas_of(header.automaton, trace.steps[step].canvas_after, mask_id))

    if not trace.steps or not dead(len(trace.steps) - 1):
        return None
    canvases = np.stack([step.canvas_after for step in trace.steps])
    low, high = 0, len(trace.steps) - 1
    if ((canvases[:-1] != mask_id) & (canvases[1:] != canvases[:-1])).any():
        # A loop that takes commits back may come out of a dead end: the last way into one is what counts.
        return next(t for t in range(high, -1, -1) if t == 0 or not dead(t - 1))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if dead(middle) else (middle + 1, high)
    return low


def minimal_conflict(canvas: Canvas) -> tuple[int, ...]:
    """Find committed positions that nothing accepted has together, none of which could be left out, near to each other.

    Returns:
        Their indices, ascending; none where a completion exists, or where nothing of this length is accepted at all.
    """
    found = support.conflict(canvas.automaton, canvas.length, canvas.placed)
    if not found:
        return ()
    # The last of these tips the scale; what stands close to it is preferred for the rest.
    pivot = found[-1][0]
    ordered = sorted(canvas.placed, key=lambda item: abs(item[0] - pivot))
    return tuple(position for position, _ in support.conflict(canvas.automaton, canvas.length, ordered) or ())


def impossible_alone(canvas: Canvas) -> np.ndarray:
    """Return bool `[length]`: the committed tokens that no accepted sequence has there, whatever the rest is."""
    automaton = canvas.automaton
    free = Canvas(automaton, canvas.token_ids, np.zeros(canvas.length, bool))
    forward, backward = fronts(free)
    classes = canvas.classes
    alone = canvas.committed.copy()
    for i in np.flatnonzero(canvas.committed):
        moves = slice(automaton.class_ptr[classes[i]], automaton.class_ptr[classes[i] + 1])
        alone[i] = not (
            forward[i, automaton.class_source[moves]] & backward[i + 1, automaton.class_target[moves]]
        ).any()
    return alone


@dataclass(frozen=True, eq=False)
class Nearest:
    """An accepted sequence with the fewest changed positions.

    Attributes:
        token_ids: int32 `[length]`.
        changed: bool `[length]`, committed positions whose token differs.
    """

    token_ids: np.ndarray
    changed: np.ndarray


def nearest(canvas: Canvas, log_class_mass: np.ndarray, tokens: np.ndarray) -> Nearest | None:
    """Find an accepted sequence that changes the fewest committed positions, by min-plus messages with cost 0 or 1.

    Among those with as few changes it is the one that the given beliefs prefer.

    Args:
        canvas: the committed tokens.
        log_class_mass: float `[length classes]`, what the model believed of each class at each position.
        tokens: int32 `[length classes]`, the token to write for a class at a position.

    Returns:
        The sequence, or None where nothing of this length is accepted.
    """
    automaton, edges = canvas.automaton, canvas.automaton.edges
    everything = np.ones((canvas.length, edges.labels), bool)
    live_ptr, live = sweeps.live_states(edges.out, edges.into, automaton.start, automaton.accepting, everything)
    if not live.size:
        return None
    preference = np.maximum(log_class_mass.astype(np.float64), WORST_LOG_MASS)
    change = -WORST_LOG_MASS * (canvas.length + 1)
    score = np.where(canvas.committed[:, None], preference - change, preference)
    rows = np.flatnonzero(canvas.committed)
    score[rows, canvas.classes[rows]] = 0.0
    by_label = kernels.label_best(score, edges.label_ptr, edges.label_class)
    path = kernels.best_path(*edges.out, live_ptr, live, by_label)
    chosen = _classes_along(automaton, path, score)
    kept = canvas.committed & (chosen == canvas.classes)
    token_ids = np.where(kept, canvas.token_ids, tokens[np.arange(canvas.length), chosen]).astype(np.int32)
    return Nearest(token_ids, canvas.committed & ~kept)


def _classes_along(automaton: TokenAutomaton, path: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return int `[length]`: the best class of each move of a path."""
    edges = automaton.edges
    out = np.zeros(path.size - 1, np.int64)
    for i in range(out.size):
        begin, stop = edges.ptr[path[i]], edges.ptr[path[i] + 1]
        label = edges.label[begin + int(np.searchsorted(edges.target[begin:stop], path[i + 1]))]
        classes = edges.label_class[edges.label_ptr[label] : edges.label_ptr[label + 1]]
        out[i] = classes[np.argmax(score[i, classes])]
    return out


def preferred_tokens(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Return what the model believed of each position when it was committed, or last if it never was.

    Returns:
        `(log_class_mass, tokens)`, both `[length classes]`: the recorded mass of each class, and its most probable
        recorded token, or its first where none of the recorded tokens is of the class.
    """
    automaton, length = trace.header.automaton, trace.header.config.length
    edges = automaton.edges
    first = np.append(edges.class_tokens, 0)[edges.class_tokens_ptr[:-1]]
    tokens = np.tile(first, (length, 1)).astype(np.int32)
    mass = np.zeros((length, automaton.classes), np.float32)
    for step in trace.steps:
        rows = step.canvas == trace.header.vocabulary.mask_id
        mass[rows] = step.log_class_mass[rows]
    for i, last in enumerate(_last_masked(trace)):
        if last >= 0:
            for token_id in trace.steps[last].top_ids[i, 0][::-1]:
                if token_id >= 0:
                    tokens[i, automaton.token_class[token_id]] = token_id
    return mass, tokens


def _last_masked(trace: Trace) -> np.ndarray:
    """Return int `[length]`: the last step that had each position masked; -1 where none had."""
    last = np.full(trace.header.config.length, -1)
    for t, step in enumerate(trace.steps):
        last[step.canvas == trace.header.vocabulary.mask_id] = t
    return last
