"""Work, counted: whether something is refused as too large depends on it alone, not on the machine or its load.

Each loop that can run long says how much it does, in steps of very roughly a microsecond. Who starts work limits it;
limits nest, and what is spent inside counts outside too.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class OutOfStepsError(Exception):
    """The innermost limit is passed."""


class Budget:
    """A limit that is in force.

    Attributes:
        left: steps; negative once it is passed.
        paid: results that were paid for under it or a limit around it, by their identity.
    """

    __slots__ = ("left", "paid")

    def __init__(self, steps: float, paid: dict[int, object] | None = None) -> None:
        self.left = steps
        self.paid = {} if paid is None else paid


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


def spend(steps: float) -> None:
    """Count steps; without a limit they are free.

    Raises:
        OutOfStepsError: the limit is passed.
    """
    budget = _current.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            raise OutOfStepsError


def left() -> float:
    """Return the steps that the innermost limit leaves, for a compiled loop to count them itself."""
    budget = _current.get()
    return math.inf if budget is None else float(budget.left)


def pay(result: object, steps: float) -> None:
    """Count the steps that a kept result once took, the first time that it is used under a limit.

    Raises:
        OutOfStepsError: the limit is passed.
    """
    budget = _current.get()
    if budget is not None and id(result) not in budget.paid:
        budget.paid[id(result)] = result  # held, so that no other takes its identity
        spend(steps)


@contextmanager
def limited(steps: float) -> Iterator[Budget]:
    """Let what is done inside take so many steps, or those that a limit around it leaves, if they are fewer."""
    around = _current.get()
    given = steps if around is None else min(steps, max(around.left, 0))
    with _in_force(Budget(given, around.paid if around else None)) as budget:
        try:
            yield budget
        finally:
            if around is not None:
                around.left -= given - budget.left


@contextmanager
def apart(steps: float) -> Iterator[Budget]:
    """Let what is done inside take so many steps whatever the limit around it, which does not count them."""
    with _in_force(Budget(steps)) as budget:
        yield budget


@contextmanager
def _in_force(budget: Budget) -> Iterator[Budget]:
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)
