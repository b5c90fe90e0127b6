"""All families of problems, by name."""

from __future__ import annotations

from engine.errors import ConfigError
from engine.tasks import bfcl, calls, formats, puzzles, queries
from engine.tasks.problem import Family

FAMILIES: tuple[Family, ...] = (
    *calls.FAMILIES,
    *puzzles.FAMILIES,
    *queries.FAMILIES,
    *formats.FAMILIES,
    *bfcl.FAMILIES,
)


def named(name: str) -> Family:
    """Return a family.

    Raises:
        ConfigError: there is none of this name; lists those that there are.
    """
    for family in FAMILIES:
        if family.name == name:
            return family
    raise ConfigError(
        f"There is no family of problems {name!r}.", f"Choose one of {', '.join(f.name for f in FAMILIES)}."
    )
