"""Pattern -> automaton over UTF-8 bytes, whose moves know their leaves in the source.

Minimal and deterministic where that stays under the state budget; else nondeterministic, with a finding that says why.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, pairwise
from typing import TYPE_CHECKING

import numpy as np

from engine import effort, utf8
from engine.determinise import Determiniser, OverBudgetError
from engine.errors import Finding, Place, SizeError
from engine.partition import alike, breadth_first, ordered, prepare
from engine.pattern import Complement, Graph, Intersection, Repeat
from engine.table import united

if TYPE_CHECKING:
    from engine.pattern import Origin, Pattern
    from engine.table import Table
    from engine.utf8 import Written

STATE_BUDGET = 100_000
"""States of the deterministic automaton before minimisation."""
LOOK_AROUND_BUDGET = 25_000
"""The same with look-around, whose states are conditions and take some ten times as long; a few seconds either way."""
BYTE_BUDGET = 200_000
"""States once the characters of many scripts are written in bytes; `\\w` takes some 300 wherever it stands."""
COMPILE_STEPS = 3_500_000
"""Steps that one constraint may take, read and compiled, all attempts and bytes together; see `engine.effort`."""
LEAST_STEPS = 2_000_000
"""Of those, what its automaton may take however much the reading took."""
DETERMINISTIC_SHARE = 0.6
"""Of those, for the deterministic attempt where a nondeterministic one may follow."""
REDUCING_SHARE = 0.1
"""Of those, for making a nondeterministic automaton smaller."""


@dataclass(frozen=True, eq=False)
class ByteAutomaton:
    """An automaton over bytes; every state is reachable and, unless it is empty, can accept.

    Attributes:
        byte_class: uint8 `[256]`; bytes of one class move every state alike.
        source: int32 `[moves]`; moves are sorted by source, symbol and target, and none stands twice.
        symbol: int32 `[moves]`, the byte class that is read.
        target: int32 `[moves]`.
        origin: int32 `[moves]`, index into `origin_sets`.
        accepting: bool `[states]`.
        origin_sets: sorted tuples of leaf ids: the leaves of the pattern that such a move may come from.
        leaves: span of each leaf in the source.
        findings: what the author should know; that the automaton is not deterministic, and why.
        start: the start state; states are numbered breadth first from it.
    """

    byte_class: np.ndarray
    source: np.ndarray
    symbol: np.ndarray
    target: np.ndarray
    origin: np.ndarray
    accepting: np.ndarray
    origin_sets: tuple[tuple[int, ...], ...]
    leaves: tuple[Origin, ...]
    findings: tuple[Finding, ...] = ()
    start: int = 0

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.accepting.size)

    @property
    def byte_classes(self) -> int:
        """Number of byte classes."""
        return int(self.byte_class.max()) + 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing is accepted."""
        return not bool(self.accepting.any())

    @cached_property
    def deterministic(self) -> bool:
        """Whether no state has two moves by one byte."""
        return bool(np.diff(self.ptr).max() <= 1)

    @cached_property
    def rows(self) -> np.ndarray:
        """int64 `[states + 1]`: the moves of state `q` are `rows[q]:rows[q + 1]`."""
        return np.append(0, np.cumsum(np.bincount(self.source, minlength=self.states)))

    @cached_property
    def state_leaves(self) -> tuple[np.ndarray, list[set[int]]]:
        """`(number, sets)`: what the moves of state `q` may come from are the leaves `sets[number[q]]`."""
        number, states = alike(self.origin.astype(np.int64), self.rows)
        origins = [set(self.origin[self.rows[q] : self.rows[q + 1]].tolist()) for q in states.tolist()]
        return number, [{leaf for origin in own for leaf in self.origin_sets[origin]} for own in origins]

    @cached_property
    def ptr(self) -> np.ndarray:
        """int64 `[states · byte_classes + 1]`: the moves of state `q` by class `c` begin at `q · byte_classes + c`."""
        cells = self.source.astype(np.int64) * self.byte_classes + self.symbol
        return np.append(0, np.cumsum(np.bincount(cells, minlength=self.states * self.byte_classes)))

    @cached_property
    def move(self) -> np.ndarray:
        """int32 `[states byte_classes]` of a deterministic automaton: where each class leads, -1 where dead."""
        table = np.full((self.states, self.byte_classes), -1, np.int32)
        table[self.source, self.symbol] = self.target
        return table

    @cached_property
    def _lists(self) -> tuple[list[int], list[int], list[int]]:
        return self.byte_class.tolist(), self.ptr.tolist(), self.target.tolist()

    def following(self, state: int, byte: int) -> list[int]:
        """Return the states that a byte leads to, ascending."""
        byte_class, ptr, target = self._lists
        cell = state * self.byte_classes + byte_class[byte]
        return target[ptr[cell] : ptr[cell + 1]]

    def accepts(self, data: bytes) -> bool:
        """Whether the whole byte string is in the language."""
        states = {self.start}
        for byte in data:
            states = {to for state in states for to in self.following(state, byte)}
        return bool(self.accepting[list(states)].any())

    def shortest(self) -> bytes | None:
        """Return a shortest accepted byte string, the first in byte order among its length; None if there is none."""
        # Classes are numbered by their first byte, so a state's moves are in byte order.
        first = np.unique(self.byte_class, return_index=True)[1].tolist()
        ptr = self.rows.tolist()
        symbol, target = self.symbol.tolist(), self.target.tolist()
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
            for m in range(ptr[state], ptr[state + 1]):
                if target[m] not in came:
                    came[target[m]] = (state, first[symbol[m]])
                    queue.append(target[m])
        return None


