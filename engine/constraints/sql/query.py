"""A database -> the pattern of SELECT statements over it.

A query reads one table, or joins tables along foreign keys under the aliases T1, T2, …; every choice of tables has its
own copy of the clauses, with the columns that those tables have. So whatever is accepted names only columns that its
FROM clause brings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from engine.pattern import EMPTY, Chars, Concat, Origin, Pattern, Repeat, Union, alternatives, sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.constraints.sql.database import Database, Name, Table

NOWHERE = Origin(0, 0)
"""The place of keywords, which no text of the user's asks for one by one."""
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")
OPERATORS = (" = ", " != ", " < ", " > ", " <= ", " >= ")


@lru_cache(maxsize=8_192)
def spelled(text: str, origin: Origin = NOWHERE) -> Pattern:
    """Return the pattern of one text; the same text is one node in all its places, which are walked as one."""
    return sequence([Chars(((ord(c), ord(c)),), origin) for c in text])


def one_of(*texts: str) -> Pattern:
    """Return the pattern of one of several texts."""
    return alternatives([spelled(text) for text in texts])


def maybe(*parts: Pattern) -> Pattern:
    """Return the pattern of the parts or nothing."""
    return Union((EMPTY, sequence(list(parts))))


def listed(item: Pattern, separator: Pattern) -> Pattern:
    """Return the pattern of one item or more."""
    return Concat((item, Repeat(Concat((separator, item)), 0, None)))


def joined(*parts: str | Pattern) -> Pattern:
    """Concatenate patterns and texts."""
    return sequence([spelled(part) if isinstance(part, str) else part for part in parts])


def _some(*ranges: tuple[int, int]) -> Pattern:
    return Chars(ranges, NOWHERE)


_DIGIT = _some((48, 57))
_DIGITS = Repeat(_DIGIT, 1, None)
NUMBER = joined(maybe(spelled("-")), _DIGITS, maybe(spelled("."), _DIGITS))
POSITIVE = joined(_some((49, 57)), Repeat(_DIGIT, 0, None))
STRING = joined(
    "'", Repeat(Union((_some((32, 38), (40, 126), (160, 0xD7FF), (0xE000, 0x10FFFF)), spelled("''"))), 0, None), "'"
)
VALUE = Union((NUMBER, STRING))


@cache
def _is_keyword(word: str) -> bool:
    """Whether SQLite needs quotes around a word, by asking it."""
    import sqlite3

    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute(f"CREATE TABLE {word} ({word} int)")
        except sqlite3.OperationalError:
            return True
    return False


def identifier(name: Name) -> Pattern:
    """Write a name, in double quotes where it needs them."""
    bare = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.text) and not _is_keyword(name.text)
    escaped = name.text.replace('"', '""')
    return spelled(name.text if bare else f'"{escaped}"', name.origin)


_Chain = tuple[tuple["Table", ...], Pattern]
"""Joined tables and the text behind FROM."""


@dataclass(frozen=True)
class Scope:
    """A choice of tables: the text behind FROM, and the columns that it brings."""

    source: Pattern
    columns: Pattern


def scopes(database: Database, most: int) -> list[Scope]:
    """List the choices of one table up to `most`, each further one joined to an earlier by a key."""
    found = [Scope(identifier(t.name), alternatives([identifier(c) for c in t.columns])) for t in database.tables]
    chains: list[tuple[tuple[Table, ...], Pattern]] = [
        ((t,), joined(identifier(t.name), " AS T1")) for t in database.tables
    ]
    for _ in range(1, most):
        chains = [longer for chain in chains for longer in _longer(database, *chain)]
        found += [Scope(source, alternatives(list(_qualified(tables)))) for tables, source in chains]
    return found


def _qualified(tables: tuple[Table, ...]) -> Iterable[Pattern]:
    for n, table in enumerate(tables, 1):
        for column in table.columns:
            yield joined(f"T{n}.", identifier(column))


def _longer(database: Database, tables: tuple[Table, ...], source: Pattern) -> Iterable[_Chain]:
    for table in database.tables:
        if table in tables:
            continue
        alias = f"T{len(tables) + 1}"
        equal = [
            joined(*pair)
            for n, earlier in enumerate(tables, 1)
            for a, b in _shared(database, earlier, table)
            for left, right in [(joined(f"T{n}.", identifier(a)), joined(f"{alias}.", identifier(b)))]
            for pair in ((left, " = ", right), (right, " = ", left))
        ]
        if equal:
            yield (
                (*tables, table),
                joined(source, " JOIN ", identifier(table.name), f" AS {alias} ON ", alternatives(equal)),
            )


