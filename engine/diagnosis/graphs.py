"""What an automaton's moves say as a graph, whatever they write."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra


def components(source: np.ndarray, target: np.ndarray, states: int) -> np.ndarray:
    """Return int `[states]`: the strongly connected component of each state; -1 for a state that no cycle passes."""
    count, component = connected_components(_graph(source, target, states), connection="strong")
    cyclic = np.zeros(count, bool)
    cyclic[component[source[component[source] == component[target]]]] = True
    return np.where(cyclic[component], component, -1)


def distances(source: np.ndarray, target: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """Return int64 `[states]`: the fewest moves from each state to one of some states; the largest number if no way.

    Args:
        source: int `[moves]`, where each move begins.
        target: int `[moves]`, where it leads.
        goals: bool `[states]`.
    """
    back = _graph(target, source, goals.size)
    found = dijkstra(back, indices=np.flatnonzero(goals), unweighted=True, min_only=True)
    known = np.isfinite(found)
    return np.where(known, np.where(known, found, 0).astype(np.int64), np.iinfo(np.int64).max)


def _graph(source: np.ndarray, target: np.ndarray, states: int) -> csr_matrix:
    return csr_matrix((np.ones(source.size, bool), (source, target)), (states, states))
