"""What the engine must know of a family of models beyond its weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PreTrainedConfig


@dataclass(frozen=True)
class Options:
    """How a model is to be loaded.

    Attributes:
        device: `auto`, or a torch device; `auto` is what accelerate spreads the weights over, or the CPU.
        dtype: `auto`, the checkpoint's own, or `float32`, `bfloat16`, `float16`.
        raw_prompt: give the prompt as it is, in no chat template, as base models want it.
        trust_remote_code: run the Python code that comes with the model.
        shift: for a model of remote code, whether position `p` is predicted at position `p − 1`.
    """

    device: str = "auto"
    dtype: str = "auto"
    raw_prompt: bool = False
    trust_remote_code: bool = False
    shift: bool | None = None


DEFAULT = Options()


@dataclass(frozen=True)
class Architecture:
    """A family's facts, with the names and ids of one checkpoint filled in.

    Attributes:
        family: its name.
        model_class: class of transformers that the weights are read into.
        config: of that class.
        key_mapping: regular expressions of the checkpoint's names of weights -> names of that class.
        mask_id: the id that stands on masked positions.
        eos_ids: ids that end the text, the one that pads first.
        shift: whether position `p` is predicted at position `p − 1`, as in models that once were autoregressive.
        context: most tokens that the model was made for, prompt and canvas together.
        before: ids in front of the prompt.
        after: ids behind the canvas.
        chat: whether a prompt belongs into a chat template.
    """

    family: str
    model_class: Any
    config: PreTrainedConfig
    mask_id: int
    eos_ids: tuple[int, ...]
    shift: bool
    context: int
    key_mapping: dict[str, str] = field(default_factory=dict)
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    chat: bool = True


def required(content: Mapping[str, Any], name: str, family: str) -> Any:
    """Return an entry of a checkpoint's config.json.

    Raises:
        ModelError: it is missing.
    """
    if content.get(name) is None:
        raise ModelError(
            f"The config.json of this {family} model has no {name!r}.", "Fetch the model's own config.json again."
        )
    return content[name]


def token_ids(tokenizer: Any, *texts: str) -> tuple[int, ...]:
    """Return the ids of those special tokens that the tokenizer has."""
    vocabulary = tokenizer.get_vocab()
    return tuple(int(vocabulary[text]) for text in texts if text in vocabulary)
