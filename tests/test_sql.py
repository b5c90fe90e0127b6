"""SELECT statements over a database: SQLite prepares whatever is accepted, and gold queries are."""

from __future__ import annotations

import json
import random
import sqlite3
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.queries import normal
from engine.automaton import ByteAutomaton
from engine.constraints import Constraint, read
from engine.constraints.sql import database
from engine.errors import PatternSyntaxError
from tests import origins

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "sql"

SCHOOL = """CREATE TABLE student (
  id int PRIMARY KEY,
  name text,
  "home town" text
);
CREATE TABLE course (code text, title text, "order" int);
CREATE TABLE takes (
  student_id int REFERENCES student(id), course_code text, grade real,
  FOREIGN KEY (course_code) REFERENCES course(code)
);
"""


@cache
def school() -> Constraint:
    return read("sql", SCHOOL)


def walks(machine: ByteAutomaton, count: int, rng: random.Random) -> list[str]:
    """Accepted texts: random moves at first, then a shortest way to the end."""
    states = machine.states
    distance = np.where(machine.accepting, 0, states)
    for _ in range(states):
        through = np.where(machine.move >= 0, distance[machine.move], states).min(axis=1) + 1
        shorter = np.minimum(distance, through)
        if (shorter == distance).all():
            break
        distance = shorter
    byte_of = [np.flatnonzero(machine.byte_class == c).tolist() for c in range(machine.move.shape[1])]
    found = []
    for _ in range(count):
        state, data, free = machine.start, bytearray(), rng.randrange(400)
        while not (machine.accepting[state] and (len(data) >= free or rng.random() < 0.3)):
            symbols = np.flatnonzero(machine.move[state] >= 0)
            if not symbols.size:
                break
            if len(data) >= free:
                symbols = symbols[distance[machine.move[state, symbols]] < distance[state]]
            # Every next state alike: else nearly all bytes would be those of string literals.
            target = rng.choice(sorted(set(machine.move[state, symbols].tolist())))
            symbol = rng.choice([s for s in symbols.tolist() if machine.move[state, s] == target])
            data.append(rng.choice(byte_of[symbol]))
            state = target
        found.append(data.decode())
    return found


def prepares(connection: sqlite3.Connection, queries: list[str]) -> None:
    for query in queries:
        try:
            connection.execute(f"EXPLAIN {query}")
        except sqlite3.Error as error:
            raise AssertionError(f"{error}: {query}") from error


def created(schema: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema)
    return connection


def test_sqlite_prepares_every_query_that_is_accepted() -> None:
    texts = walks(school().automaton, 1_000, random.Random(0))
    prepares(created(SCHOOL), texts)
    for clause in (
        " JOIN ",
        " WHERE ",
        " GROUP BY ",
        " HAVING ",
        " ORDER BY ",
        " LIMIT ",
        " UNION ",
        "(SELECT ",
        "DISTINCT ",
    ):
        assert any(clause in text for text in texts), clause


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        ("SELECT name FROM student", True),
        ('SELECT "home town", COUNT(*) FROM student GROUP BY "home town" ORDER BY COUNT(*) DESC LIMIT 3', True),
        ('SELECT MAX("order") FROM course WHERE title LIKE \'%it\'\'s%\'', True),
        ("SELECT T1.name FROM student AS T1 JOIN takes AS T2 ON T1.id = T2.student_id WHERE T2.grade >= 1.5", True),
        ("SELECT T3.title FROM student AS T1 JOIN takes AS T2 ON T2.student_id = T1.id JOIN course AS T3 ON T2.course_code = T3.code", True),
        ("SELECT name FROM student WHERE id NOT IN (SELECT student_id FROM takes)", True),
        ("SELECT code FROM course EXCEPT SELECT course_code FROM takes", True),
        ("SELECT title FROM student", False),
        ("SELECT T2.name FROM student AS T1 JOIN takes AS T2 ON T1.id = T2.student_id", False),
        ("SELECT T1.name FROM student AS T1 JOIN course AS T2 ON T1.id = T2.code", False),
        ("SELECT name FROM student WHERE COUNT(*) > 1", False),
        ("SELECT name FROM student WHERE id IN (SELECT student_id, grade FROM takes)", False),
        ("SELECT code, title FROM course EXCEPT SELECT course_code FROM takes", False),
        ("SELECT home town FROM student", False),
    ],
)  # fmt: skip
def test_a_query_names_only_columns_of_its_own_tables(query: str, accepted: bool) -> None:
    assert school().accepts(query) == accepted


