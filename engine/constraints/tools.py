"""Lists of functions, as models are given them -> pattern of the calls, as JSON or in Python's syntax."""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from engine.constraints import json_schema
from engine.constraints.json_schema import document, objects, spelling, texts
from engine.constraints.json_schema.contents import Texts
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.goals import Goal
from engine.constraints.json_schema.references import Schemas
from engine.constraints.json_schema.shapes import Field, Object
from engine.constraints.json_schema.spelling import Layout, text
from engine.constraints.json_schema.values import Values
from engine.constraints.json_schema.writing import Writer
from engine.errors import ConfigError, PatternSyntaxError
from engine.pattern import Chars, Complement, Concat, Graph, Origin, Pattern, Ranges, Repeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.constraints.json_schema.document import Document
    from engine.errors import Finding

CallSyntax = Literal["json", "python"]
CALL_SYNTAXES: tuple[CallSyntax, ...] = ("json", "python")
Calls = Literal["one", "several"]
CALLS: tuple[Calls, ...] = ("one", "several")
TYPES = {
    "dict": "object", "map": "object", "float": "number", "double": "number", "int": "integer", "long": "integer",
    "tuple": "array", "list": "array", "bool": "boolean", "str": "string", "any": None,
}  # fmt: skip
"""Names of types in lists of functions, and what JSON Schema calls them; `any` says nothing."""
_PARAMETERS = ("parameters", "inputSchema", "input_schema")


@dataclass(frozen=True)
class Tool:
    """A function that may be called.

    Attributes:
        name: of the function.
        pointer: of its description in the document.
        parameters: pointer of the schema of its arguments, if it has one.
        schema: of its arguments.
    """

    name: str
    pointer: str
    parameters: str | None
    schema: dict[str, Any]


def parse(
    source: Any, *, call_syntax: CallSyntax = "json", calls: Calls = "one", **options: Any
) -> tuple[str, Pattern, tuple[Finding, ...]]:
    """Read a list of functions.

    Args:
        source: OpenAI's tools, BFCL's functions or MCP's tools, as JSON text or parsed.
        calls: `one` writes one call, `several` a list of one or more.
        call_syntax: `json` writes `{"name": …, "arguments": {…}}`, `python` writes `name(argument=value, …)`.
        options: those of `json_schema.Options`.

    Returns:
        The text that origins point into, the pattern, and the findings.

    Raises:
        InputError: it is no list of functions, or their arguments can't be enforced; says where.
    """
    if call_syntax not in CALL_SYNTAXES:
        raise ConfigError(f"There is no call syntax {call_syntax!r}.", f"Choose one of {', '.join(CALL_SYNTAXES)}.")
    if calls not in CALLS:
        raise ConfigError(f"There is no number of calls {calls!r}.", f"Choose one of {', '.join(CALLS)}.")
    chosen = json_schema.options_of({"plain_integers": True} | options)
    read = document.read(source)
    tools = list(_tools(read))
    schemas = Schemas(read)
    for tool in tools:
        if tool.parameters is not None:
            normalise(tool.schema)
            schemas.check(tool.schema, tool.parameters)
    language: type[Writer] = PythonWriter if call_syntax == "python" else Writer

    def write(writer: Writer) -> Pattern | None:
        one = _calls(writer, schemas, tools)
        return _several(writer, one, tools[0].pointer) if one and calls == "several" else one

    pattern, report = json_schema.written(schemas, chosen, write, language)
    report.told(
        "closed-arguments",
        tools[0].pointer,
        "A call has no other arguments than those that its function declares.",
        "Add '\"additionalProperties\": true' to the parameters to allow more.",
    )
    return read.text, pattern, report.findings


def _tools(read: Document) -> Iterator[Tool]:
    """Yield the functions of a list, or of an object that holds one."""
    value: Any = read.value
    pointer: str | None = ""
    if isinstance(value, dict):
        listed = next((name for name in ("tools", "functions") if isinstance(value.get(name), list)), None)
        value, pointer = (value[listed], child("", listed)) if listed else ([value], None)
    if not isinstance(value, list) or not value:
        raise PatternSyntaxError(
            "There is no function in this list.",
            'Write a JSON list of functions, each with a "name" and "parameters".',
            read.place(""),
        )
    for i, entry in enumerate(value):
        where = "" if pointer is None else child(pointer, i)
        if isinstance(entry, dict) and isinstance(entry.get("function"), dict):
            entry, where = entry["function"], child(where, "function")
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
            raise PatternSyntaxError(
                f"The entry at {where or 'the root'} is no function: it has no name.",
                'Write each function as {"name": …, "parameters": {…}}.',
                read.place(where),
            )
        named = next((name for name in _PARAMETERS if isinstance(entry.get(name), dict)), None)
        parameters = child(where, named) if named else None
        yield Tool(entry["name"], where, parameters, entry[named] if named else {})


