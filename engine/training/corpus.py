"""The corpus: an endless, seeded stream of requests, each answered in one of many spellings.

A model that knows one spelling of each answer never breaks a constraint, and a constraint then
decides nothing. So each request here is answered in a spelling drawn at random, and the prompt says
which one only in one case of five: the model learns a distribution over spellings, and the
constraint chooses among them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from engine.training import calls, formats, puzzles, queries
from engine.training.words import SPLITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HINTED = 0.2
"""Share of prompts that name the spelling."""


@dataclass(frozen=True)
class Example:
    """A request and every way to write its answer.

    Attributes:
        family: `call`, `format`, `sudoku`, `countdown`, `sql`, `symbolic` or `pick`.
        prompt: what is asked.
        spellings: each name of a spelling, and the answer in it.
        chosen: the spelling that this example is answered in.
    """

    family: str
    prompt: str
    spellings: dict[str, str]
    chosen: str

    @property
    def hinted(self) -> bool:
        """Whether the prompt names the spelling."""
        return self.prompt.endswith(f" As {self.chosen}.")

    @property
    def answer(self) -> str:
        """The answer in the chosen spelling."""
        return self.spellings[self.chosen]


def example(
    seed: int, index: int, split: str = "train", family: str | None = None, pick_share: float = 0.04
) -> Example:
    """Return example number `index` of a stream; a pure function of its arguments.

    Args:
        seed: names the stream.
        index: position in it, from 0.
        split: `train`, or `held_out`: its words, grids and numbers never occur in training answers.
        family: only this family; a mixture by default.
        pick_share: how much of the mixture is the copying exercise that training starts with.
    """
    random = Random((seed * len(SPLITS) + SPLITS.index(split)) << 40 | index)
    if family is None:
        if random.random() < pick_share:
            family = "pick"
        else:
            (family,) = random.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))
    prompt, spellings = _MAKERS[family](random, split)
    chosen = random.choice(tuple(spellings))
    if random.random() < HINTED:
        prompt += f" As {chosen}."
    return Example(family, prompt, spellings, chosen)


def stream(seed: int, split: str = "train", family: str | None = None, start: int = 0) -> Iterator[Example]:
    """Yield the examples of a stream from number `start` on, for ever."""
    return (example(seed, index, split, family) for index in itertools.count(start))


_MAKERS: dict[str, Callable[[Random, str], tuple[str, dict[str, str]]]] = {
    "call": calls.call,
    "format": formats.formatted,
    "sudoku": puzzles.sudoku,
    "countdown": puzzles.countdown,
    "sql": queries.query,
    "symbolic": puzzles.symbolic,
    "pick": calls.pick,
}
_WEIGHTS = {"call": 0.38, "format": 0.34, "sudoku": 0.08, "countdown": 0.05, "sql": 0.09, "symbolic": 0.06}
FAMILIES = tuple(_WEIGHTS)
