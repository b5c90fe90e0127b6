"""An automaton as nodes and edges, whatever it reads: what every picture of one is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from viz import labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.automaton import ByteAutomaton
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Header

LITERAL_TOKENS = 64
"""Tokens up to which an edge may be a shortcut through a literal."""


@dataclass(frozen=True, eq=False)
class Graph:
    """An automaton as nodes and edges, whatever it reads.

    Attributes:
        start: the start state.
        end: the absorbing end state; -1 where there is none.
        accepting: bool `[states]`.
        ptr: the edges that leave state `q` are `ptr[q]:ptr[q + 1]`; one for each target.
        target: int `[edges]`.
        classes: int `[edges]`, classes of tokens, or of bytes, that take an edge.
        origins: for each state the spans of the source that can be written next.
        label: says what some edges read, in a few characters.
        texts: what each token of an edge writes; None where it has many, or one that writes nothing.
    """

    start: int
    end: int
    accepting: np.ndarray
    ptr: np.ndarray
    target: np.ndarray
    classes: np.ndarray
    origins: Sequence[tuple[tuple[int, int], ...]]
    label: Callable[[Iterable[int]], str]
    texts: Callable[[int], Sequence[bytes] | None]

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.accepting.size)

    @cached_property
    def source(self) -> np.ndarray:
        """Int `[edges]`: the state that each edge leaves."""
        return np.repeat(np.arange(self.states), np.diff(self.ptr))

    @cached_property
    def depths(self) -> np.ndarray:
        """Int32 `[states]`: moves from the start state to each state; `states` where it can't be reached."""
        ptr, target = self.ptr.tolist(), self.target.tolist()
        depth = [self.states] * self.states
        depth[self.start] = 0
        front = [self.start]
        while front:
            reached = {r for q in front for r in target[ptr[q] : ptr[q + 1]] if depth[r] == self.states}
            for r in reached:
                depth[r] = depth[front[0]] + 1
            front = list(reached)
        return np.asarray(depth, np.int32)

    @cached_property
    def loop(self) -> np.ndarray:
        """Int32 `[states]`: number of the strongly connected component that each state is in."""
        import networkx

        number = np.zeros(self.states, np.int32)
        for n, states in enumerate(networkx.strongly_connected_components(self.network)):
            number[list(states)] = n
        return number

    @cached_property
    def network(self) -> Any:
        """The same as a graph of networkx."""
        # It is only needed where the automaton is large.
        import networkx

        network = networkx.DiGraph()
        network.add_nodes_from(range(self.states))
        network.add_edges_from(zip(self.source.tolist(), self.target.tolist(), strict=True))
        return network

    @cached_property
    def _into(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.target, kind="stable")
        return np.cumsum([0, *np.bincount(self.target, minlength=self.states)]), order

    def entering(self, state: int) -> np.ndarray:
        """Return the edges that lead to a state."""
        ptr, order = self._into
        return order[ptr[state] : ptr[state + 1]]


def of_tokens(header: Header) -> Graph:
    """Return the graph of a run's automaton; its edges read tokens."""
    automaton, edges, vocabulary = header.automaton, header.automaton.edges, header.vocabulary
    tokens = np.diff(edges.class_tokens_ptr)
    counts = np.add.reduceat(tokens[edges.label_class], edges.label_ptr[:-1])[edges.label]

    @cache
    def said(read: tuple[int, ...]) -> str:
        return labels.summary(vocabulary, np.concatenate([_tokens_of(automaton, n) for n in read]).tolist())

    def label(some: Iterable[int]) -> str:
        # Many edges of a large automaton read the same tokens.
        return said(tuple(np.unique(edges.label[list(some)]).tolist()))

    def texts(edge: int) -> Sequence[bytes] | None:
        if counts[edge] > LITERAL_TOKENS:
            return None
        found = [vocabulary.written(v) for v in edge_tokens(automaton, edge).tolist()]
        known = [text for text in found if text]
        return known if len(known) == len(found) else None

    return Graph(
        start=automaton.start,
        end=automaton.end,
        accepting=automaton.accepting,
        ptr=edges.ptr.astype(np.int64),
        target=edges.target.astype(np.int64),
        classes=np.diff(edges.label_ptr)[edges.label],
        origins=automaton.state_spans,
        label=label,
        texts=texts,
    )


def of_bytes(automaton: ByteAutomaton) -> Graph:
    """Return the graph of an automaton over bytes: one edge for each pair of states, with all bytes that take it."""
    pairs, first = np.unique(np.c_[automaton.source, automaton.target], axis=0, return_inverse=True)
    first = first.ravel()

    def read(some: Iterable[int]) -> list[int]:
        symbols = automaton.symbol[np.isin(first, list(some))]
        return np.flatnonzero(np.isin(automaton.byte_class, symbols)).tolist()

    return Graph(
        start=automaton.start,
        end=-1,
        accepting=automaton.accepting,
        ptr=np.searchsorted(pairs[:, 0], np.arange(automaton.states + 1)),
        target=pairs[:, 1],
        classes=np.bincount(first, minlength=len(pairs)),
        origins=((),) * automaton.states,
        label=lambda some: labels.byte_set(read(some)),
        texts=lambda edge: [bytes([value]) for value in read([edge])],
    )


def order(graph: Graph) -> np.ndarray:
    """Return int32 `[states]`, all states from the start outwards: the rows of a trellis."""
    rank = graph.depths.copy()
    if graph.end >= 0:
        rank[graph.end] = graph.states + 1
    return np.argsort(rank, kind="stable").astype(np.int32)


def edge_tokens(automaton: TokenAutomaton, edge: int) -> np.ndarray:
    """Return int32, the ids of the tokens that take an edge."""
    return _tokens_of(automaton, int(automaton.edges.label[edge]))


def _tokens_of(automaton: TokenAutomaton, label: int) -> np.ndarray:
    edges = automaton.edges
    classes = edges.label_class[edges.label_ptr[label] : edges.label_ptr[label + 1]]
    parts = [edges.class_tokens[edges.class_tokens_ptr[k] : edges.class_tokens_ptr[k + 1]] for k in classes]
    return np.concatenate(parts)
