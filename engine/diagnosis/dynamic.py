"""What can be said of a recorded run, the most important first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.diagnosis import beliefs, branches, commits, conflict, traps, widening
from engine.diagnosis.run import Run
from engine.diagnosis.subject import by_weight, finding_at, listed, named
from engine.errors import Finding, Focus, Place, Remedy

if TYPE_CHECKING:
    from engine.trace import Trace

ORDER = (
    "no-return",
    "stopped",
    "filter-lifted",
    "trap",
    "cut-short",
    "accepted",
    "belief",
    "branch",
    "commit",
    "wanted",
)
FAINT = 0.05
"""Probability under which a token is not what the model wanted, though it lost most there."""


def findings(trace: Trace) -> tuple[Finding, ...]:
    """Diagnose a run, finished or not; the best explanation first. A run without a constraint has none."""
    if trace.header.config.kind is None:
        return ()
    if not trace.steps:
        return (Finding("stopped", "warning", None, "The run stopped before its first step ended."),)
    run = Run(trace)
    found = [
        *_verdict(run),
        *_filter(run),
        *_belief(run),
        *commits.costly(run),
        *commits.unwanted(run),
        *traps.findings(run),
        *_branches(run),
        *commits.confidences(run),
    ]

    return by_weight(found, ORDER)


def _verdict(run: Run) -> list[Finding]:
    """Say whether the answer is accepted, and if not, since when and through which commits."""
    trace = run.trace
    if trace.accepted:
        return [_accepted(run)]
    step = conflict.point_of_no_return(trace)
    if step is not None:
        return [_no_return(run, step)]
    open_positions = int(run.masked.sum())
    message = (
        f"The run stopped after step {len(trace.steps) - 1} with {open_positions} positions open; an accepted answer "
        "is still possible."
    )
    return [Finding("stopped", "warning", None, message, focus=Focus(step=len(trace.steps) - 1))]


def _accepted(run: Run) -> Finding:
    steps = run.trace.steps
    first = float(steps[0].log_partition)
    message = f"The answer is accepted. At the start the model gave accepted answers {_share(first)} of its belief."
    evidence = {"log_partition": [_finite(step.log_partition) for step in steps]}
    return Finding("accepted", "info", None, message, evidence=evidence)


def _no_return(run: Run, step: int) -> Finding:
    """Name the fewest commits that contradict each other, and the nearest accepted answer."""
    trace = run.trace
    header, record = trace.header, trace.steps[step]
    canvas = conflict.canvas_of(header.automaton, record.canvas_after, header.vocabulary.mask_id)
    positions = conflict.minimal_conflict(canvas)
    alone = conflict.impossible_alone(canvas)
    forward, _ = conflict.fronts(canvas)
    reached = int(np.flatnonzero(forward.any(axis=1))[-1])
    places = run.places(np.flatnonzero(forward[reached]).tolist())
    words = [f"{run.word(int(canvas.token_ids[i]))} at {i}" for i in positions]
    evidence: dict[str, Any] = {
        "step": step,
        "conflict": [
            {
                "position": i,
                "token_id": int(canvas.token_ids[i]),
                "text": run.word(int(canvas.token_ids[i])),
                "committed_at": int(run.committed_at[i]),
                "impossible_alone": bool(alone[i]),
            }
            for i in positions
        ],
        "impossible_alone": np.flatnonzero(alone).tolist(),
        "last_boundary_reached": reached,
        "log_partition_before": _finite(record.log_partition),
        "nearest": _nearest(run),
    }
    before = _share(float(record.log_partition))
    message = (
        f"From step {step} on nothing accepted is possible: {_together(words)}. Before it accepted answers had "
        f"{before} of the belief."
    )
    return finding_at(
        "no-return",
        "error",
        places,
        message,
        fixes=("Draw from the posterior: the samplers midpoint, tree, chain and map keep a completion at every step.",),
        focus=Focus(step=step, position=positions[-1] if positions else None),
        evidence=evidence,
        remedies=_exact(run),
    )


def _together(words: list[str]) -> str:
    if not words:
        return "no text of this length is accepted at all"
    if len(words) == 1:
        return f"no accepted answer has {words[0]}, whatever the rest is"
    return f"no accepted answer has {', '.join(words[:-1])} and {words[-1]} together"


def _exact(run: Run) -> tuple[Remedy, ...]:
    """An exact draw is accepted as long as any answer has a probability, and so never leaves the language."""
    if run.trace.steps[0].log_partition == -np.inf:
        return ()
    return (Remedy("Draw from the posterior (midpoint)", {"sampler": "midpoint"}),)


def _nearest(run: Run) -> dict[str, Any] | None:
    trace = run.trace
    header = trace.header
    canvas = conflict.canvas_of(header.automaton, trace.canvas, header.vocabulary.mask_id)
    found = conflict.nearest(canvas, *conflict.preferred_tokens(trace))
    if found is None:
        return None
    return {
        "text": header.vocabulary.decode(found.token_ids.tolist()),
        "token_ids": found.token_ids.tolist(),
        "changes": [
            {
                "position": i,
                "from": run.word(int(canvas.token_ids[i])),
                "to": run.word(int(found.token_ids[i])),
            }
            for i in np.flatnonzero(found.changed).tolist()
        ],
    }


def _filter(run: Run) -> list[Finding]:
    """Tell of steps that had to draw from more than top-p and top-k keep."""
    lifted = [t for t, step in enumerate(run.trace.steps) if bool(step.filter_lifted)]
    if not lifted:
        return []
    message = (
        f"At {len(lifted)} of {len(run.trace.steps)} steps, first at step {lifted[0]}, top-p and top-k left nothing "
        "accepted; the draw was from the unfiltered mean field there."
    )
    remedy = Remedy("Draw without top-p and top-k", {"top_p": None, "top_k": None})
    return [
        Finding(
            "filter-lifted",
            "warning",
            None,
            message,
            focus=Focus(lifted[0]),
            evidence={"steps": lifted},
            remedies=(remedy,),
        )
    ]


def waterfall(run: Run, step: int) -> list[dict[str, Any]]:
    """Divide a step's lost log partition over the parts of the source, the largest loss first.

    Returns:
        For each part its places, the nats lost there, its share, the position that loses most of it and the token that
        the constraint took most from there. The nats sum to `−log Z`.
    """
    record = run.trace.steps[step]
    lost = beliefs.of_step(run.trace, record).losses()
    groups: dict[tuple[Place, ...], list[int]] = {}
    for state in np.flatnonzero(lost.any(axis=0)).tolist():
        groups.setdefault(run.parts([state]), []).append(state)
    total = float(lost.sum())
    out = []
    for places, states in groups.items():
        by_position = lost[:, states].sum(axis=1)
        position = int(np.argmax(by_position))
        token_id, probability = run.wanted(record, position)
        out.append(
            {
                "places": places,
                "nats": float(by_position.sum()),
                "share": float(by_position.sum()) / total if total else 0.0,
                "position": position,
                "state": states[int(np.argmax(lost[position, states]))],
                "token_id": token_id,
                "wanted": run.word(token_id),
                "wanted_probability": probability,
            }
        )
    return sorted(out, key=lambda part: -part["nats"])


def _belief(run: Run) -> list[Finding]:
    """Say how much of the model's belief the constraint keeps at the start, and which part takes most of the rest."""
    log_partition = float(run.trace.steps[0].log_partition)
    if log_partition == -np.inf:
        message = "The model gives every accepted answer the probability 0 at the first step."
        advice = "Give the tokens that the constraint needs a probability above 0, or change the constraint."
        return [Finding("belief", "warning", None, message, (advice,), focus=Focus(step=0))]
    parts = waterfall(run, 0)
    evidence = {
        "log_partition": log_partition,
        "log10": log_partition / np.log(10),
        "parts": [
            {**part, "name": _at(part["places"]), "places": [p.plain() for p in part["places"]]} for part in parts
        ],
    }
    if not parts or log_partition > -0.01:
        message = "The model's own belief keeps the constraint: hardly anything of it is lost at the start."
        return [Finding("belief", "info", None, message, focus=Focus(step=0), evidence=evidence)]
    worst = parts[0]
    place: Place | None = worst["places"][0] if worst["places"] else None
    message = (
        f"At the start the model gives this constraint {_share(log_partition)} of its belief; {worst['share']:.0%} of "
        f"the loss, {worst['nats']:.2f} nats, is at {_at(worst['places'])}"
    )
    if worst["wanted_probability"] >= FAINT:
        chance = _share(np.log(worst["wanted_probability"]))
        message += f": at position {worst['position']} it wanted {worst['wanted']} ({chance})"
    return [
        Finding(
            code="belief",
            severity="info",
            where=place,
            message=f"{message}.",
            related=worst["places"][1:],
            focus=Focus(step=0, position=worst["position"], state=worst["state"]),
            evidence=evidence,
            remedies=widening.allowing(run, 0, run.places([worst["state"]]), worst["token_id"]),
        )
    ]


