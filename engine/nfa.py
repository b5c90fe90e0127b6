"""Pattern -> Thompson's automaton over symbols of an alphabet, look-around kept as guards.

Each node of the pattern is written once (`routines`), as a subroutine of a small stack machine, which makes the states
(`program`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from engine import effort, program
from engine.routines import AHEAD, NEGATIVE, Writer
from engine.subsets import Thompson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.alphabet import Alphabet
    from engine.pattern import Origin, Pattern
    from engine.routines import Symbols
    from engine.table import Table


class TooManyStatesError(Exception):
    """A condition on what follows is too large; `engine.automaton.compile` says so in the user's words."""


@dataclass(frozen=True)
class Guard:
    """A look-around whose body has its own entry and final state."""

    entry: int
    end: int
    ahead: bool
    negative: bool


@dataclass(frozen=True, eq=False)
class Nfa:
    """States of three kinds: an atom reads a symbol, a split goes on without, a guard goes on under a condition.

    State 0 is final. The states that intersections and complements take are those of their own tables.

    Attributes:
        thompson: the automaton without its guards.
        reads: the sets of symbols that its atoms number.
        leaf_sets: the sets of leaves that its atoms number.
        guard: int32 `[states]`, a number in `guards`; -1 if none.
        guards: those inside a guard come before it.
        construct: int32 `[states]`, the repetition, graph, intersection or complement around each, a number in
            `constructs`; -1 if none.
        constructs: such nodes, each with the number of the one around it.
    """

    thompson: Thompson
    reads: list[Symbols]
    leaf_sets: list[frozenset[int]]
    guard: np.ndarray
    guards: list[Guard]
    construct: np.ndarray
    constructs: list[tuple[Pattern, int]]

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.thompson.read.size)

    @cached_property
    def symbols(self) -> list[Symbols | None]:
        """What each atom reads; None where the state is no atom."""
        return [None if read < 0 else self.reads[read] for read in self.thompson.read.tolist()]

    @cached_property
    def target(self) -> list[int]:
        """Where each atom leads."""
        found: list[int] = self.thompson.target.tolist()
        return found

    @cached_property
    def leaves(self) -> list[frozenset[int]]:
        """The leaves that each atom writes."""
        return [self.leaf_sets[number] for number in self.thompson.leaves.tolist()]

    @cached_property
    def splits(self) -> list[tuple[int, ...]]:
        """Where each state goes on without reading."""
        first, count = self.thompson.split_first.tolist(), self.thompson.split_count.tolist()
        split = self.thompson.split.tolist()
        return [tuple(split[a : a + n]) for a, n in zip(first, count, strict=True)]

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


def build(
    pattern: Pattern, alphabet: Alphabet, leaf_ids: dict[Origin, int], tables: Mapping[int, Table], most: int
) -> tuple[Nfa, int]:
    """Build the automaton of a pattern.

    Args:
        pattern: whose intersections and complements have a table each.
        alphabet: whose symbols are read.
        leaf_ids: the leaves of the whole source, shared by all automata of it; those of the pattern are added.
        tables: the automaton of each intersection and complement, by the identity of its node.
        most: states to be made; of more, the automaton is not finished.

    Returns:
        The automaton and its entry.
    """
    writer = Writer(alphabet, leaf_ids, tables, most)
    code, starts = writer.program(pattern)
    entry, states, split, guards, constructs = program.run(code, starts, writer.widest, most)
    reads = list(writer.reads)
    ptr = np.cumsum([0, *map(len, reads)], dtype=np.int64)
    symbols = np.fromiter(chain.from_iterable(reads), np.int32, ptr[-1])
    columns = (states[row] for row in (program.READ, program.TARGET, program.LEAVES, program.FIRST, program.COUNT))
    read, target, leaves, first, count = columns
    nfa = Nfa(
        Thompson(read, ptr, symbols, target, leaves, first, count, split),
        reads,
        list(writer.leaf_sets),
        states[program.GUARDED],
        [Guard(entry, end, bool(kind & AHEAD), bool(kind & NEGATIVE)) for kind, entry, end in guards.T.tolist()],
        states[program.CONSTRUCT],
        [(writer.nodes[node], around) for node, around in constructs.T.tolist()],
    )
    return nfa, int(entry)
