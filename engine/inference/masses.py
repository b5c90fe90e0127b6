"""The one pass over the vocabulary: masses of token classes, and what the tokens of a class weigh in blocks.

A weight is `exp` of a logit's distance to the largest of its own class, so however peaked a row is, no class loses
digits. What is noted of each block lets later choices (`tokens.py`) look into few of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.inference.vector_math import FAST, LEAST, exp, larger, largest_of, log
from engine.inference.wide import BASE_LOG, BIG, DOWN, NEVER, add

IMPOSSIBLE = -1e6
"""A tempered logit so far below its row's largest means `-inf`: models write -1e9, or the least float32, for it."""
_APART = 256
"""Numbers of room behind an array."""
_PLAIN = -80.0
"""Where no class of a row has a largest tempered logit below this, every mass has the exponent 0."""


@njit(cache=True, error_model="numpy")
def class_masses(logits, canvas, mask_id, scales, token_class, blocks, labels):
    """Sum a mean field over the tokens of each class, at each of some temperatures, and these over those of each label.

    Args:
        logits: `[length vocab]`.
        canvas: int32 `[length]`; a position that isn't masked is a point mass on the class of its token.
        mask_id: the id that stands on masked positions.
        scales: `[temperatures]` of the type of `logits`, one over each temperature.
        token_class: int32 `[vocab]`.
        blocks: `TokenBlocks`.
        labels: `(label_ptr, label_class)`.

    Returns:
        `(unsound, masked, of_classes, of_labels, of_positions, of_blocks)`: how many rows give no mean field, since a
        logit is NaN or infinite or all are impossible, and int64 `[rows]`, the masked positions, ascending.

        `of_classes` is `(m, k, log_mass, mean_log)`, each `[temperatures rows classes]`: masses as numbers, their
        logarithm, and the mean of `log p` over each class under `p` (0 where it has no mass). `of_labels` are masses as
        numbers, `[temperatures length labels]`.

        `of_positions` is `(entropy, log_total, largest)`: the entropy of the mean field `[temperatures length]`, the
        log of the sum of `exp(scale · (logits − largest))`, `[temperatures rows]`, and the largest logit, `[rows]`, not
        finite where the row is unsound.

        `of_blocks` is `(weight, peak)`, of the type of `logits`: the sum of each block's weights relative to the
        largest logit of its class, `[temperatures rows blocks]`, and the largest logit of each block, `[rows blocks]`.
    """
    tokens, block_ptr, block_class, class_blocks = blocks
    masked = np.flatnonzero(canvas == mask_id)
    temperatures, classes, rows = scales.size, class_blocks.size - 1, masked.size
    kind = logits.dtype
    shape = (temperatures, rows, classes)
    m, k, log_mass, mean_log = (
        _apart(shape, np.float64),
        _apart(shape, np.int32),
        _apart(shape, np.float64),
        _apart(shape, np.float64),
    )
    shape = (temperatures, canvas.size, labels[0].size - 1)
    label_m, label_k = _apart(shape, np.float64), _apart(shape, np.int32)
    entropy, log_total, largest = (
        np.zeros((temperatures, canvas.size)),
        np.zeros((temperatures, rows)),
        np.full(rows, np.nan),
    )
    shape = (temperatures, rows, block_class.size)
    block_weight, block_peak = _apart(shape, kind), _apart(shape[1:], kind)
    values, distance, weight = _apart((tokens.size,), kind), _apart((tokens.size,), kind), _apart((tokens.size,), kind)
    total, peak, level = _apart((classes,), np.float64), _apart((classes,), kind), _apart((classes,), np.float64)
    several = np.flatnonzero(np.diff(labels[0]) > 1)
    row, unsound = 0, 0
    for i in range(canvas.size):
        if canvas[i] != mask_id:
            for n in range(temperatures):
                point_mass(canvas[i], token_class, labels, label_m[n, i], label_k[n, i])
            continue
        if _sound(logits[i]):
            _gather(logits[i], tokens, values)
            _peaks(class_blocks, block_ptr, values, block_peak[row], peak)
            largest[row] = largest_of(peak)
        if np.isfinite(largest[row]):
            for n in range(temperatures):
                _distances(class_blocks, block_ptr, scales[n], values, peak, distance)
                _exponentials(distance, weight)
                _sums(class_blocks, block_ptr, distance, weight, block_weight[n, row], total, mean_log[n, row])
                out = m[n, row], k[n, row], log_mass[n, row], mean_log[n, row]
                log_total[n, row], entropy[n, i], plain = _finish_row(scales[n], largest[row], peak, total, level, out)
                _label_row(m[n, row], k[n, row], labels, several, plain, label_m[n, i], label_k[n, i])
        else:
            unsound += 1
        row += 1
    of_classes, of_positions = (m, k, log_mass, mean_log), (entropy, log_total, largest)
    return unsound, masked, of_classes, (label_m, label_k), of_positions, (block_weight, block_peak)