def _at(places: tuple[Place, ...]) -> str:
    return listed(places) if places else "the end of the text"


def _branches(run: Run) -> list[Finding]:
    """Name, for the alternative whose outcome was least expected, the branch that won and when the others died."""
    if run.constraint is None or not run.trace.accepted:
        return []
    best: tuple[float, branches.Life, list[branches.Life]] | None = None
    for choice in branches.choices(run.constraint, run.trace.header.automaton):
        lives = branches.lives(run.trace, choice)
        won = [life for life in lives if life.died is None and life.branch.states[run.path].any()]
        lost = [life for life in lives if life.died is not None]
        if len(won) == 1 and lost and (best is None or won[0].probability < best[0]):
            best = (won[0].probability, won[0], lost)
    if best is None:
        return []
    _, won_life, losers = best
    last = max(losers, key=lambda life: (life.died or 0, life.probability))
    rival = max(losers, key=lambda life: life.probability)
    step = last.died or 0
    by = (
        "its commits"
        if last.killer is None
        else f"{run.word(int(run.trace.steps[step].drawn[last.killer]))} at {last.killer}"
    )
    message = (
        f"The branch {named(won_life.branch.place)} won at step {step} by {by}; at the start it had "
        f"{won_life.probability:.1%} of the accepted belief, and {named(rival.branch.place)} {rival.probability:.1%}."
    )
    ranking = [
        {
            "name": named(life.branch.place),
            "place": life.branch.place.plain(),
            "probability": life.probability,
            "died": life.died,
            "killer": life.killer,
        }
        for life in [won_life, *losers]
    ]
    return [
        Finding(
            code="branch",
            severity="info",
            where=won_life.branch.place,
            message=message,
            related=tuple(life.branch.place for life in losers),
            focus=Focus(step=step, position=last.killer),
            evidence={"branches": ranking},
            remedies=widening.without(run, won_life.branch.place),
        )
    ]


def _share(log_probability: float) -> str:
    """Write a probability given by its logarithm."""
    if log_probability == -np.inf:
        return "nothing"
    p = float(np.exp(log_probability))
    return f"{p:.1%}" if p >= 0.001 else f"10^{log_probability / np.log(10):.1f}"


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
