"""Compiled loops over token classes, edges and live states.

Numbers. A message of a real JSON automaton spans more than a thousand decades over its live states, which no scaling of
float64 holds. Here a non-negative number is a pair `(m, k)` standing for `m · 2^(256 k)` with `2^-128 ≤ m < 2^128`, or
`m = 0`. Sums and products need a comparison and a multiplication, no exponential, and nothing underflows: zero means
impossible, and nothing else does. Terms more than 256 binary digits apart can't change a 53-bit sum and are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine import noise

BASE_LOG = 256.0 * math.log(2.0)
"""Natural logarithm of 2^256."""
_BIG = 2.0**128
_SMALL = 2.0**-128
_UP = 2.0**256
_DOWN = 2.0**-256
_NEVER = -(2**30)
"""Exponent of zero: below every other, so that a comparison of exponents needs no special case."""


@njit(cache=True, inline="always")
def _add(m, k, n, j):
    """`(m, k) + (n, j)`."""
    if j == k:
        m += n
    elif j == k + 1:
        m, k = n + m * _DOWN, j
    elif j > k:
        m, k = n, j
    elif j == k - 1:
        m += n * _DOWN
    if m >= _BIG:
        m, k = m * _DOWN, k + 1
    return m, k


@njit(cache=True, inline="always")
def _times(m, k, n, j):
    """`(m, k) · (n, j)`, both positive."""
    m *= n
    k += j
    if m >= _BIG:
        m, k = m * _DOWN, k + 1
    elif m < _SMALL:
        m, k = m * _UP, k - 1
    return m, k


@njit(cache=True, inline="always")
def _from_log(x):
    if x == -np.inf:
        return 0.0, _NEVER
    k = round(x / BASE_LOG)
    return math.exp(x - k * BASE_LOG), k


@njit(cache=True, inline="always")
def _ratio(m, k, n, j):
    """`(m, k) / (n, j)` as a float64, for quotients that are at most about 1; below 1e-300 they may vanish."""
    if m == 0.0:
        return 0.0
    q = m / n
    for _ in range(min(j - k, 5)):
        q *= _DOWN
    for _ in range(min(k - j, 5)):
        q *= _UP
    return q


def to_log(m: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the natural logarithm of numbers `(m, k)`; `-inf` for zero."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(m) + np.where(m > 0, k, 0) * BASE_LOG)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def class_masses(shifted, weights, ptr, tokens, least):
    """Sum a mean field over the tokens of each class.

    Args:
        shifted: `[rows vocab]`, logits minus their row's maximum.
        weights: `[rows vocab]`, their exponentials.
        ptr, tokens: the tokens of each class, as in `Edges`.
        least: a sum of weights below this has lost digits and is done again relative to its class's maximum.

    Returns:
        `(m, k, mean_log, log_total)`: the masses as numbers `[rows classes]`, the mean of `log p` over each class under
        `p` `[rows classes]` (0 where it has no mass), and the log of each row's sum of weights `[rows]`.
    """
    rows = shifted.shape[0]
    classes = ptr.size - 1
    m = np.zeros((rows, classes))
    k = np.full((rows, classes), _NEVER, np.int32)
    mean_log = np.zeros((rows, classes))
    log_total = np.zeros(rows)
    for i in range(rows):
        total = 0.0
        for c in range(classes):
            mass = 0.0
            moment = 0.0
            for t in range(ptr[c], ptr[c + 1]):
                w = np.float64(weights[i, tokens[t]])
                mass += w
                moment += w * max(np.float64(shifted[i, tokens[t]]), -1e4)
            m[i, c] = mass
            mean_log[i, c] = moment
            total += mass
        log_sum = math.log(total)
        log_total[i] = log_sum
        for c in range(classes):
            mass = m[i, c]
            if mass >= least:
                k[i, c] = 0
                m[i, c] = mass / total
                mean_log[i, c] = mean_log[i, c] / mass - log_sum
            elif ptr[c + 1] > ptr[c]:
                m[i, c], k[i, c], mean_log[i, c] = _small_class(shifted[i], tokens[ptr[c] : ptr[c + 1]], log_sum)
    return m, k, mean_log, log_total


@njit(cache=True)
def _small_class(shifted, tokens, log_sum):
    best = -np.inf
    for v in tokens:
        best = max(best, np.float64(shifted[v]))
    if best == -np.inf:
        return 0.0, _NEVER, 0.0
    total = 0.0
    moment = 0.0
    for v in tokens:
        s = np.float64(shifted[v]) - best
        if s > -745.0:
            total += math.exp(s)
            moment += math.exp(s) * s
    m, k = _from_log(best + math.log(total) - log_sum)
    return m, k, moment / total + best - log_sum


@njit(cache=True)
def class_best(shifted, ptr, tokens):
    """Return each class's largest entry, `[rows classes]`, and its token: the lowest id among equals, -1 if none."""
    rows = shifted.shape[0]
    classes = ptr.size - 1
    best = np.full((rows, classes), -np.inf)
    token = np.full((rows, classes), -1, np.int32)
    for i in range(rows):
        for c in range(classes):
            for t in range(ptr[c], ptr[c + 1]):
                if shifted[i, tokens[t]] > best[i, c]:
                    best[i, c] = shifted[i, tokens[t]]
                    token[i, c] = tokens[t]
    return best, token


