"""JSON Schemas and lists of functions, changed keyword by keyword: what contradicts, and what would bound a value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import constraints, effort
from engine.constraints.json_schema import document, edits
from engine.constraints.json_schema.document import child
from engine.errors import InputError
from engine.pattern import matches_nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.constraints import Constraint
    from engine.constraints.json_schema.document import Document
    from engine.errors import Place

KINDS = ("json_schema", "tools")
"""Kinds of constraint whose source is JSON."""
_LISTS = ("allOf", "anyOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMAS = ("items", "additionalProperties", "contains")
SEVERAL = 3
"""Branches up to which an alternative is looked at whole."""
CHARACTER = 6
"""Steps that reading a character of a schema takes."""
_FRAME = ("type", "required", "properties")
"""Words that rarely are the mistake in a conflict, though it may need them."""
_OTHER = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "name", "deprecated"}
"""Words that demand nothing."""


@dataclass(frozen=True)
class Keyword:
    """A keyword that can only take values away; without it at least as much is accepted."""

    pointer: str


def keywords(value: Any, pointer: str = "") -> Iterator[Keyword]:
    """List the demands of a schema.

    What stands inside `not`, `oneOf`, `if` and the like is left whole: there, asking for less may accept less.
    """
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from keywords(item, child(pointer, n))
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        at = child(pointer, name)
        if name in _LISTS and isinstance(inner, list):
            yield from keywords(inner, at)
        elif name in _MAPS and isinstance(inner, dict):
            for key, schema in inner.items():
                yield from keywords(schema, child(at, key))
        elif name in _SCHEMAS and isinstance(inner, dict):
            yield from keywords(inner, at)
        elif name in ("function", "parameters") and isinstance(inner, dict):
            yield from keywords(inner, at)
            continue
        if (
            name not in _OTHER
            and name not in _MAPS
            and not (name in _LISTS or (isinstance(inner, dict) and name in _SCHEMAS))
        ):
            yield Keyword(at)


def without(value: Any, dropped: set[str], pointer: str = "") -> Any:
    """Return a schema without some of its keywords."""
    if isinstance(value, list):
        return [without(item, dropped, child(pointer, n)) for n, item in enumerate(value)]
    if isinstance(value, dict):
        return {k: without(v, dropped, at) for k, v in value.items() if (at := child(pointer, k)) not in dropped}
    return value


def branches(value: Any, pointer: str = "") -> dict[str, int]:
    """Choose one branch of each list of many alternatives, that which says most: all would only say the same again.

    Where nothing satisfies the whole, nothing satisfies any branch of it.

    Returns:
        The index of the chosen branch by the pointer of its list: an `anyOf`, or the functions that may be called.
    """
    chosen: dict[str, int] = {}
    if isinstance(value, list):
        if len(value) > SEVERAL and pointer.rpartition("/")[2] in ("", "anyOf"):
            best = max(range(len(value)), key=lambda n: (_depth(value[n]), -n))
            return {pointer: best, **branches(value[best], child(pointer, best))}
        for n, item in enumerate(value):
            chosen |= branches(item, child(pointer, n))
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in (*_LISTS, *_MAPS, *_SCHEMAS, "function", "parameters") or pointer.rpartition("/")[2] in _MAPS:
                chosen |= branches(inner, child(pointer, name))
    return chosen


def _depth(value: Any) -> int:
    """Return how deep a value nests."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _in_branches(pointer: str, chosen: dict[str, int]) -> bool:
    """Whether a pointer leads into no branch that was not chosen."""
    return all(
        not pointer.startswith(f"{at}/") or f"{pointer}/".startswith(f"{at}/{index}/") for at, index in chosen.items()
    )


def only(value: Any, chosen: dict[str, int], pointer: str = "") -> Any:
    """Return a schema with the chosen branches alone."""
    if isinstance(value, list):
        kept = [chosen[pointer]] if pointer in chosen else range(len(value))
        return [only(value[n], chosen, child(pointer, n)) for n in kept]
    if isinstance(value, dict):
        return {name: only(inner, chosen, child(pointer, name)) for name, inner in value.items()}
    return value


def conflict(
    constraint: Constraint,
    minimal: Callable[[Sequence[Keyword], Callable[[Sequence[Keyword]], bool]], tuple[Keyword, ...]],
) -> tuple[tuple[Keyword, ...], dict[str, int]]:
    """Find an inclusion-minimal set of keywords that no value satisfies together, in one branch of many alternatives.

    Args:
        constraint: of one of `KINDS`, accepting nothing.
        minimal: the search, as `empty.minimal`.

    Raises:
        OutOfStepsError: a limit of work is passed, or a try can't be decided.
    """
    whole = json.loads(constraint.text)
    kept_branches = branches(whole)
    listed = sorted((k for k in keywords(whole) if _in_branches(k.pointer, kept_branches)), key=_blame)
    options: dict[str, Any] = {"any_depth": 1} if constraint.kind == "json_schema" else {}

    def impossible(kept: Sequence[Keyword]) -> bool:
        effort.spend(CHARACTER * len(constraint.text))
        dropped = {keyword.pointer for keyword in listed} - {keyword.pointer for keyword in kept}
        try:
            fewer = constraints.read(constraint.kind, only(without(whole, dropped), kept_branches), **options)
            decided = matches_nothing(fewer.pattern)
            return fewer.automaton.is_empty if decided is None else decided
        except InputError:
            raise effort.OutOfStepsError from None

    return minimal(listed, impossible), kept_branches


def folded(constraint: Constraint, found: Sequence[Keyword], chosen: dict[str, int]) -> list[str]:
    """Name the branches beside those that a conflict stands in."""
    out = []
    for at in chosen:
        if any(keyword.pointer.startswith(f"{at}/") for keyword in found):
            others = len(value_at(document.read(constraint.text), at)) - 1
            out.append(f"the {others} other branches of {at}" if at else f"the {others} other functions")
    return out


def _blame(keyword: Keyword) -> tuple[bool, int]:
    """Return a key that sorts what is to be blamed first: what says most of a value, the deepest before the rest."""
    return keyword.pointer.rpartition("/")[2] in _FRAME, -keyword.pointer.count("/")


def place(constraint: Constraint, pointer: str) -> Place:
    """Return where a keyword and its value stand."""
    return document.read(constraint.text).place(pointer)


def removed(text: str, pointer: str) -> str:
    """Return the JSON text without the member or item at a pointer."""
    return edits.removed(document.read(text), pointer).apply(text)


def bounded(text: str, pointer: str, most: int) -> str:
    """Return the JSON text with an upper bound for the strings or arrays in whose schema a pointer stands."""
    found = document.read(text)
    schema = pointer.rpartition("/")[0]
    while schema and not isinstance(value_at(found, schema), dict):
        schema = schema.rpartition("/")[0]
    value = value_at(found, schema)
    keyword = _bound_of(value) if isinstance(value, dict) else None
    if keyword is None or keyword in value:
        return text
    least = value.get(keyword.replace("max", "min"), 0)
    bound = max(most, int(least)) if isinstance(least, int) else most
    return edits.added(found, schema, keyword, bound).apply(text)


def _bound_of(schema: dict[str, Any]) -> str | None:
    """Return the keyword that bounds the length of a schema's values."""
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else tuple(types)
    if "string" in types or "pattern" in schema:
        return "maxLength"
    return "maxItems" if "array" in types else None


def value_at(found: Document, pointer: str) -> Any:
    """Return what stands at a pointer."""
    value = found.value
    for name in pointer.split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value