def _shared(database: Database, left: Table, right: Table) -> Iterable[tuple[Name, Name]]:
    """Yield the pairs of columns that a key connects, in either direction."""
    names = left.name.text.lower(), right.name.text.lower()
    for (table, column), (other, key) in database.keys:
        pair = None
        if (table, other) == names:
            pair = left.column(column), right.column(key)
        elif (other, table) == names:
            pair = left.column(key), right.column(column)
        if pair and pair[0] and pair[1]:
            yield pair[0], pair[1]


def joined_columns(database: Database, most: int) -> int:
    """Count the columns of all choices of two tables up to `most`."""
    joins = scopes(database, most)[len(database.tables) :]
    return sum(len(scope.columns.parts) if isinstance(scope.columns, Union) else 1 for scope in joins)


def aggregate(scope: Scope) -> Pattern:
    """Return the pattern of an aggregate over the rows or a column."""
    return Union(
        (spelled("COUNT(*)"), joined(one_of(*FUNCTIONS), "(", maybe(spelled("DISTINCT ")), scope.columns, ")"))
    )


def condition(scope: Scope) -> Pattern:
    """Return the pattern of one comparison with values."""
    negated = maybe(spelled("NOT "))
    tests = [
        joined(one_of(*OPERATORS), VALUE),
        joined(" ", negated, "LIKE ", STRING),
        joined(" ", negated, "BETWEEN ", VALUE, " AND ", VALUE),
        joined(" IS ", negated, "NULL"),
    ]
    return joined(scope.columns, alternatives(tests))


CONNECTIVE = one_of(" AND ", " OR ")


def where(scope: Scope) -> Pattern:
    """Return the pattern of a WHERE clause, or of none."""
    return maybe(spelled(" WHERE "), listed(condition(scope), CONNECTIVE))


def nested(scope: Scope) -> Pattern:
    """Return the pattern of a WHERE clause up to the parenthesis that opens a query."""
    opening = one_of(" IN (", " NOT IN (", *(f"{operator}(" for operator in OPERATORS))
    return joined(" WHERE ", Repeat(joined(condition(scope), CONNECTIVE), 0, None), scope.columns, opening)


def group(scope: Scope) -> Pattern:
    """Return the pattern of a GROUP BY clause with or without HAVING."""
    having = maybe(spelled(" HAVING "), aggregate(scope), one_of(*OPERATORS), NUMBER)
    return joined(" GROUP BY ", listed(scope.columns, spelled(", ")), having)


def order(scope: Scope, grouped: bool) -> Pattern:
    """Return the pattern of ORDER BY and LIMIT, or of neither; aggregates need groups."""
    key = Union((scope.columns, aggregate(scope))) if grouped else scope.columns
    keys = listed(joined(key, maybe(one_of(" ASC", " DESC"))), spelled(", "))
    return joined(maybe(spelled(" ORDER BY "), keys), maybe(spelled(" LIMIT "), POSITIVE))


def select(scope: Scope, items: Pattern) -> Pattern:
    """Return the pattern of SELECT … FROM …."""
    return joined("SELECT ", maybe(spelled("DISTINCT ")), items, " FROM ", scope.source)


def core(scope: Scope) -> Pattern:
    """Return the pattern of a query with one column and without ORDER BY, for the inside of another."""
    return joined(select(scope, Union((scope.columns, aggregate(scope)))), where(scope), maybe(group(scope)))


def queries(database: Database, tables: int, inner_tables: int) -> Pattern:
    """Return the pattern of SELECT statements.

    Args:
        database: whose tables are read.
        tables: the most that one query joins.
        inner_tables: the most that a query in parentheses or beside a set operator joins.
    """
    outer, inner = scopes(database, tables), scopes(database, inner_tables)
    one_column = alternatives([core(scope) for scope in inner])
    set_operator = one_of(" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ")
    plain, opened = [], []
    for scope in outer:
        item = Union((scope.columns, aggregate(scope)))
        head = select(scope, Union((spelled("*"), listed(item, spelled(", ")))))
        ending = Union((order(scope, grouped=False), joined(group(scope), order(scope, grouped=True))))
        plain.append(joined(head, where(scope), ending))
        opened.append(joined(head, nested(scope)))
    in_parentheses = joined(alternatives(opened), one_column, ")")
    return alternatives([*plain, in_parentheses, joined(one_column, set_operator, one_column)])
