"""Pattern -> deterministic automaton over UTF-8 bytes that knows which leaf of the source each of its moves comes from.

A pattern becomes a Thompson automaton whose atoms consume a byte, and then a deterministic one by the subset construction.
Look-around makes the subsets into conditions: what is still to be written is then a disjunction of conjunctions of
atoms, each meaning "the rest is written from here", possibly negated. A look-ahead adds a conjunct; a look-behind is a second
automaton that runs along from the start of the text and says at every place under which condition its body ends there. Normal
forms over finitely many atoms are finitely many, so the construction ends; it is that of alternating automata (Chandra, Kozen,
Stockmeyer 1981), and exact.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from engine.errors import Place, SizeError
from engine.pattern import Chars, Concat, Look, Origin, Repeat, Union, looks

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from engine.pattern import Pattern, Ranges

STATE_BUDGET = 100_000
"""States of the deterministic automaton before minimisation."""


@dataclass(frozen=True, eq=False)
class ByteAutomaton:
    """A minimal deterministic automaton over bytes; every state is reachable and, unless it is empty, can accept.

    Attributes:
        byte_class: uint8 `[256]`; bytes of one class move every state alike.
        move: int32 `[states byte_classes]`, -1 where dead.
        start: the start state, always 0; states are numbered breadth first from it.
        accepting: bool `[states]`.
        edge_origins: int32 `[states byte_classes]`, index into `origin_sets`; -1 where dead.
        origin_sets: sorted tuples of leaf ids: the leaves of the pattern that such a move may come from.
        leaves: span of each leaf in the source.
    """

    byte_class: np.ndarray
    move: np.ndarray
    start: int
    accepting: np.ndarray
    edge_origins: np.ndarray
    origin_sets: tuple[tuple[int, ...], ...]
    leaves: tuple[Origin, ...]

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.accepting.size)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is accepted."""
        return not bool(self.accepting.any())

    @cached_property
    def _rows(self) -> list[list[int]]:
        return self.move[:, self.byte_class].tolist()  # type: ignore[no-any-return]

    def accepts(self, data: bytes) -> bool:
        """Whether the whole byte string is in the language."""
        state = self.start
        for byte in data:
            state = self._rows[state][byte]
            if state < 0:
                return False
        return bool(self.accepting[state])

    def shortest(self) -> bytes | None:
        """Return a shortest accepted byte string, the first in byte order among its length; None if there is none."""
        came: dict[int, tuple[int, int]] = {self.start: (-1, -1)}
        queue = deque([self.start])
        while queue:
            state = queue.popleft()
            if self.accepting[state]:
                written = []
                while came[state][0] >= 0:
                    state, byte = came[state]
                    written.append(byte)
                return bytes(reversed(written))
            for byte, following in enumerate(self._rows[state]):
                if following >= 0 and following not in came:
                    came[following] = (state, byte)
                    queue.append(following)
        return None


def compile(pattern: Pattern, source: str = "", budget: int = STATE_BUDGET) -> ByteAutomaton:  # noqa: A001 - the field's word
    """Compile a pattern.

    Args:
        pattern: whose language is meant, on whole strings.
        source: the text that its origins point into, for error messages.
        budget: of states before minimisation.

    Raises:
        SizeError: the budget is passed; names the largest repetition.
    """
    nfa = _Nfa()
    entry = nfa.add(pattern, nfa.final())
    byte_class, count = nfa.to_byte_classes()
    machine: _Subsets | _Conditions = _Conditions(nfa, entry) if looks(pattern) else _Subsets(nfa, entry)
    explored = _explore(machine, count, lambda: _too_large(pattern, source, budget), budget)
    return _minimal(byte_class, *explored, leaves=tuple(nfa.leaves))


# Characters as UTF-8


_Block = tuple[tuple[tuple[int, int, int], ...], ...]
"""A small automaton: state -> moves (low byte, high byte, next state); the last state is the one behind the character."""


