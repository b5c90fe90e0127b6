"""A mean field seen through the automaton's token classes: what every algorithm of this package starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import ModelError
from engine.inference import kernels
from engine.inference.filtering import keep_top

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton

LEAST_WEIGHT = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-280}
"""Below this a class's sum of weights, relative to its row's largest, has lost digits to underflow."""


@dataclass(frozen=True, eq=False)
class Potential:
    """The factors of the chain at one step: point masses where committed, the tempered mean field where masked.

    Attributes:
        canvas: int32 `[length]`.
        masked: int64 `[rows]`, the masked positions.
        shifted: `[rows vocab]`, tempered logits minus their row's maximum.
        weights: `[rows vocab]`, their exponentials.
        best: float64 `[rows classes]`, the largest entry of `shifted` in each class.
        log_total: float64 `[rows]`; `shifted − log_total` is the log mean field.
        mass, exponent: numbers `[length classes]` (see `kernels`), `Σ p_i(v)` over each class.
        mean_log: float64 `[length classes]`, mean of `log p_i` over a class under `p_i`.
        automaton: whose classes are meant.
    """

    canvas: np.ndarray
    masked: np.ndarray
    shifted: np.ndarray
    weights: np.ndarray
    best: np.ndarray
    log_total: np.ndarray
    mass: np.ndarray
    exponent: np.ndarray
    mean_log: np.ndarray
    automaton: TokenAutomaton

    @property
    def length(self) -> int:
        """Number of positions."""
        return int(self.canvas.size)

    @cached_property
    def log_class_mass(self) -> np.ndarray:
        """float64 `[length classes]`; `-inf` where a class has no mass."""
        return kernels.to_log(self.mass, self.exponent)

    @cached_property
    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers `[length labels]`: the mass of each edge label; weights of edges are gathered from them."""
        edges = self.automaton.edges
        return kernels.label_masses(self.mass, self.exponent, edges.label_ptr, edges.label_class)

    @cached_property
    def live(self) -> tuple[np.ndarray, np.ndarray]:
        """`(live_ptr, live)`: the states that an accepted completion passes at each boundary, by reachability."""
        edges, automaton = self.automaton.edges, self.automaton
        return kernels.live_states(
            edges.ptr,
            edges.target,
            edges.label,
            automaton.start,
            automaton.accepting,
            self.labels[0] > 0,
        )

    @property
    def entropy(self) -> np.ndarray:
        """float64 `[length]`: entropy of the mean field, nats."""
        return -np.einsum("ik,ik->i", np.exp(self.log_class_mass), self.mean_log)

    @property
    def least_weight(self) -> float:
        """Sums of weights below this have lost digits to underflow."""
        return LEAST_WEIGHT[self.weights.dtype]

    def all_log_mean_field(self) -> np.ndarray:
        """Return float32 `[rows vocab]`: the whole log mean field of the masked positions."""
        shifted = self.shifted.astype(np.float32, copy=False)
        return shifted - self.log_total.astype(np.float32)[:, None]

    def log_mean_field(self, token_ids: np.ndarray) -> np.ndarray:
        """Return float64 `[length]`: `log p_i(token_ids[i])`; 0 at committed positions."""
        out = np.zeros(self.length)
        rows = np.arange(self.masked.size)
        chosen = np.asarray(self.shifted[rows, token_ids[self.masked]], np.float64)
        out[self.masked] = chosen - self.log_total
        return out


def potential(
    logits: np.ndarray,
    canvas: np.ndarray,
    mask_id: int,
    automaton: TokenAutomaton,
    temperature: float = 1.0,
    top_p: float | None = None,
    top_k: int | None = None,
) -> Potential:
    """Sum the mean field over token classes; only masked positions touch the vocabulary.

    Args:
        logits: float `[length vocab]`, unnormalised, `-inf` allowed. float64 keeps 1e-9, float32 the precision it has.
        canvas: int32 `[length]`.
        mask_id: the id that stands on masked positions.
        automaton: whose classes are summed over.
        temperature: the mean field is `softmax(logits / temperature)`; positive.
        top_p: filter of the tempered mean field, see `filtering`; None keeps all.
        top_k: another.

    Raises:
        ModelError: a row has no finite maximum.
    """
    edges = automaton.edges
    masked = np.flatnonzero(canvas == mask_id)
    shifted = logits[masked]
    if temperature != 1.0:
        shifted /= shifted.dtype.type(temperature)
    largest = shifted.max(axis=1, keepdims=True)
    if not np.isfinite(largest).all():
        bad = int(masked[np.flatnonzero(~np.isfinite(largest))[0]])
        raise ModelError(
            f"The model's logits at position {bad} have no finite maximum.",
            "Check the model's weights and numeric type; a mean field gives some token a probability in every row.",
        )
    shifted -= largest
    keep_top(shifted, top_p, top_k)
    weights = np.exp(shifted)
    mass, exponent, mean_log, best, log_total = kernels.class_masses(
        shifted, weights, edges.class_tokens_ptr, edges.class_tokens, LEAST_WEIGHT[shifted.dtype]
    )
    if masked.size < canvas.size:
        mass, exponent, mean_log = _with_committed(canvas, masked, mass, exponent, mean_log, automaton)
    return Potential(canvas, masked, shifted, weights, best, log_total, mass, exponent, mean_log, automaton)


def _with_committed(
    canvas: np.ndarray,
    masked: np.ndarray,
    mass: np.ndarray,
    exponent: np.ndarray,
    mean_log: np.ndarray,
    automaton: TokenAutomaton,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Spread the masked rows over the canvas; every other position is a point mass on its token's class."""
    shape = (canvas.size, automaton.classes)
    full_mass, full_mean = np.zeros(shape), np.zeros(shape)
    full_exponent = np.full(shape, -(2**30), np.int32)
    full_mass[masked], full_exponent[masked], full_mean[masked] = mass, exponent, mean_log
    committed = np.setdiff1d(np.arange(canvas.size), masked, assume_unique=True)
    known = committed[canvas[committed] < automaton.token_class.size]
    classes = automaton.token_class[canvas[known]]
    full_mass[known, classes] = 1.0
    full_exponent[known, classes] = 0
    return full_mass, full_exponent, full_mean
