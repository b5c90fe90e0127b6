"""Sets of texts by their characters, before JSON's escapes: Boolean operations, membership, and the graph of a set."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from engine import effort
from engine.determinise import Determiniser, OverBudgetError
from engine.errors import SizeError
from engine.pattern import (
    ANY,
    Atomic,
    Chars,
    Complement,
    Concat,
    Graph,
    Intersection,
    Look,
    Origin,
    Pattern,
    Ranges,
    Repeat,
    Union,
    children,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.alphabet import Alphabet
    from engine.constraints.json_schema.document import Document
    from engine.table import Table

BUDGET = 20_000
"""States of the automaton of one set of texts."""
STEPS = 1_200_000
"""Of work that it may take."""


def literal(text: str, origin: Origin) -> Pattern:
    """Return the pattern of one text."""
    return Concat(tuple(Chars(((ord(c), ord(c)),), origin) for c in text))


def any_text(origin: Origin, least: int = 0, most: int | None = None) -> Pattern:
    """Return the pattern of every text of a length."""
    return Repeat(Chars(ANY, origin), least, most, origin)


def meet(parts: Sequence[Pattern], origin: Origin) -> Pattern:
    """Return the texts that are in all the parts."""
    return parts[0] if len(parts) == 1 else Intersection(tuple(parts), origin)


def compiled(pattern: Pattern) -> tuple[Table, Alphabet, tuple[Origin, ...]]:
    """Compile a set of texts to its automaton over characters; equal patterns are compiled once.

    Each reading pays for that, so that what is refused does not depend on what was read before.

    Returns:
        The automaton, the characters that its symbols stand for, and the origins that its leaves number.

    Raises:
        OverBudgetError: it takes too many states or too long.
    """
    found, steps = _compiled(pattern)
    effort.pay(found, steps)
    if isinstance(found, OverBudgetError):
        raise found
    return found


@lru_cache(maxsize=512)
def _compiled(pattern: Pattern) -> tuple[tuple[Table, Alphabet, tuple[Origin, ...]] | OverBudgetError, float]:
    """Return what came out, though it be an error, and the steps that it took."""
    determiniser = Determiniser(pattern, BUDGET)
    with effort.apart(STEPS) as budget:
        try:
            table = determiniser.table()
        except OverBudgetError as error:
            return error, STEPS - budget.left
    return (table, determiniser.alphabet, tuple(determiniser.leaf_ids)), STEPS - budget.left


def holds(pattern: Pattern, text: str) -> bool:
    """Whether a text is in the set."""
    table, alphabet, _ = compiled(pattern)
    state = 0
    for c in text:
        symbol = alphabet.symbol(ord(c))
        state = next((to for symbols, to, _ in table.moves(state) if symbol in symbols), -1)
        if state < 0:
            return False
    return table.accepts(state)


def is_empty(pattern: Pattern) -> bool:
    """Whether the set is known to be empty; one too large to be known is not."""
    try:
        return not compiled(pattern)[0].accepting.any()
    except OverBudgetError:
        return False


def graph(pattern: Pattern, spell: Callable[[Ranges, Origin], Pattern], origin: Origin) -> Graph:
    """Return the minimal automaton of a set of texts, each of its characters written as `spell` says."""
    table, alphabet, places = compiled(pattern)
    effort.spend(6 * table.symbol.size)
    arcs = []
    for state in range(table.states):
        for symbols, target, leaves in table.moves(state):
            ranges = _united(alphabet.ranges[symbol] for symbol in symbols)
            arcs += [(state, spell(ranges, places[leaf]), target) for leaf in sorted(leaves)]
    return Graph(tuple(arcs), frozenset(np.flatnonzero(table.accepting).tolist()), origin)


def _united(parts: Iterable[Ranges]) -> Ranges:
    """Join disjoint sets of characters into one."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(pair for ranges in parts for pair in ranges):
        if out and out[-1][1] == low - 1:
            out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return tuple(out)


def relocated(pattern: Pattern, place: Callable[[Origin], Origin]) -> Pattern:
    """Return the pattern with each origin replaced."""

    def moved(part: Pattern) -> Pattern:
        match part:
            case Chars(ranges, origin):
                return Chars(ranges, place(origin))
            case Concat(parts):
                return Concat(tuple(map(moved, parts)))
            case Union(parts):
                return Union(tuple(map(moved, parts)))
            case Repeat(body, origin=origin):
                return replace(part, body=moved(body), origin=place(origin))
            case Atomic(body):
                return Atomic(moved(body))
            case Look(body, origin=origin):
                return replace(part, body=moved(body), origin=place(origin))
            case Intersection(parts, origin):
                return Intersection(tuple(map(moved, parts)), place(origin))
            case Complement(body, origin):
                return Complement(moved(body), place(origin))
            case Graph(arcs, finals, origin):
                return Graph(tuple((a, moved(body), b) for a, body, b in arcs), finals, place(origin))

    return moved(pattern)


def size(pattern: Pattern) -> int:
    """Count the leaves of a pattern, those of a counted repetition once for each copy."""
    known: dict[int, int] = {}

    def counted(part: Pattern) -> int:
        found = known.get(id(part))
        if found is None:
            copies = max(part.most or part.least, 1) if isinstance(part, Repeat) else 1
            found = 1 if isinstance(part, Chars) else copies * sum(map(counted, children(part)))
            known[id(part)] = found
        return found

    found = counted(pattern)
    effort.spend(3 * len(known))
    return found


def listed(pattern: Pattern, limit: int) -> list[str] | None:
    """List the texts of a set; None where there are `limit` or more."""
    table, alphabet, _ = compiled(pattern)
    found: list[str] = []
    stack = [(0, "")]
    while stack:
        state, text = stack.pop()
        if len(text) > table.states or len(found) >= limit:
            return None
        if table.accepts(state):
            found.append(text)
        for symbols, target, _ in table.moves(state):
            for symbol in symbols:
                for low, high in alphabet.ranges[symbol]:
                    if high - low >= limit:
                        return None
                    stack += [(target, text + chr(code)) for code in range(low, high + 1)]
    return found if len(found) < limit else None


def too_large(error: OverBudgetError, document: Document, origin: Origin) -> SizeError:
    """Say which part of a schema takes too many states."""
    pointer = origin.pointer or ""
    return SizeError(
        f"The automaton of {pointer or 'the schema'} {error}.",
        "Ask for less there: lower its bounds, or drop one of the keywords that hold together.",
        document.place(pointer),
    )
