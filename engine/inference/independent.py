"""Draws of every position by itself: the baselines `independent`, `local` and `reject` (`method.md`, section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.inference import proposals

if TYPE_CHECKING:
    from engine.inference.potential import Potential


def draw(
    potential: Potential, allowed: np.ndarray | None, noisy: bool, seed: int, step: int, budget: int = 1
) -> tuple[np.ndarray, int]:
    """Draw every masked position by itself until the draw is accepted or the budget ends.

    Args:
        potential: the factors.
        allowed: bool `[length classes]`, what may be drawn; None for everything.
        noisy: whether tokens are drawn; the most probable ones are taken where not.
        seed: of the noise.
        step: of the noise.
        budget: joint draws that may be made; the last one stands whatever it is.

    Returns:
        int32 `[length]` tokens, and how many joint draws were made.
    """
    automaton = potential.automaton
    if allowed is None:
        allowed = np.ones((1, automaton.classes), bool)
    tokens, tries = proposals.independent(
        (potential.logits, potential.masked, potential.scale, potential.largest),
        potential.canvas,
        np.broadcast_to(allowed, (potential.length, automaton.classes)),
        automaton.token_class,
        (automaton.class_ptr, automaton.class_source, automaton.class_target),
        automaton.start,
        automaton.accepting,
        noisy,
        seed,
        step,
        budget,
    )
    return tokens, int(tries)
