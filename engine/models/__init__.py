"""The models: anything that gives a canvas a distribution over tokens at every position."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from engine.vocabulary import Vocabulary


class Denoiser(Protocol):
    """A masked diffusion language model.

    Attributes:
        name: as the user would name it.
        vocabulary: what its ids write.
        facts: JSON-able: at least `name`; parameters, numeric type, revision where there are any.
    """

    name: str
    vocabulary: Vocabulary
    facts: dict[str, Any]

    def encode_prompt(self, prompt: str) -> np.ndarray:
        """Return int32 `[prompt_length]`: the prompt in the model's own template."""

    def encode(self, text: str) -> np.ndarray:
        """Return int32 `[tokens]`: the model's tokens for a piece of an answer."""

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Run the model once.

        Args:
            prompt_ids: int32 `[prompt_length]`.
            canvas: int32 `[length]`, the mask id where masked.
            step: number of the denoising step, for models whose answer is a function of it.

        Returns:
            float32 or float64 `[length vocab]`, natural logarithms up to a constant a row; `-inf` is impossible.
        """

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        """Run the model once on several prompts, each with its canvas; return what `logits` would for each."""


def load(name: str) -> Denoiser:
    """Load a model by name: `embedded`, a folder of this project's form, or `table:FILE`.

    Raises:
        ModelError: there is no such model, or what is there can't be read as one.
    """
    if name.startswith("table:"):
        from engine.models import table

        return table.load(Path(name.removeprefix("table:")))
    # torch and transformers take seconds to import; a typed-in mean field needs neither.
    from engine.models import embedded

    if name == "embedded":
        return embedded.load()
    if Path(name).is_dir():
        return embedded.load(Path(name))
    raise ModelError(
        f"There is no model named {name!r}: it is neither 'embedded' nor a folder on this machine.",
        "Use --model embedded, the path of a model folder, or table:FILE with a typed-in mean field.",
    )
