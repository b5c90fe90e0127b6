"""Timing that survives a busy machine: CPU time, medians, and the two sides taken in turns."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

OPENBLAS_OVERRIDES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


@dataclass(frozen=True)
class Ratio:
    """One comparison.

    Attributes:
        name: short and stable.
        what: what is timed, on both sides.
        ours_ms: median of ours.
        peer: what it is compared with.
        peer_ms: median of the peer.
        bar: the largest ratio `ours / peer` that is good enough.
        facts: sizes that the ratio is true for: length, states, vocabulary …
    """

    name: str
    what: str
    ours_ms: float
    peer: str
    peer_ms: float
    bar: float
    facts: dict[str, int]

    @property
    def ratio(self) -> float:
        """Ours over the peer's: small is good."""
        return self.ours_ms / self.peer_ms

    @property
    def holds(self) -> bool:
        """Whether the ratio is within its bar."""
        return self.ratio <= self.bar


def restart_without_openblas_overrides() -> None:
    """Start this process again without OpenBLAS settings that were made for another numpy.

    They choose an older kernel than the processor has, which would slow our side or a peer's. To be
    called before numpy is imported.
    """
    if any(name in os.environ for name in OPENBLAS_OVERRIDES):
        environment = {k: v for k, v in os.environ.items() if k not in OPENBLAS_OVERRIDES}
        os.execve(sys.executable, sys.orig_argv, environment)


def cpu_ms(function: Callable[[], object]) -> float:
    """Run once; milliseconds of CPU time of the whole process, all its threads together."""
    begin = time.process_time_ns()
    function()
    return (time.process_time_ns() - begin) / 1e6


def in_turns(ours: Callable[[], object], peer: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Time both sides in turns; the two medians in milliseconds.

    Each timed run follows an untimed one: neither side pays for the caches that the other emptied.
    """
    pairs = []
    for _ in range(repeats):
        ours()
        ours_ms = cpu_ms(ours)
        peer()
        pairs.append((ours_ms, cpu_ms(peer)))
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def machine() -> dict[str, Any]:
    """What a reader must know of the machine to read milliseconds."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return {
        "cpu": ", ".join(sorted(names)) or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def report(ratios: list[Ratio], command: str) -> None:
    """Print a table for people."""
    facts = machine()
    table = Table(title=f"{command}\n{facts['cpu']}, {facts['cores']} cores", show_lines=True)
    table.add_column("what is timed, and against what")
    for column in ("ours ms", "peer ms", "ratio", "bar"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for r in ratios:
        sizes = ", ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in r.facts.items())
        table.add_row(
            f"{r.what}\n[dim]{sizes}\nagainst {r.peer}[/dim]",
            f"{r.ours_ms:.3g}",
            f"{r.peer_ms:.4g}",
            f"{r.ratio:.3f}",
            f"{r.bar:g}",
            "holds" if r.holds else "missed",
        )
    Console().print(table)


def as_json(ratios: list[Ratio], command: str) -> dict[str, Any]:
    """The same for machines."""
    rows = [{**asdict(r), "ratio": r.ratio, "holds": r.holds} for r in ratios]
    return {"command": command, "machine": machine(), "ratios": rows}
