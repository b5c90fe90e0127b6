"""Set of values -> pattern of the JSON texts that write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from engine.constraints.json_schema import arrays, numbers, objects, spelling, texts
from engine.constraints.json_schema.contents import Texts
from engine.constraints.json_schema.goals import FALSE, TRUE, Goal
from engine.constraints.json_schema.values import Values, anything
from engine.determinise import OverBudgetError
from engine.pattern import ANY, Chars, Complement, Concat, Origin, Pattern, Ranges, Repeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.constraints.json_schema.expansion import Expansion
    from engine.constraints.json_schema.spelling import Layout

LEVELS = 40
"""Values inside each other that are written; a schema whose parts refer to each other can nest far beyond its depth."""
KeyOrder = Literal["schema", "any"]
KEY_ORDERS: tuple[KeyOrder, ...] = ("schema", "any")


@dataclass
class Writer:
    """Writes goals.

    Attributes:
        expansion: of goals.
        layout: of blanks.
        depth: how often a schema may be inside itself.
        any_depth: levels of arrays and objects in a value of which nothing is known.
        key_order: `schema`: properties in the order of the schema; `any`: in any.
        plain_integers: whether integers are written without a point.
        cuts: pointers of the schemas that are cut at `depth`.
        empty: schemas that no value satisfies, inner ones first.
        opened: pointers of the places where any value is allowed.
    """

    NOTATION: ClassVar[str] = "the JSON text"
    """What is written, in the words of a finding."""
    ESCAPES: ClassVar[str] = (
        "In strings '\"', '\\' and control characters are escaped, characters beyond ASCII may be; other characters "
        "stand for themselves."
    )
    """How strings are written."""

    expansion: Expansion
    layout: Layout
    depth: int
    any_depth: int
    key_order: KeyOrder
    plain_integers: bool
    cuts: dict[str, None] = field(default_factory=dict)
    empty: dict[Goal, None] = field(default_factory=dict)
    opened: dict[str, None] = field(default_factory=dict)
    exponents: bool = False
    _numbers: dict[Texts, Pattern | None] = field(default_factory=dict)
    _quoted: dict[tuple[Texts, tuple[str, ...], str], Pattern | None] = field(default_factory=dict)
    _anything: dict[tuple[int, Origin], Pattern] = field(default_factory=dict)

    def value(self, goal: Goal, path: tuple[Goal, ...], origin: Origin) -> Pattern | None:
        """Return the texts of a goal's values; None where there is none.

        Args:
            goal: what is written.
            path: the goals around it.
            origin: of what is around it; writes what no schema speaks of.
        """
        if goal == FALSE:
            return None
        if goal == TRUE:
            self.opened.setdefault(origin.pointer or "")
            return self._any_value(self.any_depth, origin)
        self.expansion.spend()
        if path.count(goal) > self.depth or len(path) > LEVELS:
            self.cuts.setdefault(goal.value.pointer if goal.key[0] == "schema" else origin.pointer or "")
            return None
        found = self.values(self.expansion.values(goal), (*path, goal))
        if found is None and goal.key[0] == "schema" and not self.cuts:
            self.empty.setdefault(goal)
        return found

    def values(self, values: Values, path: tuple[Goal, ...]) -> Pattern | None:
        """Return the texts of a set of values; None where there is none."""
        ways: list[Pattern | None] = [self.word(word, origin) for word, origin in values.words]
        ways += [self.number(part) for part in values.numbers]
        ways += [self.string(part) for part in values.strings]
        ways += [arrays.pattern(self, shape, path) for shape in values.arrays]
        ways += [objects.pattern(self, shape, path) for shape in values.objects]
        kept = [way for way in ways if way is not None]
        return spelling.union(kept) if kept else None

    def _any_value(self, depth: int, origin: Origin) -> Pattern:
        """Return the texts of every value down to a depth."""
        key = (depth, origin)
        if key not in self._anything:
            values = anything(origin)
            ways = [self.word(word, origin) for word, _ in values.words]
            ways += [part for part in (self.number(values.numbers[0]), self.string(values.strings[0])) if part]
            inner = self._any_value(depth - 1, origin) if depth else None
            ways.append(arrays.free(self.layout, inner, origin))
            ways.append(objects.free(self.layout, self.string(values.strings[0]), inner, origin))
            self._anything[key] = spelling.union(ways)
        return self._anything[key]

    def word(self, word: str, origin: Origin) -> Pattern:
        """Return how `null`, `true` or `false` is written."""
        return spelling.text(word, origin)

    def number(self, part: Texts) -> Pattern | None:
        """Return the spellings of a set of numbers."""
        self.exponents = True
        if part not in self._numbers:
            self._numbers[part] = self._number(part)
        return self._numbers[part]

    def _number(self, part: Texts) -> Pattern | None:
        if part.is_all:
            whole = numbers.numbers(part.origin)
            return whole if self.plain_integers else spelling.union([whole, numbers.with_exponent(part.origin)])
        if part.parts == (numbers.integers(part.origin),):  # what most numbers are; there is nothing to work out
            return self._integers(part.origin)
        pattern = part.pattern()
        if self.plain_integers and self._is_integer(part):
            pattern = texts.meet((pattern, numbers.plain_integers(part.origin)), part.origin)
        elif part.literals is not None:
            return pattern
        written = self.graph(pattern, Chars, part.origin)
        if written is None or self.plain_integers or not self._has_all_integers(pattern, part.origin):
            return written
        return spelling.union([written, numbers.scaled_integers(part.origin)])

    def _integers(self, origin: Origin) -> Pattern:
        if self.plain_integers:
            return numbers.plain_integers(origin)
        return spelling.union([numbers.integers(origin), numbers.scaled_integers(origin)])

    def _has_all_integers(self, pattern: Pattern, origin: Origin) -> bool:
        """Whether all integers are in a set of numbers, so that those with an exponent are; not so in draft 4."""
        missing = texts.meet((numbers.plain_integers(origin), Complement(pattern, origin)), origin)
        return self.expansion.schemas.draft != 4 and texts.is_empty(missing)

    def _is_integer(self, part: Texts) -> bool:
        if part.literals is not None:
            return all(value == int(value) for value, _ in part.literals)
        return texts.is_empty(
            texts.meet((part.pattern(), Complement(numbers.integers(part.origin), part.origin)), part.origin)
        )

    def string(self, part: Texts, without: tuple[str, ...] = ()) -> Pattern | None:
        """Return how JSON writes a set of strings, some of them left out."""
        if part.literals is not None:
            kept = [(str(value), origin) for value, origin in part.literals if value not in without]
            return spelling.union([self.text(value, origin) for value, origin in kept]) if kept else None
        return self.quoted(part, without, '"', self.character)

    def quoted(
        self, part: Texts, without: tuple[str, ...], mark: str, character: Callable[[Ranges, Origin], Pattern]
    ) -> Pattern | None:
        """Return a set of strings between quotes, but those left out; None where there is none."""
        key = (part, without, mark)
        if key not in self._quoted:
            self._quoted[key] = self._between_quotes(part, without, spelling.text(mark, part.origin), character)
        return self._quoted[key]

    def _between_quotes(
        self, part: Texts, without: tuple[str, ...], quote: Pattern, character: Callable[[Ranges, Origin], Pattern]
    ) -> Pattern | None:
        if not part.parts and not without:
            body = Repeat(character(ANY, part.origin), part.least, part.most, part.origin)
            return Concat((quote, body, quote))
        pattern = part.pattern()
        if without:
            names = spelling.union([texts.literal(name, part.origin) for name in without])
            pattern = texts.meet((pattern, Complement(names, part.origin)), part.origin)
        content = self.graph(pattern, character, part.origin)
        return Concat((quote, content, quote)) if content else None

    def text(self, content: str, origin: Origin) -> Pattern:
        """Return how one string is written."""
        return spelling.string(content, origin)

    def character(self, ranges: Ranges, origin: Origin) -> Pattern:
        """Return how a character inside a string is written."""
        return spelling.character(ranges, origin)

    def graph(self, pattern: Pattern, spell: Callable[[Ranges, Origin], Pattern], origin: Origin) -> Pattern | None:
        """Return the automaton of a set of texts; None where it is empty."""
        try:
            if texts.is_empty(pattern):
                return None
            return texts.graph(pattern, spell, origin)
        except OverBudgetError as error:
            raise texts.too_large(error, self.expansion.schemas.document, origin) from error
