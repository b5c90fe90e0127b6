"""The keywords that combine schemas for one value: `allOf`, `anyOf`, `oneOf`, `not`, `if`, references, dependencies."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from engine import effort
from engine.constraints.json_schema import edits
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal, every, negated, some
from engine.constraints.json_schema.report import InexactError
from engine.constraints.json_schema.shapes import Field, Object, free_object
from engine.constraints.json_schema.values import TooManyShapesError, Values, anything
from engine.errors import together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.document import Document
    from engine.constraints.json_schema.expansion import Expansion
    from engine.constraints.json_schema.references import Place
    from engine.constraints.json_schema.report import Report
    from engine.errors import Edit
    from engine.pattern import Origin

COMBINING = ("allOf", "anyOf", "oneOf", "if", "not", "dependentRequired", "dependentSchemas", "dependencies")
"""Keywords that schemas for one value are combined by, those first that mostly make many cases."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def present(name: str, origin: Origin) -> Object:
    """Return the objects that have a member of this name."""
    free = free_object(origin)
    return Object(origin, (Field(name, TRUE, True, origin, declared=False),), free.others)


def absent(name: str, origin: Origin) -> Object:
    """Return the objects that have no member of this name."""
    free = free_object(origin)
    return Object(origin, (Field(name, FALSE, False, origin, declared=False),), free.others)


def complement(expansion: Expansion, goal: Goal) -> Values:
    """Return the values that are not in a goal; all of them, and said so, where the goal is only known roughly."""
    pointer = goal.value.pointer if goal.key[0] == "schema" else ""
    origin = expansion.origin(pointer)
    try:
        with expansion.report.exactly():
            return expansion.values(goal).complement(origin)
    except InexactError as error:
        if expansion.report.exact:
            raise
        where, why = error.pointer or pointer, f"can't be told exactly, so nothing is excluded. {error.what}"
    except TooManyShapesError:
        if expansion.report.exact:
            raise InexactError(pointer, f"The complement of {pointer} has too many cases.") from None
        where, why = pointer, "has too many cases to be told apart, so nothing is excluded."
    document = expansion.schemas.document
    expansion.report.approximated(
        "not-dropped",
        where,
        f"What {pointer or 'the schema'} excludes {why}",
        "Say what is allowed instead.",
        edits=edits.offered(document, edits.removed, [pointer] if pointer.endswith("/not") else []),
    )
    return anything(origin)


def applied(expansion: Expansion, place: Place) -> Iterator[Goal]:
    """Yield the goals that a schema's value has to be in beside its own keywords."""
    schema, schemas = place.schema, expansion.schemas
    for keyword in REFERENCES:
        if isinstance(schema.get(keyword), str):
            yield schemas.referred(place, keyword)
    for i in range(len(schema.get("allOf", ()))):
        yield schemas.sub(place, "allOf", i)
    if "anyOf" in schema:
        yield some(*branches(expansion, place, "anyOf"))
    if "oneOf" in schema:
        yield exactly_one(expansion, place)
    if isinstance(schema.get("not"), dict | bool):
        yield negated(schemas.sub(place, "not"))
    if isinstance(schema.get("if"), dict | bool):
        yield from conditional(expansion, place)
    yield from dependencies(expansion, place)


def place_of(place: Place) -> str:
    """Return the pointer of the keyword that combines schemas at a place, or of the place where there is none."""
    found = next((keyword for keyword in COMBINING if keyword in place.schema), None)
    return child(place.pointer, found) if found else place.pointer


def branches(expansion: Expansion, place: Place, keyword: str) -> list[Goal]:
    """Return the goals of a list of alternatives."""
    return [expansion.schemas.sub(place, keyword, i) for i in range(len(place.schema[keyword]))]