@njit(cache=True)
def label_masses(m, k, label_ptr, label_class):
    """Sum class masses `[length classes]` over the classes of each label: `[length labels]`."""
    length = m.shape[0]
    labels = label_ptr.size - 1
    out = np.zeros((length, labels))
    exponent = np.full((length, labels), _NEVER, np.int32)
    for i in range(length):
        for b in range(labels):
            x, y = 0.0, _NEVER
            for p in range(label_ptr[b], label_ptr[b + 1]):
                c = label_class[p]
                if m[i, c] > 0.0:
                    x, y = _add(x, y, m[i, c], k[i, c])
            out[i, b] = x
            exponent[i, b] = y
    return out, exponent


@njit(cache=True)
def live_states(ptr, target, label, start, accepting, possible):
    """Find by Boolean reachability the states that some accepted completion passes at each boundary.

    Args:
        possible: bool `[length labels]`, whether a label has any mass at a position.

    Returns:
        `(live_ptr, live)`: the states at boundary `i` are `live[live_ptr[i]:live_ptr[i + 1]]`, ascending; there
        are none at any boundary when nothing is accepted.
    """
    length = possible.shape[0]
    states = ptr.size - 1
    reached = np.zeros((length + 1, states), np.bool_)
    reached[0, start] = True
    for i in range(length):
        for q in range(states):
            if reached[i, q]:
                for e in range(ptr[q], ptr[q + 1]):
                    if possible[i, label[e]]:
                        reached[i + 1, target[e]] = True
    count = 0
    for q in range(states):
        reached[length, q] &= accepting[q]
        count += reached[length, q]
    for i in range(length - 1, -1, -1):
        for q in range(states):
            if reached[i, q]:
                alive = False
                for e in range(ptr[q], ptr[q + 1]):
                    if possible[i, label[e]] and reached[i + 1, target[e]]:
                        alive = True
                        break
                reached[i, q] = alive
                count += alive
    live_ptr = np.zeros(length + 2, np.int64)
    live = np.empty(count, np.int32)
    n = 0
    for i in range(length + 1):
        for q in range(states):
            if reached[i, q]:
                live[n] = q
                n += 1
        live_ptr[i + 1] = n
    return live_ptr, live


@njit(cache=True)
def backward(ptr, target, label, live_ptr, live, mass, exponent):
    """Backward messages, aligned with `live`: the mass of all accepted completions from each state."""
    length = mass.shape[0]
    m = np.zeros(live.size)
    k = np.full(live.size, _NEVER, np.int32)
    slot = np.full(ptr.size - 1, -1, np.int64)
    for n in range(live_ptr[length], live_ptr[length + 1]):
        m[n], k[n] = 1.0, 0
        slot[live[n]] = n
    for i in range(length - 1, -1, -1):
        for n in range(live_ptr[i], live_ptr[i + 1]):
            x, y = 0.0, _NEVER
            q = live[n]
            for e in range(ptr[q], ptr[q + 1]):
                s = slot[target[e]]
                if s >= 0 and mass[i, label[e]] > 0.0:
                    a, b = _times(mass[i, label[e]], exponent[i, label[e]], m[s], k[s])
                    x, y = _add(x, y, a, b)
            m[n], k[n] = x, y
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
        for n in range(live_ptr[i], live_ptr[i + 1]):
            slot[live[n]] = n
    return m, k


