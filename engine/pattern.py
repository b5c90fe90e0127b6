"""The syntax tree that every constraint language is read into; each leaf knows where in the source it stands."""

from __future__ import annotations

from dataclasses import dataclass, field

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint, inclusive ranges of code points."""

ANY: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""Every code point that UTF-8 can write: all but the surrogates."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A span `[start, stop)` of the source text, in characters.

    For a list of choices the source is the choices joined by newlines.
    """

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set; an empty set matches nothing."""

    ranges: Ranges
    origin: Origin


@dataclass(frozen=True, slots=True)
class Concat:
    """The parts one after the other; without parts the empty string."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """One of the parts; without parts nothing at all."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body `least` to `most` times; `most` is None for no limit."""

    body: Pattern
    least: int
    most: int | None
    origin: Origin = field(default=Origin(0, 0))


@dataclass(frozen=True, slots=True)
class Look:
    """A condition on the text around a place; it consumes nothing.

    Ahead: some prefix of the rest is in the body. Behind: some suffix of what was read is. `negative` turns it round.
    """

    body: Pattern
    ahead: bool
    negative: bool


Pattern = Chars | Concat | Union | Repeat | Look

EMPTY = Concat(())


def sequence(parts: list[Pattern]) -> Pattern:
    """Concatenate; a single part is itself."""
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def alternatives(parts: list[Pattern]) -> Pattern:
    """Unite; a single part is itself."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def looks(pattern: Pattern) -> bool:
    """Whether any look-around stands in the pattern."""
    match pattern:
        case Look():
            return True
        case Concat(parts) | Union(parts):
            return any(looks(part) for part in parts)
        case Repeat(body):
            return looks(body)
        case _:
            return False
