"""Alternatives whose values all belong to another alternative as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import effort
from engine.constraints.json_schema import combination, edits
from engine.constraints.json_schema.document import child
from engine.constraints.json_schema.expansion import TooManyPlacesError
from engine.constraints.json_schema.goals import every, negated
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
"""Of work for all comparisons of one schema; see `engine.effort`."""


def tell(expansion: Expansion) -> None:
    """Tell of alternatives that another one makes superfluous, as far as little work shows it."""
    try:
        with effort.apart(STEPS):
            for place in expansion.places:
                for keyword in ("anyOf", "oneOf"):
                    _tell(expansion, place, keyword)
    except (effort.OutOfStepsError, TooManyPlacesError):
        return  # what is left is not compared


def _tell(expansion: Expansion, place: Place, keyword: str) -> None:
    goals = combination.branches(expansion, place, keyword) if keyword in place.schema else []
    gone: set[int] = set()
    for i, goal in enumerate(goals if len(goals) <= ALTERNATIVES else ()):
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


def _within(expansion: Expansion, goal: Goal, other: Goal) -> bool:
    """Whether it is certain that a goal's values are all in another."""
    if goal == other:
        return True
    try:
        with expansion.report.exactly():
            return not expansion.is_empty(goal) and expansion.is_empty(every(goal, negated(other)))
    except (InexactError, TooManyShapesError, OverBudgetError, InputError):
        return False
