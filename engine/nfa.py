"""Pattern -> Thompson's automaton -> the states of a deterministic one.

Without look-around a deterministic state is a set of atoms, the subset construction. Look-around makes it a condition:
what is still to be written is a disjunction of conjunctions of atoms, each meaning "the rest is written from here",
possibly negated. A look-ahead adds a conjunct; a look-behind is a second automaton that runs along from the start of
the text and says at every place under which condition its body ends there. Normal forms over finitely many atoms are
finitely many, so the construction ends; it is that of alternating automata (Chandra, Kozen, Stockmeyer 1981), and
exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine import utf8
from engine.pattern import Chars, Concat, Look, Origin, Repeat, Union

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from engine.pattern import Pattern


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
    """States of three kinds: an atom consumes a byte, a split goes on without, a guard goes on under a condition."""

    moves: list[tuple[tuple[int, int, int], ...]] = field(default_factory=list)
    splits: list[tuple[int, ...]] = field(default_factory=list)
    guard: list[int] = field(default_factory=list)
    leaf: list[int] = field(default_factory=list)
    leaves: list[Origin] = field(default_factory=list)
    leaf_ids: dict[Origin, int] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    depth: int = 0
    budget: int = 1_000_000

    def state(
        self,
        moves: tuple[tuple[int, int, int], ...] = (),
        splits: tuple[int, ...] = (),
        guard: int = -1,
        leaf: int = -1,
    ) -> int:
        """Add a state."""
        if len(self.moves) >= self.budget:
            raise TooManyStatesError
        self.moves.append(moves)
        self.splits.append(splits)
        self.guard.append(guard)
        self.leaf.append(leaf)
        return len(self.moves) - 1

    def final(self) -> int:
        """Add a state that leads nowhere."""
        return self.state()

    def add(self, pattern: Pattern, then: int) -> int:
        """Add the states of a pattern that is followed by the state `then`; return its entry."""
        match pattern:
            case Chars():
                return self._chars(pattern, then)
            case Concat(parts):
                for part in reversed(parts):
                    then = self.add(part, then)
                return then
            case Union(parts):
                return self.state(splits=tuple(self.add(part, then) for part in parts))
            case Repeat():
                return self._repeat(pattern, then)
            case Look(body, ahead, negative):
                end = self.final()
                self.depth += 1
                entry = self.add(body, end)
                self.depth -= 1
                self.guards.append(Guard(entry, end, ahead, negative))
                return self.state(splits=(then,), guard=len(self.guards) - 1)

    def _chars(self, chars: Chars, then: int) -> int:
        if not chars.ranges:
            return self.state(splits=())
        block = utf8.block(chars.ranges)
        first = len(self.moves)
        leaf = -1
        if not self.depth:  # the origins of a look-around are conditions, they write nothing
            # The copies of a repetition are one leaf.
            leaf = self.leaf_ids.setdefault(chars.origin, len(self.leaves))
            if leaf == len(self.leaves):
                self.leaves.append(chars.origin)
        for moves in block:
            shifted = tuple((low, high, then if to == len(block) else first + to) for low, high, to in moves)
            self.state(moves=shifted, leaf=leaf)
        return first

    def _repeat(self, repeat: Repeat, then: int) -> int:
        if repeat.most is None:
            loop = self.state(splits=())
            self.splits[loop] = (self.add(repeat.body, loop), then)
            entry = loop
        else:
            entry = then
            for _ in range(repeat.most - repeat.least):
                entry = self.state(splits=(self.add(repeat.body, entry), then))
        for _ in range(repeat.least):
            entry = self.add(repeat.body, entry)
        return entry

    def taken(self, atoms: Iterable[int]) -> dict[tuple[tuple[int, int], ...], list[int]]:
        """Group byte classes by the moves (atom, next state) that they take from `atoms`, if any."""
        hits: dict[int, list[tuple[int, int]]] = {}
        for atom in atoms:
            for low, high, to in self.moves[atom]:
                for symbol in range(low, high + 1):
                    hits.setdefault(symbol, []).append((atom, to))
        groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for symbol, moves in hits.items():
            groups.setdefault(tuple(moves), []).append(symbol)
        return groups

    def to_byte_classes(self) -> tuple[np.ndarray, int]:
        """Rewrite the atoms' byte ranges to ranges of byte classes; return the class of each byte and their count."""
        cut = np.zeros(257, bool)
        cut[[0, 256]] = True
        for low, high in {(low, high) for moves in self.moves for low, high, _ in moves}:
            cut[low] = cut[high + 1] = True
        byte_class = np.cumsum(cut[:256]) - 1
        class_of = byte_class.tolist()
        self.moves = [tuple((class_of[low], class_of[high], to) for low, high, to in moves) for moves in self.moves]
        return byte_class, class_of[-1] + 1


