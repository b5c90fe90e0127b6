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
_GROUP = 16
"""Tokens that one maximum stands for in `top_tokens`: few, so that a group that passes the bar is cheap to scan."""


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


@njit(cache=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def class_masses(shifted, weights, ptr, tokens, least):
    """Sum a mean field over the tokens of each class.

    Args:
        shifted: `[rows vocab]`, logits minus their row's maximum.
        weights: `[rows vocab]`, their exponentials.
        ptr, tokens: the tokens of each class, as in `Edges`.
        least: a sum of weights below this has lost digits and is done again relative to its class's maximum.

    Returns:
        `(m, k, mean_log, best, log_total)`: the masses as numbers `[rows classes]`, the mean of `log p` over each class
        under `p` `[rows classes]` (0 where it has no mass), the largest entry of `shifted` in each class
        `[rows classes]`, and the log of each row's sum of weights `[rows]`.
    """
    rows = shifted.shape[0]
    classes = ptr.size - 1
    m = np.zeros((rows, classes))
    k = np.full((rows, classes), _NEVER, np.int32)
    mean_log = np.zeros((rows, classes))
    best = np.full((rows, classes), -np.inf)
    log_total = np.zeros(rows)
    for i in range(rows):
        total = 0.0
        for c in range(classes):
            mass = 0.0
            moment = 0.0
            largest = -np.inf
            for t in range(ptr[c], ptr[c + 1]):
                x = np.float64(shifted[i, tokens[t]])
                w = np.float64(weights[i, tokens[t]])
                mass += w
                moment += w * max(x, -1e4)
                largest = max(largest, x)
            m[i, c] = mass
            mean_log[i, c] = moment
            best[i, c] = largest
            total += mass
        log_sum = math.log(total)
        log_total[i] = log_sum
        for c in range(classes):
            mass = m[i, c]
            if mass >= least:
                mass /= total
                k[i, c] = 0
                while mass < _SMALL:
                    mass *= _UP
                    k[i, c] -= 1
                mean_log[i, c] = mean_log[i, c] / m[i, c] - log_sum
                m[i, c] = mass
            elif best[i, c] > -np.inf:
                m[i, c], k[i, c], mean_log[i, c] = _small_class(
                    shifted[i], tokens[ptr[c] : ptr[c + 1]], best[i, c], log_sum
                )
            else:
                m[i, c], mean_log[i, c] = 0.0, 0.0
    return m, k, mean_log, best, log_total


@njit(cache=True)
def _small_class(shifted, tokens, best, log_sum):
    total = 0.0
    moment = 0.0
    for v in tokens:
        x = np.float64(shifted[v]) - best
        if x > -745.0:
            total += math.exp(x)
            moment += math.exp(x) * x
    m, k = _from_log(best + math.log(total) - log_sum)
    return m, k, moment / total + best - log_sum


@njit(cache=True)
def label_masses(m, k, label_ptr, label_class):
    """Sum class masses `[length classes]` over the classes of each label: `[length labels]`."""
    length, classes = m.shape
    labels = label_ptr.size - 1
    out = np.zeros((length, labels))
    exponent = np.full((length, labels), _NEVER, np.int32)
    for i in range(length):
        plain = True
        for c in range(classes):
            plain &= k[i, c] == 0 or m[i, c] == 0.0
        for b in range(labels):
            x, y = 0.0, _NEVER
            if plain:
                for p in range(label_ptr[b], label_ptr[b + 1]):
                    x += m[i, label_class[p]]
                y = 0 if x > 0.0 else _NEVER
            else:
                for p in range(label_ptr[b], label_ptr[b + 1]):
                    c = label_class[p]
                    if m[i, c] > 0.0:
                        x, y = _add(x, y, m[i, c], k[i, c])
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
def lifts(ptr, target, label, label_ptr, label_class, live_ptr, live, f, fk, b, bk, mass, m, k, mean_log):
    """Return the lift of each class that has mass, and what follows from it.

    `lift_i(c) = Σ f_i(q) b_{i+1}(move(q, c)) / Z`, first summed per label and then spread to the label's classes.

    Args:
        mass: of the labels, `[length labels]`.
        m, k: class masses, numbers `[length classes]`.
        mean_log: mean of `log p` over each class, `[length classes]`.

    Returns:
        `(log_lift, entropy, kl, forbidden)` as in `Marginals`.
    """
    length, classes = m.shape
    labels = label_ptr.size - 1
    log_lift = np.full((length, classes), -np.inf)
    entropy, kl, forbidden = np.zeros(length), np.zeros(length), np.zeros(length)
    slot = np.full(ptr.size - 1, -1, np.int64)
    flow, flow_k = np.zeros(labels), np.full(labels, _NEVER, np.int32)
    lift, lift_k = np.zeros(classes), np.full(classes, _NEVER, np.int32)
    for i in range(length):
        flow[:] = 0.0
        flow_k[:] = _NEVER
        lift[:] = 0.0
        lift_k[:] = _NEVER
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = n
        for n in range(live_ptr[i], live_ptr[i + 1]):
            q = live[n]
            x, y = _times(f[n], fk[n], 1.0 / b[0], -bk[0])
            for e in range(ptr[q], ptr[q + 1]):
                s = slot[target[e]]
                c = label[e]
                if s >= 0 and mass[i, c] > 0.0:
                    v, w = _times(x, y, b[s], bk[s])
                    flow[c], flow_k[c] = _add(flow[c], flow_k[c], v, w)
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
        for c in range(labels):
            if flow[c] > 0.0:
                for p in range(label_ptr[c], label_ptr[c + 1]):
                    a = label_class[p]
                    lift[a], lift_k[a] = _add(lift[a], lift_k[a], flow[c], flow_k[c])
        for c in range(classes):
            if m[i, c] == 0.0:
                continue
            if lift[c] == 0.0:
                forbidden[i] += _ratio(m[i, c], k[i, c], 1.0, 0)
                continue
            log_lift[i, c] = math.log(lift[c]) + lift_k[c] * BASE_LOG
            x, y = _times(m[i, c], k[i, c], lift[c], lift_k[c])
            share = _ratio(x, y, 1.0, 0)
            kl[i] += share * log_lift[i, c]
            entropy[i] -= share * (mean_log[i, c] + log_lift[i, c])
    return log_lift, entropy, kl, forbidden


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
def draw_tokens(shifted, weights, best, classes, rest, ptr, tokens, least):
    """Draw a token of each row's class in proportion to `exp(shifted)`; `rest` is uniform noise.

    The other arguments are those of `class_masses`, and `best` is its result.
    """
    rows = classes.size
    out = np.empty(rows, np.int32)
    for i in range(rows):
        c = classes[i]
        total = 0.0
        for t in range(ptr[c], ptr[c + 1]):
            total += np.float64(weights[i, tokens[t]])
        tiny = total < least
        if tiny:
            total = 0.0
            for t in range(ptr[c], ptr[c + 1]):
                total += _relative(shifted[i, tokens[t]], best[i, c])
        goal = rest[i] * total
        for t in range(ptr[c], ptr[c + 1]):
            v = tokens[t]
            w = _relative(shifted[i, v], best[i, c]) if tiny else np.float64(weights[i, v])
            if w > 0.0:
                out[i] = v
                goal -= w
                if goal < 0.0:
                    break
    return out


@njit(cache=True, inline="always")
def _relative(x, best):
    d = np.float64(x) - best
    return math.exp(d) if d > -745.0 else 0.0


@njit(cache=True)
def best_tokens(ptr, target, label, label_ptr, label_class, path, score, masked, shifted, class_ptr, tokens, canvas):
    """Return the best token of each position given its two states; the lowest id among equals: int32 `[length]`."""
    out = canvas.copy()
    for row in range(masked.size):
        i = masked[row]
        chosen = -1
        for e in range(ptr[path[i]], ptr[path[i] + 1]):
            if target[e] != path[i + 1]:
                continue
            for p in range(label_ptr[label[e]], label_ptr[label[e] + 1]):
                c = label_class[p]
                if chosen < 0 or score[i, c] > score[i, chosen]:
                    chosen = c
        for t in range(class_ptr[chosen], class_ptr[chosen + 1]):
            if np.float64(shifted[row, tokens[t]]) == score[i, chosen]:
                out[i] = tokens[t]
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
def draw_midpoints(edges, edges_into, live_ptr, live, f, fk, mass, exponent, noise, forced, top):
    """Draw the end, then every midpoint given the ends of its span, level by level.

    The conditional of the midpoint `m` of `[l, r]` is a forward message from the state at `l` times a backward message
    from the state at `r`, both over the live states that they reach.

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
    length = mass.shape[0]
    states = edges[0].size - 1
    path = np.full(length + 1, -1, np.int32)
    log_probability = np.full(length + 1, np.nan, np.float32)
    entropy = np.full(length + 1, np.nan, np.float32)
    ids = np.full((length + 1, top), -1, np.int32)
    probability = np.zeros((length + 1, top), np.float32)
    alive = np.zeros((length + 1, states), np.bool_)
    for i in range(length + 1):
        for n in range(live_ptr[i], live_ptr[i + 1]):
            alive[i, live[n]] = True
    path[0] = live[0]
    begin, stop = live_ptr[length], live_ptr[length + 1]
    path[length], log_probability[length], entropy[length] = _conditional(
        live[begin:stop], f[begin:stop], fk[begin:stop], noise[length], forced[length], ids[length], probability[length]
    )
    ahead, ahead_k = np.zeros((2, states)), np.full((2, states), _NEVER, np.int32)
    behind, behind_k = np.zeros((2, states)), np.full((2, states), _NEVER, np.int32)
    front, back = np.empty((2, states), np.int32), np.empty((2, states), np.int32)
    m, k = np.zeros(states), np.zeros(states, np.int32)
    half = 1
    while 2 * half < length:
        half *= 2
    while half >= 1:
        for middle in range(half, length, 2 * half):
            left, right = middle - half, min(middle + half, length)
            a, size = _spread(edges, path[left], left, middle, alive, mass, exponent, ahead, ahead_k, front)
            b, others = _spread(edges_into, path[right], right, middle, alive, mass, exponent, behind, behind_k, back)
            # Sorted, so that the noise meets the states in the order in which the dense tree has them.
            meeting = np.sort(front[a, :size])
            count = 0
            for q in meeting:
                if behind[b, q] > 0.0:
                    m[count], k[count] = _times(ahead[a, q], ahead_k[a, q], behind[b, q], behind_k[b, q])
                    meeting[count] = q
                    count += 1
            for n in range(size):
                ahead[a, front[a, n]] = 0.0
            for n in range(others):
                behind[b, back[b, n]] = 0.0
            path[middle], log_probability[middle], entropy[middle] = _conditional(
                meeting[:count], m[:count], k[:count], noise[middle], forced[middle], ids[middle], probability[middle]
            )
        half //= 2
    return path, log_probability, entropy, ids, probability


@njit(cache=True)
def _spread(edges, state, start, stop, alive, mass, exponent, m, k, front):
    """Send a message from one state at boundary `start` to boundary `stop`, forwards or backwards.

    Returns:
        `(row, size)`: the message is row `row` of `m, k` at the states `front[row, :size]`; all else there is 0.
    """
    ptr, other, label = edges
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
                    v, w = _times(x, y, mass[position, label[e]], exponent[position, label[e]])
                    if m[then, r] == 0.0:
                        front[then, grown] = r
                        grown += 1
                        m[then, r], k[then, r] = v, w
                    else:
                        m[then, r], k[then, r] = _add(m[then, r], k[then, r], v, w)
        now, size = then, grown
    return now, size


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
def top_tokens(shifted, log_total, best, log_lift, token_class, ptr, tokens, top):
    """Return the `top` most probable tokens of each row under the mean field and under the posterior.

    The largest scores of as many groups of tokens as are shown set a bar, and a group below it is passed over whole.
    Under the mean field the groups are tokens a stride apart; under the posterior they are the allowed classes.

    Args:
        shifted, log_total, best, ptr, tokens: as in `class_masses`.
        log_lift: `[rows classes]`.
        token_class: int32 `[vocab]`.
        top: how many.

    Returns:
        `(ids, log_mean_field, log_posterior)`, each `[rows 2 top]`, descending; ids -1 where there are fewer.
    """
    rows = shifted.shape[0]
    ids = np.full((rows, 2, top), -1, np.int32)
    score = np.empty(top)
    groups = -(-tokens.size // _GROUP)
    group_best = np.empty(groups, shifted.dtype)
    class_best = np.empty(ptr.size - 1)
    log_p = np.full((rows, 2, top), -np.inf, np.float32)
    log_q = np.full((rows, 2, top), -np.inf, np.float32)
    for i in range(rows):
        row_scores, under_p, under_q = shifted[i], ids[i, 0], ids[i, 1]
        _group_maxima(row_scores[: tokens.size], group_best)
        bar = _just_below(_nth_largest(group_best, score))
        score[:] = -np.inf
        for g in range(groups):
            if group_best[g] > bar:
                for v in range(g, tokens.size, groups):
                    x = np.float64(row_scores[v])
                    if x > bar:
                        bar = max(bar, _insert(under_p, score, v, x))
        for c in range(class_best.size):
            class_best[c] = best[i, c] + log_lift[i, c]
        bar = _just_below(_nth_largest(class_best, score))
        score[:] = -np.inf
        for c in range(class_best.size):
            if class_best[c] > bar:
                add = log_lift[i, c]
                for t in range(ptr[c], ptr[c + 1]):
                    x = np.float64(row_scores[tokens[t]]) + add
                    if x > bar:
                        bar = max(bar, _insert(under_q, score, tokens[t], x))
        for row in range(2):
            for r in range(top):
                v = ids[i, row, r]
                if v >= 0:
                    log_p[i, row, r] = shifted[i, v] - log_total[i]
                    log_q[i, row, r] = log_p[i, row, r] + log_lift[i, token_class[v]]
    return ids, log_p, log_q


@njit(cache=True, fastmath={"nsz", "nnan"})
def _group_maxima(values, out):
    """Fill `out` with the maxima of `values[g], values[g + groups], …`: a loop over vectors, not within them."""
    groups = out.size
    for g in range(groups):
        out[g] = values[g]
    for begin in range(groups, values.size, groups):
        for g in range(min(groups, values.size - begin)):
            x, y = values[begin + g], out[g]
            out[g] = x if x > y else y


@njit(cache=True)
def _nth_largest(values, descending):
    """Return the n-th largest value, n the size of the scratch array `descending`; `-inf` where there are fewer."""
    descending[:] = -np.inf
    n = descending.size
    for x in values:
        if x > descending[n - 1]:
            r = n - 1
            while r > 0 and descending[r - 1] < x:
                descending[r] = descending[r - 1]
                r -= 1
            descending[r] = x
    return descending[n - 1]


@njit(cache=True)
def _just_below(x):
    return np.nextafter(x, -np.inf)


@njit(cache=True)
def _insert(ids, score, v, x):
    """Put token `v` where it belongs among descending scores, behind its equals; return what the next must pass."""
    r = ids.size - 1
    while r > 0 and score[r - 1] < x:
        ids[r], score[r] = ids[r - 1], score[r - 1]
        r -= 1
    ids[r], score[r] = v, x
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
