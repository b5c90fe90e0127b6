"""Constraints of many states over a vocabulary of bytes and a few longer tokens, compiled in a second."""

from __future__ import annotations

import json

import numpy as np

from engine import constraints, token_automaton
from engine.trace import Config, Header
from engine.vocabulary import Vocabulary

LONGER = (b'": ', b'": "', b'", "', b"field", b"name", b"al", b"ph")
BYTES = Vocabulary((*(bytes([value]) for value in range(256)), *LONGER, None), (263,), 264)


def schema(fields: int, longest: int) -> str:
    """Return the JSON Schema of an object of some fields, each an object with a text of at most `longest` characters."""
    names = [f"field_{n}" for n in range(fields)]
    inner = {
        "name": {"type": "string", "maxLength": longest},
        "count": {"type": "integer"},
        "tag": {"enum": ["alpha", "beta", "gamma"]},
    }
    field = {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}
    whole = {"type": "object", "properties": dict.fromkeys(names, field), "required": names}
    return json.dumps({**whole, "additionalProperties": False}, indent=1)


def header(kind: str, source: str | tuple[str, ...], length: int = 64, vocabulary: Vocabulary = BYTES) -> Header:
    """Return the header of a run under a constraint."""
    config = Config(prompt="", kind=kind, source=source, length=length, steps=length, block_length=length)
    automaton = token_automaton.compile(constraints.read(kind, source), vocabulary)
    return Header(config, {"name": "synthetic"}, vocabulary, automaton, np.zeros(0, np.int32))


def twenty_thousand() -> Header:
    """Return the header of a run over some 19,000 states, those of ten objects."""
    return header("json_schema", schema(10, 80))
