"""One of a list of strings -> pattern with origins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ConfigError, Finding, Place, SizeError
from engine.pattern import Chars, Concat, Origin, Pattern, Union

if TYPE_CHECKING:
    from collections.abc import Sequence

CHARACTER_LIMIT = 150_000
"""Characters of all choices together; each is a leaf of the automaton."""


def parse(choices: Sequence[str]) -> tuple[Pattern, tuple[Finding, ...]]:
    """Read a list of choices, each taken literally; origins count characters of the choices joined by newlines.

    Raises:
        ConfigError: there is no choice, or one can't be written in UTF-8.
        SizeError: there is too much text in them.
    """
    if not choices:
        raise ConfigError("There are no choices.", "Give at least one string.")
    length = sum(map(len, choices))
    if length > CHARACTER_LIMIT:
        raise SizeError(
            f"The {len(choices):,} choices have {length:,} characters together; the limit is {CHARACTER_LIMIT:,}.",
            "Leave some out, or describe them with a regular expression.",
        )
    parts: list[Pattern] = []
    known: set[str] = set()
    findings: list[Finding] = []
    text = "\n".join(choices)
    start = 0
    for n, choice in enumerate(choices):
        try:
            choice.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"Choice {n + 1} has a lone surrogate at character {error.start}, which no UTF-8 text can hold.",
                "Remove it.",
            ) from error
        leaves = [Chars(((ord(c), ord(c)),), Origin(start + i, start + i + 1)) for i, c in enumerate(choice)]
        parts.append(Concat(tuple(leaves)))
        if choice in known:
            place = Place(text, start, start + len(choice))
            message = f"Choice {n + 1}, {choice!r}, is listed twice; the language is the same with one."
            findings.append(Finding("duplicate-choice", "info", place, message, ("Remove one of them.",)))
        known.add(choice)
        start += len(choice) + 1
    return Union(tuple(parts)), tuple(findings)
