"""Compiled loops of minimisation: states that can't be told apart become one (Valmari, Lehtinen 2008)."""

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
def _split(elements, location, set_of, first, past, marked, touched, count, sets):
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
def _mark(element, elements, location, set_of, first, marked, touched, count):
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
def refine(source, symbol, target, class_of):
    """Refine classes of states by their moves, and moves by symbol and target, until neither splits the other.

    Args:
        source: int64 `[moves]`.
        symbol: int64 `[moves]`.
        target: int64 `[moves]`.
        class_of: int64 `[states]`, a partition that no two states of one future stand apart in.

    Returns:
        int64 `[states]`: the coarsest partition that agrees with `class_of` and with the moves.
    """
    states, moves = class_of.size, source.size
    b_set = _told_apart(source, symbol, target, class_of)
    blocks = int(b_set.max()) + 1
    b_elements, b_bounds = ordered(b_set, blocks)
    b_location = _inverse(b_elements)
    b_first, b_past = _room(b_bounds[:-1], states), _room(b_bounds[1:], states)
    b_marked, b_touched = np.zeros(states + 1, np.int64), np.zeros(states + 1, np.int64)
    cords = int(symbol.max()) + 1 if moves else 0
    c_set = symbol.copy()
    c_elements, c_bounds = ordered(symbol, cords)
    c_location = _inverse(c_elements)
    c_first, c_past = _room(c_bounds[:-1], moves + cords), _room(c_bounds[1:], moves + cords)
    c_marked, c_touched = np.zeros(c_first.size, np.int64), np.zeros(c_first.size, np.int64)
    into, into_first = ordered(target, states)
    b_done, c_done = 1, 0
    while True:
        while b_done < blocks:
            count = 0
            for p in range(b_first[b_done], b_past[b_done]):
                q = b_elements[p]
                for n in range(into_first[q], into_first[q + 1]):
                    count = _mark(into[n], c_elements, c_location, c_set, c_first, c_marked, c_touched, count)
            cords = _split(c_elements, c_location, c_set, c_first, c_past, c_marked, c_touched, count, cords)
            b_done += 1
        if c_done == cords:
            return b_set
        count = 0
        for p in range(c_first[c_done], c_past[c_done]):
            q = source[c_elements[p]]
            count = _mark(q, b_elements, b_location, b_set, b_first, b_marked, b_touched, count)
        blocks = _split(b_elements, b_location, b_set, b_first, b_past, b_marked, b_touched, count, blocks)
        c_done += 1


@njit(cache=True)
def _told_apart(source, symbol, target, class_of):
    """Tell states apart by hashes of their moves, again and again while that finds many; the rest is left to `refine`.

    A hash only adds up what the moves write and where they lead, so states of one future are never told apart; that
    others may stay together by chance does no harm.
    """
    block, blocks = _numbered(class_of.astype(np.uint64))
    before = 0
    while blocks > before + before // 8:
        before = blocks
        kind = block.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for m in range(source.size):
            kind[source[m]] += _mixed(np.uint64(symbol[m]) << np.uint64(32) ^ np.uint64(block[target[m]]))
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
