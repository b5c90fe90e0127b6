"""`python -m engine tasks`: the ready requests."""

from __future__ import annotations

from rich.markup import escape

from engine.commands.console import Json, console, print_json


def tasks(as_json: Json = False) -> None:
    """List the built-in tasks with an example prompt each."""
    from engine.tasks import TASKS

    if as_json:
        rows = [{"name": t.name, "prompt": t.prompt, "length": t.length, "constraint": t.source} for t in TASKS]
        print_json({"tasks": rows})
        return
    for t in TASKS:
        console.print(f"[bold]{t.name}[/]  {escape(t.title)}. Canvas {t.length}.", highlight=False, soft_wrap=True)
        console.print(f"  prompt      {escape(t.prompt)}", highlight=False, soft_wrap=True)
        console.print(f"  constraint  {escape(str(t.source))}", highlight=False, soft_wrap=True)
