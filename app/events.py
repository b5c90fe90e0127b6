"""One function per event of the page; the one place where an `InputError` becomes a message on it.

The debugger component's value is small and is all that Python tells the browser: which runs are shown, how far they
are, what to say. It fetches the runs themselves from `app.endpoints`.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import examples, sessions
from app.endpoints import message
from app.form import FIELDS, form_of
from app.views import View, gone, listed, view
from engine import trace_file
from engine.errors import InputError, TraceError
from engine.trace import Config

if TYPE_CHECKING:
    from engine.trace import Trace

UPLOAD_BYTES = 64 << 20
CELLS = 1 << 20
"""Largest `length × steps` that the page opens."""


def first_view() -> View:
    """Return what the page opens with: the first example."""
    cards = examples.gallery()
    return show_example(cards[0].name, None) if cards else view(None)


def choose(now: View | None, words: dict[str, Any]) -> View:
    """Show other runs of this session, or of the gallery, in the two places."""
    shown = {side: words.get(side) for side in ("a", "b")}
    known = {side: run_id for side, run_id in shown.items() if sessions.find(run_id)}
    if "a" not in known:
        return view(now, message=message(gone()))
    return view(now, a=known["a"], b=known.get("b"))


def show_example(name: object, now: View | None) -> View:
    """Show one card of the gallery."""
    for card in examples.gallery():
        if card.name == name and not card.files:
            return view(now)
        if card.name == name:
            a, b = (*card.run_ids, None)[:2]
            return view(now, a=a, b=b, at={"step": card.step, "position": card.position})
    return view(now, message=message(gone()))


def open_trace(now: View | None, owner: str | None, path: str | None) -> View:
    """Show an uploaded trace."""
    if path is None:
        return view(now)
    try:
        opened = _open(Path(path))
    except InputError as error:
        return view(now, message=message(error))
    made = sessions.RUNS.add(opened, owner)
    return listed(view(now, a=made.run_id, b=None), made)


def save_trace(now: View | None, side: str = "a") -> tuple[View, str | None]:
    """Write the shown run to a file that the browser can fetch."""
    found = sessions.find((now or {}).get(side))
    if found is None:
        return view(now, message=message(gone())), None
    config = found.header.config
    name = f"denoiscope-{config.sampler}-{config.confidence}-seed-{config.seed}.trace"
    path = Path(tempfile.mkdtemp(dir=folder())) / name
    trace_file.save(found.trace, path)
    return view(now), str(path)


def example_form(name: object, now: View) -> tuple[Any, ...] | None:
    """Return the form's values for a card: its own, or those of the run that it shows."""
    for card in examples.gallery():
        if card.name == name and card.form:
            usual = dict(zip(FIELDS, form_of(Config("", None, None, temperature=1.0), None), strict=True))
            return tuple({**usual, **card.form}.values())
    return shown_form(now)


def shown_form(now: View | None) -> tuple[Any, ...] | None:
    """Return the form's values for the run that is shown first."""
    found = sessions.find((now or {}).get("a"))
    return form_of(found.header.config, found.header.vocabulary) if found else None


def _open(path: Path) -> Trace:
    size = path.stat().st_size
    if size > UPLOAD_BYTES:
        raise TraceError(
            f"This trace has {size / 2**20:.0f} MiB, and the page opens up to {UPLOAD_BYTES >> 20}.",
            "Look at it with `python -m engine inspect`.",
        )
    opened = trace_file.load(path)
    config = opened.header.config
    if config.length * config.steps > CELLS:
        raise TraceError(
            f"This trace has {config.length} positions and {config.steps} steps; the page shows up to {CELLS:,} cells.",
            "Look at it with `python -m engine inspect`.",
        )
    if not opened.steps:
        raise TraceError("This trace has a header and no finished step.", "Open one whose run got further.")
    return opened


@cache
def folder() -> str:
    """One temporary folder per process, removed when the process ends."""
    holder = tempfile.TemporaryDirectory(prefix="denoiscope-")
    _held.append(holder)
    return holder.name


_held: list[tempfile.TemporaryDirectory[str]] = []
