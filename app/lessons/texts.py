"""The lessons and the glossary as they are written: one TOML file a lesson, in the order of their names."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "text"


@dataclass(frozen=True)
class Lesson:
    """One step of the lessons.

    In its texts a blank line ends a paragraph, `[[word]]` or `[[word|as written]]` is a word of the glossary, and
    `{name}` is a number of the scene, `{name%}` as a percentage, `{bet.name}` the same for the settings of the bet.

    Attributes:
        name: by which links call it, such as `3`.
        title: its heading.
        scene: name of what it shows, one of `app.lessons.scenes.SCENES`.
        panels: of the debugger that it shows.
        text: what is to be understood, before the figure.
        controls: what may be moved: each with `name`, `kind` (`slider`, `choice`, `text`, `area`), `label`, `value`.
        bet: the question before the reveal: `question`, `kind` (`percent`, `choice`), `answer` (a number's name).
        reveal: the answer, shown after the bet.
        formula: MathML, beside the figure and never instead of it.
        again: the same with numbers, for whoever asks.
        at: focus that the figure opens with.
        bars: probabilities as a table of bars: `rows`, and `columns` with `label`, `prefix` and `tone`.
    """

    name: str
    title: str
    scene: str
    panels: tuple[str, ...]
    text: str
    controls: tuple[Mapping[str, Any], ...] = ()
    bet: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reveal: str = ""
    formula: str = ""
    again: str = ""
    at: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    bars: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What the controls stand at first."""
        return {control["name"]: control["value"] for control in self.controls}

    @property
    def bet_settings(self) -> dict[str, Any]:
        """What the controls stand at in the question."""
        return {**self.settings, **self.bet.get("at", {})}


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in their order."""
    return tuple(_read(path) for path in sorted(FOLDER.glob("[0-9]*.toml")))


def _read(path: Path) -> Lesson:
    said = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(said.get(name, ())) for name in ("panels", "controls")}
    return Lesson(**{**said, **lists, "name": said.get("name", path.name.partition("-")[0].lstrip("0"))})


@cache
def glossary() -> dict[str, str]:
    """Return what each word means, one line a word."""
    return tomllib.loads((FOLDER / "glossary.toml").read_text(encoding="utf-8"))
