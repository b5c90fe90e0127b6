"""JSON Schema (draft 2020-12, and the older drafts where they differ) -> pattern of the JSON texts that are valid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import effort
from engine.constraints.json_schema import audit, document, texts
from engine.constraints.json_schema.expansion import Expansion, TooManyPlacesError
from engine.constraints.json_schema.references import Schemas
from engine.constraints.json_schema.report import Report
from engine.constraints.json_schema.spelling import WHITESPACE, Layout, Whitespace
from engine.constraints.json_schema.values import SHAPE_LIMIT, TooManyShapesError
from engine.constraints.json_schema.writing import KEY_ORDERS, KeyOrder, Writer
from engine.errors import ConfigError, PatternSyntaxError, SizeError
from engine.pattern import Pattern, Union

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.errors import Finding

LEAF_BUDGET = 60_000
"""Leaves of a pattern, copies counted; beyond it what may nest without end is written less deep."""
READ_STEPS = 1_250_000
"""Of work for one attempt to write a schema; see `engine.effort`."""


@dataclass(frozen=True)
class Options:
    """How a schema is read.

    Attributes:
        whitespace: `optional`, `compact`, `single-space` or `free`.
        blanks: the most blanks in a row under `free`.
        key_order: `schema` or `any`.
        depth: how often a schema may be inside itself.
        any_depth: levels of arrays and objects in a value of which the schema says nothing.
        format_assertion: enforce `format`; the standard leaves it open.
        plain_integers: write integers without a point, `1` but not `1.0`.
    """

    whitespace: Whitespace = "optional"
    blanks: int = 20
    key_order: KeyOrder = "schema"
    depth: int = 4
    any_depth: int = 4
    format_assertion: bool = True
    plain_integers: bool = False

    def check(self) -> None:
        """Check the options.

        Raises:
            ConfigError: one is out of its range.
        """
        if self.whitespace not in WHITESPACE:
            raise ConfigError(
                f"There is no whitespace policy {self.whitespace!r}.", f"Choose one of {', '.join(WHITESPACE)}."
            )
        if self.key_order not in KEY_ORDERS:
            raise ConfigError(f"There is no key order {self.key_order!r}.", f"Choose one of {', '.join(KEY_ORDERS)}.")
        for name in ("blanks", "depth", "any_depth"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value <= 100:
                raise ConfigError(f"{name} is {value!r}.", "Give a whole number from 0 to 100.")


def parse(source: Any, **options: Any) -> tuple[str, Pattern, tuple[Finding, ...]]:
    """Read a JSON schema.

    Args:
        source: JSON text, or the parsed object.
        options: those of `Options`.

    Returns:
        The text that origins point into, the pattern, and the findings.

    Raises:
        InputError: it is no schema, or can't be enforced; says where.
    """
    chosen = options_of(options)
    read = document.read(source)
    if not isinstance(read.value, dict | bool):
        raise PatternSyntaxError(
            f"A schema is an object, true or false; this is a {type(read.value).__name__}.",
            "Write the schema as a JSON object.",
            read.place(""),
        )
    schemas = Schemas(read)
    schemas.check(read.value, "")
    root = schemas.root(read.value, "")
    pattern, report = written(schemas, chosen, lambda writer: writer.value(root, (), writer.expansion.origin("")))
    return read.text, pattern, report.findings


def options_of(given: dict[str, Any]) -> Options:
    """Return the options given by name.

    Raises:
        ConfigError: there is no such option, or one is out of its range.
    """
    try:
        chosen = Options(**given)
    except TypeError as error:
        names = ", ".join(Options.__dataclass_fields__)
        raise ConfigError(f"The JSON schema can't be read so: {error}.", f"Its options are {names}.") from error
    chosen.check()
    return chosen


def written(
    schemas: Schemas,
    options: Options,
    write: Callable[[Writer], Pattern | None],
    language: type[Writer] = Writer,
) -> tuple[Pattern, Report]:
    """Write what the schemas of a document are for; where it would be too large, with less nesting.

    Args:
        schemas: of the document.
        options: how they are read.
        write: returns the texts, or None where there is none.
        language: that values are written in.

    Returns:
        The pattern, and the report on it.

    Raises:
        SizeError: it is too large even so.
    """
    shapes: TooManyShapesError | None = None
    for overlaps in (True, False):
        for any_depth, depth in _depths(options):
            report = Report(schemas.document)
            expansion = Expansion(schemas, report, formats=options.format_assertion, overlaps=overlaps)
            layout = Layout(options.whitespace, options.blanks)
            writer = language(expansion, layout, depth, any_depth, options.key_order, options.plain_integers)
            try:
                with effort.limited(READ_STEPS):
                    pattern = _written(writer, write)
            except TooManyPlacesError:
                if not writer.cuts:  # it is not the nesting
                    break
                continue
            except TooManyShapesError as error:
                shapes = error
                break
            except effort.OutOfStepsError:
                break
            nested = writer.cuts or writer.opened
            if not nested or texts.size(pattern) <= LEAF_BUDGET or (any_depth, depth) == _depths(options)[-1]:
                audit.tell(report, writer, options, empty=pattern == Union(()))
                return pattern, report
    raise _too_large(schemas, shapes)


def _depths(options: Options) -> list[tuple[int, int]]:
    """List the levels of unknown values and of recursion to try."""
    lower = [(min(n, options.any_depth), min(n, options.depth)) for n in (3, 2, 1)]
    return list(dict.fromkeys([(options.any_depth, options.depth), *lower]))


def _written(writer: Writer, write: Callable[[Writer], Pattern | None]) -> Pattern:
    origin = writer.expansion.origin("")
    try:
        value = write(writer)
    except RecursionError as error:
        whole = writer.expansion.schemas.document.place("")
        raise SizeError("The schema nests too deeply.", "Use less nesting, or lower the depth.", whole) from error
    return writer.layout.whole(value, origin) if value is not None else Union(())


def _too_large(schemas: Schemas, shapes: TooManyShapesError | None) -> SizeError:
    """Say why a schema can't be written out."""
    if shapes is None:
        return SizeError(
            "The schema has too many places to be written out, even where it nests as little as it can.",
            "Leave parts of it out.",
            schemas.document.place(""),
        )
    pointer = shapes.pointer or ""
    return SizeError(
        f"The cases of {pointer or 'the root'} combine to {shapes.cases:,}; the limit is {SHAPE_LIMIT}.",
        "Ask for less together there, or write the combinations that are meant as one 'anyOf'.",
        schemas.document.place(pointer),
    )
