"""Keywords that say nothing where they stand: of another draft, of another language, or misspelt."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from engine.constraints.json_schema import edits
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.references import ANNOTATIONS, SINCE, UNTIL, draft_uri
from engine.errors import together

if TYPE_CHECKING:
    from engine.constraints.json_schema.references import Place, Schemas
    from engine.constraints.json_schema.report import Report
    from engine.errors import Edit

KEYWORDS = (
    frozenset({
        "$ref", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "type", "enum",
        "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
        "format", "items", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "required",
        "properties", "patternProperties", "additionalProperties", "allOf", "anyOf", "oneOf", "not",
    })
    | ANNOTATIONS
    | SINCE.keys()
    | UNTIL.keys()
)  # fmt: skip
"""Every keyword of the drafts from 4 on."""


def tell(report: Report, schemas: Schemas, place: Place) -> None:
    """Tell of the keywords of a schema that say nothing, each with what its author may have meant."""
    for name, value in place.foreign.items():
        pointer = child(place.pointer, name)
        change = _naturalised(schemas, place, name, value) if pointer in schemas.document.keys else None
        report.told(
            "keyword-of-another-draft",
            pointer,
            f"'{name}' at {pointer} is no keyword of draft {schemas.draft_name}, so it says nothing there.",
            "Write what this draft has for it, or name the draft that is meant in '$schema'.",
            severity="warning",
            edits=(change,) if change else (),
        )
    for name in place.schema:
        if name not in KEYWORDS and not name.startswith(("x-", "$")):
            _tell_unknown(report, schemas, place, name)
    if isinstance(place.schema.get("items"), list) and schemas.draft >= 2020:
        _tell_listed(report, schemas, place)


def _naturalised(schemas: Schemas, place: Place, name: str, value: Any) -> Edit | None:
    """Return the change after which a keyword of another draft is one of the schema's."""
    if name == "dependencies" and schemas.draft >= 2019:
        lists = {isinstance(needed, list) for needed in value.values()}
        newer = "dependentRequired" if lists == {True} else "dependentSchemas"
        if len(lists) > 1 or newer in place.schema:
            return None
        return edits.renamed(schemas.document, child(place.pointer, name), newer)
    nearest = UNTIL[name] if schemas.draft > UNTIL.get(name, schemas.draft) else SINCE[name]
    return edits.drafted(schemas.document, draft_uri(nearest))


def _tell_unknown(report: Report, schemas: Schemas, place: Place, name: str) -> None:
    pointer = child(place.pointer, name)
    if name == "nullable":
        change = _with_null(schemas, place) if place.schema[name] is True else None
        report.told(
            "keyword-unknown",
            pointer,
            f"'nullable' at {pointer} is OpenAPI's; in JSON Schema it says nothing.",
            "List 'null' among the types.",
            severity="warning",
            edits=(change,) if change else (),
        )
        return
    near = [] if name in place.schema.get("properties", {}) else get_close_matches(name, KEYWORDS, 1, 0.8)
    near = near or [known for known in KEYWORDS if known.lower() == name.lower()]
    meant = near[0] if near and near[0] not in place.schema else None
    change = edits.renamed(schemas.document, pointer, meant) if meant and pointer in schemas.document.keys else None
    report.told(
        "keyword-unknown",
        pointer,
        f"'{name}' at {pointer} is no keyword of JSON Schema, so it says nothing there.",
        *([f"If '{meant}' is meant, write that."] if meant else []),
        severity="warning" if meant else "info",
        edits=(change,) if change else (),
    )


def _with_null(schemas: Schemas, place: Place) -> Edit | None:
    """Return the change that allows null beside the one type of a schema."""
    pointer = child(place.pointer, "type")
    kind = place.schema.get("type")
    if not isinstance(kind, str) or kind == "null" or pointer not in schemas.document.spans:
        return None
    return edits.replaced(schemas.document, pointer, [kind, "null"])


def _tell_listed(report: Report, schemas: Schemas, place: Place) -> None:
    """Tell that a list of schemas under `items`, which draft 2020-12 does not have, is read as older drafts do."""
    pointer = child(place.pointer, "items")
    names = {"items": "prefixItems", "additionalItems": "items"}
    there = [name for name in names if name in place.schema]
    changes = [edits.renamed(schemas.document, child(place.pointer, name), names[name]) for name in there]
    change = together(schemas.document.text, changes, "Write 'prefixItems', and 'items' for the rest")
    report.told(
        "items-listed",
        pointer,
        f"The list at {pointer} is read as 'prefixItems', as the drafts before 2020-12 have it.",
        "Write 'prefixItems' for it, and 'items' for 'additionalItems'.",
        edits=() if "prefixItems" in place.schema else (change,),
    )
