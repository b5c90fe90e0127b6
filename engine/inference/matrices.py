"""Matrices of log weights, multiplied in batches, a level of spans at a time; torch, float64, any device.

They are scaled by row and column before each product. A scaled product that may have lost an entry to underflow says
so, and the sweep is done again with `logsumexp` for such spans: the scaling is checked and not hoped for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch

SAFE = 1e-280
"""A scaled product below this may have lost terms to underflow (the smallest normal float64 is about 2e-308)."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The log matrices of all spans of a dyadic tree, or the room for them.

    Attributes:
        spans: float64 `[spans width width]` for each level, single positions first, whose number is a power of two.
        lost: bool, one number on the device: whether some product lost an entry, so that `spans` are not to be used.
    """

    spans: tuple[torch.Tensor, ...]
    lost: torch.Tensor


def room(leaves: torch.Tensor) -> Levels:
    """Return the levels over single positions, those above still to be filled."""
    padded = leaves.shape[0]
    above = (leaves.new_empty(padded >> level, *leaves.shape[1:]) for level in range(1, padded.bit_length()))
    return Levels((leaves, *above), torch.zeros((), dtype=torch.bool, device=leaves.device))


def fill(levels: Levels) -> None:
    """Sweep up: write all levels above the first, and whether an entry was lost.

    The same launches whatever the weights are, none of which waits for the device, and each result in its place: a CUDA
    graph can hold it.
    """
    levels.lost.zero_()
    for below, above in pairwise(levels.spans):
        left, right = _halves(below)
        levels.lost.logical_or_(_multiply(left, right, above).any())


def filled(leaves: torch.Tensor) -> Levels:
    """Sweep up from single positions, launch by launch."""
    levels = room(leaves)
    fill(levels)
    return levels


def carefully_filled(leaves: torch.Tensor) -> Levels:
    """Sweep up, and do the products that lost an entry again by `logsumexp`."""
    levels = room(leaves)
    for below, above in pairwise(levels.spans):
        left, right = _halves(below)
        for n in torch.nonzero(_multiply(left, right, above)).flatten().tolist():
            for q in range(left.shape[1]):  # by rows: states² numbers at a time
                above[n, q] = torch.logsumexp(left[n, q][:, None] + right[n], 0)
    return levels


def _halves(level: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the left and the right halves of the spans of the next level."""
    return level.view(-1, 2, *level.shape[1:]).unbind(1)


def _multiply(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Write `log(exp(left) @ exp(right))`, `-inf` exactly where no path exists; return which ones lost an entry."""
    rows = left.amax(-1, keepdim=True).nan_to_num_(neginf=0.0)
    columns = right.amax(-2, keepdim=True).nan_to_num_(neginf=0.0)
    torch.matmul((left - rows).exp_(), (right - columns).exp_(), out=out)
    # A path exists where a product of 0-1 matrices is positive; there the scaled entry must not be tiny.
    exists = (left > -torch.inf).float() @ (right > -torch.inf).float() > 0
    lost = (exists & (out < SAFE)).any(-1).any(-1)
    # Filled in place: `torch.where` would copy the scalar to the device and wait.
    out.log_().add_(rows).add_(columns).masked_fill_(exists.logical_not_(), -torch.inf)
    return lost
