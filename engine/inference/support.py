"""What is possible at all, whatever a model believes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine import effort
from engine.inference import sweeps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.token_automaton import TokenAutomaton

Placed = tuple[int, int]
"""A position and the token that stands there, or may not."""


def acceptable(
    automaton: TokenAutomaton, length: int, placed: Sequence[Placed] = (), banned: Sequence[Placed] = ()
) -> bool:
    """Whether some accepted canvas of `length` tokens has all of `placed` and none of `banned`."""
    effort.spend(2e-3 * length * automaton.edges.target.size)
    labels = _labels(automaton, _classes(automaton, length, placed, banned))
    live_ptr, _ = sweeps.live_states(
        automaton.edges.out, automaton.edges.into, automaton.start, automaton.accepting, labels
    )
    return bool(live_ptr[-1] > 0)


def conflict(
    automaton: TokenAutomaton, length: int, placed: Sequence[Placed], banned: Sequence[Placed] = ()
) -> tuple[Placed, ...] | None:
    """Return a smallest-by-inclusion part of `placed` that no accepted canvas has; None where there is no conflict.

    Leave any one of its tokens out and the rest is possible. It prefers what comes early in `placed`, but for the one
    that tips the scale. It is empty where nothing is accepted even without any of them. Each member costs a binary
    search (Junker 2004, "QuickXplain").
    """
    needed: list[Placed] = []
    rest = list(placed)
    while acceptable(automaton, length, needed, banned):
        if acceptable(automaton, length, [*needed, *rest], banned):
            return None
        low, high = 0, len(rest)  # `needed` with rest[:low] is possible, with rest[:high] it is not
        while high - low > 1:
            middle = (low + high) // 2
            if acceptable(automaton, length, [*needed, *rest[:middle]], banned):
                low = middle
            else:
                high = middle
        needed.append(rest[low])
        rest = rest[:low]
    return tuple(sorted(needed))


def _classes(automaton: TokenAutomaton, length: int, placed: Sequence[Placed], banned: Sequence[Placed]) -> np.ndarray:
    """Return bool `[length classes]`: the classes that have a token left at each position."""
    sizes = np.bincount(automaton.token_class, minlength=automaton.classes)
    left = np.tile(sizes, (length, 1))
    for position, token_id in set(banned):
        left[position, automaton.token_class[token_id]] -= 1
    for position, token_id in placed:
        inside = token_id < automaton.token_class.size
        left[position] = 0
        left[position, automaton.token_class[token_id] if inside else 0] = (position, token_id) not in banned
    left[:, 0] = 0  # the dead class
    return left > 0


def _labels(automaton: TokenAutomaton, classes: np.ndarray) -> np.ndarray:
    """Return bool `[length labels]`: whether a label has one of the classes that are left."""
    edges = automaton.edges
    if not edges.labels:
        return np.zeros((len(classes), 0), bool)
    return np.logical_or.reduceat(classes[:, edges.label_class], edges.label_ptr[:-1], axis=1)
