"""The automaton as a graph: a window of states, in DOT, laid out once by Graphviz."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING

import graphviz
import numpy as np

from viz import labels

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Header

WINDOW_STATES = 60
"""States of a window: what can be read at once, and laid out in less than a quarter of a second."""


def depths(automaton: TokenAutomaton) -> np.ndarray:
    """Return int32 `[states]`, moves from the start state to each state; `states` where it can't be reached."""
    edges = automaton.edges
    depth = np.full(automaton.states, automaton.states, np.int32)
    depth[automaton.start] = 0
    front = np.asarray([automaton.start])
    while front.size:
        reached = np.concatenate([edges.target[edges.ptr[q] : edges.ptr[q + 1]] for q in front])
        new = np.unique(reached[depth[reached] == automaton.states])
        depth[new] = depth[front[0]] + 1
        front = new
    return depth


def order(automaton: TokenAutomaton) -> np.ndarray:
    """Return int32 `[states]`, all states from the start outwards: the rows of a trellis."""
    rank = depths(automaton)
    if automaton.end >= 0:
        rank[automaton.end] = automaton.states + 1
    return np.argsort(rank, kind="stable").astype(np.int32)


def window(automaton: TokenAutomaton, center: int, limit: int = WINDOW_STATES) -> np.ndarray:
    """Return the states around `center`, ascending.

    All of them where `limit` allows, else those that the fewest moves, taken either way, lead to.
    """
    if automaton.states <= limit:
        return np.arange(automaton.states)
    edges = automaton.edges
    source = np.repeat(np.arange(automaton.states), np.diff(edges.ptr))
    chosen = np.zeros(automaton.states, bool)
    chosen[center] = True
    while True:
        near = np.unique(np.r_[edges.target[chosen[source]], source[chosen[edges.target]]])
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


def dot_source(header: Header, states: np.ndarray) -> str:
    """Return the DOT text of a window: node ids `q<state>`, edge ids `e<source>_<target>`; colours are the page's."""
    automaton = header.automaton
    graph = graphviz.Digraph(
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
    inside = np.zeros(automaton.states, bool)
    inside[states] = True
    for q in states.tolist():
        shape = "doublecircle" if automaton.accepting[q] else "circle"
        graph.node(f"q{q}", label="end" if q == automaton.end else str(q), id=f"q{q}", shape=shape)
    if inside[automaton.start]:
        graph.node("start", label="", shape="point", width="0.04", id="start")
        graph.edge("start", f"q{automaton.start}", id="estart")
    edges = automaton.edges
    cut: set[int] = set()
    for q in states.tolist():
        for e in range(edges.ptr[q], edges.ptr[q + 1]):
            target = int(edges.target[e])
            if inside[target]:
                text = labels.summary(header.vocabulary, edge_tokens(automaton, e).tolist())
                graph.edge(f"q{q}", f"q{target}", label=labels.dot(f" {text} "), id=f"e{q}_{target}")
            else:
                cut.add(q)
    for q in sorted(cut):
        graph.node(f"more{q}", label="…", shape="none", width="0.2", height="0.2", id=f"more{q}")
        graph.edge(f"q{q}", f"more{q}", style="dotted", arrowhead="none", id=f"emore{q}")
    return str(graph.source)


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
