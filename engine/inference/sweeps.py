"""Sweeps over the boundaries of a canvas: what can be reached, backward and forward messages, marginals of classes.

Messages are numbers that never underflow (`wide.py`). Between two boundaries a sweep first looks how far the numbers
lie apart: where no product of theirs can leave the range of float64, as nearly everywhere, it runs in plain float64,
and otherwise in pairs of mantissa and exponent.

Edges come as `(ptr, state, label)`, unsigned, and so are the bounds of loops over states: an index that may be negative
costs more. Arrays that grow with `length · states` are made by numpy, which asks the system for huge pages; compiled
code would not.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine.inference.vector_math import exp, log
from engine.inference.wide import BASE_LOG, BIG, DOWN, NEVER, SMALL, add, normal, times

_ONE = np.uint32(1)
_SAFE = 4
"""Products of two sides whose exponents span at most this together stay in range, each side scaled by `_scale`."""
_POWERS = 2.0 ** (-128.0 * np.arange(-_SAFE - 1, _SAFE + 2))


def completions(edges, edges_into, start, accepting, mass, exponent):
    """Find the states that some accepted completion passes at each boundary, and the mass of all completions from each.

    Args:
        edges: `(ptr, target, label)`.
        edges_into: `(ptr, source, label)`, the same edges by target.
        start: the start state.
        accepting: bool `[states]`.
        mass, exponent: of the labels, numbers `[length labels]`.

    Returns:
        `(live_ptr, live, m, k)` as of `backward`.
    """
    states_ptr, states = reached(edges, edges_into, start, mass)
    return backward(edges, accepting, states_ptr, states, mass, exponent)


def live_states(edges, edges_into, start, accepting, possible):
    """Return `(live_ptr, live)` of `completions` where labels are possible or not, bool `[length labels]`."""
    exponent = np.where(possible, np.int32(0), np.int32(NEVER))
    return completions(edges, edges_into, start, accepting, possible.astype(np.float64), exponent)[:2]


def reached(edges, edges_into, start, mass):
    """Find the states that labels with any mass lead to from the start.

    Returns:
        `(ptr, states)`: those at boundary `i` are `states[ptr[i]:ptr[i + 1]]`, ascending.
    """
    boundaries, states = mass.shape[0] + 1, edges[0].size - 1
    ptr, found = np.zeros(boundaries + 1, np.int64), np.empty(boundaries * states + 1, np.int32)
    return ptr, found[: _reach(edges, edges_into, start, mass, ptr, found)]


@njit(cache=True)
def _reach(edges, edges_into, start, mass, reached_ptr, found):
    """Go along the edges of few states, and from many look back at every state for one edge that leads there.

    The first such edge is soon found where many are reached (Beamer, Asanović, Patterson 2012).
    """
    states = edges[0].size - 1
    here, there = np.zeros(states, np.bool_), np.zeros(states, np.bool_)
    found[0], here[start] = start, True
    reached_ptr[1] = count = 1
    for i in range(mass.shape[0]):
        first, begin = reached_ptr[i], count
        if 4 * (begin - first) > states:
            count = _pull(edges_into, mass[i], here, there, found, count)
        else:
            count = _push(edges, mass[i], found[first:begin], there, found, count)
        for n in range(first, begin):
            here[found[n]] = False
        here, there = there, here
        reached_ptr[i + 2] = count
    return count


@njit(cache=True)
def _push(edges, mass, states, there, found, count):
    """Write the states that edges lead to from some behind the `count` found ones, ascending, and mark them."""
    ptr, target, label = edges
    begin = count
    for n in range(states.size):
        q = np.uint32(states[n])
        for e in range(ptr[q], ptr[q + _ONE]):
            # No branch: whether a state is new can't be foreseen.
            new = (mass[label[e]] > 0.0) & (not there[target[e]])
            there[target[e]] |= new
            found[count] = target[e]
            count += new
    if 16 * (count - begin) > there.size:
        count = begin
        for state in range(there.size):
            found[count] = state
            count += there[state]
    else:
        found[begin:count].sort()
    return count


@njit(cache=True)
def _pull(edges_into, mass, here, there, found, count):
    """Do the same for every state that an edge leads to from one that is marked."""
    ptr, source, label = edges_into
    for state in range(there.size):
        q = np.uint32(state)
        there[q] = False
        for e in range(ptr[q], ptr[q + _ONE]):
            if here[source[e]] & (mass[label[e]] > 0.0):
                there[q] = True
                break
        found[count] = state
        count += there[q]
    return count


def backward(edges, accepting, states_ptr, states, mass, exponent):
    """Run backward messages: the mass of all accepted completions from each state.

    Args:
        edges, accepting, mass, exponent: as of `completions`.
        states_ptr, states: the states of each boundary that are looked at, as `reached` returns them.

    Returns:
        `(live_ptr, live, m, k)`: of those states the ones with a completion, at boundary `i` these are
        `live[live_ptr[i]:live_ptr[i + 1]]`, ascending, and the numbers aligned with `live`. There are none at any
        boundary when nothing is accepted.
    """
    live_ptr, size = np.empty(states_ptr.size, np.int64), states.size
    live, m, k = np.empty(size, np.int32), np.empty(size), np.empty(size, np.int32)
    begin = _backward(edges, accepting, states_ptr, states, mass, exponent, live_ptr, live, m, k)
    return live_ptr, live[begin:], m[begin:], k[begin:]


@njit(cache=True)
def _backward(edges, accepting, states_ptr, states, mass, exponent, live_ptr, live, m, k):
    """Fill the message from its end, since the last boundary comes first; return where it begins.

    Every state sums over its edges; what it leads to is looked up.
    """
    ptr, target, label = edges
    dense, dense_k = np.zeros(ptr.size - 1), np.full(ptr.size - 1, NEVER, np.int32)
    weight = np.empty(mass.shape[1])
    place = live_ptr[-1] = live.size
    for n in range(states_ptr[-1] - 1, states_ptr[-2] - 1, -1):
        if accepting[states[n]]:
            place -= 1
            live[place], m[place], k[place] = states[n], 1.0, 0
    live_ptr[-2] = place
    for i in range(mass.shape[0] - 1, -1, -1):
        begin, stop = np.uint64(live_ptr[i + 1]), np.uint64(live_ptr[i + 2])
        here = states[states_ptr[i] : states_ptr[i + 1]]
        most, span = _span(k, begin, stop)
        plain, level = _weights(mass, exponent, i, most, span, weight)
        if plain:
            _scatter(live, begin, stop, m, k, most, span, dense)
            for n in range(here.size - 1, -1, -1):
                q = np.uint32(here[n])
                x = 0.0
                for e in range(ptr[q], ptr[q + _ONE]):
                    x += weight[label[e]] * dense[target[e]]
                if x > 0.0:
                    place -= 1
                    live[place] = q
                    if SMALL <= x < BIG:
                        m[place], k[place] = x, level
                    else:
                        m[place], k[place] = normal(x, level)
        else:
            for n in range(begin, stop):
                dense[live[n]], dense_k[live[n]] = m[n], k[n]
            place = _carry_back(edges, here, mass[i], exponent[i], dense, dense_k, place, live, m, k)
        for n in range(begin, stop):
            dense[np.uint32(live[n])] = 0.0
        live_ptr[i] = place
    live_ptr -= place
    return place


@njit(cache=True)
def _carry_back(edges, states, mass, exponent, dense, dense_k, place, live, m, k):
    """Do the same for one boundary in numbers of any size; return the first place that was filled."""
    ptr, target, label = edges
    for n in range(states.size - 1, -1, -1):
        q = np.uint32(states[n])
        x, y = 0.0, NEVER
        for e in range(ptr[q], ptr[q + _ONE]):
            c, r = label[e], target[e]
            if dense[r] > 0.0 and mass[c] > 0.0:
                v, w = times(mass[c], exponent[c], dense[r], dense_k[r])
                x, y = add(x, y, v, w)
        if x > 0.0:
            place -= 1
            live[place], m[place], k[place] = q, x, y
    return place


def forward(edges, live_ptr, live, mass, exponent):
    """Run forward messages: the mass of all ways from the start to each live state, numbers aligned with `live`.

    Args:
        edges, live_ptr, live, mass, exponent: as of `backward`.
    """
    m, k = np.empty(live.size), np.empty(live.size, np.int32)
    if live.size:
        _forward(edges, live_ptr, live, mass, exponent, m, k)
    return m, k


@njit(cache=True)
def _forward(edges, live_ptr, live, mass, exponent, m, k):
    """Fill the message from its beginning."""
    states = edges[0].size - 1
    dense, dense_k, weight = np.zeros(states), np.full(states, NEVER, np.int32), np.empty(mass.shape[1])
    m[0], k[0] = 1.0, 0
    for i in range(mass.shape[0]):
        begin, stop, end = np.uint64(live_ptr[i]), np.uint64(live_ptr[i + 1]), np.uint64(live_ptr[i + 2])
        most, span = _span(k, begin, stop)
        plain, level = _weights(mass, exponent, i, most, span, weight)
        if plain:
            _send(edges, live, begin, stop, m, k, most, span, weight, dense)
        else:
            _carry_on(edges, live, begin, stop, m, k, mass[i], exponent[i], dense, dense_k)
        _take(live, stop, end, plain, level, dense, dense_k, m, k)
        _clear(edges, live, begin, stop, dense)


@njit(cache=True)
def posterior(edges, labels, live_ptr, live, b, bk, masked, mass, exponent, log_mass, mean_log, log_partition, m, k):
    """Run forward messages, and where they meet the backward ones sum the lift of each class that has mass.

    `lift_i(c) = Σ f_i(q) b_{i+1}(move(q, c)) / Z`, first summed per label and then spread to the label's classes. Both
    go over the same edges, of which a large automaton has more than a cache holds.

    Args:
        edges: `(ptr, target, label)`.
        labels: `(label_ptr, label_class)`.
        live_ptr, live, b, bk: live states and backward messages.
        masked: int64 `[rows]`, the positions whose lifts are computed; a committed token's is 1.
        mass, exponent: of the labels, numbers `[length labels]`.
        log_mass: of the classes, `[rows classes]`.
        mean_log: mean of `log p` over each class, `[rows classes]`.
        log_partition: finite.
        m, k: room for the forward messages, aligned with `live`.

    Returns:
        `(log_lift, entropy, kl, forbidden)` as in `Posterior`.
    """
    states, length, width = edges[0].size - 1, mass.shape[0], mass.shape[1]
    lift, entropy, kl, forbidden = np.zeros(log_mass.shape), np.zeros(length), np.zeros(length), np.zeros(length)
    ahead, ahead_k, weight = np.zeros(states), np.full(states, NEVER, np.int32), np.empty(width)
    behind, behind_k = np.zeros(states), np.full(states, NEVER, np.int32)
    flow, flow_k = np.empty(width), np.empty(width, np.int32)
    row = 0
    m[0], k[0] = 1.0, 0
    for i in range(length):
        begin, stop, end = np.uint64(live_ptr[i]), np.uint64(live_ptr[i + 1]), np.uint64(live_ptr[i + 2])
        most, span = _span(k, begin, stop)
        plain, level = _weights(mass, exponent, i, most, span, weight)
        if row < masked.size and masked[row] == i:
            most_b, span_b = _span(bk, stop, end)
            plain &= span + span_b <= _SAFE + 1
            flow[:] = 0.0
            if plain:
                shift = (most + most_b - 0.5 * (span + span_b)) * BASE_LOG - log_partition
                _scatter(live, stop, end, b, bk, most_b, span_b, behind)
                _send_through(edges, live, begin, stop, m, k, most, span, weight, ahead, behind, flow)
                _spread(labels, flow, lift[row])
            else:
                shift = np.nan
                for n in range(stop, end):
                    behind[live[n]], behind_k[live[n]] = b[n], bk[n]
                _wide_flow(edges, live, begin, stop, m, k, behind, behind_k, flow, flow_k)
                _wide_lift(labels, flow, flow_k, log_partition, lift[row])
                _carry_on(edges, live, begin, stop, m, k, mass[i], exponent[i], ahead, ahead_k)
            for n in range(stop, end):
                behind[np.uint32(live[n])] = 0.0
            entropy[i], kl[i], forbidden[i] = _of_lift(lift[row], shift, log_mass[row], mean_log[row])
            row += 1
        elif plain:
            _send(edges, live, begin, stop, m, k, most, span, weight, ahead)
        else:
            _carry_on(edges, live, begin, stop, m, k, mass[i], exponent[i], ahead, ahead_k)
        _take(live, stop, end, plain, level, ahead, ahead_k, m, k)
        _clear(edges, live, begin, stop, ahead)
    return lift, entropy, kl, forbidden


@njit(cache=True)
def _scatter(live, begin, stop, m, k, most, span, dense):
    """Put the message of a boundary where its states are, in plain float64."""
    for n in range(begin, stop):
        dense[np.uint32(live[n])] = m[n] * _scale(most - k[n], span)


@njit(cache=True)
def _send(edges, live, begin, stop, m, k, most, span, weight, dense):
    """Add what every state of a boundary sends along its edges to what they lead to.

    How many edges lead to a state varies more than how many leave one, which no processor foresees.
    """
    ptr, target, label = edges
    for n in range(begin, stop):
        q = np.uint32(live[n])
        x = m[n] * _scale(most - k[n], span)
        for e in range(ptr[q], ptr[q + _ONE]):
            dense[target[e]] += x * weight[label[e]]


@njit(cache=True)
def _send_through(edges, live, begin, stop, m, k, most, span, weight, dense, behind, flow):
    """Do the same, and sum what meets the message `behind` through each label."""
    ptr, target, label = edges
    for n in range(begin, stop):
        q = np.uint32(live[n])
        x = m[n] * _scale(most - k[n], span)
        for e in range(ptr[q], ptr[q + _ONE]):
            dense[target[e]] += x * weight[label[e]]
            flow[label[e]] += x * behind[target[e]]


@njit(cache=True)
def _take(live, begin, stop, plain, level, dense, dense_k, m, k):
    """Fill in the message of a boundary from what was sent to its states."""
    for n in range(begin, stop):
        q = np.uint32(live[n])
        if not plain:
            m[n], k[n] = dense[q], dense_k[q]
        elif SMALL <= dense[q] < BIG:
            m[n], k[n] = dense[q], level
        else:
            m[n], k[n] = normal(dense[q], level)
    if not plain:
        dense_k[:] = NEVER


@njit(cache=True)
def _clear(edges, live, begin, stop, dense):
    """Set to 0 all that the states of a boundary have sent to."""
    ptr, target, _ = edges
    if 8 * (stop - begin) > dense.size:
        dense[:] = 0.0
    else:
        for n in range(begin, stop):
            q = np.uint32(live[n])
            for e in range(ptr[q], ptr[q + _ONE]):
                dense[target[e]] = 0.0


@njit(cache=True)
def _carry_on(edges, live, begin, stop, m, k, mass, exponent, dense, dense_k):
    """Add what a boundary's states send along their edges in numbers of any size."""
    ptr, target, label = edges
    for n in range(begin, stop):
        q = np.uint32(live[n])
        for e in range(ptr[q], ptr[q + _ONE]):
            c, r = label[e], target[e]
            if mass[c] > 0.0:
                v, w = times(mass[c], exponent[c], m[n], k[n])
                dense[r], dense_k[r] = add(dense[r], dense_k[r], v, w)


