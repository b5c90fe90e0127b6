"""Why a token may stand at a position, or not, as the page lists it: states, their origins, what they want instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from viz import automaton, payload

if TYPE_CHECKING:
    from engine.diagnosis.tokens import Verdict
    from engine.trace import Header

LISTED = 8
"""Moves, and states, of each kind that are listed; how many there are is always said."""
NAMED = frozenset({"json_schema", "tools", "all", "grammar", "sql"})
"""Kinds of constraint whose parts have a pointer or a name; of the others the source says more."""


def plain(header: Header, token_id: int, verdict: Verdict) -> dict[str, Any]:
    """Return the verdict on a token as data for JSON.

    Returns:
        `reason`, `given` and `stops_at` as the verdict has them. `accepting`: moves with a beginning and an ending, the
        most probable first; `dying`: with a beginning alone; `unreached`: with an ending alone; each with `count` and
        rows `[state, target, share, posterior]`. `states`: the live states in front of the token, or, where none is,
        those that a beginning leads to: `count`, and rows `[state, posterior, what may stand here instead]`. `where`:
        the name of the part of the source that each listed state is of, where it has one. `tokens`, `special`: the
        token's text, as in the parts of a run.
    """
    reached, completed = verdict.reached, verdict.completed
    lists = {
        "accepting": _moves(verdict, reached & completed),
        "dying": _moves(verdict, reached & ~completed),
        "unreached": _moves(verdict, ~reached & completed),
        "states": _states(header, verdict),
    }
    named = {row[0] for found in lists.values() for row in found["rows"]}
    names = {str(state): name for state in sorted(named) if (name := where(header, state))}
    said = {"reason": verdict.reason, "given": verdict.given, "stops_at": verdict.stops_at, "where": names}
    return {**said, **lists, **payload.spelled(header, [np.asarray([token_id])])}


def where(header: Header, state: int) -> str:
    """Return the name of the smallest part of the source that holds all that a state can write next; "" for none."""
    if header.config.kind not in NAMED:
        return ""
    atlas = automaton.atlas(header)
    return atlas.sections[0][int(atlas.place[state])].name


def _moves(verdict: Verdict, which: np.ndarray) -> dict[str, Any]:
    chosen = np.flatnonzero(which)
    chosen = chosen[np.argsort(-verdict.share[chosen], kind="stable")]
    posterior = np.zeros(verdict.follows.size)
    posterior[verdict.live] = verdict.posterior
    rows = [
        [int(verdict.state[n]), int(verdict.target[n]), float(verdict.share[n]), float(posterior[verdict.state[n]])]
        for n in chosen[:LISTED]
    ]
    return {"count": int(chosen.size), "rows": rows}


def _states(header: Header, verdict: Verdict) -> dict[str, Any]:
    graph = automaton.atlas(header).graph
    live = bool(verdict.live.size)
    states = verdict.live if live else verdict.front
    rows = []
    for n, state in enumerate(states[:LISTED].tolist()):
        edges = np.arange(graph.ptr[state], graph.ptr[state + 1])
        onward = edges[verdict.follows[graph.target[edges]]]
        words = graph.label(onward.tolist()) if onward.size else ""
        rows.append([state, float(verdict.posterior[n]) if live else 0.0, words])
    return {"count": int(states.size), "rows": rows}
