"""A mean field seen through the automaton's token classes: what every algorithm of this package starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import ModelError
from engine.inference import masses, sweeps
from engine.inference.filtering import keep_top
from engine.inference.wide import BASE_LOG

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
        mass, exponent: numbers `[rows classes]` (see `wide`), `Σ p_i(v)` over each class.
        log_mass: float64 `[rows classes]`, their logarithm; `-inf` where a class has no mass.
        mean_log: float64 `[rows classes]`, mean of `log p_i` over a class under `p_i`.
        labels: numbers `[length labels]`, the mass of each edge label; weights of edges are gathered from them.
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
    log_mass: np.ndarray
    mean_log: np.ndarray
    labels: tuple[np.ndarray, np.ndarray]
    entropy: np.ndarray
    block_peak: np.ndarray
    block_weight: np.ndarray
    automaton: TokenAutomaton

    @property
    def length(self) -> int:
        """Number of positions."""
        return int(self.canvas.size)

    @cached_property
    def completions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`(live_ptr, live, m, k)`: the states that accepted completions pass, and the mass of all from each."""
        automaton, edges = self.automaton, self.automaton.edges
        return sweeps.completions(edges.out, edges.into, automaton.start, automaton.accepting, *self.labels)

    @property
    def live(self) -> tuple[np.ndarray, np.ndarray]:
        """`(live_ptr, live)`: the states that an accepted completion passes at each boundary."""
        return self.completions[:2]

    @property
    def possible(self) -> bool:
        """Whether any completion is accepted."""
        return self.live[1].size > 0

    @property
    def log_partition(self) -> float:
        """Log probability, in nats, that an independent draw is accepted; `-inf` if none can be."""
        _, _, m, k = self.completions
        return math.log(m[0]) + int(k[0]) * BASE_LOG if m.size else -math.inf

    def committed(self, where: np.ndarray, tokens: np.ndarray) -> Potential:
        """Return the factors with point masses on `tokens` `[length]` at the positions `where`, bool `[length]`.

        Only what messages need is changed, the masses of labels.
        """
        edges, (mass, exponent) = self.automaton.edges, (numbers.copy() for numbers in self.labels)
        for i in np.flatnonzero(where):
            of_edges = self.automaton.token_class, (edges.label_ptr, edges.label_class)
            masses.point_mass(tokens[i], *of_edges, mass[i], exponent[i])
        return replace(self, canvas=np.where(where, tokens, self.canvas), labels=(mass, exponent))

    def everywhere(self, rows: np.ndarray, dtype: type[np.floating] = np.float64) -> np.ndarray:
        """Return `[length classes]`: `rows` `[rows classes]` at masked positions, else the log of a point mass."""
        out = np.empty((self.length, rows.shape[1]), dtype)
        masses.everywhere(rows, self.masked, self.canvas, self.automaton.token_class, out)
        return out

    @property
    def log_class_mass(self) -> np.ndarray:
        """float64 `[length classes]`: the logarithm of the mass of each class; `-inf` where it has none."""
        return self.everywhere(self.log_mass)

    @property
    def best(self) -> np.ndarray:
        """float64 `[length classes]`: log of the largest probability in each class relative to that of all."""
        blocks = self.automaton.edges.blocks
        return self.everywhere(masses.class_best(self.scale, self.largest, self.block_peak, blocks.class_blocks))

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
    edges = automaton.edges
    unsound, masked, of_classes, (label_mass, label_exponent), (entropy, log_total, largest), (weight, peak) = (
        masses.class_masses(
            *(logits, canvas, mask_id, scales, automaton.token_class),
            *(edges.blocks, (edges.label_ptr, edges.label_class)),
        )
    )
    if unsound:
        bad = int(masked[np.flatnonzero(~np.isfinite(largest))[0]])
        raise ModelError(
            f"The model's logits at position {bad} have no finite maximum.",
            "Check the model's weights and numeric type; a mean field gives some token a probability in every row.",
        )
    mass, exponent, log_mass, mean_log = of_classes
    return [
        Potential(
            *(canvas, masked, logits, scale, largest, log_total[n]),
            *(mass[n], exponent[n], log_mass[n], mean_log[n], (label_mass[n], label_exponent[n]), entropy[n]),
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
