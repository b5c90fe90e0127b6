"""Two runs, side by side: what is at the same place in both, where they part and why, how it ended.

Runs that share a seed share their noise (`engine.noise`), so that what differs comes from what was changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine.errors import CompareError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.trace import Header, StepRecord, Trace

Alignment = Literal["step", "committed", "position"]
"""By number of the step; by how many positions are committed before it; by the step that committed a position."""


@dataclass(frozen=True)
class Divergence:
    """The first step at which two runs do something different.

    Attributes:
        step: its number, the same in both.
        position: the leftmost position at which they differ.
        cause: `canvas` (they begin differently), `draw` (other tokens are drawn where one of them commits) or `choice`
            (the same draw, another position committed).
        chosen: positions that each of the two commits.
        tokens: what each of the two draws there.
        confidences: of that position, `{"mf": (a, b), "mar": (a, b)}`; None where it isn't defined.
        rivals: the position that each of the two commits and the other doesn't, if any.
        rival_confidences: of `rivals`, each in both runs: `{"mf": ((a, b), (a, b)), "mar": …}`.
    """

    step: int
    position: int
    cause: Literal["canvas", "draw", "choice"]
    chosen: tuple[tuple[int, ...], tuple[int, ...]]
    tokens: tuple[int, int]
    confidences: dict[str, tuple[float | None, float | None]]
    rivals: tuple[int | None, int | None]
    rival_confidences: dict[str, tuple[tuple[float | None, float | None], ...]]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        text: what its canvas says.
        accepted: whether the constraint accepts it.
        steps: finished steps.
        model_calls: the same, as calls of the model.
        log_probability: Σ over the steps of `log p` at temperature 1 of the committed tokens, nats: what the model
            alone gave them when they were committed; None where the record lacks one of them.
        forbidden_mass: mean of the forbidden mass over all masked positions of all steps.
        lost_at: first step at which nothing could be accepted any more.
        model_ms, engine_ms: sums.
    """

    text: str
    accepted: bool
    steps: int
    model_calls: int
    log_probability: float | None
    forbidden_mass: float
    lost_at: int | None
    model_ms: float
    engine_ms: float


@dataclass(frozen=True)
class Share:
    """A share of successes with its 95 % interval by Wilson (1927)."""

    successes: int
    trials: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs.

    Attributes:
        changed: settings that differ, with both values.
        shared_noise: whether both draw from the same seed.
        tau: Kendall's τ-b between the steps at which the positions were committed; NaN where one has no order.
        commit_steps: int32 `[2 length]`, -1 where pinned or not committed.
        divergence: None where the runs do the same at every step that both have.
        different_positions: positions whose last tokens differ.
        outcomes: of both.
    """

    changed: dict[str, tuple[Any, Any]]
    shared_noise: bool
    tau: float
    commit_steps: np.ndarray
    divergence: Divergence | None
    different_positions: tuple[int, ...]
    outcomes: tuple[Outcome, Outcome]


def compare(a: Trace, b: Trace) -> Comparison:
    """Compare two runs over the same vocabulary and length.

    Raises:
        CompareError: they can't be aligned; says why.
    """
    _check(a, b)
    steps = np.stack([commit_steps(a), commit_steps(b)])
    one, other = a.header.config, b.header.config
    pairs = {f.name: (getattr(one, f.name), getattr(other, f.name)) for f in fields(one)}
    return Comparison(
        changed={name: pair for name, pair in pairs.items() if pair[0] != pair[1]},
        shared_noise=one.seed == other.seed,
        tau=kendall(steps[0], steps[1]),
        commit_steps=steps,
        divergence=first_divergence(a, b),
        different_positions=tuple(np.flatnonzero(a.canvas != b.canvas).tolist()),
        outcomes=(outcome(a), outcome(b)),
    )


def commit_steps(trace: Trace) -> np.ndarray:
    """Return int32 `[length]`: the step that last committed each position; -1 where none did."""
    steps = np.full(trace.header.config.length, -1, np.int32)
    for n, record in enumerate(trace.steps):
        steps[record.committed] = n
    return steps


def kendall(a: np.ndarray, b: np.ndarray) -> float:
    """Return Kendall's τ-b of two orders over the positions that both committed."""
    # scipy takes half a second to import.
    from scipy.stats import kendalltau

    both = (a >= 0) & (b >= 0)
    if both.sum() < 2 or np.ptp(a[both]) == 0 or np.ptp(b[both]) == 0:
        return math.nan
    return float(kendalltau(a[both], b[both]).statistic)


def align(a: Trace, b: Trace, by: Alignment) -> tuple[tuple[int, int], ...]:
    """Return pairs of steps that stand side by side.

    `step`: equal numbers. `committed`: for each step of `a` the step of `b` that begins with as many committed
    positions, or the last that has fewer. `position`: for each position, in order, the steps that committed it.

    Raises:
        CompareError: they can't be aligned.
    """
    _check(a, b)
    if by == "step":
        return tuple((n, n) for n in range(min(len(a.steps), len(b.steps))))
    if by == "position":
        pairs = zip(commit_steps(a).tolist(), commit_steps(b).tolist(), strict=True)
        return tuple((n, m) for n, m in pairs if n >= 0 and m >= 0)
    counts = [_committed_before(a), _committed_before(b)]
    if not counts[0].size or not counts[1].size:
        return ()
    beside = np.searchsorted(np.maximum.accumulate(counts[1]), counts[0], side="right") - 1
    return tuple((n, max(int(m), 0)) for n, m in enumerate(beside))


