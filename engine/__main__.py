"""The command line: `python -m engine run | inspect | compile | accepts | tasks`.

Exit status 0: done; 2: a mistake that the user can mend, in two sentences on standard error; 1: a bug.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from engine.errors import ConfigError, InputError, TraceError

if TYPE_CHECKING:
    from engine.constraints import Constraint
    from engine.tasks import Task
    from engine.trace import Config, StepRecord, Trace

app = typer.Typer(
    help="Constrained decoding of masked diffusion language models, exact and recorded.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
errors = Console(stderr=True)

Regex = Annotated[
    str | None, typer.Option("--regex", help="Python re syntax, on the whole text.", rich_help_panel="Constraint")
]
Choices = Annotated[
    list[str] | None,
    typer.Option("--choices", help="One of these strings: --choices A B …", rich_help_panel="Constraint"),
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="A built-in task's own constraint.", rich_help_panel="Constraint")
]
Model = Annotated[str, typer.Option("--model", help="embedded, a model folder, or table:FILE.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@app.command()
def run(
    prompt: Annotated[str | None, typer.Option("--prompt", help="The request that the model sees.")] = None,
    regex: Regex = None,
    choices: Choices = None,
    task: TaskName = None,
    model: Model = "embedded",
    length: Annotated[int | None, typer.Option(help="Positions of the canvas.")] = None,
    steps: Annotated[int | None, typer.Option(help="Denoising steps; the length if not given.")] = None,
    block_length: Annotated[int | None, typer.Option(help="Positions of a block; the length if not given.")] = None,
    temperature: Annotated[float, typer.Option(help="0 takes the best sequence.")] = 0.0,
    remasking: Annotated[str, typer.Option(help="low_confidence or random.")] = "low_confidence",
    confidence: Annotated[str, typer.Option(help="mf (unconstrained) or mar (constrained) decides.")] = "mar",
    sampler: Annotated[
        str, typer.Option(help="midpoint, tree, chain, map; or independent, local, reject, to be seen failing.")
    ] = "midpoint",
    reject_budget: Annotated[int, typer.Option(help="Joint draws a step that reject may make.")] = 16,
    pin: Annotated[list[str] | None, typer.Option(help="I=TEXT: text committed from position I on.")] = None,
    seed: Annotated[int, typer.Option(help="Of all noise.")] = 0,
    draws: Annotated[int, typer.Option(help="Runs with this and the following seeds.")] = 1,
    trace: Annotated[Path | None, typer.Option(help="Record the run in this file, step by step.")] = None,
    as_json: Json = False,
) -> None:
    """Denoise a prompt under a constraint."""
    import dataclasses

    from engine import decode
    from engine.trace import Config, Writer

    chosen = _task(task) if task else None
    kind, source = _constraint_source(regex, choices, chosen, required=False)
    size = length or (chosen.length if chosen else 32)
    if prompt is None and chosen is None:
        raise ConfigError("There is no prompt.", "Give one with --prompt.")
    if draws < 1 or (draws > 1 and trace):
        raise ConfigError(
            f"{draws} draws can't be recorded in one trace." if trace else f"There are {draws} draws.",
            "Record one draw at a time." if trace else "Ask for 1 or more.",
        )
    base = Config(
        prompt=prompt if prompt is not None else chosen.prompt if chosen else "",
        kind=kind,
        source=source,
        model=model,
        length=size,
        steps=steps if steps is not None else chosen.steps if chosen and not length else size,
        block_length=block_length if block_length is not None else size,
        temperature=temperature,
        remasking=remasking,
        confidence=confidence,
        sampler=sampler,
        seed=seed,
        reject_budget=reject_budget,
    )
    denoiser, header = decode.prepare(base, decode.read_pins(pin or []))
    results = []
    for n in range(draws):
        drawn = dataclasses.replace(header, config=dataclasses.replace(header.config, seed=seed + n))
        with Writer(trace, drawn) if trace else nullcontext() as writer:
            records: list[StepRecord] = []
            running = decode.denoise(denoiser, header.automaton, drawn.config)
            for record in track(
                running, "Denoising", drawn.config.steps, console=errors, transient=True, disable=not errors.is_terminal
            ):
                if writer:
                    writer.append(record)
                records.append(record)
        results.append(_outcome(drawn.config, records, header))
    _print_runs(results, as_json)


def _outcome(config: Config, records: list[StepRecord], header: Any) -> dict[str, Any]:
    from engine.trace import Trace

    finished = Trace(header, tuple(records))
    return {
        "text": finished.text,
        "accepted": finished.accepted,
        "token_ids": finished.canvas.tolist(),
        "seed": config.seed,
        "steps": [
            {
                "log_partition": _finite(record.log_partition),
                "committed": np.flatnonzero(record.committed).tolist(),
                "tries": int(record.tries),
                "model_ms": round(float(record.model_ms), 3),
                "engine_ms": round(float(record.engine_ms), 3),
            }
            for record in records
        ],
    }


def _print_runs(results: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        whole = results[0] if len(results) == 1 else {"draws": results}
        sys.stdout.write(json.dumps(whole, allow_nan=False) + "\n")
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
        console.print(f"seed {result['seed']}  {verdict}")
        console.print(escape(result["text"]), highlight=False, soft_wrap=True)


@app.command()
def inspect(
    trace: Annotated[Path, typer.Argument(help="A file that --trace wrote.")],
    step: Annotated[int | None, typer.Option(help="One step instead of all.")] = None,
    position: Annotated[int | None, typer.Option(help="One position of that step.")] = None,
    as_json: Json = False,
) -> None:
    """Show a recorded run: all its steps, one step, or one position of a step."""
    from engine.trace import load

    loaded = load(trace)
    if position is not None and step is None:
        raise ConfigError("A position belongs to a step, and none is given.", "Add --step N.")
    _in_range("step", step, len(loaded.steps))
    _in_range("position", position, loaded.header.config.length)
    if step is None:
        content = _inspect_run(loaded)
    elif position is None:
        content = _inspect_step(loaded, step)
    else:
        content = _inspect_position(loaded, step, position)
    if as_json:
        sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")
        return
    rows = content.pop("rows")
    for name, value in content.items():
        console.print(f"[bold]{name}[/]  {escape(str(value))}", highlight=False)
    if rows:
        table = Table(*rows[0], box=None)
        for row in rows:
            table.add_row(*(escape(_shown(value)) for value in row.values()))
        console.print(table)


def _in_range(name: str, value: int | None, count: int) -> None:
    if value is not None and not 0 <= value < count:
        raise TraceError(
            f"There is no {name} {value}: the trace has {count}.",
            f"Choose from 0 to {count - 1}." if count else "The run was stopped before its first step ended.",
        )


def _inspect_run(trace: Trace) -> dict[str, Any]:
    config = trace.header.config
    return {
        "text": trace.text,
        "accepted": trace.accepted,
        "finished": trace.finished,
        "prompt": config.prompt,
        "constraint": config.source,
        "model": trace.header.model.get("name"),
        "sampler": config.sampler,
        "confidence": config.confidence,
        "temperature": config.temperature,
        "seed": config.seed,
        "rows": [
            {
                "step": n,
                "log_partition": _finite(s.log_partition),
                "committed": np.flatnonzero(s.committed).tolist(),
                "tokens": [_token(trace, i) for i in s.drawn[s.committed].tolist()],
                "other_confidence": np.flatnonzero(
                    s.committed_mf if config.confidence == "mar" else s.committed_mar
                ).tolist(),
                "largest_kl": _finite(s.kl.max()),
            }
            for n, s in enumerate(trace.steps)
        ],
    }


def _inspect_step(trace: Trace, number: int) -> dict[str, Any]:
    s = trace.steps[number]
    return {
        "step": number,
        "log_partition": _finite(s.log_partition),
        "rows": [
            {
                "position": i,
                "token": _token(trace, int(s.canvas[i])),
                "drawn": _token(trace, int(s.drawn[i])),
                "committed": bool(s.committed[i]),
                "mf": _finite(s.confidence_mf[i]),
                "mar": _finite(s.confidence_mar[i]),
                "kl": _finite(s.kl[i]),
                "forbidden_mass": _finite(s.forbidden_mass[i]),
                "state": int(s.path[i + 1]),
            }
            for i in range(trace.header.config.length)
        ],
    }


def _inspect_position(trace: Trace, number: int, position: int) -> dict[str, Any]:
    s = trace.steps[number]
    seen: dict[int, tuple[float, float]] = {}
    for row in (1, 0):
        for r, token_id in enumerate(s.top_ids[position, row].tolist()):
            if token_id >= 0:
                seen[token_id] = (
                    float(s.top_log_mean_field[position, row, r]),
                    float(s.top_log_posterior[position, row, r]),
                )
    return {
        "step": number,
        "position": position,
        "drawn": _token(trace, int(s.drawn[position])),
        "committed": bool(s.committed[position]),
        "mf": _finite(s.confidence_mf[position]),
        "mar": _finite(s.confidence_mar[position]),
        "entropy_mean_field": _finite(s.entropy_mean_field[position]),
        "entropy_posterior": _finite(s.entropy_posterior[position]),
        "kl": _finite(s.kl[position]),
        "forbidden_mass": _finite(s.forbidden_mass[position]),
        "rows": [
            {"token": _token(trace, v), "token_id": v, "mean_field": float(np.exp(p)), "posterior": float(np.exp(q))}
            for v, (p, q) in sorted(seen.items(), key=lambda item: (-item[1][1], -item[1][0]))
        ],
    }


@app.command(name="compile")
def compile_(
    regex: Regex = None,
    choices: Choices = None,
    task: TaskName = None,
    model: Model = "embedded",
    length: Annotated[int, typer.Option(help="Largest token length that is looked at.")] = 64,
    as_json: Json = False,
) -> None:
    """Compile a constraint for a model's vocabulary and say what came out."""
    from engine import models, token_automaton

    constraint = _constraint(regex, choices, _task(task) if task else None)
    vocabulary = models.load(model).vocabulary
    started = time.perf_counter()
    compiled = token_automaton.compile(constraint, vocabulary)
    compile_ms = 1e3 * (time.perf_counter() - started)
    accepted = np.flatnonzero(compiled.accepted_lengths(length)).tolist()
    content = {
        "states": compiled.states,
        "accepting": int(compiled.accepting.sum()),
        "edges": int(compiled.edges.target.size),
        "token_classes": compiled.classes,
        "labels": compiled.edges.labels,
        "deterministic": True,
        "min_tokens": accepted[0] if accepted else None,
        "max_tokens": accepted[-1] if accepted else None,
        "accepted_lengths": accepted,
        "findings": [
            {
                "code": f.code,
                "severity": f.severity,
                "where": {"line": f.where.line, "column": f.where.column},
                "message": f.message,
                "fixes": list(f.fixes),
            }
            for f in constraint.findings
        ],
        "compile_ms": round(compile_ms, 3),
    }
    if as_json:
        sys.stdout.write(json.dumps(content) + "\n")
        return
    for name, value in content.items():
        if name != "findings":
            console.print(f"{name:18} {_lengths(accepted) if name == 'accepted_lengths' else value}", highlight=False)
    for f in constraint.findings:
        fixes = " ".join(f.fixes)
        console.print(f"{f.severity} \\[{f.code}] {escape(f.message)} {escape(fixes)}", highlight=False)


