"""Pattern -> minimal deterministic automaton over UTF-8 bytes, whose moves know their leaves in the source."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.determinise import Determiniser, OverBudgetError
from engine.errors import Place, SizeError
from engine.partition import breadth_first
from engine.pattern import Complement, Intersection, Repeat, looks
from engine.table import united
from engine.utf8 import TooManyBytesError, Writer

if TYPE_CHECKING:
    from engine.pattern import Origin, Pattern

STATE_BUDGET = 100_000
"""States of the deterministic automaton before minimisation."""
LOOK_AROUND_BUDGET = 25_000
"""The same with look-around, whose states are conditions and take some ten times as long; a few seconds either way."""
BYTE_BUDGET = 200_000
"""States once the characters of many scripts are written in bytes; `\\w` takes some 300 wherever it stands."""
COMPILE_SECONDS = 4.0
"""Processor time that the states of one constraint may take."""


@dataclass(frozen=True, eq=False)
class ByteAutomaton:
    """A minimal deterministic automaton over bytes; every state is reachable and, unless it is empty, can accept.

    Attributes:
        byte_class: uint8 `[256]`; bytes of one class move every state alike.
        move: int32 `[states byte_classes]`, -1 where dead.
        start: the start state, always 0; states are numbered breadth first from it.
        accepting: bool `[states]`.
        edge_origins: int32 `[states byte_classes]`, index into `origin_sets`; -1 where dead.
        origin_sets: sorted tuples of leaf ids: the leaves of the pattern that such a move may come from.
        leaves: span of each leaf in the source.
    """

    byte_class: np.ndarray
    move: np.ndarray
    start: int
    accepting: np.ndarray
    edge_origins: np.ndarray
    origin_sets: tuple[tuple[int, ...], ...]
    leaves: tuple[Origin, ...]

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.accepting.size)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is accepted."""
        return not bool(self.accepting.any())

    @cached_property
    def _rows(self) -> list[list[int]]:
        return self.move[:, self.byte_class].tolist()  # type: ignore[no-any-return]

    def accepts(self, data: bytes) -> bool:
        """Whether the whole byte string is in the language."""
        state = self.start
        for byte in data:
            state = self._rows[state][byte]
            if state < 0:
                return False
        return bool(self.accepting[state])

    def shortest(self) -> bytes | None:
        """Return a shortest accepted byte string, the first in byte order among its length; None if there is none."""
        came: dict[int, tuple[int, int]] = {self.start: (-1, -1)}
        queue = deque([self.start])
        while queue:
            state = queue.popleft()
            if self.accepting[state]:
                written = []
                while came[state][0] >= 0:
                    state, byte = came[state]
                    written.append(byte)
                return bytes(reversed(written))
            for byte, following in enumerate(self._rows[state]):
                if following >= 0 and following not in came:
                    came[following] = (state, byte)
                    queue.append(following)
        return None


def compile(
    pattern: Pattern, source: str = "", budget: int | None = None, seconds: float = COMPILE_SECONDS
) -> ByteAutomaton:
    """Compile a pattern.

    Args:
        pattern: whose language is meant, on whole strings.
        source: the text that its origins point into, for error messages.
        budget: of states before minimisation; by default `STATE_BUDGET`, or with look-around `LOOK_AROUND_BUDGET`.
        seconds: of processor time.

    Raises:
        SizeError: the budget is passed; names the construct that takes most of it.
    """
    if budget is None:
        budget = LOOK_AROUND_BUDGET if looks(pattern) else STATE_BUDGET
    determiniser = Determiniser(pattern, budget, seconds)
    try:
        table = determiniser.table()
        leaves = tuple(determiniser.leaf_ids)
        writer = Writer(table.states, determiniser.alphabet, BYTE_BUDGET)
        for state in range(table.states):
            writer.add(state, table.moves(state))
    except OverBudgetError as error:
        raise _too_large(str(error), error.blame, source) from None
    except TooManyBytesError as error:
        raise _too_many_bytes(BYTE_BUDGET, [leaves[leaf] for leaf in error.leaves], source) from None
    return _byte_automaton(table.accepting, writer, leaves)


