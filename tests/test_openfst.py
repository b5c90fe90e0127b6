"""Log Z by OpenFst: the automaton unrolled over positions as a weighted acceptor in the log semiring."""

from __future__ import annotations

import numpy as np
import pytest

from engine.inference import chain, wide
from engine.inference.potential import Potential
from tests.test_messages import CONSTRAINTS, FIELDS, case

pynini = pytest.importorskip("pynini", reason="pynini is not installed; benchmarks/requirements.txt has it")


def log_z(found: Potential) -> float:
    """Log Z by OpenFst's shortest distance, which sums over all paths in this semiring."""
    edges, states = found.automaton.edges, found.automaton.states
    weight = -wide.to_log(*found.labels)
    source = np.repeat(np.arange(states), np.diff(edges.ptr))
    fst = pynini.Fst(arc_type="log64")
    for _ in range((found.length + 1) * states):
        fst.add_state()
    fst.set_start(found.automaton.start)
    for i, e in np.argwhere(np.isfinite(weight[:, edges.label])).tolist():
        arc = pynini.Arc(
            1, 1, pynini.Weight("log64", float(weight[i, edges.label[e]])), (i + 1) * states + edges.target[e]
        )
        fst.add_arc(i * states + source[e], arc)
    for q in np.flatnonzero(found.automaton.accepting).tolist():
        fst.set_final(found.length * states + q, pynini.Weight.one("log64"))
    distance = pynini.shortestdistance(fst, reverse=True, delta=1e-12)
    return -float(distance[found.automaton.start])


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("name", [name for name in CONSTRAINTS if name != "tools"])
def test_log_z_is_that_of_openfst(name: str, field: str) -> None:
    found, _, _ = case(name, field)
    # OpenFst prints its weights, which is how pynini hands them over, with nine digits.
    assert chain.posterior(found).log_partition == pytest.approx(log_z(found), abs=1e-6, rel=1e-8)
