"""One function per event of the page; the one place where an `InputError` becomes a message on it.

The debugger component's value is small and is all that Python tells the browser: which runs are shown, how far they
are, what to say. The browser fetches the runs themselves through the server functions at the end of this module. Those
are public endpoints: whatever comes in is checked, and a refusal is an answer, not an exception.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import examples
from app.sessions import Run, Runs
from engine import trace
from engine.errors import ConfigError, InputError, TraceError
from engine.trace import Config
from viz import payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.trace import Header
    from engine.vocabulary import Vocabulary

View = dict[str, Any]
"""Value of the debugger.

`a` and `b`: ids of the runs shown; `runs`: what this session may choose from; `running`: id of the run in progress;
`preparing`: whether one is about to begin; `message`: a mistake to be shown; `at`: where to look first; `serial`: so
that each value is new.
"""

RUNS = Runs()
LISTED = 12
"""Runs of a session that its lists show."""
UPLOAD_BYTES = 64 << 20
CELLS = 1 << 20
"""Largest `length × steps` that the page opens."""

FIELDS = (
    "prompt",
    "kind",
    "source",
    "model",
    "length",
    "steps",
    "block_length",
    "temperature",
    "remasking",
    "confidence",
    "sampler",
    "seed",
    "pins",
)
"""Names of the form's fields, in the order in which their values come."""

BESIDE: dict[str, str] = {
    "The other confidence": "confidence",
    "Independent draws": "independent",
    "Each position restricted by itself": "local",
    "Rejection, 16 tries a step": "reject",
    "The best sequence (MAP)": "map",
    "Another seed": "seed",
}
"""What a second run may change, by the words of the form."""

_serials = itertools.count(1)


def view(now: View | None, **changes: Any) -> View:
    """Return the next value of the debugger; a message is shown once, unless it is given again."""
    kept = {**empty(), **(now or {}), "message": None, "at": None, "preparing": False}
    return {**kept, **changes, "serial": next(_serials)}


def empty() -> View:
    """Return the value of a page that shows nothing yet."""
    return {"a": None, "b": None, "runs": [], "running": None, "message": None, "at": None}


