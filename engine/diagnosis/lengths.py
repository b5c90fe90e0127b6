"""The token lengths that a constraint accepts, against the canvas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import effort
from engine.diagnosis import strings
from engine.diagnosis.subject import named, places_of
from engine.errors import Finding
from engine.partition import distances

if TYPE_CHECKING:
    from engine.diagnosis.subject import Subject
    from engine.errors import Place
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

LOOKED_BEYOND = 64
"""Lengths beyond the canvas that are looked at for one that is accepted."""
SHOWN_TOKENS = 300
"""Tokens of a class that are looked at for one that reads well."""


@dataclass(frozen=True)
class Part:
    """Neighbouring tokens of a text that one place of the source writes."""

    place: Place | None
    token_ids: tuple[int, ...]


def shortest(automaton: TokenAutomaton, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return an accepted text of the fewest tokens, without EOS; of its tokens those that read best."""
    edges = automaton.edges
    came: dict[int, tuple[int, int]] = {automaton.start: (-1, -1)}
    level, goal = [automaton.start], -1
    while goal < 0:
        goal = next((q for q in level if automaton.accepting[q] and q != automaton.end), -1)
        if goal >= 0:
            break
        following: list[int] = []
        for q in level:
            for e in range(edges.ptr[q], edges.ptr[q + 1]):
                target = int(edges.target[e])
                if target not in came and target != automaton.end:
                    came[target] = (q, e)
                    following.append(target)
        level = following
    token_ids: list[int] = []
    while came[goal][0] >= 0:
        goal, edge = came[goal]
        token_ids.append(_readable(automaton, vocabulary, int(edges.label[edge])))
    return tuple(reversed(token_ids))


def _readable(automaton: TokenAutomaton, vocabulary: Vocabulary, label: int) -> int:
    edges = automaton.edges
    classes = edges.label_class[edges.label_ptr[label] : edges.label_ptr[label + 1]]
    tokens = [
        v
        for k in classes.tolist()
        for v in edges.class_tokens[edges.class_tokens_ptr[k] : edges.class_tokens_ptr[k + 1]][:SHOWN_TOKENS].tolist()
    ]
    return min(tokens, key=lambda v: strings.plainness(vocabulary.written(v) or b""))


def parts(subject: Subject, token_ids: tuple[int, ...]) -> tuple[Part, ...]:
    """Say which place of the source writes each token of an accepted text, by its first byte."""
    walker = strings.Walker(subject.constraint.automaton)
    states, found = walker.start, list[Part]()
    for token_id in token_ids:
        leaves: set[int] | None = None
        for byte in subject.vocabulary.written(token_id) or b"":
            states, written = walker.following(states)[int(walker.automaton.byte_class[byte])]
            leaves = written if leaves is None else leaves
        place = next(iter(places_of(subject.constraint, leaves or ())), None)
        if found and _same(found[-1].place, place):
            before = found.pop()
            found.append(Part(_joined(before.place, place), (*before.token_ids, token_id)))
        else:
            found.append(Part(place, (token_id,)))
    return tuple(found)


def _same(a: Place | None, b: Place | None) -> bool:
    """Whether two places are one part: equal, or neighbouring characters of one literal."""
    if a is None or b is None:
        return a is b
    if a.pointer is not None or b.pointer is not None:
        return a.pointer == b.pointer
    return (a.start, a.stop) == (b.start, b.stop) or (a.stop == b.start and b.stop == b.start + 1)


def _joined(a: Place | None, b: Place | None) -> Place | None:
    if a is None or b is None:
        return None
    return type(a)(a.source, min(a.start, b.start), max(a.stop, b.stop), a.pointer)


