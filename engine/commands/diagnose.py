"""`python -m engine diagnose`: why a constraint or a recorded run fails, and what would mend it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from engine.commands.console import Json, Model, console, print_finding, print_json
from engine.commands.constraint import Given, takes_constraint
from engine.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.errors import Finding
    from engine.models import Denoiser
    from engine.trace import Config


@takes_constraint
def diagnose(
    given: Given,
    model: Model = "embedded",
    length: Annotated[int | None, typer.Option(help="Positions of the canvas.")] = None,
    pin: Annotated[list[str] | None, typer.Option(help="I=TEXT: text committed from position I on.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="Hold this text against the constraint.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Diagnose a run that --trace recorded.")] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a constraint before a run, or with a recorded run."""
    if (trace is None) == (given.kind is None):
        problem = "There is no constraint and no trace." if trace is None else "There are a constraint and a trace."
        raise ConfigError(problem, "Give one of them: --regex R, --choices A B …, --task NAME or --trace FILE.")
    content, findings = _of_trace(trace) if trace else _of_constraint(given, model, length, pin or [], text or [])
    if as_json:
        print_json({**content, "findings": [finding.plain() for finding in findings]})
        return
    _print(content, findings)


def _of_trace(path: Path) -> tuple[dict[str, Any], Sequence[Finding]]:
    from engine.diagnosis import dynamic
    from engine.trace_file import load

    loaded = load(path)
    return {"text": loaded.text, "accepted": loaded.accepted}, dynamic.findings(loaded)


def _of_constraint(
    given: Given, model: str, length: int | None, pins: list[str], texts: list[str]
) -> tuple[dict[str, Any], Sequence[Finding]]:
    from engine import constraints, models
    from engine.diagnosis import examination, static, strings

    # Pins need the tokenizer of a model, and a table says the length; of any other model its vocabulary is enough.
    denoiser = models.load(model) if pins or model.startswith("table:") else None
    vocabulary = denoiser.vocabulary if denoiser else models.vocabulary(model)
    fixed = denoiser.facts.get("length") if denoiser else None
    size = length if length is not None else fixed or (given.task.length if given.task else 32)
    try:
        config = _config(given, model, denoiser, size, pins)
        findings = static.findings(config, vocabulary)
    except InputError as error:
        return {}, [examination.refusal(error)]
    content: dict[str, Any] = {"length": size, "shortest": [], "sampled": [], "texts": []}
    if not any(f.code in ("syntax", "unsupported", "size", "input") and f.severity == "error" for f in findings):
        constraint = constraints.read(given.kind or "", given.source, **dict(given.reading))
        content["shortest"] = list(strings.shortest(constraint.automaton))
        content["sampled"] = list(strings.sampled(constraint.automaton, seed=0))
        content["texts"] = [strings.read(constraint, each).plain() for each in texts]
    return content, findings


def _config(given: Given, model: str, denoiser: Denoiser | None, length: int, pins: list[str]) -> Config:
    from engine import preparation
    from engine.trace import Config

    placed = preparation.pin_tokens(denoiser, length, preparation.read_pins(pins)) if denoiser and pins else ()
    asked = Config(
        *("", given.kind, given.source, model),
        length=length,
        steps=length,
        block_length=length,
        pins=placed,
        reading=given.reading,
    )
    preparation.check(asked)
    return asked


def _print(content: dict[str, Any], findings: Sequence[Finding]) -> None:
    """Print the best finding and what is wrong in full, and one line for each of the others."""
    if "accepted" in content:
        console.print("accepted" if content["accepted"] else "not accepted", highlight=False)
        console.print(escape(content["text"]), highlight=False, soft_wrap=True)
    if not findings:
        console.print("[green]Nothing to report.[/]")
    for n, finding in enumerate(findings):
        print_finding(finding, whole=n == 0 or finding.severity != "info")
    for name in ("shortest", "sampled"):
        for example in content.get(name, ()):
            console.print(f"[dim]{name}[/]  {escape(repr(example))}", highlight=False, soft_wrap=True)
    for reading in content.get("texts", ()):
        console.print(f"{escape(repr(reading['text']))}  {escape(reading['message'])}", highlight=False, soft_wrap=True)
