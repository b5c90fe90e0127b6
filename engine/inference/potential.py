"""A mean field seen through the automaton's token classes: what every algorithm of this package starts from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import ModelError
from engine.inference import masses, sweeps
from engine.inference.filtering import keep_top
from engine.inference.wide import NEVER

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton


@dataclass(frozen=True, eq=False)
class Potential:
    """The factors of the chain at one step: point masses where committed, the tempered mean field where masked.

    Attributes:
        canvas: int32 `[length]`.
        masked: int64 `[rows]`, the masked positions.
        logits: `[length vocab]`, the model's; filtered tokens have `-inf`. Read at masked positions only.
        scale: of the type of `logits`; `scale · (logits − largest) − log_total` is the log mean field.
        largest: float64 `[rows]`, the largest logit.
        log_total: float64 `[rows]`.
        mass, exponent: numbers `[length classes]` (see `wide`), `Σ p_i(v)` over each class.
        log_class_mass: float64 `[length classes]`, their logarithm; `-inf` where a class has no mass.
        mean_log: float64 `[length classes]`, mean of `log p_i` over a class under `p_i`.
        best: float64 `[length classes]`, log of the largest probability in each class, relative to the largest of all.
        entropy: float64 `[length]`, of the mean field, nats.
        block_peak, block_weight: `[rows blocks]`, what `masses.class_masses` notes of the blocks of tokens.
        automaton: whose classes are meant.
    """

    canvas: np.ndarray
    masked: np.ndarray
    logits: np.ndarray
    scale: np.floating
    largest: np.ndarray
    log_total: np.ndarray
    mass: np.ndarray
    exponent: np.ndarray
    log_class_mass: np.ndarray
    mean_log: np.ndarray
    best: np.ndarray
    entropy: np.ndarray
    block_peak: np.ndarray
    block_weight: np.ndarray
    automaton: TokenAutomaton

    @property
    def length(self) -> int:
        """Number of positions."""
        return int(self.canvas.size)

    @cached_property
    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers `[length labels]`: the mass of each edge label; weights of edges are gathered from them."""
        edges = self.automaton.edges
        return sweeps.label_masses(self.mass, self.exponent, edges.label_ptr, edges.label_class)

    @cached_property
    def completions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`(live_ptr, live, m, k)`: the states that accepted completions pass, and the mass of all from each."""
        automaton, edges = self.automaton, self.automaton.edges
        return sweeps.completions(edges.out, edges.into, automaton.start, automaton.accepting, *self.labels)

    @property
    def live(self) -> tuple[np.ndarray, np.ndarray]:
        """`(live_ptr, live)`: the states that an accepted completion passes at each boundary."""
        return self.completions[:2]

    def committed(self, where: np.ndarray, tokens: np.ndarray) -> Potential:
        """Return the factors with point masses on `tokens` `[length]` at the positions `where`, bool `[length]`.

        Only what messages need is changed, the masses of classes.
        """
        mass, exponent = self.mass.copy(), self.exponent.copy()
        mass[where], exponent[where] = 0.0, NEVER
        known = np.flatnonzero(where & (tokens < self.automaton.token_class.size))
        mass[known, self.automaton.token_class[tokens[known]]] = 1.0
        exponent[known, self.automaton.token_class[tokens[known]]] = 0
        return replace(self, canvas=np.where(where, tokens, self.canvas), mass=mass, exponent=exponent)

    def all_log_mean_field(self) -> np.ndarray:
        """Return float32 `[rows vocab]`: the whole log mean field of the masked positions."""
        offset = self.largest * float(self.scale) + self.log_total
        with np.errstate(over="ignore"):  # models write the least float for what is impossible
            scaled = self.logits[self.masked] * self.scale
            return np.asarray(scaled - offset.astype(scaled.dtype)[:, None], np.float32)


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
        logits: float `[length vocab]`, unnormalised. `-inf` is impossible, and so is what is below the row's largest by
            more than 1e6 nats. float64 keeps 1e-9, float32 the precision it has.
        canvas: int32 `[length]`.
        mask_id: the id that stands on masked positions.
        automaton: whose classes are summed over.
        temperature: the mean field is `softmax(logits / temperature)`; positive.
        top_p: filter of the tempered mean field, see `filtering`; None keeps all.
        top_k: another.

    Raises:
        ModelError: a row has no finite maximum.
    """
    if top_p is not None or top_k is not None:
        logits, temperature = _filtered(logits, canvas == mask_id, temperature, top_p, top_k), 1.0
    return potentials(logits, canvas, mask_id, automaton, (temperature,))[0]


def potentials(
    logits: np.ndarray, canvas: np.ndarray, mask_id: int, automaton: TokenAutomaton, temperatures: tuple[float, ...]
) -> list[Potential]:
    """Do what `potential` does for several temperatures, in one pass over the logits.

    Raises:
        ModelError: a row has no finite maximum, or the logits are of another canvas or vocabulary.
    """
    logits = np.ascontiguousarray(logits)
    expected = (canvas.size, automaton.token_class.size)
    if logits.shape != expected:  # compiled loops would read past their end
        raise ModelError(
            f"The model's logits have the shape {logits.shape}, and canvas and vocabulary {expected}.",
            "Use the model that the run was made for.",
        )
    scales = np.array([1.0 / temperature for temperature in temperatures], logits.dtype)
    unsound, masked, of_classes, (entropy, log_total, largest), (weight, peak) = masses.class_masses(
        logits, canvas, mask_id, scales, automaton.token_class, automaton.edges.blocks
    )
    if unsound:
        bad = int(masked[np.flatnonzero(~np.isfinite(largest))[0]])
        raise ModelError(
            f"The model's logits at position {bad} have no finite maximum.",
            "Check the model's weights and numeric type; a mean field gives some token a probability in every row.",
        )
    mass, exponent, log_mass, mean_log, best = of_classes
    return [
        Potential(
            *(canvas, masked, logits, scale, largest, log_total[n]),
            *(mass[n], exponent[n], log_mass[n], mean_log[n], best[n], entropy[n]),
            *(peak, weight[n], automaton),
        )
        for n, scale in enumerate(scales)
    ]


def _filtered(
    logits: np.ndarray, masked: np.ndarray, temperature: float, top_p: float | None, top_k: int | None
) -> np.ndarray:
    """Return tempered logits, `-inf` where the filters keep nothing."""
    with np.errstate(over="ignore"):  # models write the least float for what is impossible
        rows = logits[masked] / logits.dtype.type(temperature)
    if np.isfinite(rows.max(axis=1)).all():
        keep_top(rows, top_p, top_k)
    filtered = logits.copy()
    filtered[masked] = rows
    return filtered