def ranges(lengths: np.ndarray) -> list[list[int]]:
    """Return bool `[n]` as the ranges `[first, last]` of its true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], lengths, [False]])))
    return [[int(a), int(b) - 1] for a, b in zip(edges[::2], edges[1::2], strict=True)]


def set_length(config: Config, length: int) -> dict[str, Any]:
    """Return the changes that give the canvas another length, with blocks and steps that fit it."""
    block = length if config.block_length == config.length else min(config.block_length, length)
    block = next(b for b in range(block, 0, -1) if length % b == 0)
    blocks = length // block
    steps = length if config.steps == config.length else max(config.steps // blocks, 1) * blocks
    return {"length": length, "block_length": block, "steps": steps}


def findings(subject: Subject) -> list[Finding]:
    """Compare the canvas with the lengths that are accepted, for which the shortest text is the witness."""
    length, automaton = subject.config.length, subject.automaton
    if automaton.end >= 0 and _fewest(automaton) < length:
        return []  # behind the shortest text EOS fills every longer canvas
    effort.spend(1e-3 * length * automaton.edges.target.size)
    accepted = automaton.accepted_lengths(length)
    if accepted[length] and (accepted[:length].any() or not subject.vocabulary.eos_ids):
        return []
    effort.spend(1e-3 * (length + LOOKED_BEYOND + 1_000) * automaton.edges.target.size)
    witness = shortest(automaton, subject.vocabulary)
    accepted = automaton.accepted_lengths(max(length + LOOKED_BEYOND, len(witness)))
    divided = parts(subject, witness)
    evidence = _evidence(subject, accepted, witness, divided)
    largest = max(divided, key=lambda part: len(part.token_ids), default=Part(None, ()))
    if accepted[length]:
        message = f"Only texts of exactly {length} tokens fit the canvas: they leave no room for EOS."
        return [Finding("tight", "info", largest.place, message, evidence=evidence)]
    message, advice = _message(evidence, largest), _advice(evidence)
    return [Finding("length", "error", largest.place, message, advice, evidence=evidence)]


def _fewest(automaton: TokenAutomaton) -> int:
    """Return how many tokens a shortest accepted canvas has."""
    source, target = automaton.class_source.astype(np.int64), automaton.class_target.astype(np.int64)
    return int(distances(source, target, automaton.accepting)[automaton.start])


def _evidence(
    subject: Subject, accepted: np.ndarray, witness: tuple[int, ...], divided: tuple[Part, ...]
) -> dict[str, Any]:
    length, decode = subject.config.length, subject.vocabulary.decode
    below, above = np.flatnonzero(accepted[:length]), length + np.flatnonzero(accepted[length:])
    return {
        "length": length,
        "accepted": ranges(accepted),
        "looked_up_to": accepted.size - 1,
        "below": int(below[-1]) if below.size else None,
        "above": int(above[0]) if above.size else None,
        "shortest": {
            "text": decode(witness),
            "token_ids": list(witness),
            "parts": [
                {
                    "place": part.place.plain() if part.place else None,
                    "tokens": len(part.token_ids),
                    "text": decode(part.token_ids),
                }
                for part in divided
            ],
        },
    }


def _message(evidence: dict[str, Any], largest: Part) -> str:
    length, below, above = evidence["length"], evidence["below"], evidence["above"]
    least = len(evidence["shortest"]["token_ids"])
    if below is None:
        part = f"; {len(largest.token_ids)} of them go to {named(largest.place)}" if largest.token_ids else ""
        return f"The shortest accepted text takes {least} tokens{part}, and the canvas has {length}."
    if above is None:
        looked = f" up to {evidence['looked_up_to']}"
        return f"No accepted text fills {length} tokens, nor any length above{looked}: the longest below takes {below}."
    return f"No accepted text takes exactly {length} tokens: the nearest lengths are {below} and {above}."


def _advice(evidence: dict[str, Any]) -> tuple[str, ...]:
    nearest = [str(n) for n in (evidence["above"], evidence["below"]) if n is not None]
    return (f"Set the length to {' or '.join(nearest)}, or change the constraint.",)


def remedies(finding: Finding, subject: Subject) -> list[tuple[str, dict[str, Any]]]:
    """Return the changes to the nearest accepted lengths that hold what is pinned and banned, untried."""
    nearest = [finding.evidence[name] for name in ("above", "below")]
    if finding.code == "tight":
        nearest = [subject.config.length + 1]
    needed = max((position + 1 for position, _ in (*subject.config.pins, *subject.config.bans)), default=1)
    return [(f"Set the length to {n}", set_length(subject.config, n)) for n in nearest if n and n >= needed]
