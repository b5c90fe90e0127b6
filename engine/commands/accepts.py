"""`python -m engine accepts`: which texts are in a constraint's language."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from engine.commands.console import Json, console, print_json
from engine.commands.constraint import Given, contents, takes_constraint
from engine.errors import ConfigError


@takes_constraint
def accepts(
    given: Given,
    texts: Annotated[list[str], typer.Argument(help="Texts; '-' reads a JSON list of them from standard input.")],
    as_json: Json = False,
) -> None:
    """Say for each text whether a constraint accepts it; no tokenizer is involved.

    Put '--' between the strings of --choices and the texts.
    """
    constraint = given.read()
    listed = [t for text in texts for t in (_texts_of_stdin() if text == "-" else [text])]
    verdicts = [constraint.accepts(text) for text in listed]
    if as_json:
        print_json({"accepts": verdicts})
        return
    for verdict in verdicts:
        console.print(str(verdict).lower())


def _texts_of_stdin() -> list[str]:
    written = contents("-")
    try:
        listed = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"Standard input isn't JSON: {error}.", 'Write a list of strings, ["a", "b"].') from error
    if not isinstance(listed, list) or not all(isinstance(t, str) for t in listed):
        raise ConfigError("Standard input isn't a JSON list of strings.", 'Write one, ["a", "b"].')
    return listed
