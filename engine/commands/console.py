"""What the commands share: where they print, and how a value is written."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

if TYPE_CHECKING:
    from engine.trace import Trace

console = Console()
errors = Console(stderr=True)

Model = Annotated[str, typer.Option("--model", help="embedded, a model folder, or table:FILE.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def print_json(content: dict[str, Any]) -> None:
    """Write one JSON object to standard output; there a number is finite or null."""
    sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")


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
