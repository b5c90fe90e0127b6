"""A stack machine, compiled, whose programs write Thompson's automaton.

Each node of a pattern is written once (`routines`), as a subroutine that takes the state behind the node and leaves its
entry; what a pattern repeats or has in many places then costs a call of it, and no Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

ATOM, OPEN, SPLIT, FILL, GUARD, KEEP, TAKE, DROP, TIMES, UNTIL, CALL, RETURN, INSIDE, LOOKING, HALT = range(15)
"""Instructions; each but the first word is an operand. `here` is the state that what comes next leads to.

    ATOM set leaves              here = a new state that reads a symbol of a set and leads here
    OPEN count                   here = the first of some new states without anything
    SPLIT count at…              here = a new state that goes on to those at these places of the stack
    FILL at offset count at…     the state `offset` behind the one at a place of the stack goes on to those at others
    GUARD kind entry end at      here = a new state that goes on to that at a place under the condition of a look-around
    KEEP                         put here on the stack
    TAKE at offset               here = the state `offset` behind the one at a place of the stack
    DROP count                   take so many from the stack
    TIMES count … UNTIL          do what stands between so many times, at least once
    CALL node                    run the subroutine of a node, unless it was run with the same state behind it
    RETURN
    INSIDE node                  what follows is of a construct; -1 where it ends
    LOOKING by                   what follows is in the body of one look-around more or less, and writes nothing