@njit(cache=True, inline="always")
def _weights(mass, exponent, i, most, span, weight):
    """Scale the masses of a position so that plain float64 holds their products with a message.

    Args:
        mass, exponent: of the labels, numbers `[length labels]`.
        i: the position.
        most, span: the largest exponent of the message, and how far the smallest is below it.
        weight: `[labels]`, to be filled in.

    Returns:
        `(plain, level)`: whether float64 holds them, and the exponent of what comes of them; nothing is filled in where
        it doesn't.
    """
    most_mass, span_mass = _span_of_row(mass, exponent, i)
    odd = (span + span_mass) % 2
    plain = span + span_mass <= _SAFE
    if plain:
        for c in range(weight.size):
            weight[c] = mass[i, c] * _scale(most_mass - exponent[i, c], span_mass + odd) if mass[i, c] > 0.0 else 0.0
    return plain, most + most_mass - (span + span_mass + odd) // 2


@njit(cache=True, inline="always")
def _scale(below, span):
    """Return the factor for a number whose exponent is so far below the largest of its side, of a given span.

    It puts the numbers of a side between 2^(-128 - 128 span) and 2^(128 + 128 span), `2^(128 span)` above their own.
    """
    return _POWERS[np.uint32(2 * below - span + _SAFE + 1)]


