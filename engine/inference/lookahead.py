"""The baseline `lookahead`: tokens one by one in confidence order, each kept only if a completion still exists.

It never dies, and its law is not the posterior: a token is weighed by whether a completion exists, not by how much mass
the completions have (`method.md`, section 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.inference import proposals

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
    edges = automaton.edges
    tokens = potential.canvas.copy()
    checked = proposals.looking_ahead(
        np.argsort(-log_p.max(axis=1), kind="stable"),
        potential.masked,
        log_p,
        potential.log_class_mass > -np.inf,
        edges.out,
        (edges.label_ptr, edges.label_class),
        automaton.token_class,
        automaton.start,
        automaton.accepting,
        not potential.live[1].size,
        (noisy, seed, step),
        tokens,
    )
    return tokens, int(checked)
