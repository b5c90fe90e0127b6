"""Constraints of many states over a vocabulary of bytes and a few longer tokens, compiled in a second."""

from __future__ import annotations

import json

import numpy as np

from engine import constraints, decode, token_automaton
from engine.models.table import Table
from engine.trace import Config, Header, Trace
from engine.vocabulary import Vocabulary

LONGER = (b'": ', b'": "', b'", "', b"field", b"name", b"al", b"ph")
BYTES = Vocabulary((*(bytes([value]) for value in range(256)), *LONGER, None), (263,), 264)


def schema(fields: int, longest: int, required: int | None = None) -> str:
    """Return the JSON Schema of an object of some fields, each an object with a text of at most `longest` characters."""
    names = [f"field_{n}" for n in range(fields)]
    inner = {
        "name": {"type": "string", "maxLength": longest},
        "count": {"type": "integer"},
        "tag": {"enum": ["alpha", "beta", "gamma"]},
    }
    field = {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}
    whole = {"type": "object", "properties": dict.fromkeys(names, field), "required": names[:required]}
    return json.dumps({**whole, "additionalProperties": False}, indent=1)


def header(kind: str, source: str | tuple[str, ...], length: int = 96, vocabulary: Vocabulary = BYTES) -> Header:
    """Return the header of a run under a constraint."""
    config = Config("", kind, source, length=length, steps=4, block_length=length, temperature=1.0)
    automaton = token_automaton.compile(constraints.read(kind, source), vocabulary)
    return Header(config, {"name": "synthetic"}, vocabulary, automaton, np.zeros(0, np.int32))


def twenty_thousand() -> Header:
    """Return the header of a run over some 19,000 states, those of ten objects of which the first is required."""
    return header("json_schema", schema(10, 80, required=1))


def trace(header: Header) -> Trace:
    """Run some steps of a mean field that likes every token about as much."""
    rows = np.random.default_rng(0).dirichlet(np.ones(header.vocabulary.size), header.config.length)
    model = Table("synthetic", header.vocabulary, rows[None], normalised=True)
    return Trace(header, tuple(decode.denoise(model, header.automaton, header.config)))
