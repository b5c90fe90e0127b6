"""The automaton as a graph in DOT, laid out once by Graphviz: whole where it is small, else at three levels of detail.

From afar its groups of states (`viz.groups`), inside a group its states with literals as one, and around a state what
leads there and from there. A picture says for every state which of its boxes the state is in, so that whoever draws a
step on it sums what the step says of states.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import graphviz
import numpy as np

from viz import labels, outline
from viz.graph import of_tokens
from viz.groups import WINDOW_STATES, Atlas, chains

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.trace import Header
    from viz.graph import Graph
    from viz.groups import Chain, Group

CHAINED_STATES = 6 * WINDOW_STATES
"""States of a group up to which it is tried whether its literals, each drawn as one, make it small enough."""
FARTHEST = 3
"""Moves that a picture around a state reaches at most."""
NEIGHBOURS = 12
"""Groups around an opened one that are drawn beside it."""


@dataclass(frozen=True)
class Box:
    """What a picture draws as one node.

    Attributes:
        id: of the node.
        kind: `state`, `chain`, `group`, or `outside` for a group beside the opened one.
        name: of the part of the source, or what a chain writes; the number of a state.
        note: what tells it from others of that name.
        states: how many it has.
        span: of the part of the source.
        path: of the group that it opens; None where there is none.
    """

    id: str
    kind: str
    name: str
    note: str = ""
    states: int = 1
    span: tuple[int, int] | None = None
    path: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Picture:
    """A part of an automaton as it is drawn.

    Attributes:
        graph: whose states they are.
        level: `whole`, `groups`, `chains` or `around`.
        boxes: that are drawn.
        box: int32 `[states]`, the box that each state is in; -1 for those that are not drawn.
        trail: the groups from the whole to the opened one.
        path: their numbers.
    """

    graph: Graph
    level: str
    boxes: tuple[Box, ...]
    box: np.ndarray
    trail: tuple[Group, ...] = ()
    path: tuple[int, ...] = ()

    @cached_property
    def arrows(self) -> list[tuple[int, int, np.ndarray]]:
        """Return `(box, box, edges)` for each pair of boxes that edges join; within a box too."""
        source, target = self.box[self.graph.source].astype(np.int64), self.box[self.graph.target]
        drawn = np.flatnonzero((source >= 0) & (target >= 0))
        key = source[drawn] * len(self.boxes) + target[drawn]
        by_pair = np.argsort(key, kind="stable")
        bounds = [*np.flatnonzero(np.diff(key[by_pair], prepend=-1)).tolist(), key.size]
        pairs = (drawn[by_pair[a:b]] for a, b in pairwise(bounds))
        return [(int(source[edges[0]]), int(target[edges[0]]), edges) for edges in pairs]


def whole(graph: Graph) -> Picture:
    """Return the picture of all states, each by itself."""
    return _of_states(graph, "whole", np.arange(graph.states))


def around(graph: Graph, state: int, farthest: int = FARTHEST) -> Picture:
    """Return the picture of what leads to a state and from it, as many moves away as can be drawn, up to `farthest`."""
    import networkx

    states = [state]
    for radius in range(1, farthest + 1):
        ways = (graph.network, graph.network.reverse(copy=False))
        near = sorted({q for way in ways for q in networkx.ego_graph(way, state, radius)})
        if len(near) > WINDOW_STATES and radius > 1:
            break
        # A state with hundreds of neighbours shows some of them; the rest are hinted at.
        states = sorted({state, *near[: WINDOW_STATES - 1]}) if len(near) > WINDOW_STATES else near
    return _of_states(graph, "around", np.asarray(states))


def near(graph: Graph, state: int) -> Picture:
    """Return the picture of all states where they are few, else of those around one."""
    return whole(graph) if graph.states <= WINDOW_STATES else around(graph, state)


def _of_states(graph: Graph, level: str, states: np.ndarray) -> Picture:
    boxes = tuple(Box(f"q{q}", "state", "end" if q == graph.end else str(q)) for q in states.tolist())
    return Picture(graph, level, boxes, _numbered(graph, [states[n : n + 1] for n in range(states.size)]))


def opened(atlas: Atlas, path: Sequence[int]) -> Picture:
    """Return the picture of the group that a path leads to: its states with literals as one, or its groups."""
    trail = tuple(atlas.trail(path))
    path, group = tuple(path[: len(trail) - 1]), trail[-1]
    found = _drawn_by_state(atlas, group)
    if found:
        level, inside = "chains", [np.asarray(chain.states) for chain in found]
        boxes = [_chain_box(atlas.graph, chain) for chain in found]
    else:
        parts = atlas.parts(path, group)
        level, inside = "groups", [part.states for part in parts]
        boxes = [_group_box(f"g{n}", "group", part, (*path, n)) for n, part in enumerate(parts)]
    box = _numbered(atlas.graph, inside)
    beside = _beside(atlas, trail, path, box >= 0)
    for outside, states in beside:
        box[states] = len(boxes)
        boxes.append(outside)
    return Picture(atlas.graph, level, tuple(boxes), box, trail, path)


def path_to(atlas: Atlas, state: int) -> tuple[int, ...]:
    """Return the path of the smallest group that has a state, one whose states are drawn."""
    path: tuple[int, ...] = ()
    group = atlas.whole
    while not _drawn_by_state(atlas, group):
        parts = atlas.parts(path, group)
        number = next(
            n
            for n, part in enumerate(parts)
            if part.states[np.searchsorted(part.states, state) % part.states.size] == state
        )
        path, group = (*path, number), parts[number]
    return path


def _drawn_by_state(atlas: Atlas, group: Group) -> list[Chain]:
    """Return the chains of a group's states; none where they are more than can be drawn."""
    if group.states.size > CHAINED_STATES:
        return []
    found = chains(atlas.graph, group.states)
    return found if len(found) <= WINDOW_STATES else []


