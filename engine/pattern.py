"""The syntax tree that every constraint language is read into; each leaf knows where in the source it stands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint, inclusive ranges of code points."""

ANY: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""Every code point that UTF-8 can write: all but the surrogates."""


class Origin(NamedTuple):
    """A span `[start, stop)` of the source text, in characters.

    For a list of choices the source is the choices joined by newlines; for a JSON source `pointer` is the JSON pointer
    of the part that the span holds.
    """

    start: int
    stop: int
    pointer: str | None = None


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set; an empty set matches nothing."""

    ranges: Ranges
    origin: Origin


@dataclass(frozen=True, slots=True)
class Concat:
    """The parts one after the other; without parts the empty string."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """One of the parts; without parts nothing at all."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body `least` to `most` times; `most` is None for no limit.

    Inside `Atomic`, `greedy` says whether more copies are tried before fewer; elsewhere it changes nothing.
    """

    body: Pattern
    least: int
    most: int | None
    origin: Origin = field(default=Origin(0, 0))
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Atomic:
    """The first way in which the body matches here, whatever follows; earlier parts of a union come first.

    No repetition in the body may repeat something that matches the empty text, except `?`.
    """

    body: Pattern


@dataclass(frozen=True, slots=True)
class Look:
    """A condition on the text around a place; it consumes nothing.

    Ahead: some prefix of the rest is in the body. Behind: some suffix of what was read is. `negative` turns it round.
    """

    body: Pattern
    ahead: bool
    negative: bool
    origin: Origin = field(default=Origin(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Intersection:
    """The texts that all the parts match; without parts every text.

    Each part is a text of its own: a look-around in it sees no further than what the part matches. What is written
    comes from the leaves of all the parts.
    """

    parts: tuple[Pattern, ...]
    origin: Origin = field(default=Origin(0, 0))


@dataclass(frozen=True, slots=True)
class Complement:
    """Every text but those that the body matches, a text of its own as in `Intersection`.

    What is written comes from `origin`; the leaves of the body say only what is not.
    """

    body: Pattern
    origin: Origin


@dataclass(frozen=True, slots=True)
class Graph:
    """The texts along the paths from node 0 to a final one; an arc `(from, pattern, to)` writes a text of its pattern.

    For what counts and remembers: a tree of the other nodes would hold an arc once for each path to it.
    """

    arcs: tuple[tuple[int, Pattern, int], ...]
    finals: frozenset[int]
    origin: Origin = field(default=Origin(0, 0))


Pattern = Chars | Concat | Union | Repeat | Atomic | Look | Intersection | Complement | Graph

EMPTY = Concat(())


def sequence(parts: list[Pattern]) -> Pattern:
    """Concatenate; a single part is itself."""
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def alternatives(parts: list[Pattern]) -> Pattern:
    """Unite; a single part is itself."""
    return parts[0] if len(parts) == 1 else Union(tuple(parts))


def difference(whole: Pattern, without: Pattern, origin: Origin) -> Pattern:
    """Return what `whole` matches and `without` doesn't."""
    return Intersection((whole, Complement(without, origin)), origin)


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns that a pattern is made of."""
    # By isinstance, which takes a third of the time of match; all of a pattern is walked for every key typed.
    if isinstance(pattern, Chars):
        return ()
    if isinstance(pattern, (Concat, Union, Intersection)):
        return pattern.parts
    if isinstance(pattern, Graph):
        return tuple(part for _, part, _ in pattern.arcs)
    return (pattern.body,)


def nodes(pattern: Pattern, closed: bool = False) -> list[Pattern]:
    """List every node once, though it may stand in many places.

    Args:
        pattern: where to start.
        closed: whether to stop at intersections and complements, which are texts of their own.
    """
    seen, found = {id(pattern)}, [pattern]
    for node in found:
        if isinstance(node, Chars) or (closed and isinstance(node, (Intersection, Complement))):
            continue
        for child in children(node):
            if id(child) not in seen:
                seen.add(id(child))
                found.append(child)
    return found


def moved(pattern: Pattern, place: Callable[[Origin], Origin]) -> Pattern:
    """Return the pattern with other origins; what stands in many places is made once."""
    known: dict[int, Pattern] = {}

    def again(node: Pattern) -> Pattern:
        if id(node) not in known:
            known[id(node)] = rebuilt(node)
        return known[id(node)]

    def rebuilt(node: Pattern) -> Pattern:
        changes: dict[str, Any] = {}
        if isinstance(node, (Chars, Repeat, Intersection, Complement)):
            changes["origin"] = place(node.origin)
        if isinstance(node, (Concat, Union, Intersection)):
            changes["parts"] = tuple(again(part) for part in node.parts)
        if isinstance(node, (Repeat, Atomic, Look, Complement)):
            changes["body"] = again(node.body)
        return replace(node, **changes)

    return again(pattern)


def is_look(node: Pattern) -> bool:
    """Whether a node is a look-around, or what takes one, an atomic group."""
    return isinstance(node, (Look, Atomic))


def looks(pattern: Pattern) -> bool:
    """Whether a look-around of the pattern's own text stands in it."""
    return any(map(is_look, nodes(pattern, closed=True)))


def nullable(pattern: Pattern) -> bool:
    """Whether the pattern may match the empty text, look-arounds taken to hold."""
    match pattern:
        case Chars():
            return False
        case Concat(parts) | Intersection(parts):
            return all(nullable(part) for part in parts)
        case Union(parts):
            return any(nullable(part) for part in parts)
        case Repeat(body, least):
            return least == 0 or nullable(body)
        case Atomic(body):
            return nullable(body)
        case _:
            return True


