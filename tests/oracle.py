"""Every quantity of a step by listing all sequences of a small case; knows nothing of classes, edges or messages."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from engine.token_automaton import TokenAutomaton


@dataclass(frozen=True)
class Oracle:
    """All accepted completions of a canvas with their log probability under the mean field."""

    sequences: list[tuple[int, ...]]
    log_weights: np.ndarray
    log_p: np.ndarray

    @property
    def log_partition(self) -> float:
        return float(np.logaddexp.reduce(self.log_weights)) if self.sequences else -np.inf

    @property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.log_weights - self.log_partition)

    def log_marginals(self) -> np.ndarray:
        """float64 `[length vocab]`: log posterior of each token at each position."""
        out = np.full(self.log_p.shape, -np.inf)
        for x, w in zip(self.sequences, self.log_weights - self.log_partition, strict=True):
            for i, v in enumerate(x):
                out[i, v] = np.logaddexp(out[i, v], w)
        return out

    def states(self, automaton: TokenAutomaton) -> np.ndarray:
        """float64 `[boundaries states]`: posterior of the states."""
        out = np.zeros((self.log_p.shape[0] + 1, automaton.states))
        for x, p in zip(self.sequences, self.probabilities, strict=True):
            out[np.arange(len(x) + 1), automaton.path(x)] += p
        return out


def enumerate_all(logits: np.ndarray, canvas: np.ndarray, mask_id: int, automaton: TokenAutomaton) -> Oracle:
    """List the accepted sequences that agree with the committed positions of the canvas."""
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    choices = []
    for i, v in enumerate(canvas.tolist()):
        if v == mask_id:
            choices.append([int(w) for w in np.flatnonzero(log_p[i] > -np.inf)])
        else:
            log_p[i] = -np.inf
            log_p[i, v] = 0.0
            choices.append([v])
    accepted = [x for x in itertools.product(*choices) if automaton.accepts(x)]
    weights = np.asarray([sum(log_p[i, v] for i, v in enumerate(x)) for x in accepted])
    return Oracle(accepted, weights, log_p)


def random_automaton(rng: np.random.Generator, states: int, vocab: int, density: float) -> TokenAutomaton:
    """Draw a deterministic automaton, classes found from its columns; some tokens are dead, some states too."""
    move = np.where(rng.random((states, vocab)) < density, rng.integers(0, states, (states, vocab)), -1)
    columns: dict[bytes, int] = {np.full(states, -1).tobytes(): 0}
    kept = [np.full(states, -1)]
    token_class = np.zeros(vocab, np.int32)
    for v in range(vocab):
        token_class[v] = columns.setdefault(move[:, v].tobytes(), len(kept))
        if token_class[v] == len(kept):
            kept.append(move[:, v])
    sources = [np.flatnonzero(column >= 0).astype(np.int32) for column in kept]
    accepting = rng.random(states) < 0.5
    return TokenAutomaton(
        start=int(rng.integers(states)),
        end=-1,
        accepting=accepting,
        token_class=token_class,
        class_ptr=np.cumsum([0, *(s.size for s in sources)], dtype=np.int32),
        class_source=np.concatenate(sources),
        class_target=np.concatenate([c[s] for c, s in zip(kept, sources, strict=True)]).astype(np.int32),
        state_spans=((),) * states,
    )


def random_logits(rng: np.random.Generator, length: int, vocab: int, peak: float) -> np.ndarray:
    """Draw logits; `peak` is their spread in nats (700 puts probabilities near 1e-300), some are impossible."""
    logits = rng.random((length, vocab)) * peak
    logits[rng.random((length, vocab)) < 0.1] = -np.inf
    logits[:, 0] = np.where(np.isneginf(logits).all(axis=1), 0.0, logits[:, 0])
    return logits


def random_canvas(rng: np.random.Generator, length: int, vocab: int, committed: float) -> np.ndarray:
    """Draw a canvas whose mask id is `vocab`."""
    known = rng.random(length) < committed
    return np.where(known, rng.integers(0, vocab, length), vocab).astype(np.int32)