def _numbered(graph: Graph, inside: Sequence[np.ndarray]) -> np.ndarray:
    box = np.full(graph.states, -1, np.int32)
    for n, states in enumerate(inside):
        box[states] = n
    return box


def _chain_box(graph: Graph, chain: Chain) -> Box:
    first = chain.states[0]
    if len(chain.states) == 1:
        return Box(f"q{first}", "state", "end" if first == graph.end else str(first))
    return Box(f"c{first}", "chain", chain.text, states=len(chain.states))


def _group_box(id: str, kind: str, group: Group, path: tuple[int, ...]) -> Box:
    return Box(id, kind, group.name or "the whole", group.note, group.states.size, group.span, path)


def _beside(
    atlas: Atlas, trail: Sequence[Group], path: tuple[int, ...], inside: np.ndarray
) -> list[tuple[Box, np.ndarray]]:
    """Return the groups around the opened one that edges join it with; the least of many as one."""
    graph = atlas.graph
    crossing = inside[graph.source] != inside[graph.target]
    touched = np.where(inside[graph.source], graph.target, graph.source)[crossing]
    weight = np.bincount(touched, graph.classes[crossing], graph.states)
    found = []
    for depth, (group, taken) in enumerate(zip(trail, path, strict=False)):
        for n, part in enumerate(atlas.parts(path[:depth], group)):
            if n != taken and weight[part.states].any():
                found.append((float(weight[part.states].sum()), part, (*path[:depth], n)))
    found.sort(key=lambda item: -item[0])
    shown = found if len(found) <= NEIGHBOURS else found[: NEIGHBOURS - 1]
    boxes = [(_group_box(f"x{n}", "outside", part, at), part.states) for n, (_, part, at) in enumerate(shown)]
    rest = found[len(shown) :]
    if rest:
        states = np.concatenate([part.states for _, part, _ in rest])
        boxes.append((Box("xrest", "outside", f"{len(rest)} other groups", states=states.size), states))
    return boxes


NODE_NAME = 28
"""Characters of a name in a node."""
_LIVE = "00,000 live · 0.000"
"""Keeps the place of what a step says of a group."""


