"""The options that name a constraint, the same for every command that takes one."""

from __future__ import annotations

import functools
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.constraints import Constraint
    from engine.tasks import Task


@dataclass(frozen=True)
class Given:
    """The constraint that a command line names.

    Attributes:
        kind: of `engine.constraints.KINDS`; None where no constraint is given.
        source: what `engine.constraints.read` takes.
        task: the built-in task, where one is named.
        reading: options that it is read with.
    """

    kind: str | None
    source: str | tuple[str, ...] | None
    task: Task | None
    reading: tuple[tuple[str, Any], ...] = ()

    def read(self) -> Constraint:
        """Read the constraint.

        Raises:
            ConfigError: none is given.
            InputError: it can't be read.
        """
        from engine import constraints

        if self.kind is None:
            raise ConfigError(
                "There is no constraint.",
                "Give one, such as --regex R, --choices A B … or --json-schema FILE; --help lists the others.",
            )
        return constraints.read(self.kind, self.source, **dict(self.reading))


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, rich_help_panel="Constraint")


def _given(
    regex: Annotated[str | None, _option("--regex", "Python re syntax, on the whole text.")] = None,
    choices: Annotated[list[str] | None, _option("--choices", "One of these strings: --choices A B …")] = None,
    json_schema: Annotated[str | None, _option("--json-schema", "A JSON Schema: a file, or '-'.")] = None,
    tools: Annotated[
        str | None, _option("--tools", "Functions, as OpenAI's tools or BFCL have them: a file, or '-'.")
    ] = None,
    call_syntax: Annotated[str | None, _option("--call-syntax", "Of --tools: json or python.")] = None,
    calls: Annotated[str | None, _option("--calls", "Of --tools: one, or several as a list.")] = None,
    grammar: Annotated[str | None, _option("--grammar", "A grammar in Lark's syntax: a file, or '-'.")] = None,
    depth: Annotated[int | None, _option("--depth", "How often what is recursive may stand in itself.")] = None,
    sql: Annotated[str | None, _option("--sql", "SELECT over the database of this file, or '-'.")] = None,
    several: Annotated[str | None, _option("--all", "A JSON list of constraints that must all hold, or '-'.")] = None,
    options: Annotated[
        list[str] | None, _option("--option", "NAME=VALUE: how the constraint is read, such as whitespace=compact.")
    ] = None,
    strict: Annotated[bool, _option("--strict", "Refuse what can't be enforced exactly.")] = False,
    task: Annotated[str | None, _option("--task", "A built-in task's own constraint.")] = None,
) -> Given:
    """Gather the constraint; each parameter is an option of every command that takes one."""
    chosen = named_task(task) if task is not None else None
    given: list[tuple[str, str | tuple[str, ...]]] = []
    if regex is not None:
        given.append(("regex", regex))
    if choices is not None:
        given.append(("choices", tuple(choices)))
    files = {"json_schema": json_schema, "tools": tools, "grammar": grammar, "sql": sql, "all": several}
    for name, file in files.items():
        if file is not None:
            given.append((name, contents(file)))
    if chosen is not None and not given:
        given.append((chosen.kind, chosen.source))
    if len(given) > 1:
        raise ConfigError(f"There are two constraints or more: {', '.join(kind for kind, _ in given)}.", "Give one.")
    kind, source = given[0] if given else (None, None)
    named = {"call_syntax": call_syntax, "calls": calls, "depth": depth, "strict": strict or None}
    reading = [*((name, value) for name, value in named.items() if value is not None), *_options(kind, options or [])]
    twice = [name for n, (name, _) in enumerate(reading) if name in dict(reading[:n])]
    if twice:
        raise ConfigError(f"The option {twice[0]} is given twice.", "Give it once.")
    return Given(kind, source, chosen, tuple(reading))


def _options(kind: str | None, written: list[str]) -> list[tuple[str, Any]]:
    """Read options of a kind of constraint; whether it has them is for its reader to say."""
    from engine.constraints import KINDS

    defaults = {option.name: option.default for option in KINDS[kind].options} if kind else {}
    defaults["strict"] = False
    return [_option_of(text, defaults) for text in written]


def _option_of(text: str, defaults: dict[str, str | int | bool]) -> tuple[str, str | int | bool]:
    """Read NAME=VALUE, the value of the type of its default."""
    name, _, value = text.partition("=")
    match defaults.get(name, ""):
        case bool() if value in _TRUTHS:
            return name, _TRUTHS[value]
        case bool():
            wanted = "true or false"
        case int() if value.isdecimal() and len(value) < 10:
            return name, int(value)
        case int():
            wanted = "a whole number"
        case _ if value:
            return name, value
        case _:
            wanted = "a value"
    raise ConfigError(f"The option {text!r} can't be read.", f"Write {name or 'NAME'}= and {wanted}.")


_TRUTHS = {"true": True, "false": False}


def contents(file: str) -> str:
    """Read a text file that the user named, or standard input for `-`.

    Raises:
        ConfigError: it can't be read, or standard input is closed.
    """
    if file == "-" and sys.stdin is None:
        raise ConfigError("Standard input is closed.", "Pipe a text into the command, or name a file.")
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"The file {file!r} can't be read: {_why(error)}.", "Give a text file in UTF-8, or '-'."
        ) from error


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"it is not UTF-8 at byte {error.start}"


def takes_constraint(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the constraint options; it receives what they name as its first argument, a `Given`."""
    options = inspect.signature(_given, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        given = _given(**{name: values.pop(name) for name in options})
        command(given, **values)

    arguments = list(own.parameters.values())[1:]
    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*arguments, *options.values())]
    with_options.__signature__ = own.replace(parameters=by_name)  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in by_name}
    return with_options


def named_task(name: str) -> Task:
    """Find a built-in task.

    Raises:
        ConfigError: there is none of this name; lists them.
    """
    from engine.tasks import TASKS

    found = {t.name: t for t in TASKS}
    if name not in found:
        raise ConfigError(f"There is no task {name!r}.", f"Choose one of {', '.join(found)}.")
    return found[name]


def spread_choices(arguments: list[str]) -> list[str]:
    """Repeat `--choices` in front of each of the strings that follow it, up to the next option or '--'.

    Raises:
        ConfigError: none follows; what would be left is no constraint.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    out: list[str] = []
    inside = False
    for n, argument in enumerate(arguments[:end]):
        if argument == "--choices" and (n + 1 == end or arguments[n + 1].startswith("--")):
            raise ConfigError("There is no choice behind --choices.", "Give at least one string: --choices A B ….")
        inside = argument == "--choices" or (inside and not argument.startswith("--"))
        if argument != "--choices":
            out += ["--choices", argument] if inside else [argument]
    return out + arguments[end:]
