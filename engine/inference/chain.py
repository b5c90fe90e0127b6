"""Messages, marginals, draws and the best sequence in `length` sequential steps over live states (Rabiner 1989)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import noise
from engine.errors import EmptyLanguageError
from engine.inference import kernels, sweeps, tokens
from engine.inference.wide import BASE_LOG, to_log

if TYPE_CHECKING:
    from engine.inference.potential import Potential


@dataclass(frozen=True, eq=False)
class Messages:
    """Forward and backward messages of the live states at every boundary.

    Attributes:
        live_ptr, live: the live states of boundary `i` are `live[live_ptr[i]:live_ptr[i + 1]]`.
        forward, forward_exponent: numbers aligned with `live`, `Σ Π p` over all ways from the start.
        backward, backward_exponent: numbers aligned with `live`, `Σ Π p` over all ways to acceptance.
        log_partition: log probability, in nats, that an independent draw is accepted; `-inf` if none can be.
    """

    live_ptr: np.ndarray
    live: np.ndarray
    forward: np.ndarray
    forward_exponent: np.ndarray
    backward: np.ndarray
    backward_exponent: np.ndarray
    log_partition: float

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


@dataclass(frozen=True, eq=False)
class Marginals:
    """The posterior at every position and boundary.

    Attributes:
        log_lift: float64 `[length classes]`, `log q_i(v) − log p_i(v)` for the tokens of a class; `-inf` where
            forbidden and where the class has no mass.
        entropy: float64 `[length]`, of the posterior, nats.
        kl: float64 `[length]`, `KL(q_i ‖ p_i)`, nats; infinite where nothing is accepted.
        forbidden_mass: float64 `[length]`, mass under `p_i` that no accepted completion can use.
    """

    log_lift: np.ndarray
    entropy: np.ndarray
    kl: np.ndarray
    forbidden_mass: np.ndarray


def messages(potential: Potential) -> Messages:
    """Run forward-backward over the states that reachability leaves."""
    live_ptr, live, b, bk = potential.completions
    f, fk = sweeps.forward(potential.automaton.edges.out, live_ptr, live, *potential.labels)
    return Messages(live_ptr, live, f, fk, b, bk, _log_partition(potential))


def log_partition_after(
    potential: Potential, messages: Messages, marginals: Marginals, committed: np.ndarray, tokens: np.ndarray
) -> float:
    """Return the log partition of the same mean field once more tokens stand.

    A token that stands alone is `lift` times as probable given acceptance as without, so it changes `Z` by its lift
    (`method.md`, section 7). Several need another backward pass.

    Args:
        potential: of the canvas before.
        messages: of the same potential.
        marginals: likewise.
        committed: bool `[length]`, where they stand.
        tokens: int32 `[length]`.
    """
    where = np.flatnonzero(committed)
    if not where.size:
        return messages.log_partition
    token_class, first = potential.automaton.token_class, int(where[0])
    if where.size == 1 and tokens[first] < token_class.size:
        c = token_class[tokens[first]]
        # What had no mass may stand all the same, and its lift is not defined.
        if potential.mass[first, c] > 0.0:
            return messages.log_partition + float(marginals.log_lift[first, c])
    return _log_partition(potential.committed(committed, tokens))


def _log_partition(potential: Potential) -> float:
    _, _, m, k = potential.completions
    return math.log(m[0]) + int(k[0]) * BASE_LOG if m.size else -math.inf


def marginals(potential: Potential, messages: Messages) -> Marginals:
    """Return the posterior of the tokens, by class (`method.md`, section 2)."""
    edges, shape = potential.automaton.edges, potential.mass.shape
    if not messages.possible:
        return Marginals(np.full(shape, -np.inf), np.zeros(shape[0]), np.full(shape[0], np.inf), np.ones(shape[0]))
    log_lift, entropy, kl, forbidden = sweeps.lifts(
        edges.out,
        (edges.label_ptr, edges.label_class),
        messages.live_ptr,
        messages.live,
        messages.forward,
        messages.forward_exponent,
        messages.backward,
        messages.backward_exponent,
        potential.masked,
        potential.labels[0],
        potential.log_class_mass,
        potential.mean_log,
        messages.log_partition,
    )
    # Neither is negative; rounding may leave a last digit on the wrong side of zero.
    return Marginals(log_lift, np.maximum(entropy, 0.0), np.maximum(kl, 0.0), forbidden)


def draw(potential: Potential, messages: Messages, seed: int, step: int) -> np.ndarray:
    """Draw states from left to right: int32 `[boundaries]`.

    Raises:
        EmptyLanguageError: no completion is accepted.
    """
    require_path(messages.live)
    edges = potential.automaton.edges
    return kernels.draw_path(
        *edges.out,
        messages.live_ptr,
        messages.live,
        messages.backward,
        messages.backward_exponent,
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
    by_label = kernels.label_best(potential.best, edges.label_ptr, edges.label_class)
    path = kernels.best_path(*edges.out, *potential.live, by_label)
    chosen = tokens.best_tokens(
        edges.out,
        (edges.label_ptr, edges.label_class),
        path,
        potential.best,
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


def top_tokens(potential: Potential, marginals: Marginals, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `(ids, log p, log q)` of the shown tokens as in `StepRecord`; a committed position shows its own."""
    return tokens.top_tokens(
        potential.logits,
        potential.canvas,
        potential.masked,
        potential.scale,
        potential.largest,
        potential.log_total,
        potential.block_peak,
        marginals.log_lift,
        potential.automaton.token_class,
        potential.automaton.edges.blocks,
        top,
    )


def probabilities(potential: Potential, token_ids: np.ndarray, log_lift: np.ndarray | None = None) -> np.ndarray:
    """Return float64 `[length]`: of one token a position under the mean field, or lifted to the posterior."""
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


def top_states(potential: Potential, messages: Messages, top: int) -> tuple[np.ndarray, ...]:
    """Return `(state_ids, state_probability, live bits)` of every boundary as in `StepRecord`."""
    states = potential.automaton.states
    if not messages.possible:
        shape = (potential.length + 1, top)
        bits = np.zeros((shape[0], (states + 7) // 8), np.uint8)
        return np.full(shape, -1, np.int32), np.zeros(shape, np.float32), bits
    return kernels.state_posterior(
        messages.live_ptr,
        messages.live,
        messages.forward,
        messages.forward_exponent,
        messages.backward,
        messages.backward_exponent,
        states,
        top,
    )
