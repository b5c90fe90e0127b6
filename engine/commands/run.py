"""`python -m engine run`: denoise a prompt under a constraint."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.progress import Progress, TaskID, track
from rich.table import Table

from engine.commands.console import Json, Model, console, errors, finite, print_json
from engine.commands.constraint import Given, takes_constraint
from engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.models import Denoiser
    from engine.trace import Config, Header, StepRecord


@takes_constraint
def run(
    given: Given,
    prompt: Annotated[str | None, typer.Option("--prompt", help="The request that the model sees.")] = None,
    model: Model = "embedded",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel="Model")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16, float16.", rich_help_panel="Model")] = "auto",
    raw_prompt: Annotated[
        bool, typer.Option("--raw-prompt", help="Use no chat template.", rich_help_panel="Model")
    ] = False,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run code that comes with the model.", rich_help_panel="Model"),
    ] = False,
    shift: Annotated[
        bool | None,
        typer.Option(help="Of remote code: a position is predicted one to its left.", rich_help_panel="Model"),
    ] = None,
    length: Annotated[int | None, typer.Option(help="Positions of the canvas.")] = None,
    steps: Annotated[int | None, typer.Option(help="Denoising steps; the length if not given.")] = None,
    block_length: Annotated[int | None, typer.Option(help="Positions of a block; the length if not given.")] = None,
    temperature: Annotated[float, typer.Option(help="0 takes the best sequence.")] = 0.0,
    top_p: Annotated[float | None, typer.Option(help="Draw from the tokens that hold this mass.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw from this many most probable tokens.")] = None,
    remasking: Annotated[
        str,
        typer.Option(
            help="LLaDA's low_confidence or random; Dream's origin, maskgit_plus, topk_margin or entropy; Fast-dLLM's "
            "threshold or factor."
        ),
    ] = "low_confidence",
    alg_temp: Annotated[float | None, typer.Option(help="Dream's chance in the choice of positions.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Commit all positions whose confidence reaches this, not a fixed number.")
    ] = None,
    factor: Annotated[
        float | None, typer.Option(help="Commit rank r while its confidence reaches 1 − factor / (r + 1).")
    ] = None,
    cfg_scale: Annotated[float, typer.Option(help="Classifier-free guidance; two calls of the model a step.")] = 0.0,
    logits_eos_inf: Annotated[bool, typer.Option("--logits-eos-inf", help="LLaDA: never draw EOS.")] = False,
    confidence_eos_eot_inf: Annotated[
        bool, typer.Option("--confidence-eos-eot-inf", help="LLaDA: commit EOS and EoT last.")
    ] = False,
    upstream_bugs: Annotated[
        bool, typer.Option("--upstream-bugs", help="Repeat what LLaDA's code does beside what it means.")
    ] = False,
    confidence: Annotated[
        str | None,
        typer.Option(help="mf (unconstrained) or mar (constrained) decides; mar, but mf for a baseline sampler."),
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(help="midpoint, tree, chain, map; or independent, local, reject, lookahead, to be seen failing."),
    ] = "midpoint",
    reject_budget: Annotated[int, typer.Option(help="Joint draws a step that reject may make.")] = 16,
    path_tries: Annotated[
        int, typer.Option(help="Draws a step that correct a nondeterministic automaton for its paths; 0 for none.")
    ] = 64,
    pin: Annotated[list[str] | None, typer.Option(help="I=TEXT: text committed from position I on.")] = None,
    seed: Annotated[int, typer.Option(help="Of all noise.")] = 0,
    draws: Annotated[int, typer.Option(help="Runs with this and the following seeds.")] = 1,
    trace: Annotated[Path | None, typer.Option(help="Record the run in this file, step by step.")] = None,
    as_json: Json = False,
) -> None:
    """Denoise a prompt under a constraint."""
    import dataclasses

    from engine import preparation, stepping
    from engine.models.architecture import Options
    from engine.trace import Config

    chosen = given.task
    size = length if length is not None else chosen.length if chosen else 32
    if prompt is None and chosen is None:
        raise ConfigError("There is no prompt.", "Give one with --prompt.")
    _check_draws(draws, seed, trace)
    base = Config(
        prompt=prompt if prompt is not None else chosen.prompt if chosen else "",
        kind=given.kind,
        source=given.source,
        reading=given.reading,
        model=model,
        length=size,
        steps=steps if steps is not None else chosen.steps if chosen and length is None else size,
        block_length=block_length if block_length is not None else size,
        temperature=temperature,
        remasking=remasking,
        # With Mar the constraint would lead a baseline that is there to do without it.
        confidence=confidence or ("mf" if sampler in stepping.BASELINES else "mar"),
        sampler=sampler,
        seed=seed,
        reject_budget=reject_budget,
        path_tries=path_tries,
        top_p=top_p,
        top_k=top_k,
        alg_temp=alg_temp,
        threshold=threshold,
        factor=factor,
        cfg_scale=cfg_scale,
        logits_eos_inf=logits_eos_inf,
        confidence_eos_eot_inf=confidence_eos_eot_inf,
        upstream_bugs=upstream_bugs,
    )
    options = Options(device, dtype, raw_prompt, trust_remote_code, shift)
    with _loading() as progress:
        denoiser, header = preparation.prepare(base, preparation.read_pins(pin or []), options, progress)
    results = []
    for n in range(draws):
        drawn = dataclasses.replace(header, config=dataclasses.replace(header.config, seed=seed + n))
        results.append(_outcome(drawn.config, _denoised(denoiser, drawn, trace), header))
    _print_runs(results, _reweighting(results) if draws > 1 else {}, as_json)


def _check_draws(draws: int, seed: int, trace: Path | None) -> None:
    if draws < 1:
        raise ConfigError(f"There are {draws} draws.", "Ask for 1 or more.")
    if seed + draws > 2**63:
        raise ConfigError(f"The seeds of {draws} draws from {seed} on pass 2^63 − 1.", "Choose a smaller seed.")
    if draws > 1 and trace:
        raise ConfigError(f"{draws} draws can't be recorded in one trace.", "Record one draw at a time.")


def _denoised(denoiser: Denoiser, header: Header, trace: Path | None) -> list[StepRecord]:
    """Run to the end under a bar of progress, each step in the trace before the next one starts."""
    from engine import decode
    from engine.trace_file import Writer

    config = header.config
    running = track(
        decode.denoise(denoiser, header.automaton, config),
        "Denoising",
        config.steps,
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
    records: list[StepRecord] = []
    with Writer(trace, header) if trace else nullcontext() as writer:
        for record in running:
            if writer:
                writer.append(record)
            records.append(record)
    return records


@contextmanager
def _loading() -> Iterator[Callable[[int, int], None]]:
    """Show the loading of a model, where it takes a while, on a terminal; Ctrl-C ends it."""
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as shown:
        task: list[TaskID] = []

        def progress(done: int, total: int) -> None:
            task[:] = task or [shown.add_task("Loading the model", total=total)]
            shown.update(task[0], completed=done, total=total)

        yield progress


def _outcome(config: Config, records: list[StepRecord], header: Any) -> dict[str, Any]:
    from engine import trajectory
    from engine.trace import Trace

    finished = Trace(header, tuple(records))
    weight = trajectory.weight(finished)
    return {
        "text": finished.text,
        "accepted": finished.accepted,
        "token_ids": finished.canvas.tolist(),
        "seed": config.seed,
        "log_weight": finite(weight.log_total),
        "weight_is_diagnostic": weight.reason,
        "steps": [
            {
                "log_weight": finite(log_weight),
                "log_partition": finite(record.log_partition),
                "committed": np.flatnonzero(record.committed).tolist(),
                "tries": int(record.tries),
                "filter_lifted": bool(record.filter_lifted),
                "log_paths": finite(record.log_paths),
                "inverse_paths": finite(record.inverse_paths),
                "path_weighted": bool(record.path_weighted),
                "model_ms": round(float(record.model_ms), 3),
                "engine_ms": round(float(record.engine_ms), 3),
            }
            for record, log_weight in zip(records, weight.log_steps, strict=True)
        ],
    }


def _reweighting(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Weigh the runs against each other where that is unbiased, else say why not; adds `weight` to each."""
    from engine import trajectory

    reason = next((r["weight_is_diagnostic"] for r in results if r["weight_is_diagnostic"]), None)
    if reason:
        return {"valid": False, "reason": reason}
    found = trajectory.reweighted([r["log_weight"] for r in results])
    shares: dict[str, float] = {}
    for result, share in zip(results, found.weights.tolist(), strict=True):
        result["weight"] = share
        shares[result["text"]] = shares.get(result["text"], 0.0) + share
    return {
        "valid": True,
        "effective_draws": found.effective_runs,
        "log_accepted": found.log_accepted,
        "texts": dict(sorted(shares.items(), key=lambda item: -item[1])),
    }


