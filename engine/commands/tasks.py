"""`python -m engine tasks`: the ready requests, and the families of problems that tables are made of."""

from __future__ import annotations

from rich.markup import escape

from engine.commands.console import Json, console, print_json


def tasks(as_json: Json = False) -> None:
    """List the built-in tasks, and the families of problems with an example each."""
    from engine.tasks import TASKS
    from engine.tasks.families import FAMILIES

    problems = [(family, family.problems(1, "held_out")[0]) for family in FAMILIES]
    if as_json:
        rows = [{"name": t.name, "prompt": t.prompt, "length": t.length, "constraint": t.source} for t in TASKS]
        examples = [{"name": f.name, "length": f.length, "prompt": p.prompt, "answer": p.answer} for f, p in problems]
        print_json({"tasks": rows, "families": examples})
        return
    for t in TASKS:
        console.print(f"[bold]{t.name}[/]  {escape(t.title)}. Canvas {t.length}.", highlight=False, soft_wrap=True)
        console.print(f"  prompt      {escape(t.prompt)}", highlight=False, soft_wrap=True)
        console.print(f"  constraint  {escape(str(t.source))}", highlight=False, soft_wrap=True)
    for family, problem in problems:
        title = f"[bold]{family.name}[/]  {escape(family.title)}. Canvas {family.length}. A family of problems."
        console.print(title, highlight=False, soft_wrap=True)
        console.print(f"  prompt      {escape(problem.prompt)}", highlight=False, soft_wrap=True)
        console.print(f"  answer      {escape(problem.answer)}", highlight=False, soft_wrap=True)
