"""What a lesson shows for a setting of its controls: runs of the real engine, and numbers read from them.

A scene is a function of its controls. Nothing here draws, and nothing is computed that the engine doesn't compute:
a probability is a log partition, a marginal is a recorded posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from app.lessons import recipes
from engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.trace import Config, Trace

REALS = r"[0-9]+(\.[0-9]*)?|\.[0-9]+"
"""A real number: digits with or without a dot behind them, or a dot and digits."""
SYMBOLS = (*"0123456789", ".")
SHAPES = ("dd", "d.", ".d", "..")
"""The strings of two characters by their shape: `d` is a digit."""
LONGEST_WALK = 12


@dataclass(frozen=True)
class Scene:
    """What is to be shown.

    Attributes:
        runs: ids of the runs, one or two side by side.
        numbers: what the text's places in braces stand for.
        said: a sentence about the controls, such as what was changed of what was typed; none where all is plain.
        at: where the focus goes, `step` and `position`.
    """

    runs: tuple[str, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""
    at: Mapping[str, int] = field(default_factory=dict)


def row(p: float) -> tuple[float, ...]:
    """Return one position's distribution: the dot has probability `p`, the ten digits share the rest."""
    return (*[(1 - p) / 10] * 10, p)


def reals(p: float, length: int = 2, **more: Any) -> Config:
    """Return the running example: a real number of `length` characters, every position with the same distribution."""
    return recipes.config(REALS, recipes.typed(SYMBOLS, [row(p)] * length), length, **more)


@lru_cache(maxsize=128)
def recorded(config: Config) -> Trace:
    """Return the run of a recipe, kept for the next who asks."""
    return recipes.recorded(config)


def partition(config: Config) -> float:
    """Return Z: the probability that an independent draw is accepted."""
    return math.exp(float(recorded(config).steps[0].log_partition))


def posterior(config: Config) -> np.ndarray:
    """Return float64 `[length vocab]`, the exact marginals of a recipe's first step at its masked positions."""
    trace = recorded(config)
    record = trace.steps[0]
    assert record.log_mean_field is not None  # a recipe is small, so that its run keeps it
    classes = trace.header.automaton.token_class[: record.log_mean_field.shape[1]]
    masked = record.canvas == trace.header.vocabulary.mask_id
    log_q = record.log_mean_field.astype(np.float64) + record.log_lift[masked][:, classes]
    out = np.zeros((record.canvas.size, log_q.shape[1]))
    out[masked] = np.exp(log_q)
    out[~masked, record.canvas[~masked]] = 1.0
    return out


def shapes(rows: np.ndarray) -> dict[str, float]:
    """Return the probability of each shape when both characters are drawn by themselves from `rows`."""
    chance = [{"d": float(row[:-1].sum()), ".": float(row[-1])} for row in rows]
    return {shape: chance[0][shape[0]] * chance[1][shape[1]] for shape in SHAPES}


