"""Sets of strings by their content, of numbers by their spelling: finite, or patterns that all have to match."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Literal

from engine.constraints.json_schema import numbers, texts
from engine.pattern import Complement, Origin, Pattern, alternatives

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind = Literal["string", "number"]


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


def gathered(finite: Sequence[Texts]) -> Texts:
    """Unite finite sets of one kind, at least one; of equal texts the first stays."""
    distinct: dict[str | Decimal, tuple[str | Decimal, Origin]] = {}
    for part in finite:
        for value, origin in part.literals or ():
            distinct.setdefault(value, (value, origin))
    return Texts(finite[0].kind, finite[0].origin, tuple(distinct.values()))


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