@lru_cache(maxsize=4096)
def _utf8(ranges: Ranges) -> _Block:
    """Return the automaton of a set of characters in UTF-8, equal continuations shared; state 0 is its start."""
    ids: dict[tuple[tuple[int, int, int], ...], int] = {}
    states: list[tuple[tuple[int, int, int], ...]] = []

    def share(sequences: list[tuple[tuple[int, int], ...]]) -> int:
        """Number the automaton of byte-range sequences that differ in their first ranges; -1 is the end."""
        if sequences == [()]:
            return -1
        groups: dict[tuple[int, int], list[tuple[tuple[int, int], ...]]] = {}
        for first, *rest in sequences:
            groups.setdefault(first, []).append(tuple(rest))
        moves = tuple((low, high, share(rest)) for (low, high), rest in sorted(groups.items()))
        if moves not in ids:
            ids[moves] = len(states)
            states.append(moves)
        return ids[moves]

    share([s for low, high in ranges for s in _sequences(low, high)])
    # The start was numbered last; the block wants it first, and the end behind all others.
    count = len(states)
    number = {count - 1: 0, -1: count, **{n: n + 1 for n in range(count - 1)}}
    order = [count - 1, *range(count - 1)]
    return tuple(tuple((low, high, number[to]) for low, high, to in states[n]) for n in order)


