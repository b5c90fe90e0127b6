"""SQL, judged by what it returns: both queries run on a small database made for the problem."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from engine.tasks.problem import Family, Problem, from_corpus
from engine.training.words import words

if TYPE_CHECKING:
    from engine.training.corpus import Example

ROWS = 40
_SHAPE = re.compile(r"SELECT (?P<shown>.+) FROM (?P<table>\w+) WHERE (?P<key>\w+) [=<>] '?(?P<value>\w+)'?")
SQL = r"SELECT [a-z]+(, [a-z]+)* FROM [a-z]+ WHERE [a-z]+ (=|<|>) ('[a-z]+'|[0-9]+)"


def database(problem: Problem) -> sqlite3.Connection:
    """Make the table that a problem asks about, with rows on both sides of its condition."""
    found = _SHAPE.fullmatch(problem.answer)
    assert found is not None
    key, value = found["key"], found["value"]
    columns = [*found["shown"].split(", "), key]
    random = Random(problem.prompt)
    kind = "INTEGER" if value.isdigit() else "TEXT"
    texts = words(random, "train", ROWS // 4)
    connection = sqlite3.connect(":memory:")
    declared = ", ".join(f"{name} {kind if name == key else 'TEXT'}" for name in columns)
    connection.execute(f"CREATE TABLE {found['table']} ({declared})")
    for _ in range(ROWS):
        row = [f"{random.choice(texts)}{name}" for name in columns[:-1]]
        near = int(value) + random.randrange(-5, 6) if value.isdigit() else random.choice((value, random.choice(texts)))
        marks = ", ".join("?" * len(columns))
        connection.execute(f"INSERT INTO {found['table']} VALUES ({marks})", (*row, near))
    return connection


def is_right(problem: Problem, text: str) -> bool:
    """Tell whether a text returns the rows that the answer returns, in any order."""
    if not re.match(r"\s*select\b", text, re.IGNORECASE):
        return False
    with closing(database(problem)) as connection:
        expected = _rows(connection, problem.answer)
        return expected is not None and expected == _rows(connection, text)


def _rows(connection: sqlite3.Connection, query: str) -> list[tuple[object, ...]] | None:
    try:
        return sorted(connection.execute(query).fetchall(), key=repr)
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None


def _problem(example: Example) -> Problem | None:
    problem = Problem(example.prompt, "regex", SQL, example.spellings["sql"])
    try:
        database(problem).close()
    except sqlite3.OperationalError:
        return None  # a name that SQL reserves, as "limit" is
    return problem


def _with_schema(example: Example) -> Problem | None:
    problem = _problem(example)
    if problem is None:
        return None
    with closing(database(problem)) as connection:
        ((schema,),) = connection.execute("SELECT sql FROM sqlite_schema").fetchall()
    return replace(problem, kind="sql", source=schema)


FAMILIES = (
    Family("sql", "SQL over one table", 32, from_corpus("sql", _problem), is_right),
    Family("sql-schema", "SQL over the declared table", 32, from_corpus("sql", _with_schema), is_right),
)
