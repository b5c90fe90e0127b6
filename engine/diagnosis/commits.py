"""What single commits did: which cost most, which went against the model, and where the two confidences part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.diagnosis.subject import finding_at
from engine.errors import Finding, Focus

if TYPE_CHECKING:
    from engine.diagnosis.run import Run
    from engine.trace import Trace

SHOWN = 5
"""Entries of a ranking that go into the evidence."""
COSTLY = 1.0
"""Nats from which on the costliest commit is told."""
SURE = 0.5
"""Probability from which on a belief counts as what the model wanted."""


def commit_costs(trace: Trace) -> list[tuple[float, int, int]]:
    """Return (cost in nats, step, position) of every commit: `−log lift`, by which it alone changes log Z.

    Infinite where nothing accepted has the token there.
    """
    out = []
    known = trace.header.automaton.token_class
    for t, step in enumerate(trace.steps):
        at = np.flatnonzero(step.committed)
        tokens = step.drawn[at]
        inside = tokens < known.size
        log_lift = step.log_lift[at, np.where(inside, known[np.where(inside, tokens, 0)], 0)]
        out += [(-float(x), t, int(i)) for i, x in zip(at, log_lift, strict=True)]
    return out


def costly(run: Run) -> list[Finding]:
    """Name the commit that cost most of those that left an accepted answer possible."""
    costs = sorted((c for c in commit_costs(run.trace) if np.isfinite(c[0])), reverse=True)
    if not costs or costs[0][0] < COSTLY:
        return []
    cost, step, position = costs[0]
    state = int(run.path[position])
    places = run.places([state] if state >= 0 else [])
    word = run.word(int(run.trace.steps[step].drawn[position]))
    message = (
        f"At step {step} committing {word} at {position} cost {cost:.1f} nats of log Z, more than any other commit."
    )
    ranking = [
        {"step": t, "position": i, "token": run.word(int(run.trace.steps[t].drawn[i])), "nats": c}
        for c, t, i in costs[:SHOWN]
    ]
    return [
        finding_at(
            "commit",
            "info",
            places,
            message,
            focus=Focus(step=step, position=position),
            evidence={"commits": ranking},
        )
    ]


def unwanted(run: Run) -> list[Finding]:
    """Tell of the commits that the model's own belief would have made against the constraint."""
    calls = []
    for position, step in enumerate(run.committed_at.tolist()):
        if step >= 0:
            record = run.trace.steps[step]
            calls.append((float(record.forbidden_mass[position]), step, position))
    close = sorted(
        (c for c in calls if c[0] >= SURE and np.isfinite(run.trace.steps[c[1]].log_partition)), reverse=True
    )
    if not close:
        return []
    mass, step, position = close[0]
    token_id, probability = run.wanted(run.trace.steps[step], position)
    chosen = run.word(int(run.trace.steps[step].drawn[position]))
    message = (
        f"At {len(close)} of {len(calls)} commits most of the belief was on tokens that nothing accepted has there: at "
        f"step {step}, position {position}, {mass:.1%}. The model wanted {run.word(token_id)} ({probability:.1%}), "
        f"{'and it' if chosen == run.word(token_id) else chosen} was committed."
    )
    ranking = []
    for m, t, i in close[:SHOWN]:
        wanted, p = run.wanted(run.trace.steps[t], i)
        ranking.append({"step": t, "position": i, "forbidden_mass": m, "wanted": run.word(wanted), "probability": p})
    places = run.places([int(run.path[position])] if run.path[position] >= 0 else [])
    return [
        finding_at(
            "wanted",
            "info",
            places,
            message,
            focus=Focus(step=step, position=position),
            evidence={"commits": ranking, "count": len(close)},
        )
    ]


def confidences(run: Run) -> list[Finding]:
    """Tell at how many steps the two confidences would have committed different positions."""
    differ = [t for t, s in enumerate(run.trace.steps) if (s.committed_mf != s.committed_mar).any()]
    if not differ:
        return []
    message = (
        f"Mf and Mar would commit different positions at {len(differ)} of {len(run.trace.steps)} steps, first at step "
        f"{differ[0]}."
    )
    return [Finding("confidences", "info", None, message, focus=Focus(step=differ[0]), evidence={"steps": differ})]
