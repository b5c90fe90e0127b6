"""Compiled loops of minimisation: states that can't be told apart become one (Valmari, Lehtinen 2008)."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit


@cache
def prepare() -> None:
    """Compile `refine` once, so that no clock of a pattern runs meanwhile."""
    none = np.zeros(0, np.int64)
    refine(none, none, none, np.ones(1, bool))


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
def refine(source, symbol, target, accepting):
    """Refine states by acceptance and moves, and moves by symbol and target, until neither splits the other."""
    states, moves = accepting.size, source.size
    b_elements, b_location = np.arange(states), np.arange(states)
    b_set = np.zeros(states, np.int64)
    b_first, b_past = np.zeros(states + 1, np.int64), np.zeros(states + 1, np.int64)
    b_marked, b_touched = np.zeros(states + 1, np.int64), np.zeros(states + 1, np.int64)
    b_past[0] = states
    blocks = 1
    count = 0
    for q in range(states):
        if accepting[q]:
            count = _mark(q, b_elements, b_location, b_set, b_first, b_marked, b_touched, count)
    blocks = _split(b_elements, b_location, b_set, b_first, b_past, b_marked, b_touched, count, blocks)
    c_elements, c_location = np.arange(moves), np.arange(moves)
    c_set = np.zeros(moves, np.int64)
    c_first, c_past = np.zeros(moves + 1, np.int64), np.zeros(moves + 1, np.int64)
    c_marked, c_touched = np.zeros(moves + 1, np.int64), np.zeros(moves + 1, np.int64)
    cords = 0
    for m in range(moves):  # moves come sorted by symbol
        if m == 0 or symbol[m] != symbol[m - 1]:
            c_first[cords] = m
            cords += 1
        c_past[cords - 1] = m + 1
        c_set[m] = cords - 1
    into = np.argsort(target)
    into_first = np.searchsorted(target[into], np.arange(states + 1))
    b_done, c_done = 1, 0
    while c_done < cords:
        count = 0
        for p in range(c_first[c_done], c_past[c_done]):
            q = source[c_elements[p]]
            count = _mark(q, b_elements, b_location, b_set, b_first, b_marked, b_touched, count)
        blocks = _split(b_elements, b_location, b_set, b_first, b_past, b_marked, b_touched, count, blocks)
        c_done += 1
        while b_done < blocks:
            count = 0
            for p in range(b_first[b_done], b_past[b_done]):
                q = b_elements[p]
                for n in range(into_first[q], into_first[q + 1]):
                    count = _mark(into[n], c_elements, c_location, c_set, c_first, c_marked, c_touched, count)
            cords = _split(c_elements, c_location, c_set, c_first, c_past, c_marked, c_touched, count, cords)
            b_done += 1
    return b_set


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
