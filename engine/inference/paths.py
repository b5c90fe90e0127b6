"""Paths of a nondeterministic automaton: how many a sequence has, and draws that don't count them (`method.md`, 4).

Inference weights a sequence `x` by its number of accepting paths. A draw of that law that is kept with probability
`1 / paths(x)` is a draw of the language's own, and `Z = Z_paths · E[1 / paths]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.inference import batch, draws

if TYPE_CHECKING:
    from engine.inference.chain import Posterior
    from engine.inference.potential import Potential
    from engine.token_automaton import TokenAutomaton

PAIRS = 20_000_000
"""Pairs of states that the decision about ambiguity may visit; a few seconds and some hundred megabytes."""


@dataclass(frozen=True, eq=False)
class Corrected:
    """A draw whose law is the language's own where a try was kept, and a measure of the ambiguity.

    Attributes:
        tokens: int32 `[length]`.
        path: int32 `[boundaries]`.
        tries: joint draws that were made; all of them, so that the two means below are unbiased.
        kept: how many of them the correction keeps.
        log_paths: log number of accepting paths of `tokens`.
        inverse_paths: mean of `1 / paths` over the tries; times the path-weighted `Z` it estimates the true one.
        path_weighted: whether no try was kept, so that the draw is of the path-weighted law.
    """

    tokens: np.ndarray
    path: np.ndarray
    tries: int
    kept: int
    log_paths: float
    inverse_paths: float
    path_weighted: bool


def corrected(potential: Potential, posterior: Posterior, seed: int, step: int, tries: int) -> Corrected:
    """Draw `tries` sequences by paths, keep each with probability `1 / paths`, and return the first that is kept.

    Args:
        potential: the factors.
        posterior: of the same potential, with at least one accepted completion.
        seed: of the noise.
        step: of the noise.
        tries: how many; 0 draws once by paths and corrects nothing.
    """
    drawn = draws.draw(potential, posterior, seed, step, max(tries, 1))
    log_counts = log_paths(potential.automaton, drawn.classes)
    inverse = np.exp(-log_counts)
    keeps = np.log(noise.uniforms(seed, step, noise.PATHS, 0, max(tries, 1))) < -log_counts
    keeps &= tries > 0
    chosen = int(keeps.argmax())
    one = draws.Draws(*(values[chosen : chosen + 1] for values in (drawn.paths, drawn.classes, drawn.rest)))
    return Corrected(
        tokens=draws.tokens(potential, one)[0],
        path=drawn.paths[chosen],
        tries=max(tries, 1),
        kept=int(keeps.sum()),
        log_paths=float(log_counts[chosen]),
        inverse_paths=float(inverse.mean()),
        path_weighted=not keeps.any(),
    )


def log_paths(automaton: TokenAutomaton, classes: np.ndarray) -> np.ndarray:
    """Return float64 `[draws]`: the log number of accepting paths of each row of token classes; `-inf` for none."""
    return batch.log_paths(
        automaton.class_ptr,
        automaton.class_source,
        automaton.class_target,
        automaton.start,
        automaton.accepting,
        np.ascontiguousarray(classes, np.int32),
    )


def ambiguous(automaton: TokenAutomaton) -> bool | None:
    """Decide whether some sequence of any length has two accepting paths; None where `PAIRS` don't suffice."""
    if automaton.deterministic:
        return False
    classes = np.repeat(np.arange(automaton.classes), np.diff(automaton.class_ptr))
    order = np.lexsort((automaton.class_target, classes, automaton.class_source))
    ptr = np.searchsorted(automaton.class_source[order], np.arange(automaton.states + 1))
    target = automaton.class_target[order].astype(np.int64)
    found = batch.ambiguous(ptr, classes[order], target, automaton.accepting, PAIRS)
    return None if found < 0 else bool(found)
