"""Compiled loops of the midpoint tree: messages inside a span from the states at its two ends."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine.inference.kernels import choose, insert
from engine.inference.wide import BASE_LOG, NEVER, add, normal, ratio, times

_LEAST = 2.0**-350
"""A plain message may not span more than from 1 to this, so that products of two with weights stay in range."""
_LIFT = 2.0**100
"""A plain message whose largest entry is below one over this is multiplied by it; only proportions matter here."""


@njit(cache=True)
def draw_midpoints(edges, edges_into, live_ptr, live, f, fk, mass, exponent, noise, forced, top):
    """Draw the end, then every midpoint given the ends of its span, level by level.

    The conditional of the midpoint `m` of `[l, r]` is a forward message from the state at `l` times a backward message
    from the state at `r`, both over the live states that they reach. From the start it is the message that is known.

    Args:
        edges: `(ptr, target, label)`, the edges out of each state.
        edges_into: `(ptr, source, label)`, the same edges by target.
        live_ptr, live, f, fk, mass, exponent: live states, forward messages and label masses.
        noise: float64 `[boundaries]`, one uniform number for each boundary.
        forced: int32 `[boundaries]`, states to take in place of a draw; -1 where one is to be drawn.
        top: how many states of each conditional distribution are recorded.

    Returns:
        `(path, log_probability, entropy, ids, probability)` as in `StepRecord`.
    """
    length, states = mass.shape[0], edges[0].size - 1
    path = np.full(length + 1, -1, np.int32)
    log_probability, entropy = np.full(length + 1, np.nan, np.float32), np.full(length + 1, np.nan, np.float32)
    ids, probability = np.full((length + 1, top), -1, np.int32), np.zeros((length + 1, top), np.float32)
    alive = np.zeros((length + 1, states), np.bool_)
    for i in range(length + 1):
        for n in range(live_ptr[i], live_ptr[i + 1]):
            alive[i, live[n]] = True
    path[0] = live[0]
    begin, stop = live_ptr[length], live_ptr[length + 1]
    path[length], log_probability[length], entropy[length] = conditional(
        live[begin:stop], f[begin:stop], fk[begin:stop], noise[length], forced[length], ids[length], probability[length]
    )
    ahead, behind = _message(states), _message(states)
    uneven = _uneven(mass, exponent)
    m, k, meeting = np.zeros(states), np.zeros(states, np.int32), np.zeros(states, np.int32)
    half = 1
    while 2 * half < length:
        half *= 2
    while half >= 1:
        for middle in range(half, length, 2 * half):
            if live_ptr[middle + 1] - live_ptr[middle] == 1:
                path[middle] = ids[middle, 0] = live[live_ptr[middle]]
                log_probability[middle], entropy[middle], probability[middle, 0] = 0.0, 0.0, 1.0
                continue
            left, right = middle - half, min(middle + half, length)
            even = uneven[left] == uneven[right]
            if left == 0:
                a = _known(live, f, fk, live_ptr[middle], live_ptr[middle + 1], ahead)
            else:
                a = _spread(edges, path[left], left, middle, alive, mass, exponent, even, ahead)
            b = _spread(edges_into, path[right], right, middle, alive, mass, exponent, even, behind)
            count = _meet(a, b, ahead, behind, m, k, meeting)
            path[middle], log_probability[middle], entropy[middle] = conditional(
                meeting[:count], m[:count], k[:count], noise[middle], forced[middle], ids[middle], probability[middle]
            )
        half //= 2
    return path, log_probability, entropy, ids, probability


@njit(cache=True)
def _message(states):
    """Room for a message: numbers of all states, all 0, and the states where it isn't 0; twice, now and then."""
    return np.zeros((2, states)), np.full((2, states), NEVER, np.int32), np.empty((2, states), np.int32)


@njit(cache=True)
def _uneven(mass, exponent):
    """Count the positions before each boundary that have a label of another exponent than 0."""
    uneven = np.zeros(mass.shape[0] + 1, np.int32)
    for i in range(mass.shape[0]):
        other = np.int32(0)
        for c in range(mass.shape[1]):
            other |= np.int32((mass[i, c] > 0.0) & (exponent[i, c] != 0))
        uneven[i + 1] = uneven[i] + other
    return uneven


@njit(cache=True)
def _known(live, f, fk, begin, stop, message):
    """Take the forward message of a boundary for the one from the start, which it is; return as `_spread` does."""
    m, k, front = message
    for n in range(begin, stop):
        m[0, live[n]], k[0, live[n]], front[0, n - begin] = f[n], fk[n], live[n]
    return 0, stop - begin


