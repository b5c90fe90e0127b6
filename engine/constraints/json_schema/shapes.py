"""Shapes of arrays and of objects; the complement of a shape is a union of shapes again.

What is inside stays a goal, so a shape is decided on values, whatever the order of keys or the spelling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from engine import effort
from engine.constraints.json_schema.contents import Names, Texts, literal_names
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal, every, negated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.pattern import Origin


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
