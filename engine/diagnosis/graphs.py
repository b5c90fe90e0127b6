"""What an automaton's moves say as a graph, whatever they write."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components


def components(source: np.ndarray, target: np.ndarray, states: int) -> np.ndarray:
    """Return int `[states]`: the strongly connected component of each state; -1 for a state that no cycle passes."""
    graph = csr_matrix((np.ones(source.size, bool), (source, target)), (states, states))
    count, component = connected_components(graph, connection="strong")
    cyclic = np.zeros(count, bool)
    cyclic[component[source[component[source] == component[target]]]] = True
    return np.where(cyclic[component], component, -1)