def compile(
    pattern: Pattern, source: str = "", budget: int | None = None, steps: float = COMPILE_STEPS
) -> ByteAutomaton:
    """Compile a pattern.

    Args:
        pattern: whose language is meant, on whole strings.
        source: the text that its origins point into, for messages.
        budget: of states before minimisation; by default `STATE_BUDGET`, or with look-around `LOOK_AROUND_BUDGET`.
        steps: of work, for all of it together; see `engine.effort`.

    Returns:
        The minimal deterministic automaton. Where that passes the budget and there is no look-around, intersection or
        complement, a nondeterministic one, with a finding that names the construct to blame.

    Raises:
        SizeError: a budget is passed; names the construct that takes most of it.
    """
    prepare()
    determiniser = Determiniser(pattern, STATE_BUDGET if budget is None else budget)
    if budget is None and determiniser.looking:
        determiniser.budget = LOOK_AROUND_BUDGET
    try:
        with effort.limited(steps):
            table, cost = _table(determiniser, steps)
            written = utf8.written(table, determiniser.alphabet, BYTE_BUDGET, together=cost is None)
    except OverBudgetError as error:
        raise _too_large(str(error), error.blame, source) from None
    except utf8.TooManyBytesError as error:
        leaves = tuple(determiniser.leaf_ids)
        raise _too_many_bytes(str(error), [leaves[leaf] for leaf in error.leaves], source) from None
    found = _byte_automaton(table.accepting, written, tuple(determiniser.leaf_ids))
    if cost is None or found.deterministic:
        return found
    return replace(found, findings=(_kept(cost, table, source),))


def _table(determiniser: Determiniser, steps: float) -> tuple[Table, OverBudgetError | None]:
    """Return the deterministic automaton, or a nondeterministic one and why it is that."""
    if determiniser.looking or isinstance(determiniser.pattern, (Intersection, Complement)):
        return determiniser.table(), None
    try:
        with effort.limited(DETERMINISTIC_SHARE * steps):
            return determiniser.table(), None
    except OverBudgetError as error:
        return determiniser.follow(REDUCING_SHARE * steps), error