Move = tuple["Hashable", frozenset[int]]


class Subsets:
    """The subset construction without look-around; a state is a frozen set of atoms and of the final state 0."""

    def __init__(self, nfa: Nfa, entry: int) -> None:
        self._nfa = nfa
        self._closures: dict[int, frozenset[int]] = {}
        self.initial = self._closure(entry)

    def accepting(self, state: frozenset[int]) -> bool:
        """Whether the text may end here."""
        return 0 in state

    def moves(self, state: frozenset[int]) -> Iterable[tuple[list[int], Move]]:
        """Yield groups of byte classes with the next state and the leaves that it comes from."""
        for taken, symbols in self._nfa.taken(state).items():
            leaves = frozenset(self._nfa.leaf[atom] for atom, _ in taken)
            yield symbols, (self._union({to for _, to in taken}), leaves)

    def _union(self, entries: set[int]) -> frozenset[int]:
        if len(entries) == 1:
            return self._closure(next(iter(entries)))
        # One walk from all of them: their closures overlap, and in `(a?){1000}` each is as large as the union.
        return self._reached(entries)

    def _closure(self, entry: int) -> frozenset[int]:
        known = self._closures.get(entry)
        return known if known is not None else self._closures.setdefault(entry, self._reached({entry}))

    def _reached(self, entries: set[int]) -> frozenset[int]:
        """Return the atoms that are reached without consuming a byte, and 0 where the end is."""
        atoms, seen, stack = set(), set(entries), list(entries)
        while stack:
            state = stack.pop()
            if self._nfa.moves[state] or state == 0:
                atoms.add(state)
            for following in self._nfa.splits[state]:
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        return frozenset(atoms)


_Literal = int | tuple[str, "Condition"]
Condition = frozenset[frozenset[_Literal]]
"""A disjunction of conjunctions; a literal is an atom (0: the text ends here) or ("not", condition)."""

_FALSE: Condition = frozenset()
_TRUE: Condition = frozenset({frozenset()})


def _or(conditions: Iterable[Condition]) -> Condition:
    return _absorbed(frozenset().union(*conditions))


def _and(left: Condition, right: Condition) -> Condition:
    if left == _TRUE:
        return right
    if right == _TRUE:
        return left
    return _absorbed(frozenset(a | b for a in left for b in right))


def _not(condition: Condition) -> Condition:
    if condition == _TRUE:
        return _FALSE
    if condition == _FALSE:
        return _TRUE
    return frozenset({frozenset({("not", condition)})})


def _own_atoms(condition: Condition) -> Iterable[int]:
    return (x for clause in condition for x in clause if isinstance(x, int))


def _atoms(condition: Condition) -> Iterable[int]:
    """Yield every atom of a condition, those under a "not" included."""
    for clause in condition:
        for literal in clause:
            if isinstance(literal, int):
                yield literal
            else:
                yield from _atoms(literal[1])


def _absorbed(clauses: Condition) -> Condition:
    """Drop clauses that contain another, and those that contradict themselves."""
    kept = [c for c in clauses if not any(isinstance(x, tuple) and any(d <= c for d in x[1]) for x in c)]
    if len(kept) < 2:
        return frozenset(kept)
    return frozenset(c for c in kept if not any(d < c for d in kept))


_Live = tuple[Condition, tuple[tuple[tuple[int, Condition], ...], ...]]
"""The condition on the rest, and for each look-behind the conditions under which its atoms are reached here."""


