"""Pattern -> a program of the stack machine that writes Thompson's automaton: a subroutine for each of its nodes."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING

import numpy as np

from engine import program
from engine.pattern import Atomic, Chars, Concat, Graph, Look, Repeat, Union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.alphabet import Alphabet
    from engine.pattern import Origin, Pattern
    from engine.table import Table

Symbols = tuple[int, ...]
_Arc = tuple[int, "Pattern | tuple[Symbols, frozenset[int]]", int]
"""From, a pattern or the symbols and leaves of one move, to."""
AHEAD, NEGATIVE = 1, 2
"""Bits of the kind of a look-around."""


class Writer:
    """Writes the subroutines of a pattern's nodes; a slot is a place of the stack, counted from its bottom.

    Attributes:
        reads: the sets of symbols that atoms read, numbered.
        leaf_sets: the sets of leaves that atoms write, numbered; none are 0.
        nodes: those that have a subroutine.
        widest: states or splits that one instruction makes, at most.
    """

    def __init__(self, alphabet: Alphabet, leaf_ids: dict[Origin, int], tables: Mapping[int, Table], most: int) -> None:
        self.reads: dict[Symbols, int] = {}
        self.leaf_sets: dict[frozenset[int], int] = {frozenset(): 0}
        self.nodes: list[Pattern] = []
        self.widest = 1
        self._alphabet, self._leaf_ids, self._tables, self._most = alphabet, leaf_ids, tables, most
        self._known: dict[int, tuple[int, ...]] = {}
        self._routines: list[list[int]] = []
        self._code: list[int] = []
        self._height = 0

    def program(self, pattern: Pattern) -> tuple[np.ndarray, np.ndarray]:
        """Return the code that makes the final state and what a pattern takes, and where the subroutines begin."""
        main = self._code = [program.OPEN, 1]
        self._add(pattern)
        main.append(program.HALT)
        parts = [main, *self._routines]
        starts = np.asarray(list(accumulate(map(len, parts)))[:-1], np.int64)
        return np.fromiter(chain.from_iterable(parts), np.int32), starts

    def _add(self, pattern: Pattern) -> None:
        """Write what a pattern in front of what comes next takes."""
        self._code += self._known.get(id(pattern)) or self._written(pattern)

    def _written(self, pattern: Pattern) -> tuple[int, ...]:
        """Return the atom of a leaf, or the call of a node's subroutine, which is written here."""
        if isinstance(pattern, Chars):
            # It writes itself; the copies of a repetition are one leaf.
            leaf = self._leaf_ids.setdefault(pattern.origin, len(self._leaf_ids))
            found = self._atom(self._alphabet.symbols_of[pattern.ranges], frozenset((leaf,)))
        else:
            found = program.CALL, len(self.nodes)
            self._subroutine(pattern)
        self._known[id(pattern)] = found
        return found

    def _atom(self, symbols: Symbols, leaves: frozenset[int]) -> tuple[int, ...]:
        if not symbols:
            return program.OPEN, 1
        read = self.reads.setdefault(symbols, len(self.reads))
        return program.ATOM, read, self.leaf_sets.setdefault(leaves, len(self.leaf_sets))

    def _subroutine(self, pattern: Pattern) -> None:
        number, outside = len(self.nodes), (self._code, self._height)
        self._code, self._height = list[int](), 0
        self.nodes.append(pattern)
        self._routines.append(self._code)
        self._node(pattern, number)
        self._code.append(program.RETURN)
        self._code, self._height = outside

    def _node(self, pattern: Pattern, number: int) -> None:
        # By isinstance, as in `pattern.children`: this is done for every key typed.
        if isinstance(pattern, Concat):
            for part in reversed(pattern.parts):
                self._add(part)
        elif isinstance(pattern, Union):
            self._union(pattern.parts)
        elif isinstance(pattern, Look):
            self._look(pattern)
        elif isinstance(pattern, Atomic):
            self._atomic(pattern.body)
        else:
            self._code += (program.INSIDE, number)
            self._construct(pattern)
            self._code += (program.INSIDE, -1)

    def _construct(self, pattern: Pattern) -> None:
        match pattern:
            case Repeat():
                self._repeat(pattern)
            case Graph(arcs, finals):
                ends = sorted({0, *finals, *(node for source, _, target in arcs for node in (source, target))})
                number = {node: n for n, node in enumerate(ends)}
                self._web(len(ends), [(number[a], part, number[b]) for a, part, b in arcs], {number[n] for n in finals})
            case _:
                table = self._tables[id(pattern)]
                moves = [
                    (n, (symbols, leaves), to) for n in range(table.states) for symbols, to, leaves in table.moves(n)
                ]
                self._web(table.states, moves, set(np.flatnonzero(table.accepting).tolist()))

    def _keep(self) -> int:
        """Keep the state that what comes next leads to; return its slot."""
        self._code.append(program.KEEP)
        self._height += 1
        return self._height - 1

    def _take(self, slot: int, offset: int = 0) -> None:
        self._code += (program.TAKE, self._height - slot, offset)

    def _drop(self, height: int) -> None:
        """Drop what stands above a height of the stack."""
        self._code += (program.DROP, self._height - height)
        self._height = height

    def _open(self, count: int = 1) -> int:
        """Keep the first of some new states."""
        self.widest = max(self.widest, count)
        self._code += (program.OPEN, count)
        return self._keep()

    def _split(self, slots: Sequence[int]) -> None:
        self.widest = max(self.widest, len(slots))
        self._code += (program.SPLIT, len(slots), *(self._height - slot for slot in slots))

    def _fill(self, slot: int, offset: int, slots: Sequence[int]) -> None:
        self.widest = max(self.widest, len(slots))
        at = self._height
        self._code += (program.FILL, at - slot, offset, len(slots), *(at - other for other in slots))

    def _guarded(self, kind: int, entry: int, end: int, then: int) -> None:
        """Go on to the state in the slot `then` under a condition."""
        at = self._height
        self._code += (program.GUARD, kind, at - entry, at - end, at - then)

    def _copies(self, count: int) -> Iterable[None]:
        """Let what is written in the loop over this be done so many times, as far as that may be made."""
        count = min(count, self._most + 1)
        if count > 1:
            self._code += (program.TIMES, count)
            self._height += 2
        if count:
            yield
        if count > 1:
            self._code.append(program.UNTIL)
            self._height -= 2

    def _union(self, parts: Sequence[Pattern]) -> None:
        then = self._keep()
        ways = []
        for part in parts:
            self._take(then)
            self._add(part)
            ways.append(self._keep())
        self._split(ways)
        self._drop(then)

    def _repeat(self, repeat: Repeat) -> None:
        then = self._keep()
        if repeat.most is None:
            loop = self._open()
            self._add(repeat.body)
            self._fill(loop, 0, (self._keep(), then))
            self._take(loop)
        else:
            for _ in self._copies(repeat.most - repeat.least):
                self._add(repeat.body)
                once = self._keep()
                self._split((once, then))
                self._drop(once)
        self._drop(then)
        for _ in self._copies(repeat.least):
            self._add(repeat.body)

    def _web(self, count: int, arcs: Sequence[_Arc], finals: set[int]) -> None:
        """Write nodes, of which 0 is the first, with arcs between them."""
        then = self._keep()
        first = self._open(count)
        out: list[list[int]] = [[then] if node in finals else [] for node in range(count)]
        for source, part, target in arcs:
            self._take(first, target)
            if isinstance(part, tuple):
                self._code += self._atom(*part)
            else:
                self._add(part)
            out[source].append(self._keep())
        for node, slots in enumerate(out):
            self._fill(first, node, slots)
        self._take(first)
        self._drop(then)

    def _look(self, look: Look) -> None:
        then = self._keep()
        end = self._open()
        self._code += (program.LOOKING, 1)
        self._add(look.body)
        self._code += (program.LOOKING, -1)
        self._guarded(AHEAD * look.ahead + NEGATIVE * look.negative, self._keep(), end, then)
        self._drop(then)

    def _atomic(self, body: Pattern) -> None:
        """Write the first way in which the body matches: each choice if no earlier one can be completed."""
        then = self._keep()
        end = self._open()
        self._take(self._first(body, end, then, end)[1])
        self._drop(then)

    def _first(self, pattern: Pattern, any_then: int, then: int, end: int) -> tuple[int, int]:
        """Write a pattern twice.

        Args:
            pattern: a part of an atomic group.
            any_then: what follows in the copy that takes any way; it is only ever asked whether it reaches `end`.
            then: what follows in the copy that takes the first way.
            end: the end of the group, in the copy that takes any way.

        Returns:
            The slots of the entries of the copy that takes any way and of the one that takes the first.
        """
        match pattern:
            case Concat(parts):
                for part in reversed(parts):
                    any_then, then = self._first(part, any_then, then, end)
                return any_then, then
            case Union(parts):
                return self._choice([self._first(part, any_then, then, end) for part in parts], end)
            case Repeat():
                return self._first_repeat(pattern, any_then, then, end)
            case _:
                self._take(any_then)
                self._code += (program.LOOKING, 1)
                self._add(pattern)
                self._code += (program.LOOKING, -1)
                any_entry = self._keep()
                self._take(then)
                self._add(pattern)
                return any_entry, self._keep()

    def _choice(self, ways: list[tuple[int, int]], end: int) -> tuple[int, int]:
        self._split([any_way for any_way, _ in ways])
        any_entry = self._keep()
        entry = ways[-1][1] if ways else self._open()
        for any_way, way in reversed(ways[:-1]):
            self._guarded(AHEAD + NEGATIVE, any_way, end, entry)
            self._split((way, self._keep()))
            entry = self._keep()
        return any_entry, entry

    def _first_repeat(self, repeat: Repeat, any_then: int, then: int, end: int) -> tuple[int, int]:
        def once_or_on(any_next: int, following: int) -> tuple[int, int]:
            ways = [self._first(repeat.body, any_next, following, end), (any_then, then)]
            return self._choice(ways if repeat.greedy else ways[::-1], end)

        entries = (any_then, then)
        if repeat.most is None:
            loops = self._open(), self._open()
            entries = once_or_on(*loops)
            for loop, entry in zip(loops, entries, strict=True):
                self._fill(loop, 0, (entry,))
        else:
            for _ in self._each_of(repeat.most - repeat.least):
                entries = once_or_on(*entries)
        for _ in self._each_of(repeat.least):
            entries = self._first(repeat.body, *entries, end)
        return entries

    def _each_of(self, copies: int) -> Iterable[int]:
        """Number copies that are written one by one, as far as their states are within what may be made."""
        for n in range(copies):
            if len(self._code) > 8 * self._most:
                return
            yield n
