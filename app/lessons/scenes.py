"""What a lesson shows for a setting of its controls: runs of the real engine, and numbers read from them.

A scene is a function of its controls. Nothing here draws, and nothing is computed that the engine doesn't compute:
a probability is a log partition, a marginal is a recorded posterior.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from app import examples
from app.lessons import puzzles, recipes, seeds
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
MOST_TYPED = 6_000
"""Characters of a table and a constraint together: an address has to hold them."""
END = "<end>"
"""Name of the EOS of a typed table, whatever its author called it."""


@dataclass(frozen=True)
class Scene:
    """What is to be shown.

    Attributes:
        runs: ids of the runs, one or two side by side.
        numbers: what the text's places in braces stand for.
        said: a sentence about the controls, such as what was changed of what was typed; none where all is plain.
        at: where the focus goes, `step` and `position`.
        check: of a puzzle: what the diagnosis finds, and whether it is solved.
    """

    runs: tuple[str, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""
    at: Mapping[str, int] = field(default_factory=dict)
    check: Mapping[str, Any] = field(default_factory=dict)


def row(p: float) -> tuple[float, ...]:
    """Return one position's distribution: the dot has probability `p`, the ten digits share the rest."""
    return (*[(1 - p) / 10] * 10, p)


def reals(p: float, length: int = 2, **more: Any) -> Config:
    """Return the running example: a real number of `length` characters, every position with the same distribution."""
    return recipes.config(REALS, recipes.typed(SYMBOLS, [row(p)] * length), length, **more)


def partition(config: Config) -> float:
    """Return Z: the probability that an independent draw is accepted."""
    return math.exp(float(recipes.recorded(config).steps[0].log_partition))


def posterior(config: Config) -> np.ndarray:
    """Return float64 `[length vocab]`, the exact marginals of a recipe's first step at its masked positions."""
    trace = recipes.recorded(config)
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
    """Show both messages and their product at every boundary, or how they miss where certain dots leave nothing."""
    from engine.diagnosis import beliefs

    p, length = _chance(controls), _among(controls, "length", (1, 2, 4, 8, 16))
    certain = {"": (), "last": (length - 1,), "ends": (0, length - 1)}[
        _among(controls, "certain", ("", "last", "ends"))
    ]
    model = recipes.typed(SYMBOLS, [row(1.0 if i in certain else p) for i in range(length)])
    shown = recipes.config(REALS, model, length, sampler="independent")
    trace = recipes.recorded(shown)
    found = beliefs.of_step(trace, trace.steps[0])
    sums = np.exp(found.log_forward + found.log_backward).sum(axis=1)
    inner = {f"sum {b}": float(sums[b]) for b in range(length + 1)}
    log_z = float(trace.steps[0].log_partition)
    z = math.exp(log_z)
    same, grows = np.allclose(sums, z, rtol=1e-5), sums[-1] > sums[0]
    trend = "It stays the same" if same else "It grows" if grows else "It shrinks"
    known = {"p": p, "length": length, "z": z, "log z": log_z, "trend": trend}
    said = "" if z else "Z is 0: no text is left, and the fronts miss each other. Can you see where?"
    return Scene((recipes.write(shown),), {**known, **inner}, said)


def midpoints(controls: Mapping[str, Any]) -> Scene:
    """Show the tree of midpoints, and that its path has the probability that a draw from left to right gives it."""
    length = _among(controls, "length", (8, 64, 256))
    shown = reals(0.1, length)
    trace = recipes.recorded(shown)
    numbers = {
        **{f"rounds {n}": rounds(n) for n in (8, 64, 256)},
        "length": length,
        "rounds": rounds(length),
        "by tree": float(np.nansum(trace.steps[0].midpoint_log_probability, dtype=np.float64)),
        "by chain": _chain_log_probability(trace),
    }
    middle = length // 2
    return Scene((recipes.write(shown),), numbers, at={"position": middle, "node": middle})


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


