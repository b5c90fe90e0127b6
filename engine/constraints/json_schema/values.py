"""Sets of JSON values and their Boolean algebra; what is inside arrays and objects stays a goal, expanded when needed.

A set is one part for each type. The parts for arrays and objects are unions of shapes; the complement of a shape is a
union of shapes again, so `not`, `oneOf` and `if` are decided on values, whatever the order of keys or the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from engine import effort
from engine.constraints.json_schema import numbers, texts
from engine.pattern import Complement, Origin, Pattern, alternatives

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["string", "number"]

SHAPE_LIMIT = 256
"""Shapes of one type that a set may be a union of."""


class TooManyShapesError(Exception):
    """A set would be a union of too many shapes; its reader says so in the user's words."""


class Goal:
    """A set of values named, not yet worked out; equal keys are equal sets.

    Attributes:
        key: what it is: `("schema", …)`, `("const", …)`, `("values", …)`, or `("not" | "all" | "any", *parts)`.
        parts: the goals that it is made of.
        value: the schema place, the constant, or the values.
    """

    __slots__ = ("_hash", "key", "parts", "value")

    def __init__(self, key: tuple[Any, ...], parts: tuple[Goal, ...] = (), value: Any = None) -> None:
        self.key = key
        self.parts = parts
        self.value = value
        self._hash = hash(key)  # goals hold goals: worked out anew, it would walk all of them each time

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Goal) and self._hash == other._hash and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash


TRUE = Goal(("all",))
FALSE = Goal(("any",))


def every(*goals: Goal) -> Goal:
    """Return the values that are in all the goals."""
    flat = [part for goal in goals for part in (goal.parts if goal.key[0] == "all" else (goal,))]
    kept = tuple(dict.fromkeys(flat))
    if FALSE in kept:
        return FALSE
    return kept[0] if len(kept) == 1 else Goal(("all", *kept), kept)


def some(*goals: Goal) -> Goal:
    """Return the values that are in one of the goals."""
    flat = [part for goal in goals for part in (goal.parts if goal.key[0] == "any" else (goal,))]
    kept = tuple(dict.fromkeys(flat))
    if TRUE in kept:
        return TRUE
    return kept[0] if len(kept) == 1 else Goal(("any", *kept), kept)


def negated(goal: Goal) -> Goal:
    """Return the values that are not in the goal."""
    if goal in (TRUE, FALSE):
        return FALSE if goal == TRUE else TRUE
    return goal.parts[0] if goal.key[0] == "not" else Goal(("not", goal), (goal,))


@dataclass(frozen=True)
class Texts:
    """A set of strings by their content, or of numbers by their spelling.

    Attributes:
        kind: which of the two.
        origin: what writes them, unless a part says more.
        literals: a finite set, each with its origin; None where `parts` and the lengths say what is in it.
        parts: patterns that all have to match.
        least: of characters; strings only.
        most: of characters; None for no limit.
    """

    kind: Kind
    origin: Origin
    literals: tuple[tuple[str | Decimal, Origin], ...] | None = None
    parts: tuple[Pattern, ...] = ()
    least: int = 0
    most: int | None = None

    @property
    def is_all(self) -> bool:
        """Whether it holds every text of its kind."""
        return self.literals is None and not self.parts and self.least == 0 and self.most is None

    def holds(self, value: str | Decimal) -> bool:
        """Whether a text is in the set."""
        if self.literals is not None:
            return any(value == known for known, _ in self.literals)
        text = value if isinstance(value, str) else f"{value:f}"
        if not (self.least <= len(text) and (self.most is None or len(text) <= self.most)):
            return False
        return all(texts.holds(part, text) for part in self.parts)

    def pattern(self) -> Pattern:
        """Return the pattern of the contents or spellings."""
        if self.literals is not None:
            return alternatives([self._literal(value, origin) for value, origin in self.literals])
        parts = list(self.parts)
        if self.kind == "number":
            return texts.meet(parts or [numbers.numbers(self.origin)], self.origin)
        if self.least or self.most is not None or not parts:
            parts.insert(0, texts.any_text(self.origin, self.least, self.most))
        return texts.meet(parts, self.origin)

    def _literal(self, value: str | Decimal, origin: Origin) -> Pattern:
        return texts.literal(value, origin) if isinstance(value, str) else numbers.one(value, origin)

    def is_empty(self) -> bool:
        """Whether nothing is in the set, as far as can be told within a budget."""
        if self.literals is not None:
            return not self.literals
        return bool(self.parts) and texts.is_empty(self.pattern())

    def meet(self, other: Texts) -> Texts | None:
        """Return what is in both; None where that is plainly nothing."""
        if self.literals is not None or other.literals is not None:
            finite, test = (self, other) if self.literals is not None else (other, self)
            kept = tuple(pair for pair in finite.literals or () if test.holds(pair[0]))
            return replace(finite, literals=kept) if kept else None
        least = max(self.least, other.least)
        limits = [most for most in (self.most, other.most) if most is not None]
        most = min(limits) if limits else None
        if most is not None and least > most:
            return None
        parts = tuple(dict.fromkeys((*self.parts, *other.parts)))
        return Texts(self.kind, other.origin if self.is_all else self.origin, None, parts, least, most)

    def complement(self) -> tuple[Texts, ...]:
        """Return the texts of its kind that are not in the set, as a union."""
        if self.is_all:
            return ()
        if self.literals is None and not self.parts:
            below = [Texts(self.kind, self.origin, None, (), 0, self.least - 1)] if self.least else []
            above = [Texts(self.kind, self.origin, None, (), self.most + 1)] if self.most is not None else []
            return (*below, *above)
        without = Complement(self.pattern(), self.origin)
        parts = (numbers.numbers(self.origin), without) if self.kind == "number" else (without,)
        return (Texts(self.kind, self.origin, None, parts),)


