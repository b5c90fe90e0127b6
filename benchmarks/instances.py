"""JSON instances with their keys in the order in which a schema names them."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
from jsonschema.exceptions import SchemaError
from referencing.exceptions import Unresolvable as ReferencingError

_IN_PLACE = ("allOf", "anyOf", "oneOf")


def in_schema_order(schema: Any, value: Any) -> Any:
    """Return a value with the keys of its objects in the order of a schema's properties; others keep theirs, behind."""
    return _ordered(schema, [schema], value)


def _ordered(root: Any, schemas: list[Any], value: Any) -> Any:
    parts = [part for schema in schemas for part in _parts(root, schema, value, 0)]
    if isinstance(value, list):
        return [_ordered(root, _items(parts, i), item) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    order = list(dict.fromkeys(name for part in parts for name in part.get("properties", {})))
    keys = [key for key in order if key in value] + [key for key in value if key not in order]
    return {key: _ordered(root, _members(parts, key), value[key]) for key in keys}


def _parts(root: Any, schema: Any, value: Any, depth: int) -> list[dict[str, Any]]:
    """List a schema and those that apply to the same value; of alternatives those first that allow it."""
    if not isinstance(schema, dict) or depth > 8:
        return []
    out = [schema]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        out += _parts(root, _resolved(root, reference), value, depth + 1)
    inner = [
        part
        for keyword in _IN_PLACE
        for part in sorted(schema.get(keyword, []), key=lambda p: _refuses(root, p, value))
    ]
    inner += [schema.get(keyword) for keyword in ("if", "then", "else")]
    inner += (
        list(schema.get("dependentSchemas", {}).values()) if isinstance(schema.get("dependentSchemas"), dict) else []
    )
    return out + [part for one in inner for part in _parts(root, one, value, depth + 1)]


def _refuses(root: Any, schema: Any, value: Any) -> bool:
    """Whether a part of a schema refuses a value; false where that can't be told."""
    if not isinstance(root, dict) or not isinstance(value, dict):
        return False
    try:
        definitions = {name: root[name] for name in ("$defs", "definitions", "$schema") if name in root}
        validator = jsonschema.validators.validator_for(root, jsonschema.Draft202012Validator)
        return not validator({**definitions, "allOf": [schema]}).is_valid(value)
    except (ReferencingError, SchemaError, TypeError, ValueError, RecursionError, re.error):
        return False


def _resolved(root: Any, reference: str) -> Any:
    found = root
    for name in reference[1:].split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return None
    return found


def _members(parts: list[dict[str, Any]], key: str) -> list[Any]:
    out = []
    for part in parts:
        properties = part.get("properties", {})
        out.append(properties[key] if key in properties else part.get("additionalProperties"))
        out += list(part.get("patternProperties", {}).values())
    return out


def _items(parts: list[dict[str, Any]], index: int) -> list[Any]:
    out = []
    for part in parts:
        prefix = part.get("prefixItems") or (part["items"] if isinstance(part.get("items"), list) else [])
        out.append(prefix[index] if index < len(prefix) else part.get("items"))
    return out
