"""Byte automaton × vocabulary trie → the function on states that each token is.

Walking the trie composes functions: the function of a node is its parent's followed by one byte. Equal functions are
one object (hash, then equality), and the successor of a function by a byte class is remembered, so the work is that of
the *distinct* functions, a few thousand where the trie has several hundred thousand nodes (`performance.md`,
"Compile").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

DEAD = 0
"""The function that moves no state."""


@dataclass(frozen=True, eq=False)
class Trie:
    """The byte strings of a vocabulary as a trie, nodes in depth-first order.

    Attributes:
        parent: int32 `[nodes]`; node 0 is the root, its own parent.
        byte: uint8 `[nodes]`, the byte that leads from the parent to the node.
        node: int32 `[vocab]`, the node where each token ends; the root for ids that write nothing.
    """

    parent: np.ndarray
    byte: np.ndarray
    node: np.ndarray


def build_trie(token_bytes: tuple[bytes | None, ...]) -> Trie:
    """Build the trie in one pass over the sorted tokens."""
    ids = sorted(
        (i for i, data in enumerate(token_bytes) if data),
        key=lambda i: token_bytes[i] or b"",
    )
    parts = [token_bytes[i] or b"" for i in ids]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    data = np.frombuffer(b"".join(parts), np.uint8)
    parent, byte, leaf = _trie(data, ends)
    node = np.zeros(len(token_bytes), np.int32)
    node[np.asarray(ids, np.int64)] = leaf
    return Trie(parent, byte, node)


@njit(cache=True)
def _trie(data, ends):
    tokens = ends.size - 1
    parent = np.zeros(data.size + 1, np.int32)
    byte = np.zeros(data.size + 1, np.uint8)
    leaf = np.zeros(tokens, np.int32)
    longest = 0
    for t in range(tokens):
        longest = max(longest, ends[t + 1] - ends[t])
    stack = np.zeros(longest + 1, np.int32)  # node at each depth of the previous token
    nodes = 1
    previous_length = 0
    for t in range(tokens):
        length = ends[t + 1] - ends[t]
        depth = 0
        while depth < length and depth < previous_length and data[ends[t] + depth] == byte[stack[depth + 1]]:
            depth += 1
        while depth < length:
            parent[nodes] = stack[depth]
            byte[nodes] = data[ends[t] + depth]
            depth += 1
            stack[depth] = nodes
            nodes += 1
        leaf[t] = stack[length]
        previous_length = length
    return parent[:nodes].copy(), byte[:nodes].copy(), leaf


@njit(cache=True)
def compose(move, parent, symbol):
    """Give every trie node the id of its function on states.

    Args:
        move: int32 `[states byte_classes]`, -1 where dead.
        parent: int32 `[nodes]` of the trie.
        symbol: `[nodes]`, the byte class of the byte that leads to each node.

    Returns:
        `(function, ptr, source, target)`: int32 `[nodes]` function ids, and for each function `f` its moves
        `source[ptr[f]:ptr[f + 1]] → target[…]`, sources ascending. Function 0 is `DEAD`, 1 the identity.
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
    functions = 2
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