def _byte_automaton(accepting: np.ndarray, written: Written, leaves: tuple[Origin, ...]) -> ByteAutomaton:
    """Gather edges over bytes into moves over classes of bytes, states numbered breadth first."""
    source, low, high, target, origin = written.edges
    cut = np.zeros(257, bool)
    cut[[0, 256]] = cut[low] = cut[high + 1] = True
    byte_class = np.cumsum(cut[:256]) - 1
    first, count = byte_class[low], byte_class[high] - byte_class[low] + 1
    classes, states = int(byte_class[-1]) + 1, written.states
    starts = np.repeat(np.cumsum(count) - count, count)
    symbol = np.repeat(first, count) + np.arange(starts.size) - starts
    key, _, origin, sets = united(
        (np.repeat(source, count) * classes + symbol) * states + np.repeat(target, count),
        np.repeat(origin, count),
        written.origin_sets,
    )
    source, symbol, target = key // (classes * states), key // states % classes, key % states
    number = breadth_first(np.searchsorted(source, np.arange(states + 1)), target)
    final = np.zeros(states, bool)
    final[number[: accepting.size]] = accepting
    moves = np.stack([number[source], symbol, number[target], origin])
    moves, class_of = _joined_classes(moves, classes)
    order = np.arange(moves.shape[1])
    for column, count in ((moves[2], states), (moves[1], classes), (moves[0], states)):
        order = order[ordered(column[order], count)[0]]
    # In one layout whatever the number of moves: compiled loops are compiled anew for another.
    source, symbol, target, origin = moves[:, order].astype(np.int32, order="C")
    used = np.bincount(origin, minlength=len(sets)) > 0
    return ByteAutomaton(
        byte_class=class_of[byte_class].astype(np.uint8),
        source=source,
        symbol=symbol,
        target=target,
        origin=(np.cumsum(used, dtype=np.int32) - 1)[origin],
        accepting=final,
        origin_sets=tuple(tuple(sorted(leaves)) for leaves in compress(sets, used)),
        leaves=leaves,
    )


def _joined_classes(moves: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Join byte classes with the same moves and origins; return the moves and the new number of each old class."""
    source, symbol, target, origin = moves
    # The moves of each class are in the order of `moves`, one for all classes.
    order, ptr = ordered(symbol, classes)
    columns = np.stack([source, target, origin])[:, order]
    seen: dict[bytes, int] = {}
    number = np.asarray([seen.setdefault(columns[:, a:b].tobytes(), len(seen)) for a, b in pairwise(ptr)])
    # The first class of each group stands for all of it.
    stands = np.zeros(classes, bool)
    stands[np.unique(number, return_index=True)[1]] = True
    kept = moves[:, stands[symbol]]
    kept[1] = number[kept[1]]
    return kept, number


def _kept(cost: OverBudgetError, table: Table, source: str) -> Finding:
    """Say that the automaton is not deterministic, what determinising would cost, and because of what."""
    named, place = _blamed(cost.blame, source)
    return Finding(
        "not-deterministic",
        "info",
        place,
        f"A deterministic automaton of this constraint {cost}; a nondeterministic one of {table.states:,} states is "
        f"kept, whose draws are weighted by their number of paths unless corrected. {named}".strip(),
        ("Let what this part repeats begin and end with characters that its surroundings can't have.",),
        evidence={"states": table.states, "moves": int(table.symbol.size)},
    )


def _too_large(problem: str, blame: Pattern | None, source: str) -> SizeError:
    """Name the construct that takes most."""
    named, place = _blamed(blame, source)
    remedy = "Split it, or remove alternatives."
    match blame:
        case Repeat(_, least, most) if (most or least) > 1:
            remedy = "Lower its bound, or use one without an upper limit ('*' or '+')."
        case Repeat():
            remedy = "Make it simpler, or split the constraint."
        case Intersection():
            remedy = "Ask for fewer things at once."
        case Complement():
            remedy = "Exclude less, or say what is allowed instead."
        case Graph():
            remedy = "Ask for less of it."
    return SizeError(f"The automaton of this constraint {problem}. {named}".strip(), remedy, place)


def _blamed(blame: Pattern | None, source: str) -> tuple[str, Place | None]:
    """Return a sentence that names a construct, and where it stands."""
    match blame:
        case Repeat(_, least, most) if (most or least) > 1:
            copies = least if most is None else most
            named = f"This repetition takes most of it, with {copies:,} copies of what it repeats."
        case Repeat():
            named = "What is repeated here takes most of it."
        case Intersection():
            named = "What must hold together here takes most of it."
        case Complement():
            named = "What is excluded here takes most of it."
        case Graph():
            named = "What is counted or remembered here takes most of it."
        case _:
            return "", None
    return named, Place(source, blame.origin.start, blame.origin.stop, blame.origin.pointer)


def _too_many_bytes(cost: str, origins: list[Origin], source: str) -> SizeError:
    """Name the characters of many scripts that take the states."""
    problem = f"The automaton of this constraint {cost} once its characters are written in bytes."
    origin = min(origins, key=lambda origin: origin.start, default=None)
    place = Place(source, origin.start, origin.stop) if origin else None
    return SizeError(
        problem, "Where \\w or \\d need only ASCII, begin the regex with (?a), which takes far fewer states.", place
    )
