"""Text that the user wrote -> pattern with origins and findings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine import automaton, effort, pattern
from engine.errors import ApproximationError, ConfigError, SizeError

if TYPE_CHECKING:
    from engine.automaton import ByteAutomaton
    from engine.errors import Finding
    from engine.pattern import Pattern

Read = tuple[str | tuple[str, ...], "Pattern", "tuple[Finding, ...]"]
"""The source that origins point into, the pattern, and the findings."""


@dataclass(frozen=True)
class Option:
    """A setting of a kind of constraint.

    Attributes:
        name: of the keyword argument of `read`.
        label: for a form.
        default: its value where none is given.
        choices: the values that it may have; none for a number or a truth value.
    """

    name: str
    label: str
    default: str | int | bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A language that constraints are written in.

    Attributes:
        name: as `read` and the command line know it.
        label: for a form.
        description: one sentence on what is written.
        example: a source to start from.
        options: its settings.
    """

    name: str
    label: str
    description: str
    example: str
    options: tuple[Option, ...] = ()


_WHITESPACE = Option("whitespace", "Blanks", "optional", ("optional", "compact", "single-space", "free"))
_DEPTH = Option("depth", "Recursion depth", 4)
_FORMATS = Option("format_assertion", "Enforce 'format'", True)

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "regex",
            "Regular expression",
            "A regular expression in Python's syntax, matched on the whole text.",
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        ),
        Kind("choices", "Choices", "One of these texts, one a line.", "yes\nno"),
        Kind(
            "json_schema",
            "JSON Schema",
            "A JSON Schema of draft 2020-12, or an older one that '$schema' names.",
            '{\n  "type": "object",\n  "properties": {\n    "name": {"type": "string", "maxLength": 12},\n'
            '    "age": {"type": "integer", "minimum": 0, "maximum": 130}\n  },\n'
            '  "required": ["name", "age"],\n  "additionalProperties": false\n}',
            (
                _WHITESPACE,
                Option("blanks", "Most blanks in a row, where free", 20),
                Option("key_order", "Order of members", "schema", ("schema", "any")),
                _DEPTH,
                Option("any_depth", "Levels of unknown values", 4),
                _FORMATS,
                Option("plain_integers", "Integers without a point", False),
            ),
        ),
        Kind(
            "tools",
            "Function calls",
            "A list of functions, as OpenAI's tools or BFCL have it; the text is a call of one of them.",
            '[{\n  "name": "get_weather",\n  "parameters": {\n    "type": "object",\n    "properties": {\n'
            '      "city": {"type": "string"},\n      "unit": {"enum": ["celsius", "fahrenheit"]}\n    },\n'
            '    "required": ["city"]\n  }\n}]',
            (
                Option("call_syntax", "Call syntax", "json", ("json", "python")),
                Option("calls", "Calls", "one", ("one", "several")),
                _WHITESPACE,
                Option("key_order", "Order of arguments", "schema", ("schema", "any")),
                _DEPTH,
                _FORMATS,
            ),
        ),
        Kind(
            "grammar",
            "Grammar",
            "A grammar in Lark's syntax; the rule 'start' stands for the whole text.",
            'start: sum\nsum: sum ("+" | "-") product | product\nproduct: product "*" atom | atom\n'
            'atom: NUMBER | "(" sum ")"\nNUMBER: /[0-9]+/\n',
            (_DEPTH,),
        ),
        Kind(
            "sql",
            "SQL",
            "SELECT statements over a database: CREATE TABLE text, or the JSON of one of Spider's databases.",
            "CREATE TABLE singer (\n  singer_id int PRIMARY KEY,\n  name text,\n  country text\n);\n"
            "CREATE TABLE song (\n  title text,\n  singer_id int REFERENCES singer(singer_id),\n  sales int\n);\n",
        ),
        Kind(
            "all",
            "Several at once",
            "A list of constraints that must all hold; those with 'but_not' must not.",
            '[\n  {"kind": "regex", "source": "[a-z]{2,8}"},\n'
            '  {"kind": "choices", "source": ["if", "for"], "but_not": true}\n]',
        ),
    )
}
"""The kinds of constraint by name."""