def exactly_one(expansion: Expansion, place: Place) -> Goal:
    """Return the values that are in one alternative of `oneOf` only.

    Only alternatives that overlap have to be told apart.
    """
    goals = branches(expansion, place, "oneOf")
    pointer = child(place.pointer, "oneOf")
    if not expansion.overlaps:
        expansion.merged.setdefault(pointer)
        return some(*goals)
    overlapping: list[list[Goal]] = [[] for _ in goals]
    for i, j in combinations(range(len(goals)), 2):
        if not _are_apart(expansion, goals[i], goals[j]):
            overlapping[i].append(goals[j])
            overlapping[j].append(goals[i])
    if not any(overlapping):
        return some(*goals)
    found = some(*(every(goal, *map(negated, others)) for goal, others in zip(goals, overlapping, strict=True)))
    try:
        with expansion.report.exactly():
            expansion.values(found)
    except (InexactError, TooManyShapesError) as error:
        tell_overlap(expansion.report, [pointer], str(error) or "there are too many cases")
        return some(*goals)
    return found


def _are_apart(expansion: Expansion, goal: Goal, other: Goal) -> bool:
    """Whether two goals are known to have nothing in common."""
    effort.spend(2)
    if goal not in expansion.open and other not in expansion.open:
        mine, theirs = expansion.values(goal), expansion.values(other)
        if mine.is_plainly_apart(theirs):
            return True
    return expansion.is_empty(every(goal, other))


def tell_overlap(report: Report, pointers: list[str], why: str) -> None:
    """Tell that values in several alternatives of `oneOf` are accepted."""
    first, *more = pointers
    report.approximated(
        "one-of-as-any-of",
        first,
        f"Alternatives at {first}{f' and {len(more)} more' if more else ''} that overlap are not told apart ({why}); "
        "values in several of them are accepted too.",
        "Give each alternative a property with a 'const' of its own.",
        edits=_as_any_of(report.document, pointers),
    )


def _as_any_of(document: Document, pointers: list[str]) -> tuple[Edit, ...]:
    """Return the change after which alternatives may overlap, which is what is enforced."""
    taken = [child(pointer.rpartition("/")[0], "anyOf") in document.keys for pointer in pointers]
    if any(taken) or not all(pointer in document.keys for pointer in pointers):
        return ()
    changes = [edits.renamed(document, pointer, "anyOf") for pointer in pointers]
    return (together(document.text, changes, "Write 'anyOf' for 'oneOf'"),)


def conditional(expansion: Expansion, place: Place) -> Iterator[Goal]:
    """Yield what `if`, `then` and `else` say."""
    schemas = expansion.schemas
    test = schemas.sub(place, "if")
    then, otherwise = (
        schemas.sub(place, name) if isinstance(place.schema.get(name), dict | bool) else TRUE
        for name in ("then", "else")
    )
    if then == otherwise == TRUE:
        return
    yield some(every(test, then), every(negated(test), otherwise))


def dependencies(expansion: Expansion, place: Place) -> Iterator[Goal]:
    """Yield what holds where a property is there: `dependentRequired`, `dependentSchemas`, the older `dependencies`."""
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        listed = place.schema.get(keyword)
        for name, needed in listed.items() if isinstance(listed, dict) else ():
            pointer = child(place.pointer, keyword, name)
            origin = expansion.schemas.document.key_origin(pointer)
            if isinstance(needed, dict | bool):
                then = expansion.schemas.sub(place, keyword, name)
            else:
                needs = [needed] if isinstance(needed, str) else needed
                then = every(*(_objects(present(other, origin), pointer, origin) for other in needs))
            if then != TRUE:
                yield some(without(name, pointer, origin), then)


def without(name: str, pointer: str, origin: Origin) -> Goal:
    """Return all values but the objects that have a member of this name."""
    return _objects(absent(name, origin), pointer, origin)


def having(name: str, pointer: str, origin: Origin) -> Goal:
    """Return all values but the objects that have no member of this name."""
    return _objects(present(name, origin), pointer, origin)


def _objects(shape: Object, pointer: str, origin: Origin) -> Goal:
    whole = anything(origin)
    values = Values(whole.words, whole.numbers, whole.strings, whole.arrays, (shape,))
    required = shape.fields[0].required
    return Goal(("values", pointer, shape.fields[0].name, required), value=values)
