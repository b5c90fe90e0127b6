"""Small SQL queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.training.words import word, words

if TYPE_CHECKING:
    from random import Random


def query(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask for some columns of the rows of a table that meet one condition."""
    table, *columns = words(random, split, random.choice((3, 3, 4)))
    shown, key = columns[:-1], columns[-1]
    value = word(random, split) if random.random() < 0.6 else random.randrange(100)
    if isinstance(value, str):
        sign, said = "=", "is"
    else:
        sign, said = random.choice((("=", "is"), (">", "is over"), ("<", "is under")))
    listed = " and ".join(shown)
    prompt = random.choice(
        (
            f"Query {table}: {listed} where {key} {said} {value}.",
            f"Show {listed} of {table} whose {key} {said} {value}.",
        )
    )

    def written(quote: str, upper: bool, end: str) -> str:
        literal = f"{quote}{value}{quote}" if isinstance(value, str) else str(value)
        parts = ("select", "from", "where")
        select, origin, where = (p.upper() for p in parts) if upper else parts
        return f"{select} {', '.join(shown)} {origin} {table} {where} {key} {sign} {literal}{end}"

    return prompt, {
        "sql": written("'", True, ""),
        "sql statement": written("'", True, ";"),
        "lower case sql": written("'", False, ""),
        "lower case sql statement": written("'", False, ";"),
        "double quoted sql": written('"', True, ""),
    }
