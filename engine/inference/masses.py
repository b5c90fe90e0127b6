"""The one pass over the vocabulary: masses of token classes, and what the tokens of a class weigh in groups.

A weight is `exp` of a logit's distance to the largest of its own class, so however peaked a row is, no class loses
digits. What is noted of each group lets later choices (`tokens.py`) look into few of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.inference.vector_math import FAST, LEAST, exp, larger, log
from engine.inference.wide import BASE_LOG, BIG, DOWN, NEVER

IMPOSSIBLE = -1e6
"""A tempered logit so far below its row's largest means `-inf`: models write -1e9, or the least float32, for it."""
_PLAIN = -80.0
"""Where no class of a row has a largest tempered logit below this, every mass has the exponent 0."""


@njit(cache=True, error_model="numpy")
def class_masses(logits, canvas, mask_id, scales, token_class, groups):
    """Sum a mean field over the tokens of each class, at each of some temperatures.

    Args:
        logits: `[length vocab]`.
        canvas: int32 `[length]`; a position that isn't masked is a point mass on the class of its token.
        mask_id: the id that stands on masked positions.
        scales: `[temperatures]` of the type of `logits`, one over each temperature.
        token_class: int32 `[vocab]`.
        groups: `TokenGroups`.

    Returns:
        `(unsound, masked, of_classes, of_positions, of_groups)`: how many rows give no mean field, since a logit is NaN
        or infinite or all are impossible, and int64 `[rows]`, the masked positions, ascending.

        `of_classes` is `(m, k, log_mass, mean_log, best)`, each `[temperatures length classes]`: masses as numbers,
        their logarithm, the mean of `log p` over each class under `p` (0 where it has no mass), and the largest
        tempered logit of each class relative to its row's largest.

        `of_positions` is `(entropy, log_total, largest)`: the entropy of the mean field `[temperatures length]`, the
        log of the sum of `exp(scale · (logits − largest))`, `[temperatures rows]`, and the largest logit, `[rows]`, not
        finite where the row is unsound.

        `of_groups` is `(weight, peak)`, of the type of `logits`: the sum of each group's weights relative to the
        largest logit of its class, `[temperatures rows groups]`, and the largest logit of each group, `[rows groups]`.
    """
    ptr, tokens, group_ptr, group_class = groups
    masked = np.flatnonzero(canvas == mask_id)
    temperatures, classes, rows = scales.size, ptr.size - 1, masked.size
    shape = (temperatures, canvas.size, classes)
    m, k = np.zeros(shape), np.full(shape, NEVER, np.int32)
    log_mass, mean_log, best = np.full(shape, -np.inf), np.zeros(shape), np.full(shape, -np.inf)
    entropy, log_total = np.zeros(shape[:2]), np.zeros((temperatures, rows))
    largest = np.full(rows, np.nan)
    group_weight = np.empty((temperatures, rows, group_class.size), logits.dtype)
    group_peak = np.empty((rows, group_class.size), logits.dtype)
    values, distance = np.empty(tokens.size, logits.dtype), np.empty(tokens.size, logits.dtype)
    weight = np.empty(tokens.size, logits.dtype)
    total, peak = np.empty(classes), np.empty(classes, logits.dtype)
    row, unsound = 0, 0
    for i in range(canvas.size):
        if canvas[i] == mask_id:
            if _sound(logits[i]):
                _gather(logits[i], tokens, values)
                _peaks(ptr, group_ptr, values, group_peak[row], peak)
                largest[row] = peak.max()
                for n in range(temperatures):
                    _distances(ptr, scales[n], values, peak, distance)
                    _exponentials(distance, weight)
                    _sums(ptr, group_ptr, distance, weight, group_weight[n, row], total, mean_log[n, i])
                    out = m[n, i], k[n, i], log_mass[n, i], mean_log[n, i], best[n, i]
                    log_total[n, row], entropy[n, i] = _finish_row(scales[n], largest[row], peak, total, out)
            unsound += not np.isfinite(largest[row])
            row += 1
        elif canvas[i] < token_class.size:
            c = token_class[canvas[i]]
            m[:, i, c], k[:, i, c], log_mass[:, i, c], best[:, i, c] = 1.0, 0, 0.0, 0.0
    of_classes, of_positions = (m, k, log_mass, mean_log, best), (entropy, log_total, largest)
    return unsound, masked, of_classes, of_positions, (group_weight, group_peak)


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
def _peaks(ptr, group_ptr, values, group_peak, peak):
    """Fill in the largest logit of each group and class; `-inf` for a class without tokens."""
    for c in range(peak.size):
        begin, stop = ptr[c], ptr[c + 1]
        first, last = group_ptr[c], group_ptr[c + 1]
        peak[c] = -np.inf
        if stop - begin == 1:  # most classes have one token
            peak[c] = group_peak[first] = values[begin]
        elif last - first == 1:
            peak[c] = group_peak[first] = _largest(values[begin:stop])
        elif last > first:
            _group_peaks(values[begin:stop], group_peak[first:last])
            peak[c] = _largest(group_peak[first:last])


@njit(cache=True, fastmath=FAST)
def _largest(values):
    most = values[0]
    for n in range(1, values.size):
        most = larger(most, values[n])
    return most


@njit(cache=True, fastmath=FAST)
def _group_peaks(values, out):
    stride = out.size
    out[:] = values[:stride]
    for begin in range(stride, values.size, stride):
        _raise_to(out, values[begin : begin + stride])


@njit(cache=True, fastmath=FAST)
def _raise_to(out, values):
    for g in range(values.size):
        out[g] = larger(out[g], values[g])


@njit(cache=True, fastmath=FAST)
def _distances(ptr, scale, values, peak, out):
    """Fill in `scale` times the distance of each logit to its class's largest, at least `LEAST`."""
    for c in range(peak.size):
        begin, stop = ptr[c], ptr[c + 1]
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
def _sums(ptr, group_ptr, distance, weight, group_weight, total, moment):
    """Fill in the sum of the weights of each group and class, and of weight times its logarithm for each class."""
    for c in range(total.size):
        begin, stop = ptr[c], ptr[c + 1]
        first, last = group_ptr[c], group_ptr[c + 1]
        if stop - begin == 1:
            group_weight[first] = total[c] = 1.0
            moment[c] = 0.0
            continue
        total[c], moment[c] = _sum(weight[begin:stop], distance[begin:stop])
        if last - first == 1:
            group_weight[first] = total[c]
        elif last > first:
            _group_sums(weight[begin:stop], group_weight[first:last])


@njit(cache=True, fastmath=FAST)
def _sum(weight, distance):
    total, moment = 0.0, 0.0
    for t in range(weight.size):
        total += np.float64(weight[t])
        moment += np.float64(weight[t] * distance[t])
    return total, moment


@njit(cache=True, fastmath=FAST)
def _group_sums(values, out):
    stride = out.size
    out[:] = values[:stride]
    for begin in range(stride, values.size, stride):
        _add_to(out, values[begin : begin + stride])


@njit(cache=True, fastmath=FAST)
def _add_to(out, values):
    for g in range(values.size):
        out[g] += values[g]


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