@njit(cache=True)
def _spread(edges, state, start, stop, alive, mass, exponent, even, message):
    """Send a message from one state at boundary `start` to boundary `stop`, forwards or backwards.

    Args:
        even: whether all labels in between have the exponent 0; then plain float64 is tried first.

    Returns:
        `(row, size)`: the message is row `row` of its numbers, at the first `size` states of that row of its list.
    """
    if even:
        row, size = _spread_plain(edges, state, start, stop, alive, mass, message)
        if size > 0:
            return row, size
    return _spread_wide(edges, state, start, stop, alive, mass, exponent, message)


@njit(cache=True)
def _spread_plain(edges, state, start, stop, alive, mass, message):
    """Return `(row, size)` as `_spread` does; the size is 0 where float64 can't hold the message."""
    ptr, other, label = edges
    m, k, front = message
    now, size = 0, 1
    front[0, 0] = state
    m[0, state] = 1.0
    step = 1 if stop > start else -1
    lift = 1.0
    for boundary in range(start, stop, step):
        weight = mass[boundary if step > 0 else boundary - 1]
        allowed = alive[boundary + step]
        then, grown = 1 - now, 0
        for n in range(size):
            q = front[now, n]
            x = m[now, q] * lift
            m[now, q] = 0.0
            for e in range(ptr[q], ptr[q + 1]):
                r = other[e]
                v = x * weight[label[e]]
                if v > 0.0 and allowed[r]:
                    if m[then, r] == 0.0:
                        front[then, grown] = r
                        grown += 1
                    m[then, r] += v
        now, size = then, grown
        least, most = np.inf, 0.0
        for n in range(size):
            least, most = min(least, m[now, front[now, n]]), max(most, m[now, front[now, n]])
        lift = _LIFT if most < 1.0 / _LIFT else 1.0
        if least < _LEAST:
            for n in range(size):
                m[now, front[now, n]] = 0.0
            return now, 0
    for n in range(size):
        q = front[now, n]
        m[now, q], k[now, q] = normal(m[now, q], 0)
    return now, size


@njit(cache=True)
def _spread_wide(edges, state, start, stop, alive, mass, exponent, message):
    ptr, other, label = edges
    m, k, front = message
    now, size = 0, 1
    front[0, 0] = state
    m[0, state], k[0, state] = 1.0, 0
    step = 1 if stop > start else -1
    for boundary in range(start, stop, step):
        position = boundary if step > 0 else boundary - 1
        then, grown = 1 - now, 0
        for n in range(size):
            q = front[now, n]
            x, y = m[now, q], k[now, q]
            m[now, q] = 0.0
            for e in range(ptr[q], ptr[q + 1]):
                r = other[e]
                if alive[boundary + step, r] and mass[position, label[e]] > 0.0:
                    v, w = times(x, y, mass[position, label[e]], exponent[position, label[e]])
                    if m[then, r] == 0.0:
                        front[then, grown] = r
                        grown += 1
                        m[then, r], k[then, r] = v, w
                    else:
                        m[then, r], k[then, r] = add(m[then, r], k[then, r], v, w)
        now, size = then, grown
    return now, size


@njit(cache=True)
def _meet(a, b, ahead, behind, m, k, meeting):
    """Multiply two messages at the states that both reach, ascending, and clear them; return how many there are."""
    row, size = a
    other, others = b
    states = ahead[2][row, :size]
    # Ascending, so that the noise meets the states in the order in which the dense tree has them.
    states.sort()
    count = 0
    for q in states:
        if behind[0][other, q] > 0.0:
            m[count], k[count] = times(ahead[0][row, q], ahead[1][row, q], behind[0][other, q], behind[1][other, q])
            meeting[count] = q
            count += 1
        ahead[0][row, q] = 0.0
    for n in range(others):
        behind[0][other, behind[2][other, n]] = 0.0
    return count


@njit(cache=True)
def conditional(states, m, k, u, forced, ids, probability):
    """Draw (or take the forced) state of a distribution given by numbers; note its most probable states."""
    x, y = 0.0, NEVER
    for n in range(states.size):
        x, y = add(x, y, m[n], k[n])
    entropy, listed, chosen = 0.0, 0, 0
    for n in range(states.size):
        p = ratio(m[n], k[n], x, y)
        if p > 0.0:
            entropy -= p * math.log(p)
            listed = insert(ids, probability, listed, states[n], np.float32(p))
        if states[n] == forced:
            chosen = n
    if forced < 0:
        chosen = choose(m, k, states.size, u)
    x, y = times(m[chosen], k[chosen], 1.0 / x, -y)
    return states[chosen], math.log(x) + y * BASE_LOG, entropy
