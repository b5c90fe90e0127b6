"""The sparse midpoint tree: the dense tree's draw and law, from sparse messages inside each span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.inference import spans
from engine.inference.chain import require_path

if TYPE_CHECKING:
    from engine.inference.chain import Posterior
    from engine.inference.potential import Potential


@dataclass(frozen=True, eq=False)
class Midpoints:
    """States drawn as a tree: the end, then the middle of every span given its two ends.

    The tree is dyadic: boundary `m` in `1 … length − 1` is the middle of `m ± h`, `h` the largest power of two that
    divides `m`, the right end cut to `length`. Boundary `length` is the root's right end, drawn first.

    Attributes:
        path: int32 `[boundaries]`, all states.
        log_probability: float32 `[boundaries]`, of each state given the ends of its span; NaN at boundary 0.
        entropy: float32 `[boundaries]`, nats, of that conditional distribution.
        ids: int32 `[boundaries top]`, its most probable states, descending; -1 where there are fewer.
        probability: float32 `[boundaries top]`.
    """

    path: np.ndarray
    log_probability: np.ndarray
    entropy: np.ndarray
    ids: np.ndarray
    probability: np.ndarray


def draw(
    potential: Potential,
    posterior: Posterior,
    seed: int,
    step: int,
    top: int,
    forced: np.ndarray | None = None,
) -> Midpoints:
    """Draw all states in `⌈log2 length⌉` levels of midpoints.

    Args:
        potential: the factors.
        posterior: of the same potential.
        seed: of the noise.
        step: of the noise.
        top: states of each conditional distribution that are kept.
        forced: int32 `[boundaries]`, a path to take in place of drawing; its conditionals are recorded.

    Raises:
        EmptyLanguageError: no completion is accepted.
    """
    require_path(posterior.live)
    edges, length = potential.automaton.edges, potential.length
    if forced is None:
        forced = np.full(length + 1, -1, np.int32)
    return Midpoints(
        *spans.draw_midpoints(
            edges.out,
            edges.into,
            posterior.live_ptr,
            posterior.live,
            posterior.forward,
            posterior.forward_exponent,
            *potential.labels,
            noise.uniforms(seed, step, noise.STATE, 0, length + 1),
            forced,
            top,
        )
    )
