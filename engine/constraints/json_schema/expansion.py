"""Goal -> set of values: what each keyword of a schema says about the values of its type."""

from __future__ import annotations

from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine import effort
from engine.constraints.json_schema import combination, dialect, edits, formats, numbers, patterns, texts, unevaluated
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.values import (
    FALSE,
    TRUE,
    Array,
    Contains,
    Field,
    Goal,
    Names,
    Object,
    Texts,
    Values,
    anything,
    every,
)
from engine.determinise import OverBudgetError
from engine.errors import NotRegularError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.references import Place, Schemas
    from engine.constraints.json_schema.report import Report
    from engine.pattern import Origin, Pattern

NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
STRING_KEYWORDS = ("minLength", "maxLength", "pattern", "format")
LENGTH_LIMIT = 1_000
"""Characters that `minLength` and `maxLength` may count; beyond it the automaton has too many states."""


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
    """

    def __init__(self, schemas: Schemas, report: Report, *, formats: bool, overlaps: bool) -> None:
        self.schemas = schemas
        self.report = report
        self.formats = formats
        self.overlaps = overlaps
        self.work = 0
        self.merged: dict[str, None] = {}
        self._known: dict[tuple[bool, Goal], Values] = {}
        self._open: list[Goal] = []
        self._empty: dict[Goal, bool] = {}

    def values(self, goal: Goal) -> Values:
        """Return the values of a goal, one level deep."""
        for exact in (True, self.report.exact):
            if (exact, goal) in self._known:
                return self._known[exact, goal]
        self.spend()
        with self._entered(goal):
            found = self._values(goal)
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
        if goal in self._open:
            place = goal.value if goal.key[0] == "schema" else None
            pointer = place.pointer if place else ""
            raise NotRegularError(
                f"The schema at {pointer or 'the root'} refers to itself for the same value, so it says nothing.",
                "Remove the reference, or put it inside 'properties' or 'items'.",
                self.schemas.document.place(pointer),
            )
        self._open.append(goal)
        try:
            yield
        finally:
            self._open.pop()

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
        if goal in (FALSE, TRUE) or depth == 0 or goal in self._open:
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
                    Field(name, self.constant(v, child(pointer, name)), True, self._key(child(pointer, name)))
                    for name, v in value.items()
                )
                return Values(objects=(Object(origin, fields),))
            case _:
                return Values(numbers=(Texts("number", origin, ((Decimal(value), origin),)),))

    def _key(self, pointer: str) -> Origin:
        return self.schemas.document.key_origin(pointer)

    # Schemas.

    def _schema(self, place: Place) -> Values:
        schema = place.schema
        dialect.tell(self.report, self.schemas, place)
        if "$ref" in schema and self.schemas.draft <= 7:  # it hides what stands beside it
            return self.values(self.schemas.referred(place, "$ref"))
        found = self._typed(place)
        for keyword in ("enum", "const"):
            if keyword in schema:
                found = found.meet(self._listed(place, keyword))
        for goal in combination.applied(self, place):
            found = self._pruned(found.meet(self.values(goal)))
        return unevaluated.enforced(self, place, found)

    def _typed(self, place: Place) -> Values:
        """Return what the keywords say that speak of one type each."""
        schema, pointer = place.schema, place.pointer
        origins = {name: self.origin(pointer) for name in ("null", "boolean", "number", "string", "array", "object")}
        types = schema.get("type")
        named = [types] if isinstance(types, str) else types
        for i, name in enumerate(named or ()):
            where = child(pointer, "type") if isinstance(types, str) else child(pointer, "type", i)
            origins["number" if name == "integer" else name] = self.origin(where)
        integer = named is not None and "integer" in named and "number" not in named
        allowed = set(origins) if named is None else {"number" if name == "integer" else name for name in named}
        return Values(
            tuple(
                (word, origins[kind])
                for word, kind in (("null", "null"), ("true", "boolean"), ("false", "boolean"))
                if kind in allowed
            ),
            self._numbers(place, origins["number"], integer) if "number" in allowed else (),
            self._strings(place, origins["string"]) if "string" in allowed else (),
            self._arrays(place, origins["array"]) if "array" in allowed else (),
            self._objects(place, origins["object"]) if "object" in allowed else (),
        )

    def _listed(self, place: Place, keyword: str) -> Values:
        """Return the values of `enum` or `const`."""
        values = place.schema[keyword] if keyword == "enum" else [place.schema[keyword]]
        found = Values()
        for i, value in enumerate(values):
            pointer = child(place.pointer, keyword, i) if keyword == "enum" else child(place.pointer, keyword)
            one = self._constant(value, pointer)
            found = Values(
                (*found.words, *one.words),
                _listed(found.numbers, one.numbers),
                _listed(found.strings, one.strings),
                found.arrays + one.arrays,
                found.objects + one.objects,
            )
        return found

    def _numbers(self, place: Place, origin: Origin, integer: bool) -> tuple[Texts, ...]:
        # In draft 4 it is the spelling that makes an integer.
        integers = numbers.plain_integers if self.schemas.draft == 4 else numbers.integers
        parts: list[Pattern] = [integers(origin)] if integer else []
        for keyword in NUMBER_KEYWORDS:
            if keyword in place.schema:
                parts += self._bound(place, keyword, place.schema[keyword])
        return (Texts("number", origin, None, tuple(parts)),)

    def _bound(self, place: Place, keyword: str, value: Any) -> list[Pattern]:
        pointer = child(place.pointer, keyword)
        origin = self.origin(pointer)
        if isinstance(value, bool):  # draft 4: it makes the other bound strict
            return []
        strict = keyword.startswith("exclusive")
        if self.schemas.draft == 4 and keyword in ("minimum", "maximum"):
            strict = place.schema.get(f"exclusive{keyword.capitalize()}") is True
        if keyword != "multipleOf":
            bound = numbers.at_least if keyword.endswith("inimum") else numbers.at_most
            return [bound(value, origin, strict=strict)]
        try:
            return [numbers.multiples(value, origin)]
        except OverflowError:
            self.report.approximated(
                "multiple-too-fine",
                pointer,
                f"multipleOf {value} at {pointer} is not enforced, since its remainders would take more than "
                f"{numbers.DIVISOR_LIMIT:,} states; every number is accepted there that the other keywords allow.",
                "Choose a rounder number.",
            )
            return []

    def _strings(self, place: Place, origin: Origin) -> tuple[Texts, ...]:
        schema = place.schema
        parts: list[Pattern] = []
        if isinstance(schema.get("pattern"), str):
            parts += self._pattern(schema["pattern"], child(place.pointer, "pattern"))
        if self.formats and isinstance(schema.get("format"), str):
            parts += self._format(place, schema["format"])
        least, most = self._lengths(place)
        if most is not None and least > most:
            return ()
        if (least or most is not None) and not parts:
            keyword = "maxLength" if most is not None else "minLength"
            origin = self.origin(child(place.pointer, keyword))
        return (Texts("string", origin, None, tuple(parts), least, most),)

    def _lengths(self, place: Place) -> tuple[int, int | None]:
        least, most = int(place.schema.get("minLength", 0)), place.schema.get("maxLength")
        most = int(most) if most is not None else None
        for keyword, limit in (("minLength", least), ("maxLength", most)):
            if limit is not None and limit > LENGTH_LIMIT:
                pointer = child(place.pointer, keyword)
                self.report.approximated(
                    "length-too-large",
                    pointer,
                    f"{keyword} {limit:,} at {pointer} is not enforced: counting more than {LENGTH_LIMIT:,} characters "
                    "takes too many states; "
                    + ("any length is accepted." if keyword == "maxLength" else f"{LENGTH_LIMIT:,} are asked for."),
                    f"Lower it to {LENGTH_LIMIT:,} or less, or remove it.",
                    edits=edits.offered(self.schemas.document, edits.replaced, [pointer], LENGTH_LIMIT),
                )
                least, most = (least, None) if keyword == "maxLength" else (LENGTH_LIMIT, most)
        return least, most

    def _pattern(self, source: str, pointer: str, *, name: bool = False) -> list[Pattern]:
        try:
            pattern = patterns.search(self.schemas.document, source, pointer, name=name)
            texts.compiled(pattern)
        except NotRegularError as error:
            self.report.approximated(
                "pattern-not-regular",
                pointer,
                f"{error.problem} It is not enforced; every string is accepted there.",
                error.remedy,
            )
            return []
        except OverBudgetError as error:
            self.report.approximated(
                "pattern-too-large",
                pointer,
                f"The automaton of the pattern at {pointer} {error}; it is not enforced, and every string is accepted.",
                "Lower its repetition bounds.",
            )
            return []
        if source != patterns.plain(source):
            self.report.told(
                "pattern-dialect",
                pointer,
                r"This pattern is read as ECMA-262: \d and \w are ASCII, '.' leaves out line ends, and '$' is the very "
                "end; Python's re reads more into some of them.",
            )
        return [pattern]

    def matched(self, source: str, pointer: str) -> Texts:
        """Return the names that an expression of `patternProperties` matches."""
        return Texts("string", self._key(pointer), None, tuple(self._pattern(source, pointer, name=True)))

    def _format(self, place: Place, name: str) -> list[Pattern]:
        pointer = child(place.pointer, "format")
        if name not in formats.FORMATS:
            if name in formats.STANDARD:
                self.report.approximated(
                    "format-not-enforced",
                    pointer,
                    f"The format {name!r} at {pointer} is not enforced; every string is accepted there.",
                    "Write it as a 'pattern'.",
                )
            else:
                self.report.told(
                    "format-unknown",
                    pointer,
                    f"The format {name!r} at {pointer} is not one of the standard's, so it says nothing here.",
                    "Write it as a 'pattern' if it should be enforced.",
                    severity="warning",
                )
            return []
        if name in formats.LOOSE:
            self.report.approximated(
                "format-loose", pointer, f"The format {name!r} at {pointer}: {formats.LOOSE[name]}.", "Add 'maxLength'."
            )
        origin = self.origin(pointer)
        return [texts.relocated(formats.pattern(name), lambda _: origin)]

    # Arrays.

    def _arrays(self, place: Place, origin: Origin) -> tuple[Array, ...]:
        schema = place.schema
        keyword = "prefixItems" if isinstance(schema.get("prefixItems"), list) else "items"
        listed = schema.get(keyword) if isinstance(schema.get(keyword), list) else []
        prefix = tuple(self.schemas.sub(place, keyword, i) for i in range(len(listed)))  # type: ignore[arg-type]
        further = "additionalItems" if keyword == "items" and listed else "items"
        rest = self.schemas.sub(place, further) if isinstance(schema.get(further), dict | bool) else TRUE
        most = schema.get("maxItems")
        shape = Array(
            origin,
            prefix,
            rest,
            int(schema.get("minItems", 0)),
            int(most) if most is not None else None,
            self._contains(place),
            True if schema.get("uniqueItems") is True else None,
        ).settled()
        return (shape,) if shape else ()

    def _contains(self, place: Place) -> tuple[Contains, ...]:
        schema = place.schema
        if "contains" not in schema:
            return ()
        least, most = schema.get("minContains", 1), schema.get("maxContains")
        return (Contains(self.schemas.sub(place, "contains"), 0, int(least), int(most) if most is not None else None),)

    # Objects.

    def _objects(self, place: Place, origin: Origin) -> tuple[Object, ...]:
        schema = place.schema
        classes = self._name_classes(place, origin)
        fields = []
        for name in schema.get("properties", {}):
            goals = [goal for names, goal in classes if names.holds(name)]
            goal = every(self.schemas.sub(place, "properties", name), *goals)
            fields.append(Field(name, goal, False, self._key(child(place.pointer, "properties", name))))
        others = self._additional(place, classes)
        most = schema.get("maxProperties")
        shape: Object | None = Object(
            origin,
            tuple(fields),
            others,
            (),
            int(schema.get("minProperties", 0)),
            int(most) if most is not None else None,
        )
        for part in (*self._required(place), *self._named(place, origin)):
            shape = shape.meet(part) if shape else None
        shape = shape.settled() if shape else None
        return (shape,) if shape else ()

    def _name_classes(self, place: Place, origin: Origin) -> list[tuple[Names, Goal]]:
        """Split all names by the patterns of `patternProperties` that they match; those that match none come last."""
        unmatched = Names((Texts("string", origin),))
        classes: list[tuple[Names, Goal]] = []
        for source in place.schema.get("patternProperties", {}):
            pointer = child(place.pointer, "patternProperties", source)
            goal = self.schemas.sub(place, "patternProperties", source)
            matched = Names((self.matched(source, pointer),))
            others = matched.complement(origin)
            split = [(names.meet(matched), every(known, goal)) for names, known in classes]
            split += [(names.meet(others), known) for names, known in classes]
            split.append((unmatched.meet(matched), goal))
            classes = [(names, known) for names, known in split if not names.is_empty()]
            unmatched = unmatched.meet(others)
        return [*classes, (unmatched, TRUE)]

    def _additional(self, place: Place, classes: list[tuple[Names, Goal]]) -> tuple[tuple[Names, Goal], ...]:
        """Add what `additionalProperties` says to the names that no pattern matches."""
        *matched, (unmatched, goal) = classes
        if isinstance(place.schema.get("additionalProperties"), dict | bool):
            goal = self.schemas.sub(place, "additionalProperties")
        if goal == FALSE or (matched and unmatched.is_empty()):
            return tuple(matched)
        return (*matched, (unmatched, goal))

    def _required(self, place: Place) -> list[Object]:
        required = place.schema.get("required", [])
        out = []
        for i, name in enumerate(required if isinstance(required, list) else []):
            origin = self.origin(child(place.pointer, "required", i))
            out.append(combination.present(name, origin))
        return out

    def _named(self, place: Place, origin: Origin) -> list[Object]:
        """Return what `propertyNames` says."""
        if not isinstance(place.schema.get("propertyNames"), dict | bool):
            return []
        allowed = Names(self.values(self.schemas.sub(place, "propertyNames")).strings)
        return [Object(origin, others=((allowed, TRUE),) if allowed.sets else ())]


def _listed(known: tuple[Texts, ...], more: tuple[Texts, ...]) -> tuple[Texts, ...]:
    """Gather constants into one finite set."""
    if not known or not more:
        return known or more
    literals = (*(known[0].literals or ()), *(more[0].literals or ()))
    distinct = {value: (value, origin) for value, origin in reversed(literals)}  # the first of equal ones stays
    return (Texts(known[0].kind, known[0].origin, tuple(distinct.values())[::-1]),)
