"""Shape of objects -> pattern: an automaton over the members, in the order of the schema and then any others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine import effort
from engine.constraints.json_schema import edits, spelling
from engine.constraints.json_schema.goals import FALSE, Goal, every
from engine.constraints.json_schema.shapes import Field, Object
from engine.pattern import EMPTY, Concat, Graph, Origin, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.constraints.json_schema.spelling import Layout
    from engine.constraints.json_schema.writing import Writer

LOOSE_LIMIT = 4
"""Members without a place in the schema's order that may come in any order; more of them come in the order named."""
ANY_ORDER_LIMIT = 6
"""Members that `key_order="any"` puts in any order; each doubles the states."""
COUNT_LIMIT = 64
"""Members that `minProperties` and `maxProperties` may count."""
State = tuple[int, int, int, int]
"""Members passed in order, members written (as far as it matters), loose ones written, conditions met."""


def free(layout: Layout, name: Pattern | None, value: Pattern | None, origin: Origin) -> Pattern:
    """Return the objects with any members; without a value the empty one."""
    start, stop = layout.open("{", origin), layout.close("}", origin)
    empty = Concat((spelling.text("{", origin), stop))
    if name is None or value is None:
        return empty
    member = Concat((name, layout.colon(origin), value))
    arcs = ((0, empty, 3), (0, start, 1), (1, member, 2), (2, layout.comma(origin), 1), (2, stop, 3))
    return Graph(arcs, frozenset({3}), origin)


def pattern(writer: Writer, shape: Object, path: tuple[Goal, ...]) -> Pattern | None:
    """Return the texts of the objects of a shape; None where there is none."""
    found = [_Builder(writer, one, path).graph() for one in _decided(writer, shape)]
    ways = [way for way in found if way is not None]
    return spelling.union(ways) if ways else None


def _decided(writer: Writer, shape: Object) -> Iterator[Object]:
    """Split a shape by which of its named members meet the conditions on names; the rest are left to other members."""
    for n, (names, goal) in enumerate(shape.exists):
        for i, field in enumerate(shape.fields):
            if field.goal != FALSE and names.holds(field.name):
                met = replace(field, goal=every(field.goal, goal), required=True)
                fields = (*shape.fields[:i], met, *shape.fields[i + 1 :])
                rest = (*shape.exists[:n], *shape.exists[n + 1 :])
                one = replace(shape, fields=fields, exists=rest).settled()
                if one and not writer.expansion.is_empty(met.goal):
                    yield from _decided(writer, one)
    yield shape


