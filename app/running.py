"""Runs in progress: new ones, second ones beside a shown one, forks, and stopped ones that go on.

Each function is a generator that gives the debugger its next value once a step. A run pauses at a breakpoint of the
page, and goes on when it is asked to.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from app import loading, sessions
from app.endpoints import message
from app.form import read_form
from app.views import View, gone, listed, news, view
from engine import breakpoints
from engine.errors import ConfigError, ForkError, InputError
from engine.models.architecture import Options
from engine.trace import Config, Edit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.sessions import Run
    from engine.debugger import Fork
    from engine.models import Denoiser
    from engine.trace import Header, StepRecord, Trace

BESIDE: dict[str, str] = {
    "The other confidence": "confidence",
    "Independent draws": "independent",
    "Each position restricted by itself": "local",
    "Rejection, 16 tries a step": "reject",
    "The best sequence (MAP)": "map",
    "Another seed": "seed",
}
"""What a second run may change, by the words of the form."""


def run(now: View | None, owner: str | None, *values: Any) -> Iterator[View]:
    """Run what the form says, one value a step."""
    now = view(now)
    try:
        yield from _run(now, "a", owner, *read_form(values))
    except InputError as error:
        yield news(now, message={**message(error), "of": "form"}, running=None)


def load(model: Any, device: Any, dtype: Any, raw_prompt: Any) -> Iterator[str]:
    """Load a model as the form says; say how far it is, and in the end what it is, or what is wrong."""
    name = str(model or "").strip()
    yield "Loading …"
    try:
        loading.choose(name, Options(str(device or "auto"), str(dtype or "auto"), bool(raw_prompt)))
        for done, total in loading.watched(name):
            yield _progress(done, total)
        yield loading.facts(loading.load(name))
    except InputError as error:
        yield f"✕ {error.problem} {error.remedy}"


def _progress(done: int, total: int) -> str:
    return f"Loading the model: {done} of {total} weights" if total else "Loading the model"


def known(model: Any) -> str:
    """Say what a model is that is at hand, or that it isn't loaded yet."""
    try:
        found = loading.at_hand(str(model or "").strip())
    except InputError as error:
        return f"✕ {error.problem} {error.remedy}"
    return loading.facts(found) if found else "Not loaded yet: Load or Run loads it."


def run_beside(now: View | None, owner: str | None, change: str) -> Iterator[View]:
    """Run the shown run once more with one thing changed, beside it and with the same noise."""
    now = view(now)
    try:
        first = sessions.find(now["a"])
        if first is None:
            raise ConfigError("There is no run to compare with.", "Run something or open an example first.")
        yield from _run(now, "b", owner, changed(first.header.config, BESIDE.get(change, change)))
    except InputError as error:
        yield news(now, message=message(error), running=None)


def changed(config: Config, change: str) -> Config:
    """Return a configuration with one thing changed, by the short name of the change."""
    if change == "confidence":
        return dataclasses.replace(config, confidence="mf" if config.confidence == "mar" else "mar")
    if change == "seed":
        return dataclasses.replace(config, seed=config.seed + 1)
    if change == "map":
        return dataclasses.replace(config, sampler="map", temperature=0.0)
    return dataclasses.replace(config, sampler=change)


def fork(now: View | None, owner: str | None, words: dict[str, Any]) -> Iterator[View]:
    """Fork a run, show the child beside its parent, and run it to its end, or up to what needs the model.

    Args:
        now: value of the debugger.
        owner: the session.
        words: `run`; `step`; `edits`, each with the fields of `Edit`, or `text` for `token_id`; `reuse`, for the
            recorded mean field of the step; `instant`, to stop in front of the next call of the model.
    """
    now = view(now)
    try:
        parent = sessions.find(words.get("run"))
        if parent is None:
            raise gone()
        yield from _fork(now, owner, parent, words)
    except InputError as error:
        yield news(now, message=message(error), running=None)


