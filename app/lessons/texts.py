"""The lessons and the glossary as they are written: one TOML file a lesson, in the order of their names."""

from __future__ import annotations

import dataclasses
import re
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

    In its texts a blank line ends a paragraph, and `{name}` is a number of the scene, `{name%}` as a percentage,
    `{bet.name}` the same for the settings of the bet. `[[word|as written]]` is a link to the glossary; the files mark
    what needs marking, and a lesson that was read has a link where it first uses a word, and nowhere else.

    Attributes:
        name: by which links call it, such as `3`.
        title: its heading.
        scene: name of what it shows, one of `app.lessons.scenes.SCENES`.
        panels: of the debugger that it shows.
        text: what is to be understood, before the figure.
        controls: what may be moved: each with `name`, `kind` (`slider`, `choice`, `text`, `area`), `label`, `value`.
        bet: the question before the reveal: `question`, `kind` (`percent`, `choice`), `answer` (a number's name).
        reveal: the answer, shown after the bet, or when the puzzle is solved.
        solution: of a puzzle: what the controls may stand at to solve it, for whoever skips.
        formula: MathML, beside the figure and never instead of it.
        again: the same with numbers, for whoever asks.
        at: focus that the figure opens with.
        bars: probabilities as a table of bars: `rows`, `head` over them (`text` if it has none), and `columns` with
            `label`, `prefix` and `tone`.
    """

    name: str
    title: str
    scene: str
    panels: tuple[str, ...]
    text: str
    controls: tuple[Mapping[str, Any], ...] = ()
    bet: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    reveal: str = ""
    solution: Mapping[str, Any] = dataclasses.field(default_factory=dict)
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


_PLAIN = r"`[^`]*`|\{[^}]*\}"
_LINK = r"\[\[([A-Za-z][^\]|]*)(?:\|([^\]]+))?\]\]"


@cache
def lessons() -> tuple[Lesson, ...]:
    """Return all lessons in their order, each word of the glossary linked where a lesson first uses it."""
    written = tuple(_read(path) for path in sorted(FOLDER.glob("[0-9]*.toml")))
    forms = _forms(written)
    return tuple(_linked(lesson, forms) for lesson in written)


def _read(path: Path) -> Lesson:
    said = tomllib.loads(path.read_text(encoding="utf-8"))
    lists = {name: tuple(said.get(name, ())) for name in ("panels", "controls")}
    return Lesson(**{**said, **lists, "name": said.get("name", path.name.partition("-")[0].lstrip("0"))})


def _parts(lesson: Lesson) -> tuple[str, ...]:
    """Return a lesson's texts in the order that the page has them in."""
    return lesson.text, lesson.bet.get("question", ""), lesson.reveal, lesson.again


def _forms(written: tuple[Lesson, ...]) -> dict[str, str]:
    """Return the word that each way to write it stands for: its plural, and what the lessons link as it."""
    forms = {form: word for word in glossary() for form in (word, f"{word}s", re.sub("y$", "ies", word))}
    links = (link for lesson in written for part in _parts(lesson) for link in re.findall(_LINK, part))
    return forms | {shown: word for word, shown in links if shown}


def _linked(lesson: Lesson, forms: Mapping[str, str]) -> Lesson:
    longest_first = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    pattern = re.compile(rf"{_PLAIN}|{_LINK}|\b(?i:{longest_first})\b")
    known: set[str] = set()

    def once(found: re.Match[str]) -> str:
        whole, word, shown = found[0], found[1], found[2]
        as_written = shown or word or whole
        word = word or forms.get(whole) or forms.get(whole.lower())
        if word is None or word in known:
            return as_written
        known.add(word)
        return f"[[{word}|{as_written}]]"

    text, question, reveal, again = (pattern.sub(once, part) for part in _parts(lesson))
    bet = {**lesson.bet, "question": question} if lesson.bet else lesson.bet
    return dataclasses.replace(lesson, text=text, bet=bet, reveal=reveal, again=again)


@cache
def glossary() -> dict[str, str]:
    """Return what each word means, one line a word."""
    return tomllib.loads((FOLDER / "glossary.toml").read_text(encoding="utf-8"))