def message(error: InputError) -> dict[str, Any]:
    """Return a mistake as the page shows it: what is wrong, where, what to do."""
    place = error.place
    return {
        "problem": error.problem,
        "remedy": error.remedy,
        "frame": place.frame() if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def first_view() -> View:
    """Return what the page opens with: the first example."""
    cards = examples.gallery()
    return show_example(cards[0].name, None) if cards else view(None)


# Events: they take the form's values or the browser's words, and give the debugger its next value.


def run(now: View | None, owner: str | None, *values: Any) -> Iterator[View]:
    """Run what the form says, one value a step."""
    try:
        yield from _run(view(now), "a", owner, *read_form(values))
    except InputError as error:
        yield view(now, message=message(error), running=None)


def run_beside(now: View | None, owner: str | None, change: str) -> Iterator[View]:
    """Run the shown run once more with one thing changed, beside it and with the same noise."""
    try:
        first = RUNS.get((now or {}).get("a")) or _example((now or {}).get("a"))
        if first is None:
            raise ConfigError("There is no run to compare with.", "Run something or open an example first.")
        yield from _run(view(now), "b", owner, changed(first.header.config, BESIDE.get(change, change)))
    except InputError as error:
        yield view(now, message=message(error), running=None)


def changed(config: Config, change: str) -> Config:
    """Return a configuration with one thing changed, by the short name of the change."""
    if change == "confidence":
        return dataclasses.replace(config, confidence="mf" if config.confidence == "mar" else "mar")
    if change == "seed":
        return dataclasses.replace(config, seed=config.seed + 1)
    if change == "map":
        return dataclasses.replace(config, sampler="map", temperature=0.0)
    return dataclasses.replace(config, sampler=change)


def _run(now: View, side: str, owner: str | None, config: Config, pins: Sequence[str] = ()) -> Iterator[View]:
    # The engine's compiled kernels take a moment to import, and the page is to be useful before.
    yield view(now, preparing=True)
    from engine import decode, preparation

    denoiser, header = preparation.prepare(config, preparation.read_pins(pins))
    config = header.config
    made = RUNS.begin(header, owner)
    status = "failed"
    shown = {"a": made.run_id, "b": None} if side == "a" else {"b": made.run_id}
    before, now = now, _listed(view(now, **shown, running=made.run_id), made)
    wrong = None
    try:
        yield now
        for step in decode.denoise(denoiser, header.automaton, config):
            if made.status != "running":  # stopped while this step was computed
                return
            RUNS.append(made, step)
            yield view(now)
        status = "finished"
    except GeneratorExit:
        status = "stopped"
        raise
    except InputError as error:
        wrong = message(error)
    finally:
        if made.status == "running":
            RUNS.finish(made, status)
    # A run that failed later is worth seeing up to there.
    yield view(now if made.steps else before, running=None, message=wrong)


def _listed(now: View, made: Run) -> View:
    """Put a run on the session's list, which keeps the latest."""
    number = max([0, *(run["number"] for run in now["runs"])]) + 1
    entry = {"id": made.run_id, "number": number, "title": title(made.header.config, number)}
    return {**now, "runs": [*now["runs"], entry][-LISTED:]}


def stop(now: View | None, owner: str | None) -> View:
    """Stop the run in progress after the step that it is at; what it has finished stays."""
    made = RUNS.get((now or {}).get("running"))
    if made is not None and made.owner == owner and made.status == "running":
        RUNS.finish(made, "stopped")
    return view(now, running=None)


def choose(now: View | None, words: dict[str, Any]) -> View:
    """Show other runs of this session, or of the gallery, in the two places."""
    shown = {side: words.get(side) for side in ("a", "b")}
    known = {side: run_id for side, run_id in shown.items() if _find(run_id)}
    if "a" not in known:
        return view(now, message=message(_gone()))
    return view(now, a=known["a"], b=known.get("b"))


def show_example(name: object, now: View | None) -> View:
    """Show one card of the gallery."""
    for card in examples.gallery():
        if card.name == name:
            a, b = (*card.run_ids, None)[:2]
            return view(now, a=a, b=b, at={"step": card.step, "position": card.position})
    return view(now, message=message(_gone()))


def open_trace(now: View | None, owner: str | None, path: str | None) -> View:
    """Show an uploaded trace."""
    if path is None:
        return view(now)
    try:
        opened = _open(Path(path))
    except InputError as error:
        return view(now, message=message(error))
    made = RUNS.add(opened, owner)
    return _listed(view(now, a=made.run_id, b=None), made)


def save_trace(now: View | None, side: str = "a") -> tuple[View, str | None]:
    """Write the shown run to a file that the browser can fetch."""
    found = _find((now or {}).get(side))
    if found is None:
        return view(now, message=message(_gone())), None
    config = found.header.config
    name = f"denoiscope-{config.sampler}-{config.confidence}-seed-{config.seed}.trace"
    path = Path(tempfile.mkdtemp(dir=_folder())) / name
    trace.save(found.trace, path)
    return view(now), str(path)


def title(config: Config, number: int) -> str:
    """Return the name of a run in lists, of words of our own and numbers."""
    return f"{number} · {config.confidence} · {config.sampler} · {config.length}×{config.steps} · seed {config.seed}"


def read_form(values: tuple[Any, ...]) -> tuple[Config, list[str]]:
    """Return the configuration that the form says, and its pins as they are written.

    Raises:
        ConfigError: a number is missing or is not whole; what it may be is the engine's to say.
    """
    form = dict(zip(FIELDS, values, strict=True))
    for name in ("length", "steps", "block_length", "seed"):
        form[name] = _whole(name.replace("_", " "), form[name])
    if form["temperature"] is None:
        raise ConfigError("The temperature is empty.", "Write a number from 0 to 100.")
    form["temperature"] = float(form["temperature"])
    form["prompt"] = form["prompt"] or ""
    form["model"] = (form["model"] or "").strip()
    if form["kind"] == "none":
        form["kind"] = form["source"] = None
    elif form["kind"] == "choices":
        form["source"] = tuple(line for line in (form["source"] or "").splitlines() if line)
    else:
        form["source"] = form["source"] or ""
    pins = [line for line in (form.pop("pins") or "").splitlines() if line.strip()]
    return Config(**form), pins


def form_of(config: Config, vocabulary: Vocabulary) -> tuple[Any, ...]:
    """Return the form's values for a configuration, in the order of `FIELDS`."""
    values = {name: getattr(config, name) for name in FIELDS}
    texts = [(i, (vocabulary.written(token_id) or b"").decode(errors="replace")) for i, token_id in config.pins]
    values["pins"] = "\n".join(f"{i}={text}" for i, text in texts)
    if config.kind is None:
        values["kind"], values["source"] = "none", ""
    elif isinstance(config.source, tuple):
        values["source"] = "\n".join(config.source)
    return tuple(values.values())


def shown_form(now: View | None) -> tuple[Any, ...] | None:
    """Return the form's values for the run that is shown first."""
    found = _find((now or {}).get("a"))
    return form_of(found.header.config, found.header.vocabulary) if found else None


def _whole(name: str, value: Any) -> int:
    if value is None or int(value) != value:
        raise ConfigError(
            f"The {name} is {'empty' if value is None else value}, and it must be a whole number.",
            "Write one in its field.",
        )
    return int(value)


def _open(path: Path) -> trace.Trace:
    size = path.stat().st_size
    if size > UPLOAD_BYTES:
        raise TraceError(
            f"This trace has {size / 2**20:.0f} MiB, and the page opens up to {UPLOAD_BYTES >> 20}.",
            "Look at it with `python -m engine inspect`.",
        )
    opened = trace.load(path)
    config = opened.header.config
    if not _sound(opened.header):
        raise TraceError(
            "The configuration in this trace holds values of the wrong type.", "Open a trace that Denoiscope wrote."
        )
    if config.length * config.steps > CELLS:
        raise TraceError(
            f"This trace has {config.length} positions and {config.steps} steps; the page shows up to {CELLS:,} cells.",
            "Look at it with `python -m engine inspect`.",
        )
    if not opened.steps:
        raise TraceError("This trace has a header and no finished step.", "Open one whose run got further.")
    return opened


def _sound(header: Header) -> bool:
    """Whether what a file says in words has the types that the page writes out; its tables were checked when read."""
    config = header.config
    source = config.source if isinstance(config.source, tuple) else (config.source or "",)
    texts = (
        config.prompt,
        config.model,
        config.remasking,
        config.confidence,
        config.sampler,
        config.kind or "",
        *source,
    )
    numbers: tuple[object, ...] = (config.length, config.steps, config.block_length, config.temperature, config.seed)
    if not all(isinstance(text, str) for text in texts) or not isinstance(header.model, dict):
        return False
    try:
        # JSON can spell half of a surrogate pair, which no answer to the browser may hold.
        json.dumps([*texts, header.model], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)


def _gone() -> InputError:
    return ConfigError("This run is no longer held by the server.", "Run it again, or open it from a saved trace.")


@cache
def _folder() -> str:
    """One temporary folder per process, removed when the process ends."""
    holder = tempfile.TemporaryDirectory(prefix="denoiscope-")
    _held.append(holder)
    return holder.name


_held: list[tempfile.TemporaryDirectory[str]] = []


def _find(run_id: object) -> Run | None:
    return RUNS.get(run_id) or _example(run_id)


def _example(run_id: object) -> Run | None:
    if not isinstance(run_id, str) or not run_id.startswith("example:"):
        return None
    recorded = examples.load(run_id)
    return None if recorded is None else RUNS.add(recorded, None, run_id)


# Server functions: what the browser may ask for. Each takes one dictionary from anyone at all.

Answer = dict[str, Any]
STEPS_AT_ONCE = 256


def _answer(asked: object, build: Callable[[Run, dict[str, Any]], Answer]) -> Answer:
    words = asked if isinstance(asked, dict) else {}
    found = _find(words.get("run"))
    return build(found, words) if found else {"error": "gone"}


def _number(words: dict[str, Any], name: str, limit: int) -> int:
    value = words.get(name)
    return min(max(value, 0), limit) if isinstance(value, int) else 0


def get_gallery(_asked: object = None) -> Answer:
    """Return the cards of the gallery."""
    return {
        "cards": [
            {"name": e.name, "title": e.title, "what": e.what, "runs": list(e.run_ids)} for e in examples.gallery()
        ]
    }


def get_run(asked: object) -> Answer:
    """Return the header of `run`."""
    return _answer(
        asked,
        lambda run, _: {**payload.header(run.header), "run": run.run_id, "status": run.status},
    )


def get_steps(asked: object) -> Answer:
    """Return the quantities of the steps of `run` from number `first` on, as many as are there."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        status, steps = run.status, run.steps[:]  # in this order: no step follows the last status
        first = _number(words, "first", len(steps))
        records = steps[first : first + STEPS_AT_ONCE]
        more = first + len(records) < len(steps)
        answer = {"status": status, "more": more, "first": first, "count": 0}
        return {**answer, **payload.steps(run.header, records, first)} if records else answer

    return _answer(asked, build)


def get_detail(asked: object) -> Answer:
    """Return the distributions of `count` steps of `run` from number `first` on."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        first = _number(words, "first", len(run.steps))
        records = run.steps[first : first + max(1, _number(words, "count", STEPS_AT_ONCE))]
        return payload.detail(run.header, records, first) if records else {"error": "no such step"}

    return _answer(asked, build)


def get_window(asked: object) -> Answer:
    """Return the automaton of `run` around `state`, laid out."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        return payload.window(run.header, _number(words, "state", run.header.automaton.states - 1))

    return _answer(asked, build)


SERVER_FUNCTIONS: tuple[Callable[..., Answer], ...] = (get_gallery, get_run, get_steps, get_detail, get_window)
