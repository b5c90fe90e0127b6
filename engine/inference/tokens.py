"""Compiled loops over the vocabulary: masses of token classes, the most probable tokens, draws of tokens.

Each goes over a row of logits once, class by class. A weight is `exp` of a logit's distance to the largest of its own
class, so however peaked a row is, no class loses digits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.inference.vector_math import FAST, LEAST, exp, larger, log
from engine.inference.wide import BASE_LOG, BIG, DOWN, NEVER

IMPOSSIBLE = -1e6
"""A tempered logit so far below its row's largest means `-inf`: models write -1e9, or the least float32, for it."""
_GROUP = 16
"""Tokens that one maximum stands for in `top_tokens`: few, so that a group that passes the bar is cheap to scan."""
_BLOCK = 512
"""Tokens whose weights are summed together in `draw_tokens`, so that one block alone is walked token by token."""


@njit(cache=True, error_model="numpy")
def class_masses(logits, canvas, masked, scale, token_class, ptr, tokens):
    """Sum a mean field over the tokens of each class.

    Args:
        logits: `[length vocab]`.
        canvas: int32 `[length]`; a position that isn't masked is a point mass on the class of its token.
        masked: int64 `[rows]`, the masked positions, ascending.
        scale: of the type of `logits`, one over the temperature.
        token_class: int32 `[vocab]`.
        ptr, tokens: the tokens of each class, as in `Edges`.

    Returns:
        `(m, k, log_mass, mean_log, best, entropy, largest, log_total)`. `[length classes]`: masses as numbers, their
        logarithm, the mean of `log p` over each class under `p` (0 where it has no mass), and the largest tempered
        logit of each class relative to its row's largest. `[length]`: the entropy of the mean field. `[rows]`: the
        largest logit, not finite where the row gives no mean field, and the log of the sum of
        `exp(scale · (logits − largest))`.
    """
    shape = (canvas.size, ptr.size - 1)
    m, k = np.zeros(shape), np.full(shape, NEVER, np.int32)
    log_mass, mean_log, best = np.full(shape, -np.inf), np.zeros(shape), np.full(shape, -np.inf)
    entropy = np.zeros(canvas.size)
    largest, log_total = np.full(masked.size, np.nan), np.zeros(masked.size)
    distance, weight = np.empty(tokens.size, logits.dtype), np.empty(tokens.size, logits.dtype)
    total, peak = np.empty(shape[1]), np.empty(shape[1], logits.dtype)
    row = 0
    for i in range(canvas.size):
        if row < masked.size and masked[row] == i:
            if _sound(logits[i]):
                _sum_classes(logits[i], scale, ptr, tokens, distance, weight, peak, total, mean_log[i])
                largest[row], log_total[row], entropy[i] = _finish_row(
                    scale, peak, total, mean_log[i], m[i], k[i], log_mass[i], best[i]
                )
            row += 1
        elif canvas[i] < token_class.size:
            c = token_class[canvas[i]]
            m[i, c], k[i, c], log_mass[i, c], best[i, c] = 1.0, 0, 0.0, 0.0
    return m, k, log_mass, mean_log, best, entropy, largest, log_total


@njit(cache=True, fastmath={"reassoc"})
def _sound(values):
    """Whether no value is NaN or +inf: the sum then is neither."""
    total = values[0]
    for v in range(1, values.size):
        total += values[v]
    return total < np.inf


@njit(cache=True, fastmath=FAST)
def _sum_classes(row, scale, ptr, tokens, distance, weight, peak, total, moment):
    """For each class fill its largest logit, the sum of its weights, and the sum of weight times its logarithm."""
    for t in range(tokens.size):
        distance[t] = row[tokens[t]]
    for c in range(ptr.size - 1):
        begin, stop = ptr[c], ptr[c + 1]
        if stop - begin == 1:  # most classes have one token
            peak[c], distance[begin] = distance[begin], 0.0
        else:
            peak[c] = _relative_to_largest(distance[begin:stop], scale)
    for t in range(tokens.size):
        weight[t] = exp(distance[t])
    for c in range(ptr.size - 1):
        begin, stop = ptr[c], ptr[c + 1]
        total[c], moment[c] = 1.0, 0.0
        if stop - begin != 1:
            total[c], moment[c] = _sums(weight[begin:stop], distance[begin:stop])


@njit(cache=True, fastmath=FAST)
def _relative_to_largest(values, scale):
    """Replace values by `scale` times their distance to the largest, at least `LEAST`; return the largest."""
    least = values.dtype.type(LEAST)
    peak = values.dtype.type(-np.inf)
    for t in range(values.size):
        peak = larger(peak, values[t])
    base = larger(peak, values.dtype.type(-3e38))
    for t in range(values.size):
        values[t] = larger((values[t] - base) * scale, least)
    return peak


