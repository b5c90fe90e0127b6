"""Where in its source each byte of an accepted text comes from, read from the edges of a byte automaton."""

from __future__ import annotations

import numpy as np

from engine.automaton import ByteAutomaton


def spans(machine: ByteAutomaton, data: bytes) -> list[set[tuple[int, int]]]:
    """Follow a text through a deterministic automaton; return the spans of the leaves that each byte comes from."""
    state, out = machine.start, []
    for byte in data:
        (edge,) = np.flatnonzero((machine.source == state) & (machine.symbol == machine.byte_class[byte]))
        leaves = [machine.leaves[n] for n in machine.origin_sets[machine.origin[edge]]]
        out.append({(leaf.start, leaf.stop) for leaf in leaves})
        state = machine.target[edge]
    return out


def parts(machine: ByteAutomaton, source: str, data: bytes) -> list[set[str]]:
    """Return the same as what is written there."""
    return [{source[start:stop] for start, stop in found} for found in spans(machine, data)]
