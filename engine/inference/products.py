"""Compiled loops of the composed tree: the moves across two spans are multiplied row by row (Gustavson 1978).

Arrays are those of `moves.Moves`; weights are numbers that never underflow (`wide`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.inference.kernels import find
from engine.inference.spans import conditional
from engine.inference.wide import NEVER, add, times


@njit(cache=True)
def compose(edges, live_ptr, live, mass, exponent, most):
    """Return the arrays of `Moves`; empty ones where there are too many."""
    length = mass.shape[0]
    levels = 1
    while 1 << (levels - 1) < length:
        levels += 1
    ptr = np.zeros((levels, live.size + 1), np.int64)
    place, m, k = _single(edges, live_ptr, live, mass, exponent, ptr[0])
    for level in range(1, levels):
        half, count = 1 << (level - 1), place.size
        products, room = _products(ptr[level - 1], place, half, live_ptr)
        most -= products
        if most < 0:
            return ptr[:0], place, m, k
        place, m, k = _longer(place, room), _longer(m, room), _longer(k, room)
        count = _multiply(ptr[level - 1], ptr[level], place, m, k, half, live_ptr, count)
        place, m, k = place[:count], m[:count], k[:count]
    return ptr, place, m, k


@njit(cache=True)
def _longer(array, room):
    longer = np.empty(array.size + room, array.dtype)
    longer[: array.size] = array
    return longer


@njit(cache=True)
def _single(edges, live_ptr, live, mass, exponent, moves_ptr):
    """Return the moves across single positions, those edges that lead between live states."""
    ptr, target, label = edges
    room = np.int64(0)
    for n in range(live_ptr[-2]):
        room += np.int64(ptr[live[n] + 1]) - np.int64(ptr[live[n]])
    place, m, k = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    where = np.full(ptr.size - 1, -1, np.int32)
    count = 0
    for i in range(mass.shape[0]):
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            where[live[n]] = n
        for n in range(live_ptr[i], live_ptr[i + 1]):
            for e in range(ptr[live[n]], ptr[live[n] + 1]):
                if where[target[e]] >= 0 and mass[i, label[e]] > 0.0:
                    place[count], m[count], k[count] = where[target[e]], mass[i, label[e]], exponent[i, label[e]]
                    count += 1
            moves_ptr[n + 1] = count
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            where[live[n]] = -1
    return place[:count], m[:count], k[:count]


@njit(cache=True)
def _products(ptr, place, half, live_ptr):
    """Return how many products the next level takes, and room that is enough for its moves."""
    length = live_ptr.size - 2
    products, room = 0, 0
    for begin in range(0, length, 2 * half):
        right = min(begin + 2 * half, length)
        width = live_ptr[right + 1] - live_ptr[right]
        for n in range(live_ptr[begin], live_ptr[begin + 1]):
            found = 0
            for e in range(ptr[n], ptr[n + 1]):
                found += ptr[place[e] + 1] - ptr[place[e]] if begin + half < length else 1
            products += found
            room += min(found, width)
    return products, room


@njit(cache=True)
def _multiply(ptr, out_ptr, place, m, k, half, live_ptr, count):
    """Write the moves across spans of two halves behind the `count` moves; a half without another is a span."""
    length = live_ptr.size - 2
    widest = np.diff(live_ptr).max()
    x, y = np.zeros(widest), np.full(widest, NEVER, np.int32)
    for begin in range(0, length, 2 * half):
        right = min(begin + 2 * half, length)
        first = live_ptr[right]
        out_ptr[live_ptr[begin]] = count
        for n in range(live_ptr[begin], live_ptr[begin + 1]):
            if begin + half >= length:
                for e in range(ptr[n], ptr[n + 1]):
                    place[count], m[count], k[count] = place[e], m[e], k[e]
                    count += 1
            else:
                low, high = _row(ptr, place, m, k, n, first, x, y, widest)
                for c in range(low, high + 1):
                    if x[c] > 0.0:
                        place[count], m[count], k[count] = first + c, x[c], y[c]
                        x[c] = 0.0
                        count += 1
            out_ptr[n + 1] = count
    return count


@njit(cache=True)
def _row(ptr, place, m, k, n, first, x, y, widest):
    """Sum the products of the moves of one state into `(x, y)`; return the first and last place that is not 0."""
    low, high = widest, -1
    for e in range(ptr[n], ptr[n + 1]):
        begin, stop = ptr[place[e]], ptr[place[e] + 1]
        low, high = min(low, place[begin] - first), max(high, place[stop - 1] - first)
        for d in range(begin, stop):
            c = place[d] - first
            v, w = times(m[e], k[e], m[d], k[d])
            if x[c] == 0.0:
                x[c], y[c] = v, w
            else:
                x[c], y[c] = add(x[c], y[c], v, w)
    return low, high


@njit(cache=True)
def draw(live_ptr, live, ptr, place, m, k, noise, forced, top):
    """Draw the end, then every midpoint given the ends of its span; return the arrays of `Midpoints`."""
    length = live_ptr.size - 2
    path, chosen = np.full(length + 1, -1, np.int32), np.zeros(length + 1, np.int64)
    log_probability, entropy = np.full(length + 1, np.nan, np.float32), np.full(length + 1, np.nan, np.float32)
    ids, probability = np.full((length + 1, top), -1, np.int32), np.zeros((length + 1, top), np.float32)
    path[0] = live[0]
    ends = slice(ptr[-1, 0], ptr[-1, 1])
    path[length], log_probability[length], entropy[length] = conditional(
        live[place[ends]], m[ends], k[ends], noise[length], forced[length], ids[length], probability[length]
    )
    chosen[length] = find(live, live_ptr[length], live_ptr[length + 1], path[length])
    widest = np.diff(live_ptr).max()
    states, x, y = np.empty(widest, np.int32), np.empty(widest), np.empty(widest, np.int32)
    for level in range(ptr.shape[0] - 2, -1, -1):
        half, rows = 1 << level, ptr[level]
        for i in range(half, length, 2 * half):
            if live_ptr[i + 1] - live_ptr[i] == 1:
                chosen[i] = live_ptr[i]
                path[i] = ids[i, 0] = live[live_ptr[i]]
                log_probability[i], entropy[i], probability[i, 0] = 0.0, 0.0, 1.0
                continue
            left, right = chosen[i - half], chosen[min(i + half, length)]
            count = _meet(rows, place, m, k, left, right, live, states, x, y)
            path[i], log_probability[i], entropy[i] = conditional(
                states[:count], x[:count], y[:count], noise[i], forced[i], ids[i], probability[i]
            )
            chosen[i] = find(live, live_ptr[i], live_ptr[i + 1], path[i])
    return path, log_probability, entropy, ids, probability


@njit(cache=True)
def _meet(ptr, place, m, k, left, right, live, states, x, y):
    """Multiply the moves from one state by those that lead on to another; return at how many states they meet."""
    count = 0
    for e in range(ptr[left], ptr[left + 1]):
        d = find(place, ptr[place[e]], ptr[place[e] + 1], right)
        if d >= 0:
            states[count] = live[place[e]]
            x[count], y[count] = times(m[e], k[e], m[d], k[d])
            count += 1
    return count
