"""Mistakes that a user can mend; anything else is a bug and surfaces as one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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

    def plain(self) -> dict[str, Any]:
        """Return the place as data for JSON, without the source."""
        place = {"line": self.line, "column": self.column, "start": self.start, "stop": self.stop}
        return place if self.pointer is None else {**place, "pointer": self.pointer}

    def frame(self, width: int = 76) -> str:
        """Return the faulty line with carets under the span, cut to `width` characters around it, `…` for the rest."""
        line_start = self.source.rfind("\n", 0, self.start) + 1
        line_stop = self.source.find("\n", self.start)
        text = self.source[line_start : line_stop if line_stop >= 0 else len(self.source)]
        # A control character would shift the carets; each becomes one visible character.
        text = "".join(c if c.isprintable() else "·" for c in text)
        left = self.start - line_start
        carets = max(1, min(self.stop, line_start + len(text)) - self.start)
        # What stands in front of the span makes room for its end.
        cut = max(0, left - width // 2, min(left - 1, left + carets + 1 - width))
        shown = text[cut : cut + width]
        if cut:
            shown = f"…{shown[1:]}"
        if cut + width < len(text):
            shown = f"{shown[:-1]}…"
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


def together(source: str, edits: Iterable[Edit], label: str) -> Edit:
    """Make several replacements, none inside another, in one."""
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.stop))
    text, at = "", ordered[0].start
    for edit in ordered:
        text, at = text + source[at : edit.start] + edit.text, edit.stop
    return Edit(label, ordered[0].start, at, text)


@dataclass(frozen=True)
class Remedy:
    """A change of a run's configuration that was tried: with it the finding is gone.

    Attributes:
        label: what it does, for a button.
        changes: fields of `engine.trace.Config` with their new values.
    """

    label: str
    changes: Mapping[str, Any]


@dataclass(frozen=True)
class Focus:
    """What to look at in a run; None where that is left open."""

    step: int | None = None
    position: int | None = None
    state: int | None = None


@dataclass(frozen=True)
class Finding:
    """Something about a constraint or a run that its author should know.

    Attributes:
        code: stable name of the kind of finding.
        severity: `info`, `warning`, or `error` where the run can't start or didn't keep the constraint.
        where: the place in the source, if it has one.
        message: one sentence.
        fixes: what to write instead, if anything; sentences.
        accepts: `as written`; or `too much` or `too little`, where the language is not the one that was written.
        edits: replacements that can be applied to the source, ways to do what `fixes` says.
        related: further places that belong to it, such as the other side of a conflict.
        focus: where in a run it is to be seen.
        evidence: what was computed, as data for JSON.
        remedies: changes that are known to mend it, the best first.
        untried: how many changes might mend it of which that was not determined, as it takes too much work.
    """

    code: str
    severity: Literal["info", "warning", "error"]
    where: Place | None
    message: str
    fixes: tuple[str, ...] = ()
    accepts: Literal["as written", "too much", "too little"] = "as written"
    edits: tuple[Edit, ...] = ()
    related: tuple[Place, ...] = ()
    focus: Focus = Focus()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    remedies: tuple[Remedy, ...] = ()
    untried: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the finding as data for JSON."""
        return {
            "code": self.code,
            "severity": self.severity,
            "where": self.where.plain() if self.where else None,
            "message": self.message,
            "fixes": list(self.fixes),
            "accepts": self.accepts,
            "edits": [asdict(edit) for edit in self.edits],
            "related": [place.plain() for place in self.related],
            "focus": asdict(self.focus),
            "evidence": dict(self.evidence),
            "remedies": [{"label": remedy.label, "changes": dict(remedy.changes)} for remedy in self.remedies],
            "untried": self.untried,
        }


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
    """A pinned token can't be placed, or contradicts the constraint.

    Attributes:
        positions: of the pins that can't stand together.
    """

    def __init__(self, problem: str, remedy: str, place: Place | None = None, positions: tuple[int, ...] = ()) -> None:
        self.positions = positions
        super().__init__(problem, remedy, place)


class ForkError(InputError):
    """A fork changes something that its parent does not have, or that a fork can't change."""


class BreakpointError(InputError):
    """A breakpoint's text does not parse."""


class CompareError(InputError):
    """The runs can't be aligned."""


class ModelError(InputError):
    """There is no such model, or it can't be used."""


class TraceError(InputError):
    """The file is not a trace, is damaged, or was written by a newer version."""
