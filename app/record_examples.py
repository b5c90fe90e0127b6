"""Record the gallery anew: `python -m app.record_examples` runs the real engine and writes traces and manifest."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from app import examples
from app.lessons import seeds
from engine import decode, preparation, trace_file
from engine.tasks import TASKS
from engine.trace import Config, Trace


@dataclass(frozen=True)
class Recipe:
    """An example to be: its card, the configuration of its run, and what a second run beside it changes.

    Attributes:
        name: of the card and of the files.
        title: of the card.
        what: one sentence, what there is to see.
        config: of the first run.
        beside: fields that the second run changes; None for a single run.
        step: that it opens at.
        position: that it opens at; None for the one that the constraint moves most at that step.
        failure: class of the failure that it shows.
    """

    name: str
    title: str
    what: str
    config: Config
    beside: dict[str, object] | None = None
    step: int = 0
    position: int | None = None
    failure: str = ""


def _task(name: str, **changes: object) -> Config:
    task = next(task for task in TASKS if task.name == name)
    config = Config(
        prompt=task.prompt,
        kind=task.kind,
        source=task.source,
        length=task.length,
        steps=task.steps,
        block_length=task.length,
        temperature=1.0,
    )
    return dataclasses.replace(config, **changes)  # type: ignore[arg-type]


_REAL = Config(
    prompt="",
    kind="regex",
    source=r"[0-9]+(\.[0-9]*)?|\.[0-9]+",
    model="table:assets/tables/real_number.json",
    length=2,
    steps=1,
    block_length=2,
    temperature=1.0,
    seed=1,
)


_TIME = Config(
    prompt="",
    kind="regex",
    source="([01][0-9]|2[0-3]):[0-5][0-9]",
    model="table:assets/tables/time.json",
    length=5,
    steps=5,
    block_length=5,
    sampler="independent",
    confidence="mf",
)
KEPT_VOCABULARY = 64
"""Recordings over at most this many tokens keep their mean fields, so that forks of them need no model."""


def recipes() -> tuple[Recipe, ...]:
    """Return the gallery in its order; the page opens with the first."""
    return (
        Recipe(
            "call-json",
            "A function call in JSON",
            "Sixteen steps to one spelling of a call; watch the trellis thin out as positions commit.",
            _task("call-json"),
            step=5,
        ),
        Recipe(
            "two-dots",
            "Two characters, one rule",
            "A real number of two characters. The dot has probability .9 at both positions: independent "
            "draws write “..”, which is no number; the constrained draw never does.",
            _REAL,
            {"sampler": "independent"},
        ),
        Recipe(
            "no-such-hour",
            "An hour that does not exist",
            "A time of day, written without heeding its rule: the model likes 2 and then 7. Press h for the step at "
            "which no time was left, e to pin another token there, and see the fork succeed.",
            _TIME,
            position=0,
        ),
        Recipe(
            "right-marginals",
            "Right marginals, wrong joint",
            "The same number, each position restricted by itself to what some completion allows: both "
            "dots are allowed, and together they are not.",
            _REAL,
            {"sampler": "local"},
        ),
        Recipe(
            "mf-mar",
            "Mf against Mar",
            "One call, one seed, two confidences: Mar commits what the constraint forces, Mf what the "
            "model likes, and runs out of room for an argument. Press v for the first step at which they part.",
            _task("call-json", seed=1),
            {"confidence": "mf"},
            step=3,
        ),
        Recipe(
            "call-python",
            "A Python call, and without its constraint",
            "Six steps for 24 positions. Beside it each position is drawn by itself, and the spellings that the "
            "model knows get mixed.",
            _task("call-python", steps=6, seed=1),
            {"sampler": "independent", "confidence": "mf"},
            step=2,
        ),
        *(
            Recipe(task.name, task.title, task.what, _task(task.name), step=task.steps // 3)
            for task in TASKS
            if task.name not in ("call-json", "call-schema", "call-python")
        ),
        *failures(),
    )


def failures() -> tuple[Recipe, ...]:
    """Return the runs that went wrong, each in a way that the findings name; what can't run is in `forms.json`."""
    exact = {"sampler": "midpoint", "confidence": "mar", "temperature": 1.0}
    either = "2[0-3]:[0-5][0-9]|[01][0-9]:[0-5][0-9]"
    blanks = Config("", "regex", r"\{ *a *\}", "table:assets/tables/blanks.json", 16, 16, 16, temperature=1.0)
    return (
        Recipe(
            "little-belief",
            "An hour that the model does not believe in",
            "The answer is accepted, and the model gave all accepted ones 8 % of its belief: diagnose the run for "
            "where the rest was lost, and for what it wanted there.",
            dataclasses.replace(_TIME, **exact),  # type: ignore[arg-type]
            position=1,
            failure="C7",
        ),
        Recipe(
            "blanks",
            "A run that stays in the blanks",
            "Nothing bounds the blanks, and the model is fond of them: most of the canvas goes there.",
            blanks,
            step=2,
            failure="C8",
        ),
        Recipe(
            "other-branch",
            "The other branch won",
            "An evening had two thirds of the belief, and the draw took a morning: which commit decided, and a way to "
            "leave that branch out.",
            dataclasses.replace(_TIME, source=either, seed=2, **exact),  # type: ignore[arg-type]
            failure="C10",
        ),
    )


