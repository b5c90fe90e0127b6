"""Compiled loops of minimisation, states that can't be told apart become one, and other walks over moves."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit


@cache
def prepare() -> None:
    """Compile `refine` once, so that no clock of a pattern runs meanwhile."""
    none = np.zeros(0, np.int64)
    refine(none, none, none, np.zeros(1, np.int64))


@njit(cache=True)
def refine(source, symbol, target, class_of):
    """Refine classes of states by their moves, until no two states of one class have moves to different ones.

    Args:
        source: int64 `[moves]`, of a deterministic automaton.
        symbol: int64 `[moves]`.
        target: int64 `[moves]`.
        class_of: int64 `[states]`, a partition that no two states of one future stand apart in.

    Returns:
        int64 `[states]`: the coarsest partition that agrees with `class_of` and with the moves.
    """
    block, seed = _told_apart(source, symbol, target, class_of), np.uint64(0)
    while True:
        block = _settled(source, symbol, target, block, seed)
        if agree(source, symbol, target, block):
            return block
        seed += np.uint64(1)  # two hashes were equal by chance


@njit(cache=True)
def _settled(source, symbol, target, block, seed):
    """Split blocks by hashes of the moves of their states until none changes any more; return the block of each state.

    The hash of a state adds up what its moves write and where they lead: it is mended move by move when blocks are
    split. The smaller part of a block gets a new number, so a state gets one, and those with a move to it are looked at
    again, no more than a logarithmic number of times (Hopcroft 1971).
    """
    states, blocks = block.size, int(block.max()) + 1
    into, into_first = ordered(target, states)
    elements, bounds = ordered(block, blocks)
    block, location = block.copy(), _inverse(elements)
    first, past = _room(bounds[:-1], states), _room(bounds[1:], states)
    kind, common = np.zeros(states, np.uint64), np.zeros(states, np.uint64)
    for m in range(source.size):
        kind[source[m]] += _moved(symbol[m], block[target[m]], seed)
    common[:blocks] = kind[elements[first[:blocks]]]
    dirty, count = np.arange(states), states
    following, seen, turn = np.empty(states, np.int64), np.zeros(states, np.int64), 0
    while count:
        heads, kinds = _grouped(dirty[:count], block, kind, common, following)
        turn, count = turn + 1, 0
        for g in range(heads.size):
            old = block[heads[g]]
            if not _split(heads[g], following, elements, location, first, past, old, blocks):
                common[old] = kinds[g]
                continue
            stays = location[heads[g]] >= first[old]  # and the rest of the block has the new number
            common[blocks] = common[old] if stays else kinds[g]
            common[old] = kinds[g] if stays else common[old]
            for p in range(first[blocks], past[blocks]):
                block[elements[p]] = blocks
                for n in range(into_first[elements[p]], into_first[elements[p] + 1]):
                    m = into[n]
                    kind[source[m]] += _moved(symbol[m], blocks, seed) - _moved(symbol[m], old, seed)
                    if seen[source[m]] != turn:
                        seen[source[m]] = turn
                        dirty[count] = source[m]
                        count += 1
            blocks += 1
    return block


@njit(cache=True)
def _moved(symbol, block, seed):
    return _mixed((np.uint64(symbol) << np.uint64(32) ^ np.uint64(block)) + (seed << np.uint64(56)))


@njit(cache=True)
def _grouped(dirty, block, kind, common, following):
    """Group states by their block and hash, but for those whose hash is the common one of the block.

    By state the next one of its group, -1 behind the last, is written to `following`.

    Returns:
        A state of each group, and its hash.
    """
    table = np.full(2 * dirty.size + 1, -1, np.int64)
    heads, kinds, groups = np.empty(dirty.size, np.int64), np.empty(dirty.size, np.uint64), 0
    for state in dirty:
        if kind[state] == common[block[state]]:
            continue
        slot = np.int64(_mixed(kind[state] ^ np.uint64(block[state])) % np.uint64(table.size))
        while table[slot] >= 0 and not (
            kinds[table[slot]] == kind[state] and block[heads[table[slot]]] == block[state]
        ):
            slot = (slot + 1) % table.size
        if table[slot] < 0:
            table[slot], heads[groups], kinds[groups], following[state] = groups, state, kind[state], -1
            groups += 1
        else:
            following[state], heads[table[slot]] = heads[table[slot]], state
    return heads[:groups], kinds[:groups]


@njit(cache=True)
def _split(state, following, elements, location, first, past, old, new):
    """Split a group of states off their block, and give the smaller part a new number; return whether there are two."""
    middle = first[old]
    while state >= 0:
        at, other = location[state], elements[middle]
        elements[at], elements[middle] = other, state
        location[other], location[state] = at, middle
        middle += 1
        state = following[state]
    if middle == past[old]:
        return False
    if middle - first[old] <= past[old] - middle:
        first[new], past[new] = first[old], middle
        first[old] = middle
    else:
        first[new], past[new] = middle, past[old]
        past[old] = middle
    return True


@njit(cache=True)
def agree(source, symbol, target, block):
    """Whether all states of a block have moves by the same symbols to the same blocks."""
    out, out_first = ordered(source, block.size)
    elements, bounds = ordered(block, int(block.max()) + 1)
    leads = np.zeros(int(symbol.max()) + 1 if symbol.size else 0, np.int64)
    stamp = np.full(leads.size, -1, np.int64)
    for b in range(bounds.size - 1):
        stands = elements[bounds[b]]
        for n in range(out_first[stands], out_first[stands + 1]):
            stamp[symbol[out[n]]], leads[symbol[out[n]]] = b, block[target[out[n]]]
        for state in elements[bounds[b] + 1 : bounds[b + 1]]:
            if out_first[state + 1] - out_first[state] != out_first[stands + 1] - out_first[stands]:
                return False
            for n in range(out_first[state], out_first[state + 1]):
                if stamp[symbol[out[n]]] != b or leads[symbol[out[n]]] != block[target[out[n]]]:
                    return False
    return True


@njit(cache=True)
def _told_apart(source, symbol, target, class_of):
    """Tell states apart by hashes of all their moves, again and again while that finds many.

    A hash only adds up what the moves write and where they lead, so states of one future are never told apart.
    """
    block, blocks = _numbered(class_of.astype(np.uint64))
    before = 0
    while blocks > before + before // 8:
        before = blocks
        kind = block.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for m in range(source.size):
            kind[source[m]] += _moved(symbol[m], block[target[m]], np.uint64(0))
        block, blocks = _numbered(kind)
    return block


@njit(cache=True)
def _mixed(value):
    """Scatter the bits of a number (the finaliser of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True)
