"""The fixed reference transformer that engine time is compared with: about 6 M parameters, random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from engine.vocabulary import Vocabulary

WIDTH, LAYERS, HEADS = 256, 7, 4


class Block(nn.Module):
    """A pre-norm transformer block, bidirectional."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map `[length width]` to the same shape."""
        length = x.shape[0]
        heads = self.qkv(self.norms[0](x)).view(length, 3, HEADS, -1).permute(1, 2, 0, 3)
        mixed = functional.scaled_dot_product_attention(*heads.unsqueeze(1))
        x = x + self.out(mixed[0].transpose(0, 1).reshape(length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Reference(nn.Module):
    """A `Denoiser` of fixed size; its logits are noise, its cost is real."""

    name = "reference"

    def __init__(self, vocabulary: Vocabulary, length: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.vocabulary = vocabulary
        self.embedding = nn.Embedding(vocabulary.size, WIDTH)
        # Logits then spread by about 3 nats, as those of trained models do.
        nn.init.normal_(self.embedding.weight, std=3 / WIDTH**0.5)
        self.place = nn.Embedding(length, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.eval()

    @property
    def facts(self) -> dict[str, Any]:
        """What a trace notes of the model."""
        return {"name": self.name, "parameters": sum(p.numel() for p in self.parameters())}

    def forward(self, canvas: torch.Tensor) -> torch.Tensor:
        """Return logits `[length vocab]`; embedding and head share their weights."""
        x = self.blocks(self.embedding(canvas) + self.place.weight)
        return functional.linear(self.norm(x), self.embedding.weight)

    def encode_prompt(self, prompt: str) -> np.ndarray:
        """Have no prompt: the whole length is canvas."""
        return np.zeros(0, np.int32)

    def encode(self, text: str) -> np.ndarray:
        """Have no spelling either."""
        return np.zeros(0, np.int32)

    @torch.inference_mode()
    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Run one forward pass: float32 `[length vocab]`."""
        return self(torch.from_numpy(canvas.astype(np.int64))).numpy()
