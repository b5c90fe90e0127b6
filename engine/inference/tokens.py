"""Compiled choices of tokens: the most probable ones, draws, the best ones.

Those that follow the pass over the vocabulary look into few blocks of tokens, by what it noted of each (`masses.py`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from engine.inference.masses import IMPOSSIBLE
from engine.inference.vector_math import LEAST, exp, largest_of

_MARGIN = 1e-4
"""More than rounding to float32 can move a score that is near the largest, or, relative to it, a logit."""


@njit(cache=True)
def top_tokens(logits, canvas, masked, scale, largest, log_total, peak, log_lift, possible, token_class, blocks, top):
    """Return the `top` most probable tokens of each position under the mean field and under the posterior.

    The scores of the best tokens of all blocks set a bar, and a block below it is passed over whole.

    Args:
        logits, canvas, masked, scale, token_class, blocks: as in `class_masses`.
        largest, log_total, peak: as it returns them.
        log_lift: `[rows classes]`.
        possible: whether anything is accepted.
        top: how many.

    Returns:
        `(ids, log_mean_field, log_posterior)`, each `[length 2 top]`, descending; ids -1 where there are fewer. A
        committed position has its own token.
    """
    ids = np.full((canvas.size, 2, top), -1, np.int32)
    log_p = np.full((canvas.size, 2, top), -np.inf, np.float32)
    log_q = np.full((canvas.size, 2, top), -np.inf, np.float32)
    # The loop over vectors that counts scores leaves no rest.
    score = np.full(-(-peak.shape[1] // 64) * 64, -np.inf, np.float32)
    none, kept = np.zeros(log_lift.shape[1]), np.empty(top)
    row = 0
    for i in range(canvas.size):
        if row == masked.size or masked[row] != i:
            ids[i, :, 0] = canvas[i]
            log_p[i, :, 0] = 0.0
            log_q[i, :, 0] = 0.0 if possible else -np.inf
            continue
        for law, lift in enumerate((none, log_lift[row])):
            _scores(peak[row], scale, largest[row], lift, blocks[2], score)
            _list_tokens(logits[i], scale, largest[row], blocks, lift, score, ids[i, law], kept)
        for n in range(2 * top):
            v = ids[i, n // top, n % top]
            if v >= 0:
                x = (np.float64(logits[i, v]) - largest[row]) * scale - log_total[row]
                log_p[i, n // top, n % top] = x
                log_q[i, n // top, n % top] = x + log_lift[row, token_class[v]]
        row += 1
    return ids, log_p, log_q


@njit(cache=True, fastmath={"contract"})
def _scores(peak, scale, largest, lift, block_class, out):
    """Fill in the score of the best token of each block, its log probability but for a constant."""
    for b in range(peak.size):
        out[b] = (np.float64(peak[b]) - largest) * np.float64(scale) + lift[block_class[b]]


@njit(cache=True, fastmath={"contract"})
def _list_tokens(values, scale, largest, blocks, lift, score, ids, kept):
    """Fill in the tokens of the largest scores, descending, given the largest of each block."""
    tokens, block_ptr, block_class, _ = blocks
    kept[:] = bar = _bar(score, largest_of(score), ids.size) - _MARGIN
    for b in range(block_class.size):
        if score[b] > bar:
            here = lift[block_class[b]]
            least = values.dtype.type((bar - here) / np.float64(scale) + largest - _MARGIN * max(1.0, abs(largest)))
            for v in tokens[block_ptr[b] : block_ptr[b + 1]]:
                if values[v] > least:
                    distance = (np.float64(values[v]) - largest) * np.float64(scale)
                    x = distance + here
                    if x > kept[ids.size - 1] and distance >= IMPOSSIBLE:
                        _insert(ids, kept, v, x)
            bar = max(bar, kept[ids.size - 1] - _MARGIN)


@njit(cache=True)
def _bar(values, largest, count):
    """Return a number that at least `count` values exceed, close to the largest such; `-inf` where there is none near.

    Counting is a loop over vectors and halving an interval takes few of them; sorting would be neither.
    """
    width = 1.0
    while _above(values, largest - width) < count:
        width *= 2.0
        if width > 64.0:
            return -np.inf
    low = largest - width
    for _ in range(6):
        width *= 0.5
        if _above(values, low + width) >= count:
            low += width
    return low


@njit(cache=True, fastmath={"nsz"})
def _above(values, bar):
    limit = values.dtype.type(bar)
    count = np.int32(0)
    for n in range(values.size):
        count += np.int32(values[n] > limit)
    return count


@njit(cache=True, inline="always")
def _insert(ids, score, v, x):
    """Put token `v` where it belongs among descending scores, behind its equals."""
    r = ids.size - 1
    while r > 0 and score[r - 1] < x:
        ids[r], score[r] = ids[r - 1], score[r - 1]
        r -= 1
    ids[r], score[r] = v, x


@njit(cache=True)
def probabilities(logits, masked, scale, largest, log_total, log_lift, token_class, token_ids):
    """Return float64 `[length]`: the probability of one token a position, 1 where committed.

    It is that of the mean field, or of the posterior where there is `log_lift`; it may be None. The other arguments are
    those of `top_tokens`; an id behind the vocabulary is dead.
    """
    out = np.ones(token_ids.size)
    for row in range(masked.size):
        v, log_p = token_ids[masked[row]], -np.inf
        if v < logits.shape[1]:
            log_p = (np.float64(logits[masked[row], v]) - largest[row]) * np.float64(scale) - log_total[row]
            if log_lift is not None:
                log_p += log_lift[row, token_class[v]]
        # A probability; float32 logits may leave a last digit above 1.
        out[masked[row]] = math.exp(min(log_p, 0.0))
    return out


@njit(cache=True)
def draw_tokens(logits, canvas, masked, scale, peak, weight, classes, rest, blocks):
    """Draw a token of each masked position's class in proportion to its weight; `rest` is uniform noise.

    The block is drawn first, by the sums of the weights in each, then the token within it.

    Args:
        logits, canvas, masked, scale, blocks: as in `class_masses`.
        peak, weight: of the blocks, as it returns them.
        classes: int32 `[rows]`.
        rest: float64 `[rows]`.

    Returns:
        int32 `[length]`.
    """
    tokens, block_ptr, _, class_blocks = blocks
    out = canvas.copy()
    for row in range(masked.size):
        i = masked[row]
        first, last = class_blocks[classes[row]], class_blocks[classes[row] + 1]
        most = largest_of(peak[row, first:last])
        b, goal = _draw_block(weight[row, first:last], peak[row, first:last], scale, most, rest[row])
        members = tokens[block_ptr[first + b] : block_ptr[first + b + 1]]
        out[i] = _draw_member(logits[i], members, scale, most, goal)
    return out


@njit(cache=True)
def _draw_block(weight, peaks, scale, most, u):
    """Return the block that a uniform number picks, and what the weights within it have to make up.

    A block without a possible token has a weight of some e^-87, and rounding must not pick it.
    """
    whole, least = 0.0, weight.dtype.type(LEAST)
    for b in range(weight.size):
        whole += np.float64(weight[b])
    goal, chosen = u * whole, 0
    for b in range(weight.size):
        if (peaks[b] - most) * scale > least:
            chosen = b
            if goal < weight[b]:
                break
            goal -= np.float64(weight[b])
    return chosen, goal


@njit(cache=True)
def _draw_member(values, members, scale, peak, goal):
    """Return the token with which the weights pass `goal`, or the last that is possible."""
    least, chosen = values.dtype.type(LEAST), members[0]
    for v in members:
        x = (values[v] - peak) * scale
        if x > least:
            chosen = v
            goal -= np.float64(exp(x))
            if goal < 0.0:
                break
    return chosen


@njit(cache=True)
def best_tokens(edges, labels, path, best, canvas, masked, logits, largest, scale, blocks):
    """Return the best token of each position given its two states; the lowest id among equals: int32 `[length]`.

    Args:
        edges: `(ptr, target, label)`.
        labels: `(label_ptr, label_class)`.
        path: int32 `[boundaries]`.
        best: as `class_masses` returns it; the other arguments are those of `class_masses`.
    """
    ptr, target, label = edges
    label_ptr, label_class = labels
    tokens, block_ptr, _, class_blocks = blocks
    out = canvas.copy()
    for row in range(masked.size):
        i = masked[row]
        chosen = -1
        for e in range(ptr[path[i]], ptr[path[i] + 1]):
            if target[e] != path[i + 1]:
                continue
            for p in range(label_ptr[label[e]], label_ptr[label[e] + 1]):
                c = label_class[p]
                if chosen < 0 or best[i, c] > best[i, chosen]:
                    chosen = c
        for t in range(block_ptr[class_blocks[chosen]], block_ptr[class_blocks[chosen + 1]]):
            if (np.float64(logits[i, tokens[t]]) - largest[row]) * np.float64(scale) == best[i, chosen]:
                out[i] = tokens[t]
                break
    return out