def _chance(controls: Mapping[str, Any], name: str = "p") -> float:
    value = controls[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.01 <= value <= 0.99:
        raise ConfigError(f"The probability is {value!r}.", "Choose one from .01 to .99.")
    return round(float(value), 4)


def _among(controls: Mapping[str, Any], name: str, known: tuple[Any, ...]) -> Any:
    if controls[name] not in known:
        raise ConfigError(
            f"There is no choice {controls[name]!r} here.", f"Choose one of {', '.join(map(str, known))}."
        )
    return controls[name]


def walk(controls: Mapping[str, Any]) -> Scene:
    """Show where a typed string leads: the mean field is certain of each of its characters."""
    from engine import constraints
    from engine.diagnosis import strings

    text = str(controls["text"])
    strange = next((c for c in text if c not in SYMBOLS), None)
    if strange is not None:
        raise ConfigError(
            f"The character {strange!r} is not in the alphabet.", "Type digits and dots only; what was shown stays."
        )
    if not 1 <= len(text) <= LONGEST_WALK:
        raise ConfigError(f"There are {len(text)} characters.", f"Type from 1 to {LONGEST_WALK} digits and dots.")
    rows = [[float(c == symbol) for symbol in SYMBOLS] for c in text]
    shown = recipes.config(REALS, recipes.typed(SYMBOLS, rows), len(text), sampler="independent")
    read = strings.read(constraints.read("regex", REALS), text)
    uniform = recipes.config(REALS, recipes.typed(SYMBOLS, [[1 / len(SYMBOLS)] * len(SYMBOLS)] * 2), 2)
    strings_of_two = len(SYMBOLS) ** 2
    numbers = {
        "all": strings_of_two,
        "good": round(partition(uniform) * strings_of_two),
    }
    return Scene((recipes.write(shown),), numbers, read.message, {"position": min(read.read, len(text) - 1)})


def model(controls: Mapping[str, Any]) -> Scene:
    """Show draws of two characters by the model alone."""
    p = _chance(controls)
    shown = reals(p, sampler="independent")
    return Scene((recipes.write(shown),), _free(p))


def _free(p: float) -> dict[str, float]:
    z = partition(reals(p))
    free = {f"free {name}": chance for name, chance in shapes(np.asarray([row(p)] * 2)).items()}
    return {"p": p, "digit": row(p)[0], "z": z, "log z": math.log(z), "broken": 1 - z, **free}


def apart(p: float) -> Config:
    """Return draws of each position by itself, from the exact marginal that it has under the constraint."""
    rows = posterior(reals(p))
    return recipes.config(REALS, recipes.typed(SYMBOLS, rows.tolist()), 2, sampler="independent")


def marginals(controls: Mapping[str, Any]) -> Scene:
    """Show the exact marginals, and what drawing from them one by one makes of them."""
    p, how = _chance(controls), _among(controls, "how", ("apart", "together"))
    q = posterior(reals(p))
    shown = apart(p) if how == "apart" else reals(p)
    free = _free(p)
    numbers = {
        **free,
        **{f"apart {name}": chance for name, chance in shapes(q).items()},
        **{f"joint {name}": 0.0 if name == ".." else free[f"free {name}"] / free["z"] for name in SHAPES},
        "q dot": float(q[0, -1]),
        "q digit": float(q[0, 0]),
        "wrong": 1 - partition(apart(p)),
        "wrong at half": 1 - partition(apart(0.5)),
        "wrong at most": 1 - partition(apart(0.99)),
        "favourites": "".join(SYMBOLS[v] for v in q.argmax(axis=1)),
    }
    said = "The figure’s model, p, is now the exact marginals from before." if how == "apart" else ""
    return Scene((recipes.write(shown),), numbers, said)


def memory(controls: Mapping[str, Any]) -> Scene:
    """Show what the first character leaves of the second."""
    p, first = _chance(controls), _among(controls, "first", ("", ".", "3"))
    given = {"alone": reals(p), "after dot": pinned(p, "."), "after digit": pinned(p, "3")}
    chances = {name: float(posterior(config)[1, -1]) for name, config in given.items()}
    shown = reals(p) if first == "" else pinned(p, first)
    return Scene((recipes.write(shown),), {"p": p, "rest": 1 - p, **chances})


def pinned(p: float, first: str) -> Config:
    """Return the running example with its first character committed."""
    return reals(p, pins=((0, SYMBOLS.index(first)),))


def meet(controls: Mapping[str, Any]) -> Scene:
    """Show both messages and their product at every boundary."""
    from engine.diagnosis import beliefs

    p, length = _chance(controls), _among(controls, "length", (1, 2, 3, 4, 8))
    shown = reals(p, length)
    trace = recorded(shown)
    found = beliefs.of_step(trace, trace.steps[0])
    sums = np.exp(found.log_forward + found.log_backward).sum(axis=1)
    inner = {f"sum {b}": float(sums[b]) for b in range(length + 1)}
    z = partition(shown)
    return Scene((recipes.write(shown),), {"p": p, "length": length, "z": z, "log z": math.log(z), **inner})


def midpoints(controls: Mapping[str, Any]) -> Scene:
    """Show the tree of midpoints, and that its path has the probability that a draw from left to right gives it."""
    length = _among(controls, "length", (8, 64, 256))
    shown = reals(0.1, length)
    trace = recorded(shown)
    numbers = {
        **{f"rounds {n}": rounds(n) for n in (8, 64, 256)},
        "length": length,
        "rounds": rounds(length),
        "by tree": float(np.nansum(trace.steps[0].midpoint_log_probability, dtype=np.float64)),
        "by chain": _chain_log_probability(trace),
    }
    return Scene((recipes.write(shown),), numbers)


def rounds(length: int) -> int:
    """Return how many levels the tree of midpoints has: `m` is a middle at the power of two that divides it."""
    return len({m & -m for m in range(1, length)})


def _chain_log_probability(trace: Trace) -> float:
    """Return the log probability of the drawn path, from left to right: `Σ log w_i b_{i+1} / b_i`."""
    from engine.diagnosis import beliefs

    record, edges = trace.steps[0], trace.header.automaton.edges
    found = beliefs.of_step(trace, record)
    total = 0.0
    for i, (here, there) in enumerate(zip(record.path[:-1], record.path[1:], strict=True)):
        of = slice(edges.ptr[here], edges.ptr[here + 1])
        edge = int(np.flatnonzero(edges.target[of] == there)[0]) + int(edges.ptr[here])
        step = found.log_label_mass[i, edges.label[edge]] + found.log_backward[i + 1, there]
        total += float(step - found.log_backward[i, here])
    return total


SCENES: dict[str, Callable[[Mapping[str, Any]], Scene]] = {
    "walk": walk,
    "model": model,
    "marginals": marginals,
    "memory": memory,
    "meet": meet,
    "midpoints": midpoints,
}
"""Every scene by the name that a lesson has for it."""
