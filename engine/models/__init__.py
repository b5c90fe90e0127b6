"""The models: anything that gives a canvas a distribution over tokens at every position."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import ModelError
from engine.models.architecture import DEFAULT, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from engine.vocabulary import Vocabulary


class Denoiser(Protocol):
    """A masked diffusion language model.

    Attributes:
        name: as the user would name it.
        vocabulary: what its ids write.
        facts: JSON-able: at least `name`; parameters, numeric type, revision, and `context`, the most tokens that it
            was made for, where there are any.
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


def load(name: str, options: Options = DEFAULT, progress: Callable[[int, int], None] | None = None) -> Denoiser:
    """Load a model by name: `embedded`, a folder, an id on the hub, `table:FILE`, or `table:{…}` with the JSON itself.

    Args:
        name: as above.
        options: how a folder's model is to be read.
        progress: called with the number of weights that are loaded and of all; what it raises ends the loading.

    Raises:
        ModelError: there is no such model, what is there can't be read as one, or it can't be read so.
    """
    if name.startswith("table:"):
        from engine.models import table

        _refuse_unheeded(name, options, "float64")
        written = name.removeprefix("table:")
        return table.parse(written, "the typed mean field") if written.startswith("{") else table.load(Path(written))
    # torch and transformers take seconds to import; a typed-in mean field needs neither.
    from engine.models import embedded

    if name == "embedded":
        _refuse_unheeded(name, options, "float32")
        return embedded.load()
    from engine.models import loading

    folder = loading.locate(name, options)
    if loading.read_config(folder)["model_type"] == embedded.EmbeddedConfig.model_type:
        _refuse_unheeded(name, options, "float32")
        return embedded.load(folder)
    return loading.load(name, options, progress)


def _refuse_unheeded(name: str, options: Options, dtype: str) -> None:
    """Refuse what can't be asked of the engine's own models, which run on the CPU in one numeric type."""
    taken = (("device", ("auto", "cpu")), ("dtype", ("auto", dtype)), ("shift", (None,)))
    for option, values in taken:
        if getattr(options, option) not in values:
            raise ModelError(
                f"The model {name} can't be loaded with the {option} {getattr(options, option)}.",
                "Leave that out; it is for models that transformers loads.",
            )


def vocabulary(name: str, options: Options = DEFAULT) -> Vocabulary:
    """Return what the ids of a model write; the weights of a large one are not read for it.

    Args:
        name: as for `load`.
        options: how a folder's tokenizer is to be read.

    Raises:
        ModelError: there is no such model, or its tokenizer can't be read.
    """
    if name == "embedded" or name.startswith("table:"):
        return load(name).vocabulary
    from engine.models import embedded, loading

    folder = loading.locate(name, options)
    if loading.read_config(folder)["model_type"] == embedded.EmbeddedConfig.model_type:
        return embedded.load(folder).vocabulary
    return loading.vocabulary(name, options)
