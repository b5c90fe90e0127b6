"""Pattern -> minimal deterministic automaton over UTF-8 bytes, whose moves know their leaves in the source."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import Place, SizeError
from engine.nfa import Conditions, Nfa, Subsets, TooManyStatesError
from engine.partition import breadth_first, refine
from engine.pattern import Concat, Look, Repeat, Union, looks, without_edges

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from engine.pattern import Origin, Pattern

STATE_BUDGET = 100_000
"""States of the deterministic automaton before minimisation."""
LOOK_AROUND_BUDGET = 25_000
"""The same with look-around, whose states are conditions and take some ten times as long; a few seconds either way."""


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


def compile(pattern: Pattern, source: str = "", budget: int | None = None) -> ByteAutomaton:
    """Compile a pattern.

    Args:
        pattern: whose language is meant, on whole strings.
        source: the text that its origins point into, for error messages.
        budget: of states before minimisation; by default `STATE_BUDGET`, or with look-around `LOOK_AROUND_BUDGET`.

    Raises:
        SizeError: the budget is passed; names the largest repetition.
    """
    nfa = Nfa()
    # Most look-arounds are a '^' in front and a '$' behind, which hold there.
    pattern = without_edges(pattern)
    if budget is None:
        budget = LOOK_AROUND_BUDGET if looks(pattern) else STATE_BUDGET
    try:
        entry = nfa.add(pattern, nfa.final())
    except TooManyStatesError:
        raise _too_large(pattern, source, budget) from None
    byte_class, count = nfa.to_byte_classes()
    machine: Subsets | Conditions = Conditions(nfa, entry) if looks(pattern) else Subsets(nfa, entry)
    explored = _explore(machine, count, lambda: _too_large(pattern, source, budget), budget)
    return _minimal(byte_class, *explored, leaves=tuple(nfa.leaves))


def _explore(
    machine: Subsets | Conditions,
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
        for group, (following, leaves) in machine.moves(order[at]):  # type: ignore[arg-type]
            to = ids.setdefault(following, len(order))
            if to == len(order):
                order.append(following)
                if to >= budget:
                    raise too_large()
            origin = origin_ids.setdefault(leaves, len(origin_ids))
            entries.extend((at, symbol, to, origin) for symbol in group)
        at += 1
    move = np.full((len(order), count), -1, np.int32)
    origins = np.full((len(order), count), -1, np.int32)
    if entries:
        source, symbol, target, origin_id = np.asarray(entries, np.int32).T
        move[source, symbol] = target
        origins[source, symbol] = origin_id
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
        "Lower its bound, or use one without an upper limit ('*' or '+'); where \\w or \\d need only ASCII, begin the "
        "regex with (?a), which takes far fewer states.",
        Place(source, origin.start, origin.stop),
    )


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
    number = breadth_first(move, block)
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
    found = refine(number[source], symbol, number[target], accepting[alive])
    block[alive] = found
    return block


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