@app.command()
def accepts(
    texts: Annotated[list[str], typer.Argument(help="Texts; '-' reads a JSON list of them from standard input.")],
    regex: Regex = None,
    choices: Choices = None,
    task: TaskName = None,
    as_json: Json = False,
) -> None:
    """Say for each text whether a constraint accepts it; no tokenizer is involved.

    Put '--' between the strings of --choices and the texts.
    """
    constraint = _constraint(regex, choices, _task(task) if task else None)
    listed = [t for text in texts for t in (_texts_of_stdin() if text == "-" else [text])]
    verdicts = [constraint.accepts(text) for text in listed]
    if as_json:
        sys.stdout.write(json.dumps({"accepts": verdicts}) + "\n")
        return
    for verdict in verdicts:
        console.print(str(verdict).lower())


@app.command()
def tasks(as_json: Json = False) -> None:
    """List the built-in tasks with an example prompt each."""
    from engine.tasks import TASKS

    if as_json:
        rows = [{"name": t.name, "prompt": t.prompt, "length": t.length, "constraint": t.source} for t in TASKS]
        sys.stdout.write(json.dumps({"tasks": rows}) + "\n")
        return
    for t in TASKS:
        console.print(f"[bold]{t.name}[/]  {escape(t.title)}. Canvas {t.length}.", highlight=False, soft_wrap=True)
        console.print(f"  prompt      {escape(t.prompt)}", highlight=False, soft_wrap=True)
        console.print(f"  constraint  {escape(str(t.source))}", highlight=False, soft_wrap=True)


