"""One cell of the trellis in numbers: both messages of a state at a boundary, and the terms that each adds up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.diagnosis.beliefs import Beliefs


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a message: of each edge its weight times the message at its other end, the largest first.

    Attributes:
        edge: int `[terms]`, numbers of edges of the automaton.
        state: int `[terms]`, the state at the other end.
        log_weight: float64 `[terms]`, mass of the mean field on the tokens that take the edge, nats.
        log_message: float64 `[terms]`, the message at the other end, nats.
    """

    edge: np.ndarray
    state: np.ndarray
    log_weight: np.ndarray
    log_message: np.ndarray

    @property
    def log_term(self) -> np.ndarray:
        """float64 `[terms]`: the products, nats."""
        return np.asarray(self.log_weight + self.log_message)


@dataclass(frozen=True, eq=False)
class Cell:
    """A state at a boundary.

    Attributes:
        log_forward: log mass of all ways from the start to here, the sum of `into`; 0 nats for the start itself.
        log_backward: log mass of all ways from here to acceptance, the sum of `out`; 0 nats at the end of the canvas.
        log_partition: of the step, nats.
        into: terms of the edges that end here, those of them that have any mass; none at boundary 0.
        out: terms of the edges that begin here; none at the last boundary.
    """

    log_forward: float
    log_backward: float
    log_partition: float
    into: Terms
    out: Terms

    @property
    def posterior(self) -> float:
        """Probability that an accepted sequence passes here: `α β / Z`; 0 where nothing is accepted."""
        if self.log_partition == -np.inf:
            return 0.0
        return float(np.exp(self.log_forward + self.log_backward - self.log_partition))


def of_state(believed: Beliefs, boundary: int, state: int) -> Cell:
    """Take the messages at a boundary apart into what each edge adds to them.

    Args:
        believed: of a step.
        boundary: 0 … length.
        state: of the automaton.
    """
    edges = believed.automaton.edges
    forward, backward = believed.fronts
    source = np.repeat(np.arange(believed.automaton.states), np.diff(edges.ptr))
    entering = np.flatnonzero(edges.target == state) if boundary > 0 else np.zeros(0, np.intp)
    last = believed.log_class_mass.shape[0]
    leaving = np.arange(edges.ptr[state], edges.ptr[state + 1]) if boundary < last else np.zeros(0, np.intp)
    into = _terms(believed, boundary - 1, entering, source[entering], forward[max(boundary - 1, 0)])
    out = _terms(believed, min(boundary, last - 1), leaving, edges.target[leaving], backward[min(boundary + 1, last)])
    found = float(forward[boundary, state]), float(backward[boundary, state])
    return Cell(*found, believed.log_partition, into, out)


def _terms(believed: Beliefs, position: int, edge: np.ndarray, state: np.ndarray, message: np.ndarray) -> Terms:
    """Return the terms of edges at a position, without those that are zero."""
    weight = believed.log_label_mass[position, believed.automaton.edges.label[edge]]
    log_message = message[state]
    term = weight + log_message
    kept = np.flatnonzero(term > -np.inf)
    kept = kept[np.argsort(-term[kept], kind="stable")]
    return Terms(edge[kept], state[kept].astype(np.int64), weight[kept], log_message[kept])
