"""Function calls: read in any spelling, and compared by what they say.

The `call` families ask for the syntax alone; for the `tools` families the functions of the request are declared.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from engine.tasks.problem import Family, Problem, from_corpus, read_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.training.corpus import Example

_STRING = r'"([a-z \']|\\["\\])*"'
_NUMBER = r"-?[0-9]+(\.[0-9])?"


def _value(true: str, false: str) -> str:
    scalar = rf"({_STRING}|{_NUMBER}|{true}|{false})"
    pair = rf'"[a-z]+": {scalar}'
    return rf"({scalar}|\[({_STRING}(, {_STRING})*)?\]|\{{{pair}(, {pair})*\}})"


_PAIR = rf'"[a-z]+": {_value("true", "false")}'
_KEYWORD = rf"[a-z]+={_value('True', 'False')}"
JSON_CALL = rf'\{{"name": "[a-z]+_[a-z]+", "arguments": \{{{_PAIR}(, {_PAIR})*\}}\}}'
PYTHON_CALL = rf"[a-z]+_[a-z]+\({_KEYWORD}(, {_KEYWORD})*\)"


def read_call(text: str) -> tuple[str, dict[str, Any]] | None:
    """Read a call in JSON, in Python or as a command line; None if it is none of them."""
    for reader in (_read_json, _read_python, _read_command):
        found = reader(text)
        if found is not None:
            return found
    return None


def _read_json(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        said = json.loads(text)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    for name, arguments in (("name", "arguments"), ("tool", "args")):
        if said.keys() == {name, arguments} and isinstance(said[arguments], dict):
            return str(said[name]), said[arguments]
    return None


def _read_python(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        call = read_expression(text)
        if not isinstance(call, ast.Call) or call.args:
            return None
        given = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    except (SyntaxError, ValueError):
        return None
    return ast.unparse(call.func), given


def _read_command(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        name, *words = shlex.split(text)
    except ValueError:
        return None
    if words and words[0].startswith("--"):
        keys, values = words[::2], words[1::2]
        if len(keys) != len(values) or not all(key.startswith("--") for key in keys):
            return None
        return name, {key[2:]: value for key, value in zip(keys, values, strict=True)}
    pairs = [word.partition("=") for word in words]
    return (name, {key: value for key, _, value in pairs}) if all(sign for _, sign, _ in pairs) else None


def _shell_text(value: object) -> str:
    """Write a value as a command line does, which has text alone."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{key}={item}" for key, item in value.items())
    return str(value)


def is_right(problem: Problem, text: str) -> bool:
    """Tell whether a text calls what the answer calls, with the same arguments in any order."""
    expected, said = read_call(problem.answer), read_call(text)
    if expected is None or said is None or expected[0] != said[0] or expected[1].keys() != said[1].keys():
        return False
    # json.dumps tells True from 1 and 1.0 from 1; a command line can't.
    written = _shell_text if said == _read_command(text) else json.dumps
    return all(written(value) == written(said[1][key]) for key, value in expected[1].items())


def _json_problem(example: Example) -> Problem:
    return Problem(example.prompt, "regex", JSON_CALL, example.spellings["json"])


def _python_problem(example: Example) -> Problem:
    return Problem(example.prompt, "regex", PYTHON_CALL, example.spellings["python"])


def _schema(value: object) -> dict[str, Any]:
    """Return the type that a function declares for an argument which may have this value."""
    if isinstance(value, dict):
        members = {key: _schema(item) for key, item in value.items()}
        return {"type": "object", "properties": members, "required": [*members]}
    if isinstance(value, list):
        return {"type": "array", "items": {"type": "string"}}
    names = {bool: "boolean", int: "integer", float: "number"}
    return {"type": names.get(type(value), "string")}


def functions(prompt: str, name: str, given: Mapping[str, object]) -> str:
    """Write the functions that a request of the corpus lists, as JSON.

    Args:
        prompt: of the corpus, which lists names and arguments.
        name: of the function that is to be called.
        given: its arguments, whose types it declares; the arguments of other functions are strings.
    """
    declared = []
    for found in re.finditer(r"(\w+)\(([\w, ]+)\)[;.]", prompt):
        members = {key: _schema(given[key] if found[1] == name else "") for key in found[2].split(", ")}
        parameters = {"type": "object", "properties": members, "required": [*members]}
        declared.append({"name": found[1], "parameters": parameters})
    return json.dumps(declared)


def _declared(syntax: str) -> Callable[[Example], Problem]:
    def problem(example: Example) -> Problem:
        said = json.loads(example.spellings["json"])
        source = functions(example.prompt, said["name"], said["arguments"])
        return Problem(example.prompt, "tools", source, example.spellings[syntax], reading=(("call_syntax", syntax),))

    return problem


FAMILIES = (
    Family("call-json", "Function calls in spaced JSON", 40, from_corpus("call", _json_problem), is_right),
    Family("call-python", "Function calls in Python", 40, from_corpus("call", _python_problem), is_right),
    Family("tools-json", "Calls of declared functions in JSON", 40, from_corpus("call", _declared("json")), is_right),
    Family(
        "tools-python", "Calls of declared functions in Python", 40, from_corpus("call", _declared("python")), is_right
    ),
)
