"""Alternatives of a regex that match nothing that another one does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import effort
from engine.determinise import Determiniser, OverBudgetError
from engine.errors import Edit, Finding, Place
from engine.pattern import Origin, Pattern, alternatives, difference, looks

if TYPE_CHECKING:
    from collections.abc import Iterable

Branch = tuple[int, int, Pattern]
"""Where an alternative starts and ends in the source, and its pattern."""
MOST = 40
"""Alternatives of one group that are compared."""
STATES = 2_000
STEPS = 200_000
"""Of work for all comparisons of one regex; see `engine.effort`."""


def shadowed(source: str, groups: Iterable[list[Branch]]) -> list[Finding]:
    """Find the alternatives whose texts the other ones of their group all match, as far as little work shows it.

    Only which whole texts match is at stake here; inside an atomic group the order of alternatives matters too.
    """
    found: list[Finding] = []
    try:
        with effort.apart(STEPS):
            for branches in groups:
                found += _in_group(source, branches[:MOST])
    except (effort.OutOfStepsError, OverBudgetError):
        return found  # what is left is not compared
    return found


def _in_group(source: str, branches: list[Branch]) -> list[Finding]:
    left = [branch for branch in branches if not looks(branch[2])]
    found = []
    for branch in reversed(left):
        others = [other for other in left if other is not branch]
        if not others or not _within(branch[2], alternatives([pattern for _, _, pattern in others])):
            continue
        left = others
        around = next((o for o in others if _within(branch[2], o[2])), None)
        found.append(_finding(source, branch, around))
    return found


def _within(inner: Pattern, outer: Pattern) -> bool:
    table = Determiniser(difference(inner, outer, Origin(0, 0)), STATES).table()
    return not table.accepting.any()


def _finding(source: str, branch: Branch, around: Branch | None) -> Finding:
    start, stop, _ = branch
    by = f"'{source[around[0] : around[1]]}'" if around else "the other alternatives"
    first = start == 0 or source[start - 1] != "|"
    cut = (start, stop + 1) if first else (start - 1, stop)
    return Finding(
        "shadowed",
        "info",
        Place(source, start, max(stop, start + 1)),
        f"All that the alternative '{source[start:stop]}' matches is matched by {by} too, so it allows nothing more.",
        ("Remove it.",),
        edits=(Edit(f"Remove the alternative '{source[start:stop]}'", *cut, ""),),
        related=(Place(source, around[0], around[1]),) if around else (),
    )
