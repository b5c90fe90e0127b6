"""Run a cell: its problems step by step beside one another, with one call of the model a step."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from engine import constraints, decode, token_automaton
from engine.tables.cells import ARMS
from engine.tasks import families
from engine.trace import Config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.models import Denoiser
    from engine.tables.cells import Cell
    from engine.tasks.problem import Problem
    from engine.token_automaton import TokenAutomaton
    from engine.vocabulary import Vocabulary

BATCH = 256
"""Problems that are decoded side by side."""


@dataclass(frozen=True)
class Outcome:
    """What a cell's problems came to, in their order.

    Attributes:
        satisfied: whether each text is in its constraint's language.
        right: whether each text is a right answer, in any spelling.
        texts: what was decoded.
        seconds: wall clock of the cell.
    """

    satisfied: tuple[bool, ...]
    right: tuple[bool, ...]
    texts: tuple[str, ...]
    seconds: float


def run_cell(denoiser: Denoiser, cell: Cell) -> Outcome:
    """Decode the problems of a cell and judge the answers; `satisfied` is what the engine and an oracle agree on.

    Raises:
        RuntimeError: they don't agree on a text, which is a bug.
    """
    began = time.perf_counter()
    family = families.named(cell.task)
    problems = family.problems(cell.count, "held_out")
    configs = [config_of(cell, problem, seed) for seed, problem in enumerate(problems)]
    satisfied, texts = [], []
    for start in range(0, len(configs), BATCH):
        for config, canvas in decoded(denoiser, configs[start : start + BATCH]):
            accepted = _automaton(config, denoiser.vocabulary).accepts(canvas)
            text = denoiser.vocabulary.decode(canvas)
            if accepted and not satisfies(config, text):
                raise RuntimeError(f"{cell.key}: {text!r} was accepted, and {config.source!r} doesn't accept it.")
            satisfied.append(accepted)
            texts.append(text)
    right = tuple(family.is_right(problem, text) for problem, text in zip(problems, texts, strict=True))
    return Outcome(tuple(satisfied), right, tuple(texts), time.perf_counter() - began)


def config_of(cell: Cell, problem: Problem, seed: int) -> Config:
    """Return the settings of one run of a cell; `python -m engine run` with them shows it step by step."""
    sampler, confidence = ARMS[cell.arm]
    length = families.named(cell.task).length
    return Config(
        prompt=problem.prompt,
        kind=problem.kind,
        source=problem.source,
        length=length,
        steps=cell.steps,
        block_length=length,
        temperature=cell.temperature,
        sampler=sampler,
        confidence=confidence,
        seed=seed,
    )


class _Answered:
    """A model for one run, whose answer to each step was already computed beside those of other runs."""

    def __init__(self, denoiser: Denoiser, prompt: str) -> None:
        self.name, self.vocabulary, self.facts = denoiser.name, denoiser.vocabulary, denoiser.facts
        self.encode = denoiser.encode
        self.prompt_ids = denoiser.encode_prompt(prompt)
        self.answers: list[np.ndarray] = []

    def encode_prompt(self, prompt: str) -> np.ndarray:
        del prompt
        return self.prompt_ids

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        del prompt_ids, canvas, step
        return self.answers.pop()

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        return [self.logits(prompt, canvas, step) for prompt, canvas in zip(prompts, canvases, strict=True)]


def decoded(denoiser: Denoiser, configs: Sequence[Config]) -> Iterator[tuple[Config, list[int]]]:
    """Decode side by side runs of as many steps each; yield each with its last canvas.

    Each run is the one that `decode.denoise` gives alone, up to what a batch changes of the model's last bits.
    """
    models = [_Answered(denoiser, config.prompt) for config in configs]
    prompts = [model.prompt_ids for model in models]
    canvas = np.full(configs[0].length, denoiser.vocabulary.mask_id, np.int32)
    canvases = [canvas] * len(configs)
    runs = [
        decode.denoise(model, _automaton(config, denoiser.vocabulary), config)
        for model, config in zip(models, configs, strict=True)
    ]
    for step in range(configs[0].steps):
        answers = denoiser.batch_logits(prompts, canvases, step)
        for model, answer in zip(models, answers, strict=True):
            model.answers.append(answer)
        canvases = [next(run).canvas_after for run in runs]
    for config, last in zip(configs, canvases, strict=True):
        yield config, last.tolist()


def satisfies(config: Config, text: str) -> bool:
    """Tell whether a text satisfies a constraint, by Python's own `re` or by comparison: not by our automata."""
    if isinstance(config.source, str):
        return re.fullmatch(config.source, text) is not None
    return text in (config.source or ())


def _automaton(config: Config, vocabulary: Vocabulary) -> TokenAutomaton:
    return _compiled(config.kind or "", config.source or "", vocabulary)


@lru_cache(maxsize=BATCH)
def _compiled(kind: str, source: str | tuple[str, ...], vocabulary: Vocabulary) -> TokenAutomaton:
    return token_automaton.compile(constraints.read(kind, source), vocabulary)
