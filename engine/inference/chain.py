"""Posterior, draws and the best sequence in `length` sequential steps over live states (Rabiner 1989)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.errors import EmptyLanguageError
from engine.inference import kernels, sweeps, tokens
from engine.inference.wide import to_log

if TYPE_CHECKING:
    from engine.inference.potential import Potential


@dataclass(frozen=True, eq=False)
class Posterior:
    """The mean field given that the constraint accepts: messages at every boundary, marginals at every position.

    Attributes:
        live_ptr, live: the live states of boundary `i` are `live[live_ptr[i]:live_ptr[i + 1]]`.
        forward, forward_exponent: numbers aligned with `live`, `Σ Π p` over all ways from the start.
        backward, backward_exponent: numbers aligned with `live`, `Σ Π p` over all ways to acceptance.
        log_partition: log probability, in nats, that an independent draw is accepted; `-inf` if none can be.
        log_lift: float64 `[rows classes]`, `log q_i(v) − log p_i(v)` for the tokens of a class; `-inf` where forbidden
            and where the class has no mass.
        entropy: float64 `[length]`, of the posterior, nats.
        kl: float64 `[length]`, `KL(q_i ‖ p_i)`, nats; infinite where nothing is accepted.
        forbidden_mass: float64 `[length]`, mass under `p_i` that no accepted completion can use.
    """

    live_ptr: np.ndarray
    live: np.ndarray
    forward: np.ndarray
    forward_exponent: np.ndarray
    backward: np.ndarray
    backward_exponent: np.ndarray
    log_partition: float
    log_lift: np.ndarray
    entropy: np.ndarray
    kl: np.ndarray
    forbidden_mass: np.ndarray

    @property
    def possible(self) -> bool:
        """Whether any completion is accepted."""
        return self.live.size > 0

    @property
    def log_forward(self) -> np.ndarray:
        """float64, aligned with `live`."""
        return to_log(self.forward, self.forward_exponent)

    @property
    def log_backward(self) -> np.ndarray:
        """float64, aligned with `live`."""
        return to_log(self.backward, self.backward_exponent)


def posterior(potential: Potential) -> Posterior:
    """Run forward-backward over the states that reachability leaves (`method.md`, section 2)."""
    edges, length = potential.automaton.edges, potential.length
    live_ptr, live, b, bk = potential.completions
    f, fk, log_partition = np.empty(live.size), np.empty(live.size, np.int32), potential.log_partition
    if live.size:
        found = sweeps.posterior(
            *(edges.out, (edges.label_ptr, edges.label_class), live_ptr, live, b, bk, potential.masked),
            *(*potential.labels, potential.log_mass, potential.mean_log, log_partition, f, fk),
        )
    else:
        nothing = np.full_like(potential.log_mass, -np.inf)
        found = nothing, np.zeros(length), np.full(length, np.inf), np.ones(length)
    return Posterior(live_ptr, live, f, fk, b, bk, log_partition, *found)


def log_partition_after(potential: Potential, posterior: Posterior, committed: np.ndarray, tokens: np.ndarray) -> float:
    """Return the log partition of the same mean field once more tokens stand.

    A token that stands alone is `lift` times as probable given acceptance as without, so it changes `Z` by its lift
    (`method.md`, section 7). Several need another backward pass.

    Args:
        potential: of the canvas before.
        posterior: of the same.
        committed: bool `[length]`, where they stand, which was masked.
        tokens: int32 `[length]`.
    """
    where = np.flatnonzero(committed)
    if not where.size:
        return posterior.log_partition
    token_class, first = potential.automaton.token_class, int(where[0])
    if where.size == 1 and tokens[first] < token_class.size:
        c = token_class[tokens[first]]
        row = int(potential.masked.searchsorted(first))
        # What had no mass may stand all the same, and its lift is not defined.
        if potential.mass[row, c] > 0.0:
            return posterior.log_partition + float(posterior.log_lift[row, c])
    return potential.committed(committed, tokens).log_partition


def log_lift(potential: Potential, posterior: Posterior, dtype: type[np.floating] = np.float64) -> np.ndarray:
    """Return `[length classes]`: the log lift of every position, 0 for a token that is committed."""
    if not posterior.possible:
        return np.full((potential.length, potential.automaton.classes), -np.inf, dtype)
    return potential.everywhere(posterior.log_lift, dtype)


def draw(potential: Potential, posterior: Posterior, seed: int, step: int) -> np.ndarray:
    """Draw states from left to right: int32 `[boundaries]`.

    Raises:
        EmptyLanguageError: no completion is accepted.
    """
    require_path(posterior.live)
    edges = potential.automaton.edges
    return kernels.draw_path(
        *edges.out,
        posterior.live_ptr,
        posterior.live,
        posterior.backward,
        posterior.backward_exponent,
        *potential.labels,
        noise.uniforms(seed, step, noise.STATE, 0, potential.length),
    )


def best(potential: Potential) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable accepted sequence: int32 `[length]` tokens and int32 `[boundaries]` states (Viterbi).

    Raises:
        EmptyLanguageError: no completion is accepted.
    """
    require_path(potential.live[1])
    edges = potential.automaton.edges
    best = potential.best
    by_label = kernels.label_best(best, edges.label_ptr, edges.label_class)
    path = kernels.best_path(*edges.out, *potential.live, by_label)
    chosen = tokens.best_tokens(
        edges.out,
        (edges.label_ptr, edges.label_class),
        path,
        best,
        potential.canvas,
        potential.masked,
        potential.logits,
        potential.largest,
        potential.scale,
        edges.blocks,
    )
    return chosen, path


