"""A constraint that accepts nothing: the smallest part of it that already does."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from engine import automaton, effort
from engine.diagnosis import schema
from engine.diagnosis.subject import finding_at, named, place_of, quoted
from engine.errors import Finding, SizeError
from engine.pattern import (
    ANY,
    EMPTY,
    Atomic,
    Chars,
    Complement,
    Concat,
    Graph,
    Intersection,
    Look,
    Origin,
    Repeat,
    Union,
    children,
    nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from engine.constraints import Constraint
    from engine.errors import Place
    from engine.pattern import Pattern
    from engine.trace import Config

COMPILE_STEPS = 300_000
"""Of work for one try."""
MOST_PARTS = 400
MOST_REMEDIES = 3
SHORT = 32
"""Characters of a keyword's value that are told beside its name."""
_REMOVABLE = ("(?=", "(?!", "(?<", "^", "$", "\\b", "\\B", "\\A", "\\Z")
"""How look-arounds and anchors of a regex begin; all other parts write something."""

T = TypeVar("T")
Path = tuple[int, ...]
_ANY_CHARACTER = Chars(ANY, Origin(0, 0))
_ANY_TEXT = Repeat(_ANY_CHARACTER, 0, None)


@dataclass(frozen=True)
class Demand:
    """A part of a pattern that can only take texts away; without it at least as much is accepted.

    Attributes:
        paths: of its nodes, neighbouring characters of a literal together.
        origin: where it stands.
    """

    paths: tuple[Path, ...]
    origin: Origin


def demands(pattern: Pattern, path: Path = ()) -> Iterator[Demand]:
    """List the demands of a pattern: its characters, look-arounds, atomic groups, and the parts of intersections.

    What stands inside a look-around, a complement or an atomic group is left alone: there, asking for less may accept
    less.
    """
    if isinstance(pattern, Chars | Look | Complement):
        yield Demand((path,), pattern.origin)
    elif isinstance(pattern, Atomic):
        yield Demand((path,), _around(pattern))
    else:
        found = [d for i, part in enumerate(children(pattern)) for d in demands(part, (*path, i))]
        yield from _joined(found, pattern, path) if isinstance(pattern, Concat) else found


def _around(pattern: Pattern) -> Origin:
    """Return the place of all that a pattern writes."""
    spans = [
        (n.origin.start, n.origin.stop) for n in nodes(pattern) if isinstance(n, Chars | Repeat | Look | Complement)
    ]
    spans = [span for span in spans if span[1] > span[0]]
    return Origin(min(start for start, _ in spans), max(stop for _, stop in spans)) if spans else Origin(0, 0)


def _joined(found: list[Demand], pattern: Concat, path: Path) -> Iterator[Demand]:
    """Make one demand of the neighbouring characters of a sequence."""
    depth = len(path)
    run: Demand | None = None
    for demand in found:
        single = len(demand.paths) == 1 and len(demand.paths[0]) == depth + 1
        part = pattern.parts[demand.paths[0][depth]]
        literal = single and isinstance(part, Chars) and bool(part.ranges)
        if literal and run and run.origin.stop == demand.origin.start:
            run = Demand((*run.paths, *demand.paths), Origin(run.origin.start, demand.origin.stop, run.origin.pointer))
            continue
        if run:
            yield run
        run = demand if literal else None
        if not literal:
            yield demand
    if run:
        yield run


def demands_by_origin(pattern: Pattern) -> list[Demand]:
    """List the demands of a pattern, one for each place: a word boundary is made of several."""
    gathered: dict[Origin, Demand] = {}
    for demand in demands(pattern):
        before = gathered.get(demand.origin)
        gathered[demand.origin] = Demand((*before.paths, *demand.paths), demand.origin) if before else demand
    return list(gathered.values())