def _texts_of_stdin() -> list[str]:
    try:
        listed = json.load(sys.stdin)
    except ValueError as error:
        raise ConfigError(f"Standard input isn't JSON: {error}.", 'Write a list of strings, ["a", "b"].') from error
    if not isinstance(listed, list) or not all(isinstance(t, str) for t in listed):
        raise ConfigError("Standard input isn't a JSON list of strings.", 'Write one, ["a", "b"].')
    return listed


def _task(name: str) -> Task:
    from engine.tasks import TASKS

    found = {t.name: t for t in TASKS}
    if name not in found:
        raise ConfigError(f"There is no task {name!r}.", f"Choose one of {', '.join(found)}.")
    return found[name]


def _constraint_source(
    regex: str | None, choices: list[str] | None, task: Task | None, *, required: bool
) -> tuple[str | None, str | tuple[str, ...] | None]:
    given: list[tuple[str, str | tuple[str, ...]]] = []
    if regex is not None:
        given.append(("regex", regex))
    if choices is not None:
        given.append(("choices", tuple(choices)))
    if task is not None and not given:
        given.append((task.kind, task.source))
    if len(given) > 1:
        raise ConfigError("There are two constraints, --regex and --choices.", "Give one.")
    if not given and required:
        raise ConfigError("There is no constraint.", "Give --regex R, --choices A B … or --task NAME.")
    return given[0] if given else (None, None)


