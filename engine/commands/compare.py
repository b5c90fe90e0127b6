"""`python -m engine compare`: two recorded runs, side by side."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from engine.commands.console import Json, console, errors, print_json, shown, token
from engine.errors import ConfigError

if TYPE_CHECKING:
    from engine.comparison import Comparison, Share
    from engine.trace import Trace


def compare(
    first: Annotated[Path, typer.Argument(metavar="TRACE", help="A file that --trace wrote.")],
    second: Annotated[Path, typer.Argument(metavar="TRACE", help="Another one, of the same model and length.")],
    seeds: Annotated[int, typer.Option(help="Run both configurations again, with this many seeds.")] = 0,
    as_json: Json = False,
) -> None:
    """Say what two runs were asked for and how they differ: first divergence, commit order, outcome."""
    from engine import comparison
    from engine.trace_file import load

    if not 0 <= seeds <= 10_000:
        raise ConfigError(f"There are {seeds} seeds to run.", "Ask for 0 to 10,000.")
    traces = (load(first), load(second))
    compared = comparison.compare(*traces)
    shares = [_share(trace, seeds) for trace in traces] if seeds else []
    if as_json:
        print_json(_plain(compared, shares, traces[0]))
        return
    _print(compared, shares, traces)


def _share(trace: Trace, seeds: int) -> Share:
    """Run a configuration with seeds 0 … N − 1 and count what is accepted; the same seeds for every run."""
    from engine import decode, models, preparation
    from engine.comparison import accepted_share
    from engine.errors import InputError
    from engine.models.architecture import DEFAULT, Options
    from engine.trace import Trace as Made

    header, facts = trace.header, trace.header.model
    chosen = Options(dtype=facts["dtype"], raw_prompt=facts["raw_prompt"]) if "raw_prompt" in facts else DEFAULT
    denoiser = models.load(header.config.model, chosen)
    preparation.check_model(denoiser, header)
    runs = []
    for seed in track(range(seeds), "Running", console=errors, transient=True, disable=not errors.is_terminal):
        config = dataclasses.replace(header.config, seed=seed)
        records: list[Any] = []
        try:
            records.extend(decode.denoise(denoiser, header.automaton, config))
        except InputError:
            records.clear()  # nothing is accepted any more: a run that failed
        runs.append(Made(dataclasses.replace(header, config=config), tuple(records)))
    return accepted_share(runs)


def _plain(compared: Comparison, shares: list[Share], trace: Trace) -> dict[str, Any]:
    divergence = compared.divergence
    return {
        "changed": {name: list(pair) for name, pair in compared.changed.items()},
        "shared_noise": compared.shared_noise,
        "kendall_tau": None if np.isnan(compared.tau) else compared.tau,
        "commit_steps": compared.commit_steps.tolist(),
        "divergence": dataclasses.asdict(divergence) | {"texts": [token(trace, v) for v in divergence.tokens]}
        if divergence
        else None,
        "different_positions": list(compared.different_positions),
        "outcomes": [
            {**dataclasses.asdict(o), "log_probability": _finite(o.log_probability)} for o in compared.outcomes
        ],
        "seeds": [dataclasses.asdict(share) for share in shares],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _print(compared: Comparison, shares: list[Share], traces: tuple[Trace, Trace]) -> None:
    changed = ", ".join(f"{name} {a!r} → {b!r}" for name, (a, b) in compared.changed.items())
    console.print(f"[bold]changed[/]  {escape(changed) or 'nothing'}", highlight=False, soft_wrap=True)
    noise = "shared noise (one seed)" if compared.shared_noise else "different seeds: what differs may be chance"
    tau = "no order" if np.isnan(compared.tau) else f"{compared.tau:.3f}"
    console.print(f"[bold]noise[/]  {noise}\n[bold]Kendall τ of the commit order[/]  {tau}", highlight=False)
    console.print(f"[bold]first divergence[/]  {escape(_told(compared, traces[0]))}", highlight=False, soft_wrap=True)
    table = Table("", "A", "B", box=None)
    a, b = compared.outcomes
    for name in ("accepted", "steps", "log_probability", "forbidden_mass", "lost_at", "model_ms", "engine_ms"):
        table.add_row(name, *(shown(getattr(o, name)) or "no" for o in (a, b)))
    console.print(table)
    for name, outcome in (("A", a), ("B", b)):
        console.print(f"{name}  {escape(outcome.text)}", highlight=False, soft_wrap=True)
    for name, share in zip("AB", shares, strict=False):
        console.print(
            f"{name}  {share.successes} of {share.trials} seeds accepted, 95 %: {share.low:.3f} to {share.high:.3f}",
            highlight=False,
        )


def _told(compared: Comparison, trace: Trace) -> str:
    found = compared.divergence
    if found is None:
        return "none"
    if found.cause == "canvas":
        return f"step {found.step}: the canvases differ at position {found.position}"
    if found.cause == "draw":
        texts = " against ".join(repr(token(trace, v)) for v in found.tokens)
        return f"step {found.step}, position {found.position}: drawn {texts}"
    parts = []
    for name, rival, (mf, mar) in zip(
        "AB", found.rivals, zip(*found.rival_confidences.values(), strict=True), strict=True
    ):
        if rival is not None:
            side = "AB".index(name)
            parts.append(f"{name} commits {rival} (Mf {shown(mf[side])}, Mar {shown(mar[side])})")
    return f"step {found.step}: the same draw; {'; '.join(parts)}"