@dataclass(frozen=True)
class Contains:
    """From `least` to `most` of the items from index `start` on are in the goal."""

    goal: Goal
    start: int
    least: int
    most: int | None


@dataclass(frozen=True)
class Array:
    """A shape of arrays.

    Attributes:
        origin: what writes the brackets and commas.
        prefix: what the first items are in.
        rest: what all further items are in.
        least: of items.
        most: of items; None for no limit.
        contains: counts of items.
        unique: whether no two items are equal (True) or some are (False); None where it doesn't matter.
    """

    origin: Origin
    prefix: tuple[Goal, ...] = ()
    rest: Goal = TRUE
    least: int = 0
    most: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool | None = None

    def meet(self, other: Array) -> Array | None:
        """Return what has both shapes; None where that is plainly nothing."""
        length = max(len(self.prefix), len(other.prefix))
        prefix = [every(self.item(i), other.item(i)) for i in range(length)]
        limits = [most for most in (self.most, other.most) if most is not None]
        if self.unique is not None and other.unique is not None and self.unique != other.unique:
            return None
        return Array(
            other.origin if self == Array(self.origin) else self.origin,
            tuple(prefix),
            every(self.rest, other.rest),
            max(self.least, other.least),
            min(limits) if limits else None,
            tuple(dict.fromkeys((*self.contains, *other.contains))),
            other.unique if self.unique is None else self.unique,
        ).settled()

    def item(self, index: int) -> Goal:
        """Return what the item at an index is in."""
        return self.prefix[index] if index < len(self.prefix) else self.rest

    def settled(self) -> Array | None:
        """Cut the length where an item can't be; None where nothing is left."""
        most = self.most
        if FALSE in self.prefix:
            most = min(self.prefix.index(FALSE), most if most is not None else self.prefix.index(FALSE))
        elif self.rest == FALSE:
            most = min(len(self.prefix), most if most is not None else len(self.prefix))
        if most is not None and self.least > most:
            return None
        if any(c.most is not None and c.least > c.most for c in self.contains):
            return None
        unique = self.unique
        if most is not None and most <= 1:  # a single item has no equal
            if unique is False:
                return None
            unique = None
        return replace(self, most=most, prefix=self.prefix[:most] if most is not None else self.prefix, unique=unique)

    def complement(self) -> tuple[Array, ...]:
        """Return the arrays that don't have the shape, as a union."""
        out = []
        for i, goal in enumerate(self.prefix):
            if goal != TRUE:
                out.append(Array(self.origin, (*(TRUE,) * i, negated(goal)), least=i + 1))
        if self.rest != TRUE:
            out.append(Array(self.origin, contains=(Contains(negated(self.rest), len(self.prefix), 1, None),)))
        if self.least:
            out.append(Array(self.origin, most=self.least - 1))
        if self.most is not None:
            out.append(Array(self.origin, least=self.most + 1))
        for c in self.contains:
            if c.least:
                out.append(Array(self.origin, contains=(replace(c, least=0, most=c.least - 1),)))
            if c.most is not None:
                out.append(Array(self.origin, contains=(replace(c, least=c.most + 1, most=None),)))
        if self.unique is not None:
            out.append(Array(self.origin, unique=not self.unique))
        return tuple(out)


