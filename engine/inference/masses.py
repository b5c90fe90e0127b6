"""The one pass over the vocabulary: masses of token classes, and what the tokens of a class weigh in blocks.

A weight is `exp` of a logit's distance to the largest of its own class, so however peaked a row is, no class loses
digits. What is noted of each block lets later choices (`tokens.py`) look into few of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.inference.vector_math import FAST, LEAST, exp, larger, largest_of, log
from engine.inference.wide import BASE_LOG, BIG, DOWN, NEVER

IMPOSSIBLE = -1e6
"""A tempered logit so far below its row's largest means `-inf`: models write -1e9, or the least float32, for it."""
_APART = 256
"""Numbers of room behind an array."""
_PLAIN = -80.0
"""Where no class of a row has a largest tempered logit below this, every mass has the exponent 0."""


@njit(cache=True, error_model="numpy")
def class_masses(logits, canvas, mask_id, scales, token_class, blocks):
    """Sum a mean field over the tokens of each class, at each of some temperatures.

    Args:
        logits: `[length vocab]`.
        canvas: int32 `[length]`; a position that isn't masked is a point mass on the class of its token.
        mask_id: the id that stands on masked positions.
        scales: `[temperatures]` of the type of `logits`, one over each temperature.
        token_class: int32 `[vocab]`.
        blocks: `TokenBlocks`.

    Returns:
        `(unsound, masked, of_classes, of_positions, of_blocks)`: how many rows give no mean field, since a logit is NaN
        or infinite or all are impossible, and int64 `[rows]`, the masked positions, ascending.

        `of_classes` is `(m, k, log_mass, mean_log, best)`, each `[temperatures length classes]`: masses as numbers,
        their logarithm, the mean of `log p` over each class under `p` (0 where it has no mass), and the largest
        tempered logit of each class relative to its row's largest.

        `of_positions` is `(entropy, log_total, largest)`: the entropy of the mean field `[temperatures length]`, the
        log of the sum of `exp(scale · (logits − largest))`, `[temperatures rows]`, and the largest logit, `[rows]`, not
        finite where the row is unsound.

        `of_blocks` is `(weight, peak)`, of the type of `logits`: the sum of each block's weights relative to the
        largest logit of its class, `[temperatures rows blocks]`, and the largest logit of each block, `[rows blocks]`.
    """
    tokens, block_ptr, block_class, class_blocks = blocks
    masked = np.flatnonzero(canvas == mask_id)
    temperatures, classes, rows = scales.size, class_blocks.size - 1, masked.size
    shape = (temperatures, canvas.size, classes)
    m, k = _apart(shape, 0.0), _apart(shape, np.int32(NEVER))
    log_mass, mean_log, best = _apart(shape, -np.inf), _apart(shape, 0.0), _apart(shape, -np.inf)
    entropy, log_total = np.zeros(shape[:2]), np.zeros((temperatures, rows))
    largest = np.full(rows, np.nan)
    zero = logits.dtype.type(0.0)
    block_weight, block_peak = (
        _apart((temperatures, rows, block_class.size), zero),
        _apart((rows, block_class.size), zero),
    )
    values, distance, weight = _apart((tokens.size,), zero), _apart((tokens.size,), zero), _apart((tokens.size,), zero)
    total, peak = _apart((classes,), 0.0), _apart((classes,), zero)
    row, unsound = 0, 0
    for i in range(canvas.size):
        if canvas[i] == mask_id:
            if _sound(logits[i]):
                _gather(logits[i], tokens, values)
                _peaks(class_blocks, block_ptr, values, block_peak[row], peak)
                largest[row] = largest_of(peak)
                for n in range(temperatures):
                    _distances(class_blocks, block_ptr, scales[n], values, peak, distance)
                    _exponentials(distance, weight)
                    _sums(class_blocks, block_ptr, distance, weight, block_weight[n, row], total, mean_log[n, i])
                    out = m[n, i], k[n, i], log_mass[n, i], mean_log[n, i], best[n, i]
                    log_total[n, row], entropy[n, i] = _finish_row(scales[n], largest[row], peak, total, out)
            unsound += not np.isfinite(largest[row])
            row += 1
        elif canvas[i] < token_class.size:
            c = token_class[canvas[i]]
            m[:, i, c], k[:, i, c], log_mass[:, i, c], best[:, i, c] = 1.0, 0, 0.0, 0.0
    of_classes, of_positions = (m, k, log_mass, mean_log, best), (entropy, log_total, largest)
    return unsound, masked, of_classes, of_positions, (block_weight, block_peak)


@njit(cache=True)
def _apart(shape, value):
    """Return an array full of a value, and away from all others.

    Compiled loops over vectors are left for plain ones, which round otherwise, where two arrays begin within some
    hundred bytes of each other; that would leave the last bits to the allocator.
    """
    size = 1
    for n in shape:
        size *= n
    return np.full(size + _APART, value)[:size].reshape(shape)


@njit(cache=True, fastmath={"reassoc"})
def _sound(values):
    """Whether no value is NaN or +inf: the sum then is neither."""
    total = values[0]
    for v in range(1, values.size):
        total += values[v]
    return total < np.inf