def first_divergence(a: Trace, b: Trace) -> Divergence | None:
    """Return the first step at which two runs differ in canvas, draw or choice, and the numbers that decided it."""
    for n, (x, y) in enumerate(zip(a.steps, b.steps, strict=False)):
        masked = x.canvas == a.header.vocabulary.mask_id
        different = {
            "canvas": x.canvas != y.canvas,
            "choice": x.committed != y.committed,
            "draw": (x.drawn != y.drawn) & masked,
        }
        # A token that was drawn differently and committed by neither shows only what comes.
        different["draw"] &= x.committed | y.committed
        for cause in ("canvas", "draw", "choice"):
            if different[cause].any():
                return _divergence(n, int(np.flatnonzero(different[cause])[0]), cause, a, b)
    return None


def outcome(trace: Trace) -> Outcome:
    """Return how a run ended."""
    mask_id = trace.header.vocabulary.mask_id
    masses = [record.forbidden_mass[record.canvas == mask_id] for record in trace.steps]
    every = np.concatenate(masses) if masses else np.zeros(0)
    logs = [log for record in trace.steps for log in _log_committed(record, trace.header)]
    lost = [n for n, record in enumerate(trace.steps) if np.isneginf(record.log_partition)]
    return Outcome(
        text=trace.text,
        accepted=trace.accepted,
        steps=len(trace.steps),
        model_calls=len(trace.steps),
        log_probability=None if None in logs else sum(log for log in logs if log is not None),
        forbidden_mass=float(every.mean()) if every.size else 0.0,
        lost_at=lost[0] if lost else None,
        model_ms=float(sum(record.model_ms for record in trace.steps)),
        engine_ms=float(sum(record.engine_ms for record in trace.steps)),
    )


def wilson(successes: int, trials: int, z: float = 1.959963984540054) -> Share:
    """Return the share with its interval: E. B. Wilson, "Probable inference" (1927); it holds at 0 and at 1 too."""
    if trials == 0:
        return Share(0, 0, 0.0, 1.0)
    share = successes / trials
    scale = 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / scale
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / scale
    return Share(successes, trials, max(0.0, middle - half), min(1.0, middle + half))


def accepted_share(traces: Sequence[Trace]) -> Share:
    """Return how many of some runs were accepted, such as those of N seeds."""
    return wilson(sum(trace.accepted for trace in traces), len(traces))


def _check(a: Trace, b: Trace) -> None:
    one, other = a.header, b.header
    if one.vocabulary.token_bytes != other.vocabulary.token_bytes:
        names = [header.model.get("name", header.config.model) for header in (one, other)]
        raise CompareError(
            f"These runs can't be aligned: their vocabularies differ, {one.vocabulary.size:,} tokens of {names[0]} "
            f"against {other.vocabulary.size:,} of {names[1]}.",
            "Compare runs of one model.",
        )
    if one.config.length != other.config.length:
        raise CompareError(
            f"These runs can't be aligned: one canvas has {one.config.length} positions, the other "
            f"{other.config.length}.",
            "Compare runs of one length.",
        )


def _committed_before(trace: Trace) -> np.ndarray:
    mask_id = trace.header.vocabulary.mask_id
    return np.asarray([int((record.canvas != mask_id).sum()) for record in trace.steps])


def _log_committed(record: StepRecord, header: Header) -> list[float | None]:
    """Return `log p` of each token that a step committed, from the mean field, or from the tops where those are its."""
    rows = np.cumsum(record.canvas == header.vocabulary.mask_id) - 1
    config = header.config
    unfiltered = (config.top_p is None and config.top_k is None) or bool(record.filter_lifted)
    tops = record.top_ids if unfiltered and config.temperature in (0, 1) else np.full_like(record.top_ids, -1)
    logs: list[float | None] = []
    for i in np.flatnonzero(record.committed).tolist():
        token_id = int(record.drawn[i])
        if record.log_mean_field is not None and token_id < record.log_mean_field.shape[1]:
            logs.append(float(record.log_mean_field[rows[i], token_id]))
            continue
        at = np.argwhere(tops[i] == token_id)
        logs.append(float(record.top_log_mean_field[i][tuple(at[0])]) if at.size else None)
    return logs


def _divergence(step: int, position: int, cause: Literal["canvas", "draw", "choice"], a: Trace, b: Trace) -> Divergence:
    records = (a.steps[step], b.steps[step])
    chosen = [np.flatnonzero(record.committed).tolist() for record in records]
    rivals = [next((i for i in mine if i not in other), None) for mine, other in (chosen, chosen[::-1])]

    def pair(name: str, i: int | None) -> tuple[float | None, float | None]:
        first, second = (None if i is None else _defined(getattr(r, f"confidence_{name}")[i]) for r in records)
        return first, second

    return Divergence(
        step=step,
        position=position,
        cause=cause,
        chosen=(tuple(chosen[0]), tuple(chosen[1])),
        tokens=(int(records[0].drawn[position]), int(records[1].drawn[position])),
        confidences={name: pair(name, position) for name in ("mf", "mar")},
        rivals=(rivals[0], rivals[1]),
        rival_confidences={name: tuple(pair(name, i) for i in rivals) for name in ("mf", "mar")},
    )


def _defined(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
