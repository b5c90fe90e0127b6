"""Train the embedded model: `python -m engine.training --minutes 60`, and `--resume` to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.training.train import Recipe, Run

ROOT = Path(__file__).parents[2]


def main(
    minutes: Annotated[float, typer.Option(help="Wall clock that the whole schedule is laid over.")] = 60.0,
    resume: Annotated[bool, typer.Option(help="Go on from the checkpoint in the folder.")] = False,
    seed: Annotated[int, typer.Option(help="Of weights, corpus and masking.")] = 0,
    folder: Annotated[Path, typer.Option(help="Where checkpoints and the log go.")] = ROOT / "build" / "training",
    export: Annotated[Path | None, typer.Option(help="Write the averaged model here at the end.")] = None,
    compiled: Annotated[bool, typer.Option(help="Compile the blocks; needs g++.")] = False,
    train: Annotated[bool, typer.Option(help="With --no-train, only export the checkpoint.")] = True,
) -> None:
    """Train the embedded model; SIGTERM or Ctrl-C stops it after the step, with a checkpoint."""
    if (resume or not train) and not (folder / "checkpoint.pt").is_file():
        raise typer.BadParameter(f"There is no checkpoint in {folder}. Train first, without --resume.")
    if resume or not train:
        run = Run.resume(folder, minutes if train else None)
    else:
        run = Run(Recipe(minutes, seed=seed), folder)
    if train:
        if compiled:
            run.compile()
        run.train()
    if export is not None:
        run.export(export)


if __name__ == "__main__":
    typer.run(main)