def matches_nothing(pattern: Pattern) -> bool | None:
    """Whether nothing matches, as far as the tree alone says; None where it takes an automaton to know.

    Look-arounds, atomic groups, intersections and complements are not decided here.
    """
    known: dict[int, bool | None] = {}

    def decided(node: Pattern) -> bool | None:
        if id(node) not in known:
            known[id(node)] = fresh(node)
        return known[id(node)]

    def fresh(node: Pattern) -> bool | None:
        match node:
            case Chars(ranges):
                return not ranges
            case Concat(parts):
                return _any_of(map(decided, parts))
            case Union(parts):
                return _all_of(map(decided, parts))
            case Repeat(body, least):
                return decided(body) if least else False
            case Graph(arcs, finals):
                certain = [(a, b) for a, part, b in arcs if decided(part) is False]
                possible = [(a, b) for a, part, b in arcs if decided(part) is not True]
                if finals & _reached(certain):
                    return False
                return None if finals & _reached(possible) else True
            case _:
                return None

    return decided(pattern)


def _any_of(verdicts: Iterable[bool | None]) -> bool | None:
    found = list(verdicts)
    return True if True in found else None if None in found else False


def _all_of(verdicts: Iterable[bool | None]) -> bool | None:
    found = list(verdicts)
    return False if False in found else None if None in found else True


def _reached(arcs: Iterable[tuple[int, int]]) -> set[int]:
    """Return the nodes that arcs lead to from node 0."""
    following: dict[int, list[int]] = {}
    for source, target in arcs:
        following.setdefault(source, []).append(target)
    seen, stack = {0}, [0]
    while stack:
        for target in following.get(stack.pop(), ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return seen


def lengths(pattern: Pattern) -> tuple[int, int | None]:
    """Return bounds on the length of what is matched, in characters; None for no upper one."""
    match pattern:
        case Chars():
            return 1, 1
        case Concat(parts):
            bounds = [lengths(part) for part in parts]
            tops = [top for _, top in bounds if top is not None]
            return sum(low for low, _ in bounds), sum(tops) if len(tops) == len(bounds) else None
        case Union(parts) if parts:
            bounds = [lengths(part) for part in parts]
            tops = [top for _, top in bounds if top is not None]
            return min(low for low, _ in bounds), max(tops) if len(tops) == len(bounds) else None
        case Repeat(body, least, most):
            low, top = lengths(body)
            return least * low, 0 if most == 0 else None if most is None or top is None else most * top
        case Atomic(body):
            return lengths(body)
        case Look() | Union():
            return 0, 0
        case _:
            return 0, None


def sees_only_itself(pattern: Pattern, before: int = 0, after: int = 0) -> bool:
    """Whether it is plain that no look-around sees past the text that the pattern matches.

    Args:
        pattern: part of a text.
        before: characters of that text that certainly stand in front of it.
        after: the same behind it.
    """
    match pattern:
        case Look(body, ahead):
            _, top = lengths(body)
            return top is not None and top <= (after if ahead else before) and not looks(body)
        case Concat(parts):
            least = [lengths(part)[0] for part in parts]
            return all(
                sees_only_itself(part, before + sum(least[:n]), after + sum(least[n + 1 :]))
                for n, part in enumerate(parts)
            )
        case Union(parts):
            return all(sees_only_itself(part, before, after) for part in parts)
        case Repeat(body):
            return sees_only_itself(body, before, after)
        case Atomic():
            return False
        case _:
            return True


def without_edges(pattern: Pattern) -> Pattern:
    """Settle look-arounds that stand at the very start or end of the text, where they are certain to hold or to fail.

    A leading `^` sees no character before it and a trailing `$` none behind it: whether the body matches the empty text
    there decides.
    """
    return _settled(_settled(pattern, ahead=False), ahead=True)


def _settled(pattern: Pattern, ahead: bool) -> Pattern:
    """Settle the looks in the direction of one edge that stand at that edge."""
    match pattern:
        case Look(body, direction, negative) if direction == ahead:
            matches = _matches_nothing(body, ahead)
            if matches is None:
                return pattern
            return EMPTY if matches != negative else Union(())
        case Union(parts):
            return alternatives([_settled(part, ahead) for part in parts])
        case Concat(parts) if parts:
            rest = list(parts)
            edge = -1 if ahead else 0
            while rest:
                settled = _settled(rest[edge], ahead)
                if settled != EMPTY:
                    rest[edge] = settled
                    break
                rest.pop(edge)
            return sequence(rest) if rest else EMPTY
        case _:
            return pattern


def _matches_nothing(pattern: Pattern, ahead: bool) -> bool | None:
    """Whether the empty text at an edge is matched; None where a look in the other direction decides."""
    match pattern:
        case Chars():
            return False
        case Concat(parts):
            found = [_matches_nothing(part, ahead) for part in parts]
            return False if False in found else None if None in found else True
        case Union(parts):
            found = [_matches_nothing(part, ahead) for part in parts]
            return True if True in found else None if None in found else False
        case Repeat(body, least):
            return True if least == 0 else _matches_nothing(body, ahead)
        case Look(body, direction, negative):
            inner = _matches_nothing(body, ahead) if direction == ahead else None
            return None if inner is None else inner != negative
        case _:
            return None
