"""The automaton as a graph: a window of states, in DOT, laid out once by Graphviz."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import graphviz
import numpy as np

from viz import labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.automaton import ByteAutomaton
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Header

WINDOW_STATES = 60
"""States of a window: what can be read at once, and laid out in less than a quarter of a second."""


@dataclass(frozen=True, eq=False)
class Graph:
    """An automaton as nodes and edges, whatever it reads.

    Attributes:
        start: the start state.
        end: the absorbing end state; -1 where there is none.
        accepting: bool `[states]`.
        ptr: the edges that leave state `q` are `ptr[q]:ptr[q + 1]`; one for each target.
        target: int `[edges]`.
        label: says what an edge reads, in a few characters.
    """

    start: int
    end: int
    accepting: np.ndarray
    ptr: np.ndarray
    target: np.ndarray
    label: Callable[[int], str]

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.accepting.size)

    @property
    def source(self) -> np.ndarray:
        """Int `[edges]`: the state that each edge leaves."""
        return np.repeat(np.arange(self.states), np.diff(self.ptr))


def of_tokens(header: Header) -> Graph:
    """Return the graph of a run's automaton; its edges read tokens."""
    automaton, edges = header.automaton, header.automaton.edges

    def label(edge: int) -> str:
        return labels.summary(header.vocabulary, edge_tokens(automaton, edge).tolist())

    return Graph(automaton.start, automaton.end, automaton.accepting, edges.ptr, edges.target, label)


def of_bytes(automaton: ByteAutomaton) -> Graph:
    """Return the graph of an automaton over bytes: one edge for each pair of states, with all bytes that take it."""
    pairs, first = np.unique(np.c_[automaton.source, automaton.target], axis=0, return_inverse=True)
    first = first.ravel()

    def label(edge: int) -> str:
        symbols = automaton.symbol[first == edge]
        return labels.byte_set(np.flatnonzero(np.isin(automaton.byte_class, symbols)).tolist())

    ptr = np.searchsorted(pairs[:, 0], np.arange(automaton.states + 1))
    return Graph(automaton.start, -1, automaton.accepting, ptr, pairs[:, 1], label)


def depths(graph: Graph) -> np.ndarray:
    """Return int32 `[states]`, moves from the start state to each state; `states` where it can't be reached."""
    depth = np.full(graph.states, graph.states, np.int32)
    depth[graph.start] = 0
    front = np.asarray([graph.start])
    while front.size:
        reached = np.concatenate([graph.target[graph.ptr[q] : graph.ptr[q + 1]] for q in front])
        new = np.unique(reached[depth[reached] == graph.states])
        depth[new] = depth[front[0]] + 1
        front = new
    return depth


def order(graph: Graph) -> np.ndarray:
    """Return int32 `[states]`, all states from the start outwards: the rows of a trellis."""
    rank = depths(graph)
    if graph.end >= 0:
        rank[graph.end] = graph.states + 1
    return np.argsort(rank, kind="stable").astype(np.int32)


def window(graph: Graph, center: int, limit: int = WINDOW_STATES) -> np.ndarray:
    """Return the states around `center`, ascending.

    All of them where `limit` allows, else those that the fewest moves, taken either way, lead to.
    """
    if graph.states <= limit:
        return np.arange(graph.states)
    source = graph.source
    chosen = np.zeros(graph.states, bool)
    chosen[center] = True
    while True:
        near = np.unique(np.r_[graph.target[chosen[source]], source[chosen[graph.target]]])
        new = near[~chosen[near]]
        room = limit - int(chosen.sum())
        chosen[new[:room]] = True
        if new.size >= room or not new.size:
            return np.flatnonzero(chosen)


def edge_tokens(automaton: TokenAutomaton, edge: int) -> np.ndarray:
    """Return int32, the ids of the tokens that take an edge."""
    edges = automaton.edges
    label = edges.label[edge]
    classes = edges.label_class[edges.label_ptr[label] : edges.label_ptr[label + 1]]
    parts = [edges.class_tokens[edges.class_tokens_ptr[k] : edges.class_tokens_ptr[k + 1]] for k in classes]
    return np.concatenate(parts)


def _empty() -> graphviz.Digraph:
    return graphviz.Digraph(
        "automaton",
        graph_attr={
            "rankdir": "LR",
            "bgcolor": "transparent",
            "nslimit": "0.5",
            "nslimit1": "0.5",
            "mclimit": "0.3",
            "ranksep": "0.35",
            "nodesep": "0.22",
            "pad": "0.05",
        },
        node_attr={
            "shape": "circle",
            "fontname": "sans-serif",
            "fontsize": "11",
            "width": "0.36",
            "height": "0.36",
            "fixedsize": "true",
        },
        edge_attr={"fontname": "monospace", "fontsize": "10", "arrowsize": "0.55"},
    )


def dot_source(graph: Graph, states: np.ndarray) -> str:
    """Return the DOT text of a window: node ids `q<state>`, edge ids `e<source>_<target>`; colours are the page's."""
    drawn = _empty()
    inside = np.zeros(graph.states, bool)
    inside[states] = True
    for q in states.tolist():
        shape = "doublecircle" if graph.accepting[q] else "circle"
        drawn.node(f"q{q}", label="end" if q == graph.end else str(q), id=f"q{q}", shape=shape)
    if inside[graph.start]:
        drawn.node("start", label="", shape="point", width="0.04", id="start")
        drawn.edge("start", f"q{graph.start}", id="estart")
    cut: set[int] = set()
    for q in states.tolist():
        for e in range(graph.ptr[q], graph.ptr[q + 1]):
            target = int(graph.target[e])
            if inside[target]:
                label = labels.dot(f" {graph.label(e)} ")
                drawn.edge(f"q{q}", f"q{target}", label=label, id=f"e{q}_{target}")
            else:
                cut.add(q)
    for q in sorted(cut):
        drawn.node(f"more{q}", label="…", shape="none", width="0.2", height="0.2", id=f"more{q}")
        drawn.edge(f"q{q}", f"more{q}", style="dotted", arrowhead="none", id=f"emore{q}")
    return str(drawn.source)


@lru_cache(maxsize=64)
def layout(dot_text: str, timeout_s: float = 3.0) -> str | None:
    """Return a graph laid out by the system's `dot`, as SVG.

    None where there is no `dot`, or it takes too long: the browser then does it.
    """
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot_text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"<svg\b.*</svg>", done.stdout, re.DOTALL)
    return found[0] if done.returncode == 0 and found else None
