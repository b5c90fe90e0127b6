"""Ground truths of lists of functions (BFCL's form): the calls that they allow, written, and whether they are valid."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema

from benchmarks.instances import in_schema_order
from engine.constraints.tools import normalise

Call = tuple[str, dict[str, Any]]
"""The name of a function, and its arguments."""


def truths(case: dict[str, Any], *, short: bool) -> list[Call]:
    """Return the calls that a case asks for, arguments in the order of the function, with the first right values.

    Args:
        case: with functions and the ground truth.
        short: leave out the arguments that the truth lets one leave out.
    """
    found = []
    for truth in case["ground_truth"]:
        ((name, listed),) = truth.items()
        schema = parameters(case, name)
        found.append((name, in_schema_order(schema, _chosen(listed, schema, short))))
    return found


def parameters(case: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of a function's arguments, as it is written."""
    found: dict[str, Any] = next(f for f in case["functions"] if f["name"] == name)["parameters"]
    return found


def _chosen(listed: dict[str, Any], schema: dict[str, Any], short: bool) -> dict[str, Any]:
    """Take the first value of each argument; an empty text beside others says that it may be left out."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    out = {}
    for key, values in listed.items():
        if (
            isinstance(values, list)
            and "" in values
            and key not in required
            and (short or set(map(str, values)) == {""})
        ):
            continue
        # Where no value is listed, the only right one is an empty list.
        value = next((v for v in values if v != ""), "" if values else []) if isinstance(values, list) else values
        parts = value if isinstance(value, list) else [value]
        inner = properties.get(key, {}).get("items", {}) if isinstance(value, list) else properties.get(key, {})
        parts = [_chosen(part, inner, short) if isinstance(part, dict) else part for part in parts]
        out[key] = parts if isinstance(value, list) else parts[0]
    return out


def broken(case: dict[str, Any], call: Call) -> str:
    """Say why a call breaks the schema of its own function, by `jsonschema`; empty where it doesn't."""
    schema = copy.deepcopy(parameters(case, call[0]))
    normalise(schema)
    error = next(jsonschema.Draft202012Validator(schema).iter_errors(call[1]), None)
    return f"{error.json_path}: {error.message}"[:120] if error else ""


def written(calls: list[Call], syntax: str) -> str:
    """Write a call; several as a list of them."""
    parts = [_one(call, syntax) for call in calls]
    return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


def _one(call: Call, syntax: str) -> str:
    name, arguments = call
    if syntax == "json":
        return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