@njit(cache=True, inline="always")
def _span(k, begin, stop):
    """Return the largest of some exponents, and how far the smallest is below it; 0 where there are none."""
    most, least = np.int32(NEVER), np.int32(-NEVER)
    for n in range(begin, stop):
        most, least = max(most, k[n]), min(least, k[n])
    return most, max(most - least, 0)


@njit(cache=True, inline="always")
def _span_of_row(mass, exponent, i):
    """Return the same of a row of numbers, of which some are 0."""
    most, least = np.int32(NEVER), np.int32(-NEVER)
    for c in range(mass.shape[1]):
        most = max(most, exponent[i, c])
        least = min(least, exponent[i, c] if mass[i, c] > 0.0 else np.int32(-NEVER))
    return most, max(most - least, 0)


@njit(cache=True)
def _spread(labels, flow, lift):
    """Add what flows through each label to its classes."""
    label_ptr, label_class = labels
    for c in range(flow.size):
        if flow[c] > 0.0:
            for p in range(label_ptr[c], label_ptr[c + 1]):
                lift[label_class[p]] += flow[c]


@njit(cache=True)
def _wide_flow(edges, live, begin, stop, f, fk, dense, dense_k, flow, flow_k):
    ptr, target, label = edges
    flow_k[:] = NEVER
    for n in range(begin, stop):
        q = np.uint32(live[n])
        for e in range(ptr[q], ptr[q + _ONE]):
            c, r = label[e], target[e]
            if dense[r] > 0.0:
                v, w = times(f[n], fk[n], dense[r], dense_k[r])
                flow[c], flow_k[c] = add(flow[c], flow_k[c], v, w)


