"""What grows: a large schema, committed positions, 20,000 states, a vocabulary of 151,643 tokens."""

from __future__ import annotations

import json
import statistics

import numpy as np
import torch

from benchmarks.cases import STRING
from benchmarks.timing import Ratio, cpu_ms, in_turns
from engine import constraints, token_automaton
from engine.inference import chain, masses, sweeps
from engine.inference.potential import Potential, potential
from engine.token_automaton import TokenAutomaton
from engine.vocabulary import Vocabulary

BIG_STATES, BIG_FANOUT, BIG_LABELS = 20_000, 7, 1_000
COMPILE_MS = 2000.0
LONG_STRING = '{"type": "string", "maxLength": 1000}'


def tool_calls(tools: int) -> str:
    """Return a regex of a call of one of so many functions, each with five required parameters of its own."""
    calls = (
        rf'\{{"name": "function_{n}", "arguments": \{{"text_{n}": {STRING}, "count_{n}": (0|[1-9][0-9]*), '
        rf'"place_{n}": {STRING}, "flag_{n}": (true|false), "kind_{n}": "(north|east|south|west)_{n}"\}}\}}'
        for n in range(tools)
    )
    return "|".join(calls)


def compiling(vocabulary: Vocabulary, repeats: int) -> list[Ratio]:
    """Time what makes thousands of states, from its text to the token automaton, against what a person waits for."""
    properties = {f"property_{n}": {"type": "string"} for n in range(300)}
    schema = json.dumps({"type": "object", "properties": properties, "additionalProperties": False})
    ratios = []
    for name, what, kind, source in (
        ("compile_properties", "compile an object of 300 optional properties", "json_schema", schema),
        ("compile_string", "compile a JSON string of at most 1,000 characters", "json_schema", LONG_STRING),
    ):
        constraint = constraints.read(kind, source)
        facts = {
            "byte states": constraint.automaton.states,
            "states": token_automaton.compile(constraint, vocabulary).states,
            "vocabulary": vocabulary.size,
        }

        def whole(kind: str = kind, source: str = source) -> None:
            token_automaton.compile(constraints.read(kind, source), vocabulary)

        ours_ms = statistics.median(cpu_ms(whole) for _ in range(repeats))
        ratios.append(Ratio(name, what, ours_ms, "the bar", COMPILE_MS, 1.0, facts))
    return ratios


