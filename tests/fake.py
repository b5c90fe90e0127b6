"""A tiny denoiser whose answer depends on the whole canvas, with random weights: what the loop's tests decode."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.vocabulary import Vocabulary


class Fake:
    """Logits are a fixed random function of the canvas and the position.

    Attributes:
        mask_logit: the logit of the mask id, `-inf` for a model that never draws it; None for a random one.
    """

    name = "fake"

    def __init__(
        self,
        vocabulary: Vocabulary,
        seed: int = 0,
        length: int = 64,
        scale: float = 2.0,
        dtype: type = np.float32,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.vocabulary = vocabulary
        self.facts: dict[str, Any] = {"name": self.name}
        width = 8
        self._embedding = rng.normal(size=(max(vocabulary.size, vocabulary.mask_id + 1), width))
        self._position = rng.normal(size=(length, width))
        self._head = rng.normal(size=(width, vocabulary.size)) * scale
        self._dtype = dtype

    def encode_prompt(self, prompt: str) -> np.ndarray:
        return np.frombuffer(prompt.encode(), np.uint8).astype(np.int32) % self.vocabulary.size

    def encode(self, text: str) -> np.ndarray:
        written = self.vocabulary.token_bytes
        return np.asarray([written.index(c.encode()) for c in text], np.int32)

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        seen = self._embedding[np.concatenate([prompt_ids, canvas])]
        hidden = np.tanh(self._embedding[canvas] + seen.mean(axis=0) + self._position[: canvas.size])
        return (hidden @ self._head).astype(self._dtype)

    def batch_logits(self, prompts: list[np.ndarray], canvases: list[np.ndarray], step: int) -> list[np.ndarray]:
        return [self.logits(prompt_ids, canvas, step) for prompt_ids, canvas in zip(prompts, canvases, strict=True)]


def characters(text: str, eos: bool = True) -> Vocabulary:
    """One token a character, then EOS if asked for, then a mask inside the vocabulary."""
    written: list[bytes | None] = [c.encode() for c in text]
    eos_ids = (len(written),) if eos else ()
    written += [None] * (len(eos_ids) + 1)
    return Vocabulary(tuple(written), eos_ids, len(written) - 1)
