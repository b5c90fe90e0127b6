"""Byte automaton × vocabulary trie → the relation on states that each token is.

Walking the trie composes relations: that of a node is its parent's followed by one byte. Equal relations are one object
(hash, then equality), and the successor of a relation by a byte class is remembered, so the work is that of the
*distinct* relations, a few thousand where the trie has several hundred thousand nodes (`performance.md`, "Compile").
The relations of a deterministic automaton are functions: they move no state to two.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.partition import ordered

DEAD = 0
"""The relation that moves no state."""
IDENTITY = 1
"""The relation of the empty token."""
PAIRS = 120_000_000
"""Pairs of states that all relations may hold together, 8 bytes each: 1 GB."""
WORK = 3_000_000_000
"""Pairs that may be composed: some ten seconds."""


@njit(cache=True)
def compose(rows, read, target, classes, parent, symbol, most_pairs, most_work):
    """Give every trie node the id of its relation on states.

    Args:
        rows: int64 `[states + 1]`; the moves of state `q` of the byte automaton are `rows[q]:rows[q + 1]` of these:
        read: int32, byte classes, ascending in a row.
        target: int32, ascending for one class.
        classes: how many there are.
        parent: int32 `[nodes]` of the trie.
        symbol: `[nodes]`, the byte class of the byte that leads to each node.
        most_pairs: that may be stored.
        most_work: pairs that may be looked at; so nothing hangs, and what is refused is so on any machine.

    Returns:
        `(relation, ptr, source, target)`: int32 `[nodes]` relation ids, and for each relation `f` its pairs
        `source[ptr[f]:ptr[f + 1]] → target[…]`, sorted by source and target. Relation 0 is `DEAD`, 1 `IDENTITY`. All
        are empty where a budget is passed.
    """
    states = rows.size - 1
    by_class, class_rows = ordered(read, classes)
    pairs = np.empty((2, 4096 + 2 * states), np.int32)
    pairs[:, :states] = np.arange(states)
    starts, hashes, table = np.zeros(1025, np.int64), np.zeros(1024, np.uint64), np.full(4096, -1, np.int32)
    starts[2] = states
    successor = np.full((hashes.size, classes), -1, np.int32)
    successor[DEAD] = DEAD
    relation = np.zeros(parent.size, np.int32)
    relation[0] = IDENTITY
    known, work = 2, 0
    stamp, stamps = np.full(states, -1, np.int64), 0
    for node in range(1, parent.size):
        before = relation[parent[node]]
        relation[node] = successor[before, symbol[node]]
        if relation[node] >= 0:
            continue
        top, span = starts[known], (starts[before], starts[before + 1])
        if before == IDENTITY:
            own = by_class[class_rows[symbol[node]] : class_rows[symbol[node] + 1]]
            pairs, stop = _listed(rows, target, own, pairs, top)
            work += states
        else:
            pairs, stop, looked = _follow(rows, read, target, symbol[node], pairs, span, top, stamp, stamps)
            stamps += span[1] - span[0]
            work += looked
        if stop > most_pairs or work > most_work:
            return relation[:0], starts[:0], pairs[0, :0], pairs[1, :0]
        relation[node], hashes[known] = _find(pairs, starts, known, stop, hashes, table)
        successor[before, symbol[node]] = relation[node]
        if relation[node] == known:
            starts[known + 1] = stop
            known += 1
            if known == hashes.size:
                starts, hashes = _grown(starts, known), _grown(hashes, known)
                successor = np.concatenate((successor, np.full_like(successor, -1)))
                table = _table(hashes, known)
    used = starts[known]
    return relation, starts[: known + 1].copy(), pairs[0, :used].copy(), pairs[1, :used].copy()


@njit(cache=True)
def _listed(rows, target, moves, pairs, top):
    """Write behind `top` the pairs of some moves, which are in the order of their sources.

    Returns:
        `(pairs, stop)`: the same or a larger array, and where the new pairs end.
    """
    while top + moves.size > pairs.shape[1]:
        pairs = np.concatenate((pairs, np.empty_like(pairs)), axis=1)
    state = 0
    for n in range(moves.size):
        while rows[state + 1] <= moves[n]:
            state += 1
        pairs[0, top + n], pairs[1, top + n] = state, target[moves[n]]
    return pairs, top + moves.size


@njit(cache=True)
def _follow(rows, read, target, symbol, pairs, span, top, stamp, stamps):
    """Write behind `top` the pairs of a relation followed by one byte.

    Args:
        pairs: int32 `[2 capacity]`, sources and targets; the relation's are those of `span`.
        stamp: int64 `[states]`, the last group of pairs with one source that reached a state.
        stamps: a number above all in `stamp`; as many more as `span` is long may be used.

    Returns:
        `(pairs, stop, looked)`: the same or a larger array, where the new pairs end, how many were looked at.
    """
    at, stop, looked = span[0], top, 0
    while at < span[1]:
        if stop + stamp.size > pairs.shape[1]:
            pairs = np.concatenate((pairs, np.empty_like(pairs)), axis=1)
        q, begin = pairs[0, at], stop
        while at < span[1] and pairs[0, at] == q:
            first = m = _first(read, rows[pairs[1, at]], rows[pairs[1, at] + 1], symbol)
            while m < rows[pairs[1, at] + 1] and read[m] == symbol:
                if stamp[target[m]] != stamps:
                    stamp[target[m]] = stamps
                    pairs[0, stop], pairs[1, stop] = q, target[m]
                    stop += 1
                m += 1
            looked += max(m - first, 1)
            at += 1
        stamps += 1
        if stop > begin + 1:
            pairs[1, begin:stop].sort()
    return pairs, stop, looked


@njit(cache=True)
def _first(read, begin, stop, symbol):
    """Return the first place of a row from which on no class is below a symbol."""
    while begin < stop:
        middle = (begin + stop) // 2
        if read[middle] < symbol:
            begin = middle + 1
        else:
            stop = middle
    return begin


@njit(cache=True)
def _find(pairs, starts, known, stop, hashes, table):
    """Find the relation whose pairs begin at `starts[known]` and end at `stop` among those before it.

    Returns:
        `(relation, hash)`; a relation that wasn't there has the number `known`, and is entered in the table.
    """
    top = starts[known]
    h = _hash(pairs, top, stop)
    if stop == top:
        return DEAD, h
    slot = np.int64(h % np.uint64(table.size))
    while table[slot] >= 0:
        other = table[slot]
        if hashes[other] == h and _same(pairs, starts[other], starts[other + 1], top, stop):
            return other, h
        slot = (slot + 1) % table.size
    table[slot] = known
    return known, h


@njit(cache=True)
def _hash(pairs, begin, stop):
    h = np.uint64(0xCBF29CE484222325)
    for p in range(begin, stop):
        h = (h ^ np.uint64(pairs[0, p])) * np.uint64(0x100000001B3)
        h = (h ^ np.uint64(pairs[1, p])) * np.uint64(0x100000001B3)
        h ^= h >> np.uint64(29)
    return h


@njit(cache=True)
def _same(pairs, begin, stop, top, end):
    """Whether the pairs `begin:stop` are the pairs `top:end`."""
    if stop - begin != end - top:
        return False
    for p in range(stop - begin):
        if pairs[0, begin + p] != pairs[0, top + p] or pairs[1, begin + p] != pairs[1, top + p]:
            return False
    return True


@njit(cache=True)
def _grown(array, known):
    """Return a copy with room for twice as many relations as are known, and what stands behind the last."""
    grown = np.zeros(array.size + known, array.dtype)
    grown[: array.size] = array
    return grown


@njit(cache=True)
def _table(hashes, known):
    """Place the hashes of relations 2 and on in a table with open addressing, at most a quarter full."""
    table = np.full(4 * hashes.size, -1, np.int32)
    for f in range(2, known):
        slot = np.int64(hashes[f] % np.uint64(table.size))
        while table[slot] >= 0:
            slot = (slot + 1) % table.size
        table[slot] = f
    return table
