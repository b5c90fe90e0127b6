"""A nondeterministic automaton made smaller: what can't accept is dropped, states with one future or one past are one.

Two states are bisimilar when both accept or neither does, and each move of one has a move of the other by the same
symbol to a bisimilar state; backwards, when the same holds of the moves into them and of being the initial one. Joining
either kind keeps the language and never adds a path.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine import effort
from engine.partition import distances
from engine.table import Table, united

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.table import Moves


def reduced(given: Moves, accepting: np.ndarray, steps: float = math.inf) -> Table:
    """Trim, then join bisimilar states, forwards and backwards, until neither joins any more.

    Args:
        given: the moves of an automaton whose state 0 is the initial one.
        accepting: bool `[states]`.
        steps: of work after which no states are joined any more; the language is the same.
    """
    source, symbol, target, origin, sets = given
    moves = np.stack([source, symbol, target, origin])
    useful = distances(target, source, _first(accepting.size)) >= 0
    useful &= distances(source, target, accepting) >= 0
    if not useful[0]:
        none = np.zeros(0, np.int64)
        return Table(np.zeros(1, bool), np.zeros(2, np.int64), none, none, none, [])
    # States that are of no use share a number behind all others, and their moves go.
    number = np.where(useful, np.cumsum(useful) - 1, useful.sum())
    moves, accepting = moves[:, useful[source] & useful[target]], accepting[useful]
    moves[[0, 2]] = number[moves[[0, 2]]]
    states = accepting.size + 1
    try:
        with effort.limited(steps):
            while accepting.size < states:
                states = accepting.size
                moves, accepting = _joined(moves, accepting, bisimilar(moves[0], moves[1], moves[2], accepting))
                start = _first(accepting.size)
                moves, accepting = _joined(moves, accepting, bisimilar(moves[2], moves[1], moves[0], start))
    except effort.OutOfStepsError:
        pass
    states, width = accepting.size, int(moves[1].max(initial=0)) + 1
    key, first, origin, sets = united((moves[0] * width + moves[1]) * states + moves[2], moves[3], sets)
    ptr = np.searchsorted(key, np.arange(states + 1) * width * states)
    return Table(accepting, ptr, moves[1, first], moves[2, first], origin, sets)


def bisimilar(source: np.ndarray, symbol: np.ndarray, target: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Return the class of each state: the coarsest partition that agrees with `marked` and with the moves.

    When a block is split, its largest part keeps the number of the block, so that a state is given a new number, and
    those with a move to it are looked at again, no more than a logarithmic number of times (Hopcroft's argument).
    """
    # Bisimilar states are equally far from a marked one.
    block = np.unique(distances(source, target, marked), return_inverse=True)[1].tolist()
    members: list[set[int]] = [set() for _ in range(max(block) + 1)]
    for state, number in enumerate(block):
        members[number].add(state)
    moves: list[list[tuple[int, int]]] = [[] for _ in block]
    before: list[list[int]] = [[] for _ in block]
    for a, s, b in zip(source.tolist(), symbol.tolist(), target.tolist(), strict=True):
        moves[a].append((s, b))
        before[b].append(a)
    dirty = set(range(len(block)))
    while dirty:
        parts: dict[int, dict[frozenset[tuple[int, int]], set[int]]] = {}
        for state in dirty:
            effort.spend(2 + len(moves[state]))
            kind = frozenset((s, block[to]) for s, to in moves[state])
            parts.setdefault(block[state], {}).setdefault(kind, set()).add(state)
        changed = [state for number, split in parts.items() for state in _split(members, block, number, split.values())]
        dirty = {state for to in changed for state in before[to]}
    return np.asarray(block)


def _split(members: list[set[int]], block: list[int], number: int, parts: Iterable[set[int]]) -> list[int]:
    """Split a block into these parts and the rest, which has another kind; return the states with a new number."""
    parts = sorted(parts, key=len, reverse=True)
    touched = sum(map(len, parts))
    if touched < len(members[number]):
        # The rest is listed only where it is the smaller side.
        if 2 * touched > len(members[number]):
            parts = sorted([*parts, members[number].difference(*parts)], key=len, reverse=True)
        else:
            members[number].difference_update(*parts)
            parts = [members[number], *parts]
    members[number] = parts[0]
    for part in parts[1:]:
        for state in part:
            block[state] = len(members)
        members.append(part)
    return [state for part in parts[1:] for state in part]


def _first(states: int) -> np.ndarray:
    return np.asarray(np.arange(states) == 0)


def _joined(moves: np.ndarray, accepting: np.ndarray, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Make each block one state, the initial state's the first, and drop moves that stand twice."""
    swap = np.arange(int(block.max()) + 1)
    swap[[0, block[0]]] = swap[[block[0], 0]]
    block = swap[block]
    joined = np.zeros(swap.size, bool)
    joined[block[accepting]] = True
    moves = np.stack([block[moves[0]], moves[1], block[moves[2]], moves[3]])
    # In one layout, so that no compiled loop is compiled anew.
    return np.ascontiguousarray(np.unique(moves, axis=1)), joined
