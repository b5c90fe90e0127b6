"""Compiled loops over edges and live states: reachability, messages, marginals and draws of states.

Messages are numbers that never underflow (`wide.py`). A loop over edges first looks how far the numbers of its two
sides lie apart: where no product of theirs can leave the range of float64, as at nearly all boundaries, it runs in
plain float64, and otherwise in pairs of mantissa and exponent.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine.inference.vector_math import exp, log
from engine.inference.wide import BASE_LOG, DOWN, NEVER, UP, add, normal, ratio, times

_SCALES = np.asarray([UP, 1.0, DOWN, DOWN**2, DOWN**3])
"""By how much a number is scaled whose exponent is `d` below the largest of its side: its entry `d`."""
_SAFE = 4
"""Products of two sides whose exponents span at most this together lie between 2^-768 and 2^768."""


@njit(cache=True)
def label_masses(m, k, label_ptr, label_class):
    """Sum class masses `[length classes]` over the classes of each label: `[length labels]`."""
    length, classes = m.shape
    labels = label_ptr.size - 1
    out = np.zeros((length, labels))
    exponent = np.full((length, labels), NEVER, np.int32)
    for i in range(length):
        plain = True
        for c in range(classes):
            plain &= k[i, c] == 0 or m[i, c] == 0.0
        for b in range(labels):
            x, y = 0.0, NEVER
            if plain:
                for p in range(label_ptr[b], label_ptr[b + 1]):
                    x += m[i, label_class[p]]
                y = 0 if x > 0.0 else NEVER
            else:
                for p in range(label_ptr[b], label_ptr[b + 1]):
                    c = label_class[p]
                    if m[i, c] > 0.0:
                        x, y = add(x, y, m[i, c], k[i, c])
            out[i, b] = x
            exponent[i, b] = y
    return out, exponent


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
def live_states(ptr, target, label, start, accepting, possible):
    """Find by Boolean reachability the states that some accepted completion passes at each boundary.

    Args:
        possible: bool `[length labels]`, whether a label has any mass at a position.

    Returns:
        `(live_ptr, live)`: the states at boundary `i` are `live[live_ptr[i]:live_ptr[i + 1]]`, ascending; there
        are none at any boundary when nothing is accepted.
    """
    length, states = possible.shape[0], ptr.size - 1
    reached_ptr, reached = _reached(ptr, target, label, start, possible)
    live_ptr = np.zeros(length + 2, np.int64)
    live = np.empty(reached.size, np.int32)  # filled from its end
    begin = reached.size
    alive, behind = np.zeros(states, np.bool_), np.zeros(states, np.bool_)
    for i in range(length, -1, -1):
        stop = begin
        for n in range(reached_ptr[i], reached_ptr[i + 1]):
            q = reached[n]
            here = i == length and accepting[q]
            if i < length:
                for e in range(ptr[q], ptr[q + 1]):
                    if behind[target[e]] and possible[i, label[e]]:
                        here = True
                        break
            alive[q] = here
            begin -= here
        live_ptr[i + 1] = stop - begin
        if 32 * (stop - begin) > states:
            n = begin
            for q in range(states):
                if alive[q]:
                    live[n] = q
                    n += 1
        else:
            n = begin
            for r in range(reached_ptr[i], reached_ptr[i + 1]):
                if alive[reached[r]]:
                    live[n] = reached[r]
                    n += 1
            live[begin:stop].sort()
        if i < length:
            for n in range(stop, stop + live_ptr[i + 2]):
                behind[live[n]] = False
        alive, behind = behind, alive
    for i in range(length + 1):
        live_ptr[i + 1] += live_ptr[i]
    return live_ptr, live[begin:].copy()


@njit(cache=True)
def _reached(ptr, target, label, start, possible):
    """Return the states that possible labels lead to from the start, boundary by boundary: `(ptr, states)`."""
    length, states = possible.shape[0], ptr.size - 1
    reached_ptr = np.zeros(length + 2, np.int64)
    reached = np.empty(states + 16 * length, np.int32)
    seen = np.full(states, -1, np.int32)
    reached[0] = start
    count = 1
    reached_ptr[1] = 1
    for i in range(length):
        if reached.size < count + states:
            grown = np.empty(2 * reached.size + states, np.int32)
            grown[:count] = reached[:count]
            reached = grown
        for n in range(reached_ptr[i], reached_ptr[i + 1]):
            q = reached[n]
            for e in range(ptr[q], ptr[q + 1]):
                r = target[e]
                if seen[r] != i and possible[i, label[e]]:
                    seen[r] = i
                    reached[count] = r
                    count += 1
        reached_ptr[i + 2] = count
    return reached_ptr, reached[:count]


@njit(cache=True)
def backward(edges, live_ptr, live, mass, exponent):
    """Backward messages, aligned with `live`: the mass of all accepted completions from each state.

    Args:
        edges: `(ptr, target, label)`.
        live_ptr, live: from `live_states`.
        mass, exponent: of the labels, numbers `[length labels]`.
    """
    length = mass.shape[0]
    m, k = np.zeros(live.size), np.full(live.size, NEVER, np.int32)
    for n in range(live_ptr[length], live_ptr[length + 1]):
        m[n], k[n] = 1.0, 0
    room = _room(edges[0].size - 1, mass.shape[1])
    for i in range(length - 1, -1, -1):
        to, over = (live_ptr[i], live_ptr[i + 1]), (live_ptr[i + 1], live_ptr[i + 2])
        _carry(edges, live, over, to, mass[i], exponent[i], room, m, k)
    return m, k


@njit(cache=True)
def forward(edges_into, live_ptr, live, mass, exponent):
    """Forward messages of the live states: the mass of all ways from the start to each; numbers aligned with `live`.

    Args:
        edges_into: `(ptr, source, label)`, the edges by target; the rest as in `backward`.
    """
    m, k = np.zeros(live.size), np.full(live.size, NEVER, np.int32)
    if live.size:
        m[0], k[0] = 1.0, 0
    room = _room(edges_into[0].size - 1, mass.shape[1])
    for i in range(mass.shape[0]):
        over, to = (live_ptr[i], live_ptr[i + 1]), (live_ptr[i + 1], live_ptr[i + 2])
        _carry(edges_into, live, over, to, mass[i], exponent[i], room, m, k)
    return m, k


@njit(cache=True)
def _room(states, labels):
    """Scratch arrays of `_carry`: a number for each state, all 0, and a weight for each label."""
    return np.zeros(states), np.full(states, NEVER, np.int32), np.empty(labels)


@njit(cache=True)
def _carry(edges, live, over, to, mass, exponent, room, m, k):
    """Carry a message over one position: fill `m, k` of the states `live[to]` from those of `live[over]`.

    A state that nothing comes to stays 0, as where a caller passes fewer states than are live.
    """
    ptr, other, label = edges
    dense, dense_k, weight = room
    most, span = _span(m[over[0] : over[1]], k[over[0] : over[1]])
    most_mass, span_mass = _span(mass, exponent)
    if span + span_mass <= _SAFE:
        for n in range(over[0], over[1]):
            dense[live[n]] = m[n] * _SCALES[most - k[n]] if m[n] > 0.0 else 0.0
        for c in range(weight.size):
            weight[c] = mass[c] * _SCALES[most_mass - exponent[c]] if mass[c] > 0.0 else 0.0
        for n in range(to[0], to[1]):
            q = live[n]
            x = 0.0
            for e in range(ptr[q], ptr[q + 1]):
                x += weight[label[e]] * dense[other[e]]
            if x > 0.0:
                m[n], k[n] = normal(x, most + most_mass - 2)
    else:
        for n in range(over[0], over[1]):
            dense[live[n]], dense_k[live[n]] = m[n], k[n]
        for n in range(to[0], to[1]):
            x, y = 0.0, NEVER
            for e in range(ptr[live[n]], ptr[live[n] + 1]):
                c, r = label[e], other[e]
                if dense[r] > 0.0 and mass[c] > 0.0:
                    v, w = times(mass[c], exponent[c], dense[r], dense_k[r])
                    x, y = add(x, y, v, w)
            m[n], k[n] = x, y
    for n in range(over[0], over[1]):
        dense[live[n]] = 0.0


@njit(cache=True)
def _span(m, k):
    """Return the largest exponent of the numbers that aren't 0, and how far the smallest is below it."""
    most, least = NEVER, -NEVER
    for n in range(k.size):
        most = max(most, k[n])
        least = min(least, k[n] if m[n] > 0.0 else -NEVER)
    return most, max(most - least, 0)