def record(config: Config) -> Trace:
    """Run a configuration to its end; a large mean field is left out, so that the file stays small."""
    denoiser, header = preparation.prepare(config)
    # The first step of a process also loads compiled kernels, which is not what its time is about.
    next(decode.denoise(denoiser, header.automaton, header.config))
    steps = tuple(decode.denoise(denoiser, header.automaton, header.config))
    if header.vocabulary.size > KEPT_VOCABULARY:
        steps = tuple(dataclasses.replace(step, log_mean_field=None) for step in steps)
    return Trace(header, steps)


def most_moved(recorded: Trace, step: int) -> int:
    """Return the masked position whose distribution the constraint moves most at a step."""
    record = recorded.steps[step]
    masked = record.canvas == recorded.header.vocabulary.mask_id
    return int(np.argmax(np.where(masked & np.isfinite(record.kl), record.kl, -1)))


def save(recipe: Recipe, folder: Path, console: Console) -> examples.Example:
    """Record one recipe into a folder and return its card."""
    configs = {f"{recipe.name}.trace": recipe.config}
    if recipe.beside is not None:
        beside = dataclasses.replace(recipe.config, **recipe.beside)  # type: ignore[arg-type]
        configs[f"{recipe.name}-beside.trace"] = beside
    traces = {file: record(config) for file, config in configs.items()}
    for file, recorded in traces.items():
        trace_file.save(recorded, folder / file)
        size = (folder / file).stat().st_size / 1024
        verdict = "accepted" if recorded.accepted else "not accepted"
        said = f"{file}: {size:.0f} KiB, {verdict}: {recorded.text!r}"
        console.print(said, markup=False, soft_wrap=True)
    position = recipe.position
    if position is None:
        position = most_moved(next(iter(traces.values())), recipe.step)
    card = examples.Example(recipe.name, recipe.title, recipe.what, tuple(traces), recipe.step, position)
    return dataclasses.replace(card, failure=recipe.failure)


def main(folder: Path = examples.FOLDER) -> None:
    """Record every recipe into a folder; with the gallery also what the lessons say of many seeds."""
    console = Console(stderr=True)
    folder.mkdir(parents=True, exist_ok=True)
    cards = [dataclasses.asdict(save(recipe, folder, console)) for recipe in recipes()]
    kept = {file for card in cards for file in card["files"]}
    for path in folder.glob("*.trace"):
        if path.name not in kept:
            path.unlink()
    manifest = json.dumps(cards, indent=1, ensure_ascii=False)
    (folder / "manifest.json").write_text(manifest + "\n", encoding="utf-8")
    if folder == examples.FOLDER:
        seeds.record()


if __name__ == "__main__":
    main()