def _numbered(values):
    """Number equal values alike, by first occurrence; return the numbers and how many there are."""
    table = np.full(2 * values.size + 1, -1, np.int64)
    number, count = np.empty(values.size, np.int64), 0
    for n in range(values.size):
        slot = np.int64(_mixed(values[n]) % np.uint64(table.size))
        while table[slot] >= 0 and values[table[slot]] != values[n]:
            slot = (slot + 1) % table.size
        if table[slot] < 0:
            table[slot] = n
            number[n] = count
            count += 1
        else:
            number[n] = number[table[slot]]
    return number, count


@njit(cache=True)
def alike(items, ptr):
    """Number equal lists alike, by first occurrence.

    Args:
        items: int64; list `n` is `items[ptr[n]:ptr[n + 1]]`.
        ptr: int64 `[lists + 1]`.

    Returns:
        int64 `[lists]`, the number of each; and the first list of each number.
    """
    lists = ptr.size - 1
    hashes, table = np.empty(lists, np.uint64), np.full(2 * lists + 1, -1, np.int64)
    number, first, count = np.empty(lists, np.int64), np.empty(lists, np.int64), 0
    for n in range(lists):
        h = np.uint64(ptr[n + 1] - ptr[n])
        for at in range(ptr[n], ptr[n + 1]):
            h = _mixed(h ^ np.uint64(items[at]))
        hashes[n] = h
        slot = np.int64(h % np.uint64(table.size))
        while table[slot] >= 0 and not (hashes[table[slot]] == h and _equal(items, ptr, table[slot], n)):
            slot = (slot + 1) % table.size
        if table[slot] < 0:
            table[slot] = first[count] = n
            number[n] = count
            count += 1
        else:
            number[n] = number[table[slot]]
    return number, first[:count].copy()


@njit(cache=True)
def _equal(items, ptr, a, b):
    """Whether two lists are equal."""
    size, same = ptr[a + 1] - ptr[a], 0
    if ptr[b + 1] - ptr[b] != size:
        return False
    while same < size and items[ptr[a] + same] == items[ptr[b] + same]:
        same += 1
    return same == size


@njit(cache=True)
def ordered(values, count):
    """Sort small numbers.

    Returns:
        The places of the values in ascending order, those of equal ones too; and where those of each value below
        `count` begin, behind them where the last ends.
    """
    first = np.zeros(count + 1, np.int64)
    for value in values:
        first[value + 1] += 1
    first = np.cumsum(first)
    free, places = first.copy(), np.empty(values.size, np.int64)
    for n in range(values.size):
        places[free[values[n]]] = n
        free[values[n]] += 1
    return places, first


@njit(cache=True)
def _inverse(places):
    inverse = np.empty_like(places)
    for n in range(places.size):
        inverse[places[n]] = n
    return inverse


@njit(cache=True)
def _room(values, size):
    wide = np.zeros(size + 1, np.int64)
    wide[: values.size] = values
    return wide


@njit(cache=True)
def distances(source, target, goals):
    """Return int64 `[states]`: the fewest moves from each state to one of some states; -1 where there is no way.

    Args:
        source: int64 `[moves]`.
        target: int64 `[moves]`.
        goals: bool `[states]`.
    """
    into, first = ordered(target, goals.size)
    distance, queue, tail = np.full(goals.size, -1, np.int64), np.empty(goals.size, np.int64), 0
    for state in np.flatnonzero(goals):
        distance[state] = 0
        queue[tail] = state
        tail += 1
    head = 0
    while head < tail:
        state = queue[head]
        head += 1
        for n in range(first[state], first[state + 1]):
            before = source[into[n]]
            if distance[before] < 0:
                distance[before] = distance[state] + 1
                queue[tail] = before
                tail += 1
    return distance


@njit(cache=True)
def breadth_first(ptr, target):
    """Number the states by breadth first search from state 0, from which all are reached; int64 `[states]`.

    Args:
        ptr: the moves of state `q` lead to `target[ptr[q]:ptr[q + 1]]`, in the order of the search.
        target: as `ptr` says.
    """
    states = ptr.size - 1
    number = np.full(states, -1, np.int64)
    queue = np.empty(states, np.int64)
    number[0] = queue[0] = 0
    tail = 1
    for head in range(states):
        for m in range(ptr[queue[head]], ptr[queue[head] + 1]):
            if number[target[m]] < 0:
                number[target[m]] = tail
                queue[tail] = target[m]
                tail += 1
    return number
