"""Nondeterministic byte automaton × vocabulary trie → the relation on states that each token is.

As in `composition`, with relations in place of functions: a state may be moved to several.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.composition import DEAD, grow, same

PAIRS = 60_000_000
"""Pairs of states that all relations may hold together, 8 bytes each."""
WORK = 3_000_000_000
"""Pairs that may be composed: some ten seconds."""


@njit(cache=True)
def compose(ptr, target, states, parent, symbol, most_pairs, most_work):
    """Give every trie node the id of its relation on states.

    Args:
        ptr: the moves of state `q` by byte class `c` lead to `target[ptr[q · classes + c]:ptr[q · classes + c + 1]]`.
        target: as `ptr` says, ascending.
        states: of the byte automaton.
        parent: int32 `[nodes]` of the trie.
        symbol: `[nodes]`, the byte class of the byte that leads to each node.
        most_pairs: that may be stored.
        most_work: pairs that may be looked at.

    Returns:
        `(relation, ptr, source, target)` as of `composition.compose`, pairs sorted by source and target; all empty
        where a budget is passed.
    """
    classes = (ptr.size - 1) // states
    pair_source, pair_target = np.empty(4096 + states, np.int32), np.empty(4096 + states, np.int32)
    starts = np.zeros(1025, np.int64)
    successor = np.full((1024, classes), -1, np.int32)
    hashes = np.zeros(1024, np.uint64)
    table = np.full(4096, -1, np.int32)  # open addressing, at most a quarter full
    pair_source[:states] = np.arange(states)
    pair_target[:states] = np.arange(states)
    successor[DEAD, :] = DEAD
    starts[2] = states
    relations, work = 2, 0
    relation = np.zeros(parent.size, np.int32)
    relation[0] = 1
    stamp = np.full(states, -1, np.int64)
    reached = np.empty(states, np.int32)
    stamps = 0
    for node in range(1, parent.size):
        before = relation[parent[node]]
        if before == DEAD:
            continue
        if successor[before, symbol[node]] >= 0:
            relation[node] = successor[before, symbol[node]]
            continue
        top = starts[relations]
        at, stop = starts[before], starts[before + 1]
        size = 0
        while at < stop:
            q = pair_source[at]
            count = 0
            while at < stop and pair_source[at] == q:
                cell = pair_target[at] * classes + symbol[node]
                for m in range(ptr[cell], ptr[cell + 1]):
                    work += 1
                    if stamp[target[m]] != stamps:
                        stamp[target[m]] = stamps
                        reached[count] = target[m]
                        count += 1
                at += 1
            stamps += 1
            if top + size + count > pair_source.size:
                pair_source = grow(pair_source, top + size + count)
                pair_target = grow(pair_target, top + size + count)
            pair_source[top + size : top + size + count] = q
            pair_target[top + size : top + size + count] = np.sort(reached[:count]) if count > 1 else reached[:count]
            size += count
        work += stop - starts[before]
        if top + size > most_pairs or work > most_work:
            none = np.zeros(0, np.int32)
            return none, np.zeros(0, np.int64), none, none
        found = DEAD
        if size > 0:
            h = _hash(pair_source[top : top + size], pair_target[top : top + size])
            slot = np.int64(h % np.uint64(table.size))
            while table[slot] >= 0:
                other = table[slot]
                if hashes[other] == h and same(pair_source, pair_target, starts[other], starts[other + 1], top, size):
                    break
                slot = (slot + 1) % table.size
            found = table[slot]
            if found < 0:
                found = relations
                table[slot] = found
                hashes[found] = h
                starts[found + 1] = top + size
                relations += 1
        successor[before, symbol[node]] = found
        relation[node] = found
        if relations == hashes.size:
            hashes = grow(hashes, relations + 1)
            starts = grow(starts, relations + 2)
            wider = np.full((hashes.size, classes), -1, np.int32)
            wider[:relations] = successor
            successor = wider
            table = _table(hashes, relations)
    pairs = starts[relations]
    return relation, starts[: relations + 1].copy(), pair_source[:pairs].copy(), pair_target[:pairs].copy()


@njit(cache=True)
def _hash(source, target):
    h = np.uint64(0xCBF29CE484222325)
    for p in range(source.size):
        h = (h ^ np.uint64(source[p])) * np.uint64(0x100000001B3)
        h = (h ^ np.uint64(target[p])) * np.uint64(0x100000001B3)
        h ^= h >> np.uint64(29)
    return h


@njit(cache=True)
def _table(hashes, relations):
    """Place the hashes of relations 2 and on in a table of four times their capacity."""
    table = np.full(4 * hashes.size, -1, np.int32)
    for f in range(2, relations):
        slot = np.int64(hashes[f] % np.uint64(table.size))
        while table[slot] >= 0:
            slot = (slot + 1) % table.size
        table[slot] = f
    return table