def normalise(schema: Any) -> None:
    """Write the types of a schema as JSON Schema does, and close the objects that declare their members."""
    if isinstance(schema, list):
        for part in schema:
            normalise(part)
    if not isinstance(schema, dict):
        return
    _normalise_type(schema)
    if "properties" in schema and not {"additionalProperties", "patternProperties"} & schema.keys():
        schema["additionalProperties"] = False
    for name, value in schema.items():
        if name in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
            for part in value.values() if isinstance(value, dict) else ():
                normalise(part)
        elif name in _SCHEMAS:
            normalise(value)


_SCHEMAS = frozenset(
    ("items", "prefixItems", "additionalProperties", "anyOf", "allOf", "oneOf", "not", "if", "then", "else", "contains")
)


def _normalise_type(schema: dict[str, Any]) -> None:
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    known = [TYPES.get(str(name).lower(), str(name).lower()) for name in names]
    if None in known:
        del schema["type"]
    elif known:
        schema["type"] = known[0] if isinstance(named, str) else known
    if schema.get("required") is True or schema.get("required") is False:  # draft 3, in the member itself
        del schema["required"]


def _calls(writer: Writer, schemas: Schemas, tools: list[Tool]) -> Pattern | None:
    found = [_call(writer, schemas, tool) for tool in tools]
    kept = [way for way in found if way is not None]
    return spelling.union(kept) if kept else None


def _several(writer: Writer, call: Pattern, pointer: str) -> Pattern:
    """Return the lists of one or more calls, in the brackets of either language."""
    layout, origin = writer.layout, writer.expansion.origin(pointer)
    arcs = (
        (0, layout.open("[", origin), 1),
        (1, call, 2),
        (2, layout.comma(origin), 1),
        (2, layout.close("]", origin), 3),
    )
    return Graph(arcs, frozenset({3}), origin)


def _call(writer: Writer, schemas: Schemas, tool: Tool) -> Pattern | None:
    document = schemas.document
    name = child(tool.pointer, "name")
    origin = document.origin(name)
    arguments = _arguments(writer, schemas, tool)
    if isinstance(writer, PythonWriter):
        return writer.call(tool.name, origin, arguments)
    goal = Goal(("values", tool.pointer), value=Values(objects=arguments))
    called = Texts("string", origin, ((tool.name, origin),))
    fields = (
        Field("name", Goal(("values", name), value=Values(strings=(called,))), True, document.key_origin(name)),
        Field("arguments", goal, True, document.key_origin(tool.parameters or name)),
    )
    return objects.pattern(writer, Object(document.origin(tool.pointer), fields), ())


def _arguments(writer: Writer, schemas: Schemas, tool: Tool) -> tuple[Object, ...]:
    """Return the shapes of a function's arguments; without a schema it has none."""
    if tool.parameters is None or not tool.schema:
        return (Object(schemas.document.origin(tool.pointer)),)
    return writer.expansion.values(schemas.root(tool.schema, tool.parameters)).objects


class PythonWriter(Writer):
    """Writes values as Python's literals, and calls with keyword arguments."""

    NOTATION = "the call"
    ESCAPES = (
        "Strings stand between quotes of either kind; in them that quote, '\\' and control characters are escaped, "
        "characters beyond ASCII may be."
    )

    def word(self, word: str, origin: Origin) -> Pattern:
        """Return how `None`, `True` or `False` is written."""
        return text({"null": "None", "true": "True", "false": "False"}[word], origin)

    def text(self, content: str, origin: Origin) -> Pattern:
        """Return how one string is written, between quotes of either kind."""
        ways: list[Pattern] = []
        for mark in "'\"":
            parts = [_character(((ord(c), ord(c)),), origin, mark) for c in content]
            ways.append(Concat((text(mark, origin), *parts, text(mark, origin))))
        return spelling.union(ways)

    def string(self, part: Texts, without: tuple[str, ...] = ()) -> Pattern | None:
        """Return how a set of strings is written, some of them left out."""
        if part.literals is not None:
            return super().string(part, without)
        ways = [self.quoted(part, without, mark, _CHARACTERS[mark]) for mark in "'\""]
        kept = [way for way in ways if way is not None]
        return spelling.union(kept) if kept else None

    def call(self, name: str, origin: Origin, shapes: tuple[Object, ...]) -> Pattern | None:
        """Return the calls of a function with arguments of one of these shapes."""
        layout = _CallLayout(self.layout.whitespace, self.layout.most, name, origin)
        arguments = _Arguments(self, layout)
        ways = [objects.pattern(arguments, shape, ()) for shape in shapes]
        kept = [way for way in ways if way is not None]
        return spelling.union(kept) if kept else None


