"""The training loop: LLaDA's loss on fresh examples, stopped and resumed without a trace."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedTokenizerFast

from engine.models.embedded import EmbeddedConfig, EmbeddedModel
from engine.training import tokenizer as tokenizers_here
from engine.training.batches import Batch, batches
from engine.training.optimiser import Average, Muon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PICK_SHARES = (0.37, 0.04)
"""Share of the copying exercise at the start and from a third of the training on."""


@dataclass(frozen=True)
class Recipe:
    """What a training run is.

    Attributes:
        minutes: wall clock of the schedule, summed over resumed parts; None to go by steps.
        steps: steps of the schedule where there are no minutes.
        seed: of the weights, the corpus and the masking.
        tokens: of a batch, about.
        matrix_rate: Muon's learning rate.
        rate: Adam's, for embedding and norms.
        constant: share of the schedule before the rates fall, linearly to 0.
        average: decay of the weights' moving average.
        hidden_size, intermediate_size, layers, heads, mix_neighbours: of the model.
    """

    minutes: float | None = 60.0
    steps: int = 4000
    seed: int = 0
    tokens: int = 4096
    matrix_rate: float = 0.02
    rate: float = 3e-3
    constant: float = 0.3
    average: float = 0.995
    hidden_size: int = 192
    intermediate_size: int = 512
    layers: int = 6
    heads: int = 6
    mix_neighbours: bool = True


@dataclass
class State:
    """How far a run is.

    Attributes:
        step: steps done.
        pool: the pool of examples that is being trained on.
        batch: batches of it that are done.
        pick_share: of this pool.
        seconds: wall clock of all steps.
        tokens: seen, prompts and padding included.
    """

    step: int = 0
    pool: int = 0
    batch: int = 0
    pick_share: float = PICK_SHARES[0]
    seconds: float = 0.0
    tokens: int = 0


class Run:
    """A training run in a folder; what it has done so far is in `state`."""

    def __init__(self, recipe: Recipe, folder: Path, tokenizer: PreTrainedTokenizerFast | None = None) -> None:
        """Start anew in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.recipe = recipe
        self.folder = folder
        self.tokenizer = tokenizer or tokenizers_here.train_on_corpus(recipe.seed)
        self.tokenizer.save_pretrained(folder / "tokenizer")
        torch.manual_seed(recipe.seed)
        self.config = EmbeddedConfig(
            vocab_size=len(self.tokenizer),
            hidden_size=recipe.hidden_size,
            intermediate_size=recipe.intermediate_size,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            mix_neighbours=recipe.mix_neighbours,
        )
        self.model = EmbeddedModel(self.config).train()
        matrices = [p for p in self.model.blocks.parameters() if p.ndim == 2]
        others = [p for p in self.model.parameters() if all(p is not m for m in matrices)]
        self.optimisers: tuple[torch.optim.Optimizer, ...] = (
            Muon(matrices, recipe.matrix_rate),
            torch.optim.AdamW(others, recipe.rate, betas=(0.9, 0.95), weight_decay=0.0),
        )
        self.average = Average(self.model.parameters(), recipe.average)
        self.state = State()

    @classmethod
    def resume(cls, folder: Path, minutes: float | None = None) -> Run:
        """Read the run that `save` left in a folder; `minutes` replaces those of its schedule."""
        held = torch.load(folder / "checkpoint.pt", weights_only=True)
        recipe = Recipe(**{**held["recipe"], **({} if minutes is None else {"minutes": minutes})})
        run = cls(recipe, folder, PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer"))
        run.model.load_state_dict(held["model"])
        for optimiser, state in zip(run.optimisers, held["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        run.average.values = held["average"]
        run.state = State(**held["state"])
        return run

    def save(self) -> None:
        """Write everything that going on needs; the old file stays until the new one is whole."""
        partial = self.folder / "checkpoint.part"
        torch.save(
            {
                "recipe": asdict(self.recipe),
                "model": self.model.state_dict(),
                "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
                "average": self.average.values,
                "state": asdict(self.state),
            },
            partial,
        )
        os.replace(partial, self.folder / "checkpoint.pt")

    @property
    def progress(self) -> float:
        """How much of the schedule is done, 0 to 1."""
        if self.recipe.minutes is None:
            return min(1.0, self.state.step / self.recipe.steps)
        return min(1.0, self.state.seconds / (60 * self.recipe.minutes))

    def compile(self) -> None:
        """Compile each block for all lengths at once: a fifth faster here, after half a minute."""
        for block in self.model.blocks:
            block.compile(dynamic=True)

    def train(self, stop_after: int | None = None, save_every: float = 120.0) -> list[float]:
        """Go on to the end, to `stop_after` more steps, or to SIGTERM or Ctrl-C, and save.

        Returns:
            The losses of the steps, nats a token.
        """
        losses: list[float] = []
        saved = began = time.monotonic()
        with _stop_signals() as signals:
            for batch in self._batches():
                losses.append(self._step(batch))
                now = time.monotonic()
                self.state.seconds += now - began
                began = now
                if self.state.step % 50 == 0:
                    self._report(losses[-50:])
                if now - saved > save_every:
                    self.save()
                    saved = now
                if self.progress >= 1 or signals or len(losses) == stop_after:
                    break
        self.save()
        return losses

    def _batches(self) -> Iterator[Batch]:
        """Yield the batches that the run has not seen, and count them."""
        while True:
            pool = batches(
                self.tokenizer.backend_tokenizer,
                self.config,
                self.recipe.seed,
                self.state.pool,
                self.state.pick_share,
                self.recipe.tokens,
            )
            for number, batch in enumerate(pool):
                if number < self.state.batch:
                    continue
                self.state.batch = number + 1
                yield batch
            first, last = PICK_SHARES
            share = first + (last - first) * min(1.0, 3 * self.progress)
            self.state.pool += 1
            self.state.batch = 0
            self.state.pick_share = share

    def _step(self, batch: Batch) -> float:
        falling = min(1.0, (1 - self.progress) / (1 - self.recipe.constant))
        for optimiser, rate in zip(self.optimisers, (self.recipe.matrix_rate, self.recipe.rate), strict=True):
            optimiser.param_groups[0]["lr"] = rate * falling
        loss = loss_of(self.model, torch.from_numpy(batch.ids), torch.from_numpy(batch.masked))
        self.model.zero_grad(set_to_none=True)
        loss.backward()
        for optimiser in self.optimisers:
            optimiser.step()
        self.average.update(self.state.step)
        self.state.step += 1
        self.state.tokens += batch.ids.size
        return float(loss.detach())

    def _report(self, losses: list[float]) -> None:
        facts = {
            "step": self.state.step,
            "minutes": round(self.state.seconds / 60, 1),
            "tokens": self.state.tokens,
            "loss": round(sum(losses) / len(losses), 4),
        }
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(facts) + "\n")

    def export(self, folder: Path) -> None:
        """Write the averaged weights in float16, as `engine.models.embedded` reads them."""
        folder.mkdir(parents=True, exist_ok=True)
        exported = EmbeddedModel(self.config)
        exported.load_state_dict(self.model.state_dict())
        with torch.no_grad():
            for parameter, value in zip(exported.parameters(), self.average.values, strict=True):
                parameter.copy_(value)
        exported.half()
        exported.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        record = {"recipe": asdict(self.recipe), **asdict(self.state)}
        (folder / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def loss_of(model: EmbeddedModel, ids: Tensor, masked: Tensor) -> Tensor:
    """Return LLaDA's loss: each row's mean cross-entropy at its hidden tokens, then the rows' mean.

    Args:
        model: to train.
        ids: int64 `[batch length]`.
        masked: bool `[batch length]`, at least one a row.
    """
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.hidden(torch.where(masked, model.config.mask_token_id, ids))
        logits = model.head(hidden[masked])
    each = functional.cross_entropy(logits.float(), ids[masked], reduction="none")
    weights = (1 / masked.sum(1, keepdim=True)).expand(masked.shape)[masked]
    return torch.sum(each * weights) / ids.shape[0]


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Collect SIGTERM and Ctrl-C in a list instead of dying, so that a step is never cut in two."""
    seen: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda caught, _: seen.append(caught)) for number in numbers]
    try:
        yield seen
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
