"""The command line, `python -m engine COMMAND`.

Exit status 0: done; 2: a mistake that the user can mend, in two sentences on standard error; 1: a bug.
"""

from __future__ import annotations

import sys

import typer

from engine.commands.accepts import accepts
from engine.commands.compare import compare
from engine.commands.compile import compile_
from engine.commands.console import errors
from engine.commands.constraint import spread_choices
from engine.commands.diagnose import diagnose
from engine.commands.inspect import inspect
from engine.commands.render import render
from engine.commands.run import run
from engine.commands.tables import tables
from engine.commands.tasks import tasks
from engine.errors import InputError

app = typer.Typer(
    help="Constrained decoding of masked diffusion language models, exact and recorded.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(inspect)
app.command()(compare)
app.command()(render)
app.command("compile")(compile_)
app.command()(accepts)
app.command()(diagnose)
app.command()(tasks)
app.command()(tables)


def main() -> None:
    """Run a command; an `InputError` becomes its two sentences and status 2."""
    try:
        app(args=spread_choices(sys.argv[1:]))
    except InputError as error:
        # The message is the user's own text in part: no markup, and no line broken under a caret.
        errors.print("Error:", style="red", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