@dataclass(frozen=True)
class Field:
    """A named member of an object.

    Attributes:
        name: of the member.
        goal: what its value is in, if it is there.
        required: whether it has to be there.
        origin: what writes its name.
        declared: whether `properties` names it, so that it has a place in the order.
    """

    name: str
    goal: Goal
    required: bool
    origin: Origin
    declared: bool = True


@dataclass(frozen=True)
class Names:
    """The names in any of some sets of strings."""

    sets: tuple[Texts, ...]

    def holds(self, name: str) -> bool:
        """Whether a name is among them."""
        return any(part.holds(name) for part in self.sets)

    def meet(self, other: Names) -> Names:
        """Return the names in both."""
        found = [a.meet(b) for a, b in product(self.sets, other.sets)]
        return Names(tuple(part for part in found if part is not None))

    def complement(self, origin: Origin) -> Names:
        """Return all other names."""
        out = Names((Texts("string", origin),))
        for part in self.sets:
            out = out.meet(Names(part.complement()))
        return out

    def is_empty(self) -> bool:
        """Whether there is no such name, as far as can be told within a budget."""
        return all(part.is_empty() for part in self.sets)

    @property
    def is_all(self) -> bool:
        """Whether every name is one of them."""
        return any(part.is_all for part in self.sets)


def literal_names(names: Iterable[str], origin: Origin) -> Names:
    """Return just these names."""
    listed = tuple((name, origin) for name in names)
    return Names((Texts("string", origin, listed),) if listed else ())


@dataclass(frozen=True)
class Object:
    """A shape of objects.

    Attributes:
        origin: what writes the braces and commas.
        fields: members by name, in order.
        others: disjoint sets of names of further members, with what their values are in; other names are not allowed.
        exists: sets of names, one of which has to be there with a value in the goal.
        least: of members.
        most: of members; None for no limit.
    """

    origin: Origin
    fields: tuple[Field, ...] = ()
    others: tuple[tuple[Names, Goal], ...] = ()
    exists: tuple[tuple[Names, Goal], ...] = ()
    least: int = 0
    most: int | None = None

    def field(self, name: str) -> Field | None:
        """Return the member of this name."""
        return next((field for field in self.fields if field.name == name), None)

    def goal(self, name: str) -> Goal:
        """Return what the value of a member of this name is in."""
        field = self.field(name)
        return field.goal if field else next((goal for names, goal in self.others if names.holds(name)), FALSE)

    def meet(self, other: Object) -> Object | None:
        """Return what has both shapes; None where that is plainly nothing."""
        effort.spend(2 * (len(self.fields) + len(other.fields)))
        fields = [self._merged(field, other) for field in self.fields]
        known = {field.name for field in self.fields}
        fields += [other._merged(field, self) for field in other.fields if field.name not in known]
        limits = [most for most in (self.most, other.most) if most is not None]
        return Object(
            other.origin if self == free_object(self.origin) else self.origin,
            tuple(fields),
            tuple(_pairs(self.others, other.others)),
            tuple(dict.fromkeys((*self.exists, *other.exists))),
            max(self.least, other.least),
            min(limits) if limits else None,
        ).settled()

    def _merged(self, field: Field, other: Object) -> Field:
        theirs = other.field(field.name)
        goal = every(field.goal, other.goal(field.name))
        if theirs is None:
            return replace(field, goal=goal)
        declared = field.declared or theirs.declared
        origin = field.origin if field.declared or not theirs.declared else theirs.origin
        return Field(field.name, goal, field.required or theirs.required, origin, declared)

    def settled(self) -> Object | None:
        """Return the shape, or None where it plainly holds nothing."""
        required = [field for field in self.fields if field.required]
        if any(field.goal == FALSE for field in required) or any(goal == FALSE for _, goal in self.exists):
            return None
        most = self.most
        if most is None and not self.others:
            most = sum(field.goal != FALSE for field in self.fields)
        return None if most is not None and max(self.least, len(required)) > most else self

    def complement(self) -> tuple[Object, ...]:
        """Return the objects that don't have the shape, as a union."""
        out = []
        free = free_object(self.origin)
        for field in self.fields:
            if field.goal != TRUE:
                out.append(replace(free, fields=(replace(field, goal=negated(field.goal), required=True),)))
            if field.required:
                out.append(replace(free, fields=(replace(field, goal=FALSE, required=False),)))
        unnamed = literal_names((field.name for field in self.fields), self.origin).complement(self.origin)
        forbidden = unnamed
        for names, goal in self.others:
            forbidden = forbidden.meet(names.complement(self.origin)) if not names.is_all else Names(())
            if goal != TRUE:
                out.append(replace(free, exists=((names.meet(unnamed), negated(goal)),)))
        if not forbidden.is_empty():
            out.append(replace(free, exists=((forbidden, TRUE),)))
        for names, goal in self.exists:
            out.append(replace(free, others=((names, negated(goal)), (names.complement(self.origin), TRUE))))
        if self.least:
            out.append(replace(free, most=self.least - 1))
        if self.most is not None:
            out.append(replace(free, least=self.most + 1))
        return tuple(out)