def require_path(live: np.ndarray) -> None:
    """Refuse to choose a path where there is none: compiled loops would read past the end of `live`.

    Args:
        live: the live states of all boundaries.

    Raises:
        EmptyLanguageError: there are none.
    """
    if not live.size:
        raise EmptyLanguageError(
            "No completion of this canvas is both accepted and possible under the model, so none can be drawn.",
            "Give the tokens that the constraint needs a probability above 0, or change the canvas or the constraint.",
        )


def draw_tokens(potential: Potential, path: np.ndarray, seed: int, step: int) -> np.ndarray:
    """Draw every position's token given the states at its two ends: int32 `[length]`, all at once."""
    edges = potential.automaton.edges
    classes, rest = kernels.draw_classes(
        *edges.out,
        edges.label_ptr,
        edges.label_class,
        path,
        potential.masked,
        potential.mass,
        potential.exponent,
        noise.uniforms(seed, step, noise.TOKEN, 0, potential.length),
    )
    return tokens.draw_tokens(
        potential.logits,
        potential.canvas,
        potential.masked,
        potential.scale,
        potential.block_peak,
        potential.block_weight,
        classes,
        rest,
        edges.blocks,
    )


def top_tokens(potential: Potential, posterior: Posterior, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `(ids, log p, log q)` of the shown tokens as in `StepRecord`; a committed position shows its own."""
    return tokens.top_tokens(
        potential.logits,
        potential.canvas,
        potential.masked,
        potential.scale,
        potential.largest,
        potential.log_total,
        potential.block_peak,
        posterior.log_lift,
        posterior.possible,
        potential.automaton.token_class,
        potential.automaton.edges.blocks,
        top,
    )


def probabilities(potential: Potential, token_ids: np.ndarray, log_lift: np.ndarray | None = None) -> np.ndarray:
    """Return float64 `[length]`: of one token a position under the mean field, or lifted; 1 where committed."""
    return tokens.probabilities(
        potential.logits,
        potential.masked,
        potential.scale,
        potential.largest,
        potential.log_total,
        log_lift,
        potential.automaton.token_class,
        token_ids,
    )


def top_states(potential: Potential, posterior: Posterior, top: int) -> tuple[np.ndarray, ...]:
    """Return `(state_ids, state_probability, live bits)` of every boundary as in `StepRecord`."""
    states = potential.automaton.states
    if not posterior.possible:
        shape = (potential.length + 1, top)
        bits = np.zeros((shape[0], (states + 7) // 8), np.uint8)
        return np.full(shape, -1, np.int32), np.zeros(shape, np.float32), bits
    return kernels.state_posterior(
        posterior.live_ptr,
        posterior.live,
        posterior.forward,
        posterior.forward_exponent,
        posterior.backward,
        posterior.backward_exponent,
        states,
        top,
    )
