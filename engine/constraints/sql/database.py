"""A database schema as the user wrote it: tables, columns and foreign keys, each name with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from engine.constraints.json_schema import document
from engine.errors import Finding, PatternSyntaxError, Place
from engine.pattern import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.constraints.json_schema.document import Document


@dataclass(frozen=True)
class Name:
    """An identifier and where it stands."""

    text: str
    origin: Origin


@dataclass(frozen=True)
class Table:
    """A table with its columns."""

    name: Name
    columns: tuple[Name, ...]

    def column(self, text: str) -> Name | None:
        """Find a column; SQL doesn't tell capital letters from small ones."""
        return next((c for c in self.columns if c.text.lower() == text.lower()), None)


@dataclass(frozen=True)
class Database:
    """A database schema.

    Attributes:
        text: the source that origins point into.
        tables: those that a query can read.
        keys: pairs (table, column) that belong together; declared foreign keys, each in one direction.
    """

    text: str
    tables: tuple[Table, ...]
    keys: tuple[tuple[tuple[str, str], tuple[str, str]], ...]


def read(source: Any) -> tuple[Database, tuple[Finding, ...]]:
    """Read `CREATE TABLE` statements, or a database in the JSON of Spider's tables.

    Raises:
        PatternSyntaxError: the text is neither, or names no table; says where.
    """
    is_json = not isinstance(source, str) or source.lstrip()[:1] in ("{", "[")
    database = _from_json(document.read(source)) if is_json else _from_statements(source)
    findings = []
    reserved = [t for t in database.tables if t.name.text.lower().startswith("sqlite_")]
    for table in reserved:
        where = Place(database.text, table.name.origin.start, table.name.origin.stop, table.name.origin.pointer)
        message = f"The table {table.name.text!r} is SQLite's own; no query reads it here."
        findings.append(Finding("reserved-table", "info", where, message))
    kept = tuple(t for t in database.tables if t not in reserved and t.columns)
    if not kept:
        raise PatternSyntaxError(
            "The database has no table with a column.",
            "Give CREATE TABLE statements, or Spider's JSON of one database.",
        )
    names = {t.name.text.lower() for t in kept}
    keys = tuple(key for key in database.keys if all(table in names for table, _ in key))
    return Database(database.text, kept, keys), tuple(findings)


def _from_statements(text: str) -> Database:
    try:
        statements = sqlglot.parse(text, dialect="sqlite")
    except SqlglotError as error:
        _refuse(text, error)
    tables: list[Table] = []
    keys: list[tuple[tuple[str, str], tuple[str, str]]] = []
    for statement in statements:
        if not (isinstance(statement, exp.Create) and isinstance(statement.this, exp.Schema)):
            continue
        table = _name(statement.this.this.this)
        columns = [part for part in statement.this.expressions if isinstance(part, exp.ColumnDef)]
        tables.append(Table(table, tuple(_name(column.this) for column in columns)))
        keys += _keys(table.text, statement.this)
    return Database(text, tuple(tables), tuple(keys))


def _refuse(text: str, error: SqlglotError) -> NoReturn:
    """Say where the text stops being SQL."""
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line") or 1, details[0].get("col") or 1
    start = sum(len(row) for row in text.splitlines(keepends=True)[: line - 1]) + column - 1
    place = Place(text, min(start, len(text)), min(start + 1, len(text)))
    reason = details[0].get("description") or str(error).splitlines()[0]
    raise PatternSyntaxError(
        f"The database schema can't be read at line {place.line}, column {place.column}: {reason}.",
        "Write CREATE TABLE statements in SQLite's syntax, or give Spider's JSON of one database.",
        place,
    ) from error


def _name(identifier: exp.Identifier) -> Name:
    start = identifier.meta.get("start", 0)
    return Name(identifier.this, Origin(start, identifier.meta.get("end", start - 1) + 1))


def _keys(table: str, schema: exp.Schema) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the foreign keys of a table, declared at a column or at the end."""
    for reference in schema.find_all(exp.Reference):
        around = reference.find_ancestor(exp.ForeignKey, exp.ColumnDef)
        own = around.expressions if isinstance(around, exp.ForeignKey) else [around.this] if around else []
        target = reference.this
        if isinstance(target, exp.Schema):
            for left, right in zip(own, target.expressions, strict=False):
                yield _pair(table, left.name, target.this.name, right.name)


def _pair(table: str, column: str, other: str, key: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (table.lower(), column.lower()), (other.lower(), key.lower())


def _from_json(source: Document) -> Database:
    """Read one database: Spider's own `tables.json` entry, or tables as an object of lists of columns."""
    value = source.value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    where = source.pointers.get(id(value), "")
    try:
        if "column_names_original" in value:
            return _original(source, value, where)
        pairs = [(a.rsplit(".", 1), b.rsplit(".", 1)) for a, b in value.get("foreign_keys", [])]
        return Database(source.text, tuple(_listed(source, value, where)), tuple(_pair(*a, *b) for a, b in pairs))
    except (TypeError, KeyError, ValueError, IndexError, AttributeError) as error:
        raise PatternSyntaxError(
            f"The JSON is not a database schema as Spider's tables are: {error!r}.",
            'Give an object with "tables", or with "table_names_original" and "column_names_original".',
        ) from error


def _listed(source: Document, value: dict[str, Any], where: str) -> Iterable[Table]:
    for name, columns in value["tables"].items():
        pointer = document.child(where, "tables", name)
        spots = [document.child(pointer, n, *([0] if isinstance(c, list) else [])) for n, c in enumerate(columns)]
        names = [c[0] if isinstance(c, list) else c for c in columns]
        found = [Name(c, source.origin(spot)) for c, spot in zip(names, spots, strict=True)]
        yield Table(Name(name, source.key_origin(pointer)), tuple(found))


def _original(source: Document, value: dict[str, Any], where: str) -> Database:
    names, columns = value["table_names_original"], value["column_names_original"]
    owned: dict[int, list[Name]] = {n: [] for n in range(len(names))}
    for n, (table, column) in enumerate(columns):
        if table >= 0:  # the first entry is "*", of no table
            owned[table].append(Name(column, source.origin(document.child(where, "column_names_original", n, 1))))
    tables = tuple(
        Table(Name(name, source.origin(document.child(where, "table_names_original", n))), tuple(owned[n]))
        for n, name in enumerate(names)
    )
    full = [(names[table], column) for table, column in columns]
    keys = tuple(_pair(*full[a], *full[b]) for a, b in value.get("foreign_keys", []))
    return Database(source.text, tables, keys)
