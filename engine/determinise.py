"""Pattern -> automaton over the symbols of its alphabet, within a budget of states and of steps.

Deterministic, or where that passes the budget and the pattern allows it, nondeterministic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from engine import effort, subsets
from engine.alphabet import Alphabet, alphabet_of
from engine.conditions import Conditions
from engine.machines import Follow, Inverse, Product, Subsets
from engine.nfa import Nfa, TooManyStatesError, build
from engine.pattern import Complement, Intersection, is_look, nodes, without_edges
from engine.reduction import reduced
from engine.table import Moves, Table, flat, minimal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from typing import Any

    from engine.machines import Machine
    from engine.pattern import Origin, Pattern
    from engine.table import Move

    Finish = Callable[[Moves, np.ndarray], Table]

SETTLED = 4_000
"""Operands of an intersection up to this size are made minimal before they are multiplied; larger ones stay lazy."""
ATOMS = 250_000
"""States of Thompson's automaton."""
_STEPS_OF_ATOM = 3
"""Of work, for each of them."""
_SAMPLE = 300_000
"""Atoms looked at to find the construct that takes most."""


class OverBudgetError(Exception):
    """The construction passes its budget of states or of steps; `blame` is the construct that takes most of it."""

    def __init__(self, problem: str, blame: Pattern | None, *, is_out_of_steps: bool = False) -> None:
        super().__init__(problem)
        self.blame = blame
        self.is_out_of_steps = is_out_of_steps