@njit(cache=True, fastmath=FAST)
def _sums(weight, distance):
    total, moment = 0.0, 0.0
    for t in range(weight.size):
        total += np.float64(weight[t])
        moment += np.float64(weight[t] * distance[t])
    return total, moment


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _finish_row(scale, peak, total, mean_log, m, k, log_mass, best):
    """Normalise the classes of a row; `mean_log` comes in as the sum of weight times its logarithm.

    The loops have no branches, so that they run over vectors; a class without mass has any finite numbers until the
    last line that it meets.
    """
    highest = np.float64(peak.max())
    if highest == -np.inf:
        return highest, 0.0, 0.0
    sum_of_all = 0.0
    for c in range(total.size):
        x = (np.float64(peak[c]) - highest) * np.float64(scale)
        best[c] = x if x >= IMPOSSIBLE else -np.inf
        # What is below e^-700 doesn't show in the sum.
        sum_of_all += total[c] * exp(max(x, -700.0))
    log_total = log(sum_of_all)
    entropy = 0.0
    for c in range(total.size):
        possible = best[c] > -np.inf
        level = best[c] - log_total if possible else 0.0
        mean = mean_log[c] / total[c] + level
        log_m = log(total[c]) + level
        exponent = np.floor(level / BASE_LOG + 0.5)
        x = total[c] * exp(level - exponent * BASE_LOG)
        exponent = exponent + 1.0 if x >= BIG else exponent
        x = x * DOWN if x >= BIG else x
        entropy -= exp(max(log_m, -700.0)) * mean if possible else 0.0
        m[c] = x if possible else 0.0
        k[c] = np.int32(exponent) if possible else NEVER
        log_mass[c] = log_m if possible else -np.inf
        mean_log[c] = mean if possible else 0.0
    return highest, log_total, entropy


