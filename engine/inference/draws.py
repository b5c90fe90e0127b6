"""Many draws from one posterior at once: the messages are used for all draws together, a boundary at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.inference import batch
from engine.inference.chain import require_path
from engine.inference.wide import to_log

if TYPE_CHECKING:
    from engine.inference.chain import Posterior
    from engine.inference.potential import Potential


@dataclass(frozen=True, eq=False)
class Draws:
    """Independent draws of states and of token classes; a token is drawn when it is asked for.

    Attributes:
        paths: int32 `[draws boundaries]`.
        classes: int32 `[draws length]`.
        rest: float64 `[draws length]`, noise that is uniform given the classes, with which tokens are drawn.
    """

    paths: np.ndarray
    classes: np.ndarray
    rest: np.ndarray


def draw(potential: Potential, posterior: Posterior, seed: int, step: int, draws: int) -> Draws:
    """Draw states from left to right, then classes given the states; draw 0 is that of `chain.draw`.

    Args:
        potential: the factors.
        posterior: of the same potential.
        seed: of the noise.
        step: of the noise.
        draws: how many.

    Raises:
        EmptyLanguageError: no completion is accepted.
    """
    require_path(posterior.live)
    edges, length = potential.automaton.edges, potential.length
    graph = edges.out
    log_labels = to_log(*potential.labels)
    u = _noise(seed, step, noise.STATE, draws, length)
    paths = batch.draw_paths(graph, posterior.live_ptr, posterior.live, posterior.log_backward, log_labels, u)
    u = _noise(seed, step, noise.TOKEN, draws, length)
    classes, rest = batch.draw_classes(graph, edges.label_ptr, edges.label_class, paths, potential.log_class_mass, u)
    return Draws(paths, classes, rest)


def tokens(potential: Potential, draws: Draws) -> np.ndarray:
    """Draw the tokens of all draws given their classes: int32 `[draws length]`, each class of a row read once."""
    edges, masked = potential.automaton.edges, potential.masked
    out = np.repeat(potential.canvas[None], len(draws.classes), axis=0)
    with np.errstate(over="ignore"):  # models write the least float for what is impossible
        scores = potential.logits[masked] * potential.scale
    out[:, masked] = batch.draw_tokens(
        scores,
        draws.classes[:, masked],
        draws.rest[:, masked],
        edges.class_tokens_ptr,
        edges.class_tokens,
    )
    return out


def _noise(seed: int, step: int, stream: int, draws: int, length: int) -> np.ndarray:
    return np.asarray(noise.uniforms(seed, step, stream, 0, draws * length)).reshape(draws, length)