@njit(cache=True)
def lifts(edges, labels, live_ptr, live, f, fk, b, bk, mass, log_mass, mean_log, log_partition):
    """Return the lift of each class that has mass, and what follows from it.

    `lift_i(c) = Σ f_i(q) b_{i+1}(move(q, c)) / Z`, first summed per label and then spread to the label's classes.

    Args:
        edges: `(ptr, target, label)`.
        labels: `(label_ptr, label_class)`.
        mass: of the labels, `[length labels]`.
        log_mass: of the classes, `[length classes]`.
        mean_log: mean of `log p` over each class, `[length classes]`.
        log_partition: finite.

    Returns:
        `(log_lift, entropy, kl, forbidden)` as in `Marginals`.
    """
    length, classes = log_mass.shape
    log_lift = np.full((length, classes), -np.inf)
    entropy, kl, forbidden = np.zeros(length), np.zeros(length), np.zeros(length)
    states = edges[0].size - 1
    dense, dense_k = np.zeros(states), np.full(states, NEVER, np.int32)
    flow, flow_k = np.zeros(mass.shape[1]), np.full(mass.shape[1], NEVER, np.int32)
    lift, lift_k = np.zeros(classes), np.full(classes, NEVER, np.int32)
    for i in range(length):
        here, there = (live_ptr[i], live_ptr[i + 1]), (live_ptr[i + 1], live_ptr[i + 2])
        most_f, span_f = _span(f[here[0] : here[1]], fk[here[0] : here[1]])
        most_b, span_b = _span(b[there[0] : there[1]], bk[there[0] : there[1]])
        if span_f + span_b <= _SAFE:
            for n in range(there[0], there[1]):
                dense[live[n]] = b[n] * _SCALES[most_b - bk[n]]
            _plain_lifts(edges, labels, live, here, f, fk, most_f, dense, flow, lift)
            _log_lifts(lift, (most_f + most_b - 2) * BASE_LOG - log_partition, log_mass[i], log_lift[i])
        else:
            for n in range(there[0], there[1]):
                dense[live[n]], dense_k[live[n]] = b[n], bk[n]
            _wide_lifts(edges, labels, live, here, f, fk, dense, dense_k, flow, flow_k, lift, lift_k)
            for c in range(classes):
                if lift[c] > 0.0 and log_mass[i, c] > -np.inf:
                    log_lift[i, c] = math.log(lift[c]) + lift_k[c] * BASE_LOG - log_partition
        for n in range(there[0], there[1]):
            dense[live[n]] = 0.0
        entropy[i], kl[i], forbidden[i] = _position(log_mass[i], mean_log[i], log_lift[i])
    return log_lift, entropy, kl, forbidden