class Conditions:
    """The construction with look-around; a state is a condition on the rest and the progress of each look-behind."""

    def __init__(self, nfa: Nfa, entry: int) -> None:
        self._nfa = nfa
        # A guard is added behind the guards of its own body: in this order everything a tracker asks is already known.
        self._behind = [n for n, guard in enumerate(nfa.guards) if not guard.ahead]
        self._closed: dict[tuple[int, tuple[Condition, ...]], Condition] = {}
        held: dict[int, Condition] = {}
        trackers = tuple(self._track(n, {}, -1, held) for n in self._behind)
        self.initial: _Live = (self._close(entry, held, ()), trackers)

    def accepting(self, state: _Live) -> bool:
        """Whether the text may end here."""
        return self._ends(state[0])

    def moves(self, state: _Live) -> Iterable[tuple[list[int], Move]]:
        """Yield groups of byte classes with the next state and the leaves that it comes from."""
        condition, trackers = state
        # Every clause holds an atom of the text itself beside what look-arounds ask: no other byte class moves it.
        own = set(_own_atoms(condition))
        tracked = {a for reached in trackers for atom, held in reached for a in (atom, *_atoms(held))}
        for taken, symbols in self._nfa.taken(own.union(_atoms(condition), tracked)).items():
            if not any(atom in own for atom, _ in taken):
                continue
            symbol = symbols[0]
            held: dict[int, Condition] = {}
            following = tuple(
                self._track(n, dict(reached), symbol, held) for n, reached in zip(self._behind, trackers, strict=True)
            )
            rest = self._step(condition, symbol, held)
            if rest != _FALSE:
                leaves = {self._nfa.leaf[atom] for atom, _ in taken if atom in own} - {-1}
                yield symbols, ((rest, following), frozenset(leaves))

    def _ends(self, condition: Condition) -> bool:
        """Whether the condition holds of the empty rest."""
        return any(all(x == 0 if isinstance(x, int) else not self._ends(x[1]) for x in clause) for clause in condition)

    def _step(self, condition: Condition, symbol: int, held: dict[int, Condition]) -> Condition:
        """Return the condition on the rest behind one byte."""
        return _or(self._step_clause(clause, symbol, held) for clause in condition)

    def _step_clause(self, clause: frozenset[_Literal], symbol: int, held: dict[int, Condition]) -> Condition:
        out = _TRUE
        for literal in clause:
            if isinstance(literal, int):
                stepped = _or(
                    self._close(to, held, ()) for low, high, to in self._nfa.moves[literal] if low <= symbol <= high
                )
            else:
                stepped = _not(self._step(literal[1], symbol, held))
            out = _and(out, stepped)
            if out == _FALSE:
                break
        return out

    def _close(self, state: int, held: dict[int, Condition], path: tuple[int, ...]) -> Condition:
        """Return the condition on the rest under which it is written from `state`.

        Args:
            state: of the automaton.
            held: what each look-behind says here.
            path: states passed since the last byte; coming back to one can't help.
        """
        if state in path:
            return _FALSE
        if self._nfa.moves[state] or state == 0:
            return frozenset({frozenset({state})})
        if state in self._ahead_ends:
            return _TRUE
        key = (state, tuple(held.values()))
        if not path and key in self._closed:
            return self._closed[key]
        rest = _or(self._close(to, held, (*path, state)) for to in self._nfa.splits[state])
        out = _and(self._guard(self._nfa.guard[state], held), rest)
        if not path:
            self._closed[key] = out
        return out

    @cached_property
    def _ahead_ends(self) -> frozenset[int]:
        return frozenset(guard.end for guard in self._nfa.guards if guard.ahead)

    def _guard(self, number: int, held: dict[int, Condition]) -> Condition:
        if number < 0:
            return _TRUE
        guard = self._nfa.guards[number]
        condition = self._close(guard.entry, held, ()) if guard.ahead else held[number]
        return _not(condition) if guard.negative else condition

    def _track(
        self, number: int, reached: dict[int, Condition], symbol: int, held: dict[int, Condition]
    ) -> tuple[tuple[int, Condition], ...]:
        """Move a look-behind over one byte (none at the start, symbol -1) and note in `held` what it says there."""
        guard = self._nfa.guards[number]
        entries: dict[int, Condition] = {guard.entry: _TRUE}
        for atom, condition in reached.items():
            for low, high, to in self._nfa.moves[atom]:
                if low <= symbol <= high:
                    behind = self._step(condition, symbol, held)
                    entries[to] = _or((entries.get(to, _FALSE), behind))
        here: dict[int, Condition] = {}
        for entry, condition in entries.items():
            self._spread(entry, condition, held, (), here)
        held[number] = here.pop(guard.end, _FALSE)
        return tuple(sorted(((a, c) for a, c in here.items() if c != _FALSE), key=lambda item: item[0]))

    def _spread(
        self,
        state: int,
        condition: Condition,
        held: dict[int, Condition],
        path: tuple[int, ...],
        here: dict[int, Condition],
    ) -> None:
        """Add `condition`, and what guards on the way ask, to every atom reached from `state` without a byte."""
        if state in path or condition == _FALSE:
            return
        if self._nfa.moves[state] or not (self._nfa.splits[state] or self._nfa.guard[state] >= 0):
            here[state] = _or((here.get(state, _FALSE), condition))
            return
        condition = _and(condition, self._guard(self._nfa.guard[state], held))
        for to in self._nfa.splits[state]:
            self._spread(to, condition, held, (*path, state), here)