def _constraint(regex: str | None, choices: list[str] | None, task: Task | None) -> Constraint:
    from engine import constraints

    kind, source = _constraint_source(regex, choices, task, required=True)
    return constraints.read(kind or "", source)


def _token(trace: Trace, token_id: int) -> str:
    vocabulary = trace.header.vocabulary
    if token_id == vocabulary.mask_id:
        return "▨"
    if token_id in vocabulary.eos_ids:
        return "⏹"
    written = vocabulary.written(token_id)
    return f"⟨{token_id}⟩" if written is None else written.decode(errors="backslashreplace")


def _finite(value: Any) -> float | None:
    """JSON has no infinity: an impossible quantity is null."""
    return float(value) if np.isfinite(value) else None


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return {None: "–", True: "yes", False: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)


def _lengths(lengths: list[int]) -> str:
    """Write lengths as ranges."""
    parts: list[list[int]] = []
    for n in lengths:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in parts) or "none"


def main() -> None:
    """Run a command; an `InputError` becomes its two sentences and status 2."""
    try:
        app(args=_spread_choices(sys.argv[1:]))
    except InputError as error:
        # The message is the user's own text in part: no markup, and no line broken under a caret.
        errors.print("Error:", style="red", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


def _spread_choices(arguments: list[str]) -> list[str]:
    """Repeat `--choices` in front of each of the strings that follow it, up to the next option or '--'."""
    out: list[str] = []
    inside = False
    for argument in arguments:
        if argument == "--choices":
            inside = True
            continue
        inside = inside and not argument.startswith("--")
        out += ["--choices", argument] if inside else [argument]
    return out


if __name__ == "__main__":
    main()
