"""The named, nested parts of a constraint's source, which the states of a large automaton are gathered by.

Spans count characters and are half open, as `engine.pattern.Origin` has them. A source that can't be cut up, or is of a
kind that has no parts, is one part.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# What is never closed ends with the text, so that each is read once.
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_REGEX = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?|[()|]", re.DOTALL)
_RULE = re.compile(r"^[ \t]*(?:%(?:override|extend)[ \t]+)?[?!]*(\w+)(?:\{[^}\n]*\})?(?:\.-?\d+)?[ \t]*:", re.MULTILINE)
_TABLE = re.compile(r"\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?([^\s(]+)", re.IGNORECASE)
_LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True)
class Section:
    """A part of a source.

    Attributes:
        name: a JSON pointer, the name of a rule or a table, or what stands there.
        start: of its span.
        stop: of its span.
        parts: inside it, in the order of the source.
    """

    name: str
    start: int
    stop: int
    parts: tuple[Section, ...] = ()


def of_source(kind: str | None, source: str | tuple[str, ...] | None) -> Section:
    """Return the outline of what was written as a constraint of `kind`."""
    text = "\n".join(source) if isinstance(source, tuple) else source or ""
    parts: tuple[Section, ...] | None = ()
    match kind:
        case "json_schema" | "tools" | "all":
            parts = _members(text)
        case "regex":
            parts = _groups(text)
        case "grammar":
            parts = _named(text, _RULE)
        case "choices":
            parts = _lines(text, 0, len(text))
        case "sql":
            parts = _members(text) or _named(text, _TABLE)
    return Section("", 0, len(text), parts or ())


class _Open:
    """A list or object that is being read."""

    def __init__(self, pointer: str, start: int, closing: str) -> None:
        self.pointer, self.start, self.closing = pointer, start, closing
        self.parts: list[Section] = []
        self.key: str | None = None
        self.key_start = -1

    def child(self, at: int) -> tuple[str, int]:
        """Return pointer and start of the value at `at`; a member begins with its name."""
        name = str(len(self.parts)) if self.key is None else self.key.replace("~", "~0").replace("/", "~1")
        return f"{self.pointer}/{name}", at if self.key is None else self.key_start


def _members(text: str) -> tuple[Section, ...] | None:
    """Return the members or items of a JSON text, by pointer; None where it isn't JSON."""
    stack = [_Open("", 0, "")]
    tokens = list(_JSON.finditer(text))
    for n, token in enumerate(tokens):
        word, top, following = token[0], stack[-1], tokens[n + 1][0] if n + 1 < len(tokens) else ""
        if word in "{[":
            pointer, start = top.child(token.start()) if len(stack) > 1 else ("", token.start())
            stack.append(_Open(pointer, start, "}" if word == "{" else "]"))
        elif word in "}]":
            if word != top.closing:
                return None
            stack.pop()
            stack[-1].parts.append(Section(top.pointer, top.start, token.end(), tuple(top.parts)))
            stack[-1].key = None
        elif following == ":" and top.closing == "}":
            top.key, top.key_start = _string(word), token.start()
        elif word not in ",:":
            top.parts.append(Section(*top.child(token.start()), token.end()))
            top.key = None
    whole = stack[0].parts
    return whole[0].parts if len(stack) == 1 and len(whole) == 1 else None


def _string(word: str) -> str:
    try:
        return str(json.loads(word))
    except ValueError:
        return word


def _groups(text: str) -> tuple[Section, ...] | None:
    """Return the groups and alternatives of a regex; None where its brackets don't match."""
    # Of each open group: where it began, its finished alternatives, where the present one began, the groups in that.
    stack: list[tuple[int, list[Section], int, list[Section]]] = [(0, [], 0, [])]
    for token in _REGEX.finditer(text):
        start, done, begun, inner = stack[-1]
        if token[0] == "(":
            stack.append((token.start(), [], token.end(), []))
        elif token[0] == "|":
            done.append(_section(text, begun, token.start(), inner))
            stack[-1] = (start, done, token.end(), [])
        elif token[0] == ")":
            if len(stack) == 1:
                return None
            stack.pop()
            parts = [*done, _section(text, begun, token.start(), inner)] if done else inner
            stack[-1][3].append(_section(text, start, token.end(), parts))
    _, done, begun, inner = stack[0]
    whole = [*done, _section(text, begun, len(text), inner)] if done else inner
    return tuple(whole) if len(stack) == 1 else None


def _section(text: str, start: int, stop: int, parts: Iterable[Section]) -> Section:
    return Section(text[start:stop], start, stop, tuple(parts))


def _named(text: str, definition: re.Pattern[str]) -> tuple[Section, ...]:
    """Return one part for each definition, up to the next; inside, its lines."""
    found = list(definition.finditer(text))
    starts = [*(m.start(1) for m in found), len(text)]
    return tuple(
        Section(m[1], start, stop, _lines(text, start, stop))
        for m, (start, stop) in zip(found, pairwise(starts), strict=True)
    )


def _lines(text: str, start: int, stop: int) -> tuple[Section, ...]:
    lines = [m for m in _LINE.finditer(text, start, stop) if m[0].strip()]
    return tuple(Section(m[0].strip(), *m.span()) for m in lines) if len(lines) > 1 else ()
