"""Alternatives of a regex that match nothing that another one does not."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from engine import effort
from engine.determinise import Determiniser, OverBudgetError
from engine.errors import Edit, Finding, Place
from engine.pattern import Chars, Concat, Origin, Pattern, Ranges, Repeat, alternatives, difference, lengths, looks

if TYPE_CHECKING:
    from collections.abc import Iterable

Branch = tuple[int, int, Pattern]
"""Where an alternative starts and ends in the source, and its pattern."""
Outline = tuple[list[Ranges], int, int | None]
"""The sets of characters that every match begins with, and bounds on its length."""
MOST = 40
"""Alternatives of one group that are compared."""
FAR = 64
"""Copies of a repetition that are looked at when it is asked how a match begins."""
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
    outlines = [_outline(pattern) for _, _, pattern in branches]
    close = [b for n, b in enumerate(branches) if not _stands_apart(outlines[n], outlines[:n] + outlines[n + 1 :])]
    left = [branch for branch in branches if not looks(branch[2])] if close else []
    found = []
    for branch in reversed([branch for branch in close if branch in left]):
        others = [other for other in left if other is not branch]
        if not others or not _within(branch[2], alternatives([pattern for _, _, pattern in others])):
            continue
        left = others
        around = next((o for o in others if _within(branch[2], o[2])), None)
        found.append(_finding(source, branch, around))
    return found


def _start(pattern: Pattern) -> tuple[list[Ranges], bool]:
    """Return the sets of the characters that every match begins with, one by one, and whether these are all of it."""
    match pattern:
        case Chars(ranges):
            return [ranges], True
        case Concat(parts):
            begun: list[Ranges] = []
            for part in parts:
                sets, whole = _start(part)
                begun += sets
                if not whole:
                    return begun, False
            return begun, True
        case Repeat(body, least, most) if least:
            sets, whole = _start(body)
            return (sets * min(least, FAR), least == most and least <= FAR) if whole else (sets, False)
        case _:
            return [], False


def _outline(pattern: Pattern) -> Outline:
    least, most = lengths(pattern)
    return _start(pattern)[0], least, most


def _stands_apart(outline: Outline, others: list[Outline]) -> bool:
    """Whether some match of one alternative is one of no other, as the first characters and the lengths show it.

    This spares nearly every pair the automaton: one match, with the lowest or the highest character at each place, is
    held against how the others must begin.
    """
    start, least, most = outline

    def missed(text: list[int], other: Outline) -> bool:
        begun, low, top = other
        other_length = (top is not None and top < least) or (most is not None and most < low)
        return other_length or any(
            not any(a <= c <= b for a, b in ranges) for c, ranges in zip(text, begun, strict=False)
        )

    begun = list(takewhile(bool, start))
    texts = [ranges[0][0] for ranges in begun], [ranges[-1][1] for ranges in begun]
    return any(all(missed(text, other) for other in others) for text in texts)


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
        Place(source, start, min(max(stop, start + 1), len(source))),
        f"All that the alternative '{source[start:stop]}' matches is matched by {by} too, so it allows nothing more.",
        ("Remove it.",),
        edits=(Edit(f"Remove the alternative '{source[start:stop]}'", *cut, ""),),
        related=(Place(source, around[0], around[1]),) if around else (),
    )