@njit(cache=True)
def _gather(row, tokens, out):
    for t in range(tokens.size):
        out[t] = row[tokens[t]]


@njit(cache=True, fastmath=FAST)
def _peaks(class_blocks, block_ptr, values, block_peak, peak):
    """Fill in the largest logit of each block and class; `-inf` for a class without tokens."""
    for c in range(peak.size):
        first, last = class_blocks[c], class_blocks[c + 1]
        if last - first == 1 and block_ptr[last] - block_ptr[first] == 1:  # most classes have one token
            peak[c] = block_peak[first] = values[block_ptr[first]]
            continue
        peak[c] = -np.inf
        for b in range(first, last):
            block_peak[b] = largest_of(values[block_ptr[b] : block_ptr[b + 1]])
            peak[c] = larger(peak[c], block_peak[b])


@njit(cache=True, fastmath=FAST)
def _distances(class_blocks, block_ptr, scale, values, peak, out):
    """Fill in `scale` times the distance of each logit to its class's largest, at least `LEAST`."""
    for c in range(peak.size):
        begin, stop = block_ptr[class_blocks[c]], block_ptr[class_blocks[c + 1]]
        if stop - begin == 1:
            out[begin] = 0.0
        else:
            _relative(values[begin:stop], peak[c], scale, out[begin:stop])


@njit(cache=True, fastmath=FAST)
def _relative(values, peak, scale, out):
    least = values.dtype.type(LEAST)
    base = larger(peak, values.dtype.type(-3e38))
    for t in range(values.size):
        out[t] = larger((values[t] - base) * scale, least)


@njit(cache=True, fastmath=FAST)
def _exponentials(distance, weight):
    for t in range(distance.size):
        weight[t] = exp(distance[t])


@njit(cache=True, fastmath=FAST)
def _sums(class_blocks, block_ptr, distance, weight, block_weight, total, moment):
    """Fill in the sum of the weights of each block and class, and of weight times its logarithm for each class."""
    for c in range(total.size):
        total[c], moment[c] = 0.0, 0.0
        for b in range(class_blocks[c], class_blocks[c + 1]):
            begin, stop = block_ptr[b], block_ptr[b + 1]
            if stop - begin == 1:  # most classes have one token
                w, x = np.float64(weight[begin]), np.float64(weight[begin] * distance[begin])
            else:
                w, x = _sum(weight[begin:stop], distance[begin:stop])
            block_weight[b] = w
            total[c] += w
            moment[c] += x


@njit(cache=True, fastmath=FAST)
def _sum(weight, distance):
    total, moment = 0.0, 0.0
    for t in range(weight.size):
        total += np.float64(weight[t])
        moment += np.float64(weight[t] * distance[t])
    return total, moment


@njit(cache=True, fastmath={"reassoc", "nsz"})
def _least_possible(best):
    """Return the smallest of some scores of which some are -inf; 0 where all are."""
    least = 0.0
    for c in range(best.size):
        x = best[c] if best[c] > -np.inf else 0.0
        least = x if x < least else least
    return least


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _finish_row(scale, highest, peak, total, out):
    """Fill in what `of_classes` has of a row, in place of the sum of weight times its logarithm in `mean_log`.

    The loops have no branches, so that they run over vectors; a class without mass has any finite numbers until the
    last line that it meets.
    """
    m, k, log_mass, mean_log, best = out
    if highest == -np.inf:
        return 0.0, 0.0
    sum_of_all = 0.0
    for c in range(total.size):
        x = (np.float64(peak[c]) - highest) * np.float64(scale)
        possible = x >= IMPOSSIBLE
        best[c] = x if possible else -np.inf
        # What is below e^-700 doesn't show in the sum.
        m[c] = total[c] * exp(max(x, -700.0))
        sum_of_all += m[c]
    log_total, plain, scaled = log(sum_of_all), _least_possible(best) > _PLAIN, 1.0 / sum_of_all
    entropy = 0.0
    for c in range(total.size):
        possible = best[c] > -np.inf
        level = best[c] - log_total if possible else 0.0
        mean = mean_log[c] / total[c] + level
        log_m = log(total[c]) + level
        entropy -= m[c] * scaled * mean if possible else 0.0
        log_mass[c] = log_m if possible else -np.inf
        mean_log[c] = mean if possible else 0.0
        m[c] = m[c] * scaled if possible else 0.0
        k[c] = 0 if possible else NEVER
    if not plain:
        _wide_masses(total, best, log_total, m, k)
    return log_total, entropy


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _wide_masses(total, best, log_total, m, k):
    """Fill in masses of any size as numbers."""
    for c in range(total.size):
        possible = best[c] > -np.inf
        level = best[c] - log_total if possible else 0.0
        exponent = np.floor(level / BASE_LOG + 0.5)
        x = total[c] * exp(level - exponent * BASE_LOG)
        exponent = exponent + 1.0 if x >= BIG else exponent
        x = x * DOWN if x >= BIG else x
        m[c] = x if possible else 0.0
        k[c] = np.int32(exponent) if possible else NEVER
