"""What a constraint costs: time a sample with each exact sampler, beside the same model without a constraint."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine import constraints, decode, token_automaton
from engine.tables.cells import Cell
from engine.tables.runner import config_of
from engine.tasks import families

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.models import Denoiser
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Config

SAMPLERS = ("unconstrained", "chain", "midpoint", "tree")
REPEATS = 5


@dataclass(frozen=True)
class Latency:
    """Time for one sample, one token a step, as the page's own runs take it, everything recorded.

    Attributes:
        task: name of a family of problems.
        length: positions, and denoising steps.
        states: of the token automaton, the median over the problems.
        sampler: one of `SAMPLERS`.
        sample_ms: wall clock of a sample, compiling left out: median over problems of the fastest of `REPEATS` runs.
        model_ms: of that, in the model.
    """

    task: str
    length: int
    states: int
    sampler: str
    sample_ms: float
    model_ms: float


def measure(denoiser: Denoiser, tasks: Sequence[str], problems: int) -> Iterator[Latency]:
    """Time the samplers in turns on the first held-out problems of each task, on one thread."""
    free = token_automaton.everything(denoiser.vocabulary)
    for task in tasks:
        family = families.named(task)
        times: dict[str, list[tuple[float, float]]] = {sampler: [] for sampler in SAMPLERS}
        states = []
        for seed, problem in enumerate(family.problems(problems, "held_out")):
            config = config_of(Cell(task, "Mar", 1.0, family.length), problem, seed)
            constraint = constraints.read(problem.kind, problem.source, **dict(problem.reading))
            automaton = token_automaton.compile(constraint, denoiser.vocabulary)
            states.append(automaton.states)
            runs = {name: (automaton, replace(config, sampler=name)) for name in SAMPLERS[1:]}
            runs["unconstrained"] = (free, replace(config, kind=None, source=None, reading=(), sampler="independent"))
            for name, best in _fastest(denoiser, runs).items():
                times[name].append(best)
        for name, found in times.items():
            sample_ms, model_ms = (statistics.median(values) for values in zip(*found, strict=True))
            yield Latency(task, family.length, int(statistics.median(states)), name, sample_ms, model_ms)


def _fastest(denoiser: Denoiser, runs: dict[str, tuple[TokenAutomaton, Config]]) -> dict[str, tuple[float, float]]:
    tried: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for repeat in range(REPEATS + 1):
        for name, (automaton, config) in runs.items():
            began = time.perf_counter()
            model_ms = sum(float(record.model_ms) for record in decode.denoise(denoiser, automaton, config))
            if repeat:  # the first one loads compiled loops
                tried[name].append((1e3 * (time.perf_counter() - began), model_ms))
    return {name: min(found) for name, found in tried.items()}