def _byte_automaton(accepting: np.ndarray, writer: Writer, leaves: tuple[Origin, ...]) -> ByteAutomaton:
    """Gather the edges of a minimal automaton over bytes into tables over classes of bytes, numbered breadth first."""
    source, low, high, target, origin = np.asarray(writer.edges, np.int64).reshape(-1, 5).T
    cut = np.zeros(257, bool)
    cut[[0, 256]] = cut[low] = cut[high + 1] = True
    byte_class = np.cumsum(cut[:256]) - 1
    first, count = byte_class[low], byte_class[high] - byte_class[low] + 1
    classes = int(byte_class[-1]) + 1
    starts = np.repeat(np.cumsum(count) - count, count)
    symbol = np.repeat(first, count) + np.arange(starts.size) - starts
    key, at, origin, sets = united(
        np.repeat(source, count) * classes + symbol, np.repeat(origin, count), writer.origin_sets
    )
    move = np.full((writer.states, classes), -1, np.int32)
    move.flat[key] = np.repeat(target, count)[at]
    origins = np.full_like(move, -1)
    origins.flat[key] = origin
    number = breadth_first(move)
    order = np.argsort(number)
    move = np.where(move >= 0, number[move], -1).astype(np.int32)[order]
    origins = origins[order]
    columns, column_of = _equal_columns(np.concatenate([move, origins]))
    return ByteAutomaton(
        byte_class=column_of[byte_class].astype(np.uint8),
        move=np.ascontiguousarray(move[:, columns]),
        start=0,
        accepting=np.append(accepting, np.zeros(writer.states - accepting.size, bool))[order],
        edge_origins=np.ascontiguousarray(origins[:, columns]),
        origin_sets=tuple(tuple(sorted(leaves)) for leaves in sets),
        leaves=leaves,
    )


def _too_large(problem: str, blame: Pattern | None, source: str) -> SizeError:
    """Name the construct that takes most."""
    problem = f"The automaton of this constraint {problem}."
    match blame:
        case Repeat(_, least, most, origin) if (most or least) > 1:
            copies = least if most is None else most
            named = f"This repetition takes most of it, with {copies:,} copies of what it repeats."
            remedy = "Lower its bound, or use one without an upper limit ('*' or '+')."
        case Repeat(origin=origin):
            named, remedy = "What is repeated here takes most of it.", "Make it simpler, or split the constraint."
        case Intersection(origin=origin):
            named, remedy = "What must hold together here takes most of it.", "Ask for fewer things at once."
        case Complement(origin=origin):
            named, remedy = "What is excluded here takes most of it.", "Exclude less, or say what is allowed instead."
        case _:
            return SizeError(problem, "Split it, or remove alternatives.")
    return SizeError(f"{problem} {named}", remedy, Place(source, origin.start, origin.stop))


def _too_many_bytes(budget: int, origins: list[Origin], source: str) -> SizeError:
    """Name the characters of many scripts that take the states."""
    problem = f"The automaton of this constraint passes {budget:,} states once its characters are written in bytes."
    origin = min(origins, key=lambda origin: origin.start, default=None)
    place = Place(source, origin.start, origin.stop) if origin else None
    return SizeError(
        problem, "Where \\w or \\d need only ASCII, begin the regex with (?a), which takes far fewer states.", place
    )


def _equal_columns(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one index of each distinct column, and for every column the number of its like; in order of appearance."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    number = np.zeros(table.shape[1], np.int64)
    for c, column in enumerate(np.ascontiguousarray(table.T)):
        number[c] = seen.setdefault(column.tobytes(), len(first))
        if number[c] == len(first):
            first.append(c)
    return np.asarray(first), number