def _sequences(low: int, high: int) -> Iterable[tuple[tuple[int, int], ...]]:
    """Split a range of code points into products of byte ranges (the classical split at encoding and continuation limits)."""
    for limit in (0x7F, 0x7FF, 0xFFFF):
        if low <= limit < high:
            yield from _sequences(low, limit)
            yield from _sequences(limit + 1, high)
            return
    size = len(chr(low).encode())
    for n in range(1, size):
        mask = (1 << (6 * n)) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                yield from _sequences(low, low | mask)
                yield from _sequences((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from _sequences(low, (high & ~mask) - 1)
                yield from _sequences(high & ~mask, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


# Thompson's automaton


@dataclass
class _Guard:
    """A look-around whose body has its own entry and final state."""

    entry: int
    end: int
    ahead: bool
    negative: bool


@dataclass
class _Nfa:
    """States of three kinds: an atom consumes a byte, a split goes on without one, a guard goes on under a condition."""

    moves: list[tuple[tuple[int, int, int], ...]] = field(default_factory=list)
    splits: list[tuple[int, ...]] = field(default_factory=list)
    guard: list[int] = field(default_factory=list)
    leaf: list[int] = field(default_factory=list)
    leaves: list[Origin] = field(default_factory=list)
    guards: list[_Guard] = field(default_factory=list)
    depth: int = 0

    def state(
        self, moves: tuple[tuple[int, int, int], ...] = (), splits: tuple[int, ...] = (), guard: int = -1, leaf: int = -1
    ) -> int:
        self.moves.append(moves)
        self.splits.append(splits)
        self.guard.append(guard)
        self.leaf.append(leaf)
        return len(self.moves) - 1

    def final(self) -> int:
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
                self.guards.append(_Guard(entry, end, ahead, negative))
                return self.state(splits=(then,), guard=len(self.guards) - 1)

    def _chars(self, chars: Chars, then: int) -> int:
        if not chars.ranges:
            return self.state(splits=())
        block = _utf8(chars.ranges)
        first = len(self.moves)
        leaf = -1
        if not self.depth:  # the origins of a look-around are conditions, they write nothing
            self.leaves.append(chars.origin)
            leaf = len(self.leaves) - 1
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

    def to_byte_classes(self) -> tuple[np.ndarray, int]:
        """Rewrite the atoms' ranges of bytes to ranges of the byte classes that they leave; return the classes, their count."""
        cut = np.zeros(257, bool)
        cut[[0, 256]] = True
        for low, high in {(low, high) for moves in self.moves for low, high, _ in moves}:
            cut[low] = cut[high + 1] = True
        byte_class = np.cumsum(cut[:256]) - 1
        class_of = byte_class.tolist()
        self.moves = [
            tuple((class_of[low], class_of[high], to) for low, high, to in moves) for moves in self.moves
        ]
        return byte_class, class_of[-1] + 1


# Determinisation

_Move = tuple["Hashable", frozenset[int]]


class _Subsets:
    """The subset construction of a pattern without look-around; a state is a frozen set of atoms and the final state 0."""

    def __init__(self, nfa: _Nfa, entry: int) -> None:
        self._nfa = nfa
        self._closures: dict[int, frozenset[int]] = {}
        self.initial = self._closure(entry)

    def accepting(self, state: frozenset[int]) -> bool:
        return 0 in state

    def moves(self, state: frozenset[int]) -> dict[int, _Move]:
        """Return for each byte class the next state and the leaves that it comes from."""
        targets: dict[int, set[int]] = {}
        leaves: dict[int, set[int]] = {}
        for atom in state:
            for low, high, to in self._nfa.moves[atom]:
                for symbol in range(low, high + 1):
                    targets.setdefault(symbol, set()).add(to)
                    leaves.setdefault(symbol, set()).add(self._nfa.leaf[atom])
        return {s: (self._union(found), frozenset(leaves[s])) for s, found in targets.items()}

    def _union(self, entries: set[int]) -> frozenset[int]:
        if len(entries) == 1:
            return self._closure(next(iter(entries)))
        return frozenset().union(*map(self._closure, entries))

    def _closure(self, entry: int) -> frozenset[int]:
        """Return the atoms that are reached without consuming a byte, and 0 where the end is."""
        known = self._closures.get(entry)
        if known is not None:
            return known
        atoms, seen, stack = set(), {entry}, [entry]
        while stack:
            state = stack.pop()
            if self._nfa.moves[state] or state == 0:
                atoms.add(state)
            for following in self._nfa.splits[state]:
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        return self._closures.setdefault(entry, frozenset(atoms))


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


def _absorbed(clauses: Condition) -> Condition:
    """Drop clauses that contain another, and those that contradict themselves."""
    kept = [
        c for c in clauses if not any(isinstance(x, tuple) and any(d <= c for d in x[1]) for x in c)
    ]
    if len(kept) < 2:
        return frozenset(kept)
    return frozenset(c for c in kept if not any(d < c for d in kept))


_Live = tuple[Condition, tuple[tuple[tuple[int, Condition], ...], ...]]
"""The condition on the rest, and for each look-behind the conditions under which its atoms are reached here."""


class _Conditions:
    """The construction with look-around: a state is a condition on the rest of the text, and the look-behinds' progress."""

    def __init__(self, nfa: _Nfa, entry: int) -> None:
        self._nfa = nfa
        self._entry = entry
        # A guard is added behind the guards of its own body: in this order everything a tracker asks is already known.
        self._behind = [n for n, guard in enumerate(nfa.guards) if not guard.ahead]
        held: dict[int, Condition] = {}
        trackers = tuple(self._track(n, {}, -1, held) for n in self._behind)
        self.initial: _Live = (self._close(entry, held, ()), trackers)

    def accepting(self, state: _Live) -> bool:
        return self._ends(state[0])

    def moves(self, state: _Live) -> dict[int, _Move]:
        """Return for each byte class the next state and the leaves that it comes from."""
        condition, trackers = state
        # Every clause holds an atom of the text itself beside what look-arounds ask, so no other byte class moves it.
        atoms = [x for clause in condition for x in clause if isinstance(x, int)]
        symbols = {s for x in atoms for low, high, _ in self._nfa.moves[x] for s in range(low, high + 1)}
        out: dict[int, _Move] = {}
        for symbol in symbols:
            held: dict[int, Condition] = {}
            following = tuple(
                self._track(n, dict(reached), symbol, held)
                for n, reached in zip(self._behind, trackers, strict=True)
            )
            rest = self._step(condition, symbol, held)
            if rest != _FALSE:
                out[symbol] = ((rest, following), self._leaves(atoms, symbol))
        return out

    def _leaves(self, atoms: list[int], symbol: int) -> frozenset[int]:
        return frozenset(
            self._nfa.leaf[x]
            for x in atoms
            if self._nfa.leaf[x] >= 0
            and any(low <= symbol <= high for low, high, _ in self._nfa.moves[x])
        )

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
                    self._close(to, held, ())
                    for low, high, to in self._nfa.moves[literal]
                    if low <= symbol <= high
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
        rest = _or(self._close(to, held, (*path, state)) for to in self._nfa.splits[state])
        return _and(self._guard(self._nfa.guard[state], held), rest)

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
        self, state: int, condition: Condition, held: dict[int, Condition], path: tuple[int, ...], here: dict[int, Condition]
    ) -> None:
        """Add `condition` to every atom that is reached from `state` without a byte, with what the guards on the way ask."""
        if state in path or condition == _FALSE:
            return
        if self._nfa.moves[state] or not (self._nfa.splits[state] or self._nfa.guard[state] >= 0):
            here[state] = _or((here.get(state, _FALSE), condition))
            return
        condition = _and(condition, self._guard(self._nfa.guard[state], held))
        for to in self._nfa.splits[state]:
            self._spread(to, condition, held, (*path, state), here)


def _explore(
    machine: _Subsets | _Conditions,
    count: int,
    too_large: Callable[[], SizeError],
    budget: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[frozenset[int]]]:
    """Number all states from the initial one; return moves, acceptance, origin ids and origin sets."""
    ids: dict[Hashable, int] = {machine.initial: 0}
    order: list[Hashable] = [machine.initial]
    origin_ids: dict[frozenset[int], int] = {}
    entries: list[tuple[int, int, int, int]] = []
    at = 0
    while at < len(order):
        for symbol, (following, leaves) in machine.moves(order[at]).items():  # type: ignore[arg-type]
            to = ids.setdefault(following, len(order))
            if to == len(order):
                order.append(following)
                if to >= budget:
                    raise too_large()
            entries.append((at, symbol, to, origin_ids.setdefault(leaves, len(origin_ids))))
        at += 1
    move = np.full((len(order), count), -1, np.int32)
    origins = np.full((len(order), count), -1, np.int32)
    if entries:
        source, symbol_of, target, origin = np.asarray(entries, np.int32).T
        move[source, symbol_of] = target
        origins[source, symbol_of] = origin
    accepting = np.asarray([machine.accepting(state) for state in order])  # type: ignore[arg-type]
    return move, accepting, origins, list(origin_ids)


def _too_large(pattern: Pattern, source: str, budget: int) -> SizeError:
    """Name the repetition that makes the most copies."""
    largest: tuple[int, Repeat | None] = (0, None)
    stack = [pattern]
    while stack:
        node = stack.pop()
        match node:
            case Repeat(body, least, most):
                copies = most if most is not None else least
                largest = max(largest, (copies, node), key=lambda pair: pair[0])
                stack.append(body)
            case Concat(parts) | Union(parts):
                stack.extend(parts)
            case Look(body):
                stack.append(body)
            case _:
                pass
    problem = f"The automaton of this constraint passes {budget:,} states."
    if largest[1] is None:
        return SizeError(problem, "Split it, or remove alternatives.")
    origin = largest[1].origin
    return SizeError(
        f"{problem} Its largest repetition makes {largest[0]:,} copies of what it repeats.",
        "Lower its bound, or use one without an upper limit ('*' or '+').",
        Place(source, origin.start, origin.stop),
    )


# Minimisation


def _minimal(
    byte_class: np.ndarray,
    move: np.ndarray,
    accepting: np.ndarray,
    origins: np.ndarray,
    origin_sets: list[frozenset[int]],
    leaves: tuple[Origin, ...],
) -> ByteAutomaton:
    """Drop what can't accept, join what can't be told apart, number breadth first, and join equal byte classes."""
    alive = _co_accessible(move, accepting)
    if not alive[0]:
        none = np.full((1, 1), -1, np.int32)
        return ByteAutomaton(np.zeros(256, np.uint8), none, 0, np.zeros(1, bool), none, (), leaves)
    move = np.where((move >= 0) & alive[np.maximum(move, 0)], move, -1)
    move[~alive] = -1
    block = _partition(move, accepting, alive)
    number = _breadth_first(move, block)
    states = int(number.max()) + 1
    first = np.zeros(states, np.int64)
    kept = np.flatnonzero(number >= 0)
    first[number[kept][::-1]] = kept[::-1]
    joined = np.where(move[first] >= 0, number[np.maximum(move[first], 0)], -1).astype(np.int32)
    edge_origins, sets = _united(origins, move, number, states, origin_sets)
    columns, column_of = _equal_columns(np.concatenate([joined, edge_origins]))
    return ByteAutomaton(
        byte_class=column_of[byte_class].astype(np.uint8),
        move=np.ascontiguousarray(joined[:, columns]),
        start=0,
        accepting=accepting[first],
        edge_origins=np.ascontiguousarray(edge_origins[:, columns]),
        origin_sets=sets,
        leaves=leaves,
    )


def _co_accessible(move: np.ndarray, accepting: np.ndarray) -> np.ndarray:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import breadth_first_order

    # The reversed moves, and one more node that leads to every accepting state.
    states = accepting.size
    source, symbol = np.nonzero(move >= 0)
    rows = np.concatenate([move[source, symbol], np.full(int(accepting.sum()), states)])
    columns = np.concatenate([source, np.flatnonzero(accepting)])
    graph = coo_matrix((np.ones(rows.size, bool), (rows, columns)), (states + 1, states + 1)).tocsr()
    alive = np.zeros(states + 1, bool)
    alive[breadth_first_order(graph, states, return_predecessors=False)] = True
    return alive[:states]


def _partition(move: np.ndarray, accepting: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Return the class of each state under equality of languages; -1 where not alive (Valmari, Lehtinen 2008)."""
    source, symbol = np.nonzero(move >= 0)
    order = np.argsort(symbol, kind="stable")
    target = move[source, symbol][order].astype(np.int64)
    source, symbol = source[order].astype(np.int64), symbol[order].astype(np.int64)
    block = np.full(accepting.size, -1, np.int64)
    number = np.cumsum(alive) - 1
    found = _refine(number[source], symbol, number[target], accepting[alive])
    block[alive] = found
    return block


@njit(cache=True)
def _split(elements, location, set_of, first, past, marked, touched, count, sets):  # type: ignore[no-untyped-def]
    """Split every touched set into its marked and its unmarked elements; the smaller part gets a new number."""
    for n in range(count):
        s = touched[n]
        middle = first[s] + marked[s]
        if middle == past[s]:
            marked[s] = 0
            continue
        if marked[s] <= past[s] - middle:
            first[sets], past[sets] = first[s], middle
            first[s] = middle
        else:
            first[sets], past[sets] = middle, past[s]
            past[s] = middle
        for p in range(first[sets], past[sets]):
            set_of[elements[p]] = sets
        marked[s] = 0
        marked[sets] = 0
        sets += 1
    return sets


@njit(cache=True)
def _mark(element, elements, location, set_of, first, marked, touched, count):  # type: ignore[no-untyped-def]
    s = set_of[element]
    at = location[element]
    to = first[s] + marked[s]
    if at < to:
        return count
    other = elements[to]
    elements[at], elements[to] = other, element
    location[other], location[element] = at, to
    if marked[s] == 0:
        touched[count] = s
        count += 1
    marked[s] += 1
    return count


@njit(cache=True)
def _refine(source, symbol, target, accepting):  # type: ignore[no-untyped-def]
    """Refine states by acceptance and moves, and moves by symbol and target, until neither splits the other."""
    states, moves = accepting.size, source.size
    b_elements, b_location = np.arange(states), np.arange(states)
    b_set = np.zeros(states, np.int64)
    b_first, b_past = np.zeros(states + 1, np.int64), np.zeros(states + 1, np.int64)
    b_marked, b_touched = np.zeros(states + 1, np.int64), np.zeros(states + 1, np.int64)
    b_past[0] = states
    blocks = 1
    count = 0
    for q in range(states):
        if accepting[q]:
            count = _mark(q, b_elements, b_location, b_set, b_first, b_marked, b_touched, count)
    blocks = _split(b_elements, b_location, b_set, b_first, b_past, b_marked, b_touched, count, blocks)
    c_elements, c_location = np.arange(moves), np.arange(moves)
    c_set = np.zeros(moves, np.int64)
    c_first, c_past = np.zeros(moves + 1, np.int64), np.zeros(moves + 1, np.int64)
    c_marked, c_touched = np.zeros(moves + 1, np.int64), np.zeros(moves + 1, np.int64)
    cords = 0
    for m in range(moves):  # moves come sorted by symbol
        if m == 0 or symbol[m] != symbol[m - 1]:
            c_first[cords] = m
            cords += 1
        c_past[cords - 1] = m + 1
        c_set[m] = cords - 1
    into = np.argsort(target)
    into_first = np.searchsorted(target[into], np.arange(states + 1))
    b_done, c_done = 1, 0
    while c_done < cords:
        count = 0
        for p in range(c_first[c_done], c_past[c_done]):
            q = source[c_elements[p]]
            count = _mark(q, b_elements, b_location, b_set, b_first, b_marked, b_touched, count)
        blocks = _split(b_elements, b_location, b_set, b_first, b_past, b_marked, b_touched, count, blocks)
        c_done += 1
        while b_done < blocks:
            count = 0
            for p in range(b_first[b_done], b_past[b_done]):
                q = b_elements[p]
                for n in range(into_first[q], into_first[q + 1]):
                    count = _mark(into[n], c_elements, c_location, c_set, c_first, c_marked, c_touched, count)
            cords = _split(c_elements, c_location, c_set, c_first, c_past, c_marked, c_touched, count, cords)
            b_done += 1
    return b_set


@njit(cache=True)
def _breadth_first(move, block):  # type: ignore[no-untyped-def]
    """Number the blocks by breadth first search from state 0's; return each state's number, -1 where it has none."""
    states, symbols = move.shape
    member = np.full(states, -1, np.int64)
    for q in range(states - 1, -1, -1):
        if block[q] >= 0:
            member[block[q]] = q
    number = np.full(states, -1, np.int64)
    queue = np.empty(states, np.int64)
    number[block[0]] = 0
    queue[0] = block[0]
    head, tail = 0, 1
    while head < tail:
        q = member[queue[head]]
        head += 1
        for s in range(symbols):
            if move[q, s] >= 0 and number[block[move[q, s]]] < 0:
                number[block[move[q, s]]] = tail
                queue[tail] = block[move[q, s]]
                tail += 1
    out = np.full(states, -1, np.int64)
    for q in range(states):
        if block[q] >= 0:
            out[q] = number[block[q]]
    return out


def _united(
    origins: np.ndarray, move: np.ndarray, number: np.ndarray, states: int, origin_sets: list[frozenset[int]]
) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    """Unite the origins of the moves that minimisation made one."""
    source, symbol = np.nonzero(move >= 0)
    keys = np.stack([number[source], symbol, origins[source, symbol]], axis=1)
    gathered: dict[tuple[int, int], set[int]] = {}
    for q, s, o in np.unique(keys, axis=0).tolist():
        gathered.setdefault((q, s), set()).update(origin_sets[o])
    united: dict[tuple[int, ...], int] = {}
    out = np.full((states, move.shape[1]), -1, np.int32)
    for (q, s), leaves in gathered.items():
        out[q, s] = united.setdefault(tuple(sorted(leaves)), len(united))
    return out, tuple(united)


def _equal_columns(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one index of each distinct column, and for every column the number of its like; in order of appearance."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    number = np.zeros(table.shape[1], np.int64)
    for c, column in enumerate(np.ascontiguousarray(table.T)):
        number[c] = seen.setdefault(column.tobytes(), len(first))
        if number[c] == len(first):
            first.append(c)
    return np.asarray(first), number
