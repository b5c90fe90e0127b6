"""Who runs the cells: this process, or the workers of a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import models
from engine.errors import ConfigError
from engine.tables.runner import run_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.models import Denoiser
    from engine.tables.cells import Cell
    from engine.tables.runner import Outcome

LOST = 3
"""How often a cell is begun again whose worker was lost."""


def load(name: str, dtype: str) -> Denoiser:
    """Load a model in a number type.

    Raises:
        ConfigError: the model has no such type.
    """
    denoiser = models.load(name)
    if denoiser.facts.get("dtype", dtype) == dtype:
        return denoiser
    use = getattr(denoiser, f"use_{dtype}", None)
    if use is None:
        raise ConfigError(f"The model {name} doesn't run in {dtype!r}.", "Use --dtype float32.")
    use()
    return denoiser


def here(denoiser: Denoiser, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]]:
    """Run cells one after another in this process."""
    for cell in cells:
        yield cell, run_cell(denoiser, cell)


def on_ray(address: str, name: str, dtype: str, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Outcome]]:
    """Run cells on a Ray cluster, a cell a task; yield each when it is done, in any order.

    The noise is a function of seed, step and position, so a cell comes to the same wherever it runs, up to the last
    bits of the model's logits, which the number of threads and the processor can change. A cell whose worker dies is
    run again.

    Args:
        address: of the cluster; `local` starts one on this machine.
        name: of the model, as each worker can load it.
        dtype: number type of its blocks.
        cells: to run.

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
        work = ray.remote(max_retries=LOST, num_cpus=1)(_work)
        waiting = {work.remote(name, dtype, cell): cell for cell in cells}
        while waiting:
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(done), ray.get(done)
    finally:
        ray.shutdown()


_LOADED: dict[tuple[str, str], Denoiser] = {}


def _work(name: str, dtype: str, cell: Cell) -> Outcome:
    """Run a cell in a worker, which keeps its model for the next one."""
    import torch

    torch.set_num_threads(1)
    if (name, dtype) not in _LOADED:
        _LOADED[name, dtype] = load(name, dtype)
    return run_cell(_LOADED[name, dtype], cell)
