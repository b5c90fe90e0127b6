"""Which positions a step commits: confidences and schedules by their published names (`decoding_loops.md`).

A confidence is evaluated twice: Mf on the model's own distribution, Mar on the constrained marginal. Both are recorded,
and either drives the run.
"""

from __future__ import annotations

import numpy as np

from engine import noise

NAMES = ("low_confidence", "random")


def commit_counts(masked: int, steps: int) -> list[int]:
    """Spread `masked` commits over `steps` steps as LLaDA does: the remainder goes to the first steps, one each."""
    base, rest = divmod(masked, steps)
    return [base + (step < rest) for step in range(steps)]


def confidence(name: str, log_probability: np.ndarray, eligible: np.ndarray, seed: int, step: int) -> np.ndarray:
    """Return the confidence of each position's drawn token.

    Args:
        name: `low_confidence`, the token's probability at temperature 1 whatever it was drawn at, or `random`.
        log_probability: float64 `[length]`, of the drawn tokens at temperature 1: `log p_i` for Mf, `log q_i` for Mar.
        eligible: bool `[length]`, masked and not right of the block.
        seed: of the noise of `random`.
        step: of the noise of `random`.

    Returns:
        float64 `[length]`, `-inf` where not eligible.
    """
    if name == "random":
        values = noise.uniforms(seed, step, noise.REMASKING, 0, eligible.size)
    else:
        values = np.exp(log_probability)
    return np.where(eligible, values, -np.inf)


def choose(confidences: np.ndarray, count: int) -> np.ndarray:
    """Return bool `[length]`: the `count` most confident eligible positions, the leftmost among equals."""
    chosen = np.zeros(confidences.size, bool)
    order = np.argsort(-confidences, kind="stable")[:count]
    chosen[order] = confidences[order] > -np.inf
    return chosen
