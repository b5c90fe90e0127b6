"""A run as one self-contained file: the page's own panels and scrubbing, from a file that opens offline.

The client's modules go in unchanged, as `data:` addresses of an import map; what its server would answer goes in as
JSON. What needs an engine (forks, breakpoints, other parts of a large automaton) says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from viz import automaton, payload
from viz.groups import WINDOW_STATES

if TYPE_CHECKING:
    from pathlib import Path

    from engine.trace import Trace

DETAIL_STEPS = 32
"""Steps whose distributions go into one part."""
PICTURES = 24
"""Groups of a large automaton whose pictures go in."""
_IMPORT = re.compile(r"""(from\s+)(['"])(\.{1,2}/[^'"]+)\2""")


def html(trace: Trace, client: Path) -> str:
    """Return one HTML file that shows a run with the page's own panels.

    Args:
        trace: with at least one step.
        client: folder of the page's modules, its style and `offline.html`.
    """
    runs = {
        "value": {"a": "run", "b": None, "runs": [], "running": None, "serial": 1, "at": {"step": 0, "position": 0}},
        "parts": {"run": _parts(trace)},
    }
    page = (client / "offline.html").read_text(encoding="utf-8")
    parts = {
        "/* STYLE */": (client / "style.css").read_text(encoding="utf-8"),
        "/* IMPORTS */": json.dumps({"imports": _modules(client)}),
        "/* RUNS */": _inert(runs),
    }
    # One pass: a token that looks like a place is not one.
    return re.sub("|".join(map(re.escape, parts)), lambda place: parts[place[0]], page)


def _parts(trace: Trace) -> dict[str, Any]:
    """Return what the page's server would answer about a run."""
    header, steps = trace.header, trace.steps
    status = "finished" if trace.finished else "stopped"
    detail = [
        payload.detail(header, steps[first : first + DETAIL_STEPS], first)
        for first in range(0, len(steps), DETAIL_STEPS)
    ]
    return {
        "head": {**payload.header(header), "run": "run", "status": status},
        "steps": {**payload.steps(header, steps, 0), "status": status, "more": False},
        "detail": detail,
        "windows": _windows(trace),
    }


def _windows(trace: Trace) -> dict[str, Any]:
    """Return the pictures of the automaton by what the page asks for: of all states, and of the groups drawn most."""
    header = trace.header
    if header.automaton.states <= WINDOW_STATES:
        return {"{}": payload.window(header)}
    atlas = automaton.atlas(header)
    states, counts = np.unique(np.concatenate([step.path[step.path >= 0] for step in trace.steps]), return_counts=True)
    visits: Counter[tuple[int, ...]] = Counter()
    for state, count in zip(states.tolist(), counts.tolist(), strict=True):
        path = automaton.path_to(atlas, state)
        visits.update({path[:depth]: count for depth in range(len(path) + 1)})
    asked = {
        path: json.dumps({"group": ".".join(map(str, path))}, separators=(",", ":"))
        for path, _ in visits.most_common(PICTURES)
    }
    return {words: payload.window(header, path) for path, words in asked.items()}


def _modules(client: Path) -> dict[str, str]:
    """Return the client's modules by bare name; relative imports become names of the same map."""
    modules = {}
    for path in sorted(client.rglob("*.js")):
        if {"vendor", "lessons"} & set(path.parts):  # what needs a server
            continue
        here = path.parent

        def bare(match: re.Match[str], here: Path = here) -> str:
            target = (here / match[3]).resolve().relative_to(client.resolve())
            return f"{match[1]}{match[2]}denoiscope/{target.as_posix()}{match[2]}"

        text = _IMPORT.sub(bare, path.read_text(encoding="utf-8"))
        name = f"denoiscope/{path.relative_to(client).as_posix()}"
        modules[name] = "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()
    return modules


def _inert(value: Any) -> str:
    """Return JSON that can't end the element that holds it, whatever a token says."""
    return json.dumps(payload.plain(value)).replace("<", "\\u003c")
