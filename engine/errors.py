"""Mistakes that a user can mend; anything else is a bug and surfaces as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Place:
    """Where in a source text a mistake is.

    Attributes:
        source: the whole text that the user wrote.
        start: first character of the faulty span, 0-based.
        stop: one past its last character; `start` for a point between characters.
        pointer: the JSON pointer of the part, where the source is JSON.
    """

    source: str
    start: int
    stop: int
    pointer: str | None = None

    @property
    def line(self) -> int:
        """Line number, 1-based."""
        return self.source.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Column in that line, 1-based, in characters."""
        return self.start - (self.source.rfind("\n", 0, self.start) + 1) + 1

    def frame(self, width: int = 76) -> str:
        """Return the faulty line with carets under the span, cut to `width` characters around it."""
        line_start = self.source.rfind("\n", 0, self.start) + 1
        line_stop = self.source.find("\n", self.start)
        text = self.source[line_start : line_stop if line_stop >= 0 else len(self.source)]
        # A control character would shift the carets; each becomes one visible character.
        text = "".join(c if c.isprintable() else "·" for c in text)
        left = self.start - line_start
        cut = max(0, left - width // 2)
        carets = max(1, min(self.stop, line_start + len(text)) - self.start)
        shown = text[cut : cut + width]
        carets = max(1, min(carets, len(shown) - (left - cut)))
        return f"  {shown}\n  {' ' * (left - cut)}{'^' * carets}"


@dataclass(frozen=True)
class Edit:
    """A replacement of the characters `[start, stop)` of a source text.

    Attributes:
        label: what it does, for a button.
        start: first character replaced.
        stop: one past the last.
        text: what stands there instead.
    """

    label: str
    start: int
    stop: int
    text: str

    def apply(self, source: str) -> str:
        """Return the source with the replacement made."""
        return source[: self.start] + self.text + source[self.stop :]


@dataclass(frozen=True)
class Finding:
    """Something about a constraint that its author should know, and that is no reason to refuse it.

    Attributes:
        code: stable name of the kind of finding.
        severity: `info` or `warning`.
        where: the place in the source.
        message: one sentence.
        fixes: what to write instead, if anything; sentences.
        accepts: `as written`; or `too much` or `too little`, where the language is not the one that was written.
        edits: replacements that can be applied to the source, ways to do what `fixes` says.
    """

    code: str
    severity: Literal["info", "warning"]
    where: Place
    message: str
    fixes: tuple[str, ...] = ()
    accepts: Literal["as written", "too much", "too little"] = "as written"
    edits: tuple[Edit, ...] = ()


class InputError(ValueError):
    """A mistake in what the user asked for: what is wrong, then what to do about it.

    Attributes:
        problem: what is wrong, with the value, the place and the limit; one sentence.
        remedy: what to do; one sentence.
        place: where in the user's source text, if it is there.
    """

    def __init__(self, problem: str, remedy: str, place: Place | None = None) -> None:
        self.problem = problem
        self.remedy = remedy
        self.place = place
        frame = f"\n{place.frame()}\n" if place else " "
        super().__init__(f"{problem}{frame}{remedy}")


class PatternSyntaxError(InputError):
    """The constraint's text does not parse."""


class NotRegularError(InputError):
    """The constraint uses a construct that no finite automaton can decide."""


class EmptyLanguageError(InputError):
    """The constraint accepts nothing at all, or nothing that fits the canvas and its pins."""


class ApproximationError(InputError):
    """Under `strict`, the constraint can only be enforced approximately."""


class SizeError(InputError):
    """The constraint's automaton would pass the state budget."""


class ConfigError(InputError):
    """A setting of the run is out of its range or contradicts another."""


class PinError(InputError):
    """A pinned token can't be placed, or contradicts the constraint."""


class ModelError(InputError):
    """There is no such model, or it can't be used."""


class TraceError(InputError):
    """The file is not a trace, is damaged, or was written by a newer version."""
