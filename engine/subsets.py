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
        to: int64 `[parts]`, the state that each leads to; -1 where that isn't known yet.
        origin: int64 `[parts]`, the number of the sets of leaves that are written on the way.
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
    to: np.ndarray
    origin: np.ndarray
    symbols: np.ndarray
    part: np.ndarray


class Scratch(NamedTuple):
    """What a walk needs, by state of Thompson's automaton.

    Attributes:
        closure: int32, the deterministic state that each is alone the beginning of; -1 where that isn't known yet.
        stack: int32.
        seen: int64, the last walk that came by.
        seen_leaves: int64, by set of leaves the last walk that wrote it.
    """

    closure: np.ndarray
    stack: np.ndarray
    seen: np.ndarray
    seen_leaves: np.ndarray


_STATE, _SYMBOL, _COUNT, _KNOWN, _ORIGINS, _GROUPS, _MOVES, _WALK = range(8)
"""What is counted: the state whose moves are made; which of its symbols is next, and how many it reads, -1 where they
are not cut yet; deterministic states; lists of sets of leaves; parts; moves; walks."""


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
    scratch = Scratch(
        np.full(size, -1, np.int32), np.empty(size, np.int32), np.zeros(size, np.int64), np.zeros(size, np.int64)
    )
    states, written, moves = _no_lists(size), _no_lists(size), np.empty((4, 4096), np.int64)
    r, steps = np.zeros(8, np.int64), np.zeros(1)
    _begin(thompson, entry, scratch, states, r, steps)
    while not _ended(thompson, parts, scratch, states, written, moves, r, steps, most_states, most_steps):
        states = _with_room(states, r[_KNOWN], size)
        written = _with_room(written, r[_ORIGINS], size)
        if r[_MOVES] == moves.shape[1]:
            moves = np.concatenate((moves, np.empty_like(moves)), axis=1)
    outcome = OUT_OF_STEPS if steps[0] > most_steps else TOO_MANY_STATES if r[_KNOWN] > most_states else DONE
    made = _lists(states, r[_KNOWN]), _lists(written, r[_ORIGINS]), moves[:, : r[_MOVES]].copy()
    return outcome, steps[0], r[_GROUPS], made[0], made[1], made[2]


@njit(cache=True)
def _begin(thompson, entry, scratch, states, r, steps):
    """Make the first state."""
    closure, stack, seen, _ = scratch
    stack[0], r[_WALK], r[_COUNT] = entry, 1, -1
    split = thompson.split_first, thompson.split_count, thompson.split
    stop, looked = _closed(thompson.read, split[0], split[1], split[2], stack, 1, seen, 1, states.items, 0)
    closure[entry] = _entered(states.items, states.ptr, states.hashes, states.table, 0, stop)
    r[_KNOWN] = 1
    steps[0] = 0.4 * looked


@njit(cache=True)
def _ended(thompson, parts, scratch, states, written, moves, r, steps, most_states, most_steps):
    """Make moves until all are made or a limit is passed, or until there is no room for another; return which."""
    # Single arrays: each access to one in a tuple would count a reference.
    read, read_ptr, read_symbol, target, leaves, split_first, split_count, split = thompson
    sets, first, following, last, cut_from, cut_by, into, to, origin, symbols, part_of = parts
    closure, stack, seen, seen_leaves = scratch
    items, ptr, hashes, table = states
    origins, origin_ptr, origin_hashes, origin_table = written
    while r[_STATE] < r[_KNOWN] and r[_KNOWN] <= most_states and steps[0] <= most_steps:
        if r[_COUNT] < 0:
            found = _by_set(read, items, ptr[r[_STATE]], ptr[r[_STATE] + 1], r[_STATE], sets, first, following, last)
            to[: _cut(read_ptr, read_symbol, sets, found, cut_from, cut_by, into, symbols, part_of, r, steps)] = -1
            steps[0] += 3
        while r[_SYMBOL] < r[_COUNT]:
            if ptr[r[_KNOWN]] + read.size > items.size or r[_KNOWN] == hashes.size or r[_MOVES] == moves.shape[1]:
                return False
            if origin_ptr[r[_ORIGINS]] + read.size > origins.size or r[_ORIGINS] == origin_hashes.size:
                return False
            symbol, at = symbols[r[_SYMBOL]], r[_MOVES]
            part = part_of[symbol]
            if to[part] < 0:
                r[_WALK] += 2
                members, targets, stop = _gathered(
                    target,
                    leaves,
                    first,
                    following,
                    cut_from,
                    cut_by,
                    part,
                    stack,
                    seen,
                    seen_leaves,
                    r[_WALK],
                    origins,
                    origin_ptr[r[_ORIGINS]],
                )
                origin[part] = _entered(origins, origin_ptr, origin_hashes, origin_table, r[_ORIGINS], stop)
                r[_ORIGINS] = max(r[_ORIGINS], origin[part] + 1)
                only = stack[0]
                to[part] = closure[only] if targets == 1 else -1
                if to[part] < 0:
                    stop, looked = _closed(
                        read, split_first, split_count, split, stack, targets, seen, r[_WALK] + 1, items, ptr[r[_KNOWN]]
                    )
                    to[part] = _entered(items, ptr, hashes, table, r[_KNOWN], stop)
                    r[_KNOWN] = max(r[_KNOWN], to[part] + 1)
                    if targets == 1:
                        closure[only] = to[part]
                    steps[0] += 0.4 * looked
                r[_GROUPS] += 1
                steps[0] += 5 + 0.3 * members
            moves[0, at], moves[1, at], moves[2, at], moves[3, at] = r[_STATE], symbol, to[part], origin[part]
            r[_MOVES] += 1
            r[_SYMBOL] += 1
        for n in range(r[_COUNT]):
            part_of[symbols[n]] = -1
        r[_STATE] += 1
        r[_COUNT] = -1
    return True


