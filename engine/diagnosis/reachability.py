"""Compiled loops of Boolean reachability over a canvas: what can still be reached, which commits forbid the rest."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def fronts(ptr, target, label, start, accepting, possible):
    """Return the states that the start reaches and those that reach acceptance, at each boundary.

    Unlike `kernels.live_states` the two are kept apart: where they never meet is the gap.

    Args:
        possible: bool `[length labels]`, whether a label can be taken at a position.

    Returns:
        `(forward, backward)`: bool `[boundaries states]` each.
    """
    length, states = possible.shape[0], ptr.size - 1
    forward = np.zeros((length + 1, states), np.bool_)
    backward = np.zeros((length + 1, states), np.bool_)
    forward[0, start] = True
    backward[length] = accepting
    for i in range(length):
        _spread(ptr, target, label, possible[i], forward[i], forward[i + 1])
    for i in range(length - 1, -1, -1):
        for q in range(states):
            for e in range(ptr[q], ptr[q + 1]):
                if possible[i, label[e]] and backward[i + 1, target[e]]:
                    backward[i, q] = True
                    break
    return forward, backward


@njit(cache=True)
def minimal_conflict(ptr, target, label, start, backward, committed, possible):
    """Return bool `[length]`: an inclusion-minimal set of committed positions that nothing accepted has together.

    The shortest impossible prefix is cut off first; then each of its positions, from the left, is left out where the
    rest stays impossible (a deletion filter, Chinneck and Dravnieks 1991).

    Args:
        backward: bool `[boundaries states]`, the states that reach acceptance when nothing at all is committed.
        committed: bool `[length]`.
        possible: bool `[length labels]`, the labels that a committed position's token has; rows of others are unread.
    """
    length, states = possible.shape[0], ptr.size - 1
    kept = np.zeros(length, np.bool_)
    free = np.ones(possible.shape[1], np.bool_)
    reached = np.zeros((length + 1, states), np.bool_)
    reached[0, start] = True
    stop = -1
    if not _meet(reached[0], backward[0]):
        return kept
    for i in range(length):
        _spread(ptr, target, label, possible[i] if committed[i] else free, reached[i], reached[i + 1])
        if not _meet(reached[i + 1], backward[i + 1]):
            stop = i
            break
    if stop < 0:
        return kept
    kept[: stop + 1] = committed[: stop + 1]
    now, following = np.zeros(states, np.bool_), np.zeros(states, np.bool_)
    for i in range(stop + 1):
        if kept[i]:
            now[:] = reached[i]
            blocked = False
            for j in range(i, stop + 1):
                following[:] = False
                _spread(ptr, target, label, possible[j] if kept[j] and j > i else free, now, following)
                now, following = following, now
                if not _meet(now, backward[j + 1]):
                    blocked = True
                    break
            kept[i] = not blocked
        reached[i + 1, :] = False
        _spread(ptr, target, label, possible[i] if kept[i] else free, reached[i], reached[i + 1])
    return kept


@njit(cache=True)
def _spread(ptr, target, label, possible, here, there):
    """Add to `there` the states that one position leads to from the states of `here`."""
    for q in range(ptr.size - 1):
        if here[q]:
            for e in range(ptr[q], ptr[q + 1]):
                if possible[label[e]]:
                    there[target[e]] = True


@njit(cache=True)
def _meet(a, b):
    for q in range(a.size):  # noqa: SIM110 - a compiled loop
        if a[q] and b[q]:
            return True
    return False
