"""Which positions a step commits: confidences, rules and schedules by their published names.

Each confidence is a formula on one distribution a position and is evaluated twice: Mf on the mean field, Mar on the
posterior. Both are recorded, and either drives the run. Sources, with the line numbers of the projects, are in the
design notes; the papers are LLaDA (arXiv:2502.09992), Dream (arXiv:2508.15487) and Fast-dLLM (arXiv:2505.22618).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.inference import kernels

if TYPE_CHECKING:
    from engine.trace import Config

DREAM_EPS = 1e-3
"""The time at which Dream's schedule ends, its `eps`."""
THRESHOLD = 0.9
"""Of `threshold` where the run names none: Fast-dLLM's own choice."""
FACTOR = 1.0
"""Of `factor` where the run names none."""


@dataclass(frozen=True, eq=False)
class Law:
    """One distribution a position, as a confidence sees it: the mean field for Mf, the posterior for Mar.

    Attributes:
        probability: float64 `[length]`, of the drawn token.
        log_best_two: float `[length 2]`, logarithms of the two largest probabilities.
        entropy: float64 `[length]`, nats.
    """

    probability: np.ndarray
    log_best_two: np.ndarray
    entropy: np.ndarray


def low_confidence(law: Law, _: np.ndarray) -> np.ndarray:
    """Return `p(x)`, LLaDA's: at temperature 1 and unfiltered, whatever `x` was drawn at (`generate.py`)."""
    return law.probability


def random(_: Law, u: np.ndarray) -> np.ndarray:
    """Return a uniform number, LLaDA's `random` (`generate.py`); no temperature enters."""
    return u


def origin(_: Law, u: np.ndarray) -> np.ndarray:
    """Return a uniform number; those above `1 − share` are committed, each by itself, as in Dream's `origin`."""
    return u


def maskgit_plus(law: Law, _: np.ndarray) -> np.ndarray:
    """Return `p(x)`, Dream's: of the tempered and filtered distribution that `x` was drawn from (`sample_tokens`)."""
    return law.probability


def topk_margin(law: Law, _: np.ndarray) -> np.ndarray:
    """Return `p(1st) − p(2nd)`, of the tempered and filtered distribution (Dream, `sample_tokens`)."""
    first, second = np.exp(law.log_best_two.T)
    return np.asarray(first - second, np.float64)


def entropy(law: Law, _: np.ndarray) -> np.ndarray:
    """Return `Σ p log p`, of the tempered and filtered distribution (Dream, `sample_tokens`).

    Dream adds 1e-10 inside the logarithm to avoid `0 · -inf`; here the term is 0, a difference below 1e-8 nats.
    """
    return -law.entropy


CONFIDENCES = {
    "low_confidence": low_confidence,
    "random": random,
    "origin": origin,
    "maskgit_plus": maskgit_plus,
    "topk_margin": topk_margin,
    "entropy": entropy,
    # Fast-dLLM's rules are on LLaDA's confidence; `Config.threshold` and `factor` put them on another.
    "threshold": low_confidence,
    "factor": low_confidence,
}
NAMES = tuple(CONFIDENCES)
OF_THE_DRAW = ("low_confidence", "maskgit_plus", "threshold", "factor")
"""Names whose choice of positions depends on the tokens that were drawn there."""
DREAM = ("origin", "maskgit_plus", "topk_margin", "entropy")
"""Names of Dream: its schedule, and confidences on the tempered and filtered distribution."""


def confidence(config: Config, law: Law, eligible: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return float64 `[length]`: the confidence of each position, `-inf` where not `eligible`.

    Args:
        config: of the run; its `remasking` is the formula.
        law: at the temperature that the formula asks for.
        eligible: bool `[length]`, masked and not right of the block.
        u: float64 `[length]`, uniform numbers.
    """
    return np.where(eligible, CONFIDENCES[config.remasking](law, u), -np.inf)


def count(config: Config, step: int, block_stop: int, planned: int, confidences: np.ndarray) -> int:
    """Return how many positions a step commits.

    Args:
        config: of the run.
        step: number of the step.
        block_stop: end of the step's block.
        planned: LLaDA's number, from `commit_counts`.
        confidences: from `confidence`.
    """
    if not config.parallel and config.remasking not in DREAM:
        return planned
    left = int((confidences > -np.inf).sum())
    if config.parallel:
        return max(_at_least(config, step, block_stop, left), confident(config, confidences))
    per_block = config.steps * config.block_length // config.length
    share = dream_share(per_block)[step % per_block]
    if config.remasking == "origin":
        return int((confidences > 1 - share).sum())
    return int(np.float32(left) * share)


def confident(config: Config, confidences: np.ndarray) -> int:
    """Return how many positions, from the most confident on, pass the run's parallel rule.

    `threshold` (Fast-dLLM, `generate.py`): those with `c ≥ threshold`. `factor` (Fast-dLLM, section 3.3): rank
    `r = 1, 2, …` while `c_r ≥ 1 − factor / (r + 1)`.
    """
    ordered = -np.sort(-confidences)
    if config.factor is not None or config.remasking == "factor":
        factor = FACTOR if config.factor is None else config.factor
        passed = ordered >= 1 - factor / np.arange(2, ordered.size + 2)
    else:
        passed = ordered >= (THRESHOLD if config.threshold is None else config.threshold)
    passed &= ordered > -np.inf
    return int(passed.size if passed.all() else passed.argmin())


def _at_least(config: Config, step: int, block_stop: int, left: int) -> int:
    """Return the fewest commits with which a parallel rule still ends its block in time.

    That is 1 where there are as many steps as positions, as published. Blocks to the right keep their share of steps.
    """
    per_block = config.steps * config.block_length // config.length
    later = (config.length - block_stop) // config.block_length
    steps_left = config.steps - step - later * per_block
    return -(-left // max(steps_left, 1))


def choose(
    confidences: np.ndarray, count: int, alg_temp: float | None = None, u: np.ndarray | None = None
) -> np.ndarray:
    """Return bool `[length]`: the `count` most confident eligible positions, the leftmost among equals.

    What differs by less than rounding is equal: many positions have the posterior 1, and no last bit, which another
    machine may have otherwise, is to say which of them comes first. With `alg_temp` (Dream) they are drawn without
    replacement from `softmax(confidences / alg_temp)`, which is to take the largest after Gumbel noise is added (Kool
    et al. 2019), here made of `u`.
    """
    if alg_temp and u is not None:
        confidences = confidences / alg_temp - np.log(-np.log(u))
    return np.asarray(kernels.largest(confidences, count))


def commit_counts(masked: int, steps: int) -> list[int]:
    """Spread `masked` commits over `steps` steps as LLaDA does: the remainder goes to the first steps, one each."""
    base, rest = divmod(masked, steps)
    return [base + (step < rest) for step in range(steps)]


def dream_share(steps: int) -> np.ndarray:
    """Return float32 `[steps]`: the share of the masked positions that each of Dream's steps commits.

    It is `1 − s / t` for neighbours `t, s` of `linspace(1, eps, steps + 1)`, and 1 at the last step. Commits are
    truncated to whole numbers, so every bit counts: this is torch's float32 linspace, whose multiplication and addition
    are rounded once, together.
    """
    start, stop = np.float32(1), np.float32(DREAM_EPS)
    width = np.float64((stop - start) / np.float32(steps))
    n = np.arange(steps + 1)
    times = np.where(n < (steps + 1) // 2, start + width * n, stop - width * (steps - n)).astype(np.float32)
    share = 1 - times[1:] / times[:-1]
    share[-1] = 1
    return share