@njit(cache=True)
def _cut(read_ptr, read_symbol, sets, found, cut_from, cut_by, into, symbols, part_of, r, steps):
    """Cut the symbols that a state reads into parts, and count them.

    Returns:
        How many parts were made, those that are empty by now among them.
    """
    into[0] = -1
    count = made = looked = 0
    for k in range(found):
        read, begin = sets[k], made
        for n in range(read_ptr[read], read_ptr[read + 1]):
            symbol = read_symbol[n]
            whole = part_of[symbol]
            if whole < 0:
                symbols[count] = symbol
                count += 1
            if into[whole + 1] < begin:
                into[whole + 1] = made
                cut_from[made], cut_by[made], into[made + 1] = whole, read, -1
                made += 1
            part_of[symbol] = into[whole + 1]
            looked += 1
    r[_COUNT], r[_SYMBOL] = count, 0
    if found > 1:
        steps[0] += 0.4 * looked + count
    return made


@njit(cache=True)
def _by_set(read, items, begin, stop, state, sets, first, following, last):
    """Sort the atoms `items[begin:stop]` of a state by the set of symbols that they read; return how many there are."""
    found = 0
    for n in range(begin, stop):
        atom = items[n]
        number = read[atom]
        if number >= 0:
            if last[number] != state:
                last[number], first[number], sets[found] = state, -1, number
                found += 1
            following[atom] = first[number]
            first[number] = atom
    return found


@njit(cache=True)
def _gathered(target, leaves, first, following, cut_from, cut_by, part, stack, seen, seen_leaves, walk, origins, top):
    """List where the atoms lead that read a part, on the stack, and behind `top` the sets of leaves that they write.

    Returns:
        `(members, targets, stop)`: how many atoms there are, how many targets, and where the sets of leaves end.
    """
    members, targets, stop = 0, 0, top
    while part >= 0:
        atom = first[cut_by[part]]
        while atom >= 0:
            members += 1
            if seen[target[atom]] != walk:
                seen[target[atom]] = walk
                stack[targets] = target[atom]
                targets += 1
            if seen_leaves[leaves[atom]] != walk:
                seen_leaves[leaves[atom]] = walk
                origins[stop] = leaves[atom]
                stop += 1
            atom = following[atom]
        part = cut_from[part]
    _sort(origins, top, stop)
    return members, targets, stop


@njit(cache=True)
def _closed(read, split_first, split_count, split, stack, count, seen, walk, items, top):
    """Write behind `top` the atoms that are reached without reading from the states on the stack, and the end if it is.

    Returns:
        `(stop, looked)`: where they end, and how many states were passed.
    """
    for n in range(count):
        seen[stack[n]] = walk
    stop, looked = top, 0
    while count:
        count -= 1
        state = stack[count]
        looked += 1
        if state == 0 or read[state] >= 0:
            items[stop] = state
            stop += 1
        begin = split_first[state]
        for n in range(begin, begin + split_count[state]):
            if seen[split[n]] != walk:
                seen[split[n]] = walk
                stack[count] = split[n]
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
        np.empty(parts, np.int64),
        np.empty(parts, np.int64),
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
def _entered(items, ptr, hashes, table, known, stop):
    """Return the number of the list behind the `known` ones, up to `stop`; a new one is entered as `known`."""
    top = ptr[known]
    h = np.uint64(0xCBF29CE484222325)
    for n in range(top, stop):
        h = (h ^ np.uint64(items[n])) * np.uint64(0x100000001B3)
        h ^= h >> np.uint64(29)
    slot = np.int64(h % np.uint64(table.size))
    while table[slot] >= 0:
        n = table[slot]
        if hashes[n] == h and _same(items, ptr[n], ptr[n + 1], top, stop):
            return np.int64(n)
        slot = (slot + 1) % table.size
    table[slot], hashes[known], ptr[known + 1] = known, h, stop
    return np.int64(known)


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
