"""Compiled loops over many draws and over many paths."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def draw_paths(edges, live_ptr, live, log_backward, log_labels, u):
    """Draw states from left to right for all draws; the edges out of a state are weighed once a boundary.

    Args:
        edges: `(ptr, target, label)`, the edges out of each state.
        live_ptr, live: the live states of each boundary.
        log_backward: aligned with `live`.
        log_labels: `[length labels]`, log mass.
        u: float64 `[draws length]`, uniform.

    Returns:
        int32 `[draws boundaries]`.
    """
    ptr, target, label = edges
    draws, length = u.shape
    paths = np.empty((draws, length + 1), np.int32)
    paths[:, 0] = live[0]
    slot = np.full(ptr.size - 1, -1, np.int64)
    known = np.full(ptr.size - 1, -1, np.int64)
    total = np.zeros(target.size)
    for i in range(length):
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = n
        for d in range(draws):
            q = paths[d, i]
            begin, stop = ptr[q], ptr[q + 1]
            if known[q] != i:
                known[q] = i
                _weigh(begin, stop, target, label, slot, log_backward, log_labels[i], total)
            paths[d, i + 1] = target[begin + _pick(total[begin:stop], u[d, i])]
        for n in range(live_ptr[i + 1], live_ptr[i + 2]):
            slot[live[n]] = -1
    return paths


@njit(cache=True)
def _weigh(begin, stop, target, label, slot, log_backward, log_mass, total):
    """Fill `total[begin:stop]` with the running sum of the edges' weights, level over impossible ones."""
    most = -np.inf
    for e in range(begin, stop):
        if slot[target[e]] >= 0:
            most = max(most, log_mass[label[e]] + log_backward[slot[target[e]]])
    running = 0.0
    for e in range(begin, stop):
        if slot[target[e]] >= 0:
            running += math.exp(log_mass[label[e]] + log_backward[slot[target[e]]] - most)
        total[e] = running


@njit(cache=True)
def _pick(total, u):
    """Return the index that a uniform number picks from running sums of weights; its weight is positive."""
    n = np.searchsorted(total, u * total[-1], "right")
    return n if n < total.size else np.searchsorted(total, total[-1], "left")  # u was rounded up to 1


@njit(cache=True)
def draw_classes(edges, label_ptr, label_class, paths, log_mass, u):
    """Draw the class of each position of each draw given its two states.

    Returns:
        `(classes, rest)`, both `[draws length]`; `rest` is uniform given the class.
    """
    ptr, target, label = edges
    draws, length = u.shape
    classes = np.full((draws, length), -1, np.int32)
    rest = np.zeros((draws, length))
    for d in range(draws):
        for i in range(length):
            between = -1
            for e in range(ptr[paths[d, i]], ptr[paths[d, i] + 1]):
                if target[e] == paths[d, i + 1]:
                    between = label[e]
            most = -np.inf
            for p in range(label_ptr[between], label_ptr[between + 1]):
                most = max(most, log_mass[i, label_class[p]])
            whole = 0.0
            for p in range(label_ptr[between], label_ptr[between + 1]):
                whole += math.exp(log_mass[i, label_class[p]] - most)
            left = u[d, i]
            for p in range(label_ptr[between], label_ptr[between + 1]):
                share = math.exp(log_mass[i, label_class[p]] - most) / whole
                if share > 0.0:
                    classes[d, i] = label_class[p]
                    rest[d, i] = min(left / share, 1.0)
                    if left < share:
                        break
                left -= share
    return classes, rest


@njit(cache=True)
def draw_tokens(scores, classes, rest, ptr, tokens):
    """Draw a token for every draw and row in proportion to `exp(scores)` within its class.

    Args:
        scores: `[rows vocab]`.
        classes: int32 `[draws rows]`.
        rest: float64 `[draws rows]`, uniform.
        ptr, tokens: the tokens of each class, as in `Edges`.

    Returns:
        int32 `[draws rows]`.
    """
    draws, rows = classes.shape
    out = np.zeros((draws, rows), np.int32)
    total = np.empty(tokens.size)
    known = np.full(ptr.size - 1, -1, np.int64)
    for i in range(rows):
        for d in range(draws):
            c = classes[d, i]
            begin, stop = ptr[c], ptr[c + 1]
            if known[c] != i:
                known[c] = i
                most = -np.inf
                for t in range(begin, stop):
                    most = max(most, np.float64(scores[i, tokens[t]]))
                running = 0.0
                for t in range(begin, stop):
                    running += math.exp(np.float64(scores[i, tokens[t]]) - most)
                    total[t] = running
            out[d, i] = tokens[begin + _pick(total[begin:stop], rest[d, i])]
    return out


