"""The baseline `lookahead`: tokens one by one in confidence order, each kept only if a completion still exists.

It never dies, and its law is not the posterior: a token is weighed by whether a completion exists, not by how much mass
the completions have (`method.md`, section 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.inference import support

if TYPE_CHECKING:
    from engine.inference.potential import Potential


def draw(potential: Potential, seed: int, step: int, noisy: bool) -> tuple[np.ndarray, int]:
    """Draw every masked position, the one with the most probable best token first.

    Args:
        potential: the factors.
        seed: of the noise, shared with `independent`.
        step: of the noise.
        noisy: whether tokens are drawn; the most probable one is proposed first where not.

    Returns:
        int32 `[length]` tokens, and how many proposals were checked. Where nothing is accepted from the start, there
        is nothing to look ahead to and every first proposal is kept.
    """
    automaton, log_p = potential.automaton, potential.all_log_mean_field()
    tokens, checked = potential.canvas.copy(), 0
    left = potential.log_class_mass > -np.inf
    dead = not potential.live[1].size
    for row in np.argsort(-log_p.max(axis=1), kind="stable"):
        position = int(potential.masked[row])
        allowed = np.ones(automaton.classes, bool) if dead else support.completable(automaton, left, position)
        scores = log_p[row, : automaton.token_class.size].astype(np.float64)
        if noisy:
            u = noise.uniforms(seed, step, noise.GUMBEL, position * log_p.shape[1], scores.size)
            scores -= np.log(-np.log(u))
        kept = np.where(allowed[automaton.token_class], scores, -np.inf)
        tokens[position] = kept.argmax()
        checked += 1 + int((scores > kept.max()).sum())
        left[position] = np.arange(automaton.classes) == automaton.token_class[tokens[position]]
    return tokens, checked
