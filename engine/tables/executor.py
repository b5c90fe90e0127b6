"""Who does the work: this process, or the workers of a Ray cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine import models
from engine.errors import ConfigError
from engine.tables.runner import Work, solve
from engine.tasks import families

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.models import Denoiser
    from engine.tables.cells import Cell
    from engine.tables.results import Results
    from engine.tables.runner import Run

SIDE_BY_SIDE = 4
"""Problems that are decoded at once: batches of some tens of canvases, and some hundred MB of the model's answers."""
LOST = 3
"""How often work is begun again whose worker was lost."""


def load(name: str, dtype: str) -> Denoiser:
    """Load a model in a number type.

    Raises:
        ConfigError: the model has no such type, or doesn't read a prompt.
    """
    denoiser = models.load(name)
    if "length" in denoiser.facts:
        raise ConfigError(
            f"The model {name} is a typed-in mean field, which answers no prompts.", "Name a model that does."
        )
    if denoiser.facts.get("dtype", dtype) == dtype:
        return denoiser
    use = getattr(denoiser, f"use_{dtype}", None)
    if use is None:
        raise ConfigError(f"The model {name} doesn't run in {dtype!r}.", "Use --dtype float32.")
    use()
    return denoiser


def missing(cells: Sequence[Cell], count: int, done: Results) -> list[Work]:
    """Divide into work what isn't done yet of the first `count` problems of each cell, or of as many as there are."""
    found = []
    for task in dict.fromkeys(cell.task for cell in cells):
        left: dict[tuple[Cell, ...], list[int]] = {}
        for n in range(len(families.named(task).problems(count, "held_out"))):
            wanted = tuple(cell for cell in cells if cell.task == task and n not in done.get(cell, ()))
            left.setdefault(wanted, []).append(n)
        for wanted, numbers in left.items():
            if wanted:
                blocks = (numbers[at : at + SIDE_BY_SIDE] for at in range(0, len(numbers), SIDE_BY_SIDE))
                found += [Work(task, tuple(block), wanted) for block in blocks]
    return found


def here(denoiser: Denoiser, work: Sequence[Work]) -> Iterator[tuple[Work, Mapping[int, Mapping[Cell, Run]]]]:
    """Do the work in this process, on one thread of torch."""
    with one_thread():
        for part in work:
            yield part, solve(denoiser, part)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread in a block: results depend on the number less, and short rows gain nothing from more."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def on_ray(
    address: str, name: str, dtype: str, work: Sequence[Work]
) -> Iterator[tuple[Work, Mapping[int, Mapping[Cell, Run]]]]:
    """Do the work on a Ray cluster; yield each part when it is done, in any order.

    The noise is a function of seed, step and position, so a run comes to the same wherever it runs, up to the last
    bits of the model's logits, which the shape of a batch, the number of threads and the processor can change. Work
    whose worker dies is done again.

    Args:
        address: of the cluster; `local` starts one on this machine.
        name: of the model, as each worker can load it.
        dtype: number type of its blocks.
        work: to do.

    Raises:
        ConfigError: Ray isn't installed, or there is no cluster at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            "--ray needs the package ray, which isn't installed.", "Install it: pip install ray."
        ) from error
    try:
        ray.init(address, log_to_driver=False, include_dashboard=False) if address == "local" else ray.init(address)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"There is no Ray cluster at {address!r} ({error}).", "Start one: ray start --head."
        ) from error
    try:
        remote = ray.remote(max_retries=LOST, num_cpus=1)(_work)
        waiting = {remote.remote(name, dtype, part): part for part in work}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(done), ray.get(done)
    finally:
        ray.shutdown()


_LOADED: dict[tuple[str, str], Denoiser] = {}


def _work(name: str, dtype: str, part: Work) -> dict[int, dict[Cell, Run]]:
    """Do a part in a worker, which keeps its model for the next one."""
    import torch

    torch.set_num_threads(1)
    if (name, dtype) not in _LOADED:
        _LOADED[name, dtype] = load(name, dtype)
    return solve(_LOADED[name, dtype], part)
