"""The dense tree: matrices that cross spans of 2, 4, 8 … positions, then midpoints a level at a time, top down.

Cost `⌈log2 length⌉` levels of batched `states × states` products, float64, on any torch device. The matrices are kept
as logarithms and scaled by row and column before each product; where the scaled product lost an entry to underflow,
that span's product is done again by `logsumexp`, so the scaling is checked and not hoped for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from engine import noise
from engine.inference import wide
from engine.inference.midpoint import Midpoints

if TYPE_CHECKING:
    from engine.inference.potential import Potential

SAFE = 1e-280
"""A scaled product below this may have lost terms to underflow (the smallest normal float64 is about 2e-308)."""


def draw(
    potential: Potential,
    seed: int,
    step: int,
    top: int,
    forced: np.ndarray | None = None,
    device: str = "cpu",
) -> Midpoints:
    """Draw all states by the dense tree; arguments and result as in `midpoint.draw`."""
    length = potential.length
    _, live = potential.live
    # Only states that are live somewhere get a row; their order is kept, so the noise picks as in `midpoint`.
    kept = np.unique(live)
    spans = _up_sweep(_leaves(potential, kept, device))
    record = _empty(length, top)
    u = noise.uniforms(seed, step, noise.STATE, 0, length + 1)
    start = int(np.searchsorted(kept, live[0]))
    accepting = torch.from_numpy(potential.automaton.accepting[kept]).to(device)
    path = np.full(length + 1, -1, np.int64)
    path[0] = start
    ends = torch.where(accepting, spans[-1][0, start], -torch.inf)
    middles = np.asarray([length])
    log_weights = ends[None]
    level = len(spans) - 1
    while True:
        _note(record, path, kept, middles, log_weights.cpu().numpy(), u, forced)
        level -= 1
        if level < 0:
            break
        half = 1 << level
        middles = np.arange(half, length, 2 * half)
        if not middles.size:
            continue
        left = torch.as_tensor(path[middles - half], device=device)
        rights = np.minimum(middles + half, length)
        right = torch.as_tensor(path[rights], device=device)
        index = torch.as_tensor(middles // half, device=device)
        log_weights = spans[level][index - 1, left] + spans[level][index, :, right]
    return Midpoints(kept[path].astype(np.int32), *record)


def _leaves(potential: Potential, kept: np.ndarray, device: str) -> torch.Tensor:
    """Return float64 `[padded states states]`: log weights of single positions, identities behind the last one."""
    edges, length, states = potential.automaton.edges, potential.length, kept.size
    number = np.full(potential.automaton.states, -1)
    number[kept] = np.arange(states)
    source = number[np.repeat(np.arange(potential.automaton.states), np.diff(edges.ptr))]
    target = number[edges.target]
    inside = (source >= 0) & (target >= 0)
    padded = 1 << max(length - 1, 0).bit_length()
    leaves = np.full((padded, states, states), -np.inf)
    log_labels = wide.to_log(*potential.labels)
    leaves[:length, source[inside], target[inside]] = log_labels[:, edges.label[inside]]
    leaves[length:, np.arange(states), np.arange(states)] = 0.0
    return torch.from_numpy(leaves).to(device)


def _up_sweep(leaves: torch.Tensor) -> list[torch.Tensor]:
    """Return for each level the log matrices `[spans states states]` of its spans, single positions first."""
    levels = [leaves]
    while levels[-1].shape[0] > 1:
        below = levels[-1]
        levels.append(_log_product(below[0::2], below[1::2]))
    return levels


def _log_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`log(exp(left) @ exp(right))` for batches of matrices, `-inf` exactly where no path exists."""
    rows = left.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    columns = right.amax(-2, keepdim=True).nan_to_num(neginf=0.0)
    product = torch.exp(left - rows) @ torch.exp(right - columns)
    # A path exists where a product of 0-1 matrices is positive; there the scaled entry must not be tiny.
    exists = (left > -torch.inf).double() @ (right > -torch.inf).double() > 0
    out = torch.where(exists, product.log() + rows + columns, -torch.inf)
    lost = (exists & (product < SAFE)).any(-1).any(-1)
    for n in torch.nonzero(lost).flatten().tolist():
        for q in range(left.shape[1]):  # by rows: states² numbers at a time
            out[n, q] = torch.logsumexp(left[n, q][:, None] + right[n], 0)
    return out


def _empty(length: int, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.full(length + 1, np.nan, np.float32),
        np.full(length + 1, np.nan, np.float32),
        np.full((length + 1, top), -1, np.int32),
        np.zeros((length + 1, top), np.float32),
    )


def _note(
    record: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    path: np.ndarray,
    kept: np.ndarray,
    middles: np.ndarray,
    log_weights: np.ndarray,
    u: np.ndarray,
    forced: np.ndarray | None,
) -> None:
    """Draw the states of one level, all independent given the level above, and note their conditionals."""
    log_probability, entropy, ids, probability = record
    best = log_weights.max(axis=1, keepdims=True)
    log_p = log_weights - best
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    p = np.exp(log_p)
    if forced is None:
        cumulative = np.cumsum(p, axis=1)
        # Rounding must not pick an impossible state behind the last possible one.
        last = p.shape[1] - 1 - np.argmax(p[:, ::-1] > 0, axis=1)
        chosen = np.minimum((cumulative <= u[middles][:, None]).sum(axis=1), last)
    else:
        chosen = np.searchsorted(kept, forced[middles])
    rows = np.arange(middles.size)
    path[middles] = chosen
    log_probability[middles] = log_p[rows, chosen]
    entropy[middles] = -np.where(p > 0, p * np.where(p > 0, log_p, 0.0), 0.0).sum(axis=1)
    order = np.argsort(-p, axis=1, kind="stable")[:, : ids.shape[1]]
    most = np.take_along_axis(p, order, axis=1)
    ids[middles, : order.shape[1]] = np.where(most > 0, kept[order], -1)
    probability[middles, : order.shape[1]] = most
