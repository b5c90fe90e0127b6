"""Goal -> set of values: what each keyword of a schema says about the values of its type."""

from __future__ import annotations

from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine import effort
from engine.constraints.json_schema import assertions, combination, dialect, unevaluated
from engine.constraints.json_schema.contents import Texts, gathered
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal, every
from engine.constraints.json_schema.shapes import Array, Field, Object
from engine.constraints.json_schema.values import TooManyShapesError, Values, anything
from engine.errors import NotRegularError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.references import Place, Schemas
    from engine.constraints.json_schema.report import Report
    from engine.pattern import Origin

WORK_BUDGET = 4_000
"""Places of a schema, nesting counted, that are worked out and written."""


PLACE = 60
"""Steps that a place takes at least; see `engine.effort`."""


class TooManyPlacesError(Exception):
    """A schema, nested as deep as it may be, has too many places."""


class Expansion:
    """Works out goals, each once.

    Attributes:
        schemas: where schemas are found.
        report: told of approximations.
        formats: whether `format` is enforced.
        overlaps: whether alternatives of `oneOf` that overlap are told apart.
        merged: pointers of the `oneOf` where they are not.
        open: the goals that are being worked out, outer ones first.
        ends: pointers of the patterns in which a `$` stands for the end.
    """

    def __init__(self, schemas: Schemas, report: Report, *, formats: bool, overlaps: bool) -> None:
        self.schemas = schemas
        self.report = report
        self.formats = formats
        self.overlaps = overlaps
        self.work = 0
        self.merged: dict[str, None] = {}
        self.ends: dict[str, None] = {}
        self._known: dict[tuple[bool, Goal], Values] = {}
        self.open: list[Goal] = []
        self._empty: dict[Goal, bool] = {}

    def values(self, goal: Goal) -> Values:
        """Return the values of a goal, one level deep."""
        for exact in (True, self.report.exact):
            if (exact, goal) in self._known:
                return self._known[exact, goal]
        self.spend()
        with self._entered(goal):
            try:
                found = self._values(goal)
            except TooManyShapesError as error:
                if error.pointer is None and goal.key[0] == "schema":
                    error.pointer = combination.place_of(goal.value)
                raise
        self._known[self.report.exact, goal] = found
        return found

    def spend(self) -> None:
        """Count a place.

        Raises:
            TooManyPlacesError: there were too many.
        """
        effort.spend(PLACE)
        self.work += 1
        if self.work > WORK_BUDGET:
            raise TooManyPlacesError

    @property
    def places(self) -> list[Place]:
        """The schemas of the document that were worked out, each once."""
        found = [goal.value for _, goal in self._known if goal.key[0] == "schema" and len(goal.key) == 3]
        return list({place.pointer: place for place in found}.values())

    @contextmanager
    def _entered(self, goal: Goal) -> Iterator[None]:
        """Refuse a schema that refers to itself without going into a value."""
        if goal in self.open:
            place = goal.value if goal.key[0] == "schema" else None
            pointer = place.pointer if place else ""
            raise NotRegularError(
                f"The schema at {pointer or 'the root'} refers to itself for the same value, so it says nothing.",
                "Remove the reference, or put it inside 'properties' or 'items'.",
                self.schemas.document.place(pointer),
            )
        self.open.append(goal)
        try:
            yield
        finally:
            self.open.pop()

    def _values(self, goal: Goal) -> Values:
        match goal.key[0]:
            case "all":
                found = anything(self.origin(""))
                for part in goal.parts:
                    found = self._pruned(found.meet(self.values(part)))
                return found
            case "any":
                found = Values()
                for part in goal.parts:
                    found = found.join(self.values(part))
                return found
            case "not":
                return combination.complement(self, goal.parts[0])
            case "const":
                return self._constant(*goal.value)
            case "values":
                return goal.value  # type: ignore[no-any-return]
            case _:
                return self._schema(goal.value)

    def _pruned(self, values: Values) -> Values:
        """Drop shapes of objects that hold nothing, once there are several: unions multiply."""
        if len(values.objects) < 2:
            return values
        kept = tuple(shape for shape in values.objects if not self._hopeless(shape, 1))
        return Values(values.words, values.numbers, values.strings, values.arrays, kept)

    def origin(self, pointer: str) -> Origin:
        """Return the place of a part of the document."""
        return self.schemas.document.origin(pointer)

    # Emptiness, as far as it is told within two levels; what is not known to be empty counts as not.

    def is_empty(self, goal: Goal, depth: int = 2) -> bool:
        """Whether a goal is known to hold nothing."""
        if goal in (FALSE, TRUE) or depth == 0 or goal in self.open:
            return goal == FALSE
        if goal not in self._empty:
            self._empty[goal] = False  # inside itself it is not known
            values = self.values(goal)
            self._empty[goal] = (
                not values.words
                and all(part.is_empty() for part in (*values.numbers, *values.strings))
                and all(self._too_few(shape, depth) for shape in values.arrays)
                and all(self._hopeless(shape, depth) for shape in values.objects)
            )
        return self._empty[goal]

    def _too_few(self, shape: Array, depth: int) -> bool:
        needed = (shape.item(i) for i in range(min(shape.least, len(shape.prefix) + 1)))
        lacking = any(c.least and self.is_empty(every(c.goal, shape.rest), depth - 1) for c in shape.contains)
        return any(self.is_empty(goal, depth - 1) for goal in needed) or (lacking and not shape.prefix)

    def _hopeless(self, shape: Object, depth: int) -> bool:
        return any(field.required and self.is_empty(field.goal, depth) for field in shape.fields)

    # Constants.

    def constant(self, value: Any, pointer: str) -> Goal:
        """Return the goal of one value."""
        return Goal(("const", pointer, repr(value)), value=(value, pointer))

    def _constant(self, value: Any, pointer: str) -> Values:
        origin = self.origin(pointer)
        match value:
            case None | bool():
                return Values(words=(({None: "null", True: "true", False: "false"}[value], origin),))
            case str():
                return Values(strings=(Texts("string", origin, ((value, origin),)),))
            case list():
                items = tuple(self.constant(item, child(pointer, i)) for i, item in enumerate(value))
                return Values(arrays=(Array(origin, items, FALSE, len(items), len(items)),))
            case dict():
                fields = tuple(
                    Field(name, self.constant(v, child(pointer, name)), True, self.key_origin(child(pointer, name)))
                    for name, v in value.items()
                )
                return Values(objects=(Object(origin, fields),))
            case _:
                return Values(numbers=(Texts("number", origin, ((Decimal(value), origin),)),))

    def key_origin(self, pointer: str) -> Origin:
        """Return the place of a member's name."""
        return self.schemas.document.key_origin(pointer)

    # Schemas.

    def _schema(self, place: Place) -> Values:
        schema = place.schema
        dialect.tell(self.report, self.schemas, place)
        if "$ref" in schema and self.schemas.draft <= 7:  # it hides what stands beside it
            return self.values(self.schemas.referred(place, "$ref"))
        found = assertions.typed(self, place)
        for keyword in ("enum", "const"):
            if keyword in schema:
                found = found.meet(self._listed(place, keyword))
        for goal in combination.applied(self, place):
            found = self._pruned(found.meet(self.values(goal)))
        return unevaluated.enforced(self, place, found)

    def _listed(self, place: Place, keyword: str) -> Values:
        """Return the values of `enum` or `const`."""
        pointer = child(place.pointer, keyword)
        if keyword == "const":
            return self._constant(place.schema[keyword], pointer)
        each = [self._constant(value, child(pointer, i)) for i, value in enumerate(place.schema[keyword])]
        effort.spend(len(each))
        return Values(
            tuple(word for one in each for word in one.words),
            _finite([part for one in each for part in one.numbers]),
            _finite([part for one in each for part in one.strings]),
            tuple(shape for one in each for shape in one.arrays),
            tuple(shape for one in each for shape in one.objects),
        )


def _finite(constants: list[Texts]) -> tuple[Texts, ...]:
    return (gathered(constants),) if constants else ()
