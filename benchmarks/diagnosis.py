"""`python -m benchmarks.diagnosis`: milliseconds that a diagnosis takes, against what a person waits for.

The bars are absolute: there is no peer that computes the same. CPU time on one thread, the least of several repeats.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import cases
from benchmarks.timing import cpu_ms, machine
from engine import models, token_automaton
from engine.constraints import KINDS, read
from engine.decode import denoise
from engine.diagnosis import conflict, dynamic, examination, static, strings
from engine.diagnosis.examination import Examined
from engine.diagnosis.subject import Subject
from engine.token_automaton import TokenAutomaton
from engine.trace import Config, Header, Trace
from engine.vocabulary import Vocabulary

_NAME = {"type": "string", "minLength": 8, "maxLength": 3}
_OPEN = {"type": "object", "properties": {"name": _NAME, "age": {"type": "integer"}}, "required": ["name"]}
_TYPES = {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}, "b": {"type": "string"}}
_CONTACT = {
    "name": {"type": "string"},
    "age": {"type": "integer", "minimum": 0},
    "email": {"format": "email", "type": "string"},
}
_RULE = {"protocol": {"type": "string"}, "port": {"type": "integer"}, "allow": {"type": "boolean"}}
_RULES = {
    "policy": {"type": "string"},
    "rules": {"type": "array", "items": {"type": "object", "properties": _RULE, "required": ["protocol", "port"]}},
}
_LIBRARY = """
CREATE TABLE author (author_id int PRIMARY KEY, name text, born int, country text);
CREATE TABLE book (book_id int PRIMARY KEY, title text, author_id int REFERENCES author(author_id), year int);
CREATE TABLE loan (book_id int REFERENCES book(book_id), member text, due text);
"""
TYPED = (
    ("a regex", "regex", r"[0-9]+\s*(kg|lb)"),
    ("a function", "tools", KINDS["tools"].example),
    ("bounds that contradict", "json_schema", {"type": "integer", "minimum": 5, "maximum": 3}),
    ("lengths that contradict, in an open object", "json_schema", _OPEN),
    (
        "types that contradict",
        "json_schema",
        {"type": "object", "properties": _TYPES, "required": ["a", "b"], "additionalProperties": False},
    ),
    (
        "an open object with an e-mail",
        "json_schema",
        {"type": "object", "properties": _CONTACT, "required": ["name", "email"]},
    ),
    ("an array of open objects", "json_schema", {"type": "object", "properties": _RULES, "required": ["rules"]}),
    ("two hundred choices", "choices", "\n".join(f"{10_007 * n % 99_991:05d} items" for n in range(200))),
    ("a database", "sql", KINDS["sql"].example),
    ("a database of three tables", "sql", _LIBRARY),
)
"""Constraints as people type them, in a canvas of 64."""
FOUND_MS, TRIED_MS = 100.0, 1000.0
"""Until the findings of what is typed are there, and until the changes that mend it are, from the last key on."""


class Random:
    """A model whose logits are noise: what is diagnosed is as wrong as it can be."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.name, self.vocabulary, self.facts = "random", vocabulary, {"name": "random"}
        self._rng = np.random.default_rng(0)

    def encode_prompt(self, prompt: str) -> np.ndarray:
        """Return no tokens."""
        return np.zeros(0, np.int32)

    def encode(self, text: str) -> np.ndarray:
        """Return no tokens."""
        return np.zeros(0, np.int32)

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Return float32 `[length vocab]`."""
        return self._rng.normal(size=(canvas.size, self.vocabulary.size)).astype(np.float32) * 3


def least(function: object, repeats: int) -> float:
    """Return the least CPU time of some repeats, in milliseconds."""
    return min(cpu_ms(function) for _ in range(repeats))  # type: ignore[arg-type]


def config(length: int, **settings: object) -> Config:
    """Return a run under the function call."""
    return Config("", "regex", cases.function_call(), length=length, steps=length, block_length=length, **settings)  # type: ignore[arg-type]


def record(vocabulary: Vocabulary, automaton: TokenAutomaton, length: int, sampler: str) -> Trace:
    """Denoise random logits under the function call."""
    asked = config(length, temperature=1.0, sampler=sampler)
    model = Random(vocabulary)
    header = Header(asked, model.facts, vocabulary, automaton)
    return Trace(header, tuple(denoise(model, automaton, asked)))


def typed(vocabulary: Vocabulary, repeats: int) -> list[tuple[str, float, float]]:
    """Time what the page does while a constraint is typed: read, compile, examine, examples; then the changes."""
    rows = []
    for name, kind, given in TYPED:
        source = given if isinstance(given, str) else json.dumps(given)
        asked = Config("", kind, source, length=64, steps=64, block_length=64)

        def told(asked: Config = asked) -> Examined:
            examined = examination.examine(asked, vocabulary)
            assert examined.constraint is not None
            strings.shortest(examined.constraint.automaton)
            strings.sampled(examined.constraint.automaton, seed=0)
            return examined

        examined = told()
        rows.append((f"typed, {name}: findings", least(told, repeats), FOUND_MS))
        tried = least(lambda examined=examined: static.mended(examined, vocabulary), repeats)
        rows.append((f"typed, {name}: changes tried", tried, TRIED_MS))
    return rows


def main(
    quick: Annotated[bool, typer.Option(help="Shorter canvases and fewer repeats.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time the diagnosis of a five-parameter function call, and that of constraints as they are typed."""
    length, repeats = (64, 3) if quick else (256, 7)
    vocabulary = models.load("embedded").vocabulary
    constraint = read("regex", cases.function_call())
    automaton = token_automaton.compile(constraint, vocabulary)
    subject = Subject(config(length), vocabulary, constraint, automaton)
    exact = record(vocabulary, automaton, length, "midpoint")
    failed = record(vocabulary, automaton, length, "independent")
    canvas = conflict.canvas_of(automaton, failed.canvas, vocabulary.mask_id)
    sizes = {"length": length, "states": automaton.states, "vocabulary": vocabulary.size}

    def whole() -> object:
        return static.mended(examination.examine_subject(subject), vocabulary)

    gc.collect()
    gc.freeze()  # as the page does when it has read its model
    rows = [
        ("static findings with changes, constraint compiled", least(whole, repeats), 100.0),
        ("findings of an exact run", least(lambda: dynamic.findings(exact), repeats), 500.0),
        ("findings of an unconstrained run", least(lambda: dynamic.findings(failed), repeats), 500.0),
        ("minimal conflict of a full canvas", least(lambda: conflict.minimal_conflict(canvas), repeats), 200.0),
        *typed(vocabulary, repeats),
    ]
    if as_json:
        listed = [{"what": what, "ms": ms, "bar_ms": bar, "holds": ms <= bar} for what, ms, bar in rows]
        sys.stdout.write(json.dumps({"machine": machine(), "sizes": sizes, "rows": listed}) + "\n")
        return
    table = Table(title=", ".join(f"{name} {size:,}" for name, size in sizes.items()))
    for column in ("what", "ms", "bar", ""):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, ms, bar in rows:
        table.add_row(what, f"{ms:.1f}", f"{bar:g}", "holds" if ms <= bar else "missed")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