@njit(cache=True)
def _wide_lift(labels, flow, flow_k, log_partition, log_lift):
    """Fill in the logarithms of the lifts of one position."""
    label_ptr, label_class = labels
    lift, lift_k = np.zeros(log_lift.size), np.full(log_lift.size, NEVER, np.int32)
    for c in range(flow.size):
        if flow[c] > 0.0:
            for p in range(label_ptr[c], label_ptr[c + 1]):
                a = label_class[p]
                lift[a], lift_k[a] = add(lift[a], lift_k[a], flow[c], flow_k[c])
    for c in range(lift.size):
        log_lift[c] = math.log(lift[c]) + lift_k[c] * BASE_LOG - log_partition if lift[c] > 0.0 else -np.inf


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _of_lift(lift, shift, log_mass, mean_log):
    """Turn lifts into logarithms where `shift`, to be added to them, isn't NaN; `-inf` where a class has no mass.

    Returns:
        The entropy of the position's posterior, its divergence from the mean field, and the forbidden mass.
    """
    if not np.isnan(shift):
        for c in range(lift.size):
            x = log(max(lift[c], DOWN**4)) + shift
            lift[c] = x if lift[c] > 0.0 else -np.inf
    entropy, kl, forbidden = 0.0, 0.0, 0.0
    for c in range(lift.size):
        allowed = (lift[c] > -np.inf) & (log_mass[c] > -np.inf)
        vote = lift[c] if allowed else 0.0
        log_q = log_mass[c] + vote
        q = exp(min(max(log_q, -700.0), 80.0))
        q = q if log_q > -700.0 else 0.0
        forbidden += 0.0 if allowed else q
        kl += q * vote
        entropy -= q * (mean_log[c] + vote) if allowed else 0.0
        lift[c] = vote if allowed else -np.inf
    # Neither is negative; rounding may leave a last digit on the wrong side of zero.
    return max(entropy, 0.0), max(kl, 0.0), forbidden
