"""SELECT statements over a database that the user describes -> pattern with origins and findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.constraints.sql import database, query
from engine.errors import Finding, Place

if TYPE_CHECKING:
    from engine.constraints.sql.database import Database
    from engine.pattern import Pattern

_JOINS = ((3, 3), (3, 2), (2, 2), (2, 1), (1, 1))
"""How many tables a query and one inside it may join; the first that fits is taken."""
_MOST_STATES = 60_000
"""What the estimate of states may come to; where it errs, it still stays under the budget."""


def parse(source: Any) -> tuple[str, Pattern, tuple[Finding, ...]]:
    """Read a database schema: `CREATE TABLE` text, or Spider's JSON as text or as an object.

    Returns:
        The text that origins point into, the pattern of queries, and what the author should know.

    Raises:
        PatternSyntaxError: the schema can't be read; says where.
    """
    found, findings = database.read(source)
    guessed = not found.keys and len(found.tables) > 1
    if guessed:
        found = replace(found, keys=tuple(_same_names(found)))
    outer, inner = next((j for j in _JOINS if _states(found, *j) <= _MOST_STATES), _JOINS[-1])
    where = Place(found.text, 0, len(found.text))
    if guessed:
        message = "No foreign key is declared: tables are joined where two columns have the same name."
        findings += (Finding("sql-keys", "info", where, message, ("Declare FOREIGN KEY … REFERENCES ….",)),)
    return found.text, query.queries(found, outer, inner), (*findings, _coverage(where, outer, inner))


def _same_names(found: Database) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    names = [(t.name.text.lower(), c.text.lower()) for t in found.tables for c in t.columns]
    return [(a, b) for n, a in enumerate(names) for b in names[n + 1 :] if a[1] == b[1] and a[0] != b[0]]


def _states(found: Database, outer: int, inner: int) -> int:
    """Estimate the states before minimisation, as fitted on twenty databases."""
    letters = sum(len(column.text) for table in found.tables for column in table.columns)
    return 45 * letters + 100 * query.joined_columns(found, outer) + 200 * query.joined_columns(found, inner)


def _coverage(where: Place, outer: int, inner: int) -> Finding:
    """Say which queries are written, since SQL has more."""
    return Finding(
        "sql-subset",
        "info",
        where,
        f"Queries join up to {outer} tables along foreign keys as T1, T2, …, and up to {inner} in parentheses and "
        "beside UNION, INTERSECT or EXCEPT; one query may be nested, as the last condition of WHERE, and both sides of "
        "a set operator have one column. Keywords are in capitals and strings in single quotes.",
        accepts="too little",
        evidence={"tables": outer, "inner_tables": inner},
    )
