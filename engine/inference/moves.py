"""The moves across spans of 1, 2, 4, 8 … positions, composed a level at a time, then midpoints drawn top down.

A move leads from a live state of one boundary to one of another; its weight is the mass of all paths between them. The
moves across a span are its matrix without the zeros, so that a level costs as many products as there are pairs of moves
that meet. That is what falls as a run proceeds: few states stay live, and where tokens stand, a deterministic automaton
has one move from each state. Such runs are composed as the functions they are, and so is what lies beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.inference import products
from engine.inference.chain import require_path
from engine.inference.midpoint import Midpoints

if TYPE_CHECKING:
    from engine.inference.potential import Potential

MOST = 20_000
"""Products that composing may take for one draw: about as long as a draw from messages inside spans."""


@dataclass(frozen=True, eq=False)
class Moves:
    """The moves across all spans of a dyadic tree; states are given by their places in `live`.

    Attributes:
        ptr: int64 `[levels live+1]`; across `2^level` positions the state at place `n` has the moves `ptr[level, n]` to
            `ptr[level, n + 1]` of the others. Only boundaries that begin such a span have any.
        place: int32 `[moves]`, where each leads, ascending in each row.
        mass, exponent: numbers `[moves]`, the mass of all paths between the two.
    """

    ptr: np.ndarray
    place: np.ndarray
    mass: np.ndarray
    exponent: np.ndarray


def compose(potential: Potential, most: int = MOST) -> Moves | None:
    """Compose the moves across all spans; None where that takes more than so many products.

    Raises:
        EmptyLanguageError: no completion is accepted.
    """
    live_ptr, live = potential.live
    require_path(live)
    # Each live state in front of the end begins or halves a span of two: half as many products are certain.
    if live_ptr[-2] > 2 * most + 1:
        return None
    found = products.compose(potential.automaton.edges.out, live_ptr, live, *potential.labels, most)
    return Moves(*found) if found[0].size else None


def draw(
    potential: Potential, moves: Moves, seed: int, step: int, top: int, forced: np.ndarray | None = None
) -> Midpoints:
    """Draw all states from the moves of the same potential; arguments and result as of `midpoint.draw`."""
    boundaries = potential.length + 1
    if forced is None:
        forced = np.full(boundaries, -1, np.int32)
    u = noise.uniforms(seed, step, noise.STATE, 0, boundaries)
    return Midpoints(
        *products.draw(*potential.live, moves.ptr, moves.place, moves.mass, moves.exponent, u, forced, top)
    )