@njit(cache=True)
def log_paths(class_ptr, class_source, class_target, start, accepting, classes):
    """Return the log number of accepting paths of each sequence of classes `[draws length]`; `-inf` for none."""
    draws, length = classes.shape
    out = np.full(draws, -np.inf)
    count, then = np.zeros(accepting.size), np.zeros(accepting.size)
    front, grown = np.empty(accepting.size, np.int32), np.empty(accepting.size, np.int32)
    for d in range(draws):
        size, scale = 1, 0.0
        front[0] = start
        count[start] = 1.0
        for i in range(length):
            begin, stop = class_ptr[classes[d, i]], class_ptr[classes[d, i] + 1]
            sources = class_source[begin:stop]
            reached, most = 0, 0.0
            for n in range(size):
                q = front[n]
                at = begin + np.searchsorted(sources, q, "left")
                while at < stop and class_source[at] == q:
                    r = class_target[at]
                    if then[r] == 0.0:
                        grown[reached] = r
                        reached += 1
                    then[r] += count[q]
                    most = max(most, then[r])
                    at += 1
                count[q] = 0.0
            # Counts grow by the length; a factor is taken out before they leave float64.
            factor = most if most > 1e200 else 1.0
            scale += math.log(factor)
            for n in range(reached):
                front[n] = grown[n]
                count[grown[n]] = then[grown[n]] / factor
                then[grown[n]] = 0.0
            size = reached
        whole = 0.0
        for n in range(size):
            if accepting[front[n]]:
                whole += count[front[n]]
            count[front[n]] = 0.0
        if whole > 0.0:
            out[d] = math.log(whole) + scale
    return out


@njit(cache=True)
def ambiguous(ptr, classes, target, accepting, most_pairs):
    """Decide whether some sequence has two accepting paths, on the product of the automaton with itself.

    Two paths that part at some state are followed as a pair of different states; they are two accepting paths of one
    sequence when the pair comes together again, or both accept.

    Args:
        ptr: moves of state `q` are `ptr[q]:ptr[q + 1]` of the next two; every state is reached and can accept.
        classes: the class of each move, ascending for each state.
        target: where it leads.
        accepting: bool `[states]`.
        most_pairs: that may be visited.

    Returns:
        1 if there is, 0 if not, -1 where the budget ends.
    """
    states = np.int64(accepting.size)
    seen = {np.int64(-1)}  # an element, for its type
    stack = [np.int64(-1)]
    stack.pop()
    for q in range(states):
        found = _step_pair(q, q, ptr, classes, target, accepting, states, seen, stack)
        if found:
            return 1
    while len(stack) > 0:
        pair = stack.pop()
        if _step_pair(pair // states, pair % states, ptr, classes, target, accepting, states, seen, stack):
            return 1
        if len(seen) > most_pairs:
            return -1
    return 0


@njit(cache=True)
def _step_pair(p, q, ptr, classes, target, accepting, states, seen, stack):
    """Visit the pairs that one move leads to; return whether one of them completes two paths."""
    a, b = ptr[p], ptr[q]
    while a < ptr[p + 1] and b < ptr[q + 1]:
        if classes[a] < classes[b]:
            a += 1
            continue
        if classes[b] < classes[a]:
            b += 1
            continue
        stop = b
        while stop < ptr[q + 1] and classes[stop] == classes[a]:
            r, s = target[a], target[stop]
            stop += 1
            if r == s:
                if p != q:
                    return True
                continue
            if accepting[r] and accepting[s]:
                return True
            pair = min(r, s) * states + max(r, s)
            if pair not in seen:
                seen.add(pair)
                stack.append(pair)
        a += 1
    return False
