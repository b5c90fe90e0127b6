"""JSON text -> values whose every part knows its span in the text and its JSON pointer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from engine.errors import ConfigError, PatternSyntaxError, Place, SizeError
from engine.pattern import Origin

_BLANK = re.compile(r"[ \t\n\r]*")
_ATOM = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
DIGIT_LIMIT = 1_000
"""Digits that a number may have on each side of the point."""
_DECODER = json.JSONDecoder()
_WORDS = {"true": True, "false": False, "null": None}


@dataclass(eq=False)
class Document:
    """A JSON text and what it says.

    Attributes:
        text: what origins point into.
        value: dicts, lists, strings, booleans, None, int, and Decimal for a number with a fraction.
        spans: span of the value at each pointer.
        keys: span of the member's name at each pointer of an object's member.
        pointers: pointer of each dict and list, by its identity.
        repeated: span of each member whose name stands in its object again, with its pointer.
    """

    text: str
    value: Any = None
    spans: dict[str, Origin] = field(default_factory=dict)
    keys: dict[str, Origin] = field(default_factory=dict)
    pointers: dict[int, str] = field(default_factory=dict)
    repeated: list[Origin] = field(default_factory=list)

    def origin(self, pointer: str) -> Origin:
        """Return the place of the value at a pointer, or of the nearest part around it that the text has."""
        while pointer and pointer not in self.spans:
            pointer = pointer.rpartition("/")[0]
        return self.spans.get(pointer, Origin(0, len(self.text), ""))

    def key_origin(self, pointer: str) -> Origin:
        """Return the place of a member's name."""
        return self.keys.get(pointer) or self.origin(pointer)

    def place(self, pointer: str) -> Place:
        """Return where a mistake at a pointer is: the member's name with its value."""
        span = self.origin(pointer)
        start = self.keys[pointer].start if pointer in self.keys else span.start
        return Place(self.text, start, span.stop, pointer)

    def keyword(self, pointer: str, name: str) -> str | None:
        """Return the pointer of a keyword in the schema at a pointer, or of whose type it is; None without it."""
        schema = re.sub(r"/type(/\d+)?$", "", pointer)
        return child(schema, name) if child(schema, name) in self.keys else None


def child(pointer: str, *names: object) -> str:
    """Append names to a JSON pointer."""
    return pointer + "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def read(source: Any) -> Document:
    """Read JSON: a text, or an object already parsed, whose text is `json.dumps(source, indent=2)`.

    Raises:
        PatternSyntaxError: the text is not JSON; says where.
        ConfigError: the object can't be written as JSON.
        SizeError: a number in it has too many digits.
    """
    if isinstance(source, str):
        text = source
    else:
        try:
            text = json.dumps(source, indent=2, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"The schema can't be written as JSON: {error}.",
                "Give JSON text, or dicts, lists, strings and numbers.",
            ) from error
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_int=str, parse_float=str)  # numbers are read below
    except json.JSONDecodeError as error:
        raise _syntax_error(text, error) from error
    except RecursionError as error:
        raise PatternSyntaxError("The JSON text nests too deeply to be read.", "Use less nesting.") from error
    document = Document(text)
    document.value, _ = _Reader(document).value(_BLANK.match(text, 0).end(), "")  # type: ignore[union-attr]
    return document


def _refuse_constant(word: str) -> None:
    raise json.JSONDecodeError(f"{word} is no JSON number", word, 0)


def _syntax_error(text: str, error: json.JSONDecodeError) -> PatternSyntaxError:
    found = error.pos if error.doc == text else text.find(error.doc)
    place = Place(text, found, min(found + 1, len(text)))
    what = repr(text[found]) if found < len(text) else "the end"
    return PatternSyntaxError(
        f"The JSON can't be read at line {place.line}, column {place.column}, at {what}: {error.msg}.",
        "Correct it there; names and strings take double quotes, and no comma follows the last item.",
        place,
    )


@dataclass
class _Reader:
    """Recursive descent over a text that `json` reads; each method returns the value and where it stopped."""

    document: Document

    def value(self, at: int, pointer: str) -> tuple[Any, int]:
        text = self.document.text
        out: Any
        match text[at]:
            case "{":
                out, stop = self.members(at, pointer)
            case "[":
                out, stop = self.items(at, pointer)
            case '"':
                out, stop = _string(text, at)
            case _:
                word = _ATOM.match(text, at)[0]  # type: ignore[index]
                stop = at + len(word)
                out = _WORDS[word] if word in _WORDS else _number(word, Place(text, at, stop, pointer))
        self.document.spans[pointer] = Origin(at, stop, pointer)
        if isinstance(out, dict | list):
            self.document.pointers[id(out)] = pointer
        return out, stop

    def members(self, at: int, pointer: str) -> tuple[dict[str, Any], int]:
        text = self.document.text
        out: dict[str, Any] = {}
        at = self.blank(at + 1)
        while text[at] != "}":
            key, stop = _string(text, at)
            inner = child(pointer, key)
            if key in out:
                earlier = self.document.keys[inner].start, self.document.spans[inner].stop
                self.document.repeated.append(Origin(*earlier, inner))
            self.document.keys[inner] = Origin(at, stop, inner)
            out[key], at = self.value(self.blank(self.blank(stop) + 1), inner)
            at = self.after(at)
        return out, at + 1

    def items(self, at: int, pointer: str) -> tuple[list[Any], int]:
        text = self.document.text
        out: list[Any] = []
        at = self.blank(at + 1)
        while text[at] != "]":
            item, at = self.value(at, child(pointer, len(out)))
            out.append(item)
            at = self.after(at)
        return out, at + 1

    def after(self, at: int) -> int:
        """Pass the comma behind an item, if there is one."""
        at = self.blank(at)
        return self.blank(at + 1) if self.document.text[at] == "," else at

    def blank(self, at: int) -> int:
        return _BLANK.match(self.document.text, at).end()  # type: ignore[union-attr]


def _string(text: str, at: int) -> tuple[str, int]:
    """Read a string, whose quote stands at `at`, as the standard library does."""
    return _DECODER.raw_decode(text, at)


def _number(word: str, place: Place) -> int | Decimal:
    """Read a number exactly; `2.0` is an integer, as JSON Schema has it.

    Raises:
        SizeError: it has too many digits to be written out.
    """
    try:
        exact = Decimal(word)
    except InvalidOperation:  # an exponent that is out of all bounds
        exact = Decimal("Infinity")
    if not exact.is_finite() or exact.adjusted() >= DIGIT_LIMIT or int(exact.as_tuple().exponent) < -DIGIT_LIMIT:
        shown = word if len(word) <= 20 else f"{word[:20]}…"
        raise SizeError(
            f"The number {shown} at {place.pointer or 'the root'} takes more than {DIGIT_LIMIT:,} digits.",
            "Write one with fewer, or leave it out where it is a bound that nothing reaches.",
            place,
        )
    return int(exact) if exact == exact.to_integral_value() else exact
