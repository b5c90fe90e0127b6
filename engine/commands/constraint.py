"""The options that name a constraint, the same for every command that takes one."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
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
    """

    kind: str | None
    source: str | tuple[str, ...] | None
    task: Task | None

    def read(self) -> Constraint:
        """Read the constraint.

        Raises:
            ConfigError: none is given.
            InputError: it can't be read.
        """
        from engine import constraints

        if self.kind is None:
            raise ConfigError("There is no constraint.", "Give --regex R, --choices A B … or --task NAME.")
        return constraints.read(self.kind, self.source)


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, rich_help_panel="Constraint")


def _given(
    regex: Annotated[str | None, _option("--regex", "Python re syntax, on the whole text.")] = None,
    choices: Annotated[list[str] | None, _option("--choices", "One of these strings: --choices A B …")] = None,
    task: Annotated[str | None, _option("--task", "A built-in task's own constraint.")] = None,
) -> Given:
    """Gather the constraint; each parameter is an option of every command that takes one."""
    chosen = named_task(task) if task is not None else None
    given: list[tuple[str, str | tuple[str, ...]]] = []
    if regex is not None:
        given.append(("regex", regex))
    if choices is not None:
        given.append(("choices", tuple(choices)))
    if chosen is not None and not given:
        given.append((chosen.kind, chosen.source))
    if len(given) > 1:
        raise ConfigError("There are two constraints, --regex and --choices.", "Give one.")
    kind, source = given[0] if given else (None, None)
    return Given(kind, source, chosen)


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
    """Repeat `--choices` in front of each of the strings that follow it, up to the next option or '--'."""
    out: list[str] = []
    inside = False
    for argument in arguments:
        if argument == "--choices":
            inside = True
            continue
        inside = inside and not argument.startswith("--")
        out += ["--choices", argument] if inside else [argument]
    return out
