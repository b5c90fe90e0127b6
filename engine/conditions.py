"""Look-around, exactly: a deterministic state is a condition on what is still to be written.

It is a disjunction of conjunctions of atoms, each meaning "the rest is written from here", possibly negated. A
look-ahead adds a conjunct; a look-behind is a second automaton that runs along from the start of the text and says at
every place under which condition its body ends there. Normal forms over finitely many atoms are finitely many, so the
construction ends; it is that of alternating automata (Chandra, Kozen, Stockmeyer 1981), and exact.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from engine import effort
from engine.nfa import TooManyStatesError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.machines import Step
    from engine.nfa import Nfa

_Literal = int | tuple[str, "Condition"]
Condition = frozenset[frozenset[_Literal]]
"""A disjunction of conjunctions; a literal is an atom (0: the text ends here) or ("not", condition)."""

_CLAUSES = 4_000
"""Clauses of one condition; a single state could else take minutes."""
_FALSE: Condition = frozenset()
_TRUE: Condition = frozenset({frozenset()})


def _or(conditions: Iterable[Condition]) -> Condition:
    return _absorbed(frozenset().union(*conditions))


def _and(left: Condition, right: Condition) -> Condition:
    if left == _TRUE:
        return right
    if right == _TRUE:
        return left
    if len(left) * len(right) > _CLAUSES:
        raise TooManyStatesError
    effort.spend(0.3 * len(left) * len(right))
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
    effort.spend(1 + 0.5 * sum(map(len, clauses)))
    kept = [c for c in clauses if not any(isinstance(x, tuple) and any(d <= c for d in x[1]) for x in c)]
    effort.spend(0.1 * len(kept) * len(kept))
    if len(kept) < 2:
        return frozenset(kept)
    return frozenset(c for c in kept if not any(d < c for d in kept))


_Live = tuple[Condition, tuple[tuple[tuple[int, Condition], ...], ...]]
"""The condition on the rest, and for each look-behind the conditions under which its atoms are reached here."""


class Conditions:
    """The construction with look-around; a state is a condition on the rest and the progress of each look-behind."""

    def __init__(self, nfa: Nfa, entry: int) -> None:
        self.nfa = nfa
        self._guard_of: list[int] = nfa.guard.tolist()
        # A guard is added behind the guards of its own body: in this order everything a tracker asks is already known.
        self._behind = [n for n, guard in enumerate(nfa.guards) if not guard.ahead]
        self._closed: dict[tuple[int, tuple[Condition, ...]], Condition] = {}
        held: dict[int, Condition] = {}
        trackers = tuple(self._track(n, {}, -1, held) for n in self._behind)
        self.initial: _Live = (self._close(entry, held, ()), trackers)

    def accepts(self, state: _Live) -> bool:
        """Whether the text may end here."""
        return self._ends(state[0])

    def moves(self, state: _Live) -> Iterable[Step]:
        """Yield the moves of a state."""
        condition, trackers = state
        # Every clause holds an atom of the text itself beside what look-arounds ask: no other symbol moves it.
        effort.spend(5 * len(condition))
        own = set(_own_atoms(condition))
        for symbols, atoms in self.nfa.taken(self.atoms(state)):
            writing = own.intersection(atoms)
            if not writing:
                continue
            symbol = symbols[0]
            held: dict[int, Condition] = {}
            following = tuple(
                self._track(n, dict(reached), symbol, held) for n, reached in zip(self._behind, trackers, strict=True)
            )
            rest = self._step(condition, symbol, held)
            if rest != _FALSE:
                leaves = frozenset[int]().union(*(self.nfa.leaves[atom] for atom in writing))
                yield symbols, (rest, following), leaves

    def atoms(self, state: _Live) -> set[int]:
        """Return the atoms that the state asks anything of."""
        condition, trackers = state
        tracked = {a for reached in trackers for atom, held in reached for a in (atom, *_atoms(held))}
        return tracked.union(_atoms(condition))

    def _ends(self, condition: Condition) -> bool:
        """Whether the condition holds of the empty rest."""
        return any(all(x == 0 if isinstance(x, int) else not self._ends(x[1]) for x in clause) for clause in condition)

    def _step(self, condition: Condition, symbol: int, held: dict[int, Condition]) -> Condition:
        """Return the condition on the rest behind one symbol."""
        return _or(self._step_clause(clause, symbol, held) for clause in condition)

    def _step_clause(self, clause: frozenset[_Literal], symbol: int, held: dict[int, Condition]) -> Condition:
        out = _TRUE
        for literal in clause:
            if isinstance(literal, int):
                read = symbol in (self.nfa.symbols[literal] or ())
                stepped = self._close(self.nfa.target[literal], held, ()) if read else _FALSE
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
            path: states passed since the last symbol; coming back to one can't help.
        """
        effort.spend(0.5 + 0.02 * len(path))
        if state in path:
            return _FALSE
        if self.nfa.symbols[state] is not None or state == 0:
            return frozenset({frozenset({state})})
        if state in self._ahead_ends:
            return _TRUE
        key = (state, tuple(held.values()))
        if not path and key in self._closed:
            return self._closed[key]
        rest = _or(self._close(to, held, (*path, state)) for to in self.nfa.splits[state])
        out = _and(self._guard(self._guard_of[state], held), rest)
        if not path:
            self._closed[key] = out
        return out

    @cached_property
    def _ahead_ends(self) -> frozenset[int]:
        return frozenset(guard.end for guard in self.nfa.guards if guard.ahead)

    def _guard(self, number: int, held: dict[int, Condition]) -> Condition:
        if number < 0:
            return _TRUE
        guard = self.nfa.guards[number]
        condition = self._close(guard.entry, held, ()) if guard.ahead else held[number]
        return _not(condition) if guard.negative else condition

    def _track(
        self, number: int, reached: dict[int, Condition], symbol: int, held: dict[int, Condition]
    ) -> tuple[tuple[int, Condition], ...]:
        """Move a look-behind over one symbol (none at the start, symbol -1) and note in `held` what it says there."""
        guard = self.nfa.guards[number]
        entries: dict[int, Condition] = {guard.entry: _TRUE}
        for atom, condition in reached.items():
            if symbol in (self.nfa.symbols[atom] or ()):
                to = self.nfa.target[atom]
                entries[to] = _or((entries.get(to, _FALSE), self._step(condition, symbol, held)))
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
        """Add `condition`, and what guards on the way ask, to every atom reached from `state` without a symbol."""
        effort.spend(0.5 + 0.02 * len(path))
        if state in path or condition == _FALSE:
            return
        if not self.nfa.splits[state]:  # an atom, or the end
            here[state] = _or((here.get(state, _FALSE), condition))
            return
        condition = _and(condition, self._guard(self._guard_of[state], held))
        for to in self.nfa.splits[state]:
            self._spread(to, condition, held, (*path, state), here)
