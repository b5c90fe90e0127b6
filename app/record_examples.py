"""Record the gallery anew: `python -m app.record_examples` runs the real engine and writes traces and manifest."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from app import examples
from engine import decode, trace
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
        position: that it opens at.
    """

    name: str
    title: str
    what: str
    config: Config
    beside: dict[str, object] | None = None
    step: int = 0
    position: int = 0


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


def recipes() -> tuple[Recipe, ...]:
    """Return the gallery in its order; the page opens with the first."""
    return (
        Recipe(
            "call-json",
            "A function call in JSON",
            "Sixteen steps to one spelling of a call; watch the trellis thin out as positions commit.",
            _task("call-json"),
            step=5,
            position=6,
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
            "model likes. Press v for the first step at which they part.",
            _task("call-schema"),
            {"confidence": "mf"},
            step=3,
        ),
        Recipe(
            "call-python",
            "A Python call, and without its constraint",
            "Beside it every position is drawn by itself: spellings that the model knows get mixed.",
            _task("call-python"),
            {"sampler": "independent"},
            step=2,
        ),
        *(
            Recipe(task.name, task.title, task.what, _task(task.name), step=-1)
            for task in TASKS
            if task.name not in ("call-json", "call-schema", "call-python")
        ),
    )


def record(config: Config) -> Trace:
    """Run a configuration to its end; the mean field itself is left out, so that the file stays small."""
    denoiser, header = decode.prepare(config)
    steps = decode.denoise(denoiser, header.automaton, header.config)
    return Trace(header, tuple(dataclasses.replace(s, log_mean_field=None) for s in steps))


def main(folder: Path = examples.FOLDER) -> None:
    """Record every recipe into a folder."""
    console = Console(stderr=True)
    folder.mkdir(parents=True, exist_ok=True)
    cards = []
    for recipe in recipes():
        configs = [recipe.config]
        if recipe.beside is not None:
            configs.append(dataclasses.replace(recipe.config, **recipe.beside))  # type: ignore[arg-type]
        files = []
        for config, suffix in zip(configs, ("", "-beside"), strict=False):
            recorded = record(config)
            files.append(f"{recipe.name}{suffix}.trace")
            trace.save(recorded, folder / files[-1])
            size = (folder / files[-1]).stat().st_size / 1024
            verdict = "accepted" if recorded.accepted else "not accepted"
            console.print(
                f"{files[-1]}: {size:.0f} KiB, {verdict}: {recorded.text!r}",
                markup=False,
                soft_wrap=True,
            )
        card = examples.Example(recipe.name, recipe.title, recipe.what, tuple(files), recipe.step, recipe.position)
        cards.append(dataclasses.asdict(card))
    manifest = json.dumps(cards, indent=1, ensure_ascii=False)
    (folder / "manifest.json").write_text(manifest + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