def _print_runs(results: list[dict[str, Any]], reweighting: dict[str, Any], as_json: bool) -> None:
    if as_json:
        whole = results[0] if len(results) == 1 else {"draws": results, "reweighting": reweighting}
        print_json(whole)
        return
    for result in results:
        verdict = "[green]accepted[/]" if result["accepted"] else "[red]not accepted[/]"
        if len(results) == 1:
            table = Table("step", "log Z (nats)", "commits at", "model ms", "engine ms", box=None)
            for n, step in enumerate(result["steps"]):
                log_z = "-inf" if step["log_partition"] is None else f"{step['log_partition']:.3f}"
                positions = " ".join(map(str, step["committed"]))
                table.add_row(str(n), log_z, positions, f"{step['model_ms']:.1f}", f"{step['engine_ms']:.1f}")
            console.print(table)
            lifted = [n for n, step in enumerate(result["steps"]) if step["filter_lifted"]]
            if lifted:
                console.print(f"warning: top-p and top-k left no completion at {lifted}; drawn without them there.")
        share = f"  weight {result['weight']:.3g}" if len(results) > 1 and "weight" in result else ""
        console.print(f"seed {result['seed']}  {verdict}{share}")
        by_paths = [n for n, step in enumerate(result["steps"]) if step["path_weighted"]]
        if by_paths:
            console.print(f"warning: draws count each path of the automaton at {by_paths}; no try was kept there.")
        console.print(escape(result["text"]), highlight=False, soft_wrap=True)
    if len(results) > 1 and reweighting["valid"]:
        console.print(f"{reweighting['effective_draws']:.1f} effective draws of {len(results)}")
    elif len(results) > 1:
        console.print(f"not reweighted: {reweighting['reason']}", markup=False)
