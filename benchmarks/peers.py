"""The peers that are timed: written as a good engineer without token classes would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton
    from engine.vocabulary import Vocabulary


def dense_weights(class_mass: torch.Tensor, automaton: TokenAutomaton) -> torch.Tensor:
    """Add up the probability of each move at each position: float64 `[length states states]`.

    Args:
        class_mass: float64 `[length classes]`.
        automaton: whose moves are meant.
    """
    length, states = class_mass.shape[0], automaton.states
    classes = np.repeat(np.arange(automaton.classes), np.diff(automaton.class_ptr))
    moves = automaton.class_source.astype(np.int64) * states + automaton.class_target
    weights = torch.zeros(length, states * states, dtype=torch.float64)
    weights.index_add_(1, torch.from_numpy(moves), class_mass[:, torch.from_numpy(classes)])
    return weights.view(length, states, states)


def dense_chain(
    weights: torch.Tensor, start: int, accepting: torch.Tensor, uniforms: torch.Tensor
) -> tuple[float, list[int]]:
    """Run the backward pass and draw a path, by dense matrix-vector products in scaled float64.

    Args:
        weights: `[length states states]`, the probability of each move at each position.
        start: the start state.
        accepting: float64 `[states]`, 1 where accepting.
        uniforms: float64 `[length]`, the noise of the draw.

    Returns:
        The log partition in nats, and the states at all boundaries.
    """
    length, states, _ = weights.shape
    backward = torch.empty(length + 1, states, dtype=torch.float64)
    scales = torch.empty(length, dtype=torch.float64)
    backward[length] = accepting
    for i in range(length - 1, -1, -1):
        message = torch.mv(weights[i], backward[i + 1])
        scales[i] = message.amax()
        torch.div(message, scales[i], out=backward[i])
    log_partition = float(scales.log().sum() + backward[0, start].log())
    path = [start]
    for i in range(length):
        cumulative = torch.cumsum(weights[i, path[-1]] * backward[i + 1], 0)
        path.append(int(torch.searchsorted(cumulative, uniforms[i] * cumulative[-1])))
    return log_partition, path


def outlines_vocabulary(vocabulary: Vocabulary) -> object:
    """Hand the same tokens to outlines-core."""
    import outlines_core

    ids: dict[bytes, list[int]] = {}
    for token_id, data in enumerate(vocabulary.token_bytes):
        if data:
            ids.setdefault(data, []).append(token_id)
    return outlines_core.Vocabulary(vocabulary.eos_ids[0], ids)


def outlines_index(pattern: str, vocabulary: object) -> object:
    """Compile with outlines-core; the result stays in its own memory."""
    import outlines_core

    return outlines_core.Index(pattern, vocabulary)
