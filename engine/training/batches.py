"""Batches: examples of like length side by side, each filled to the same length by EOS alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.training import corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokenizers import Tokenizer

    from engine.models.embedded import EmbeddedConfig

CANVASES = (8, 16, 24, 32, 40, 48)
POOL = 640
"""Examples that are sorted by length together."""
TAILS = 0.3
"""Share of answers of which all is hidden from some position on.

A constraint forces what an answer starts with, so that decoding often goes on from a known start; a
start without anything after it is rare among uniformly drawn positions.
"""


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences of a prompt, the separator, an answer and EOS to the end, and what to hide of them.

    Attributes:
        ids: int64 `[batch length]`, before masking.
        masked: bool `[batch length]`, what to predict; at least one a row, none in a prompt.
    """

    ids: np.ndarray
    masked: np.ndarray


def batches(
    tokenizer: Tokenizer,
    config: EmbeddedConfig,
    seed: int,
    pool: int,
    pick_share: float,
    tokens: int,
) -> Iterator[Batch]:
    """Yield the batches of pool number `pool`, in random order; a pure function of its arguments.

    Args:
        tokenizer: the Rust tokenizer.
        config: for the ids of separator and EOS.
        seed: of the corpus and of the masking.
        pool: examples `pool · POOL` to `(pool + 1) · POOL` of the stream.
        pick_share: see `corpus.example`.
        tokens: about how many a batch holds.
    """
    random = np.random.default_rng((seed, pool))
    examples = [corpus.example(seed, pool * POOL + i, pick_share=pick_share) for i in range(POOL)]
    prompts = tokenizer.encode_batch([e.prompt for e in examples], add_special_tokens=False)
    answers = tokenizer.encode_batch([e.answer for e in examples], add_special_tokens=False)
    sep_id, eos_id = config.sep_token_id, config.eos_token_id
    rows: list[tuple[int, list[int]]] = []
    for prompt, answer in zip(prompts, answers, strict=True):
        spare = canvas_length(random, len(answer.ids)) - len(answer.ids)
        ids = [*prompt.ids, sep_id, *answer.ids, *[eos_id] * spare]
        rows.append((len(prompt.ids) + 1, ids))
    rows.sort(key=lambda row: len(row[1]))
    groups: list[list[tuple[int, list[int]]]] = [[]]
    for row in rows:
        if groups[-1] and (len(groups[-1]) + 1) * len(row[1]) > tokens:
            groups.append([])
        groups[-1].append(row)
    for index in random.permutation(len(groups)):
        yield _batch(random, groups[index], eos_id)


def canvas_length(random: np.random.Generator, answer: int) -> int:
    """Draw the canvas of an answer of so many tokens: often snug, else one of `CANVASES`."""
    roomy = [n for n in CANVASES if n > answer]
    if roomy and random.random() < 0.4:
        return int(random.choice(roomy))
    return answer + int(random.integers(0, min(answer, 12) + 1))


def _batch(random: np.random.Generator, rows: list[tuple[int, list[int]]], eos_id: int) -> Batch:
    length = max(len(row) for _, row in rows)
    ids = np.full((len(rows), length), eos_id, np.int64)
    masked = np.zeros(ids.shape, bool)
    for index, (start, row) in enumerate(rows):
        ids[index, : len(row)] = row
        masked[index, start:] = _hidden(random, length - start)
    return Batch(ids, masked)


def _hidden(random: np.random.Generator, length: int) -> np.ndarray:
    """Draw which of an answer's positions are hidden, bool `[length]`."""
    if random.random() < TAILS:
        return np.arange(length) >= random.integers(length)
    # LLaDA's loss (arXiv:2502.09992): first how many are hidden, uniformly, then which.
    hidden = np.zeros(length, bool)
    hidden[random.choice(length, int(random.integers(1, length + 1)), replace=False)] = True
    return hidden
