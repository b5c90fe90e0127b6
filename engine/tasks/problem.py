"""What a task is: problems, each with its constraint, and a judge of answers."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.training import corpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.training.corpus import Example

SEED = 7
"""Of the stream that problems are taken from."""


@dataclass(frozen=True)
class Problem:
    """A request, the constraint on its answer, and a right answer.

    Attributes:
        prompt: what the model is asked.
        kind: of the constraint, as `engine.constraints.read` takes it.
        source: of the constraint.
        answer: a right answer, in the constraint's language.
        others: further right answers, where a list of them decides.
        reading: options that the constraint is read with.
    """

    prompt: str
    kind: str
    source: str | tuple[str, ...]
    answer: str
    others: tuple[str, ...] = ()
    reading: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Family:
    """Problems of one sort, and who judges their answers.

    Attributes:
        name: what `--task` takes.
        title: a line for a list.
        length: positions of the canvas that suits the embedded model.
        problems: gives the first `count` problems of a split, `train` or `held_out`.
        is_right: tells whether a text answers a problem, however it is spelled.
    """

    name: str
    title: str
    length: int
    problems: Callable[[int, str], tuple[Problem, ...]]
    is_right: Callable[[Problem, str], bool]


def from_corpus(name: str, write: Callable[[Example], Problem | None]) -> Callable[[int, str], tuple[Problem, ...]]:
    """Make the problems of a family of the corpus, those whose prompt doesn't name a spelling.

    Args:
        name: of the family in `engine.training.corpus`.
        write: makes a problem of an example; None passes over it.
    """

    def problems(count: int, split: str) -> tuple[Problem, ...]:
        found: list[Problem] = []
        for example in corpus.stream(SEED, split, name):
            if len(found) == count:
                break
            problem = None if example.hinted else write(example)
            if problem is not None:
                found.append(problem)
        return tuple(found)

    return problems


def read_expression(text: str) -> ast.expr:
    """Read a Python expression, without a warning where it is an odd one: models write what they like.

    Raises:
        SyntaxError, ValueError: it is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(text, mode="eval").body
