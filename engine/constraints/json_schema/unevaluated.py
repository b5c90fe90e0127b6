"""`unevaluatedProperties` and `unevaluatedItems`: what no other keyword has looked at.

Which members were looked at depends on which alternatives hold, so the schema is split into cases; in each of them it
is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from engine.constraints.json_schema import assertions, combination, edits, spelling
from engine.constraints.json_schema.contents import Names, Texts
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal, negated, some
from engine.constraints.json_schema.shapes import Array, Field, Object, free_object
from engine.constraints.json_schema.values import Values, anything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.expansion import Expansion
    from engine.constraints.json_schema.references import Place

CASE_LIMIT = 64


@dataclass(frozen=True)
class Case:
    """A way in which a schema can hold, and what it then has looked at.

    Attributes:
        goals: that hold in this case.
        names: properties that were looked at.
        patterns: names that match one of these were looked at: pointer and expression.
        prefix: items that were looked at, from the first on.
        contained: items in one of these goals were looked at.
        properties: whether all properties were.
        items: whether all items were.
    """

    goals: tuple[Goal, ...] = ()
    names: frozenset[str] = frozenset()
    patterns: frozenset[tuple[str, str]] = frozenset()
    prefix: int = 0
    contained: tuple[Goal, ...] = ()
    properties: bool = False
    items: bool = False

    def with_(self, other: Case) -> Case:
        """Return the case in which both hold."""
        return Case(
            tuple(dict.fromkeys((*self.goals, *other.goals))),
            self.names | other.names,
            self.patterns | other.patterns,
            max(self.prefix, other.prefix),
            tuple(dict.fromkeys((*self.contained, *other.contained))),
            self.properties or other.properties,
            self.items or other.items,
        )

    @property
    def looks(self) -> bool:
        """Whether anything was looked at."""
        return bool(self.names or self.patterns or self.prefix or self.contained or self.properties or self.items)


def enforced(expansion: Expansion, place: Place, found: Values) -> Values:
    """Return the values of a schema, `found` so far, of which the members that it has not looked at are as it says."""
    schema = place.schema
    keywords = [k for k in ("unevaluatedProperties", "unevaluatedItems") if isinstance(schema.get(k), dict | bool)]
    keywords = [k for k in keywords if expansion.schemas.sub(place, k) != TRUE]
    if not keywords:
        return found
    try:
        found_cases = cases(expansion, place, own=False)
    except TooManyCasesError:
        _tell_too_many(expansion, child(place.pointer, keywords[0]))
        return found
    out = Values()
    for case in found_cases:
        part = found
        for goal in case.goals:
            part = part.meet(expansion.values(goal))
        out = out.join(part.meet(_limit(expansion, place, keywords, case)))
    return out


def _tell_too_many(expansion: Expansion, pointer: str) -> None:
    expansion.report.approximated(
        "unevaluated-not-enforced",
        pointer,
        f"What {pointer} speaks of depends on more than {CASE_LIMIT} cases, so it is not enforced: members that no "
        "other keyword has looked at are accepted.",
        "Use 'additionalProperties' or 'items', or fewer alternatives.",
        edits=edits.offered(expansion.schemas.document, edits.removed, [pointer]),
    )


def _limit(expansion: Expansion, place: Place, keywords: list[str], case: Case) -> Values:
    """Return the values whose members are looked at in a case, or else as the keywords say."""
    origin = expansion.origin(place.pointer)
    whole = anything(origin)
    arrays, objects = whole.arrays, whole.objects
    if "unevaluatedProperties" in keywords and not case.properties:
        goal = expansion.schemas.sub(place, "unevaluatedProperties")
        fields = tuple(Field(name, TRUE, False, origin, declared=False) for name in sorted(case.names))
        known = Names(
            tuple(assertions.names_matching(expansion, source, pointer) for pointer, source in sorted(case.patterns))
        )
        others = [(known, TRUE)] if known.sets else []
        if goal != FALSE:
            others.append((known.complement(origin), goal))
        objects = (Object(origin, fields, _disjoint(others, origin)),)
    if "unevaluatedItems" in keywords and not case.items:
        goal = some(*case.contained, expansion.schemas.sub(place, "unevaluatedItems"))
        shape = Array(origin, (TRUE,) * case.prefix, goal).settled()
        arrays = (shape,) if shape else ()
    return Values(whole.words, whole.numbers, whole.strings, arrays, objects)


def _disjoint(others: list[tuple[Names, Goal]], origin: object) -> tuple[tuple[Names, Goal], ...]:
    """Unite the patterns of the names that were looked at into one set, since what is in them is the same."""
    out = []
    for names, goal in others:
        if len(names.sets) > 1:
            first = names.sets[0]
            united = spelling.union([part.pattern() for part in names.sets])
            names = Names((Texts("string", first.origin, None, (united,)),))
        out.append((names, goal))
    return tuple(out)


def cases(expansion: Expansion, place: Place, *, own: bool = True) -> list[Case]:
    """Split a schema into cases; `own` says whether its own `unevaluated…` keywords count as having looked."""
    schemas, schema = expansion.schemas, place.schema
    out = [_adjacent(expansion, place, own)]
    for keyword in combination.REFERENCES:
        if isinstance(schema.get(keyword), str):
            out = _both(out, _of(expansion, schemas.referred(place, keyword)))
    for i in range(len(schema.get("allOf", ()))):
        out = _both(out, _of(expansion, schemas.sub(place, "allOf", i)))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            out = _both(out, list(_alternatives(expansion, place, keyword)))
    if isinstance(schema.get("if"), dict | bool):
        out = _both(out, _conditional(expansion, place))
    for name in schema.get("dependentSchemas", {}):
        pointer = child(place.pointer, "dependentSchemas", name)
        origin = expansion.origin(pointer)
        there = Case((combination.having(name, pointer, origin), _is_object(origin)))
        then = [case.with_(there) for case in _of(expansion, schemas.sub(place, "dependentSchemas", name))]
        out = _both(out, [Case((combination.without(name, pointer, origin),)), *then])
    return out


def _is_object(origin: object) -> Goal:
    return Goal(("values", "object"), value=Values(objects=(free_object(origin),)))  # type: ignore[arg-type]


def _of(expansion: Expansion, goal: Goal) -> list[Case]:
    """Return the cases of a goal, each holding it."""
    if goal.key[0] != "schema":
        return [Case((goal,))] if goal != TRUE else [Case()]
    return [case.with_(Case((goal,))) for case in cases(expansion, goal.value)]


def _both(left: list[Case], right: list[Case]) -> list[Case]:
    if len(left) * len(right) > CASE_LIMIT:
        raise TooManyCasesError
    return [a.with_(b) for a, b in product(left, right)]


class TooManyCasesError(Exception):
    """What a schema has looked at depends on too many alternatives."""


def _alternatives(expansion: Expansion, place: Place, keyword: str) -> Iterator[Case]:
    """Yield the cases of `anyOf` or `oneOf` by which of the alternatives hold that look at something."""
    goals = combination.branches(expansion, place, keyword)
    looking = [goal for goal in goals if any(case.looks for case in _of(expansion, goal))]
    for holds in product((True, False), repeat=len(looking)):
        if keyword == "oneOf" and sum(holds) > 1:
            continue
        base = [Case(tuple(negated(goal) for goal, is_ in zip(looking, holds, strict=True) if not is_))]
        for goal, is_ in zip(looking, holds, strict=True):
            if is_:
                base = _both(base, _of(expansion, goal))
        yield from base


def _conditional(expansion: Expansion, place: Place) -> list[Case]:
    schemas, test = expansion.schemas, expansion.schemas.sub(place, "if")
    then, otherwise = (
        _of(expansion, schemas.sub(place, name)) if isinstance(place.schema.get(name), dict | bool) else [Case()]
        for name in ("then", "else")
    )
    return _both(_of(expansion, test), then) + _both([Case((negated(test),))], otherwise)


def _adjacent(expansion: Expansion, place: Place, own: bool) -> Case:
    """Return what the keywords of the schema itself look at."""
    schema, schemas = place.schema, expansion.schemas
    listed = schema.get("prefixItems", [])
    items = isinstance(schema.get("items"), dict | bool)
    if isinstance(schema.get("items"), list):
        listed, items = schema["items"], isinstance(schema.get("additionalItems"), dict | bool)
    pointer = child(place.pointer, "patternProperties")
    counts = schemas.draft >= 2020 and isinstance(schema.get("contains"), dict | bool)
    return Case(
        names=frozenset(schema.get("properties", {})),
        patterns=frozenset((child(pointer, source), source) for source in schema.get("patternProperties", {})),
        prefix=len(listed),
        contained=(schemas.sub(place, "contains"),) if counts else (),
        properties="additionalProperties" in schema or (own and "unevaluatedProperties" in schema),
        items=items or (own and "unevaluatedItems" in schema),
    )
