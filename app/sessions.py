"""Runs that the server holds: bounded by number and by bytes, freed when their page is closed."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from app import examples
from app.lessons import recipes
from engine.errors import InputError
from engine.trace import Trace

if TYPE_CHECKING:
    from engine.trace import Header, StepRecord


@dataclass(eq=False)
class Run:
    """A run as it grows.

    Attributes:
        run_id: unguessable name by which a browser asks for it; `example:…` for those that all may see.
        header: what holds for all steps.
        owner: session that made it; None for an example.
        steps: the finished steps.
        status: `running`, `finished`, `stopped` by the user, `paused` at a breakpoint, or `failed`.
        size: bytes that the records hold.
        parent: id of the run that it is a fork of.
        outcomes: of its configuration with the seeds 0, 1, …, as far as they were asked for.
    """

    run_id: str
    header: Header
    owner: str | None
    steps: list[StepRecord] = field(default_factory=list)
    status: str = "running"
    size: int = 0
    parent: str | None = None
    outcomes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def trace(self) -> Trace:
        """The run up to its last finished step."""
        return Trace(self.header, tuple(self.steps))


class Runs:
    """A bounded store, safe between threads; what was used longest ago goes first, a running run never."""

    def __init__(self, max_runs: int = 256, max_bytes: int = 1 << 30) -> None:
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, header: Header, owner: str | None, run_id: str | None = None, parent: str | None = None) -> Run:
        """Add an empty run; one of the same id is replaced."""
        run = Run(run_id or secrets.token_urlsafe(12), header, owner, parent=parent)
        with self._lock:
            self._runs[run.run_id] = run
            self._runs.move_to_end(run.run_id)
            self._shrink()
        return run

    def append(self, run: Run, step: StepRecord) -> None:
        """Add a finished step to a run."""
        with self._lock:
            run.steps.append(step)
            run.size += sum(np.asarray(value).nbytes for value in vars(step).values())
            self._shrink()

    def finish(self, run: Run, status: str) -> None:
        """Say that no step will follow, and why."""
        with self._lock:
            run.status = status
            self._shrink()

    def add(self, trace: Trace, owner: str | None, run_id: str | None = None) -> Run:
        """Add a whole trace; its status is `stopped` where it holds fewer steps than were asked for."""
        run = self.begin(trace.header, owner, run_id)
        for step in trace.steps:
            self.append(run, step)
        self.finish(run, "finished" if trace.finished else "stopped")
        return run

    def get(self, run_id: object) -> Run | None:
        """Return a run and mark it as used; None where there is none, or no longer."""
        if not isinstance(run_id, str):
            return None
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None:
                self._runs.move_to_end(run_id)
            return run

    def free(self, owner: str | None) -> None:
        """Forget the runs of a session; those that still run forget themselves when they end."""
        if owner is None:
            return
        with self._lock:
            for run_id in [r.run_id for r in self._runs.values() if r.owner == owner]:
                del self._runs[run_id]

    @property
    def size(self) -> int:
        """Bytes that all runs hold together."""
        with self._lock:
            return sum(run.size for run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def _shrink(self) -> None:
        total = sum(run.size for run in self._runs.values())
        for run in [r for r in self._runs.values() if r.status != "running"]:
            if len(self._runs) <= self._max_runs and total <= self._max_bytes:
                return
            if run.run_id == next(reversed(self._runs)):
                return  # the one in use stays, however large
            del self._runs[run.run_id]
            total -= run.size


RUNS = Runs()
"""What this server holds."""
RECIPES = Runs(max_bytes=64 << 20)
"""Runs that their own id describes, apart, so that moving a lesson's control never pushes out what a user ran."""


def find(run_id: object) -> Run | None:
    """Return a run, from the store, from the gallery or made as its id says; None where there is none, or no longer."""
    return RUNS.get(run_id) or _example(run_id) or RECIPES.get(run_id) or _recipe(run_id)


def _example(run_id: object) -> Run | None:
    if not isinstance(run_id, str) or not run_id.startswith("example:"):
        return None
    recorded = examples.load(run_id)
    return None if recorded is None else RUNS.add(recorded, None, run_id)


def _recipe(run_id: object) -> Run | None:
    if not isinstance(run_id, str) or not run_id.startswith(recipes.PREFIX):
        return None
    try:
        return RECIPES.add(recipes.recorded(recipes.read(run_id)), None, run_id)
    except InputError:  # who made the link learned of it then; a damaged one names no run
        return None
