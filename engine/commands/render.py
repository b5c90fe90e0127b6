"""`python -m engine render`: a recorded run as one file that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.commands.console import console, write_file
from engine.errors import TraceError

CLIENT = Path(__file__).parents[2] / "app" / "client"


def render(
    trace: Annotated[Path, typer.Argument(help="A file that --trace wrote.")],
    out: Annotated[Path, typer.Option("--out", help="The HTML file to write.")],
) -> None:
    """Write a run as one self-contained HTML file with the page's panels and scrubbing."""
    from engine.trace_file import load
    from viz import offline

    loaded = load(trace)
    if not loaded.steps:
        raise TraceError("This trace has no finished step to show.", "Record a run that gets further.")
    text = offline.html(loaded, CLIENT)
    write_file(out, text)
    prompt = " It contains your prompt." if loaded.header.config.prompt else ""
    console.print(f"{out}: {len(text) / 2**20:.1f} MiB.{prompt}", highlight=False, soft_wrap=True)
