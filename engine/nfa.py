"""Pattern -> Thompson's automaton over symbols of an alphabet, look-around kept as guards."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from engine import effort
from engine.pattern import Atomic, Chars, Concat, Graph, Look, Repeat, Union
from engine.subsets import Thompson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.alphabet import Alphabet
    from engine.pattern import Origin, Pattern
    from engine.table import Table

Symbols = tuple[int, ...]

_PAID = 16
"""States whose work is counted together: counting takes as long as making one."""


class TooManyStatesError(Exception):
    """The copies of a repetition pass the budget; `engine.automaton.compile` says so in the user's words."""


@dataclass
class Guard:
    """A look-around whose body has its own entry and final state."""

    entry: int
    end: int
    ahead: bool
    negative: bool


@dataclass
class Nfa:
    """States of three kinds: an atom reads a symbol, a split goes on without, a guard goes on under a condition.

    State 0 is final. The states that intersections and complements take are those of their own tables.

    Attributes:
        alphabet: whose symbols are read.
        leaf_ids: the leaves of the whole source, shared by all automata of it.
        tables: the automaton of each intersection and complement, by the identity of its node.
        symbols: what each atom reads; None where the state is no atom.
        target: where each atom leads.
        leaves: the leaves that each atom writes.
        construct: the repetition, intersection or complement around each state, a number in `constructs`; -1 if none.
        constructs: such nodes, each with the number of the one around it.
    """

    alphabet: Alphabet
    leaf_ids: dict[Origin, int]
    tables: Mapping[int, Table] = field(default_factory=dict)
    budget: int = 1_000_000
    symbols: list[Symbols | None] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    leaves: list[frozenset[int]] = field(default_factory=list)
    splits: list[tuple[int, ...]] = field(default_factory=list)
    guard: list[int] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    construct: list[int] = field(default_factory=list)
    constructs: list[tuple[Pattern, int]] = field(default_factory=list)
    _entries: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    _leaves: dict[int, tuple[Symbols, frozenset[int]]] = field(default_factory=dict)
    _inside: int = -1
    _depth: int = 0

    def state(
        self,
        symbols: Symbols | None = None,
        target: int = -1,
        leaves: frozenset[int] = frozenset(),
        splits: tuple[int, ...] = (),
        guard: int = -1,
    ) -> int:
        """Add a state."""
        number = len(self.splits)
        if number >= self.budget:
            raise TooManyStatesError
        if number % _PAID == _PAID - 1:
            effort.spend(3 * _PAID)
        self.symbols.append(symbols)
        self.target.append(target)
        # What a look-around reads is a condition, it writes nothing.
        self.leaves.append(frozenset() if self._depth else leaves)
        self.splits.append(splits)
        self.guard.append(guard)
        self.construct.append(self._inside)
        return number

    def add(self, pattern: Pattern, then: int) -> int:
        """Add the states of a pattern that is followed by the state `then`; return its entry.

        A pattern that stands in two places with the same state behind them has its states once.
        """
        if isinstance(pattern, Chars):
            symbols, leaves = self._leaf(pattern)
            return self.state(symbols, then, leaves) if symbols else self.state()
        key = (id(pattern), then, self._depth > 0)
        if key not in self._entries:
            self._entries[key] = self._add(pattern, then)
        return self._entries[key]

    def _leaf(self, leaf: Chars) -> tuple[Symbols, frozenset[int]]:
        """Return what a leaf reads, and itself as what it writes; the copies of a repetition are one leaf."""
        known = self._leaves.get(id(leaf))
        if known is None:
            number = self.leaf_ids.setdefault(leaf.origin, len(self.leaf_ids))
            known = self._leaves[id(leaf)] = self.alphabet.symbols_of[leaf.ranges], frozenset((number,))
        return known

    def _add(self, pattern: Pattern, then: int) -> int:
        match pattern:
            case Concat(parts):
                for part in reversed(parts):
                    then = self.add(part, then)
                return then
            case Union(parts):
                return self.state(splits=tuple(self.add(part, then) for part in parts))
            case Look():
                return self._look(pattern, then)
            case Atomic(body):
                return self._atomic(body, then)
            case _:
                around = self._inside
                self.constructs.append((pattern, around))
                self._inside = len(self.constructs) - 1
                entry = self._construct(pattern, then)
                self._inside = around
                return entry

    def _construct(self, pattern: Pattern, then: int) -> int:
        match pattern:
            case Repeat():
                return self._repeat(pattern, then)
            case Graph():
                return self._graph(pattern, then)
            case _:
                return self._table(pattern, then)

    def _look(self, look: Look, then: int) -> int:
        self._depth += 1
        end = self.state()
        entry = self.add(look.body, end)
        self._depth -= 1
        self.guards.append(Guard(entry, end, look.ahead, look.negative))
        return self.state(splits=(then,), guard=len(self.guards) - 1)

    def _repeat(self, repeat: Repeat, then: int) -> int:
        if repeat.most is None:
            entry = self.state()
            self.splits[entry] = (self.add(repeat.body, entry), then)
        else:
            entry = then
            for _ in range(repeat.most - repeat.least):
                entry = self.state(splits=(self.add(repeat.body, entry), then))
        for _ in range(repeat.least):
            entry = self.add(repeat.body, entry)
        return entry

    def _atomic(self, body: Pattern, then: int) -> int:
        """Add the first way in which the body matches: each choice if no earlier one can be completed."""
        self._depth += 1
        end = self.state()
        self._depth -= 1
        return self._first(body, end, then, end)[1]

    def _first(self, pattern: Pattern, any_then: int, then: int, end: int) -> tuple[int, int]:
        """Add a pattern twice.

        Args:
            pattern: a part of an atomic group.
            any_then: what follows in the copy that takes any way; it is only ever asked whether it reaches `end`.
            then: what follows in the copy that takes the first way.
            end: the end of the group, in the copy that takes any way.

        Returns:
            The entries of the copy that takes any way and of the one that takes the first.
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
                self._depth += 1
                any_entry = self.add(pattern, any_then)
                self._depth -= 1
                return any_entry, self.add(pattern, then)

    def _choice(self, ways: list[tuple[int, int]], end: int) -> tuple[int, int]:
        any_entry = self.state(splits=tuple(any_way for any_way, _ in ways))
        entry = ways[-1][1] if ways else self.state()
        for any_way, way in reversed(ways[:-1]):
            self.guards.append(Guard(any_way, end, ahead=True, negative=True))
            entry = self.state(splits=(way, self.state(splits=(entry,), guard=len(self.guards) - 1)))
        return any_entry, entry

    def _first_repeat(self, repeat: Repeat, any_then: int, then: int, end: int) -> tuple[int, int]:
        def once_or_on(any_next: int, following: int) -> tuple[int, int]:
            ways = [self._first(repeat.body, any_next, following, end), (any_then, then)]
            return self._choice(ways if repeat.greedy else ways[::-1], end)

        entries = (any_then, then)
        if repeat.most is None:
            loops = self.state(), self.state()
            entries = once_or_on(*loops)
            self.splits[loops[0]], self.splits[loops[1]] = (entries[0],), (entries[1],)
        else:
            for _ in range(repeat.most - repeat.least):
                entries = once_or_on(*entries)
        for _ in range(repeat.least):
            entries = self._first(repeat.body, *entries, end)
        return entries

    def _graph(self, graph: Graph, then: int) -> int:
        ends = {0, *graph.finals, *(node for source, _, target in graph.arcs for node in (source, target))}
        entries = {node: self.state() for node in sorted(ends)}
        out = {node: [then] if node in graph.finals else [] for node in ends}
        for source, part, target in graph.arcs:
            out[source].append(self.add(part, entries[target]))
        for node, splits in out.items():
            self.splits[entries[node]] = tuple(splits)
        return entries[0]

    def _table(self, node: Pattern, then: int) -> int:
        """Add the states of an automaton that is already deterministic."""
        table = self.tables[id(node)]
        entries = [self.state() for _ in range(table.states)]
        for number, entry in enumerate(entries):
            moves = [self.state(symbols, entries[to], leaves) for symbols, to, leaves in table.moves(number)]
            self.splits[entry] = (*moves, then) if table.accepts(number) else tuple(moves)
        return entries[table.initial]

    def arrays(self) -> tuple[Thompson, list[frozenset[int]]]:
        """Return the automaton without its guards as arrays, and the sets of leaves that its atoms number."""
        reads: dict[Symbols, int] = {}
        read = [-1 if symbols is None else reads.setdefault(symbols, len(reads)) for symbols in self.symbols]
        sets: dict[frozenset[int], int] = {}
        leaves = [sets.setdefault(written, len(sets)) for written in self.leaves]
        read_symbol, read_ptr = _joined(list(reads))
        split, split_ptr = _joined(self.splits)
        number, target, leaf_set = (np.asarray(column, np.int32) for column in (read, self.target, leaves))
        return Thompson(number, read_ptr, read_symbol, target, leaf_set, split_ptr, split), list(sets)

    def reached(self, entries: set[int]) -> frozenset[int]:
        """Return the atoms that are reached from these states without reading a symbol, and 0 where the end is."""
        if len(entries) == 1 and not self.splits[(entry := next(iter(entries)))]:
            effort.spend(0.4)
            return frozenset(entries) if self.symbols[entry] is not None or entry == 0 else frozenset()
        atoms, seen, stack = set(), set(entries), list(entries)
        while stack:
            state = stack.pop()
            if self.symbols[state] is not None or state == 0:
                atoms.add(state)
            for following in self.splits[state]:
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        effort.spend(0.4 * len(seen))
        return frozenset(atoms)

    def taken(self, atoms: Iterable[int]) -> Iterable[tuple[Symbols, list[int]]]:
        """Split the symbols by which of these atoms read them; yield each part that some do, with those atoms."""
        by_symbols: dict[Symbols, list[int]] = {}
        for atom in atoms:
            read = self.symbols[atom]
            if read is not None:
                by_symbols.setdefault(read, []).append(atom)
        if len(by_symbols) == 1:
            yield from by_symbols.items()
            return
        hits: dict[int, list[Symbols]] = {}
        for read in by_symbols:
            for symbol in read:
                hits.setdefault(symbol, []).append(read)
        effort.spend(0.4 * sum(map(len, by_symbols)) + len(hits))
        parts: dict[tuple[Symbols, ...], list[int]] = {}
        for symbol, reads in hits.items():
            parts.setdefault(tuple(reads), []).append(symbol)
        for together, symbols in parts.items():
            yield tuple(symbols), [atom for read in together for atom in by_symbols[read]]


def _joined(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Write rows one after the other as int32; return where each begins, and where the last ends, beside them."""
    ptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.fromiter(chain.from_iterable(rows), np.int32, ptr[-1]), ptr
