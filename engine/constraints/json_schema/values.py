"""Sets of JSON values and their Boolean algebra: a part for each type; of arrays and objects, unions of shapes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, TypeVar

from engine import effort
from engine.constraints.json_schema.contents import Texts, gathered
from engine.constraints.json_schema.shapes import Array, Object, free_object
from engine.pattern import alternatives

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.pattern import Origin

SHAPE_LIMIT = 256
"""Shapes of one type that a set may be a union of."""


class TooManyShapesError(Exception):
    """A set would be a union of too many shapes; its reader says so in the user's words.

    Attributes:
        cases: how many there would be.
        pointer: of the innermost schema whose keywords multiply; None where no schema is known.
    """

    def __init__(self, cases: int) -> None:
        super().__init__(f"there are {cases:,} cases, and {SHAPE_LIMIT} can be told apart")
        self.cases = cases
        self.pointer: str | None = None


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
            _meets(*_gathered(self.numbers, other.numbers)),
            _meets(*_gathered(self.strings, other.strings)),
            _meets(self.arrays, other.arrays),
            _meets(self.objects, other.objects),
        )

    def is_plainly_apart(self, other: Values) -> bool:
        """Whether it takes no work to see that nothing is in both: by their types, or by constants that differ."""
        mine, theirs = {word for word, _ in self.words}, {word for word, _ in other.words}
        return (
            mine.isdisjoint(theirs)
            and _differ(self.numbers, other.numbers)
            and _differ(self.strings, other.strings)
            and not (self.arrays and other.arrays)
            and not (self.objects and other.objects)
        )

    def join(self, other: Values) -> Values:
        """Return the values in either."""
        mine = {word for word, _ in self.words}
        return Values(
            (*self.words, *((word, origin) for word, origin in other.words if word not in mine)),
            _joined(*_listed_once(self.numbers, other.numbers)),
            _joined(*_listed_once(self.strings, other.strings)),
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


TEXTS_LIMIT = 8
"""Pairs of sets of strings, or of numbers, that are met one by one."""
Part = TypeVar("Part", Texts, Array, Object)


def _gathered(left: tuple[Texts, ...], right: tuple[Texts, ...]) -> tuple[tuple[Texts, ...], tuple[Texts, ...]]:
    """Make one set of each side where their product would be large: alternatives of texts are a text's alternatives."""
    small = len(left) * len(right) <= TEXTS_LIMIT
    return (left, right) if small else (_one(left), _one(right))


def _one(sets: tuple[Texts, ...]) -> tuple[Texts, ...]:
    return (Texts(sets[0].kind, sets[0].origin, None, (alternatives([part.pattern() for part in sets]),)),)


def _meets(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, ...]:
    effort.spend(4 * len(left) * len(right))
    met: list[Part | None] = [a.meet(b) for a, b in product(left, right)]
    found = dict.fromkeys(part for part in met if part is not None)
    if len(found) > SHAPE_LIMIT:
        raise TooManyShapesError(len(found))
    return tuple(found)


def _differ(left: tuple[Texts, ...], right: tuple[Texts, ...]) -> bool:
    """Whether one side has no sets, or all are finite and have nothing in common."""
    if not left or not right:
        return True
    if any(part.literals is None for part in (*left, *right)):
        return False
    mine = {value for part in left for value, _ in part.literals or ()}
    return not any(value in mine for part in right for value, _ in part.literals or ())


def _listed_once(left: tuple[Texts, ...], right: tuple[Texts, ...]) -> tuple[tuple[Texts, ...], tuple[Texts, ...]]:
    """Put the finite sets of both sides into one, the first of the left: alternatives of constants may be many."""
    finite = [part for part in (*left, *right) if part.literals is not None]
    if len(finite) < 2:
        return left, right
    return (gathered(finite), *(p for p in left if p.literals is None)), tuple(p for p in right if p.literals is None)


def _joined(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, ...]:
    found = list(left)
    found += [part for part in right if part not in left]
    if len(found) > SHAPE_LIMIT:
        raise TooManyShapesError(len(found))
    return tuple(found)


def _outside(whole: tuple[Part, ...], complements: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    """Return what is in the complement of each part of a union."""
    for complement in complements:
        whole = _meets(whole, complement)
    return whole