@dataclass(frozen=True)
class _CallLayout(Layout):
    """Brackets and marks of a call in place of those of an object."""

    name: str = ""
    origin: Origin = field(default=Origin(0, 0, ""))

    def open(self, bracket: str, origin: Origin) -> Pattern:
        return Concat((text(self.name, self.origin), text("(", origin)))

    def close(self, bracket: str, origin: Origin) -> Pattern:
        return text(")", origin)

    def colon(self, origin: Origin) -> Pattern:
        return text("=", origin)


_NOWHERE = Origin(0, 0, "")
_IDENTIFIER = Concat(
    (
        Chars(((0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)), _NOWHERE),
        Repeat(Chars(((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)), _NOWHERE), 0, None),
    )
)


class _Arguments(Writer):
    """Writes the arguments of one call: names without quotes, values as `around` does."""

    def __init__(self, around: PythonWriter, layout: Layout) -> None:
        super().__init__(
            around.expansion, layout, around.depth, around.any_depth, around.key_order, around.plain_integers
        )
        self.around = around

    def value(self, goal: Goal, path: tuple[Goal, ...], origin: Origin) -> Pattern | None:
        return self.around.value(goal, path, origin)

    def text(self, content: str, origin: Origin) -> Pattern:
        if not content.isidentifier() or keyword.iskeyword(content):
            raise ConfigError(
                f"The argument {content!r} at {origin.pointer} is no name in Python, so it can't be called with it.",
                "Rename it, or use the call syntax json.",
                self.expansion.schemas.document.place(origin.pointer or ""),
            )
        return text(content, origin)

    def string(self, part: Texts, without: tuple[str, ...] = ()) -> Pattern | None:
        names = texts.meet((part.pattern(), _IDENTIFIER), part.origin)
        if without:
            listed = spelling.union([texts.literal(name, part.origin) for name in without])
            names = texts.meet((names, Complement(listed, part.origin)), part.origin)
        return self.graph(names, Chars, part.origin)


_ESCAPES = {"\\": "\\", "'": "'", '"': '"', "\n": "n", "\r": "r", "\t": "t"}


def _character(ranges: Ranges, origin: Origin, mark: str) -> Pattern:
    r"""Return how a character is written between these quotes.

    As itself but for the quote, the backslash and control characters; by the short escapes; as `repr` does it, `\xhh`
    up to U+00FF and `\uhhhh` up to U+FFFF, where it is no printable ASCII.
    """
    ways: list[Pattern] = []
    raw = spelling.overlap(ranges, _RAW[mark])
    if raw:
        ways.append(Chars(raw, origin))
    letters = sorted(letter for c, letter in _ESCAPES.items() if spelling.overlap(ranges, ((ord(c), ord(c)),)))
    if letters:
        ways.append(Concat((text("\\", origin), Chars(tuple((ord(c), ord(c)) for c in letters), origin))))
    for mark_of, limits, digits in _NUMBERED:
        parts = spelling.overlap(ranges, limits)
        numbered = [way for low, high in parts for way in spelling.hexadecimal(low, high, digits, origin)]
        if numbered:
            ways.append(Concat((text("\\" + mark_of, origin), spelling.union(numbered))))
    return spelling.union(ways) if ways else Chars((), origin)


_NUMBERED: tuple[tuple[str, Ranges, int], ...] = (
    ("x", ((0, 0x1F), (0x7F, 0xFF)), 2),
    ("u", ((0x100, 0xD7FF), (0xE000, 0xFFFF)), 4),
)
_RAW: dict[str, Ranges] = {
    "'": ((0x20, 0x26), (0x28, 0x5B), (0x5D, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF)),
    '"': ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0xA0, 0xD7FF), (0xE000, 0x10FFFF)),
}


def _between(mark: str) -> Callable[[Ranges, Origin], Pattern]:
    return lambda ranges, origin: _character(ranges, origin, mark)


_CHARACTERS = {mark: _between(mark) for mark in "'\""}
