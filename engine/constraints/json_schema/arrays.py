"""Shape of arrays -> pattern: an automaton that counts items, what `contains` asks for, and what was used."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from engine.constraints.json_schema import edits, numbers, spelling, texts
from engine.constraints.json_schema.contents import Texts
from engine.constraints.json_schema.goals import FALSE, Goal, every, negated
from engine.constraints.json_schema.shapes import Array, Contains
from engine.determinise import OverBudgetError
from engine.pattern import Complement, Concat, Graph, Intersection, Origin, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.spelling import Layout
    from engine.constraints.json_schema.writing import Writer

ITEM_LIMIT = 40_000
"""Leaves that the counted items of one array may take."""
UNIQUE_LIMIT = 8
"""Different items that an array without repetition may choose from."""
State = tuple[int, tuple[int, ...], int, bool]
"""Items so far, of each `contains` those found, the set of the items used, whether one came twice."""


def free(layout: Layout, item: Pattern | None, origin: Origin) -> Pattern:
    """Return the arrays of any length; without an item the empty one."""
    start, stop = layout.open("[", origin), layout.close("]", origin)
    empty = Concat((spelling.text("[", origin), stop))
    if item is None:
        return empty
    arcs = ((0, empty, 3), (0, start, 1), (1, item, 2), (2, layout.comma(origin), 1), (2, stop, 3))
    return Graph(arcs, frozenset({3}), origin)


def pattern(writer: Writer, shape: Array, path: tuple[Goal, ...]) -> Pattern | None:
    """Return the texts of the arrays of a shape; None where there is none."""
    shape = _countable(writer, shape)
    listed = _finite(writer, shape) if shape.unique is not None else []
    if listed is None:
        _tell_unique(writer, shape)
        shape = replace(shape, unique=None)
    if not shape.contains and shape.unique is None and not shape.prefix and not shape.least and shape.most is None:
        return free(writer.layout, writer.value(shape.rest, path, shape.origin), shape.origin)
    return _Builder(writer, shape, path, listed or []).graph()


def _tell_unique(writer: Writer, shape: Array) -> None:
    document = writer.expansion.schemas.document
    keyword = document.keyword(shape.origin.pointer or "", "uniqueItems")
    pointer = keyword or shape.origin.pointer or ""
    writer.expansion.report.approximated(
        "unique-not-enforced",
        pointer,
        f"Whether items repeat is not enforced at {pointer or 'the root'}: a finite automaton can't remember items out "
        f"of more than {UNIQUE_LIMIT} different ones. Arrays with repeated items are accepted.",
        "List the items that are allowed as an 'enum' of few values.",
        edits=edits.offered(document, edits.removed, [keyword] if keyword else []),
    )


def _countable(writer: Writer, shape: Array) -> Array:
    """Drop a length that takes too many states, and say so."""
    item = writer.value(shape.rest, (), shape.origin) if (shape.most or shape.least or 0) > 16 else None
    leaves = texts.size(item) if item else 1
    counted = max(shape.most or 0, shape.least)
    if counted * leaves <= ITEM_LIMIT:
        return shape
    limit = max(ITEM_LIMIT // leaves, len(shape.prefix), 1)
    document = writer.expansion.schemas.document
    keyword = document.keyword(shape.origin.pointer or "", "minItems" if shape.least > limit else "maxItems")
    pointer = keyword or shape.origin.pointer or ""
    least = min(shape.least, limit)
    writer.expansion.report.approximated(
        "items-too-many",
        pointer,
        f"The number of items at {pointer or 'the root'} is not enforced: counting to {counted:,} takes too many "
        f"states. Arrays of {least:,} items and more are accepted.",
        f"Ask for at most {limit:,} items.",
        edits=edits.offered(document, edits.replaced, [keyword] if keyword else [], limit),
    )
    return replace(shape, least=least, most=None)


class _Builder:
    """Builds the graph of one shape, a state after the other."""

    def __init__(self, writer: Writer, shape: Array, path: tuple[Goal, ...], listed: list[Any]) -> None:
        self.writer = writer
        self.shape = shape
        self.path = path
        self.listed = listed
        starts = [c.start for c in shape.contains]
        self.last = shape.most if shape.most is not None else max(len(shape.prefix), shape.least, *starts, 1)
        self.known: dict[Goal, Pattern | None] = {}

    def graph(self) -> Pattern | None:
        layout, origin = self.writer.layout, self.shape.origin
        # Node 0 the start and 1 the end; each state has a node before its comma, the even, and one behind it.
        start: State = (0, (0,) * len(self.shape.contains), 0, False)
        order, ids = [start], {start: 0}
        arcs: list[tuple[int, Pattern, int]] = [(0, layout.open("[", origin), 3)]
        if self._accepts(start):
            arcs.append((0, Concat((spelling.text("[", origin), layout.close("]", origin))), 1))
        for state in order:
            here = 2 + 2 * ids[state]
            if state != start:
                arcs.append((here, layout.comma(origin), here + 1))
                if self._accepts(state):
                    arcs.append((here, layout.close("]", origin), 1))
            for item, following in self._items(state):
                if following not in ids:
                    ids[following] = len(order)
                    order.append(following)
                arcs.append((here + 1, item, 2 + 2 * ids[following]))
        return Graph(tuple(arcs), frozenset({1}), origin) if any(target == 1 for _, _, target in arcs) else None

    def _accepts(self, state: State) -> bool:
        count, found, _, repeated = state
        enough = all(n >= c.least for n, c in zip(found, self.shape.contains, strict=True))
        return count >= self.shape.least and enough and (self.shape.unique is not False or repeated)

    def _items(self, state: State) -> Iterator[tuple[Pattern, State]]:
        """Yield what the next item may be, with the state behind it."""
        count, found, used, repeated = state
        if self.shape.most is not None and count >= self.shape.most:
            return
        goal = self.shape.item(count)
        for wanted, counts in self._counted(goal, count, found):
            for item, bit in self._choices(wanted):
                again = bool(used & bit)
                if again and self.shape.unique:
                    continue
                written = self._written(item)
                if written is not None:
                    yield written, (min(count + 1, self.last), counts, used | bit, repeated or again)

    def _counted(self, goal: Goal, index: int, found: tuple[int, ...]) -> Iterator[tuple[Goal, tuple[int, ...]]]:
        """Split the items by which of the `contains` they are counted for."""
        ways: list[tuple[Goal, tuple[int, ...]]] = [(goal, ())]
        for c, n in zip(self.shape.contains, found, strict=True):
            if index < c.start or (c.most is None and n >= c.least):
                ways = [(known, (*counts, n)) for known, counts in ways]
                continue
            split = [(every(known, negated(c.goal)), (*counts, n)) for known, counts in ways]
            if c.most is None or n < c.most:
                split += [(every(known, c.goal), (*counts, _more(c, n))) for known, counts in ways]
            ways = [(known, counts) for known, counts in split if not self.writer.expansion.is_empty(known)]
        yield from ways

    def _choices(self, goal: Goal) -> Iterator[tuple[Goal, int]]:
        """Yield the items one by one where it matters which; each with its bit in the set of those used."""
        if self.shape.unique is None:
            yield goal, 0
            return
        expansion = self.writer.expansion
        for i, value in enumerate(self.listed):
            one = every(goal, expansion.constant(value, self.shape.origin.pointer or ""))
            if not expansion.is_empty(one):
                yield one, 1 << i

    def _written(self, goal: Goal) -> Pattern | None:
        if goal not in self.known:
            self.known[goal] = self.writer.value(goal, self.path, self.shape.origin)
        return self.known[goal]


def _more(c: Contains, n: int) -> int:
    return n + 1 if c.most is not None else min(n + 1, c.least)


def _finite(writer: Writer, shape: Array) -> list[Any] | None:
    """List the different items that a shape may have; None where there are too many."""
    found: dict[tuple[bool, Any], Any] = {}
    length = len(shape.prefix) + 1 if shape.most is None else min(len(shape.prefix) + 1, shape.most)
    for index in range(length):
        goal = shape.item(index)
        values = writer.expansion.values(goal) if goal != FALSE else None
        if values is None:
            continue
        if values.arrays or values.objects:
            return None
        words: dict[str, Any] = {"null": None, "true": True, "false": False}
        listed: list[Any] = [words[word] for word, _ in values.words]
        for part in (*values.numbers, *values.strings):
            literals = _literals(part)
            if literals is None:
                return None
            listed += literals
        found.update({(isinstance(value, bool), value): value for value in listed})
        if len(found) > UNIQUE_LIMIT:
            return None
    return list(found.values())


def _literals(part: Texts) -> list[Any] | None:
    """List a set of strings or numbers; None where it has more than `UNIQUE_LIMIT`."""
    if part.literals is not None:
        return [value for value, _ in part.literals]
    if part.kind == "string":
        return None
    origin = part.origin
    try:
        whole = part.pattern()
        if not texts.is_empty(Intersection((whole, Complement(numbers.integers(origin), origin)))):
            return None
        plain = texts.listed(Intersection((whole, numbers.plain_integers(origin))), UNIQUE_LIMIT + 1)
    except OverBudgetError:
        return None
    return None if plain is None else sorted({Decimal(text) + 0 for text in plain})
