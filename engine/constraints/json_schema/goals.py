"""Sets of JSON values that are named and not yet worked out."""

from __future__ import annotations

from typing import Any


class Goal:
    """A set of values named, not yet worked out; equal keys are equal sets.

    Attributes:
        key: what it is: `("schema", …)`, `("const", …)`, `("values", …)`, or `("not" | "all" | "any", *parts)`.
        parts: the goals that it is made of.
        value: the schema place, the constant, or the values.
    """

    __slots__ = ("_hash", "key", "parts", "value")

    def __init__(self, key: tuple[Any, ...], parts: tuple[Goal, ...] = (), value: Any = None) -> None:
        self.key = key
        self.parts = parts
        self.value = value
        self._hash = hash(key)  # goals hold goals: worked out anew, it would walk all of them each time

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Goal) and self._hash == other._hash and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash


TRUE = Goal(("all",))
FALSE = Goal(("any",))


def every(*goals: Goal) -> Goal:
    """Return the values that are in all the goals."""
    flat = [part for goal in goals for part in (goal.parts if goal.key[0] == "all" else (goal,))]
    kept = tuple(dict.fromkeys(flat))
    if FALSE in kept:
        return FALSE
    return kept[0] if len(kept) == 1 else Goal(("all", *kept), kept)


def some(*goals: Goal) -> Goal:
    """Return the values that are in one of the goals."""
    flat = [part for goal in goals for part in (goal.parts if goal.key[0] == "any" else (goal,))]
    kept = tuple(dict.fromkeys(flat))
    if TRUE in kept:
        return TRUE
    return kept[0] if len(kept) == 1 else Goal(("any", *kept), kept)


def negated(goal: Goal) -> Goal:
    """Return the values that are not in the goal."""
    if goal in (TRUE, FALSE):
        return FALSE if goal == TRUE else TRUE
    return goal.parts[0] if goal.key[0] == "not" else Goal(("not", goal), (goal,))
