"""Compiled loops of the subset construction (Rabin, Scott 1959): Thompson's automaton -> deterministic states.

They do what `machines.Subsets` does one state at a time, and count the same work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

DONE, TOO_MANY_STATES, OUT_OF_STEPS = 0, 1, 2


class Thompson(NamedTuple):
    """Thompson's automaton as arrays; state 0 is final.

    Attributes:
        read: int32 `[states]`, number of the set of symbols that an atom reads; -1 where the state is no atom.
        read_ptr: int64 `[sets + 1]`; the symbols of set `r` are `read_symbol[read_ptr[r]:read_ptr[r + 1]]`.
        read_symbol: int32.
        target: int32 `[states]`, where each atom leads.
        leaves: int32 `[states]`, number of the set of leaves that each atom writes.
        split_first: int32 `[states]`; state `q` goes on without reading to `split_count[q]` states, from
            `split[split_first[q]]` on.
        split_count: int32 `[states]`.
        split: int32.
    """

    read: np.ndarray
    read_ptr: np.ndarray
    read_symbol: np.ndarray
    target: np.ndarray
    leaves: np.ndarray
    split_first: np.ndarray
    split_count: np.ndarray
    split: np.ndarray


class Lists(NamedTuple):
    """Distinct lists of numbers, each found by its content.

    Attributes:
        items: int32; list `n` is `items[ptr[n]:ptr[n + 1]]`, and behind the last there is room.
        ptr: int64, with room behind.
        hashes: uint64 of each list.
        table: int32, the numbers of the lists by hash with open addressing, at most half full; -1 where free.
    """

    items: np.ndarray
    ptr: np.ndarray
    hashes: np.ndarray
    table: np.ndarray


class Parts(NamedTuple):
    """How the symbols that a state reads fall into parts that the same atoms read.

    Each set of symbols that is read cuts the parts that it meets, so a part knows its sets through those that it was
    cut out of.

    Attributes:
        sets: int32 `[sets]`, the distinct sets that are read.
        first: int32 `[sets]`, by set an atom that reads it.
        following: int32 `[states]`, the next atom with the same set; -1 behind the last.
        last: int64 `[sets]`, by set the last state that reads it.
        cut_from: int32 `[parts]`, the part that each was cut out of; -1 for what no earlier set holds.
        cut_by: int32 `[parts]`, the set that cut it out.
        into: int32 `[parts + 1]`, the part that was last cut out of part `p` at `p + 1`; at 0 that of no part.
        symbols: int32 `[symbols]`, those that are read.
        part: int32 `[symbols]`, by symbol its part; -1 where it isn't read.
    """

    sets: np.ndarray
    first: np.ndarray
    following: np.ndarray
    last: np.ndarray
    cut_from: np.ndarray
    cut_by: np.ndarray
    into: np.ndarray
    symbols: np.ndarray
    part: np.ndarray


@njit(cache=True)
def explore(thompson, entry, symbols, most_states, most_steps):
    """Make the deterministic states that are reached from an entry, in the order of reaching them.

    Args:
        thompson: the automaton.
        entry: its state before anything is read.
        symbols: how many there are.
        most_states: to be made; one more and it ends.
        most_steps: of work, past which it ends; see `engine.effort`.

    Returns:
        `(outcome, steps, groups, states, written, moves)`: one of the constants above; the work done; how many moves
        there are when those of all the symbols of a part are one; the atoms of each state; the sets of leaves that
        each origin stands for; and int64 `[4 moves]`, source, symbol, target and origin.
    """
    size = thompson.read.size
    parts = _no_parts(size, thompson.read_ptr.size - 1, thompson.read_symbol.size, symbols)
    states, written = _no_lists(size), _no_lists(size)
    closure, stack = np.full(size, -1, np.int32), np.empty(size, np.int32)
    seen, seen_leaves = np.zeros(size, np.int64), np.zeros(size, np.int64)
    moves = np.empty((4, 4096), np.int64)
    to, origin = np.empty(parts.cut_from.size, np.int64), np.empty(parts.cut_from.size, np.int64)
    stack[0] = entry
    stop, looked = _closed(thompson, stack, 1, seen, 1, states.items, 0)
    _entered(states, 0, stop)
    closure[entry] = 0
    known, origins, groups, at, mark = 1, 0, 0, 0, 1
    steps, outcome, state = 0.4 * looked, DONE, 0
    while state < known and outcome == DONE:
        count, made, work = _cut(thompson, states, state, parts)
        if at + count > moves.shape[1]:
            moves = np.concatenate((moves, np.empty((4, max(at, count)), np.int64)), axis=1)
        to[:made] = -1
        before = groups
        for n in range(count):
            part = parts.part[parts.symbols[n]]
            if to[part] < 0:
                if states.ptr[known] + size > states.items.size or known == states.hashes.size:
                    states = _with_room(states, known, size)
                if written.ptr[origins] + size > written.items.size or origins == written.hashes.size:
                    written = _with_room(written, origins, size)
                mark += 2
                members, targets, stop = _gathered(
                    thompson, parts, part, stack, seen, written, origins, seen_leaves, mark
                )
                origin[part] = _entered(written, origins, stop)
                origins = max(origins, origin[part] + 1)
                only = stack[0]
                if targets == 1 and closure[only] >= 0:
                    to[part] = closure[only]
                else:
                    top = states.ptr[known]
                    stop, looked = _closed(thompson, stack, targets, seen, mark + 1, states.items, top)
                    work += 0.4 * looked
                    to[part] = _entered(states, known, stop)
                    known = max(known, to[part] + 1)
                    if targets == 1:
                        closure[only] = to[part]
                groups += 1
                work += 2 + 0.3 * members
            moves[0, at], moves[1, at], moves[2, at], moves[3, at] = state, parts.symbols[n], to[part], origin[part]
            at += 1
        for n in range(count):
            parts.part[parts.symbols[n]] = -1
        steps += work + 3 + 3 * (groups - before)
        state += 1
        if steps > most_steps:
            outcome = OUT_OF_STEPS
        elif known > most_states:
            outcome = TOO_MANY_STATES
    return outcome, steps, groups, _lists(states, known), _lists(written, origins), moves[:, :at].copy()


@njit(cache=True)
def _cut(thompson, states, state, parts):
    """Cut the symbols that a state reads into parts.

    Returns:
        `(count, made, work)`: how many symbols are read; how many parts were made, those that are empty by now among
        them; and the work.
    """
    sets = _by_set(thompson.read, states, state, parts)
    parts.into[0] = -1
    count = made = looked = 0
    for k in range(sets):
        read, begin = parts.sets[k], made
        for n in range(thompson.read_ptr[read], thompson.read_ptr[read + 1]):
            symbol = thompson.read_symbol[n]
            whole = parts.part[symbol]
            if whole < 0:
                parts.symbols[count] = symbol
                count += 1
            if parts.into[whole + 1] < begin:
                parts.into[whole + 1] = made
                parts.cut_from[made], parts.cut_by[made], parts.into[made + 1] = whole, read, -1
                made += 1
            parts.part[symbol] = parts.into[whole + 1]
            looked += 1
    return count, made, 0.4 * looked + count if sets > 1 else 0.0


@njit(cache=True)
def _by_set(read, states, state, parts):
    """Sort the atoms of a state by the set of symbols that they read; return how many sets there are."""
    sets = 0
    for n in range(states.ptr[state], states.ptr[state + 1]):
        atom = states.items[n]
        number = read[atom]
        if number >= 0:
            if parts.last[number] != state:
                parts.last[number], parts.first[number], parts.sets[sets] = state, -1, number
                sets += 1
            parts.following[atom] = parts.first[number]
            parts.first[number] = atom
    return sets


@njit(cache=True)
def _gathered(thompson, parts, part, stack, seen, written, origins, seen_leaves, mark):
    """List where the atoms lead that read a part, on the stack, and the sets of leaves that they write.

    Returns:
        `(members, targets, stop)`: how many atoms there are, how many targets, and where the sets of leaves end that
        were put behind the last list of `written`.
    """
    members, targets, stop = 0, 0, written.ptr[origins]
    while part >= 0:
        atom = parts.first[parts.cut_by[part]]
        while atom >= 0:
            members += 1
            if seen[thompson.target[atom]] != mark:
                seen[thompson.target[atom]] = mark
                stack[targets] = thompson.target[atom]
                targets += 1
            if seen_leaves[thompson.leaves[atom]] != mark:
                seen_leaves[thompson.leaves[atom]] = mark
                written.items[stop] = thompson.leaves[atom]
                stop += 1
            atom = parts.following[atom]
        part = parts.cut_from[part]
    _sort(written.items, written.ptr[origins], stop)
    return members, targets, stop


@njit(cache=True)
def _closed(thompson, stack, count, seen, mark, items, top):
    """Write behind `top` the atoms that are reached without reading from the states on the stack, and the end if it is.

    Returns:
        `(stop, looked)`: where they end, and how many states were passed.
    """
    for n in range(count):
        seen[stack[n]] = mark
    stop, looked = top, 0
    while count:
        count -= 1
        state = stack[count]
        looked += 1
        if state == 0 or thompson.read[state] >= 0:
            items[stop] = state
            stop += 1
        first = thompson.split_first[state]
        for n in range(first, first + thompson.split_count[state]):
            following = thompson.split[n]
            if seen[following] != mark:
                seen[following] = mark
                stack[count] = following
                count += 1
    _sort(items, top, stop)
    return stop, looked


@njit(cache=True)
def _sort(items, top, stop):
    """Sort the items from `top` on; few are the rule, and for few the library's sort is slow to begin."""
    if stop - top > 32:
        items[top:stop].sort()
        return
    for n in range(top + 1, stop):
        item, at = items[n], n
        while at > top and items[at - 1] > item:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item


