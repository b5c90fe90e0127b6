"""Constraints that ask for the spelling of a special token: its characters, which the token itself never writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine import effort
from engine.diagnosis.subject import finding_at, places_of, quoted
from engine.errors import Finding

if TYPE_CHECKING:
    from engine.automaton import ByteAutomaton
    from engine.constraints import Constraint
    from engine.trace import Config
    from engine.vocabulary import Vocabulary


def findings(constraint: Constraint, vocabulary: Vocabulary) -> list[Finding]:
    """Warn of each spelling of a special token that the constraint writes out, as `.*` does not."""
    found = []
    for name, token_id in vocabulary.specials:
        leaves = _written(constraint.automaton, name.encode())
        if not leaves:
            continue
        places = places_of(constraint, leaves)
        role = (
            "mask" if token_id == vocabulary.mask_id else "EOS" if token_id in vocabulary.eos_ids else "special token"
        )
        message = (
            f"The constraint asks for the text {name!r}, which is how the model's {role} is spelled: that token writes "
            "nothing, so the characters are written by others."
        )
        advice = "Leave it out: the text ends by itself, and what is masked is filled."
        evidence = {"spelling": name, "token_id": token_id}
        found.append(finding_at("special", "warning", places, message, fixes=(advice,), evidence=evidence))
    return found


def _written(automaton: ByteAutomaton, spelling: bytes) -> set[int]:
    """Return the leaves that write a spelling byte by byte, each told apart from all others; none where none do."""
    alone = np.bincount(automaton.byte_class, minlength=automaton.byte_classes) == 1
    symbols = automaton.byte_class[list(spelling)]
    if not spelling or not alone[symbols].all():
        return set()
    inside = np.ones(automaton.states, bool)
    steps = []
    effort.spend(0.01 * automaton.source.size * len(spelling))
    for symbol in symbols.tolist():
        moves = np.flatnonzero((automaton.symbol == symbol) & inside[automaton.source])
        inside = np.zeros(automaton.states, bool)
        inside[automaton.target[moves]] = True
        steps.append(moves)
    leaves: set[int] = set()
    for moves in reversed(steps):
        kept = moves[inside[automaton.target[moves]]]
        inside = np.zeros(automaton.states, bool)
        inside[automaton.source[kept]] = True
        leaves |= {leaf for move in kept.tolist() for leaf in automaton.origin_sets[automaton.origin[move]]}
    return leaves


def remedies(finding: Finding, config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Return the change that leaves the spelling out of a regex or a choice, untried."""
    spelling, source = str(finding.evidence["spelling"]), config.source
    if config.kind == "choices" and isinstance(source, tuple):
        return [
            (f"Take {quoted(spelling)} out of the choices", {"source": tuple(c.replace(spelling, "") for c in source)})
        ]
    if config.kind != "regex" or not isinstance(source, str) or finding.where is None:
        return []
    places = (finding.where, *finding.related)
    start, stop = min(p.start for p in places), max(p.stop for p in places)
    return [(f"Leave out {quoted(source[start:stop])}", {"source": source[:start] + source[stop:]})]