@njit(cache=True)
def _plain_lifts(edges, labels, live, here, f, fk, most, dense, flow, lift):
    ptr, target, label = edges
    label_ptr, label_class = labels
    flow[:] = 0.0
    lift[:] = 0.0
    for n in range(here[0], here[1]):
        x = f[n] * _SCALES[most - fk[n]]
        for e in range(ptr[live[n]], ptr[live[n] + 1]):
            flow[label[e]] += x * dense[target[e]]
    for c in range(flow.size):
        if flow[c] > 0.0:
            for p in range(label_ptr[c], label_ptr[c + 1]):
                lift[label_class[p]] += flow[c]


@njit(cache=True)
def _wide_lifts(edges, labels, live, here, f, fk, dense, dense_k, flow, flow_k, lift, lift_k):
    ptr, target, label = edges
    label_ptr, label_class = labels
    flow[:] = 0.0
    flow_k[:] = NEVER
    lift[:] = 0.0
    lift_k[:] = NEVER
    for n in range(here[0], here[1]):
        for e in range(ptr[live[n]], ptr[live[n] + 1]):
            c, r = label[e], target[e]
            if dense[r] > 0.0:
                v, w = times(f[n], fk[n], dense[r], dense_k[r])
                flow[c], flow_k[c] = add(flow[c], flow_k[c], v, w)
    for c in range(flow.size):
        if flow[c] > 0.0:
            for p in range(label_ptr[c], label_ptr[c + 1]):
                a = label_class[p]
                lift[a], lift_k[a] = add(lift[a], lift_k[a], flow[c], flow_k[c])