A place is counted from the top of the stack, which is 1.
"""
READ, TARGET, LEAVES, GUARDED, CONSTRUCT, FIRST, COUNT = range(7)
"""Rows of `Written.states`."""
_PC, _HERE, _TOP, _STATES, _SPLITS, _GUARDS, _CONSTRUCTS, _INSIDE, _DEPTH, _KNOWN = range(10)


class Written(NamedTuple):
    """What a program has written, with room behind.

    Attributes:
        states: int32 `[7 states]`: number of the set of symbols that an atom reads, -1 where the state is no atom;
            where it leads; number of the leaves that it writes; the guard of the state, -1 if none; the construct
            around it, -1 if none; where its splits begin, and how many there are.
        splits: int32.
        guards: int32 `[3 guards]`: kind, entry and end.
        constructs: int32 `[2 constructs]`: node, and the construct around it.
        stack: int64.
        keys: int64, what was called, by hash with open addressing, at most half full: node, whether inside a
            look-around, and the state behind it; -1 where free.
        entries: int32, the entry for each.
    """

    states: np.ndarray
    splits: np.ndarray
    guards: np.ndarray
    constructs: np.ndarray
    stack: np.ndarray
    keys: np.ndarray
    entries: np.ndarray


@njit(cache=True)
def run(code, starts, widest, most):
    """Run a program.

    Args:
        code: int32, instructions and operands; it begins at 0.
        starts: int32 `[nodes]`, where the subroutine of each node begins.
        widest: states or splits that one instruction makes, at most.
        most: states to be made; one more and it ends.

    Returns:
        `(entry, states, splits, guards, constructs)`, see `Written`; of more states than `most` where it ended early.
    """
    w, r = _written(widest), np.zeros(10, np.int64)
    r[_INSIDE] = -1
    while not _ended(w, r, code, starts, widest, most):
        w = _with_room(w, r)
    return (
        r[_HERE],
        w.states[:, : r[_STATES]].copy(),
        w.splits[: r[_SPLITS]].copy(),
        w.guards[:, : r[_GUARDS]].copy(),
        w.constructs[:, : r[_CONSTRUCTS]].copy(),
    )


@njit(cache=True)
def _ended(w, r, code, starts, widest, most):
    """Run until the program ends, or until an instruction may write more than there is room for; return which."""
    # Single arrays: each access to one in a tuple would count a reference.
    states, splits, guards, constructs, stack, keys, entries = w
    while code[r[_PC]] != HALT and r[_STATES] <= most:
        if r[_STATES] + widest > states.shape[1] or r[_SPLITS] + widest > splits.size or r[_TOP] + 2 > stack.size:
            return False
        if 2 * (r[_KNOWN] + 1) > keys.size or r[_GUARDS] == guards.shape[1] or r[_CONSTRUCTS] == constructs.shape[1]:
            return False
        op = code[r[_PC]]
        if op == ATOM:
            _atom(states, r, code)
        elif op == CALL:
            _call(stack, keys, entries, r, code, starts)
        elif op == RETURN:
            _return(stack, keys, entries, r)
        elif op == GUARD:
            _guard(states, splits, guards, stack, r, code)
        elif op <= FILL:
            _make(states, splits, stack, r, code, op)
        elif op <= DROP:
            _move(stack, r, code, op)
        elif op <= UNTIL:
            _loop(stack, r, code, op)
        else:
            _note(constructs, r, code, op)
    return True


@njit(cache=True)
def _state(states, r, read, target, leaves):
    n = r[_STATES]
    states[READ, n], states[TARGET, n], states[LEAVES, n] = read, target, leaves
    states[GUARDED, n], states[CONSTRUCT, n] = -1, r[_INSIDE]
    states[FIRST, n] = states[COUNT, n] = 0
    r[_STATES] = n + 1
    return n


@njit(cache=True)
def _atom(states, r, code):
    pc = r[_PC]
    # What a look-around reads is a condition, it writes nothing.
    r[_HERE] = _state(states, r, code[pc + 1], r[_HERE], 0 if r[_DEPTH] else code[pc + 2])
    r[_PC] = pc + 3


@njit(cache=True)
def _make(states, splits, stack, r, code, op):
    pc = r[_PC]
    if op == OPEN:
        r[_HERE] = r[_STATES]
        for _ in range(code[pc + 1]):
            _state(states, r, -1, -1, 0)
        r[_PC] = pc + 2
    elif op == SPLIT:
        r[_HERE] = _state(states, r, -1, -1, 0)
        r[_PC] = _goes_on(states, splits, stack, r, code, r[_HERE], pc + 1)
    else:
        state = stack[r[_TOP] - code[pc + 1]] + code[pc + 2]
        r[_PC] = _goes_on(states, splits, stack, r, code, state, pc + 3)


@njit(cache=True)
def _goes_on(states, splits, stack, r, code, state, pc):
    """Let a state go on to those at the places that are counted at `pc`; return where the next instruction stands."""
    count, first = code[pc], r[_SPLITS]
    states[FIRST, state], states[COUNT, state] = first, count
    for n in range(count):
        splits[first + n] = stack[r[_TOP] - code[pc + 1 + n]]
    r[_SPLITS] = first + count
    return pc + 1 + count


@njit(cache=True)
def _guard(states, splits, guards, stack, r, code):
    pc, top, guard = r[_PC], r[_TOP], r[_GUARDS]
    guards[0, guard], guards[1, guard], guards[2, guard] = (
        code[pc + 1],
        stack[top - code[pc + 2]],
        stack[top - code[pc + 3]],
    )
    r[_HERE] = _state(states, r, -1, -1, 0)
    states[GUARDED, r[_HERE]] = guard
    states[FIRST, r[_HERE]], states[COUNT, r[_HERE]] = r[_SPLITS], 1
    splits[r[_SPLITS]] = stack[top - code[pc + 4]]
    r[_SPLITS] += 1
    r[_GUARDS] += 1
    r[_PC] = pc + 5


@njit(cache=True)
def _move(stack, r, code, op):
    pc = r[_PC]
    if op == KEEP:
        stack[r[_TOP]] = r[_HERE]
        r[_TOP] += 1
        r[_PC] = pc + 1
    elif op == TAKE:
        r[_HERE] = stack[r[_TOP] - code[pc + 1]] + code[pc + 2]
        r[_PC] = pc + 3
    else:
        r[_TOP] -= code[pc + 1]
        r[_PC] = pc + 2


@njit(cache=True)
def _loop(stack, r, code, op):
    pc, top = r[_PC], r[_TOP]
    if op == TIMES:
        stack[top], stack[top + 1] = pc + 2, code[pc + 1]
        r[_TOP], r[_PC] = top + 2, pc + 2
        return
    stack[top - 1] -= 1
    if stack[top - 1] > 0:
        r[_PC] = stack[top - 2]
    else:
        r[_TOP], r[_PC] = top - 2, pc + 1


@njit(cache=True)
def _note(constructs, r, code, op):
    node = code[r[_PC] + 1]
    r[_PC] += 2
    if op == LOOKING:
        r[_DEPTH] += node
    elif node < 0:
        r[_INSIDE] = constructs[1, r[_INSIDE]]
    else:
        constructs[0, r[_CONSTRUCTS]], constructs[1, r[_CONSTRUCTS]] = node, r[_INSIDE]
        r[_INSIDE] = r[_CONSTRUCTS]
        r[_CONSTRUCTS] += 1


@njit(cache=True)
def _call(stack, keys, entries, r, code, starts):
    node, top = np.int64(code[r[_PC] + 1]), r[_TOP]
    key = (2 * node + (r[_DEPTH] > 0)) << 32 | r[_HERE]
    slot = _slot(keys, key)
    r[_PC] += 2
    if keys[slot] == key:
        r[_HERE] = entries[slot]
    else:
        stack[top], stack[top + 1] = r[_PC], key
        r[_TOP], r[_PC] = top + 2, starts[node]


@njit(cache=True)
def _return(stack, keys, entries, r):
    r[_PC], key = stack[r[_TOP] - 2], stack[r[_TOP] - 1]
    slot = _slot(keys, key)
    keys[slot], entries[slot] = key, r[_HERE]
    r[_KNOWN] += 1
    r[_TOP] -= 2


@njit(cache=True)
def _slot(keys, key):
    """Return the place of a key in a table of a power of two, or the free one where it belongs."""
    mask = keys.size - 1
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _written(widest):
    return Written(
        np.empty((7, 4096 + 2 * widest), np.int32),
        np.empty(4096 + 2 * widest, np.int32),
        np.empty((3, 16), np.int32),
        np.empty((2, 256), np.int32),
        np.empty(256, np.int64),
        np.full(4096, -1, np.int64),
        np.empty(4096, np.int32),
    )


@njit(cache=True)
def _with_room(w, r):
    """Return the same with twice the room of everything that is half full."""
    states, splits, guards, constructs, stack, keys, entries = w
    if 2 * r[_STATES] >= states.shape[1]:
        states = np.concatenate((states, np.empty_like(states)), axis=1)
    if 2 * r[_SPLITS] >= splits.size:
        splits = np.concatenate((splits, np.empty_like(splits)))
    if 2 * r[_TOP] >= stack.size:
        stack = np.concatenate((stack, np.empty_like(stack)))
    if 2 * r[_GUARDS] >= guards.shape[1]:
        guards = np.concatenate((guards, np.empty_like(guards)), axis=1)
    if 2 * r[_CONSTRUCTS] >= constructs.shape[1]:
        constructs = np.concatenate((constructs, np.empty_like(constructs)), axis=1)
    if 4 * r[_KNOWN] >= keys.size:
        keys, entries = _rehashed(keys, entries)
    return Written(states, splits, guards, constructs, stack, keys, entries)


@njit(cache=True)
def _rehashed(keys, entries):
    more, found = np.full(2 * keys.size, -1, np.int64), np.empty(2 * keys.size, np.int32)
    for n in range(keys.size):
        if keys[n] >= 0:
            slot = _slot(more, keys[n])
            more[slot], found[slot] = keys[n], entries[n]
    return more, found