def committing(automaton: TokenAutomaton, vocabulary: Vocabulary, length: int, repeats: int) -> Ratio:
    """Time a pass with a random quarter of the positions committed against the first pass, nothing committed."""
    first, later = partly_committed(automaton, vocabulary, length, (0.0, 0.25))
    ours_ms, peer_ms = in_turns(lambda: both_messages(later), lambda: both_messages(first), repeats)
    live = [int(found.live[1].size) // (length + 1) for found in (first, later)]
    facts = {"length": length, "states": automaton.states, "live a boundary first": live[0], "then": live[1]}
    what = "live states and both messages, a quarter of the positions committed"
    return Ratio("committed", what, ours_ms, "our first pass, nothing committed", peer_ms, 1 / 20, facts)


def partly_committed(
    automaton: TokenAutomaton, vocabulary: Vocabulary, length: int, shares: tuple[float, ...]
) -> list[Potential]:
    """Return random factors with such shares of the positions committed, at random, to one accepted draw."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0.0, 3.0, (length, vocabulary.size)).astype(np.float32)
    masked = np.full(length, vocabulary.mask_id, np.int32)
    first = potential(logits, masked, vocabulary.mask_id, automaton)
    path = chain.draw(first, chain.posterior(first), 0, 0)
    drawn = chain.draw_tokens(first, path, 0, 0)
    rank = np.argsort(rng.permutation(length))
    canvases = (np.where(rank < int(share * length), drawn, masked) for share in shares)
    return [potential(logits, canvas, vocabulary.mask_id, automaton) for canvas in canvases]


def both_messages(found: Potential) -> None:
    """Find the live states and run both messages, label masses ready."""
    edges, automaton = found.automaton.edges, found.automaton
    live_ptr, live, _, _ = sweeps.completions(
        edges.out, edges.into, automaton.start, automaton.accepting, *found.labels
    )
    sweeps.forward(edges.out, live_ptr, live, *found.labels)


def big_automaton() -> TokenAutomaton:
    """Draw 20,000 states with 7 moves each, mostly to states near by, and a class for each of 1,000 labels."""
    rng = np.random.default_rng(1)
    near = rng.integers(-40, 120, (BIG_STATES, BIG_FANOUT))
    target = (np.arange(BIG_STATES)[:, None] + near) % BIG_STATES
    by_class: list[list[tuple[int, int]]] = [[] for _ in range(BIG_LABELS + 1)]
    labels = np.argsort(rng.random((BIG_STATES, BIG_LABELS)), axis=1)[:, :BIG_FANOUT] + 1
    for q in range(BIG_STATES):
        for r, c in zip(target[q].tolist(), labels[q].tolist(), strict=True):
            by_class[c].append((q, r))
    moves = [np.asarray(pairs, np.int32).reshape(-1, 2) for pairs in by_class]
    return TokenAutomaton(
        start=0,
        end=-1,
        accepting=np.ones(BIG_STATES, bool),
        token_class=np.arange(BIG_LABELS + 1, dtype=np.int32),
        class_ptr=np.cumsum([0, *map(len, moves)], dtype=np.int32),
        class_source=np.concatenate([m[:, 0] for m in moves]),
        class_target=np.concatenate([m[:, 1] for m in moves]),
        state_spans=((),) * BIG_STATES,
    )


def big(repeats: int) -> list[Ratio]:
    """Time a full step on the big automaton at length 256 against 100 ms, and length 1,024 against as much more work.

    More states are reached farther from the start, so four times the length is more than four times the edges.
    """
    automaton = big_automaton()
    rng = np.random.default_rng(2)
    steps, edges, live = {}, {}, {}
    for length in (256, 1024):
        logits = rng.normal(0.0, 3.0, (length, BIG_LABELS + 1)).astype(np.float32)
        canvas = np.full(length, BIG_LABELS + 1, np.int32)
        found = potential(logits, canvas, BIG_LABELS + 1, automaton)
        steps[length] = whole_step(found, repeats)
        edges[length] = edges_passed(found)
        live[length] = int(found.live[1].size) // (length + 1)
    sizes = {"states": BIG_STATES, "edges": int(automaton.edges.target.size)}
    facts = {n: {"length": n, **sizes, "live a boundary": live[n], "edges passed": edges[n]} for n in steps}
    what = "live states, messages, marginals and a draw on a big automaton"
    more = edges[1024] / edges[256]
    return [
        Ratio("big", what, steps[256], "the bar", 100.0, 1.0, facts[256]),
        Ratio(
            "big_long",
            "the same at four times the length",
            steps[1024],
            f"{more:.1f} × that, as there are {more:.1f} × as many edges of live states",
            more * steps[256],
            1.25,
            facts[1024],
        ),
    ]


def edges_passed(found: Potential) -> int:
    """Return how many edges leave the live states of all boundaries but the last, which is what one sweep looks at."""
    live_ptr, live = found.live
    return int(np.diff(found.automaton.edges.ptr.astype(np.int64))[live[: live_ptr[-2]]].sum())


def whole_step(found: Potential, repeats: int) -> float:
    """Milliseconds of CPU time of inference on a potential: label masses, live states, messages, marginals, a draw."""

    def run() -> None:
        edges = found.automaton.edges
        masses.label_masses(found.mass, found.exponent, edges.label_ptr, edges.label_class)
        found.__dict__.pop("completions", None)
        chain.draw(found, chain.posterior(found), seed=0, step=0)

    run()
    return min(cpu_ms(run) for _ in range(repeats))


def vocabulary_pass(automaton: TokenAutomaton, vocabulary: Vocabulary, length: int, repeats: int) -> Ratio:
    """Time softmax and class masses of a whole mean field against torch's softmax alone."""
    rng = np.random.default_rng(3)
    logits = rng.normal(0.0, 3.0, (length, vocabulary.size)).astype(np.float32)
    canvas = np.full(length, vocabulary.mask_id, np.int32)
    tensor = torch.from_numpy(logits)
    out = torch.empty_like(tensor)
    ours_ms, peer_ms = in_turns(
        lambda: potential(logits, canvas, vocabulary.mask_id, automaton),
        lambda: torch.softmax(tensor, 1, out=out),
        repeats,
    )
    facts = {"length": length, "vocabulary": vocabulary.size, "classes": automaton.classes}
    what = "softmax, class masses, their entropies and largest members"
    return Ratio("vocabulary", what, ours_ms, "torch.softmax(out=)", peer_ms, 2.0, facts)