def test_names_come_from_their_place_in_the_schema() -> None:
    seen = origins.parts(school().automaton, SCHOOL, b"SELECT grade FROM takes")
    assert seen[0] == {""}
    assert all(spans == {"grade"} for spans in seen[7:10])  # behind them "course_code" goes on alike
    assert seen[-1] == {"takes"}


def test_a_schema_is_read_from_spiders_own_json_too() -> None:
    tables = {
        "table_names_original": ["a", "b"],
        "column_names_original": [[-1, "*"], [0, "x"], [1, "y"]],
        "foreign_keys": [[2, 1]],
    }
    constraint = read("sql", [tables])
    assert constraint.accepts("SELECT T1.x FROM a AS T1 JOIN b AS T2 ON T1.x = T2.y")
    found, _ = database.read(tables)
    assert found.text[found.tables[1].columns[0].origin.start : found.tables[1].columns[0].origin.stop] == '"y"'


def test_without_keys_tables_are_joined_by_equal_names_and_that_is_said() -> None:
    constraint = read("sql", "CREATE TABLE a (x int); CREATE TABLE b (x int, y int)")
    assert constraint.accepts("SELECT T2.y FROM a AS T1 JOIN b AS T2 ON T1.x = T2.x")
    assert [f.code for f in constraint.findings] == ["sql-keys", "sql-subset"]
    assert constraint.findings[1].accepts == "too little"


@pytest.mark.parametrize(
    ("source", "words"),
    [("CREATE TABLE a (x int", "line 1"), ("SELECT 1", "no table"), ("", "no table"), ('{"tables": 3}', "Spider")],
)
def test_a_schema_that_can_not_be_read_says_where_and_what_is_wanted(source: str, words: str) -> None:
    with pytest.raises(PatternSyntaxError, match=words):
        read("sql", source)


def test_a_large_database_is_written_with_fewer_joins_and_that_is_said() -> None:
    tables = [f"CREATE TABLE table_{n} ({', '.join(f'column_{n}_{m} int' for m in range(9))}, p int" for n in range(9)]
    linked = [
        f"{t}, FOREIGN KEY (p) REFERENCES table_{(n + 1) % 9}(column_{(n + 1) % 9}_0));" for n, t in enumerate(tables)
    ]
    constraint = read("sql", "\n".join(linked))
    assert constraint.findings[-1].evidence["tables"] < 3
    assert constraint.accepts("SELECT column_3_4 FROM table_3")


@pytest.mark.skipif(not SHARED.exists(), reason="the gold queries are not part of the repository (CC BY-SA)")
def test_gold_queries_over_small_schemas_are_accepted_and_accepted_ones_prepare() -> None:
    schemas = json.loads((SHARED / "spider_schemas.json").read_text())
    gold = [json.loads(line) for line in (SHARED / "spider.jsonl").read_text().splitlines()]
    rng = random.Random(1)
    for name in ("singer", "poker_player", "pets_1", "network_1"):
        constraint = read("sql", schemas[name])
        found, _ = database.read(schemas[name])
        for entry in gold:
            if entry["db_id"] == name:
                assert constraint.accepts(normal(entry["gold_sql"], found)), entry["gold_sql"]
        quoted = [
            (t, ", ".join(f'"{c}" {kind}' for c, kind in columns)) for t, columns in schemas[name]["tables"].items()
        ]
        rows = [f'CREATE TABLE "{table}" ({columns});' for table, columns in quoted]
        prepares(created("\n".join(rows)), walks(constraint.automaton, 100, rng))
