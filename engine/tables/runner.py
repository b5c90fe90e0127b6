"""Decode a few problems of a task in all of its cells at once: equal canvases share one call of the model.

Most runs of one problem stand on a canvas that another run of it met too: arms, temperatures and numbers of steps part
late and rarely. So a distinct canvas is answered once, beside those of the other runs that wait at the same moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import constraints, decode, stepping, token_automaton
from engine.stepping import Answer, Step
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
    problems = _held_out(work.task, 1 << max(work.problems).bit_length())
    configs = [config_of(cell, problems[n], n) for n in work.problems for cell in work.cells]
    found: dict[int, dict[Cell, Run]] = {n: {} for n in work.problems}
    wanted = [(n, cell) for n in work.problems for cell in work.cells]
    judged: dict[tuple[int, tuple[int, ...]], Run] = {}
    for (n, cell), config, canvas in zip(wanted, configs, decoded(denoiser, configs), strict=True):
        key = (n, tuple(canvas))
        if key not in judged:
            text = denoiser.vocabulary.decode(canvas)
            satisfied = _automaton(config, denoiser.vocabulary).accepts(canvas) and satisfies(config, text)
            judged[key] = Run(satisfied, family.is_right(problems[n], text), text)
        found[n][cell] = judged[key]
    return found


@lru_cache(maxsize=16)
def _held_out(task: str, count: int) -> tuple[Problem, ...]:
    return families.named(task).problems(count, "held_out")


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


_Key = tuple[int, bytes]
"""A canvas: how many of its positions are masked, and its bytes."""


@dataclass(frozen=True, eq=False)
class _Asked:
    """A problem under its constraint, and the model's answers to the canvases that its runs met.

    Attributes:
        prompt_ids: int32 `[prompt_length]`.
        automaton: of the constraint.
        answers: by the canvas; of those that a run can still meet.
    """

    prompt_ids: np.ndarray
    automaton: TokenAutomaton
    answers: dict[_Key, Answer] = field(default_factory=dict)


def decoded(denoiser: Denoiser, configs: Sequence[Config]) -> list[list[int]]:
    """Decode runs side by side; return their last canvases.

    Each run is the one that `decode.denoise` gives alone, up to what a batch changes of the model's last bits.

    Args:
        denoiser: a model whose answer doesn't depend on the step's number.
        configs: of the runs, without guidance, pins and bans, and in one block.
    """
    mask_id = denoiser.vocabulary.mask_id
    asked = {
        key: _Asked(denoiser.encode_prompt(config.prompt), _automaton(config, denoiser.vocabulary))
        for key, config in {_request(config): config for config in configs}.items()
    }
    canvases = [np.full(config.length, mask_id, np.int32) for config in configs]
    plans = [decode.schedule(c, canvas, mask_id) for c, canvas in zip(configs, canvases, strict=True)]
    for step in range(max(config.steps for config in configs)):
        active = [n for n, config in enumerate(configs) if step < config.steps]
        waiting = [(asked[_request(configs[n])], canvases[n]) for n in active]
        keys = [(int((canvas == mask_id).sum()), canvas.tobytes()) for _, canvas in waiting]
        _forget(waiting, keys)
        _answer(denoiser, waiting, keys)
        for n, (problem, _), key in zip(active, waiting, keys, strict=True):
            canvases[n] = stepping.advance(Step(problem.answers[key], configs[n], step, *plans[n][step]))
    return [canvas.tolist() for canvas in canvases]


def _request(config: Config) -> tuple[Any, ...]:
    """Return what a run shares its answers by."""
    return config.prompt, config.kind, config.source, config.reading


def _forget(waiting: Sequence[tuple[_Asked, np.ndarray]], keys: Sequence[_Key]) -> None:
    """Drop the answers to canvases with more masks than any that waits, which no run comes back to."""
    most: dict[_Asked, int] = {}
    for (problem, _), (masks, _) in zip(waiting, keys, strict=True):
        most[problem] = max(most.get(problem, 0), masks)
    for problem, masks in most.items():
        for key in [key for key in problem.answers if key[0] > masks]:
            del problem.answers[key]


def _answer(denoiser: Denoiser, waiting: Sequence[tuple[_Asked, np.ndarray]], keys: Sequence[_Key]) -> None:
    """Ask the model for every distinct canvas that it wasn't asked for yet."""
    new = {
        (problem, key): canvas
        for (problem, canvas), key in zip(waiting, keys, strict=True)
        if key not in problem.answers
    }
    if not new:
        return
    logits = denoiser.batch_logits([problem.prompt_ids for problem, _ in new], list(new.values()), 0)
    for ((problem, key), canvas), answer in zip(new.items(), logits, strict=True):
        problem.answers[key] = Answer(answer, canvas, denoiser.vocabulary, problem.automaton)


def _automaton(config: Config, vocabulary: Vocabulary) -> TokenAutomaton:
    return _compiled(config.kind or "", config.source or "", config.reading, vocabulary)


@lru_cache(maxsize=64)
def _compiled(
    kind: str, source: str | tuple[str, ...], reading: tuple[tuple[str, Any], ...], vocabulary: Vocabulary
) -> TokenAutomaton:
    return token_automaton.compile(constraints.read(kind, source, **dict(reading)), vocabulary)