def remedy(now: View | None, owner: str | None, words: dict[str, Any]) -> Iterator[View]:
    """Run a run's configuration with the changes that a finding proposes, beside it."""
    now = view(now)
    try:
        first = sessions.find(words.get("run"))
        changes = words.get("changes")
        if first is None or not isinstance(changes, dict):
            raise gone()
        shown = news(now, a=first.run_id, b=None)
        yield from _run(shown, "b", owner, configured(first.header.config, changes))
    except InputError as error:
        yield news(now, message=message(error), running=None)


_CONFIG = TypeAdapter(Config)


def configured(config: Config, changes: dict[str, Any]) -> Config:
    """Return a configuration with fields changed that a stranger names.

    Raises:
        ConfigError: there is no such field, or its value is of another type.
    """
    known = {f.name for f in dataclasses.fields(Config)}
    if not set(changes) <= known:
        raise ConfigError(f"There is no setting {min(set(changes) - known)!r}.", "Choose one of the configuration's.")
    try:
        # From JSON, in which a tuple is a list and nothing else is anything but itself.
        return _CONFIG.validate_json(json.dumps({**dataclasses.asdict(config), **changes}), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        name = first["loc"][0] if first["loc"] else "configuration"
        raise ConfigError(f"The {name} can't be {str(changes.get(str(name)))[:80]}.", "Give one of its type.") from None


def go_on(now: View | None, owner: str | None, run_id: object) -> Iterator[View]:
    """Let a stopped or paused run of this session go on behind its last step."""
    now = view(now)
    try:
        made = sessions.RUNS.get(run_id)
        if made is None or made.owner != owner:
            raise gone()
        if made.status == "running":
            return
        yield news(now, preparing=True)
        from engine import debugger

        resumed = debugger.resume(made.trace)
        denoiser = loading.load(made.header.config.model)
        made.status = "running"
        before = len(made.steps)
        yield from _follow(now, made, _own(resumed, denoiser, before), before)
    except InputError as error:
        yield news(now, message=message(error), running=None)


def _fork(now: View, owner: str | None, parent: Run, words: dict[str, Any]) -> Iterator[View]:
    yield news(now, preparing=True)
    from engine import debugger

    trace, instant = parent.trace, bool(words.get("instant"))
    step = words.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        raise ForkError(f"There is no step {step!r} to fork at.", "Choose one of the run's steps.")
    edits = _edits(trace, words.get("edits"))
    forked = debugger.fork(trace, step, edits, reuse=bool(words.get("reuse")) or instant)
    denoiser = None if instant else loading.load(trace.header.config.model)
    made = sessions.RUNS.begin(forked.header, owner, parent=parent.run_id)
    position = next((edit.position for edit in edits if edit.position is not None), None)
    at = {"step": step, "position": position if position is not None else (now.get("at") or {}).get("position")}
    shown = {"a": parent.run_id, "b": made.run_id, "at": at}
    yield from _follow(now, made, debugger.steps(forked, denoiser), step, **shown)


def _own(forked: Fork, denoiser: Denoiser, known: int) -> Iterator[StepRecord]:
    """Yield the steps that are not there yet."""
    from engine import debugger

    for number, record in enumerate(debugger.steps(forked, denoiser)):
        if number >= known:
            yield record


def _edits(trace: Trace, asked: object) -> list[Edit]:
    """Read the edits that the browser asks for; a text becomes the tokens that write it."""
    if not isinstance(asked, list) or len(asked) > 64 or not all(isinstance(edit, dict) for edit in asked):
        raise ForkError("The edits of a fork are a list of up to 64.", "Choose what to change again.")
    edits: list[Edit] = []
    for words in asked:
        text = words.get("text")
        known = {name: words.get(name) for name in ("position", "token_id", "name", "value")}
        if isinstance(known["value"], list):
            known["value"] = tuple(str(value) for value in known["value"])
        if not isinstance(text, str):
            edits.append(Edit(str(words.get("kind")), **known))
            continue
        if not isinstance(known["position"], int):
            raise ForkError(f"There is no position {known['position']!r}.", "Choose one of the canvas.")
        for offset, token_id in enumerate(_tokens(trace.header, text)):
            edits.append(Edit(str(words.get("kind")), known["position"] + offset, token_id))
    return edits


def _tokens(header: Header, text: str) -> list[int]:
    """Return the token that writes a text, or else the model's tokens for it."""
    try:
        return [header.vocabulary.token_bytes.index(text.encode())]
    except ValueError:
        token_ids: list[int] = loading.load(header.config.model).encode(text).tolist()
    if not token_ids:
        raise ForkError("There is no text to pin.", "Write some.")
    return token_ids


def _run(now: View, side: str, owner: str | None, config: Config, pins: Sequence[str] = ()) -> Iterator[View]:
    # The engine's compiled kernels take a moment to import, and the page is to be useful before.
    yield news(now, preparing=True)
    from engine import decode, preparation

    preparation.check(config)
    preparation.read(config)  # a mistake in it is told before a model is loaded
    for done, total in loading.watched(config.model):
        yield news(now, preparing=_progress(done, total))
    denoiser, header = preparation.prepare(config, preparation.read_pins(pins), load=loading.load)
    made = sessions.RUNS.begin(header, owner)
    shown = {"a": made.run_id, "b": None} if side == "a" else {"b": made.run_id}
    yield from _follow(now, made, decode.denoise(denoiser, header.automaton, header.config), 0, **shown)


def _follow(now: View, made: Run, records: Iterator[StepRecord], unwatched: int, **shown: Any) -> Iterator[View]:
    """Take steps as they come, until the end, a stop, a breakpoint or a mistake.

    Args:
        now: value of the debugger when it began.
        made: the run that grows.
        records: its steps.
        unwatched: number of the first step that may pause it; those before were there before.
        shown: what the debugger shows from the first step on; one that fails before it changes nothing.
    """
    status, wrong, paused = "failed", None, None
    first, last = len(made.steps), made.steps[-1] if made.steps else None
    now = news(now, running=made.run_id, paused=None)
    try:
        yield now
        watched = breakpoints.watch(records, _watched(now), made.header, first, last)
        for number, (step, hits) in enumerate(watched, first):
            if made.status != "running":  # stopped while this step was computed
                return
            sessions.RUNS.append(made, step)
            now = listed(news(now, **shown if number == first else {}), made)
            if hits and number >= unwatched:
                paused = {"run": made.run_id, "step": number, "position": hits[0].position}
                break
            yield now
        status = "paused" if paused else "finished" if made.trace.finished else "stopped"
    except GeneratorExit:
        status = "stopped"
        raise
    except InputError as error:
        wrong = message(error)
    finally:
        if made.status == "running":
            sessions.RUNS.finish(made, status)
    # A run that failed later is worth seeing up to there.
    yield news(now, running=None, paused=paused, message=wrong, at=paused)


def _watched(now: View) -> list[breakpoints.Breakpoint]:
    """Return the page's breakpoints that parse; those that don't were told when they were written."""
    found = []
    for text in now.get("breaks") or []:
        try:
            found.append(breakpoints.parse(str(text)))
        except InputError:
            continue
    return found


def stop(now: View | None, owner: str | None) -> View:
    """Stop the run in progress after the step that it is at; what it has finished stays."""
    made = sessions.RUNS.get((now or {}).get("running"))
    if made is not None and made.owner == owner and made.status == "running":
        sessions.RUNS.finish(made, "stopped")
    return news(now, running=None)


def set_breaks(now: View | None, texts: object) -> View:
    """Take the breakpoints at which runs are to pause."""
    known = [text for text in texts if isinstance(text, str)][:32] if isinstance(texts, list) else []
    return news(now, breaks=known)