def without(pattern: Pattern, dropped: set[Path], path: Path = ()) -> Pattern:
    """Return the pattern without some demands: any character for a character, any text for what is more."""
    if path in dropped:
        return EMPTY if isinstance(pattern, Look) else _ANY_CHARACTER if isinstance(pattern, Chars) else _ANY_TEXT
    if isinstance(pattern, Repeat):
        return replace(pattern, body=without(pattern.body, dropped, (*path, 0)))
    if isinstance(pattern, Concat | Union | Intersection):
        return replace(pattern, parts=tuple(without(p, dropped, (*path, i)) for i, p in enumerate(pattern.parts)))
    if isinstance(pattern, Graph):
        arcs = ((a, without(part, dropped, (*path, i)), b) for i, (a, part, b) in enumerate(pattern.arcs))
        return replace(pattern, arcs=tuple(arcs))
    return pattern


def minimal(items: Sequence[T], impossible: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return an inclusion-minimal part of `items` that is impossible, given that all of them are (QuickXplain).

    Args:
        items: those to be blamed last come last.
        impossible: monotone: what contains something impossible is.
    """
    needed: list[T] = []
    rest = list(items)
    while not impossible(needed):
        low, high = 0, len(rest)  # `needed` with rest[:low] is possible, with rest[:high] it is not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if impossible([*needed, *rest[:middle]]) else (middle, high)
        needed.append(rest[low])
        rest = rest[:low]
    return tuple(item for item in items if item in needed)


def minimal_demands(pattern: Pattern) -> tuple[Demand, ...]:
    """Find an inclusion-minimal set of demands that nothing satisfies together.

    Raises:
        OutOfStepsError: a limit of work is passed before it is known.
    """
    listed = demands_by_origin(pattern)
    if len(listed) > MOST_PARTS:
        raise effort.OutOfStepsError

    def impossible(kept: Sequence[Demand]) -> bool:
        dropped = {path for demand in listed if demand not in kept for path in demand.paths}
        try:
            return automaton.compile(without(pattern, dropped), steps=COMPILE_STEPS).is_empty
        except SizeError:
            raise effort.OutOfStepsError from None

    # A class that matches nothing is a whole explanation: those and look-arounds are to be blamed first.
    empty = {(d.paths, d.origin) for d in listed if _matches_nothing(pattern, d)}
    listed.sort(key=lambda d: ((d.paths, d.origin) not in empty, d.origin.start))
    return minimal(listed, impossible)


def _matches_nothing(pattern: Pattern, demand: Demand) -> bool:
    for path in demand.paths:
        node = pattern
        for i in path:
            node = children(node)[i]
        if isinstance(node, Chars) and not node.ranges:
            return True
    return False


def places(constraint: Constraint) -> tuple[list[Place], list[str]]:
    """Return the places of a minimal conflict, the one to blame first, and what is folded: further branches.

    Raises:
        OutOfStepsError: a limit of work is passed before it is known.
    """
    if constraint.kind in schema.KINDS:
        keywords, chosen = schema.conflict(constraint, minimal)
        return [schema.place(constraint, keyword.pointer) for keyword in keywords], schema.folded(
            constraint, keywords, chosen
        )
    pattern, folded = one_branch(constraint.pattern)
    found = [place_of(constraint, demand.origin) for demand in minimal_demands(pattern)]
    inside = [count for count, span in folded if any(span[0] <= p.start and p.stop <= span[1] for p in found)]
    return found, [f"the {count} other alternatives around it" for count in inside]


def one_branch(pattern: Pattern) -> tuple[Pattern, list[tuple[int, tuple[int, int]]]]:
    """Keep of each union of many parts the one that says most: where nothing matches the whole, no part matches either.

    What stands inside a look-around, a complement or an atomic group is left alone, as in `demands`.

    Returns:
        The pattern, and for each union that was cut how many parts it lost and the span of the one that is left.
    """
    if isinstance(pattern, Repeat):
        body, folded = one_branch(pattern.body)
        return replace(pattern, body=body), folded
    if not isinstance(pattern, Concat | Union | Intersection):
        return pattern, []
    parts, folded = pattern.parts, []
    if isinstance(pattern, Union) and len(parts) > schema.SEVERAL:
        best = max(parts, key=lambda part: sum(1 for _ in nodes(part)))
        around = _around(best)
        parts, folded = (best,), [(len(parts) - 1, (around.start, around.stop))]
    reduced = [one_branch(part) for part in parts]
    return replace(pattern, parts=tuple(p for p, _ in reduced)), [*folded, *(f for _, more in reduced for f in more)]


def undetermined() -> Finding:
    """Say that nothing is accepted, where it isn't known why."""
    message = "Nothing at all satisfies this constraint; which parts contradict each other was not determined."
    advice = "Remove parts until something is accepted."
    return Finding("empty", "error", None, message, (advice,), evidence={"determined": False})


def finding(places: list[Place], folded: list[str]) -> Finding:
    """Say that nothing is accepted, and which parts contradict each other.

    Args:
        places: of the parts.
        folded: further branches, of which nothing is accepted either, in words.
    """
    names = _named_by_schema(places) if len(places) > 1 and places[0].pointer else [_with_value(p) for p in places]
    match names:
        case []:
            message, advice = "Nothing at all satisfies this constraint: it has no alternative.", "Add one."
        case [one] if len(places) == 1:
            message = f"Nothing can satisfy {one} where it stands, whatever the rest of the constraint asks."
            advice = "Remove or change it."
        case _:
            message = f"Nothing can satisfy {_in_words(names)} together."
            advice = "Remove or change one of them: without any one there are texts that satisfy the rest."
    if folded:
        message = f"{message.removesuffix('.')}; {' and '.join(folded)} allow nothing either."
    evidence = {"conflict": [place.plain() for place in places], "folded": folded}
    return finding_at("empty", "error", places, message, fixes=(advice,), evidence=evidence)


def _in_words(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _named_by_schema(places: list[Place]) -> list[str]:
    """Name keywords with what they say, those of one schema together."""
    by_schema: dict[str, list[str]] = {}
    for place in places:
        at, _, keyword = (place.pointer or "").rpartition("/")
        by_schema.setdefault(at or "the root", []).append(f"{keyword}{_value(place)}")
    return [f"{_in_words(keywords)} of {at}" for at, keywords in by_schema.items()]


def _with_value(place: Place) -> str:
    """Name a part; a keyword of a schema with what it says."""
    return named(place) + (_value(place) if place.pointer else "")


def _value(place: Place) -> str:
    """Return what a keyword says in brackets, where that is short."""
    value = " ".join(place.source[place.start : place.stop].split())
    value = re.sub(r'^"(?:\\.|[^"\\])*"\s*:\s*', "", value)
    return f" ({value})" if len(value) <= SHORT else ""


def remedies(finding: Finding, config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Return the changes that take out one part each: a keyword, or a look-around or anchor of a regex; untried."""
    source = config.source
    if not isinstance(source, str):
        return []
    if config.kind in schema.KINDS:
        pointers = [place["pointer"] for place in finding.evidence.get("conflict", ())]
        return [
            (f"Remove {pointer}", {"source": schema.removed(source, pointer)}) for pointer in pointers[:MOST_REMEDIES]
        ]
    if config.kind != "regex":
        return []
    spans = [(place["start"], place["stop"]) for place in finding.evidence.get("conflict", ())]
    removable = [(a, b) for a, b in spans if source[a:b].startswith(_REMOVABLE)]
    removed = [(f"Remove {quoted(source[a:b])}", {"source": source[:a] + source[b:]}) for a, b in removable]
    atomic = [(a, b) for a, b in spans if source[:a].endswith("(?>")]
    opened = [
        (f"Let {quoted(source[a:b])} give back", {"source": f"{source[: a - 3]}(?:{source[a:]}"}) for a, b in atomic
    ]
    return [*removed, *opened]
