"""What an author should know about a schema as a whole: the policies in force, and what was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.constraints.json_schema import combination
from engine.constraints.json_schema.document import repeated_names

if TYPE_CHECKING:
    from engine.constraints.json_schema import Options
    from engine.constraints.json_schema.report import Report
    from engine.constraints.json_schema.writing import Writer

_WHITESPACE = {
    "optional": "none or one space may stand behind ',' and ':', and no other blank",
    "compact": "no blank stands between tokens",
    "single-space": "one space stands behind each ',' and ':', and no other blank",
    "free": "blanks may stand between all tokens, up to {} in a row",
}


def tell(report: Report, writer: Writer, options: Options) -> None:
    """Add the findings on a schema that has been written."""
    for finding in repeated_names(report.document):
        report.add(finding)
    if merged := list(writer.expansion.merged):
        combination.tell_overlap(report, merged, "the schema has too many places for that")
    _tell_depths(report, writer)
    _tell_policies(report, writer, options)


def _tell_depths(report: Report, writer: Writer) -> None:
    if writer.cuts:
        first, *more = writer.cuts
        report.approximated(
            "recursion-depth",
            first,
            f"The schema at {first or 'the root'}{_others(more)} is inside itself; at most {writer.depth} levels are "
            "accepted, since a finite automaton can't count without end.",
            "Choose another depth.",
            accepts="too little",
        )
    if writer.opened:
        first, *more = writer.opened
        report.approximated(
            "any-depth",
            first,
            f"Any value is allowed at {first or 'the root'}{_others(more)}; arrays and objects in it are accepted down "
            f"to {writer.any_depth} levels.",
            "Say what is allowed there; for objects without further members add '\"additionalProperties\": false'.",
            accepts="too little",
        )


def _others(more: list[str]) -> str:
    return f" and {len(more)} more" if more else ""


def _tell_policies(report: Report, writer: Writer, options: Options) -> None:
    blank = _WHITESPACE[options.whitespace].format(options.blanks)
    report.told("whitespace", "", f"Between the tokens of the JSON text {blank}.", "Choose another whitespace policy.")
    order = "in the order of the schema, then any others" if options.key_order == "schema" else "in any order where few"
    report.told("key-order", "", f"The members of an object are written {order}.", "Choose another key order.")
    report.told(
        "escapes",
        "",
        "In strings '\"', '\\' and control characters are escaped, characters beyond ASCII may be; other characters "
        "stand for themselves.",
    )
    if writer.exponents:
        integers = "without a point" if options.plain_integers else "with or without a fraction of zeros"
        message = f"Numbers are written without an exponent where they are bounded, integers {integers}."
        report.told("number-spelling", "", message)