def _pairs(left: tuple[tuple[Names, Goal], ...], right: tuple[tuple[Names, Goal], ...]) -> Iterable[tuple[Names, Goal]]:
    """Yield the sets of names common to one of each side."""
    certain = len(left) == len(right) == 1
    for (mine, goal), (theirs, other) in product(left, right):
        names = mine.meet(theirs)
        if names.sets and (certain or mine.is_all or theirs.is_all or not names.is_empty()):
            yield names, every(goal, other)


def free_object(origin: Origin) -> Object:
    """Return the shape of every object."""
    return Object(origin, others=((Names((Texts("string", origin),)), TRUE),))


@dataclass(frozen=True)
class Values:
    """A set of JSON values, by type.

    Attributes:
        words: which of `null`, `true`, `false`, with their origins.
        numbers: a union of sets.
        strings: a union of sets.
        arrays: a union of shapes.
        objects: a union of shapes.
    """

    words: tuple[tuple[str, Origin], ...] = ()
    numbers: tuple[Texts, ...] = ()
    strings: tuple[Texts, ...] = ()
    arrays: tuple[Array, ...] = ()
    objects: tuple[Object, ...] = ()

    def meet(self, other: Values) -> Values:
        """Return the values in both."""
        mine = {word for word, _ in self.words}
        return Values(
            tuple((word, origin) for word, origin in other.words if word in mine),
            _meets(self.numbers, other.numbers),
            _meets(self.strings, other.strings),
            _meets(self.arrays, other.arrays),
            _meets(self.objects, other.objects),
        )

    def join(self, other: Values) -> Values:
        """Return the values in either."""
        mine = {word for word, _ in self.words}
        return Values(
            (*self.words, *((word, origin) for word, origin in other.words if word not in mine)),
            _joined(self.numbers, other.numbers),
            _joined(self.strings, other.strings),
            _joined(self.arrays, other.arrays),
            _joined(self.objects, other.objects),
        )

    def complement(self, origin: Origin) -> Values:
        """Return all other values."""
        every_value = anything(origin)
        mine = {word for word, _ in self.words}
        return Values(
            tuple(pair for pair in every_value.words if pair[0] not in mine),
            _outside(every_value.numbers, (part.complement() for part in self.numbers)),
            _outside(every_value.strings, (part.complement() for part in self.strings)),
            _outside(every_value.arrays, (part.complement() for part in self.arrays)),
            _outside(every_value.objects, (part.complement() for part in self.objects)),
        )


def anything(origin: Origin) -> Values:
    """Return every JSON value."""
    return Values(
        tuple((word, origin) for word in ("null", "true", "false")),
        (Texts("number", origin),),
        (Texts("string", origin),),
        (Array(origin),),
        (free_object(origin),),
    )


Part = TypeVar("Part", Texts, Array, Object)


def _meets(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, ...]:
    effort.spend(4 * len(left) * len(right))
    met: list[Part | None] = [a.meet(b) for a, b in product(left, right)]
    found = dict.fromkeys(part for part in met if part is not None)
    if len(found) > SHAPE_LIMIT:
        raise TooManyShapesError
    return tuple(found)


def _joined(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, ...]:
    found = list(left)
    found += [part for part in right if part not in left]
    if len(found) > SHAPE_LIMIT:
        raise TooManyShapesError
    return tuple(found)


def _outside(whole: tuple[Part, ...], complements: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    """Return what is in the complement of each part of a union."""
    for complement in complements:
        whole = _meets(whole, complement)
    return whole
