"""The tables' runner against one run at a time: `python -m benchmarks.tables [--quick] [--json]`.

Both sides decode and judge the same cells of the same problems by the same function, in CPU time on one thread. One
gets all cells of four problems at once, as the tables do, the other a single cell of a single problem at each call.
Each compiles every constraint once.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

if __name__ == "__main__":
    from benchmarks.timing import restart_without_openblas_overrides

    restart_without_openblas_overrides()

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.timing import cpu_ms, machine
from engine.tables import executor, runner
from engine.tables.cells import ARMS, Cell, cells
from engine.tables.runner import Run, Work, solve
from engine.tasks.families import FAMILIES

if TYPE_CHECKING:
    from engine.models import Denoiser

BAR = 5.0


@dataclass(frozen=True)
class Throughput:
    """CPU time of all cells of some problems of a family.

    Attributes:
        family: its name.
        runs: how many.
        steps: of all of them.
        together_ms: decoded side by side.
        alone_ms: decoded one at a time, by arm.
        different: runs whose text isn't the same on both sides, by the last bits of the model's answers.
    """

    family: str
    runs: int
    steps: int
    together_ms: float
    alone_ms: dict[str, float]
    different: int

    @property
    def ratio(self) -> float:
        """Throughput together over throughput alone."""
        return sum(self.alone_ms.values()) / self.together_ms


def measure(denoiser: Denoiser, family: str, problems: int) -> Throughput:
    """Time both sides once."""
    wanted, numbers = tuple(cells([family])), tuple(range(problems))
    together: dict[int, dict[Cell, Run]] = {}
    runner._compiled.cache_clear()
    together_ms = cpu_ms(lambda: together.update(solve(denoiser, Work(family, numbers, wanted))))
    alone_ms: Counter[str] = Counter()
    different = 0
    runner._compiled.cache_clear()
    for n in numbers:
        for cell in wanted:
            alone: dict[int, dict[Cell, Run]] = {}
            work = Work(family, (n,), (cell,))
            alone_ms[cell.arm] += cpu_ms(lambda work=work, alone=alone: alone.update(solve(denoiser, work)))  # type: ignore[misc]
            different += alone[n][cell] != together[n][cell]
    runs = problems * len(wanted)
    return Throughput(family, runs, problems * sum(c.steps for c in wanted), together_ms, dict(alone_ms), different)


def main(
    quick: Annotated[bool, typer.Option(help="One problem of each family.")] = False,
    family: Annotated[list[str] | None, typer.Option(help="Only these families.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare the throughput of the tables' runner with that of one run at a time."""
    denoiser = executor.load("embedded", "float32")
    problems = 1 if quick else executor.SIDE_BY_SIDE
    with executor.one_thread():
        solve(denoiser, Work("format", (0,), tuple(cells(["format"], (8,)))))  # loads the compiled loops
        found = [measure(denoiser, name, problems) for name in family or [f.name for f in FAMILIES]]
    ratio = sum(sum(row.alone_ms.values()) for row in found) / sum(row.together_ms for row in found)
    if as_json:
        rows = [{**asdict(row), "ratio": row.ratio} for row in found]
        print(json.dumps({"machine": machine(), "families": rows, "ratio": ratio, "holds": ratio >= BAR}))
        return
    table = Table(title=f"{machine()['cpu']}; {problems} problems of each family, ms of CPU time")
    for column in ("family", "runs", "steps", "differ", *ARMS, "alone", "together", "ratio"):
        table.add_column(column, justify="left" if column == "family" else "right")
    for row in found:
        arms = [f"{row.alone_ms.get(arm, 0):,.0f}" for arm in ARMS]
        sizes = (row.family, str(row.runs), f"{row.steps:,}", str(row.different))
        total = (f"{sum(row.alone_ms.values()):,.0f}", f"{row.together_ms:,.0f}", f"{row.ratio:.2f}")
        table.add_row(*sizes, *arms, *total)
    Console().print(table)
    Console().print(f"All families: {ratio:.2f} times the throughput; the bar is {BAR:g}, {_verdict(ratio)}.")


def _verdict(ratio: float) -> str:
    return "holds" if ratio >= BAR else "missed"


if __name__ == "__main__":
    typer.run(main)
