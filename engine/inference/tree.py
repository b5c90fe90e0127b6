"""The dense tree: matrices that cross spans of 2, 4, 8 … positions, then midpoints a level at a time, top down.

Cost `⌈log2 length⌉` levels of batched products of matrices, on any torch device; made for GPUs, where nothing has been
measured yet. A matrix leads from the live states of one boundary to those of another and no further, so its width is
that of the widest boundary, rounded up on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from engine import noise
from engine.inference import graphs, matrices, midpoint, moves
from engine.inference.midpoint import Midpoints
from engine.inference.wide import to_log

if TYPE_CHECKING:
    from engine.inference.chain import Posterior
    from engine.inference.potential import Potential

WIDEST = 224
"""Live states of a boundary up to which a GPU is expected to win by dense products; an estimate, not measured."""


def draw_where_it_pays(
    potential: Potential, posterior: Posterior, seed: int, step: int, top: int, forced: np.ndarray | None = None
) -> Midpoints:
    """Draw the tree in the way that pays; all have one law, and the same noise gives the same draw.

    Where few moves meet, from composed moves; else densely on a GPU, if live states are few; else from messages.
    """
    composed = moves.compose(potential)
    if composed:
        return moves.draw(potential, composed, seed, step, top, forced)
    if torch.cuda.is_available() and width(potential) <= WIDEST:
        return draw(potential, seed, step, top, forced, "cuda")
    return midpoint.draw(potential, posterior, seed, step, top, forced)


def width(potential: Potential) -> int:
    """Return the number of live states of the boundary that has most."""
    return int(np.diff(potential.live[0]).max())


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
    live = _table(potential, graphs.rounded(width(potential)) if device == "cuda" else width(potential))
    spans = _spans(_leaves(potential, live).to(device))
    record = _empty(length, top)
    u = noise.uniforms(seed, step, noise.STATE, 0, length + 1)
    path = np.zeros(length + 1, np.int64)  # places in `live`
    middles = np.asarray([length])
    log_weights = spans[-1][:, 0]
    level = len(spans) - 1
    while True:
        _note(record, path, live, middles, log_weights.cpu().numpy(), u, forced)
        level -= 1
        if level < 0:
            break
        half = 1 << level
        middles = np.arange(half, length, 2 * half)
        if not middles.size:
            continue
        left = torch.as_tensor(path[middles - half], device=device)
        right = torch.as_tensor(path[np.minimum(middles + half, length)], device=device)
        index = torch.as_tensor(middles // half, device=device)
        log_weights = spans[level][index - 1, left] + spans[level][index, :, right]
    return Midpoints(live[np.arange(length + 1), path].astype(np.int32), *record)


def _spans(leaves: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return for each level the log matrices `[spans width width]` of its spans, single positions first.

    Whether a product lost an entry is asked once, behind the last level, so that a GPU need not wait for the answer.
    """
    levels = graphs.filled(leaves) if leaves.is_cuda else matrices.filled(leaves)
    return matrices.carefully_filled(leaves).spans if bool(levels.lost) else levels.spans


def _table(potential: Potential, columns: int) -> np.ndarray:
    """Return int64 `[boundaries columns]`: the live states of each boundary, ascending, then -1."""
    live_ptr, live = potential.live
    counts = np.diff(live_ptr)
    table = np.full((counts.size, columns), -1)
    table[np.arange(table.shape[1]) < counts[:, None]] = live
    return table


def _leaves(potential: Potential, live: np.ndarray) -> torch.Tensor:
    """Return float64 `[padded width width]`: log weights of single positions, identities behind the last one.

    Entry `[i, a, b]` leads from the live state `a` of boundary `i` to the live state `b` of the next.
    """
    edges, length = potential.automaton.edges, potential.length
    position, place = np.nonzero(live[:-1] >= 0)
    first, stop = edges.ptr[live[position, place]], edges.ptr[live[position, place] + 1]
    count = (stop - first).astype(np.int64)
    edge = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
    position, place = np.repeat(position, count), np.repeat(place, count)
    at = np.full((length + 1, potential.automaton.states), -1)
    at[np.nonzero(live >= 0)[0], live[live >= 0]] = np.nonzero(live >= 0)[1]
    target = at[position + 1, edges.target[edge]]
    padded = 1 << max(length - 1, 0).bit_length()
    leaves = np.full((padded, live.shape[1], live.shape[1]), -np.inf)
    inside = target >= 0
    log_labels = to_log(*potential.labels)
    leaves[position[inside], place[inside], target[inside]] = log_labels[position[inside], edges.label[edge[inside]]]
    ends = np.flatnonzero(live[-1] >= 0)
    leaves[length:, ends, ends] = 0.0
    return torch.from_numpy(leaves)


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
    live: np.ndarray,
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
        chosen = (live[middles] == forced[middles][:, None]).argmax(axis=1)
    rows = np.arange(middles.size)
    path[middles] = chosen
    log_probability[middles] = log_p[rows, chosen]
    entropy[middles] = -np.where(p > 0, p * np.where(p > 0, log_p, 0.0), 0.0).sum(axis=1)
    order = np.argsort(-p, axis=1, kind="stable")[:, : ids.shape[1]]
    most = np.take_along_axis(p, order, axis=1)
    ids[middles, : order.shape[1]] = np.where(most > 0, np.take_along_axis(live[middles], order, axis=1), -1)
    probability[middles, : order.shape[1]] = most
