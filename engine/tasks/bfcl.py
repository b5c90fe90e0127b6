"""Questions of the Berkeley Function Calling Leaderboard, judged by its rules.

`bfcl.jsonl` has those of its single calls whose answer fits the embedded model's canvas, without descriptions; it is
under the Apache License 2.0, copyright the authors of ShishirPatil/gorilla. The rules are those of its `ast_checker`:
the function's name, all required arguments and no unknown ones, each with one of the listed values; strings are
compared without case and most punctuation, a whole number stands for a float, and a listed `""` lets an argument out.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from engine.tasks.calls import read_call
from engine.tasks.problem import Family, Problem

DATA = Path(__file__).parent / "bfcl.jsonl"


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines())


def problems(count: int, split: str) -> tuple[Problem, ...]:
    """Return the first problems; all of them are held out, and training has none."""
    return tuple(_problem(entry) for entry in _entries()[:count]) if split == "held_out" else ()


def _problem(entry: dict[str, Any]) -> Problem:
    functions = entry["functions"]
    listed = "; ".join(f"{f['name']}({', '.join(f['parameters']['properties'])})" for f in functions)
    ((name, values),) = entry["ground_truth"].items()
    given = {key: _first(listed) for key, listed in values.items() if "" not in listed}
    return Problem(
        prompt=f"Tools: {listed}. {entry['question']}",
        kind="tools",
        source=json.dumps(functions),
        answer=json.dumps({"name": name, "arguments": given}),
        others=(json.dumps(entry["ground_truth"]),),
    )


def _first(values: list[Any]) -> Any:
    """Return the first listed value; inside of a listed dictionary, every member lists its values too."""
    value = values[0]
    if isinstance(value, dict):
        return {key: _first(listed) for key, listed in value.items() if "" not in listed}
    return value


def is_right(problem: Problem, text: str) -> bool:
    """Tell whether a text makes the call that the leaderboard accepts."""
    said = read_call(text)
    ((name, values),) = json.loads(problem.others[0]).items()
    return said is not None and said[0] == name and _members(said[1], values)


def _members(said: dict[str, Any], values: dict[str, list[Any]]) -> bool:
    if not said.keys() <= values.keys():
        return False
    return all(_listed(said[key], listed) if key in said else "" in listed for key, listed in values.items())


def _listed(value: Any, listed: list[Any]) -> bool:
    return any(_same(value, expected) for expected in listed)


def _same(value: Any, expected: Any) -> bool:
    if isinstance(value, dict) and isinstance(expected, dict):
        return _members(value, expected)
    if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
        return len(value) == len(expected) and all(map(_same, value, expected))
    if isinstance(value, str) and isinstance(expected, str):
        return _plain(value) == _plain(expected)
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    return bool(value == expected and not (isinstance(value, float) and isinstance(expected, int)))


def _plain(text: str) -> str:
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


FAMILIES = (Family("bfcl", "Questions of BFCL, calls in JSON", 48, problems, is_right),)
