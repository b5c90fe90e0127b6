"""Muon for matrices, Adam for the rest, and a moving average of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised.

    Source: Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/.

    A matrix that holds several maps side by side (QKV; gate and up) is orthogonalised as one.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float = 0.02, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update each matrix from its gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                velocity = self.state[weight].setdefault("velocity", torch.zeros_like(weight))
                velocity.lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(velocity, group["momentum"])
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.add_(orthogonalised(ahead), alpha=-group["lr"] * scale)


def orthogonalised(matrix: Tensor) -> Tensor:
    """Return about the nearest semi-orthogonal matrix, by five quintic Newton-Schulz steps."""
    x = matrix.bfloat16()
    flipped = x.shape[0] > x.shape[1]
    x = x.T if flipped else x
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    nearest: Tensor = x.T if flipped else x
    return nearest.to(matrix.dtype)


class Average:
    """Exponential moving average of parameters; its decay warms up, to forget the first ones."""

    def __init__(self, parameters: Iterable[Tensor], decay: float = 0.995) -> None:
        self.decay = decay
        self.sources = tuple(parameters)
        self.values = [parameter.detach().clone() for parameter in self.sources]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move towards the parameters after step number `step`, from 0."""
        decay = min(self.decay, (1 + step) / (10 + step))
        for value, source in zip(self.values, self.sources, strict=True):
            value.lerp_(source, 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the averages with the parameters; a second call undoes it."""
        for value, source in zip(self.values, self.sources, strict=True):
            kept = source.clone()
            source.copy_(value)
            value.copy_(kept)
