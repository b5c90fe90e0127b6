"""Deterministic automata whose states are made as they are reached: subsets, products, complements.

All read the symbols of one alphabet, so they compose. `Machine` says what each must answer.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from engine import effort

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from engine.nfa import Nfa
    from engine.routines import Symbols

Step = tuple["Symbols", Any, frozenset[int]]
"""Symbols, the state that they lead to, the leaves that they may come from."""


class Machine(Protocol):
    """A deterministic automaton with states of any hashable kind."""

    @property
    def initial(self) -> Hashable:
        """The state before anything is read."""

    def accepts(self, state: Any) -> bool:
        """Whether the text may end here."""

    def moves(self, state: Any) -> Iterable[Step]:
        """Yield the moves of a state; their symbols are disjoint."""


class Subsets:
    """The subset construction without look-around; a state is a frozen set of atoms and of the final state 0.

    What is explored as a whole is so by the compiled loops of `subsets`.
    """

    def __init__(self, nfa: Nfa, entry: int) -> None:
        self.nfa = nfa
        self.entry = entry
        self._closures: dict[int, frozenset[int]] = {}

    @cached_property
    def initial(self) -> frozenset[int]:
        """What is reached before anything is read."""
        return self._closure(self.entry)

    def accepts(self, state: frozenset[int]) -> bool:
        """Whether the text may end here."""
        return 0 in state

    def moves(self, state: frozenset[int]) -> Iterable[Step]:
        """Yield the moves of a state."""
        nfa = self.nfa
        for symbols, atoms in nfa.taken(state):
            effort.spend(2 + 0.3 * len(atoms))
            targets = {nfa.target[atom] for atom in atoms}
            leaves = {nfa.leaves[atom] for atom in atoms}
            yield symbols, self._union(targets), frozenset().union(*leaves)

    def _union(self, entries: set[int]) -> frozenset[int]:
        if len(entries) == 1:
            return self._closure(next(iter(entries)))
        # One walk from all of them: their closures overlap, and in `(a?){1000}` each is as large as the union.
        return self.nfa.reached(entries)

    def _closure(self, entry: int) -> frozenset[int]:
        known = self._closures.get(entry)
        return known if known is not None else self._closures.setdefault(entry, self.nfa.reached({entry}))


class Follow(Subsets):
    """The follow automaton (Ilie, Yu 2003), not deterministic: a state is where one atom leads, not all that read."""

    def moves(self, state: frozenset[int]) -> Iterable[Step]:
        """Yield the moves of a state; a symbol may stand in several."""
        for symbols, atoms in self.nfa.taken(state):
            effort.spend(2 + len(atoms))
            written: dict[frozenset[int], set[int]] = {}
            for atom in atoms:
                written.setdefault(self._closure(self.nfa.target[atom]), set()).update(self.nfa.leaves[atom])
            for following, leaves in written.items():
                yield symbols, following, frozenset(leaves)


class Product:
    """What all of several machines accept; a state has one of each, and a move the leaves of all."""

    def __init__(self, machines: Sequence[Machine], symbols: Symbols) -> None:
        self.machines = machines
        self._all = _mask(symbols)
        self._steps: list[dict[Any, list[tuple[int, Any, frozenset[int]]]]] = [{} for _ in machines]
        self._symbols: dict[int, Symbols] = {}
        self.initial = tuple(machine.initial for machine in machines)

    def accepts(self, state: tuple[Hashable, ...]) -> bool:
        """Whether the text may end here."""
        return all(machine.accepts(part) for machine, part in zip(self.machines, state, strict=True))

    def moves(self, state: tuple[Hashable, ...]) -> Iterable[Step]:
        """Yield the moves of a state."""
        together: list[tuple[int, tuple[Hashable, ...], frozenset[int]]] = [(self._all, (), frozenset())]
        for number, part in enumerate(state):
            steps = self._moves(number, part)
            effort.spend(0.2 * len(together) * len(steps))
            together = [
                (both, (*before, to), written | leaves)
                for mask, before, written in together
                for other, to, leaves in steps
                if (both := mask & other)
            ]
        effort.spend(2 * len(together))
        for mask, following, leaves in together:
            yield self._listed(mask), following, leaves

    def _moves(self, number: int, part: Any) -> list[tuple[int, Any, frozenset[int]]]:
        """Return the moves of a state of one machine, their symbols as bits."""
        known = self._steps[number]
        if part not in known:
            known[part] = [(_mask(symbols), to, leaves) for symbols, to, leaves in self.machines[number].moves(part)]
            effort.spend(3 * len(known[part]))
        return known[part]

    def _listed(self, mask: int) -> Symbols:
        if mask not in self._symbols:
            self._symbols[mask] = tuple(n for n in range(mask.bit_length()) if mask >> n & 1)
        return self._symbols[mask]


def _mask(symbols: Symbols) -> int:
    mask = 0
    for symbol in symbols:
        mask |= 1 << symbol
    return mask


class Inverse:
    """What a machine doesn't accept; its states, and None behind a text that the machine has no move for."""

    def __init__(self, machine: Machine, symbols: Symbols, leaf: int) -> None:
        self.machine = machine
        self._symbols = symbols
        self._leaves = frozenset((leaf,))
        self.initial = machine.initial

    def accepts(self, state: Hashable) -> bool:
        """Whether the text may end here."""
        return state is None or not self.machine.accepts(state)

    def moves(self, state: Hashable) -> Iterable[Step]:
        """Yield the moves of a state."""
        effort.spend(2 + 0.1 * len(self._symbols))
        rest = set(self._symbols)
        if state is not None:
            for symbols, to, _ in self.machine.moves(state):
                rest.difference_update(symbols)
                yield symbols, to, self._leaves
        if rest:
            yield tuple(sorted(rest)), None, self._leaves
