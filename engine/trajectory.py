"""How far a run of exact steps is from the model's own distribution given acceptance: its weight (`method.md`, 6).

Each step draws from its own mean field given acceptance, which is not to draw a run from the model given acceptance.
The ratio of the two laws of a run is, with `c_t` the canvas before step `t` and `p_t` its mean field,

    Π_t Z(c_t; p_t) / Z(c_{t+1}; p_t) = Z(c_0; p_0) · Π_t w_t,   w_t = Z(c_{t+1}; p_{t+1}) / Z(c_{t+1}; p_t),

the twist of TWISTER (arXiv:2609.35609); behind the last step `Z` is 1. It weighs runs without bias if which positions a
step commits does not depend on the tokens that it drew. Otherwise it is a diagnostic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import remasking
from engine.inference import paths
from engine.stepping import BASELINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.trace import Header, Trace


@dataclass(frozen=True, eq=False)
class Weight:
    """The weight of a run.

    Attributes:
        log_start: `log Z(c_0; p_0)`, nats.
        log_steps: float64 `[steps]`, `log w_t`; NaN where it is not defined.
        log_total: the log weight of the run, nats; NaN where it is not defined.
        reason: why runs may not be reweighted with it, one sentence; None where they may.
    """

    log_start: float
    log_steps: np.ndarray
    log_total: float
    reason: str | None


@dataclass(frozen=True, eq=False)
class Reweighting:
    """Runs of one configuration, weighed against each other.

    Attributes:
        weights: float64 `[runs]`, of sum 1.
        effective_runs: `1 / Σ weights²`, as many independent runs of equal weight say as much.
        log_accepted: estimate of the log probability that a run of the model alone is accepted, nats.
    """

    weights: np.ndarray
    effective_runs: float
    log_accepted: float


def weight(trace: Trace) -> Weight:
    """Return the weight of a recorded run, and whether it is more than a diagnostic."""
    if not trace.steps:
        return Weight(math.nan, np.zeros(0), math.nan, "The run has no finished step.")
    before, after = trace.column("log_partition"), trace.column("log_partition_after")
    with np.errstate(invalid="ignore"):
        following = np.append(before[1:], 0.0 if trace.accepted else -np.inf)
        log_steps = following - after
        total = float(before[0] + log_steps.sum())
    reason = why_not(trace.header)
    lifted = np.flatnonzero(trace.column("filter_lifted"))
    if not trace.finished:
        reason, total = "The run is not finished.", math.nan
    elif lifted.size:
        reason = reason or f"Step {lifted[0]} drew without top-p and top-k, with which nothing was accepted."
    elif not math.isfinite(total):
        reason = reason or "The trace does not have what the weight is made of, or the run was not accepted."
    return Weight(float(before[0]), log_steps, total, reason)


def why_not(header: Header) -> str | None:
    """Return why runs of a configuration may not be reweighted, as one sentence; None where they may."""
    config = header.config
    if config.sampler in (*BASELINES, "map"):
        return f"The sampler {config.sampler} does not draw from the posterior."
    if config.temperature == 0:
        return "At temperature 0 nothing is drawn."
    if config.remasking in remasking.OF_THE_DRAW:
        return f"With {config.remasking}, which positions a step commits depends on the tokens that it drew."
    if header.branches:
        return "The run was changed by hand."
    if config.path_tries and not header.automaton.deterministic and paths.ambiguous(header.automaton) is not False:
        return "Draws are corrected for the number of paths, and their true log Z is only estimated."
    return None


def reweighted(log_totals: Sequence[float]) -> Reweighting:
    """Normalise the weights of several runs of one configuration, whose seeds differ.

    Args:
        log_totals: of each run, finite.
    """
    logs = np.asarray(log_totals, np.float64)
    log_sum = float(np.logaddexp.reduce(logs))
    weights = np.exp(logs - log_sum)
    return Reweighting(weights, float(1 / np.square(weights).sum()), log_sum - math.log(logs.size))
