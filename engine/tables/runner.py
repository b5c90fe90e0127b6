"""Decode a few problems of a task in all of its cells at once: equal canvases share one call of the model.

Most runs of one problem stand on a canvas that another run of it met too: arms, temperatures and numbers of steps part
late and rarely. So a distinct canvas is answered once, beside those of the other runs that wait at the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import constraints, decode, token_automaton
from engine.tables.cells import ARMS
from engine.tables.oracle import satisfies
from engine.tasks import families
from engine.trace import Config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.models import Denoiser
    from engine.tables.cells import Cell
    from engine.tasks.problem import Problem
    from engine.token_automaton import TokenAutomaton
    from engine.vocabulary import Vocabulary


@dataclass(frozen=True)
class Work:
    """Some problems of one task, and the cells that they are decoded in.

    Attributes:
        task: name of a family of problems.
        problems: their numbers among the held-out ones; a problem's number is its seed too, in every cell.
        cells: of that task.
    """

    task: str
    problems: tuple[int, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Run:
    """What one problem came to in one cell.

    Attributes:
        satisfied: whether the engine and an oracle find the text in its constraint's language.
        right: whether it is a right answer, in any spelling.
        text: what was decoded.
    """

    satisfied: bool
    right: bool
    text: str


def solve(denoiser: Denoiser, work: Work) -> dict[int, dict[Cell, Run]]:
    """Decode problems in all cells, and judge the answers."""
    family = families.named(work.task)
    problems = family.problems(max(work.problems) + 1, "held_out")
    configs = [config_of(cell, problems[n], n) for n in work.problems for cell in work.cells]
    found: dict[int, dict[Cell, Run]] = {n: {} for n in work.problems}
    wanted = [(n, cell) for n in work.problems for cell in work.cells]
    for (n, cell), config, canvas in zip(wanted, configs, decoded(denoiser, configs), strict=True):
        text = denoiser.vocabulary.decode(canvas)
        satisfied = _automaton(config, denoiser.vocabulary).accepts(canvas) and satisfies(config, text)
        found[n][cell] = Run(satisfied, family.is_right(problems[n], text), text)
    return found


def config_of(cell: Cell, problem: Problem, seed: int) -> Config:
    """Return the settings of one run of a cell; `python -m engine run` with them shows it step by step."""
    sampler, confidence = ARMS[cell.arm]
    length = families.named(cell.task).length
    return Config(
        prompt=problem.prompt,
        kind=problem.kind,
        source=problem.source,
        reading=problem.reading,
        length=length,
        steps=cell.steps,
        block_length=length,
        temperature=cell.temperature,
        sampler=sampler,
        confidence=confidence,
        seed=seed,
    )


class _Answered:
    """A model for the runs of one prompt, whose answer to a canvas was already computed beside others."""

    def __init__(self, denoiser: Denoiser, prompt: str) -> None:
        self.name, self.vocabulary, self.facts = denoiser.name, denoiser.vocabulary, denoiser.facts
        self.encode = denoiser.encode
        self.prompt_ids = denoiser.encode_prompt(prompt)
        self.known: dict[bytes, np.ndarray] = {}

    def encode_prompt(self, prompt: str) -> np.ndarray:
        del prompt
        return self.prompt_ids

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        del prompt_ids, step
        return self.known[canvas.tobytes()]

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        return [self.logits(prompt, canvas, step) for prompt, canvas in zip(prompts, canvases, strict=True)]


def decoded(denoiser: Denoiser, configs: Sequence[Config]) -> list[list[int]]:
    """Decode runs side by side; return their last canvases.

    Each run is the one that `decode.denoise` gives alone, up to what a batch changes of the model's last bits.

    Args:
        denoiser: a model whose answer doesn't depend on the step's number.
        configs: of the runs, without guidance.
    """
    models = {prompt: _Answered(denoiser, prompt) for prompt in dict.fromkeys(config.prompt for config in configs)}
    runs = [
        decode.denoise(models[config.prompt], _automaton(config, denoiser.vocabulary), config) for config in configs
    ]
    canvases = [np.full(config.length, denoiser.vocabulary.mask_id, np.int32) for config in configs]
    for step in range(max(config.steps for config in configs)):
        active = [n for n, config in enumerate(configs) if step < config.steps]
        _answer(denoiser, [(models[configs[n].prompt], canvases[n]) for n in active])
        for n in active:
            canvases[n] = next(runs[n]).canvas_after
    return [canvas.tolist() for canvas in canvases]


def _answer(denoiser: Denoiser, asked: Sequence[tuple[_Answered, np.ndarray]]) -> None:
    """Ask the model for every distinct canvas that it wasn't asked for yet."""
    new = {
        (id(model), key): (model, canvas, key)
        for model, canvas in asked
        if (key := canvas.tobytes()) not in model.known
    }
    if not new:
        return
    prompts = [model.prompt_ids for model, _, _ in new.values()]
    answers = denoiser.batch_logits(prompts, [canvas for _, canvas, _ in new.values()], 0)
    for (model, _, key), answer in zip(new.values(), answers, strict=True):
        model.known[key] = answer


def _automaton(config: Config, vocabulary: Vocabulary) -> TokenAutomaton:
    return _compiled(config.kind or "", config.source or "", config.reading, vocabulary)


@lru_cache(maxsize=64)
def _compiled(
    kind: str, source: str | tuple[str, ...], reading: tuple[tuple[str, Any], ...], vocabulary: Vocabulary
) -> TokenAutomaton:
    return token_automaton.compile(constraints.read(kind, source, **dict(reading)), vocabulary)