class _Builder:
    """Builds the graph of one shape, a state after the other."""

    def __init__(self, writer: Writer, shape: Object, path: tuple[Goal, ...]) -> None:
        self.writer = writer
        self.shape = _countable(writer, shape)
        self.path = path
        self.ordered, self.loose = self._split()
        self.names = tuple(field.name for field in shape.fields)
        self.others = list(self._other_members())
        required = sum(field.required for field in shape.fields)
        self.counts = self.shape.least > required or self.shape.most is not None
        self.cap = max(self.shape.least, self.shape.most or 0) if self.counts else 1
        self.nodes: dict[object, int] = {"start": 0, "end": 1}
        self.arcs: list[tuple[int, Pattern, int]] = []
        self.values: dict[Goal, Pattern | None] = {}

    def _split(self) -> tuple[list[Field], list[Field]]:
        """Return the members in order and those in any order."""
        there = [field for field in self.shape.fields if field.goal != FALSE]
        if self.writer.key_order == "any" and len(there) <= ANY_ORDER_LIMIT:
            return [], there
        loose = [field for field in there if not field.declared]
        if not loose or len(loose) > LOOSE_LIMIT:
            return there, []
        return [field for field in there if field.declared], loose

    def _other_members(self) -> Iterator[tuple[Pattern, Goal, int]]:
        """Yield the names of further members, what their values are in, and which conditions they meet."""
        classes = [(names, goal, 0) for names, goal in self.shape.others]
        for n, (wanted, condition) in enumerate(self.shape.exists):
            met = [(names.meet(wanted), every(goal, condition), bits | 1 << n) for names, goal, bits in classes]
            classes += [(names, goal, bits) for names, goal, bits in met if names.sets]
        for names, goal, bits in classes:
            if goal == FALSE:
                continue
            for part in names.sets:
                written = self.writer.string(part, self.names)
                if written is not None:
                    yield written, goal, bits

    def graph(self) -> Pattern | None:
        layout, origin = self.writer.layout, self.shape.origin
        first: State = (0, 0, 0, 0)
        order, seen = [first], {first}
        self.arcs.append((0, layout.open("{", origin), self._node(first)))
        for state in order:
            for following in self._from(state):
                if following not in seen:
                    seen.add(following)
                    order.append(following)
            if self._accepts(state):
                self._close(state)
        if not any(target == 1 for _, _, target in self.arcs):
            return None
        return Graph(tuple(self.arcs), frozenset({1}), origin)

    def _node(self, key: object) -> int:
        return self.nodes.setdefault(key, len(self.nodes))

    def _close(self, state: State) -> None:
        layout, origin = self.writer.layout, self.shape.origin
        self.arcs.append((self._node(state), layout.close("}", origin), 1))

    def _accepts(self, state: State) -> bool:
        passed, count, loose, met = state
        needed = all(loose >> i & 1 for i, field in enumerate(self.loose) if field.required)
        enough = not self.counts or count >= self.shape.least
        return passed == len(self.ordered) and needed and enough and met == (1 << len(self.shape.exists)) - 1

    def _from(self, state: State) -> Iterator[State]:
        """Add the arcs out of a state; yield where they lead."""
        passed, count, loose, met = state
        if passed < len(self.ordered):
            field = self.ordered[passed]
            skipped = (passed + 1, count, loose, met)
            if not field.required:
                self.arcs.append((self._node(state), EMPTY, self._node(skipped)))
                yield skipped
            yield from self._member(state, field, (passed + 1, self._more(count), loose, met))
            return
        for i, field in enumerate(self.loose):
            if not loose >> i & 1:
                yield from self._member(state, field, (passed, self._more(count), loose | 1 << i, met))
        for n, (name, goal, bits) in enumerate(self.others):
            following = (passed, self._more(count), loose, met | bits)
            yield from self._written(state, n, name, goal, self.shape.origin, following)

    def _more(self, count: int) -> int:
        return min(count + 1, self.cap) if self.shape.most is None else count + 1

    def _member(self, state: State, field: Field, following: State) -> Iterator[State]:
        name = self.writer.text(field.name, field.origin)
        yield from self._written(state, field.name, name, field.goal, field.origin, following)

    def _written(
        self, state: State, which: object, name: Pattern, goal: Goal, origin: Origin, following: State
    ) -> Iterator[State]:
        """Write a member: its comma where it is not the first, its name, and its value, which states may share."""
        if self.shape.most is not None and state[1] >= self.shape.most:
            return
        effort.spend(15)
        value = self._value(goal, origin)
        if value is None:
            return
        layout = self.writer.layout
        behind = ("value", which, following)
        known = behind in self.nodes
        node = self._node(behind)
        comma = (layout.comma(self.shape.origin),) if state[1] else ()
        self.arcs.append((self._node(state), Concat((*comma, name, layout.colon(origin))), node))
        if not known:
            self.arcs.append((node, value, self._node(following)))
        yield following

    def _value(self, goal: Goal, origin: Origin) -> Pattern | None:
        if goal not in self.values:
            self.values[goal] = self.writer.value(goal, self.path, origin)
        return self.values[goal]


def _countable(writer: Writer, shape: Object) -> Object:
    """Drop a count of members that takes too many states, and say so where that changes anything."""
    most = shape.most
    if most is not None and not shape.others and most >= sum(field.goal != FALSE for field in shape.fields):
        most = None
    least = 0 if shape.least <= sum(field.required for field in shape.fields) else shape.least
    if max(least, most or 0) > COUNT_LIMIT:
        document = writer.expansion.schemas.document
        name = "minProperties" if least > COUNT_LIMIT else "maxProperties"
        keyword = document.keyword(shape.origin.pointer or "", name)
        pointer = keyword or shape.origin.pointer or ""
        writer.expansion.report.approximated(
            "properties-too-many",
            pointer,
            f"The number of members at {pointer or 'the root'} is not enforced beyond {COUNT_LIMIT}.",
            f"Ask for at most {COUNT_LIMIT}.",
            edits=edits.offered(document, edits.replaced, [keyword] if keyword else [], COUNT_LIMIT),
        )
        least, most = min(least, COUNT_LIMIT), most if most is not None and most <= COUNT_LIMIT else None
    return replace(shape, least=least, most=most)