@njit(cache=True)
def top_tokens(logits, canvas, masked, scale, largest, log_total, best, log_lift, token_class, ptr, tokens, top):
    """Return the `top` most probable tokens of each position under the mean field and under the posterior.

    The largest scores of groups of tokens set a bar, and a group below it is passed over whole. Under the mean field
    the groups are tokens a stride apart; under the posterior they are the allowed classes.

    Args:
        logits, canvas, masked, scale, largest, log_total, best, ptr, tokens: as in `class_masses`.
        log_lift: `[length classes]`.
        token_class: int32 `[vocab]`.
        top: how many.

    Returns:
        `(ids, log_mean_field, log_posterior)`, each `[length 2 top]`, descending; ids -1 where there are fewer. A
        committed position has its own token.
    """
    ids = np.full((log_lift.shape[0], 2, top), -1, np.int32)
    log_p = np.full((log_lift.shape[0], 2, top), -np.inf, np.float32)
    log_q = np.full((log_lift.shape[0], 2, top), -np.inf, np.float32)
    group_best = np.empty(_groups(tokens.size), logits.dtype)
    class_best, candidate, score = np.empty(ptr.size - 1), np.empty(tokens.size), np.empty(top)
    candidate_id = np.empty(tokens.size, np.int32)
    nothing = log_lift.max() == -np.inf
    row = -1
    for i in range(canvas.size):
        if row + 1 == masked.size or masked[row + 1] != i:
            ids[i, :, 0] = canvas[i]
            log_p[i, :, 0] = 0.0
            log_q[i, :, 0] = -np.inf if nothing else 0.0
            continue
        row += 1
        values = logits[i]
        _group_maxima(values[: tokens.size], group_best)
        bar = _bar(group_best, largest[row], top)
        score[:] = -np.inf
        for g in range(group_best.size):
            if group_best[g] > bar:
                for v in range(g, tokens.size, group_best.size):
                    if values[v] > bar:
                        bar = max(bar, _insert(ids[i, 0], score, v, np.float64(values[v])))
        highest = -np.inf
        for c in range(class_best.size):
            class_best[c] = best[i, c] + log_lift[i, c]
            highest = max(highest, class_best[c])
        bar = _bar(class_best, highest, top)
        count = 0
        for c in range(class_best.size):
            if class_best[c] > bar:
                begin, stop = ptr[c], ptr[c + 1]
                end = count + stop - begin
                _shift(values, tokens[begin:stop], largest[row], scale, log_lift[i, c], candidate[count:end])
                candidate_id[count:end] = tokens[begin:stop]
                count = end
        bar = _bar(candidate[:count], highest, top)
        score[:] = -np.inf
        for n in range(count):
            if candidate[n] > bar:
                bar = max(bar, _insert(ids[i, 1], score, candidate_id[n], candidate[n]))
        for n in range(2 * top):
            v = ids[i, n // top, n % top]
            if v >= 0:
                x = (np.float64(values[v]) - largest[row]) * scale - log_total[row]
                log_p[i, n // top, n % top] = x
                log_q[i, n // top, n % top] = x + log_lift[i, token_class[v]]
    return ids, log_p, log_q


@njit(cache=True)
def _groups(vocab):
    """Return how many groups there are: one for about `_GROUP` tokens, and a whole number of vectors of them."""
    return min(-(-vocab // (_GROUP * 32)) * 32, vocab)


@njit(cache=True, fastmath={"nsz", "nnan"})
def _group_maxima(values, out):
    """Fill `out` with the maxima of `values[g], values[g + groups], …`: a loop over vectors, not within them."""
    groups = out.size
    out[:] = values[:groups]
    for begin in range(groups, values.size, groups):
        _raise_to(out, values[begin : begin + groups])


@njit(cache=True, fastmath={"nsz", "nnan"})
def _raise_to(out, values):
    for g in range(values.size):
        out[g] = larger(out[g], values[g])


@njit(cache=True, fastmath={"contract"})
def _shift(values, tokens, largest, scale, log_lift, out):
    """Fill in the posterior's score of each token of a class."""
    for t in range(tokens.size):
        out[t] = (np.float64(values[tokens[t]]) - largest) * np.float64(scale) + log_lift


@njit(cache=True)
def _bar(values, largest, count):
    """Return a number that at least `count` values exceed, close to the largest such; `-inf` where there is none near.

    Counting is a loop over vectors and halving an interval takes few of them; sorting would be neither.
    """
    low, width = -np.inf, 64.0
    if _above(values, largest - width) < count:
        return low
    low = largest - width
    for _ in range(10):
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
    """Put token `v` where it belongs among descending scores, behind its equals; return what the next must pass."""
    r = ids.size - 1
    while r > 0 and score[r - 1] < x:
        ids[r], score[r] = ids[r - 1], score[r - 1]
        r -= 1
    ids[r], score[r] = v, x
    return score[ids.size - 1]


@njit(cache=True, error_model="numpy")
def draw_tokens(logits, canvas, masked, scale, best, largest, classes, rest, ptr, tokens):
    """Draw a token of each masked position's class in proportion to its weight; `rest` is uniform noise.

    The other arguments are those of `class_masses` and what it returns; `classes` and `rest` are `[length]`.
    """
    out = canvas.copy()
    weight = np.empty(logits.shape[1], logits.dtype)
    sums = np.empty(logits.shape[1] // _BLOCK + 1)
    for row in range(masked.size):
        i = masked[row]
        members = tokens[ptr[classes[i]] : ptr[classes[i] + 1]]
        out[i] = members[0]
        if members.size > 1:
            peak = logits.dtype.type(best[i, classes[i]] / np.float64(scale) + largest[row])
            _weights(logits[i], peak, scale, weight)
            goal = rest[i] * _block_sums(weight, members, sums)
            chosen = 0
            for n in range((members.size - 1) // _BLOCK + 1):
                if sums[n] > 0.0:
                    chosen = n
                    if goal < sums[n]:
                        break
                    goal -= sums[n]
            for v in members[chosen * _BLOCK : (chosen + 1) * _BLOCK]:
                if weight[v] > 0.0:
                    out[i] = v
                    goal -= weight[v]
                    if goal < 0.0:
                        break
    return out


@njit(cache=True, fastmath=FAST)
def _weights(row, peak, scale, weight):
    """Fill in each token's weight relative to `peak`, which no token of the class passes; 0 for what is impossible."""
    least, most = row.dtype.type(LEAST), row.dtype.type(0.0)
    for v in range(row.size):
        x = (row[v] - peak) * scale
        w = exp(larger(-larger(-x, most), least))
        weight[v] = w if x > least else most


@njit(cache=True, fastmath=FAST)
def _block_sums(weight, members, sums):
    """Fill in the sum of each block of a class's weights; return the sum of all."""
    whole = 0.0
    for n in range((members.size - 1) // _BLOCK + 1):
        total = 0.0
        for v in members[n * _BLOCK : (n + 1) * _BLOCK]:
            total += np.float64(weight[v])
        sums[n] = total
        whole += total
    return whole


@njit(cache=True)
def best_tokens(edges, labels, path, best, canvas, masked, logits, largest, scale, class_ptr, tokens):
    """Return the best token of each position given its two states; the lowest id among equals: int32 `[length]`.

    Args:
        edges: `(ptr, target, label)`.
        labels: `(label_ptr, label_class)`.
        path: int32 `[boundaries]`.
        best: as `class_masses` returns it; the other arguments are those of `class_masses`.
    """
    ptr, target, label = edges
    label_ptr, label_class = labels
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
        for t in range(class_ptr[chosen], class_ptr[chosen + 1]):
            if (np.float64(logits[i, tokens[t]]) - largest[row]) * np.float64(scale) == best[i, chosen]:
                out[i] = tokens[t]
                break
    return out