@njit(cache=True)
def _apart(shape, dtype):
    """Return an array without values yet, away from all others.

    Compiled loops over vectors are left for plain ones, which round otherwise, where two arrays begin within some
    hundred bytes of each other; that would leave the last bits to the allocator.
    """
    size = 1
    for n in shape:
        size *= n
    return np.empty(size + _APART, dtype)[:size].reshape(shape)


@njit(cache=True)
def point_mass(token, token_class, labels, out, exponent):
    """Fill in the masses of labels where all mass is on one token; an id behind the vocabulary has no class."""
    label_ptr, label_class = labels
    c = token_class[token] if token < token_class.size else -1
    out[:], exponent[:] = 0.0, NEVER
    for p in range(label_class.size):
        if label_class[p] == c:
            b = np.searchsorted(label_ptr, p, side="right") - 1
            out[b], exponent[b] = 1.0, 0


@njit(cache=True)
def label_masses(m, k, label_ptr, label_class):
    """Sum class masses `[length classes]` over the classes of each label: `[length labels]`."""
    labels, several = (label_ptr, label_class), np.flatnonzero(np.diff(label_ptr) > 1)
    out = np.empty((m.shape[0], label_ptr.size - 1))
    exponent = np.empty(out.shape, np.int32)
    for i in range(m.shape[0]):
        plain = True
        for c in range(m.shape[1]):
            plain &= (k[i, c] == 0) | (m[i, c] == 0.0)
        _label_row(m[i], k[i], labels, several, plain, out[i], exponent[i])
    return out, exponent


@njit(cache=True)
def _label_row(m, k, labels, several, plain, out, exponent):
    """Fill in the masses of labels, of which most have one class; `plain` is whether no class has an exponent."""
    label_ptr, label_class = labels
    for b in range(out.size):
        only = np.uint32(label_class[label_ptr[b]])
        out[b], exponent[b] = m[only], k[only]
    for a in several:
        x, y = 0.0, NEVER
        for p in range(label_ptr[a], label_ptr[a + 1]):
            c = label_class[p]
            if plain:
                x += m[c]
            elif m[c] > 0.0:
                x, y = add(x, y, m[c], k[c])
        out[a], exponent[a] = x, (0 if x > 0.0 else NEVER) if plain else y


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
def _finish_row(scale, highest, peak, total, best, out):
    """Fill in what `of_classes` has of a row, in place of the sum of weight times its logarithm in `mean_log`.

    The loops have no branches, so that they run over vectors; a class without mass has any finite numbers until the
    last line that it meets. `best` is room for the largest score of each class.

    Returns:
        `log_total` and the entropy, and whether no mass has an exponent.
    """
    m, k, log_mass, mean_log = out
    sum_of_all = 0.0
    for c in range(total.size):
        x = (np.float64(peak[c]) - highest) * np.float64(scale)
        best[c] = x if x >= IMPOSSIBLE else -np.inf
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
    return log_total, entropy, plain


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


@njit(cache=True)
def class_best(scale, largest, peak, class_blocks):
    """Return the log of the largest probability in each class relative to its row's largest: `[rows classes]`.

    Args:
        scale: one over the temperature.
        largest, peak: as `class_masses` returns them.
        class_blocks: of `TokenBlocks`.
    """
    out = np.full((largest.size, class_blocks.size - 1), -np.inf)
    for row in range(largest.size):
        for c in range(out.shape[1]):
            if class_blocks[c] < class_blocks[c + 1]:
                most = largest_of(peak[row, class_blocks[c] : class_blocks[c + 1]])
                x = (np.float64(most) - largest[row]) * np.float64(scale)
                out[row, c] = x if x >= IMPOSSIBLE else -np.inf
    return out


@njit(cache=True)
def everywhere(rows, masked, canvas, token_class, out):
    """Fill in `[length classes]`: `rows` at masked positions, elsewhere 0 for the class of the token, else `-inf`."""
    row = 0
    for i in range(canvas.size):
        if row < masked.size and masked[row] == i:
            out[i] = rows[row]
            row += 1
        else:
            out[i] = -np.inf
            if canvas[i] < token_class.size:
                out[i, token_class[canvas[i]]] = 0.0
