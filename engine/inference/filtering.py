"""Top-p and top-k: which tokens of a mean field may be drawn at all (Holtzman et al. 2020; Fan et al. 2018)."""

from __future__ import annotations

import numpy as np


def keep_top(shifted: np.ndarray, top_p: float | None, top_k: int | None) -> None:
    """Set every entry of `[rows vocab]` logits to `-inf`, in place, but for those that the filters keep.

    In Dream's order and by its rules: top-p keeps, from the most probable on, each token before which the mass is at
    most `top_p`; then top-k keeps what is not below the `top_k`-th largest. Of equals at top-p's edge the lower ids
    stay.
    """
    for row in shifted:
        if top_p is not None and top_p < 1:
            _keep(row, _nucleus(row, top_p))
        if top_k is not None and top_k < row.size:
            row[row < np.partition(row, -top_k)[-top_k]] = -np.inf


def _keep(row: np.ndarray, token_ids: np.ndarray) -> None:
    kept = row[token_ids]
    row.fill(-np.inf)
    row[token_ids] = kept


def _nucleus(row: np.ndarray, top_p: float) -> np.ndarray:
    """Return the ids that top-p keeps; sorts only as many tokens as it needs."""
    largest = row.max()
    total = np.exp(row - largest, dtype=np.float64).sum()
    size = 64
    while True:
        size = min(4 * size, row.size)
        bar = np.partition(row, -size)[-size]
        candidates = np.flatnonzero(row >= bar)
        ordered = candidates[np.argsort(-row[candidates], kind="stable")]
        mass = np.cumsum(np.exp(row[ordered] - largest, dtype=np.float64)) / total
        if mass[-1] > top_p or size == row.size:
            return ordered[: int(np.searchsorted(mass, top_p, side="right")) + 1]
