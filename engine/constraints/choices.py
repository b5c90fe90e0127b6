"""One of a list of strings -> pattern with origins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ConfigError, Finding, Place
from engine.pattern import Chars, Concat, Origin, Pattern, Union

if TYPE_CHECKING:
    from collections.abc import Sequence


def parse(choices: Sequence[str]) -> tuple[Pattern, tuple[Finding, ...]]:
    """Read a list of choices, each taken literally; origins count characters of the choices joined by newlines.

    Raises:
        ConfigError: there is no choice, or one can't be written in UTF-8.
    """
    if not choices:
        raise ConfigError("There are no choices.", "Give at least one string.")
    parts: list[Pattern] = []
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
        if choice in choices[:n]:
            place = Place(text, start, start + len(choice))
            message = f"Choice {n + 1}, {choice!r}, is listed twice; the language is the same with one."
            findings.append(Finding("duplicate-choice", "info", place, message, ("Remove one of them.",)))
        start += len(choice) + 1
    return Union(tuple(parts)), tuple(findings)