@njit(cache=True)
def _no_parts(states, sets, parts, symbols):
    return Parts(
        np.empty(sets, np.int32),
        np.empty(sets, np.int32),
        np.empty(states, np.int32),
        np.full(sets, -1, np.int64),
        np.empty(parts, np.int32),
        np.empty(parts, np.int32),
        np.empty(parts + 1, np.int32),
        np.empty(symbols, np.int32),
        np.full(symbols, -1, np.int32),
    )


@njit(cache=True)
def _no_lists(room):
    return Lists(
        np.empty(4096 + room, np.int32),
        np.zeros(1025, np.int64),
        np.empty(1024, np.uint64),
        np.full(2048, -1, np.int32),
    )


@njit(cache=True)
def _with_room(lists, known, more):
    """Return the lists with room for another one of `more` numbers."""
    items, ptr, hashes, table = lists
    if ptr[known] + more > items.size:
        items = np.concatenate((items, np.empty(items.size + more, np.int32)))
    if known == hashes.size:
        ptr, hashes = np.concatenate((ptr, np.zeros_like(hashes).astype(np.int64))), np.concatenate((hashes, hashes))
        table = np.full(2 * hashes.size, -1, np.int32)
        for n in range(known):
            slot = np.int64(hashes[n] % np.uint64(table.size))
            while table[slot] >= 0:
                slot = (slot + 1) % table.size
            table[slot] = n
    return Lists(items, ptr, hashes, table)


@njit(cache=True)
def _entered(lists, known, stop):
    """Return the number of the list behind the `known` ones, up to `stop`; a new one is entered as `known`."""
    top = lists.ptr[known]
    h = np.uint64(0xCBF29CE484222325)
    for n in range(top, stop):
        h = (h ^ np.uint64(lists.items[n])) * np.uint64(0x100000001B3)
        h ^= h >> np.uint64(29)
    slot = np.int64(h % np.uint64(lists.table.size))
    while lists.table[slot] >= 0:
        n = lists.table[slot]
        if lists.hashes[n] == h and _same(lists.items, lists.ptr[n], lists.ptr[n + 1], top, stop):
            return n
        slot = (slot + 1) % lists.table.size
    lists.table[slot], lists.hashes[known], lists.ptr[known + 1] = known, h, stop
    return known


@njit(cache=True)
def _same(items, begin, end, top, stop):
    """Whether the items `begin:end` are the items `top:stop`."""
    at = top
    while at < stop and items[begin + at - top] == items[at]:
        at += 1
    return at == stop and end - begin == stop - top


@njit(cache=True)
def _lists(lists, known):
    """Return the lists without the room behind."""
    return lists.items[: lists.ptr[known]].copy(), lists.ptr[: known + 1].copy()
