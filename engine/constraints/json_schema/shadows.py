"""Alternatives that allow nothing where they stand, and those whose values all belong to another one as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import effort
from engine.constraints.json_schema import combination, edits
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.expansion import TooManyPlacesError
from engine.constraints.json_schema.goals import TRUE, every, negated
from engine.constraints.json_schema.report import InexactError
from engine.constraints.json_schema.values import TooManyShapesError
from engine.determinise import OverBudgetError
from engine.errors import Finding, InputError

if TYPE_CHECKING:
    from engine.constraints.json_schema.expansion import Expansion
    from engine.constraints.json_schema.goals import Goal
    from engine.constraints.json_schema.references import Place

ALTERNATIVES = 12
"""More of them are not compared with each other."""
STEPS = 300_000
"""Of work for all comparisons of one kind in a schema; see `engine.effort`."""


def tell(expansion: Expansion) -> None:
    """Tell of alternatives that allow nothing, or nothing more than another one, as far as little work shows it."""
    listed = [
        (place, keyword, goals, set[int]())
        for place in expansion.places
        for keyword in ("anyOf", "oneOf")
        if keyword in place.schema and len(goals := combination.branches(expansion, place, keyword)) <= ALTERNATIVES
    ]
    for tell_of in (_tell_dead, _tell_shadowed):
        try:
            with effort.apart(STEPS):
                for place, keyword, goals, gone in listed:
                    tell_of(expansion, place, keyword, goals, gone)
        except (effort.OutOfStepsError, TooManyPlacesError):
            continue  # what is left is not compared


def _tell_shadowed(expansion: Expansion, place: Place, keyword: str, goals: list[Goal], gone: set[int]) -> None:
    """Tell of alternatives whose values are all in another one; `gone` are those that are told of, and grows."""
    for i, goal in enumerate(goals):
        if i in gone:
            continue
        around = next(
            (j for j, other in enumerate(goals) if j not in (i, *gone) and _within(expansion, goal, other)), None
        )
        if around is None:
            continue
        gone.add(i)
        inner, outer = (child(place.pointer, keyword, n) for n in (i, around))
        document = expansion.report.document
        allowed = keyword == "anyOf"
        expansion.report.add(
            Finding(
                "shadowed",
                "info" if allowed else "warning",
                document.place(inner),
                f"All values of {inner} are values of {outer} too, so "
                + ("it allows nothing more." if allowed else "'oneOf' refuses all of them."),
                ("Remove it, or make one of the two stricter.",),
                edits=(edits.removed(document, inner),) if inner in document.spans else (),
                related=(document.place(outer),),
            )
        )


def _tell_dead(expansion: Expansion, place: Place, keyword: str, goals: list[Goal], gone: set[int]) -> None:
    """Tell of alternatives without a value, what stands beside the keyword included, and add them to `gone`."""
    whole = expansion.schemas.goal(place.schema, place.pointer, place.resolver)
    if len(goals) < 2 or _is_empty(expansion, whole):
        return
    # In 'oneOf' an alternative that overlaps is refused as a whole: of it alone nothing would be said.
    around = whole if keyword == "anyOf" else TRUE
    for i, goal in enumerate(goals):
        if not _is_empty(expansion, every(around, goal)):
            continue
        gone.add(i)
        inner, document = child(place.pointer, keyword, i), expansion.report.document
        beside = "" if _is_empty(expansion, goal) else f" with what stands beside '{keyword}'"
        expansion.report.add(
            Finding(
                "dead-alternative",
                "warning",
                document.place(inner),
                f"No value satisfies {inner}{beside}, so this alternative is never taken.",
                ("Remove it, or loosen what contradicts in it.",),
                edits=(edits.removed(document, inner),) if inner in document.spans else (),
            )
        )


def _is_empty(expansion: Expansion, goal: Goal) -> bool:
    """Whether it is certain that a goal has no value."""
    try:
        with expansion.report.exactly():
            return expansion.is_empty(goal)
    except (InexactError, TooManyShapesError, OverBudgetError, InputError):
        return False


def _within(expansion: Expansion, goal: Goal, other: Goal) -> bool:
    """Whether it is certain that a goal's values are all in another."""
    return goal == other or (not _is_empty(expansion, goal) and _is_empty(expansion, every(goal, negated(other))))