def _empty(picture: Picture) -> graphviz.Digraph:
    # Sixty states with many moves would else be arranged for seconds.
    effort = {} if picture.level == "groups" else {"nslimit": "0.5", "nslimit1": "0.5", "mclimit": "0.3"}
    return graphviz.Digraph(
        "automaton",
        graph_attr={
            "rankdir": "LR",
            "bgcolor": "transparent",
            "ranksep": "0.35",
            "nodesep": "0.22",
            "pad": "0.28,0.1",  # room for the numbers of parts beside nodes at the edge
            **effort,
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


def dot_source(picture: Picture) -> str:
    """Return the DOT text of a picture: nodes by the ids of their boxes, edges `e<id>_<id>`; colours are the page's."""
    graph, boxes, drawn = picture.graph, picture.boxes, _empty(picture)
    for n, box in enumerate(boxes):
        drawn.node(box.id, **_node(box, accepting=bool(graph.accepting[picture.box == n].any())))
    if picture.box[graph.start] >= 0:
        first = boxes[picture.box[graph.start]].id
        drawn.node("start", label="", shape="point", width="0.04", id="start")
        drawn.edge("start", first, id="estart")
    for a, b, text, both in _labelled(picture):
        id = f"e{boxes[a].id}_{boxes[b].id}"
        drawn.edge(boxes[a].id, boxes[b].id, label=labels.dot(f" {text} "), id=id, dir="both" if both else "forward")
    left = (picture.box[graph.source] >= 0) & (picture.box[graph.target] < 0)
    for n in np.unique(picture.box[graph.source[left]]).tolist():
        if boxes[n].kind != "outside":
            drawn.node(f"more{n}", label="…", shape="none", width="0.2", height="0.2", id=f"more{n}")
            drawn.edge(boxes[n].id, f"more{n}", style="dotted", arrowhead="none", id=f"emore{n}")
    return str(drawn.source)


def _labelled(picture: Picture) -> Iterator[tuple[int, int, str, bool]]:
    """Yield the edges between boxes that are drawn: from, to, what they say, and whether they stand for both ways."""
    graph, boxes = picture.graph, picture.boxes
    counts = {(a, b): int(graph.classes[edges].sum()) for a, b, edges in picture.arrows}
    for a, b, edges in picture.arrows:
        kinds = {boxes[a].kind, boxes[b].kind}
        if kinds == {"outside"} or (a == b and boxes[a].kind != "state"):
            continue
        if "group" not in kinds:
            yield a, b, graph.label(edges.tolist()), False
        elif (b, a) not in counts:
            yield a, b, f"{counts[a, b]:,}", False
        elif a < b:
            yield a, b, f"{counts[a, b]:,} ⇄ {counts[b, a]:,}", True


def _node(box: Box, accepting: bool) -> dict[str, str]:
    """Return what Graphviz is told of a node."""
    if box.kind == "state":
        width = {"width": f"{0.11 * len(box.name):.2f}"} if len(box.name) > 3 else {}
        shape = "doublecircle" if accepting else "circle"
        return {"id": box.id, "label": labels.dot(box.name), "shape": shape, **width}
    lines = [labels.shortened(box.name, NODE_NAME)]
    if box.kind != "chain":
        count = f"{box.states:,} state{'s' * (box.states != 1)}"
        lines += [labels.shortened(box.note, NODE_NAME)] * bool(box.note) + [count, _LIVE]
    return {
        "id": box.id,
        "class": box.kind,
        # The escape joins lines that are shown as they are.
        "label": graphviz.nohtml("\\n".join(labels.dot(line) for line in lines)),
        "shape": "box",
        "style": "rounded",
        "fixedsize": "false",
        "margin": "0.1,0.05",
        "fontname": "monospace" if box.kind == "chain" else "sans-serif",
        "peripheries": "2" if accepting else "1",
    }


@lru_cache(maxsize=256)
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


@lru_cache(maxsize=4)
def atlas(header: Header) -> Atlas:
    """Return the automaton of a run with the outline of its constraint's source."""
    return Atlas(of_tokens(header), outline.of_source(header.config.kind, header.config.source))