@njit(cache=True, fastmath={"contract", "nsz"})
def _log_lifts(lift, shift, log_mass, out):
    for c in range(lift.size):
        x = log(max(lift[c], DOWN**4)) + shift
        out[c] = x if lift[c] > 0.0 and log_mass[c] > -np.inf else -np.inf


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _position(log_mass, mean_log, log_lift):
    """Return the entropy of a position's posterior, its divergence from the mean field, and the forbidden mass."""
    entropy, kl, forbidden = 0.0, 0.0, 0.0
    for c in range(log_lift.size):
        allowed = log_lift[c] > -np.inf
        vote = log_lift[c] if allowed else 0.0
        log_q = log_mass[c] + vote
        q = exp(min(max(log_q, -700.0), 80.0))
        q = q if log_q > -700.0 else 0.0
        forbidden += 0.0 if allowed else q
        kl += q * vote
        entropy -= q * (mean_log[c] + vote) if allowed else 0.0
    return entropy, kl, forbidden


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
                x = np.float32(f[n] * b[n] / b[0] * _SCALES[1 - d])
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
    slot = np.full(ptr.size - 1, -1, np.int64)
    widest = 1
    for q in range(ptr.size - 1):
        widest = max(widest, ptr[q + 1] - ptr[q])
    m = np.zeros(widest)
    k = np.zeros(widest, np.int32)
    path[0] = live[0]
    for i in range(length):
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = n
        q = path[i]
        for e in range(ptr[q], ptr[q + 1]):
            s = slot[target[e]]
            m[e - ptr[q]] = 0.0
            if s >= 0 and mass[i, label[e]] > 0.0:
                x, y = times(mass[i, label[e]], exponent[i, label[e]], b[s], bk[s])
                m[e - ptr[q]], k[e - ptr[q]] = x, y
        path[i + 1] = target[ptr[q] + choose(m, k, ptr[q + 1] - ptr[q], noise[i])]
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
    return path


@njit(cache=True)
def draw_classes(ptr, target, label, label_ptr, label_class, path, m, k, noise):
    """Draw the class of each position given the states at its two ends.

    Returns:
        `(classes, rest)`: int32 `[length]`, and float64 `[length]`: what is left of the noise, uniform given the class,
        with which the token is drawn.
    """
    length = path.size - 1
    classes = np.empty(length, np.int32)
    rest = np.empty(length)
    for i in range(length):
        label_id = -1
        for e in range(ptr[path[i]], ptr[path[i] + 1]):
            if target[e] == path[i + 1]:
                label_id = label[e]
        begin, stop = label_ptr[label_id], label_ptr[label_id + 1]
        x, y = 0.0, NEVER
        for p in range(begin, stop):
            c = label_class[p]
            if m[i, c] > 0.0:
                x, y = add(x, y, m[i, c], k[i, c])
        u = noise[i]
        for p in range(begin, stop):
            c = label_class[p]
            share = ratio(m[i, c], k[i, c], x, y)
            if m[i, c] > 0.0:
                classes[i] = c
                rest[i] = min(u / share, 1.0) if share > 0.0 else 0.0
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
