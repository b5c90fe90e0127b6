"""Several constraints at once: all of some, and none of others -> pattern with the origins of all.

Written in JSON, so that every part stands in one text: `[{"kind": "regex", "source": "[a-z]+"},
{"kind": "choices", "source": ["if", "for"], "but_not": true}]`. A part may have `options`, and may be of this kind too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from engine import constraints
from engine.constraints.json_schema import document
from engine.errors import ConfigError, Finding, InputError, Place
from engine.pattern import Complement, Intersection, Origin, Pattern, moved

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.constraints.json_schema.document import Document

_TURNED: dict[str, Literal["as written", "too much", "too little"]] = {
    "as written": "as written",
    "too much": "too little",
    "too little": "too much",
}
_FORM = 'Give a list of objects with "kind" and "source", and "but_not": true where a part is what is not wanted.'


def parse(source: Any) -> tuple[str, Pattern, tuple[Finding, ...]]:
    """Read a list of constraints, as JSON text or as a list.

    Returns:
        The text that origins point into, the pattern of what all the parts allow, and the findings of all.

    Raises:
        InputError: the list or a part of it can't be read; says where.
    """
    written = document.read(source)
    if not isinstance(written.value, list) or not written.value:
        raise ConfigError("There is no list of constraints.", _FORM)
    parts: list[Pattern] = []
    findings: list[Finding] = []
    for number, part in enumerate(written.value):
        pattern, found = _part(written, number, part)
        parts.append(pattern)
        findings += found
    whole = written.origin("")
    return written.text, Intersection(tuple(parts), Origin(whole.start, whole.stop)), tuple(findings)


def _part(written: Document, number: int, part: Any) -> tuple[Pattern, list[Finding]]:
    pointer = f"/{number}"
    named = isinstance(part, dict) and {"kind", "source"} <= part.keys() <= {"kind", "source", "but_not", "options"}
    if not named or not isinstance(part.get("but_not", False), bool) or not isinstance(part.get("options", {}), dict):
        raise ConfigError(f"Part {number + 1} of the list is not a constraint.", _FORM, written.place(pointer))
    text, outside = _source(written, f"{pointer}/source", part["source"], part["kind"])

    def placed(place: Place | None) -> Place | None:
        return Place(written.text, *outside(place.start, place.stop), f"{pointer}/source") if place else None

    try:
        constraint = constraints.read(part["kind"], text, **part.get("options", {}))
    except InputError as error:
        raise type(error)(f"Part {number + 1}: {error.problem}", error.remedy, placed(error.place)) from error
    findings = [_moved_finding(finding, placed) for finding in constraint.findings]
    # Keywords, which stand nowhere, have an empty place.
    pattern = moved(constraint.pattern, lambda o: Origin(*outside(o.start, o.stop), pointer) if o.stop else o)
    if not part.get("but_not"):
        return pattern, findings
    span = written.origin(pointer)
    # What a part leaves out is let in where the part is what is not wanted.
    turned = [replace(finding, accepts=_TURNED[finding.accepts]) for finding in findings]
    return Complement(pattern, Origin(span.start, span.stop, pointer)), turned


def _moved_finding(finding: Finding, placed: Callable[[Place | None], Place | None]) -> Finding:
    related = tuple(place for place in map(placed, finding.related) if place)
    return replace(finding, where=placed(finding.where), related=related, edits=())


_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)


def _source(
    written: Document, pointer: str, value: Any, kind: Any
) -> tuple[Any, Callable[[int, int], tuple[int, int]]]:
    """Return what a part is read from, and the function from a span of its text to the span of the list's text."""
    if isinstance(value, str):
        positions = _positions(written, pointer)
    elif kind == "choices" and isinstance(value, list) and all(isinstance(choice, str) for choice in value):
        # Choices are one text, joined by newlines.
        positions = [at for n in range(len(value)) for at in _positions(written, f"{pointer}/{n}")]
    else:
        span = written.origin(pointer)
        positions = list(range(span.start, span.stop + 1))
        # What is written in JSON may stand there as itself; nothing else is JSON's text.
        value = value if kind in ("choices", "grammar", "regex") else written.text[span.start : span.stop]
    last = len(positions) - 1
    return value, lambda start, stop: (positions[min(start, last)], positions[min(stop, last)])


def _positions(written: Document, pointer: str) -> list[int]:
    """Return where each character of a string stands in the text, escapes in mind, and where it ends."""
    span = written.origin(pointer)
    inside = _CHARACTER.finditer(written.text, span.start + 1, span.stop - 1)
    return [*(found.start() for found in inside), span.stop - 1]
