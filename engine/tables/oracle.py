"""Whether a text satisfies a constraint, by the standard tools of each language and never by our automata."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import jsonschema

from engine.tasks.problem import read_expression

if TYPE_CHECKING:
    from engine.trace import Config


def satisfies(config: Config, text: str) -> bool:
    """Tell whether a text satisfies a run's constraint.

    A regex is asked of Python's `re`; a call is read by `json` or `ast`, and its arguments are validated by
    `jsonschema`; a query is prepared by SQLite over the schema; of choices a text is one.
    """
    source = config.source or ()
    if not isinstance(source, str):
        return text in source
    if config.kind == "tools":
        return _calls(source, dict(config.reading).get("call_syntax", "json"), text)
    if config.kind == "sql":
        return _queries(source, text)
    return re.fullmatch(source, text) is not None


def _calls(functions: str, syntax: str, text: str) -> bool:
    said = _python_call(text) if syntax == "python" else _json_call(text)
    if said is None:
        return False
    for function in json.loads(functions):
        if function["name"] == said[0]:
            schema = {"additionalProperties": False, **_standard(function["parameters"])}
            return bool(jsonschema.Draft202012Validator(schema).is_valid(said[1]))
    return False


def _standard(schema: Any) -> Any:
    """Write BFCL's names of types as JSON Schema does; a type of any value is none."""
    if isinstance(schema, list):
        return [_standard(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    names = {"dict": "object", "float": "number", "tuple": "array"}
    kept = {key: _standard(value) for key, value in schema.items() if (key, value) != ("type", "any")}
    return {**kept, "type": names.get(kept["type"], kept["type"])} if isinstance(kept.get("type"), str) else kept


def _json_call(text: str) -> tuple[str, Any] | None:
    try:
        said = json.loads(text)
    except ValueError:
        return None
    whole = isinstance(said, dict) and said.keys() == {"name", "arguments"}
    return (said["name"], said["arguments"]) if whole else None


def _python_call(text: str) -> tuple[str, Any] | None:
    try:
        call = read_expression(text)
        if not isinstance(call, ast.Call) or call.args:
            return None
        return ast.unparse(call.func), {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError):
        return None


def _queries(schema: str, text: str) -> bool:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        try:
            connection.execute(f"EXPLAIN {text}")
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return False
    return text.lstrip()[:6].upper() == "SELECT"
