"""Compiled loops of the baselines, which draw token by token and not a sequence.

A token is the largest of its log probability and Gumbel noise (Maddison et al. 2014). Nearly no token comes near the
largest, and which don't is seen without the two logarithms that the noise takes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine import noise
from engine.inference.vector_math import FAST, LEAST, exp, larger

_ROUNDING = 1.0001
"""More than float32 and both exponentials can err by."""
_ONE = np.uint32(1)


@njit(cache=True)
def independent(field, canvas, allowed, token_class, moves, start, accepting, noisy, seed, step, budget):
    """Draw all masked positions until a draw is accepted: from left to right, so that one that dies ends early.

    Args:
        field: logits `[length vocab]`, masked positions, scale and largest logits, as in `Potential`.
        canvas: int32 `[length]`.
        allowed: bool `[length classes]`, what may be drawn.
        token_class: int32 `[vocab]`.
        moves: `(class_ptr, class_source, class_target)`, as in `TokenAutomaton`.
        start: the start state.
        accepting: bool `[states]`.
        noisy: whether noise is added, in float64.
        seed: of the noise.
        step: of the noise.
        budget: joint draws; the last one is made to its end, and stands whatever it is.

    Returns:
        int32 `[length]` tokens, and how many joint draws were made.
    """
    masked, out = field[1], canvas.copy()
    weight, u = np.empty(token_class.size, field[0].dtype), np.empty(token_class.size)
    here, there = np.zeros(accepting.size, np.bool_), np.zeros(accepting.size, np.bool_)
    for attempt in range(budget):
        here[:] = False
        here[start] = alive = True
        row = 0
        for i in range(canvas.size):
            if not alive and attempt + 1 < budget:
                break
            if row < masked.size and masked[row] == i:
                out[i] = _token(field, row, allowed[i], token_class, noisy, seed, step, attempt, weight, u)
                row += 1
            if alive and budget > 1:
                alive = _move(moves, token_class, out[i], here, there)
                here, there = there, here
        if alive and (here & accepting).any():
            return out, attempt + 1
    return out, budget


@njit(cache=True)
def _move(moves, token_class, token, here, there):
    """Fill in the states that a token leads to; return whether there is one."""
    ptr, source, target = moves
    there[:] = False
    if token >= token_class.size:
        return False
    c = token_class[token]
    moved = False
    for m in range(ptr[c], ptr[c + 1]):
        if here[source[m]]:
            there[target[m]] = moved = True
    return moved


@njit(cache=True)
def _token(field, row, allowed, token_class, noisy, seed, step, attempt, weight, u):
    """Return the lowest id among the allowed tokens with the largest score; 0 where no allowed one is possible."""
    logits, masked, scale, largest = field
    i = masked[row]
    if noisy:
        stream = noise.GUMBEL + attempt
        _perturb(logits[i], scale, largest[row], (seed, step, stream), i * token_class.size, weight, u)
    return _best(logits[i], scale, largest[row], allowed, token_class, noisy, weight, u)[0]


@njit(cache=True)
def _perturb(row, scale, largest, stream, first, weight, u):
    """Prepare a noisy row of logits: each token's probability relative to the largest, and its uniform number.

    Args:
        row: float `[vocab]`.
        scale: of the type of `row`, one over the temperature.
        largest: its largest entry.
        stream: seed, step and stream of the noise.
        first: index of the noise of token 0.
        weight: of the type of `row`, to be filled in; a little too large where it is tiny.
        u: float64, to be filled in.
    """
    _weigh(row, scale, largest, weight)
    for v in range(u.size):
        u[v] = noise.uniform(stream[0], stream[1], stream[2], first + v)


@njit(cache=True, fastmath=FAST)
def _weigh(row, scale, largest, weight):
    least, top = row.dtype.type(LEAST), row.dtype.type(largest)
    for v in range(weight.size):
        weight[v] = exp(larger((row[v] - top) * scale, least))


@njit(cache=True)
def _best(row, scale, largest, allowed, token_class, noisy, weight, u):
    """Return the lowest id among the allowed tokens with the largest score, and that score: 0 and `-inf` for none.

    Args:
        row, scale, largest, weight, u: as of `_perturb`; the last two are not read where `noisy` is false.
        allowed: bool `[classes]`.
        token_class: int32 `[vocab]`.
        noisy: whether noise is added, in float64.
    """
    peak = np.float64(largest) * scale
    most, bar, chosen = -np.inf, 0.0, 0
    for v in range(token_class.size):
        if noisy and _below(weight[v], u[v], bar):
            continue
        if allowed[token_class[v]] and row[v] > -np.inf:
            x = np.float64(row[v]) * scale
            if noisy:
                x = _with_noise(x, u[v])
            if x > most:
                most, chosen = x, v
                bar = math.exp(most - peak)
    return chosen, most


@njit(cache=True, inline="always")
def _below(weight, u, bar):
    """Whether a noisy score is surely below another, whose `exp` relative to the largest logit is `bar`.

    `−log(−log u) ≤ −log(1 − u)`, so that `weight / (1 − u)` bounds the score's.
    """
    return weight * _ROUNDING <= (1.0 - u) * bar


@njit(cache=True, inline="always")
def _with_noise(x, u):
    """Add Gumbel noise to a score."""
    return x - math.log(-math.log(u))


@njit(cache=True)
def looking_ahead(order, masked, log_p, left, edges, labels, token_class, start, accepting, dead, noisy, tokens):
    """Draw masked positions in an order, each so that a completion exists; return how many proposals were checked.

    Args:
        order: the rows of `log_p` as they are drawn.
        masked: int64 `[rows]`, their positions.
        log_p: float32 `[rows vocab]`.
        left: bool `[length classes]`, the classes that are left at each position; those of a drawn one are taken out.
        edges: `(ptr, target, label)`.
        labels: `(label_ptr, label_class)`.
        token_class: int32 `[vocab]`.
        start: the start state.
        accepting: bool `[states]`.
        dead: whether nothing is accepted from the start.
        noisy: whether noise is added, its seed and its step.
        tokens: int32 `[length]`, to be filled in.
    """
    open_labels = _open(left, labels)
    ahead = np.zeros((left.shape[0] + 1, accepting.size), np.bool_)
    behind = np.zeros(ahead.shape, np.bool_)
    ahead[0, start], behind[-1] = True, accepting
    for i in range(left.shape[0]):
        ahead[i + 1] = _ahead(edges, open_labels[i], ahead[i])
    for i in range(left.shape[0] - 1, -1, -1):
        behind[i] = _behind(edges, open_labels[i], behind[i + 1])
    allowed, checked = np.ones(left.shape[1], np.bool_), 0
    weight, u = np.empty(token_class.size, log_p.dtype), np.empty(token_class.size)
    for row in order:
        i = masked[row]
        if not dead:
            _completable(edges, labels, open_labels[i], ahead[i], behind[i + 1], allowed)
        tokens[i], passed = _propose(log_p[row], i, allowed, token_class, noisy, weight, u)
        checked += passed + 1
        left[i] = False
        left[i, token_class[tokens[i]]] = True
        _narrow(edges, labels, left[i], i, open_labels, ahead, behind)
    return checked


@njit(cache=True)
def _propose(row, position, allowed, token_class, noisy, weight, u):
    """Return the best token that a completion allows, and how many were proposed before it."""
    is_noisy, seed, step = noisy
    scale, top = row.dtype.type(1.0), row.max()
    if is_noisy:
        _perturb(row, scale, top, (seed, step, noise.GUMBEL), position * row.size, weight, u)
    chosen, most = _best(row, scale, top, allowed, token_class, is_noisy, weight, u)
    bar, before = math.exp(most - top), 0
    for v in range(token_class.size):
        if is_noisy and _below(weight[v], u[v], bar):
            continue
        x = np.float64(row[v])
        before += (_with_noise(x, u[v]) if is_noisy else x) > most
    return chosen, before


@njit(cache=True)
def _open(left, labels):
    """Return bool `[length labels]`: whether a label has one of the classes that are left."""
    out = np.zeros((left.shape[0], labels[0].size - 1), np.bool_)
    for i in range(left.shape[0]):
        _open_at(left[i], labels, out[i])
    return out


@njit(cache=True)
def _open_at(left, labels, out):
    label_ptr, label_class = labels
    for b in range(out.size):
        out[b] = False
        for p in range(label_ptr[b], label_ptr[b + 1]):
            out[b] |= left[label_class[p]]


@njit(cache=True)
def _completable(edges, labels, open_labels, here, there, allowed):
    """Fill in the classes that move a state that is reached to one that acceptance is reached from.

    Those of an open label that have no mass are among them: beside another that has, they are never the best.
    """
    ptr, target, label = edges
    label_ptr, label_class = labels
    allowed[:] = False
    for q in range(here.size):
        if here[q]:
            for e in range(ptr[q], ptr[q + _ONE]):
                if there[target[e]] and open_labels[label[e]]:
                    for p in range(label_ptr[label[e]], label_ptr[label[e] + _ONE]):
                        allowed[label_class[p]] = True


@njit(cache=True)
def _ahead(edges, open_labels, here):
    """Return bool `[states]`: those that the states `here` move to."""
    ptr, target, label = edges
    out = np.zeros(here.size, np.bool_)
    for q in range(here.size):
        if here[q]:
            for e in range(ptr[q], ptr[q + _ONE]):
                out[target[e]] |= open_labels[label[e]]
    return out


@njit(cache=True)
def _behind(edges, open_labels, there):
    """Return bool `[states]`: those that move to one of the states `there`."""
    ptr, target, label = edges
    out = np.zeros(there.size, np.bool_)
    for q in range(there.size):
        for e in range(ptr[q], ptr[q + _ONE]):
            out[q] |= open_labels[label[e]] and there[target[e]]
    return out


@njit(cache=True)
def _narrow(edges, labels, left, i, open_labels, ahead, behind):
    """Draw the consequences of fewer classes at a position, both ways and no farther than they go."""
    _open_at(left, labels, open_labels[i])
    for at in range(i, open_labels.shape[0]):
        states = _ahead(edges, open_labels[at], ahead[at])
        if (states == ahead[at + 1]).all():
            break
        ahead[at + 1] = states
    for at in range(i, -1, -1):
        states = _behind(edges, open_labels[at], behind[at + 1])
        if (states == behind[at]).all():
            break
        behind[at] = states