def denoise(controls: Mapping[str, Any]) -> Scene:
    """Show a recorded run of the embedded model."""
    del controls
    name = "example:call-json"
    trace = examples.load(name)
    assert trace is not None  # recorded with the project
    z = np.exp([float(step.log_partition) for step in trace.steps])
    numbers = {
        "steps": len(trace.steps),
        "positions": trace.header.config.length,
        "prompt": trace.header.config.prompt,
        "settled": settled(trace),
        "text": trace.text,
        "first log z": float(trace.steps[0].log_partition),
        "first z": float(z[0]),
        "third z": float(z[2]),
        "middle z": float(z[len(z) // 2]),
        "last z": float(z[-1]),
    }
    return Scene((name,), numbers)


def settled(trace: Trace) -> int:
    """Return the first step from which on every joint draw is the run's final text."""
    final = trace.canvas
    differs = [t for t, step in enumerate(trace.steps) if (step.drawn != final).any()]
    return differs[-1] + 1 if differs else 0


QUOTED = '"(yes|no)"'
"""A quoted answer: the quotes are forced, the word between them is a choice of two."""
WORDS = ('"', "yes", "no", "maybe")
BELIEFS = ((0.30, 0.25, 0.25, 0.20), (0.02, 0.02, 0.01, 0.95), (0.60, 0.10, 0.10, 0.20))
"""The first quote is unsure, the word is sure of what is forbidden, the last quote is fairly sure."""


def quoted(confidence: str) -> Config:
    """Return a run of three tokens whose confidence is the lead of the favourite over the second (`topk_margin`)."""
    model = recipes.typed(WORDS, BELIEFS)
    more: dict[str, Any] = {"steps": 2, "temperature": 0.0, "remasking": "topk_margin"}
    return recipes.config(QUOTED, model, 3, confidence=confidence, **more)


def remask(controls: Mapping[str, Any]) -> Scene:
    """Show one toy under both confidences, and what many seeds of the embedded model came to."""
    del controls
    first = {name: recipes.recorded(quoted(name)).steps[0] for name in ("mar", "mf")}
    numbers: dict[str, Any] = {
        f"{name} first": WORDS[int(step.drawn[step.committed][0])] for name, step in first.items()
    }
    step = first["mar"]
    for i, place in enumerate(("quote", "word", "end")):
        numbers |= {f"mf {place}": float(step.confidence_mf[i]), f"mar {place}": float(step.confidence_mar[i])}
    return Scene(tuple(recipes.write(quoted(name)) for name in ("mar", "mf")), {**numbers, **seeds.numbers()})


def fix(name: str, controls: Mapping[str, Any]) -> Scene:
    """Show what the debugger's own check says about an attempt at a puzzle, and its run where it could run."""
    puzzle = puzzles.PUZZLES[name]
    source, length = str(controls["source"]), controls.get("length", puzzle.fixed_length)
    low, high = puzzles.LENGTHS
    if isinstance(length, bool) or not isinstance(length, int) or not low <= length <= high:
        raise ConfigError(f"The length is {length!r}.", f"Choose one from {low} to {high}.")
    if len(source) > puzzles.MOST_CHARACTERS:
        raise ConfigError(f"The constraint has {len(source)} characters.", "A shorter one is enough here.")
    found = puzzles.attempt(puzzle, source, length)
    runs = (recipes.write(found.config),) if found.config else ()
    return Scene(runs, {"length": length}, check=puzzles.plain(found, puzzle))


def own(controls: Mapping[str, Any]) -> Scene:
    """Show a mean field that was typed in, under a constraint that was typed in."""
    from engine.models import table

    text, source = str(controls["table"]).strip(), str(controls["source"])
    if len(text) + len(source) > MOST_TYPED:
        raise ConfigError(f"This is {len(text) + len(source):,} characters.", f"Keep it under {MOST_TYPED:,}.")
    typed = table.parse(text, "Your table", as_csv=not text.startswith("{"))
    vocabulary = typed.vocabulary
    tokens = [
        None if v in vocabulary.eos_ids else (vocabulary.written(v) or b"").decode() for v in range(vocabulary.size)
    ]
    eos = next((END for token in tokens if token is None), None)
    written = {"tokens": [token or END for token in tokens], "eos": eos, "steps": typed.mean_field.tolist()}
    steps, length, _ = typed.mean_field.shape
    config = recipes.config(source, recipes.TABLE + json.dumps(written, ensure_ascii=False), length, steps=steps)
    z = partition(config)
    scaled = typed.facts["rows_normalised"]
    said = "The rows don’t sum to 1; each was divided by its sum." if scaled else "Every row sums to 1."
    return Scene(
        (recipes.write(config),), {"z": z, "log z": math.log(z), "length": length, "tokens": len(tokens)}, said
    )


SCENES: dict[str, Callable[[Mapping[str, Any]], Scene]] = {
    "walk": walk,
    "model": model,
    "marginals": marginals,
    "memory": memory,
    "meet": meet,
    "midpoints": midpoints,
    "denoise": denoise,
    "remask": remask,
    **{f"fix {name}": partial(fix, name) for name in puzzles.PUZZLES},
    "own": own,
}
"""Every scene by the name that a lesson has for it."""
