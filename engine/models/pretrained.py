"""A model that transformers reads, as the engine sees it: LLaDA, Dream, any masked language model."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from engine.errors import ModelError
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from engine.models.architecture import Architecture

NO_TEMPLATE = (
    "Add its chat_template to tokenizer_config.json, or give the prompt as it is with --raw-prompt, as base models "
    "want it."
)


class Pretrained:
    """A model of transformers as a `engine.models.Denoiser`.

    Attributes:
        name: as the user named it.
        architecture: the facts of its family.
        vocabulary: what its ids write.
        facts: family, parameters, device, dtype, context limit and whether the logits are shifted.
    """

    def __init__(self, name: str, architecture: Architecture, model: Any, tokenizer: Any, raw_prompt: bool) -> None:
        self.name = name
        self.architecture = architecture
        self.model = model.requires_grad_(False)
        self.model.eval()
        self.tokenizer = tokenizer
        self._raw = raw_prompt or not architecture.chat
        self._keeps = "logits_to_keep" in model.forward.__code__.co_varnames
        first = next(model.parameters())
        size = int(model.get_output_embeddings().weight.shape[0])
        self.vocabulary = Vocabulary.from_tokenizer(tokenizer, size, architecture.eos_ids, architecture.mask_id)
        self.facts: dict[str, Any] = {
            "name": name,
            "family": architecture.family,
            "parameters": model.num_parameters(),
            "device": str(first.device),
            "dtype": str(first.dtype).removeprefix("torch."),
            "context": architecture.context,
            "shift": architecture.shift,
            "raw_prompt": self._raw,
        }
        self._forward = on_zero_gpu(self._forward_on_device())

    def encode_prompt(self, prompt: str) -> np.ndarray:
        """Return int32 `[prompt_length]`: the prompt in the model's chat template.

        Raises:
            ModelError: the tokenizer has no chat template.
        """
        if self._raw:
            return np.asarray([*self.architecture.before, *self.encode(prompt)], np.int32)
        if not self.tokenizer.chat_template:
            raise ModelError(f"The tokenizer of {self.name} has no chat template.", NO_TEMPLATE)
        text = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        return np.asarray(self.tokenizer(text, add_special_tokens=False)["input_ids"], np.int32)

    def encode(self, text: str) -> np.ndarray:
        """Return int32 `[tokens]` of a text; the name of a special token is plain text too."""
        backend = self.tokenizer.backend_tokenizer
        backend.encode_special_tokens = True
        ids = backend.encode(text, add_special_tokens=False).ids
        backend.encode_special_tokens = False
        return np.asarray(ids, np.int32)

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Run the model once: float32 `[length vocab]`, natural logarithms up to a constant a row."""
        return self.batch_logits([prompt_ids], [canvas], step)[0]

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        """Run the model once for each pair of lengths among the rows; those of equal lengths are a batch.

        Raises:
            ModelError: the device has too little memory for it.
        """
        del step
        lengths = [(prompt_ids.size, canvas.size) for prompt_ids, canvas in zip(prompts, canvases, strict=True)]
        found: list[np.ndarray] = [np.empty(0)] * len(lengths)
        for prompt_length, length in set(lengths):
            alike = [n for n, pair in enumerate(lengths) if pair == (prompt_length, length)]
            ids = np.stack([[*prompts[n], *canvases[n], *self.architecture.after] for n in alike]).astype(np.int64)
            rows = np.maximum(np.arange(prompt_length, prompt_length + length) - self.architecture.shift, 0)
            try:
                answer = self._forward(ids, rows)
            except torch.OutOfMemoryError as error:
                raise ModelError(
                    f"{self.facts['device']} has too little memory for {len(alike)} × {ids.shape[1]} tokens.",
                    "Shorten the prompt or the canvas, or choose another dtype or device.",
                ) from error
            for n, logits in zip(alike, answer, strict=True):
                found[n] = logits
        return found

    def _forward_on_device(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the one function that touches the device: arrays in, arrays out, and the model only in its closure."""
        model, keeps = self.model, self._keeps

        def forward(ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
            with torch.inference_mode():
                device = model.get_input_embeddings().weight.device
                at = torch.from_numpy(rows).to(device)
                given: Tensor = torch.from_numpy(ids).to(device)
                if keeps:  # the head, which is most of the work of a wide vocabulary, sees the canvas alone
                    logits = model(input_ids=given, use_cache=False, logits_to_keep=at).logits
                else:
                    logits = model(input_ids=given).logits[:, at.to(device)]
                return np.asarray(logits.float().cpu().numpy())

        return forward


def on_zero_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that needs the GPU as Hugging Face's ZeroGPU asks; elsewhere return it as it is.

    The wrapped function may run in a fork of this process: it gets and gives arrays and changes nothing else.
    """
    if find_spec("spaces") is None:
        return function
    wrapped: Callable[..., Any] = import_module("spaces").GPU(function)
    return wrapped


def check_rotary(model: torch.nn.Module, theta: float | None) -> None:
    """Refuse a model whose rotary frequencies are not `θ^(−2i/d)`.

    They are in no checkpoint. Code written for older releases of transformers leaves uninitialised memory in their
    place, and then every answer is wrong and no error says so.

    Raises:
        ModelError: names the buffer.
    """
    for name, buffer in model.named_buffers():
        if not name.endswith("inv_freq"):
            continue
        half = buffer.numel()
        sound = bool(torch.isfinite(buffer).all()) and bool((buffer.diff() < 0).all()) and float(buffer[0]) == 1.0
        if sound and theta is not None:
            meant = float(theta) ** -(torch.arange(half, dtype=torch.float64) / half)
            sound = torch.allclose(buffer.double().cpu(), meant, rtol=1e-5)
        if not sound:
            raise ModelError(
                f"The rotary frequencies of this model ({name}) hold other numbers than θ^(−2i/d).",
                "Use the model through this project's own reading of it, or with the release of transformers that it "
                "names.",
            )
