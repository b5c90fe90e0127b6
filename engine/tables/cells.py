"""The cells of the tables: which arm decodes which problems, how hot and in how many steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import stepping
from engine.errors import ConfigError
from engine.tasks import families

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ARMS = {
    "independent": ("independent", "mf"),
    "local": ("local", "mf"),
    "reject": ("reject", "mf"),
    "lookahead": ("lookahead", "mf"),
    "map": ("map", "mf"),
    "Mf": ("chain", "mf"),
    "Mar": ("chain", "mar"),
}
"""Each arm's sampler and confidence. The chain draws from the same law as the midpoint tree, in less time."""
TEMPERATURES = (0.0, 1.0)
SHARES = (1, 2, 4, 8, 16)
"""Steps are the canvas' length divided by these, rounded down, from one token a step on."""
SAME_WHEN_COLD = {"map": "Mf", "reject": "independent"}
"""Arms that are another one at temperature 0: exact samplers take the best sequence, and a draw has no second try."""


@dataclass(frozen=True)
class Cell:
    """One number of a table, with what it takes to get it.

    Attributes:
        task: name of a family of problems.
        arm: one of `ARMS`.
        temperature: of the draws.
        steps: denoising steps.
    """

    task: str
    arm: str
    temperature: float
    steps: int

    @property
    def constrained(self) -> bool:
        """Whether the arm promises that every text satisfies the constraint."""
        return ARMS[self.arm][0] in stepping.EXACT

    @property
    def key(self) -> str:
        """The cell in a word."""
        return f"{self.task} {self.arm} T={self.temperature:g} steps={self.steps}"


def arms() -> tuple[str, ...]:
    """Return the arms whose sampler the engine has."""
    known = (*stepping.EXACT, *stepping.BASELINES)
    return tuple(arm for arm, (sampler, _) in ARMS.items() if sampler in known)


def cells(
    tasks: Sequence[str],
    shares: Sequence[int] = SHARES,
    temperatures: Sequence[float] = TEMPERATURES,
    chosen: Sequence[str] = (),
) -> Iterator[Cell]:
    """Yield the cells of the tables of some tasks, all arms of a row after one another.

    An arm that is another one at temperature 0 has no cell there.

    Raises:
        ConfigError: a task or an arm doesn't exist.
    """
    for arm in chosen:
        if arm not in arms():
            raise ConfigError(f"There is no arm {arm!r}.", f"Choose among {', '.join(arms())}.")
    for name in tasks:
        length = families.named(name).length
        for temperature in temperatures:
            for share in shares:
                for arm in chosen or arms():
                    if temperature > 0 or arm not in SAME_WHEN_COLD:
                        yield Cell(name, arm, temperature, max(length // share, 1))