@dataclass(frozen=True)
class Constraint:
    """A language, as the user wrote it.

    Attributes:
        kind: one of `KINDS`.
        source: what was written; a tuple of strings for `choices`; the JSON text for what is written in JSON.
        pattern: its syntax tree.
        findings: what the author should know.
        steps: of work, what reading leaves of those for its automaton.
    """

    kind: str
    source: str | tuple[str, ...]
    pattern: Pattern
    findings: tuple[Finding, ...]
    steps: float = field(default=automaton.COMPILE_STEPS, compare=False)

    @property
    def text(self) -> str:
        """The source as one text, which origins point into."""
        return self.source if isinstance(self.source, str) else "\n".join(self.source)

    @cached_property
    def nodes(self) -> list[Pattern]:
        """Every node of the pattern once, though it may stand in many places."""
        return pattern.nodes(self.pattern)

    @cached_property
    def automaton(self) -> ByteAutomaton:
        """The byte automaton; raises `SizeError` over the budget of states or of time."""
        try:
            return automaton.compile(self.pattern, self.text, steps=self.steps)
        except RecursionError as error:
            raise SizeError("The constraint nests too deeply to be compiled.", "Use less nesting.") from error

    def accepts(self, text: str) -> bool:
        """Whether the whole text is in the language, no tokenizer involved."""
        try:
            return self.automaton.accepts(text.encode())
        except UnicodeEncodeError:
            return False  # a lone surrogate: no UTF-8 holds it


def read(kind: str, source: Any, *, strict: bool = False, **options: Any) -> Constraint:
    """Read a constraint.

    Args:
        kind: one of `KINDS`.
        source: text; for `choices` also a sequence of strings, and for what is written in JSON the parsed object.
        strict: refuse what can't be enforced exactly, where otherwise a finding says what is enforced instead.
        options: those of the kind.

    Raises:
        ApproximationError: under `strict`, the language would not be the one that was written.
        SizeError: it takes too much work.
        InputError: the kind or an option is unknown, or the source can't be read; says where.
    """
    # A list is searched by equality, so that what has no hash is refused like any other kind that there isn't.
    if kind not in list(KINDS) or not _fits(kind, source):
        raise ConfigError(
            f"There is no constraint kind {kind!r} with a source of type {type(source).__name__}.",
            f"Choose one of {', '.join(KINDS)}, with text as source.",
        )
    _check_options(kind, {"strict": strict} | options)
    try:
        with effort.limited(automaton.COMPILE_STEPS) as budget:
            parsed = _parsed(kind, source, options)
    except effort.OutOfStepsError as error:
        raise SizeError("The constraint takes too much work to be read.", "Leave parts of it out.") from error
    except RecursionError as error:
        raise SizeError("The constraint nests too deeply to be read.", "Use less nesting.") from error
    constraint = Constraint(kind, *parsed, steps=max(budget.left, automaton.LEAST_STEPS))
    changed = next((f for f in constraint.findings if f.accepts != "as written"), None)
    if strict and changed is not None:
        fixes = " ".join(changed.fixes) or "Read it without strict to have that."
        raise ApproximationError(changed.message, fixes, changed.where)
    return constraint


def _fits(kind: str, source: Any) -> bool:
    """Whether a source is of a type that a kind can be read from; what is written in JSON may be any value of it."""
    if kind == "choices" and isinstance(source, list | tuple):
        return all(isinstance(choice, str) for choice in source)
    return kind not in ("choices", "grammar", "regex") or isinstance(source, str)


def _check_options(kind: str, given: dict[str, Any]) -> None:
    known: dict[str, str | int | bool] = {option.name: option.default for option in KINDS[kind].options}
    if not given.keys() <= known.keys() | {"strict"}:
        raise ConfigError(
            f"A constraint of kind {kind!r} has no option {min(given.keys() - known.keys() - {'strict'})!r}.",
            f"Its options are {', '.join(sorted(known))}." if known else "It has none; leave it out.",
        )
    words = {bool: "true or false", int: "a whole number", str: "a text"}
    for name, value in given.items():
        wanted = type(known.get(name, False))
        if type(value) is not wanted:
            raise ConfigError(f"The option {name} of a constraint can't be {value!r}.", f"Give {words[wanted]}.")


def _parsed(kind: str, source: Any, options: dict[str, Any]) -> Read:
    """Read a source; each language is imported when it is used."""
    match kind:
        case "regex":
            from engine.constraints import regex

            return source, *regex.parse(source, compare=True)
        case "choices":
            from engine.constraints import choices

            listed = tuple(source.splitlines() if isinstance(source, str) else source)
            return listed, *choices.parse(listed)
        case "all":
            from engine.constraints import algebra

            return algebra.parse(source)
        case "grammar":
            from engine.constraints import grammar

            return grammar.parse(source, **options)
        case "sql":
            from engine.constraints import sql

            return sql.parse(source)
        case "tools":
            from engine.constraints import tools

            return tools.parse(source, **options)
        case _:
            from engine.constraints import json_schema

            return json_schema.parse(source, **options)