@dataclass
class Determiniser:
    """What the automata of one pattern share.

    Attributes:
        pattern: the whole pattern.
        budget: of states before minimisation, for each of its automata.
    """

    pattern: Pattern
    budget: int
    leaf_ids: dict[Origin, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._inside = nodes(self.pattern, closed=True)
        closed = any(isinstance(node, (Intersection, Complement)) for node in self._inside)
        self.alphabet: Alphabet = alphabet_of(nodes(self.pattern) if closed else self._inside)
        self._tables: dict[int, Table] = {}

    @cached_property
    def looking(self) -> bool:
        """Whether a look-around of the pattern's own text stands in it."""
        return any(map(is_look, self._inside))

    def table(self) -> Table:
        """Return the minimal automaton of the whole pattern."""
        return self._explored(self._machine(self.pattern), self.budget)

    def follow(self, reducing: float) -> Table:
        """Return a nondeterministic automaton, in the end with joined states, of a pattern without look-around.

        As a whole it must be no intersection or complement. After `reducing` steps no more states are joined, which
        keeps the language.
        """
        machine = self._thompson(self.pattern)
        assert isinstance(machine, Subsets)

        def finish(moves: Moves, accepting: np.ndarray) -> Table:
            return reduced(moves, accepting, reducing)

        return self._explored(Follow(machine.nfa, machine.entry), self.budget, finish)

    def _machine(self, pattern: Pattern) -> Machine:
        match pattern:
            case Intersection(parts):
                return Product([self._settled(self._machine(part)) for part in parts], self.alphabet.all)
            case Complement(body, origin):
                leaf = self.leaf_ids.setdefault(origin, len(self.leaf_ids))
                return Inverse(self._settled(self._machine(body)), self.alphabet.all, leaf)
            case _:
                return self._thompson(pattern)

    def _thompson(self, pattern: Pattern) -> Machine:
        inside = self._inside if pattern is self.pattern else nodes(pattern, closed=True)
        if any(map(is_look, inside)):
            pattern = without_edges(pattern)
            inside = nodes(pattern, closed=True)
        try:
            effort.spend(len(inside))
        except effort.OutOfStepsError:
            raise _out_of_steps(None) from None
        for node in inside:
            if isinstance(node, (Intersection, Complement)) and id(node) not in self._tables:
                self._tables[id(node)] = self._explored(self._machine(node), self.budget)
        nfa, entry = self._built(pattern)
        return Conditions(nfa, entry) if any(map(is_look, inside)) else Subsets(nfa, entry)

    def _built(self, pattern: Pattern) -> tuple[Nfa, int]:
        """Return Thompson's automaton of a pattern, and its entry."""
        most = int(min(ATOMS, effort.left() / _STEPS_OF_ATOM))
        nfa, entry = build(pattern, self.alphabet, self.leaf_ids, self._tables, most)
        if nfa.states > ATOMS:
            problem = f"takes more than {ATOMS:,} states before it is made deterministic"
            raise OverBudgetError(problem, _most_states(nfa))
        try:
            effort.spend(_STEPS_OF_ATOM * nfa.states)
        except effort.OutOfStepsError:
            raise _out_of_steps(_most_states(nfa)) from None
        return nfa, entry

    def _settled(self, machine: Machine) -> Machine:
        """Make a machine minimal if it is small."""
        if isinstance(machine, Table):
            return machine
        try:
            return self._explored(machine, min(SETTLED, self.budget))
        except OverBudgetError as error:
            if error.is_out_of_steps:
                raise
            return machine

    def _explored(self, machine: Machine, budget: int, finish: Finish = minimal) -> Table:
        """Number all states from the initial one, and make them as few as `finish` can."""
        if isinstance(machine, Subsets) and not isinstance(machine, Follow):
            return finish(*self._subsets(machine, budget))
        return finish(*self._one_by_one(machine, budget))

    def _subsets(self, machine: Subsets, budget: int) -> tuple[Moves, np.ndarray]:
        """Return the moves of all states of a subset construction, and which accept."""
        leaves = machine.nfa.leaf_sets
        outcome, steps, groups, (atoms, ptr), (written, written_ptr), moves = subsets.explore(
            machine.nfa.thompson, machine.entry, len(self.alphabet.ranges), budget, effort.left()
        )
        states = ptr.size - 1
        try:
            effort.spend(steps + (groups + states if outcome == subsets.DONE else 0))
        except effort.OutOfStepsError:
            raise _out_of_steps(_blame_of_subsets(machine.nfa, atoms, ptr)) from None
        if outcome == subsets.TOO_MANY_STATES:
            raise OverBudgetError(f"passes {budget:,} states", _blame_of_subsets(machine.nfa, atoms, ptr))
        sets = [
            frozenset().union(*(leaves[n] for n in written[a:b].tolist())) for a, b in pairwise(written_ptr.tolist())
        ]
        first = np.append(atoms, -1)[ptr[:-1]]
        source, symbol, target, origin = moves
        return Moves(source, symbol, target, origin, sets), (first == 0) & (ptr[1:] > ptr[:-1])

    def _one_by_one(self, machine: Machine, budget: int) -> tuple[Moves, np.ndarray]:
        """Return the moves of all states of any machine, and which accept."""
        order: list[Hashable] = [machine.initial]
        try:
            rows = self._rows(machine, order, budget)
            effort.spend(sum(map(len, rows)) + len(rows))
        except TooManyStatesError:
            raise OverBudgetError("needs too large a condition on what follows", blame(machine, order)) from None
        except effort.OutOfStepsError:
            raise _out_of_steps(blame(machine, order)) from None
        return flat(rows), np.asarray([machine.accepts(state) for state in order])

    def _rows(self, machine: Machine, order: list[Hashable], budget: int) -> list[list[Move]]:
        """Return the moves of every state that is reached; `order`, which holds the initial one, lists them."""
        ids: dict[Hashable, int] = {machine.initial: 0}
        rows = []
        for state in order:
            row = []
            for symbols, following, leaves in machine.moves(state):
                to = ids.setdefault(following, len(order))
                if to == len(order):
                    order.append(following)
                row.append((symbols, to, leaves))
            effort.spend(3 + 3 * len(row))
            rows.append(row)
            if len(order) > budget:
                raise OverBudgetError(f"passes {budget:,} states", blame(machine, order))
        return rows


def _out_of_steps(blame: Pattern | None) -> OverBudgetError:
    return OverBudgetError("takes too much work to build", blame, is_out_of_steps=True)


def _blame_of_subsets(nfa: Nfa, atoms: np.ndarray, ptr: np.ndarray) -> Pattern | None:
    """Return the construct that is in the most different situations in these sets of atoms; None if none is."""
    states = ptr.size - 1
    sample = range(0, states, states // 1_000 + 1)
    return _most_situations(nfa, (atoms[ptr[n] : ptr[n + 1]].tolist() for n in sample))


def blame(machine: Machine, states: Sequence[Any]) -> Pattern | None:
    """Return the construct that is in the most different situations in these states of a machine; None if none is."""
    sample = states[:: len(states) // 1_000 + 1]
    match machine:
        case Subsets():
            return _most_situations(machine.nfa, sample)
        case Conditions():
            return _most_situations(machine.nfa, [machine.atoms(state) for state in sample])
        case Inverse():
            return blame(machine.machine, [state for state in states if state is not None])
        case Product():
            columns = [list(set(column)) for column in zip(*states, strict=True)]
            found = [(len(column), n) for n, column in enumerate(columns)]
            return blame(machine.machines[max(found)[1]], columns[max(found)[1]]) if found else None
        case _:
            return None


def _most_situations(nfa: Nfa, states: Iterable[Iterable[int]]) -> Pattern | None:
    """Count for each construct the distinct sets of its atoms."""
    situations: list[set[frozenset[int]]] = [set() for _ in nfa.constructs]
    construct = nfa.construct.tolist()
    looked_at = 0
    for atoms in states:
        if looked_at > _SAMPLE:
            break
        inside: dict[int, set[int]] = {}
        for atom in atoms:
            number = construct[atom]
            while number >= 0:
                looked_at += 1
                inside.setdefault(number, set()).add(atom)
                number = nfa.constructs[number][1]
        for number, own in inside.items():
            situations[number].add(frozenset(own))
    return _innermost(nfa, [len(distinct) for distinct in situations])


def _most_states(nfa: Nfa) -> Pattern | None:
    """Count for each construct the states of Thompson's automaton."""
    counts = np.bincount(nfa.construct + 1, minlength=len(nfa.constructs) + 1)[1:].tolist()
    for number in range(len(counts) - 1, -1, -1):  # what is inside comes later
        around = nfa.constructs[number][1]
        if around >= 0:
            counts[around] += counts[number]
    return _innermost(nfa, counts)


def _innermost(nfa: Nfa, counts: list[int]) -> Pattern | None:
    """Return the construct of the largest count; one inside it that has more than half of that is the better answer."""
    if not counts:
        return None
    most = counts.index(max(counts))
    for number in range(most + 1, len(counts)):
        if nfa.constructs[number][1] == most and 2 * counts[number] > counts[most]:
            most = number
    return nfa.constructs[most][0]
