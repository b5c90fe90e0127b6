"""Replacements of a schema's text that a finding can offer, each leaving the text valid JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from engine.constraints.json_schema.document import child
from engine.errors import Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.constraints.json_schema.document import Document

_BLANK = " \t\n\r"


def offered(document: Document, change: Callable[..., Edit], pointers: Iterable[str], *values: Any) -> tuple[Edit, ...]:
    """Make a change at each of some pointers that are members or items of the text."""
    return tuple(change(document, pointer, *values) for pointer in pointers if pointer and pointer in document.spans)


def renamed(document: Document, pointer: str, name: str) -> Edit:
    """Give the member at a pointer another name."""
    span = document.keys[pointer]
    old = pointer.rpartition("/")[2]
    return Edit(f"Write '{name}' for '{old}'", span.start, span.stop, json.dumps(name))


def replaced(document: Document, pointer: str, value: Any) -> Edit:
    """Write another value at a pointer."""
    span, written = document.spans[pointer], json.dumps(value, ensure_ascii=False)
    return Edit(f"Write {written} at {pointer}", span.start, span.stop, written)


def removed(document: Document, pointer: str) -> Edit:
    """Take out the member or the item at a pointer, with the comma that would be too much."""
    start = document.keys[pointer].start if pointer in document.keys else document.spans[pointer].start
    return cut(document, start, document.spans[pointer].stop, f"Remove {pointer}")


def cut(document: Document, start: int, stop: int, label: str) -> Edit:
    """Take out a member or an item, with the comma that would be too much."""
    text = document.text
    behind = re.compile(r"\s*,\s*").match(text, stop)
    if behind:
        stop = behind.end()
    else:
        before = text[:start].rstrip(_BLANK)
        start = len(before) - 1 if before.endswith(",") else start
    return Edit(label, start, stop, "")


def added(document: Document, pointer: str, name: str, value: Any) -> Edit:
    """Add a member to the object at a pointer, behind the others."""
    stop = document.spans[pointer].stop - 1
    before = document.text[:stop].rstrip(_BLANK)
    comma = "" if before.endswith("{") else ", "
    member = f"{json.dumps(name)}: {json.dumps(value)}"
    return Edit(f"Add '{member}' at {pointer or 'the root'}", len(before), len(before), comma + member)


def drafted(document: Document, uri: str) -> Edit:
    """Name another draft in `$schema`."""
    pointer = child("", "$schema")
    if pointer in document.spans:
        return replaced(document, pointer, uri)
    stop = document.text.index("{") + 1
    comma = "" if document.text[stop:].lstrip(_BLANK).startswith("}") else ", "
    return Edit(f"Name the draft {uri}", stop, stop, f'"$schema": {json.dumps(uri)}{comma}')