@njit(cache=True)
def forward(ptr, target, label, live_ptr, live, mass, exponent):
    """Forward messages of the live states: the mass of all ways from the start to each; numbers aligned with `live`."""
    length = mass.shape[0]
    m = np.zeros(live.size)
    k = np.full(live.size, _NEVER, np.int32)
    slot = np.full(ptr.size - 1, -1, np.int64)
    if live.size:
        m[0], k[0] = 1.0, 0
    for i in range(length):
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = n
        for n in range(live_ptr[i], live_ptr[i + 1]):
            q = live[n]
            for e in range(ptr[q], ptr[q + 1]):
                s = slot[target[e]]
                if s >= 0 and mass[i, label[e]] > 0.0:
                    a, b = _times(m[n], k[n], mass[i, label[e]], exponent[i, label[e]])
                    m[s], k[s] = _add(m[s], k[s], a, b)
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
    return m, k


@njit(cache=True)
def lifts(ptr, target, label, label_ptr, label_class, live_ptr, live, f, fk, b, bk, mass, classes):
    """Return the lift of each class with mass at each position, as numbers `[length classes]`.

    `lift_i(c) = Σ f_i(q) b_{i+1}(move(q, c)) / Z`, first summed per label and then spread to the label's classes.
    """
    length = mass.shape[0]
    labels = label_ptr.size - 1
    m = np.zeros((length, classes))
    k = np.full((length, classes), _NEVER, np.int32)
    slot = np.full(ptr.size - 1, -1, np.int64)
    flow = np.zeros(labels)
    flow_k = np.full(labels, _NEVER, np.int32)
    for i in range(length):
        flow[:] = 0.0
        flow_k[:] = _NEVER
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = n
        for n in range(live_ptr[i], live_ptr[i + 1]):
            q = live[n]
            for e in range(ptr[q], ptr[q + 1]):
                s = slot[target[e]]
                c = label[e]
                if s >= 0 and mass[i, c] > 0.0:
                    x, y = _times(f[n], fk[n], b[s], bk[s])
                    x, y = _times(x, y, 1.0 / b[0], -bk[0])
                    flow[c], flow_k[c] = _add(flow[c], flow_k[c], x, y)
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
        for c in range(labels):
            if flow[c] > 0.0:
                for p in range(label_ptr[c], label_ptr[c + 1]):
                    a = label_class[p]
                    m[i, a], k[i, a] = _add(m[i, a], k[i, a], flow[c], flow_k[c])
    return m, k


