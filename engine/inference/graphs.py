"""The dense tree's sweep as a CUDA graph: a hundred launches become one, where that is measured to be faster.

A graph reads and writes the same memory at every replay, so weights are copied in, and levels are copied out for who
asked. Widths are rounded up, so that few shapes exist. Nothing here has been measured on a GPU; all but `_captured` is
tested without one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch

from engine.inference import matrices
from engine.inference.matrices import Levels

WIDTHS = 32
"""Widths are multiples of this."""
KEPT = 4
"""Shapes whose graphs are kept, those used last."""
LARGEST = 2**26
"""Bytes of leaves up to which a sweep is captured: a graph keeps some four times as many, and larger ones take long."""
WARM_UPS = 3
"""Sweeps in front of a capture, in which libraries take the handles and the room that they can't take inside one."""
REPEATS = 5
"""Sweeps of each kind that are timed, of which the least counts."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True, eq=False)
class Graph:
    """A sweep that can be run again.

    Attributes:
        levels: the memory that it reads and writes.
        run: fills the levels above the first.
    """

    levels: Levels
    run: Callable[[], None]


def rounded(width: int) -> int:
    """Return the width of the matrices that hold so many live states."""
    return -(-width // WIDTHS) * WIDTHS


def filled(leaves: torch.Tensor) -> Levels:
    """Do what `matrices.filled` does, by a graph of this shape where there is one that is faster."""
    if leaves.nbytes <= LARGEST:
        with _one_at_a_time:
            graph = _graph(leaves.device, *leaves.shape[:2])
            if graph:
                return _replayed(graph, leaves)
    return matrices.filled(leaves)


def _replayed(graph: Graph, leaves: torch.Tensor) -> Levels:
    """Copy in, run, copy out: the next replay overwrites nothing that anyone holds."""
    graph.levels.spans[0].copy_(leaves)
    graph.run()
    return Levels((leaves, *(level.clone() for level in graph.levels.spans[1:])), graph.levels.lost.clone())


@lru_cache(maxsize=KEPT)
def _graph(device: torch.device, padded: int, width: int) -> Graph | None:
    """Capture the sweep of a shape and time it; None where that fails or doesn't pay, which is remembered too.

    Both capturing and timing wait for the device, so a graph that makes room for another isn't running any more.
    """
    try:
        leaves = torch.zeros((padded, width, width), dtype=torch.float64, device=device)
        levels = matrices.room(leaves.clone())
        graph = Graph(levels, _captured(lambda: matrices.fill(levels), device))
        faster = _least_s(lambda: _replayed(graph, leaves)) < _least_s(lambda: matrices.filled(leaves))
    except (torch.OutOfMemoryError, torch.AcceleratorError):  # what a capture raises: no room, or a refused operation
        return None
    return graph if faster else None


def _least_s(sweep: Callable[[], Levels]) -> float:
    """Time a sweep until its answer is known, in seconds."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        bool(sweep().lost)
        times.append(time.perf_counter() - begin)
    return min(times)


def _captured(run: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Record what `run` launches as a CUDA graph, and return its replay.

    Warm-up and capture share a stream beside the current one, as `torch.cuda.graph` asks for. Other threads go on: a
    model may run in one of them.

    Raises:
        torch.OutOfMemoryError: there is no room.
        torch.AcceleratorError: the driver refused.
    """
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)
    current = torch.cuda.current_stream(device)
    stream.wait_stream(current)
    try:
        # torch leaves the stream of a capture that fails current; the outer context doesn't.
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                run()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                run()
    finally:
        current.wait_stream(stream)
    return graph.replay
