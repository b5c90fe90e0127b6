"""What Python tells the browser: the value of the debugger component."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError, InputError

if TYPE_CHECKING:
    from app.sessions import Run
    from engine.trace import Branch, Config, Edit

View = dict[str, Any]
"""Value of the debugger.

`a` and `b`: ids of the runs shown; `runs`: what this session may choose from; `running`: id of the run in progress;
`preparing`: whether one is about to begin; `paused`: the run that stopped at a breakpoint, its step and the texts that
hit; `breaks`: texts of the breakpoints at which runs stop; `message`: a mistake to be shown; `at`: where to look first;
`serial`: so that each value is new; `claim`: serial of what the user did that `a` and `b` come from. A run in progress
keeps the claim that it was begun with, so that its steps don't take the place of what was chosen since.
"""

LISTED = 12
"""Runs of a session that its lists show."""

_serials = itertools.count(time.time_ns() // 1000)
"""From the clock, so that a page that outlives its server takes the next one's values for newer."""


def view(now: View | None, **changes: Any) -> View:
    """Return the next value of the debugger; a message is shown once, unless it is given again."""
    serial = next(_serials)
    kept = {**empty(), **(now or {}), "message": None, "at": None, "preparing": False}
    return {**kept, "claim": serial, **changes, "serial": serial}


def news(now: View | None, **changes: Any) -> View:
    """Return the next value of what the user began earlier, under the claim of that time."""
    return view(now, claim=(now or {}).get("claim", 0), **changes)


def empty() -> View:
    """Return the value of a page that shows nothing yet."""
    return {
        "a": None,
        "b": None,
        "runs": [],
        "running": None,
        "paused": None,
        "breaks": [],
        "message": None,
        "at": None,
    }


def listed(now: View, made: Run) -> View:
    """Put a run on the session's list, once; the list keeps the latest."""
    if made.run_id in (run["id"] for run in now["runs"]):
        return now
    number = max([0, *(run["number"] for run in now["runs"])]) + 1
    branch = made.header.branches[-1] if made.parent and made.header.branches else None
    entry = {
        "id": made.run_id,
        "number": number,
        "title": title(made.header.config, number),
        "parent": made.parent,
        "step": branch.step if branch else None,
        "what": changes(branch, made) if branch else "",
    }
    return {**now, "runs": [*now["runs"], entry][-LISTED:]}


def title(config: Config, number: int) -> str:
    """Return the name of a run in lists, of words of our own and numbers."""
    return f"{number} · {config.confidence} · {config.sampler} · {config.length}×{config.steps} · seed {config.seed}"


def changes(branch: Branch, made: Run) -> str:
    """Return what a fork changed, in words; tokens in it are data, as everywhere."""
    return ", ".join(_told(edit, made) for edit in branch.edits) or "nothing"


def _told(edit: Edit, made: Run) -> str:
    if edit.kind == "set":
        return f"{edit.name} {edit.value}"
    if edit.kind == "constrain":
        return f"another constraint ({edit.name or 'none'})"
    written = made.header.vocabulary.written(edit.token_id) if edit.token_id is not None else None
    text = "" if edit.token_id is None else f" {(written or b'').decode(errors='replace')!r}"
    return f"{edit.kind}{text} at {edit.position}"


def gone() -> InputError:
    """Return the mistake that a run is asked for that the server holds no longer."""
    return ConfigError("This run is no longer held by the server.", "Run it again, or open it from a saved trace.")
