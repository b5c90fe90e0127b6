"""`python -m engine inspect`: read a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from engine.commands.console import Json, console, finite, print_json, shown, token
from engine.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from engine.trace import Trace


def inspect(
    trace: Annotated[Path, typer.Argument(help="A file that --trace wrote.")],
    step: Annotated[int | None, typer.Option(help="One step instead of all.")] = None,
    position: Annotated[int | None, typer.Option(help="One position of that step.")] = None,
    as_json: Json = False,
) -> None:
    """Show a recorded run: all its steps, one step, or one position of a step."""
    from engine.trace_file import load

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
        print_json(content)
        return
    rows = content.pop("rows")
    for name, value in content.items():
        console.print(f"[bold]{name}[/]  {escape(str(value))}", highlight=False)
    if rows:
        table = Table(*rows[0], box=None)
        for row in rows:
            table.add_row(*(escape(shown(value)) for value in row.values()))
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
                "log_partition": finite(s.log_partition),
                "committed": np.flatnonzero(s.committed).tolist(),
                "tokens": [token(trace, i) for i in s.drawn[s.committed].tolist()],
                "other_confidence": np.flatnonzero(
                    s.committed_mf if config.confidence == "mar" else s.committed_mar
                ).tolist(),
                "largest_kl": finite(s.kl.max()),
            }
            for n, s in enumerate(trace.steps)
        ],
    }


def _inspect_step(trace: Trace, number: int) -> dict[str, Any]:
    s = trace.steps[number]
    return {
        "step": number,
        "log_partition": finite(s.log_partition),
        "rows": [
            {
                "position": i,
                "token": token(trace, int(s.canvas[i])),
                "drawn": token(trace, int(s.drawn[i])),
                "committed": bool(s.committed[i]),
                "mf": finite(s.confidence_mf[i]),
                "mar": finite(s.confidence_mar[i]),
                "kl": finite(s.kl[i]),
                "forbidden_mass": finite(s.forbidden_mass[i]),
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
        "drawn": token(trace, int(s.drawn[position])),
        "committed": bool(s.committed[position]),
        "mf": finite(s.confidence_mf[position]),
        "mar": finite(s.confidence_mar[position]),
        "entropy_mean_field": finite(s.entropy_mean_field[position]),
        "entropy_posterior": finite(s.entropy_posterior[position]),
        "kl": finite(s.kl[position]),
        "forbidden_mass": finite(s.forbidden_mass[position]),
        "rows": [
            {"token": token(trace, v), "token_id": v, "mean_field": float(np.exp(p)), "posterior": float(np.exp(q))}
            for v, (p, q) in sorted(seen.items(), key=lambda item: (-item[1][1], -item[1][0]))
        ],
    }
