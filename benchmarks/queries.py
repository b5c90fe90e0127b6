"""Gold queries in the one spelling that the pattern of SELECT statements writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from engine.constraints.sql.database import Database, Table


def normal(query: str, database: Database) -> str:
    """Rewrite a query without changing what it asks.

    Keywords and functions in capitals, one blank between words and behind commas, names as the schema spells them,
    strings in single quotes, `!=`, `x NOT IN`, no semicolon; a query of one table without alias, tables of a join as
    T1, T2, … in their order, and every column of a join with its table's alias.
    """
    tree = sqlglot.parse_one(query.strip().rstrip(";"), dialect="sqlite")
    for select in list(tree.find_all(exp.Select)):
        _respell(select, database)
    text = tree.sql(dialect="sqlite").replace("<>", "!=")
    return re.sub(r'NOT ((?:\w+\.)?(?:\w+|"[^"]+")) (IN|LIKE|BETWEEN)\b', r"\1 NOT \2", text)


def _respell(select: exp.Select, database: Database) -> None:
    own = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])]
    tables = {t.name.text.lower(): t for t in database.tables}
    by_alias: dict[str, tuple[Table, str]] = {}
    for n, node in enumerate(own, 1):
        table = tables[node.name.lower()]
        alias = f"T{n}" if len(own) > 1 else ""
        by_alias[(node.alias or node.name).lower()] = by_alias[node.name.lower()] = (table, alias)
        node.set("this", exp.to_identifier(table.name.text))
        node.set("alias", exp.TableAlias(this=exp.to_identifier(alias)) if alias else None)
    for column in list(select.find_all(exp.Column)):
        if column.find_ancestor(exp.Select) is select:
            _respell_column(column, by_alias)


def _respell_column(column: exp.Column, by_alias: dict[str, tuple[Table, str]]) -> None:
    if isinstance(column.this, exp.Star):
        return
    candidates = [by_alias[column.table.lower()]] if column.table else list(by_alias.values())
    for table, alias in candidates:
        name = table.column(column.name)
        if name:
            column.set("this", exp.to_identifier(name.text))
            column.set("table", exp.to_identifier(alias) if alias else None)
            return
    if column.this.quoted:  # SQLite reads a name in double quotes that is no column as a string
        column.replace(exp.Literal.string(column.name))