@njit(cache=True)
def state_posterior(live_ptr, live, f, fk, b, bk, states, top):
    """Return the `top` most probable states of each boundary, their probabilities, and the live states as bits."""
    boundaries = live_ptr.size - 1
    ids = np.full((boundaries, top), -1, np.int32)
    probability = np.zeros((boundaries, top), np.float32)
    bits = np.zeros((boundaries, (states + 7) // 8), np.uint8)
    gamma = np.zeros(states)
    for i in range(boundaries):
        begin, stop = live_ptr[i], live_ptr[i + 1]
        for n in range(begin, stop):
            x, y = _times(f[n], fk[n], b[n], bk[n])
            gamma[n - begin] = -_ratio(x, y, b[0], bk[0])
            bits[i, live[n] >> 3] |= 128 >> (live[n] & 7)
        order = np.argsort(gamma[: stop - begin])
        for r in range(min(top, stop - begin)):
            ids[i, r] = live[begin + order[r]]
            probability[i, r] = -gamma[order[r]]
    return ids, probability, bits


@njit(cache=True, inline="always")
def _choose(m, k, count, u):
    """Return the index that a uniform `u` picks among `count` numbers, in proportion to them."""
    x, y = 0.0, _NEVER
    for n in range(count):
        if m[n] > 0.0:
            x, y = _add(x, y, m[n], k[n])
    rest = u
    last = -1
    for n in range(count):
        p = _ratio(m[n], k[n], x, y)
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
                x, y = _times(mass[i, label[e]], exponent[i, label[e]], b[s], bk[s])
                m[e - ptr[q]], k[e - ptr[q]] = x, y
        path[i + 1] = target[ptr[q] + _choose(m, k, ptr[q + 1] - ptr[q], noise[i])]
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
        x, y = 0.0, _NEVER
        for p in range(begin, stop):
            c = label_class[p]
            if m[i, c] > 0.0:
                x, y = _add(x, y, m[i, c], k[i, c])
        u = noise[i]
        for p in range(begin, stop):
            c = label_class[p]
            share = _ratio(m[i, c], k[i, c], x, y)
            if m[i, c] > 0.0:
                classes[i] = c
                rest[i] = min(u / share, 1.0) if share > 0.0 else 0.0
                if u < share:
                    break
            u -= share
    return classes, rest


@njit(cache=True)
def draw_tokens(shifted, classes, rest, ptr, tokens):
    """Draw a token of each row's class in proportion to `exp(shifted)`; `rest` is uniform noise."""
    rows = classes.size
    out = np.empty(rows, np.int32)
    for i in range(rows):
        begin, stop = ptr[classes[i]], ptr[classes[i] + 1]
        best = -np.inf
        for t in range(begin, stop):
            best = max(best, np.float64(shifted[i, tokens[t]]))
        total = 0.0
        for t in range(begin, stop):
            if shifted[i, tokens[t]] > best - 745.0:
                total += math.exp(np.float64(shifted[i, tokens[t]]) - best)
        goal = rest[i] * total
        for t in range(begin, stop):
            if shifted[i, tokens[t]] > best - 745.0:
                out[i] = tokens[t]
                goal -= math.exp(np.float64(shifted[i, tokens[t]]) - best)
                if goal < 0.0:
                    break
    return out


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
def draw_midpoints(ptr, target, label, live_ptr, live, f, fk, mass, exponent, noise, forced, top):
    """Draw the end, then every midpoint given the ends of its span, level by level.

    The conditional of the midpoint `m` of `[l, r]` is a forward message from the state at `l` times a backward message
    from the state at `r`, both over live states only.

    Args:
        noise: float64 `[boundaries]`, one uniform number for each boundary.
        forced: int32 `[boundaries]`, states to take in place of a draw; -1 where one is to be drawn.
        top: how many states of each conditional distribution are recorded.

    Returns:
        `(path, log_probability, entropy, ids, probability)` as in `StepRecord`.
    """
    length = mass.shape[0]
    states = ptr.size - 1
    path = np.full(length + 1, -1, np.int32)
    log_probability = np.full(length + 1, np.nan, np.float32)
    entropy = np.full(length + 1, np.nan, np.float32)
    ids = np.full((length + 1, top), -1, np.int32)
    probability = np.zeros((length + 1, top), np.float32)
    a = np.zeros((2, states))
    ak = np.full((2, states), _NEVER, np.int32)
    b = np.zeros((2, states))
    bk = np.full((2, states), _NEVER, np.int32)
    fronts = np.empty((4, states), np.int32)
    m = np.zeros(states)
    k = np.zeros(states, np.int32)
    path[0] = live[0]
    begin, stop = live_ptr[length], live_ptr[length + 1]
    path[length], log_probability[length], entropy[length] = _conditional(
        live[begin:stop], f[begin:stop], fk[begin:stop], noise[length], forced[length], ids[length], probability[length]
    )
    # The states that may stand at each boundary; a mark per (boundary, state) keeps the fronts inside of them.
    alive = np.zeros((length + 1, states), np.bool_)
    for i in range(length + 1):
        for n in range(live_ptr[i], live_ptr[i + 1]):
            alive[i, live[n]] = True
    half = 1
    while 2 * half < length:
        half *= 2
    while half >= 1:
        for middle in range(half, length, 2 * half):
            left, right = middle - half, min(middle + half, length)
            # Forward from the left end.
            now, size = 0, 1
            fronts[0, 0] = path[left]
            a[0, path[left]], ak[0, path[left]] = 1.0, 0
            for i in range(left, middle):
                then, grown = 1 - now, 0
                for n in range(size):
                    q = fronts[now, n]
                    for e in range(ptr[q], ptr[q + 1]):
                        r = target[e]
                        if alive[i + 1, r] and mass[i, label[e]] > 0.0:
                            x, y = _times(a[now, q], ak[now, q], mass[i, label[e]], exponent[i, label[e]])
                            if a[then, r] == 0.0:
                                fronts[then, grown] = r
                                grown += 1
                            a[then, r], ak[then, r] = _add(a[then, r], ak[then, r], x, y)
                for n in range(size):
                    a[now, fronts[now, n]], ak[now, fronts[now, n]] = 0.0, _NEVER
                now, size = then, grown
            # Backward from the right end, over the states that are live there.
            back = 0
            b[0, path[right]], bk[0, path[right]] = 1.0, 0
            for i in range(right - 1, middle - 1, -1):
                then = 1 - back
                for n in range(live_ptr[i], live_ptr[i + 1]):
                    q = live[n]
                    x, y = 0.0, _NEVER
                    for e in range(ptr[q], ptr[q + 1]):
                        r = target[e]
                        if b[back, r] > 0.0 and mass[i, label[e]] > 0.0:
                            c, d = _times(mass[i, label[e]], exponent[i, label[e]], b[back, r], bk[back, r])
                            x, y = _add(x, y, c, d)
                    b[then, q], bk[then, q] = x, y
                if i + 1 == right:
                    b[back, path[right]], bk[back, path[right]] = 0.0, _NEVER
                else:
                    for n in range(live_ptr[i + 1], live_ptr[i + 2]):
                        b[back, live[n]], bk[back, live[n]] = 0.0, _NEVER
                back = then
            # The front is sorted so that the noise meets the states in the same order as the dense tree does.
            front = np.sort(fronts[now, :size])
            count = 0
            for q in front:
                if b[back, q] > 0.0:
                    m[count], k[count] = _times(a[now, q], ak[now, q], b[back, q], bk[back, q])
                    fronts[2, count] = q
                    count += 1
                a[now, q], ak[now, q] = 0.0, _NEVER
            for n in range(live_ptr[middle], live_ptr[middle + 1]):
                b[back, live[n]], bk[back, live[n]] = 0.0, _NEVER
            path[middle], log_probability[middle], entropy[middle] = _conditional(
                fronts[2, :count], m[:count], k[:count], noise[middle], forced[middle], ids[middle], probability[middle]
            )
        half //= 2
    return path, log_probability, entropy, ids, probability


@njit(cache=True)
def _conditional(states, m, k, u, forced, ids, probability):
    """Draw (or take the forced) state of a distribution given by numbers; note its most probable states."""
    count = states.size
    x, y = 0.0, _NEVER
    for n in range(count):
        x, y = _add(x, y, m[n], k[n])
    p = np.empty(count)
    entropy = 0.0
    for n in range(count):
        p[n] = _ratio(m[n], k[n], x, y)
        if p[n] > 0.0:
            entropy -= p[n] * math.log(p[n])
    chosen = 0
    if forced >= 0:
        for n in range(count):
            if states[n] == forced:
                chosen = n
    else:
        chosen = _choose(m, k, count, u)
    order = np.argsort(-p) if count > 1 else np.zeros(1, np.int64)
    for r in range(min(ids.size, count)):
        ids[r] = states[order[r]]
        probability[r] = p[order[r]]
    x, y = _times(m[chosen], k[chosen], 1.0 / x, -y)
    return states[chosen], math.log(x) + y * BASE_LOG, entropy


@njit(cache=True)
def top_tokens(shifted, log_total, class_log_lift, token_class, top):
    """Return the `top` most probable tokens of each row under the mean field and under the posterior.

    Returns:
        `(ids, log_mean_field, log_posterior)`, each `[rows 2 top]`, descending; ids -1 where there are fewer.
    """
    rows, vocab = shifted.shape
    ids = np.full((rows, 2, top), -1, np.int32)
    score = np.full((rows, 2, top), -np.inf)
    log_p = np.full((rows, 2, top), -np.inf, np.float32)
    log_q = np.full((rows, 2, top), -np.inf, np.float32)
    for i in range(rows):
        lift = class_log_lift[i]
        least_p = -np.inf
        least_q = -np.inf
        for v in range(vocab):
            s = np.float64(shifted[i, v])
            if s > least_p:
                least_p = _insert(ids[i, 0], score[i, 0], v, s)
            s += lift[token_class[v]]
            if s > least_q:
                least_q = _insert(ids[i, 1], score[i, 1], v, s)
        for row in range(2):
            for r in range(top):
                v = ids[i, row, r]
                if v >= 0:
                    log_p[i, row, r] = shifted[i, v] - log_total[i]
                    log_q[i, row, r] = log_p[i, row, r] + lift[token_class[v]]
    return ids, log_p, log_q


@njit(cache=True)
def _insert(ids, score, v, s):
    """Put `v` where it belongs among descending scores; return the score that the next one must pass."""
    r = ids.size - 1
    while r > 0 and score[r - 1] < s:
        ids[r] = ids[r - 1]
        score[r] = score[r - 1]
        r -= 1
    ids[r] = v
    score[r] = s
    return score[ids.size - 1]


@njit(cache=True)
def independent_tokens(shifted, positions, allowed, token_class, noisy, seed, step, stream):
    """Return each row's largest allowed logit plus Gumbel noise in float64 (none where not `noisy`): int32 `[rows]`."""
    rows, vocab = shifted.shape
    out = np.zeros(rows, np.int32)
    for i in range(rows):
        best = -np.inf
        for v in range(vocab):
            if allowed[i, token_class[v]] and shifted[i, v] > -np.inf:
                x = np.float64(shifted[i, v])
                if noisy:
                    u = noise.uniform(seed, step, stream, positions[i] * vocab + v)
                    x -= math.log(-math.log(u))
                if x > best:
                    best = x
                    out[i] = v
    return out
