"""What the commands share: where they print, and how a value is written."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from engine.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.errors import Finding
    from engine.trace import Trace

SHOWN_SIDES = 2
"""Further places of an error, as the other side of a conflict, that are shown with their lines."""
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}
console = Console()
errors = Console(stderr=True)

Model = Annotated[str, typer.Option("--model", help="embedded, a model folder, or table:FILE.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def print_json(content: dict[str, Any]) -> None:
    """Write one JSON object to standard output; there a number is finite or null."""
    sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")


def write_file(path: Path, text: str) -> None:
    """Write a text file that the user named.

    Raises:
        ConfigError: it can't be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path} can't be written: {error.strerror}.", "Name a file in a folder that exists and has room."
        ) from error


def print_finding(finding: Finding, *, whole: bool) -> None:
    """Print a finding: its one sentence, and under `whole` its place in the source, advice and what would mend it."""
    colour = _COLOURS[finding.severity]
    line = f"[{colour}]{finding.severity}[/] \\[{finding.code}] {escape(finding.message)}"
    console.print(line, highlight=False, soft_wrap=True)
    if not whole:
        return
    if finding.severity != "info":
        sides = finding.related[:SHOWN_SIDES] if finding.severity == "error" else ()
        for place in filter(None, (finding.where, *sides)):
            console.print(escape(place.frame()), highlight=False, soft_wrap=True)
    for advice in finding.fixes:
        console.print(f"  {escape(advice)}", highlight=False, soft_wrap=True)
    for remedy in finding.remedies:
        changes = ", ".join(f"{name} = {value!r}" for name, value in remedy.changes.items())
        console.print(f"  [green]mends it:[/] {escape(remedy.label)}  [dim]{escape(changes)}[/]", soft_wrap=True)
    if finding.untried:
        console.print(f"  [dim]Changes not tried, as that takes too long: {finding.untried}.[/]", soft_wrap=True)


def token(trace: Trace, token_id: int) -> str:
    """Write a token for a reader."""
    vocabulary = trace.header.vocabulary
    if token_id == vocabulary.mask_id:
        return "▨"
    if token_id in vocabulary.eos_ids:
        return "⏹"
    written = vocabulary.written(token_id)
    return f"⟨{token_id}⟩" if written is None else written.decode(errors="backslashreplace")


def finite(value: Any) -> float | None:
    """JSON has no infinity: an impossible quantity is null."""
    return float(value) if np.isfinite(value) else None


def shown(value: object) -> str:
    """Write a cell of a table."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return {None: "–", True: "yes", False: ""}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
