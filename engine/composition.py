"""Byte automaton × vocabulary trie → the function on states that each token is.

Walking the trie composes functions: the function of a node is its parent's followed by one byte. Equal functions are
one object (hash, then equality), and the successor of a function by a byte class is remembered, so the work is that of
the *distinct* functions, a few thousand where the trie has several hundred thousand nodes (`performance.md`,
"Compile").
"""

from __future__ import annotations

import numpy as np
from numba import njit

DEAD = 0
"""The function that moves no state."""
PAIRS = 120_000_000
"""Moves that all functions may hold together, 8 bytes each: 1 GB."""
WORK = 3_000_000_000
"""Moves that may be composed: some ten seconds."""


@njit(cache=True)
def compose(move, parent, symbol, most_pairs=PAIRS, most_work=WORK):
    """Give every trie node the id of its function on states.

    Args:
        move: int32 `[states byte_classes]`, -1 where dead.
        parent: int32 `[nodes]` of the trie.
        symbol: `[nodes]`, the byte class of the byte that leads to each node.
        most_pairs: moves that may be stored.
        most_work: moves that may be looked at; so nothing hangs, and what is refused is so on any machine.

    Returns:
        `(function, ptr, source, target)`: int32 `[nodes]` function ids, and for each function `f` its moves
        `source[ptr[f]:ptr[f + 1]] → target[…]`, sources ascending. Function 0 is `DEAD`, 1 the identity. All are
        empty where a budget is passed.
    """
    states, symbols = move.shape
    capacity = 1024
    pairs_capacity = max(4 * states, 4096)
    source = np.empty(pairs_capacity, np.int32)
    target = np.empty(pairs_capacity, np.int32)
    ptr = np.zeros(capacity + 1, np.int64)
    successor = np.full((capacity, symbols), -1, np.int32)
    hashes = np.zeros(capacity, np.uint64)
    table = np.full(4 * capacity, -1, np.int32)  # open addressing, at most half full
    for q in range(states):
        source[q] = q
        target[q] = q
    successor[DEAD, :] = DEAD
    ptr[2] = states
    functions, work = 2, 0
    function = np.zeros(parent.size, np.int32)
    function[0] = 1
    for node in range(1, parent.size):
        before = function[parent[node]]
        if before == DEAD:
            continue
        known = successor[before, symbol[node]]
        if known >= 0:
            function[node] = known
            continue
        begin, end = ptr[before], ptr[before + 1]
        top = ptr[functions]
        work += end - begin
        if work > most_work or top + (end - begin) > most_pairs:
            return function[:0], ptr[:0], source[:0], target[:0]
        if top + (end - begin) > source.size:
            source = grow(source, top + (end - begin))
            target = grow(target, top + (end - begin))
        size = 0
        h = np.uint64(0xCBF29CE484222325)
        for p in range(begin, end):
            r = move[target[p], symbol[node]]
            if r >= 0:
                source[top + size] = source[p]
                target[top + size] = r
                size += 1
                h = (h ^ np.uint64(source[p])) * np.uint64(0x100000001B3)
                h = (h ^ np.uint64(r)) * np.uint64(0x100000001B3)
                h ^= h >> np.uint64(29)
        found = DEAD
        if size > 0:
            slot = np.int64(h % np.uint64(table.size))
            while table[slot] >= 0:
                other = table[slot]
                if hashes[other] == h and same(source, target, ptr[other], ptr[other + 1], top, size):
                    break
                slot = (slot + 1) % table.size
            found = table[slot]
            if found < 0:
                found = functions
                table[slot] = found
                hashes[found] = h
                ptr[found + 1] = top + size
                functions += 1
        successor[before, symbol[node]] = found
        function[node] = found
        if functions == hashes.size:
            hashes = grow(hashes, functions + 1)
            ptr = grow(ptr, functions + 2)
            grown = np.full((hashes.size, symbols), -1, np.int32)
            grown[:functions] = successor
            successor = grown
            table = np.full(4 * hashes.size, -1, np.int32)
            for f in range(2, functions):
                slot = np.int64(hashes[f] % np.uint64(table.size))
                while table[slot] >= 0:
                    slot = (slot + 1) % table.size
                table[slot] = f
    return function, ptr[: functions + 1].copy(), source[: ptr[functions]].copy(), target[: ptr[functions]].copy()


@njit(cache=True)
def same(source, target, begin, end, top, size):
    """Whether the pairs `begin:end` are those that begin at `top`, `size` of them."""
    if end - begin != size:
        return False
    for p in range(size):  # noqa: SIM110 - a compiled loop
        if source[begin + p] != source[top + p] or target[begin + p] != target[top + p]:
            return False
    return True


@njit(cache=True)
def grow(array, least):
    """Return a copy with room for at least `least` entries, and for twice as many as now."""
    grown = np.zeros(max(2 * array.size, least), array.dtype)
    grown[: array.size] = array
    return grown
