"""The tree as a run proceeds: composed moves against dense matrices, both on the CPU."""

from __future__ import annotations

import numpy as np

from benchmarks.large import partly_committed
from benchmarks.timing import Ratio, in_turns
from engine.inference import moves, tree
from engine.inference.potential import Potential
from engine.token_automaton import TokenAutomaton
from engine.vocabulary import Vocabulary

SHARES = (0.0, 0.25, 0.5, 0.9)
TOP = 8


def draws(automaton: TokenAutomaton, vocabulary: Vocabulary, lengths: tuple[int, ...], repeats: int) -> list[Ratio]:
    """Time a draw by the tree, live states known, with some shares of the positions committed at random."""
    return [
        drawing(found, share, repeats)
        for length in lengths
        for share, found in zip(SHARES, partly_committed(automaton, vocabulary, length, SHARES), strict=True)
    ]


def drawing(found: Potential, share: float, repeats: int) -> Ratio:
    """Time one draw from composed moves, however many products it takes, against the same draw by dense matrices."""

    def composed() -> np.ndarray:
        across = moves.compose(found, most=10**9)
        assert across is not None
        return moves.draw(found, across, 0, 0, TOP).path

    def dense() -> np.ndarray:
        return tree.draw(found, 0, 0, TOP).path

    if (composed() != dense()).any():
        raise RuntimeError("The two trees draw different states from the same noise.")
    ours_ms, peer_ms = in_turns(composed, dense, repeats)
    facts = {
        "length": found.length,
        "states": found.automaton.states,
        "committed": found.length - found.masked.size,
        "live a boundary": found.live[1].size // (found.length + 1),
        "at most": tree.width(found),
    }
    name, what = f"tree_{found.length}_{share}", "a draw of all states by the tree, from composed moves"
    return Ratio(name, what, ours_ms, "dense tree, CPU", peer_ms, 1 / 10, facts)
