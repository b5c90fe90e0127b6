"""`pattern` and `patternProperties`: a regular expression of the schema's text, searched in a string's content."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from engine.constraints import regex
from engine.constraints.json_schema import ecma, texts
from engine.errors import InputError, NotRegularError, PatternSyntaxError, Place
from engine.pattern import ANY, Chars, Concat, Look, Origin, Pattern, Union, alternatives, sequence

if TYPE_CHECKING:
    from engine.constraints.json_schema.document import Document


def search(document: Document, source: str, pointer: str, *, name: bool = False) -> Pattern:
    """Return the texts in which a regular expression finds something.

    Args:
        document: that it stands in.
        source: the expression, in ECMA-262's syntax or Python's where that is no ECMA-262.
        pointer: where it stands: as the value there, or as the member's `name`.
        name: see `pointer`.

    Raises:
        PatternSyntaxError: it can't be read; says where.
        NotRegularError: it is not regular, or names a Unicode property that is not known.
    """
    span = document.key_origin(pointer) if name else document.origin(pointer)
    offsets = _offsets(document.text, span)

    def placed(start: int, stop: int) -> Origin:
        limit = len(offsets) - 1
        return Origin(offsets[min(start, limit)], offsets[min(max(stop, start), limit)], pointer)

    try:
        translated, places = ecma.translate(source)
    except ecma.UnknownPropertyError as error:
        where = placed(*error.args)
        raise NotRegularError(
            f"The Unicode property {source[slice(*error.args)]!r} at {pointer} is not a general category.",
            "Write the characters out as a class.",
            Place(document.text, where.start, where.stop, pointer),
        ) from None

    def moved(origin: Origin) -> Origin:
        if origin.start == origin.stop:
            return placed(0, len(source))
        stop = places[origin.stop - 1]  # the last character of the span, up to the next source character
        following = bisect_left(places, stop + 1)
        return placed(places[origin.start], places[following] if following < len(places) else len(source))

    try:
        pattern, _ = regex.parse(translated)
    except (PatternSyntaxError, NotRegularError) as error:
        raise _located(error, source, pointer, document, moved) from error
    return _searched(texts.relocated(pattern, moved), Origin(span.start, span.stop, pointer))


def _located(error: InputError, source: str, pointer: str, document: Document, moved: object) -> InputError:
    """Point an error of the expression to its place in the schema."""
    place = document.place(pointer)
    if error.place is not None and callable(moved):
        where = moved(Origin(error.place.start, min(error.place.start + 1, len(error.place.source))))
        place = Place(document.text, where.start, max(where.stop, where.start + 1), pointer)
    return type(error)(f"The regular expression {source!r} at {pointer}: {error.problem}", error.remedy, place)


def _offsets(text: str, span: Origin) -> list[int]:
    """Return where each character of a string's content stands in the text, and where the last ends."""
    offsets, at = [], span.start + 1
    while at < span.stop - 1:
        offsets.append(at)
        if text[at] != "\\":
            at += 1
        elif text[at + 1] != "u":
            at += 2
        else:
            paired = "\ud800" <= chr(int(text[at + 2 : at + 6], 16)) <= "\udbff" and text.startswith("\\u", at + 6)
            at += 12 if paired else 6
    return [*offsets, at]


def _searched(pattern: Pattern, origin: Origin) -> Pattern:
    """Allow any text on both sides, except where the expression is anchored to an end.

    Alternatives with the same anchors share what is around them: each with its own, a state would say which of them
    have been found.
    """
    anything = texts.any_text(origin)
    bodies: dict[tuple[bool, bool], list[Pattern]] = {}
    for way in pattern.parts if isinstance(pattern, Union) else (pattern,):
        parts = list(way.parts) if isinstance(way, Concat) else [way]
        first = bool(parts) and _is_end(parts[0], ahead=False)
        parts = parts[first:]
        last = bool(parts) and _is_end(parts[-1], ahead=True)
        bodies.setdefault((first, last), []).append(Concat(tuple(parts[: len(parts) - last])))
    return alternatives(
        [
            sequence([*([] if first else [anything]), alternatives(ways), *([] if last else [anything])])
            for (first, last), ways in bodies.items()
        ]
    )


def _is_end(part: Pattern, ahead: bool) -> bool:
    """Whether a part says no more than that the text starts or ends here."""
    return isinstance(part, Look) and part.negative and part.ahead == ahead and _is_any(part.body)


def _is_any(part: Pattern) -> bool:
    return isinstance(part, Chars) and part.ranges == ANY
