"""The sweep that a CUDA graph replays, with its memory used again and again: all of it but the graph itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from engine.inference import graphs, matrices, tree
from tests.test_tree import assert_same, cases


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Run what would be captured again in place of a graph's replay; the list of all that was captured."""
    made: list[Callable[[], None]] = []

    def captured(run: Callable[[], None], device: torch.device) -> Callable[[], None]:
        assert device == torch.device("cpu")
        made.append(run)
        return run

    monkeypatch.setattr(graphs, "_captured", captured)
    times = iter(range(10**6))
    monkeypatch.setattr(graphs, "_least_s", lambda _: next(times))  # the replay, timed first, is the faster one
    graphs._graph.cache_clear()
    yield made
    graphs._graph.cache_clear()


def leaves(seed: int, padded: int = 8, width: int = 5, peak: float = 3.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    weights = -peak * torch.rand((padded, width, width), generator=generator, dtype=torch.float64)
    return weights.masked_fill(torch.rand(weights.shape, generator=generator) < 0.4, -torch.inf)


def assert_levels(found: matrices.Levels, weights: torch.Tensor) -> None:
    expected = weights
    for level in found.spans:
        torch.testing.assert_close(level, expected, rtol=1e-12, atol=1e-9)
        expected = torch.logsumexp(expected[0::2, :, :, None] + expected[1::2, None], 2) if len(expected) > 1 else None
    assert expected is None


def test_levels_that_were_handed_out_outlive_the_next_replay(captures: list) -> None:
    found = [graphs.filled(leaves(seed)) for seed in range(4)]
    assert len(captures) == 1
    for seed, levels in enumerate(found):
        assert not levels.lost
        assert_levels(levels, leaves(seed))


def test_a_replay_says_for_itself_whether_it_lost_an_entry(captures: list) -> None:
    apart = torch.full((2, 2, 2), -torch.inf, dtype=torch.float64)
    apart[0, 0, 0] = apart[1, 0, 0] = apart[1, 1, 1] = 0.0
    apart[0, 0, 1] = -700.0
    alike = torch.zeros_like(apart)
    found = [graphs.filled(weights) for weights in (alike, apart, alike)]
    assert [bool(levels.lost) for levels in found] == [False, True, False]
    assert_levels(matrices.carefully_filled(apart), apart)
    assert len(captures) == 1


def test_a_graph_is_made_once_a_shape_and_a_few_shapes_are_kept(captures: list) -> None:
    for width in (*range(1, graphs.KEPT + 1), *range(1, graphs.KEPT + 1)):
        assert_levels(graphs.filled(leaves(width, width=width)), leaves(width, width=width))
    assert len(captures) == graphs.KEPT
    graphs.filled(leaves(0, width=9))
    assert graphs._graph.cache_info().currsize == graphs.KEPT


def test_what_is_large_is_not_captured(captures: list, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = leaves(0)
    monkeypatch.setattr(graphs, "LARGEST", weights.nbytes - 1)
    assert_levels(graphs.filled(weights), weights)
    assert not captures
    monkeypatch.setattr(graphs, "LARGEST", weights.nbytes)
    graphs.filled(weights)
    assert len(captures) == 1


def test_a_graph_that_is_not_faster_is_not_used(captures: list, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(10**6, 0, -1))
    monkeypatch.setattr(graphs, "_least_s", lambda _: next(times))
    monkeypatch.setattr(graphs, "_replayed", lambda *_: pytest.fail("replayed"))
    for seed in range(2):
        assert_levels(graphs.filled(leaves(seed)), leaves(seed))
    assert len(captures) == 1


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("no room"), torch.AcceleratorError("not permitted")])
def test_a_shape_whose_capture_fails_is_swept_launch_by_launch_and_not_tried_again(
    error: RuntimeError, captures: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def captured(run: Callable[[], None], device: torch.device) -> Callable[[], None]:
        tried.append(run)
        raise error

    monkeypatch.setattr(graphs, "_captured", captured)
    for seed in range(3):
        assert_levels(graphs.filled(leaves(seed)), leaves(seed))
    assert len(tried) == 1
    graphs.filled(leaves(0, width=7))
    assert len(tried) == 2


def test_any_other_fault_of_a_capture_is_a_bug_and_surfaces(captures: list, monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(run: Callable[[], None], device: torch.device) -> Callable[[], None]:
        raise RuntimeError("expected a tensor of another size")

    monkeypatch.setattr(graphs, "_captured", captured)
    with pytest.raises(RuntimeError, match="another size"):
        graphs.filled(leaves(0))


class Noted:
    """Stands for a stream, a graph or a context of `torch.cuda`, and notes what is done with it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def wait_stream(self, other: Noted) -> None:
        self.log.append(f"{self.name} waits for {other.name}")

    def replay(self) -> None:
        self.log.append("replay")

    def __enter__(self) -> None:
        self.log.append(f"enter {self.name}")

    def __exit__(self, *_: object) -> None:
        self.log.append(f"leave {self.name}")


@pytest.mark.parametrize("fails", [False, True])
def test_warm_up_and_capture_share_a_stream_that_both_sides_wait_for(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    side, current, made = Noted("side", log), Noted("current", log), Noted("graph", log)

    def capture(graph: Noted, stream: Noted, capture_error_mode: str) -> Noted:
        assert (graph, stream, capture_error_mode) == (made, side, "thread_local")
        return Noted("capture", log)

    def run() -> None:
        log.append("run")
        if fails and "enter capture" in log:
            raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: made)
    monkeypatch.setattr(torch.cuda, "Stream", lambda _: side)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: current)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    device = torch.device("cuda:0")
    if fails:
        with pytest.raises(torch.OutOfMemoryError):
            graphs._captured(run, device)
    else:
        graphs._captured(run, device)()
    warm = ["run"] * graphs.WARM_UPS
    expected = ["side waits for current", "enter side", *warm, "enter capture", "run", "leave capture", "leave side"]
    assert log == [*expected, "current waits for side", *(["replay"] if not fails else [])]


def test_both_ways_are_timed_until_their_answer_is_known() -> None:
    answers = []

    class Answer:
        def __bool__(self) -> bool:
            answers.append(self)
            return False

    class Swept:
        lost = Answer()

    assert 0.0 <= graphs._least_s(Swept) < 1.0
    assert len(answers) == graphs.REPEATS


def test_wider_matrices_and_replays_draw_the_same_states(captures: list, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cases()
    expected = [tree.draw(case, 5, 0, 4) for case in found]
    width = tree.width
    monkeypatch.setattr(tree, "width", lambda case: graphs.rounded(width(case)))
    monkeypatch.setattr(matrices, "filled", graphs.filled)
    for case, drawn in zip(found, expected, strict=True):
        assert_same(tree.draw(case, 5, 0, 4), drawn)
    assert 1 < len(captures) < len(found)  # one a power of two of positions


@pytest.mark.parametrize(("live", "width"), [(1, 32), (32, 32), (33, 64), (224, 224)])
def test_widths_are_rounded_up_to_few(live: int, width: int) -> None:
    assert graphs.rounded(live) == width


class Launches(TorchDispatchMode):
    """Notes what is asked of torch, with the device of every tensor that comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.devices: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.names.append(str(func))
        if isinstance(out, torch.Tensor):
            self.devices.add(out.device.type)
        return out


def test_a_sweep_never_leaves_the_gpu_and_never_waits_for_it() -> None:
    """On pretended tensors of a GPU whatever asks for a number raises, and a scalar that is copied there shows."""
    with FakeTensorMode(), Launches() as launches:
        levels = matrices.room(torch.empty((16, 32, 32), dtype=torch.float64, device="cuda"))
        matrices.fill(levels)
    assert launches.devices == {"cuda"}
    assert not {name for name in launches.names if "scalar_tensor" in name or "copy_." in name or "item" in name}


def test_a_sweep_launches_the_same_whatever_it_sweeps() -> None:
    seen = []
    for weights in (leaves(0), leaves(1, peak=900.0), torch.full((8, 5, 5), -torch.inf, dtype=torch.float64)):
        levels = matrices.room(weights)
        with Launches() as launches:
            matrices.fill(levels)
        seen.append(launches.names)
    assert len(seen[0]) > 20
    assert seen[0] == seen[1] == seen[2]


def test_matrices_without_any_path_stay_impossible(captures: list) -> None:
    nothing = torch.full((4, 3, 3), -torch.inf, dtype=torch.float64)
    assert all(np.isneginf(level.numpy()).all() for level in graphs.filled(nothing).spans)
