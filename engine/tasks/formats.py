"""Values asked for in one format: dates, amounts, addresses, phone numbers, colours, times, mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.tasks.problem import Family, Problem, from_corpus

if TYPE_CHECKING:
    from engine.training.corpus import Example

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
PATTERNS = {
    "iso date": "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "grouped": r"[0-9]{1,3}(,[0-9]{3})*\.[0-9]{2}",
    "url with port": rf"http://{_OCTET}(\.{_OCTET}){{3}}:[0-9]+",
    "parentheses": r"\([0-9]{3}\) [0-9]{3}-[0-9]{4}",
    "hex": "#[0-9a-f]{6}",
    "24 hours": "([01][0-9]|2[0-3]):[0-5][0-9]",
    "link": r"mailto:[a-z]+@[a-z]+\.(com|org|net|io|de)",
}
"""The spelling that each kind of value is asked for in, as a regex."""


def _problem(example: Example) -> Problem:
    asked = next(name for name in PATTERNS if name in example.spellings)
    others = tuple(example.spellings.values())
    return Problem(example.prompt, "regex", PATTERNS[asked], example.spellings[asked], others)


def is_right(problem: Problem, text: str) -> bool:
    """Tell whether a text is the value in any of its formats."""
    return text in problem.others


FAMILIES = (Family("format", "Values in one of their formats", 24, from_corpus("format", _problem), is_right),)
