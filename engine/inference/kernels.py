"""Compiled choices of states, classes and positions: the most probable ones, draws, and the best path (Viterbi)."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine.inference.wide import DOWN, NEVER, UP, add, ratio, times


@njit(cache=True)
def label_best(score, label_ptr, label_class):
    """Return the largest score of each label's classes: `[length labels]`."""
    length = score.shape[0]
    labels = label_ptr.size - 1
    out = np.full((length, labels), -np.inf)
    for i in range(length):
        for b in range(labels):
            for p in range(label_ptr[b], label_ptr[b + 1]):
                out[i, b] = max(out[i, b], score[i, label_class[p]])
    return out


@njit(cache=True)
def state_posterior(live_ptr, live, f, fk, b, bk, states, top):
    """Return the `top` most probable states of each boundary, their probabilities, and the live states as bits.

    A state whose probability vanishes in float32 is not listed; its bit is set.
    """
    boundaries = live_ptr.size - 1
    ids = np.full((boundaries, top), -1, np.int32)
    probability = np.zeros((boundaries, top), np.float32)
    bits = np.zeros((boundaries, (states + 7) // 8), np.uint8)
    for i in range(boundaries):
        count = 0
        for n in range(live_ptr[i], live_ptr[i + 1]):
            bits[i, live[n] >> 3] |= 128 >> (live[n] & 7)
            d = fk[n] + bk[n] - bk[0]
            if -2 < d < 2:
                x = np.float32(f[n] * b[n] / b[0] * (UP if d > 0 else DOWN if d < 0 else 1.0))
                if x > 0.0:
                    count = insert(ids[i], probability[i], count, live[n], x)
    return ids, probability, bits


@njit(cache=True, inline="always")
def insert(ids, values, count, state, x):
    """Put a state where it belongs among the `count` listed with descending values, behind its equals; count again."""
    if count == ids.size and values[count - 1] >= x:
        return count
    r = min(count, ids.size - 1)
    while r > 0 and values[r - 1] < x:
        ids[r], values[r] = ids[r - 1], values[r - 1]
        r -= 1
    ids[r], values[r] = state, x
    return min(count + 1, ids.size)


@njit(cache=True, inline="always")
def choose(m, k, count, u):
    """Return the index that a uniform `u` picks among `count` numbers, in proportion to them."""
    x, y = 0.0, NEVER
    for n in range(count):
        if m[n] > 0.0:
            x, y = add(x, y, m[n], k[n])
    rest = u
    last = -1
    for n in range(count):
        p = ratio(m[n], k[n], x, y)
        if m[n] > 0.0:
            last = n
            if rest < p:
                return n
        rest -= p
    return last


@njit(cache=True)
def draw_path(ptr, target, label, live_ptr, live, b, bk, mass, exponent, noise):
    """Draw states from left to right: each edge in proportion to its weight times the backward message behind it."""
    length = mass.shape[0]
    path = np.empty(length + 1, np.int32)
    widest = np.diff(ptr.astype(np.int64)).max()
    m = np.zeros(widest)
    k = np.zeros(widest, np.int32)
    path[0] = live[0]
    for i in range(length):
        begin = np.int64(ptr[path[i]])
        count = np.int64(ptr[path[i] + 1]) - begin
        for n in range(count):
            r, c = target[begin + n], label[begin + n]
            s = find(live, live_ptr[i + 1], live_ptr[i + 2], r)
            m[n] = 0.0
            if s >= 0 and mass[i, c] > 0.0:
                m[n], k[n] = times(mass[i, c], exponent[i, c], b[s], bk[s])
        path[i + 1] = target[begin + choose(m, k, count, noise[i])]
    return path


@njit(cache=True)
def find(live, begin, stop, state):
    """Return where a state is in `live[begin:stop]`, which ascends; -1 where it isn't."""
    end = stop
    while begin < stop:
        middle = (begin + stop) // 2
        if live[middle] < state:
            begin = middle + 1
        else:
            stop = middle
    return begin if begin < end and live[begin] == state else -1


@njit(cache=True)
def draw_classes(ptr, target, label, label_ptr, label_class, path, masked, m, k, noise):
    """Draw the class of each masked position given the states at its two ends.

    Returns:
        `(classes, rest)`: int32 `[rows]`, and float64 `[rows]`: what is left of the noise, uniform given the class,
        with which the token is drawn.
    """
    classes, rest = np.empty(masked.size, np.int32), np.empty(masked.size)
    for row in range(masked.size):
        i = masked[row]
        label_id = -1
        for e in range(ptr[path[i]], ptr[path[i] + 1]):
            if target[e] == path[i + 1]:
                label_id = label[e]
        begin, stop = label_ptr[label_id], label_ptr[label_id + 1]
        x, y = 0.0, NEVER
        for p in range(begin, stop):
            c = label_class[p]
            if m[row, c] > 0.0:
                x, y = add(x, y, m[row, c], k[row, c])
        u = noise[i]
        for p in range(begin, stop):
            c = label_class[p]
            share = ratio(m[row, c], k[row, c], x, y)
            if m[row, c] > 0.0:
                classes[row] = c
                rest[row] = min(u / share, 1.0) if share > 0.0 else 0.0
                if u < share:
                    break
            u -= share
    return classes, rest


@njit(cache=True)
def best_path(ptr, target, label, live_ptr, live, score):
    """Return the path with the largest sum of `score[i, label]` by max-plus messages; the first edge among equals."""
    length = score.shape[0]
    value = np.full(live.size, -np.inf)
    choice = np.full(live.size, -1, np.int32)
    slot = np.full(ptr.size - 1, -1, np.int64)
    for n in range(live_ptr[length], live_ptr[length + 1]):
        value[n] = 0.0
        slot[live[n]] = n
    for i in range(length - 1, -1, -1):
        for n in range(live_ptr[i], live_ptr[i + 1]):
            q = live[n]
            for e in range(ptr[q], ptr[q + 1]):
                s = slot[target[e]]
                if s >= 0 and score[i, label[e]] > -np.inf:
                    x = score[i, label[e]] + value[s]
                    if choice[n] < 0 or x > value[n]:
                        value[n] = x
                        choice[n] = target[e]
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
        for n in range(live_ptr[i], live_ptr[i + 1]):
            slot[live[n]] = n
    path = np.empty(length + 1, np.int32)
    path[0] = live[0]
    for i in range(length):
        for n in range(live_ptr[i], live_ptr[i + 1]):
            if live[n] == path[i]:
                path[i + 1] = choice[n]
    return path


@njit(cache=True)
def largest(values, count):
    """Mark the `count` largest values, none that is `-inf`, the leftmost among those that are equal but for rounding.

    Values are equal that agree in ten digits, or are nearer to 0 than rounding errors are.
    """
    rounded, chosen = np.empty(values.size), np.zeros(values.size, np.bool_)
    for n in range(values.size):
        fraction, exponent = math.frexp(0.0 if abs(values[n]) < 1e-12 else values[n])
        rounded[n] = -math.ldexp(np.rint(fraction * 1e10) / 1e10, exponent)
    order = np.argsort(rounded, kind="mergesort")
    for n in order[:count]:
        chosen[n] = values[n] > -np.inf
    return chosen
