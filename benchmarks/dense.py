"""Forward-backward on one hidden Markov model by the libraries that have it: same numbers in, same log Z out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.timing import Ratio, in_turns
from engine.inference import sweeps


@dataclass(frozen=True, eq=False)
class Chain:
    """Probabilities of a dense chain: `initial` `[states]`, `move` `[states states]`, `emission` `[length states]`."""

    initial: np.ndarray
    move: np.ndarray
    emission: np.ndarray


def random_chain(states: int, length: int) -> Chain:
    """Draw a chain whose moves are Dirichlet and whose emissions spread over a few nats."""
    rng = np.random.default_rng(states)
    move = rng.dirichlet(np.ones(states), states)
    return Chain(rng.dirichlet(np.ones(states)), move, np.exp(rng.normal(-2.0, 1.0, (length, states))))


def ours(chain: Chain) -> Callable[[], float]:
    """Prepare our kernels: every move is an edge with a label of its own; state `states` is the start."""
    length, states = chain.emission.shape
    ptr = np.arange(0, states * (states + 1) + 1, states, dtype=np.uint32)
    target = np.tile(np.arange(states, dtype=np.uint32), states + 1)
    label = np.arange(states * (states + 1), dtype=np.uint32)
    source = np.repeat(np.arange(states + 1, dtype=np.uint32), states)
    order = np.argsort(target, kind="stable")
    counts = np.append(np.bincount(target, minlength=states), 0)
    into = (np.cumsum([0, *counts], dtype=np.uint32), source[order], label[order])
    mass = np.zeros((length, label.size))
    mass[0, states * states :] = chain.initial * chain.emission[0]
    mass[1:, : states * states] = (chain.move * chain.emission[1:, None, :]).reshape(length - 1, -1)
    exponent = np.zeros(mass.shape, np.int32)
    accepting = np.append(np.ones(states, bool), False)

    def run() -> float:
        live_ptr, live, b, bk = sweeps.completions((ptr, target, label), into, states, accepting, mass, exponent)
        sweeps.forward((ptr, target, label), live_ptr, live, mass, exponent)
        return float(np.log(b[0]) + bk[0] * 256 * np.log(2))

    return run


def torch_struct(chain: Chain) -> Callable[[], float]:
    """Prepare torch-struct's linear chain: log Z and the edge marginals by its tree."""
    import torch
    from torch_struct import LinearChainCRF

    with np.errstate(divide="ignore"):
        potentials = np.log(chain.move.T)[None] + np.log(chain.emission[1:, :, None])
        potentials[0] += np.log(chain.initial * chain.emission[0])[None, :]
    tensor = torch.from_numpy(potentials)[None]
    # It declares no constraints of its arguments, which torch warns of on every call.
    torch.distributions.Distribution.set_default_validate_args(False)

    def run() -> float:
        law = LinearChainCRF(tensor)
        _ = law.marginals
        return float(law.partition.detach())

    return run


def hmmlearn(chain: Chain) -> Callable[[], float]:
    """Prepare hmmlearn's compiled scaled pass."""
    from hmmlearn import _hmmc

    def run() -> float:
        log_z, _, scaling = _hmmc.forward_scaling(chain.initial, chain.move, chain.emission)
        _hmmc.backward_scaling(chain.initial, chain.move, chain.emission, scaling)
        return float(log_z)

    return run


def pomegranate(chain: Chain) -> Callable[[], float]:
    """Prepare pomegranate's dense HMM, on torch."""
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    states = chain.initial.size
    model = DenseHMM(
        [Normal([0.0], [1.0], covariance_type="diag") for _ in range(states)],
        edges=chain.move.tolist(),
        starts=chain.initial.tolist(),
        ends=[1.0] * states,
    )
    emissions = torch.from_numpy(np.log(chain.emission)).float()[None]

    def run() -> float:
        return float(model.forward_backward(emissions=emissions)[-1])

    return run


def comparisons(length: int, repeats: int) -> list[Ratio]:
    """Time log Z and both messages (marginals, where a peer gives only those) on dense random chains."""
    rows = []
    for peer, sizes in ((hmmlearn, (16, 64)), (pomegranate, (16, 64)), (torch_struct, (16, 64))):
        for states in sizes:
            chain = random_chain(states, length)
            mine, theirs = ours(chain), peer(chain)
            # Pomegranate counts in float32.
            if not np.isclose(mine(), theirs(), rtol=1e-5 if peer is pomegranate else 1e-9, atol=0.0):
                raise RuntimeError(f"{peer.__name__} disagrees on log Z: {mine()} and {theirs()}.")
            ours_ms, peer_ms = in_turns(mine, theirs, repeats if states < 64 else 2)
            facts = {"length": length, "states": states, "edges": states * states}
            name = peer.__name__.replace("_", "-")
            what = "forward-backward and log Z of a dense random chain"
            rows.append(Ratio(f"dense_{peer.__name__}_{states}", what, ours_ms, name, peer_ms, 1.0, facts))
    return rows
