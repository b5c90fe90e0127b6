"""Is a step's sampler exact? Many draws held against the exact marginals of the posterior.

Under the posterior the number of draws that have a given token at a given position is binomial. Each such cell gets
the two-sided exact binomial band of level `FALSE_ALARM / cells`, so that an exact sampler leaves any band at all with
probability at most `FALSE_ALARM`, whatever the dependence between cells (Bonferroni). A draw that the constraint
refuses decides by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import ConfigError
from engine.inference import chain, draws, independent, lookahead, midpoint
from engine.inference.potential import potential

if TYPE_CHECKING:
    from engine.inference.chain import Posterior
    from engine.inference.potential import Potential
    from engine.trace import Header, StepRecord

FALSE_ALARM = 1e-3
"""Largest probability with which an exact sampler is called inexact."""
TOKENS = 8
"""Tokens of each position that have a cell of their own; all others share one."""
SAMPLERS = ("chain", "midpoint", "tree", "independent", "local", "lookahead")
"""What can be measured; `chain` draws all at once, the others one at a time."""


@dataclass(frozen=True, eq=False)
class Exactness:
    """Frequencies of draws beside the posterior's probabilities, cell by cell.

    Attributes:
        sampler: that was measured.
        draws: how many.
        accepted: how many of them the constraint accepts; fewer than `draws` is the end of exactness.
        position: int32 `[cells]`.
        token_id: int32 `[cells]`; -1 for all tokens of the position without a cell of their own.
        expected: float64 `[cells]`, posterior probability.
        observed: float64 `[cells]`, share of the draws.
        low: float64 `[cells]`, lower end of the band.
        high: float64 `[cells]`, upper end.
        false_alarm: largest probability that an exact sampler leaves some band.
        by_paths: whether both count a sequence once for each of its paths, as a nondeterministic automaton does.
    """

    sampler: str
    draws: int
    accepted: int
    position: np.ndarray
    token_id: np.ndarray
    expected: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    false_alarm: float
    by_paths: bool

    @property
    def outside(self) -> np.ndarray:
        """Which cells have a frequency outside of their band, bool `[cells]`."""
        return (self.observed < self.low) | (self.observed > self.high)

    @property
    def exact(self) -> bool:
        """Whether nothing speaks against exactness: all accepted, and every frequency in its band."""
        return self.accepted == self.draws and not bool(self.outside.any())


def of_step(header: Header, record: StepRecord, sampler: str = "chain", count: int = 1_000, seed: int = 0) -> Exactness:
    """Draw a recorded step again, many times, and compare with its exact marginals.

    Args:
        header: of the run.
        record: of the step, with its mean field.
        sampler: one of `SAMPLERS`.
        count: of draws.
        seed: of their noise, not the run's.

    Raises:
        ConfigError: the sampler is unknown, the step has no mean field, or nothing is accepted.
    """
    if sampler not in SAMPLERS:
        raise ConfigError(f"There is no sampler {sampler!r} to measure.", f"Choose one of {', '.join(SAMPLERS)}.")
    if record.log_mean_field is None:
        raise ConfigError("The trace does not keep this step's mean field.", "Record a shorter run, which keeps it.")
    config, mask_id = header.config, header.vocabulary.mask_id
    logits = np.zeros((record.canvas.size, record.log_mean_field.shape[1]), np.float32)
    logits[record.canvas == mask_id] = record.log_mean_field
    filters = (None, None) if record.filter_lifted else (config.top_p, config.top_k)
    found = potential(logits, record.canvas, mask_id, header.automaton, config.temperature or 1.0, *filters)
    posterior = chain.posterior(found)
    if not posterior.possible:
        raise ConfigError("Nothing is accepted at this step any more.", "Measure an earlier step.")
    return measured(found, posterior, sample(sampler, found, posterior, count, seed), sampler)


def sample(sampler: str, potential: Potential, posterior: Posterior, count: int, seed: int) -> np.ndarray:
    """Return int32 `[draws length]`: independent draws of whole sequences by one of `SAMPLERS`."""
    if sampler == "chain":
        return draws.tokens(potential, draws.draw(potential, posterior, seed, 0, count))
    if sampler == "lookahead":
        return np.stack([lookahead.draw(potential, seed, n, noisy=True)[0] for n in range(count)])
    if sampler in ("independent", "local"):
        return np.stack([_one_by_one(potential, posterior, sampler == "local", seed, n) for n in range(count)])
    if sampler == "midpoint":
        paths = [midpoint.draw(potential, posterior, seed, n, 1).path for n in range(count)]
    else:
        # torch takes seconds to import; only the tree needs it here.
        from engine.inference import tree

        paths = [tree.draw_where_it_pays(potential, posterior, seed, n, 1).path for n in range(count)]
    return np.stack([chain.draw_tokens(potential, path, seed, n) for n, path in enumerate(paths)])


def measured(potential: Potential, posterior: Posterior, drawn: np.ndarray, sampler: str) -> Exactness:
    """Compare draws with the exact marginals.

    Args:
        potential: the factors.
        posterior: of the same potential.
        drawn: int32 `[draws length]`, independent draws of whole sequences.
        sampler: its name.
    """
    from scipy.stats import binom

    automaton, rows = potential.automaton, potential.masked
    ids, _, log_q = chain.top_tokens(potential, posterior, TOKENS)
    ids, q = ids[rows, 1], np.exp(log_q[rows, 1].astype(np.float64))
    seen = (drawn[:, rows, None] == ids[None]).mean(axis=0)
    ids = np.concatenate([ids, np.full((rows.size, 1), -1)], axis=1)
    expected = np.clip(np.concatenate([q, 1 - q.sum(axis=1, keepdims=True)], axis=1), 0.0, 1.0)
    observed = np.concatenate([seen, 1 - seen.sum(axis=1, keepdims=True)], axis=1)
    # What is left of a position is known up to the rounding of float32; its band allows for that.
    assumed = np.where(ids >= 0, expected, np.maximum(expected, 1e-6))
    used = (ids >= 0) | (np.arange(ids.shape[1]) == ids.shape[1] - 1)
    level, count = FALSE_ALARM / max(int(used.sum()), 1), len(drawn)
    low, high = binom.ppf(level / 2, count, assumed), binom.ppf(1 - level / 2, count, assumed)
    return Exactness(
        sampler=sampler,
        draws=count,
        accepted=sum(automaton.accepts(x) for x in drawn.tolist()),
        position=np.repeat(rows, ids.shape[1]).reshape(ids.shape)[used].astype(np.int32),
        token_id=ids[used].astype(np.int32),
        expected=expected[used],
        observed=np.round(observed[used] * count) / count,
        low=np.maximum(low, 0)[used] / count,
        high=np.maximum(high, 0)[used] / count,
        false_alarm=FALSE_ALARM,
        by_paths=not automaton.deterministic,
    )


def _one_by_one(potential: Potential, posterior: Posterior, local: bool, seed: int, step: int) -> np.ndarray:
    """Draw every masked position by itself, from `p`, or for `local` from `p` where a completion exists."""
    allowed = chain.log_lift(potential, posterior) > -np.inf if local else None
    return independent.draw(potential, allowed, True, seed, step)[0]
