"""What an author should know about a schema as a whole: the policies in force, and what was cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import effort
from engine.constraints.json_schema import combination, edits, shadows
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.expansion import TooManyPlacesError
from engine.constraints.json_schema.goals import Goal
from engine.constraints.json_schema.references import ANNOTATIONS, allows, draft_uri
from engine.errors import Finding, together

if TYPE_CHECKING:
    from engine.constraints.json_schema import Options
    from engine.constraints.json_schema.expansion import Expansion
    from engine.constraints.json_schema.references import Place, Schemas
    from engine.constraints.json_schema.report import Report
    from engine.constraints.json_schema.writing import Writer
    from engine.errors import Edit

_WHITESPACE = {
    "optional": "none or one space may stand behind ',' and ':', and no other blank",
    "compact": "no blank stands between tokens",
    "single-space": "one space stands behind each ',' and ':', and no other blank",
    "free": "blanks may stand between all tokens, up to {} in a row",
}

_OPTION = "Choose another policy: --option {}=…, or 'How it is read' on the page."


def tell(report: Report, writer: Writer, options: Options, *, empty: bool) -> None:
    """Add the findings on a schema that has been written; `empty` says that it came out as nothing."""
    _tell_repeated(report)
    _tell_draft(report, writer.expansion.schemas)
    _tell_empty(report, writer, whole=empty)
    _tell_defaults(report)
    shadows.tell(writer.expansion)
    if merged := list(writer.expansion.merged):
        combination.tell_overlap(report, merged, "the schema has too many places for that")
    _tell_depths(report, writer)
    _tell_policies(report, writer, options)


def _tell_repeated(report: Report) -> None:
    """Tell of members whose name stands twice: JSON readers keep the last."""
    document = report.document
    for span in document.repeated:
        name = repr((span.pointer or "").rpartition("/")[2])
        report.told(
            "duplicate-key",
            span.pointer or "",
            f"The name {name} stands twice in its object; only the last is used.",
            "Remove one of the two.",
            severity="warning",
            edits=(edits.cut(document, span.start, span.stop, f"Remove the first {name}"),),
        )


def _tell_draft(report: Report, schemas: Schemas) -> None:
    if schemas.known:
        return
    pointer = child("", "$schema")
    report.told(
        "draft-unknown",
        pointer,
        f"The draft that '$schema' names is not known, so the schema is read as one of draft {schemas.draft_name}.",
        "Name one of the drafts 4, 6, 7, 2019-09 and 2020-12.",
        severity="warning",
        edits=(edits.drafted(report.document, draft_uri(schemas.draft)),),
    )


def _tell_depths(report: Report, writer: Writer) -> None:
    if writer.cuts:
        first, *more = writer.cuts
        report.approximated(
            "recursion-depth",
            first,
            f"The schema at {first or 'the root'}{_others(more)} is inside itself; that is accepted {writer.depth} "
            f"{'time' if writer.depth == 1 else 'times'}, since a finite automaton can't count without end.",
            f"Read it with another depth: --depth {writer.depth + 2}, or 'How it is read' on the page.",
            accepts="too little",
        )
    if writer.opened:
        first, *more = writer.opened
        is_object = report.document.keyword(first, "properties") is not None
        at, what = (first.removesuffix("/type"), "Further members") if is_object else (first, "Any value")
        report.approximated(
            "any-depth",
            first,
            f"{what} {'of any value are' if is_object else 'is'} allowed at {at or 'the root'}{_others(more)}; arrays "
            f"and objects in {'them' if is_object else 'it'} are accepted down to {writer.any_depth} levels.",
            "Say what is allowed there; for objects without further members add '\"additionalProperties\": false'.",
            accepts="too little",
            edits=_closed(report, list(writer.opened)),
        )


def _closed(report: Report, pointers: list[str]) -> tuple[Edit, ...]:
    """Return the change that allows no other members in some objects; none where one of them is no such object."""
    document, changes = report.document, []
    for pointer in pointers:
        listed = document.keyword(pointer, "properties")
        if listed is None or document.keyword(pointer, "additionalProperties"):
            return ()
        changes.append(edits.added(document, listed.removesuffix("/properties"), "additionalProperties", False))
    many = f"{len(changes)} objects" if len(changes) > 1 else pointers[0].removesuffix("/type") or "the root"
    return (together(document.text, changes, f"Allow no other members in {many}"),)


def _tell_empty(report: Report, writer: Writer, whole: bool) -> None:
    """Tell of the innermost schema that no value satisfies, with the fewest of its keywords that exclude each other."""
    if not writer.empty:
        return
    place = next(iter(writer.empty)).value
    keywords = conflicting(writer.expansion, place)
    *first, last = [f"'{name}'" for name in keywords] or ["it"]
    named = f"{', '.join(first)} and {last}" if first else last
    pointers = [child(place.pointer, name) for name in keywords]
    report.add(
        Finding(
            "unsatisfiable",
            "error" if whole else "warning",
            report.document.place(pointers[0] if pointers else place.pointer),
            f"Nothing can satisfy {place.pointer or 'the schema'}: {named} "
            f"{'allow no value together' if len(keywords) > 1 else 'allows no value'}.",
            ("Remove or loosen one of them.",),
            edits=edits.offered(report.document, edits.removed, pointers if len(pointers) > 1 else []),
            related=tuple(report.document.place(pointer) for pointer in pointers[1:]),
        )
    )


def conflicting(expansion: Expansion, place: Place) -> list[str]:
    """Return keywords of a schema that no value satisfies together, none of which can be left out for that."""
    kept = [name for name in place.schema if name not in ANNOTATIONS]
    for name in list(kept):
        fewer = {keyword: place.schema[keyword] for keyword in kept if keyword != name}
        part = Goal(("schema", *fewer, place.pointer), value=replace(place, schema=fewer, foreign={}))
        try:
            if fewer and expansion.is_empty(part):
                kept.remove(name)
        except (TooManyPlacesError, effort.OutOfStepsError):
            break  # the rest may be more than it takes
    return kept


def _tell_defaults(report: Report) -> None:
    """Tell of defaults and examples that their own schema does not allow."""
    stack: list[tuple[object, str]] = [(report.document.value, "")]
    while stack:
        value, pointer = stack.pop()
        if isinstance(value, list):
            stack += [(part, child(pointer, i)) for i, part in enumerate(value)]
        if not isinstance(value, dict):
            continue
        stack += [(part, child(pointer, name)) for name, part in value.items() if name not in ("enum", "const")]
        if isinstance(value.get("type"), str | list) and "$ref" not in str(value):
            _tell_samples(report, value, pointer)


def _tell_samples(report: Report, schema: dict[str, Any], pointer: str) -> None:
    own = {name: value for name, value in schema.items() if name not in ("default", "examples")}
    listed = schema.get("examples")
    samples = [(child(pointer, "default"), schema["default"])] if "default" in schema else []
    samples += [(child(pointer, "examples", n), v) for n, v in enumerate(listed if isinstance(listed, list) else ())]
    for where, value in samples:
        if not allows(own, value):
            what = "example" if "examples" in where[len(pointer) :] else "default"
            report.told(
                f"{what}-contradicts",
                where,
                f"The {what} at {where} is not allowed by its own schema.",
                f"Change the {what} or the schema.",
                severity="warning",
                edits=edits.offered(report.document, edits.removed, [where]),
            )


def _others(more: list[str]) -> str:
    return f" and {len(more)} more" if more else ""


def _tell_policies(report: Report, writer: Writer, options: Options) -> None:
    blank = _WHITESPACE[options.whitespace].format(options.blanks)
    report.told("whitespace", "", f"Between the tokens of {writer.NOTATION} {blank}.", _OPTION.format("whitespace"))
    order = "in the order of the schema, then any others" if options.key_order == "schema" else "in any order where few"
    report.told("key-order", "", f"The members of an object are written {order}.", _OPTION.format("key_order"))
    report.told("escapes", "", writer.ESCAPES)
    if ends := list(writer.expansion.ends):
        report.told(
            "pattern-end",
            ends[0],
            f"The '$' of the pattern at {ends[0]}{_others(ends[1:])} is the very end of the text, as in ECMA-262; "
            "Python's re lets a line end stand behind it.",
        )
    if writer.exponents:
        integers = "without a point" if options.plain_integers else "with or without a fraction of zeros"
        message = f"Numbers are written without an exponent where that could leave their bounds, integers {integers}."
        report.told("number-spelling", "", message)
