"""What is on the page and which event each part raises; computes nothing."""

from __future__ import annotations

import html
import json
import os
import threading
from collections.abc import Iterator  # Gradio reads the annotations of handlers
from typing import TYPE_CHECKING, Any

# Before gradio is imported: neither it nor the hub client may call out.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# After each event Gradio sums up the last ten thousand, which nobody reads here.
os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))

import gradio as gr
from gradio.events import api as offered
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware

from app import api, checking, endpoints, events, fields, form, grid, loading, running, sessions, tables
from app.components import CLIENT, component
from app.lessons import endpoints as lessons
from app.views import View
from engine import constraints, remasking
from engine.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LATER = ("stream", "tables")
"""Modules that the page does not open with."""
SCRIPTS = sorted(CLIENT.rglob("*.js"))
WARM_AFTER_S = 4.0
"""Importing torch takes seconds of both cores; the page comes first."""
SECURITY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "worker-src 'self' blob:; connect-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "frame-ancestors 'self' https://huggingface.co"
)
"""Gradio needs inline scripts and eval; this is the second line, behind never parsing a token."""

DEBUGGER_EVENTS = ("stop", "choose", "example", "save", "fork", "go_on", "breaks", "remedy")


def debugger(value: View) -> gr.HTML:
    """Return the debugger: the component that owns step and position, and draws every panel from a run's payload.

    `value` is what is chosen, `news` what a run in progress says.
    """
    choices = {"kinds": list(constraints.KINDS), "remasking": list(remasking.NAMES)}
    functions = [*endpoints.SERVER_FUNCTIONS, *lessons.SERVER_FUNCTIONS]
    return component("debugger.js", value, "debugger", DEBUGGER_EVENTS, functions, news=None, choices=choices)


class Headers:
    """Adds the content security policy to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = SECURITY
                headers["x-content-type-options"] = "nosniff"
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)


def build() -> gr.Blocks:
    """Return the page."""
    page: gr.Blocks
    gr.set_static_paths([str(path) for path in SCRIPTS])  # single files, never a folder
    with gr.Blocks(title="Denoiscope", fill_width=True, analytics_enabled=False, delete_cache=(3600, 3600)) as page:
        with gr.Sidebar(width=284, elem_id="form"):
            parts = fields.place()
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab("Debugger", id="debugger"):
                shown = debugger(events.first_view())
            with gr.Tab("Tables", id="tables"):
                recorded = component("tables.js", None, "recorded", ("open",), tables.SERVER_FUNCTIONS)
        values = [parts[name] for name in form.FIELDS]
        _wire_form(page, parts, values)
        _wire_model(page, parts)
        _wire_grid(parts)
        opened = recorded.open(_of_cell, None, [tabs, *values], **AT_ONCE)
        _wire_runs(shown, parts, values, opened)
        _wire_traces(shown, parts, values)
        page.unload(_forget)
        offered(api.run, api_name="run", concurrency_limit=1)
        offered(api.diagnose, api_name="diagnose")
    return page


Update = dict[str, Any]
Answer = dict[str, Any]
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
AT_ONCE: dict[str, Any] = {**QUIET, "queue": False}
# A download begins by a click; the button that holds the file is clicked when the file is there.
DOWNLOAD = "() => document.querySelector('#saved')?.click()"


# What was said of an older text is dimmed until the new one is checked, whether or not the same is said of that.
STALE = "(...values) => { document.querySelector('#checked .ds-check-list')?.classList.add('stale'); return values; }"
FRESH = "() => { document.querySelector('#checked .ds-check-list')?.classList.remove('stale'); }"

# A mistake in the form is shown until the form is another one.
EDITED = "() => { document.dispatchEvent(new Event('denoiscope-edited')); }"


def _recipe(name: str) -> str:
    """Return a handler in the browser: a function of the client's `recipe.js`, given the form's names and values."""
    module = json.dumps(f"gradio_api/file={CLIENT / 'recipe.js'}")
    load = f"import(new URL({module}, document.baseURI).href)"
    return f"async (...values) => (await {load}).{name}({json.dumps(form.FIELDS)}, values)"


def _wire_form(page: gr.Blocks, parts: fields.Parts, values: list[Any]) -> None:
    """Fill the form from a task, and say what is wrong with a constraint while it is written."""
    page.load(None, values, values, js=_recipe("open"), **QUIET)
    parts["link"].click(None, values, None, js=_recipe("copy"), **QUIET)
    parts["task"].input(fields.of_task, parts["task"], values, **AT_ONCE)
    options = [parts[name] for name in form.OPTIONS]
    parts["kind"].change(fields.of_kind, parts["kind"], [parts["source"], parts["reading"], *options], **QUIET)
    parts["kind"].input(None, [parts["kind"], parts["source"]], parts["source"], js=fields.STARTED, **QUIET)
    # One event for all fields: of two, the check of an older text could answer last.
    changes = [page.load, *(parts[name].change for name in checking.LOOKED_AT)]
    checked = gr.on(changes, _check, values, parts["checked"], trigger_mode="always_last", js=STALE, **QUIET)
    checked.then(None, js=FRESH, **QUIET)
    gr.on([part.change for part in values], None, js=EDITED, **QUIET)
    parts["checked"].apply(_apply, values, [parts["checked"], *values], **AT_ONCE)


def _wire_model(page: gr.Blocks, parts: fields.Parts) -> None:
    """Load a model before it is run, as it is to be loaded; say what it is."""
    how = [parts[name] for name in ("model", "device", "dtype", "raw_prompt")]
    begun = parts["load"].click(_load, how, parts["facts"], **QUIET)
    parts["end_loading"].click(lambda: "Not loaded.", None, parts["facts"], cancels=[begun], **AT_ONCE)
    gr.on([page.load, parts["model"].change], _known, parts["model"], parts["facts"], **QUIET)


def _wire_grid(parts: fields.Parts) -> None:
    """Make a model of the grid, and fill the grid from a typed-in model."""
    used = [parts[name] for name in ("model", "length", "block_length", "steps", "grid_file", "grid_said")]
    parts["grid_use"].click(_use_grid, [parts["grid"], parts["grid_eos"]], used, **QUIET)
    edited = [parts[name] for name in ("grid", "grid_eos", "grid_said")]
    parts["grid_edit"].click(_edit_grid, parts["model"], edited, **QUIET)


def _wire_runs(shown: gr.HTML, parts: fields.Parts, values: list[Any], opened: Any) -> None:
    """Begin runs, stop them, and take the breakpoints at which they pause.

    Args:
        shown: the debugger.
        parts: of the form.
        values: those of its parts that hold the configuration.
        opened: what fills the form from a cell of the tables, if it succeeds.
    """
    started = [
        shown.fork(_fork, shown, shown, **QUIET),
        shown.go_on(_go_on, shown, shown, **QUIET),
        shown.remedy(_remedy, shown, shown, **QUIET),
        parts["run"].click(_run, [shown, *values], shown, **QUIET),
        opened.success(_run, [shown, *values], shown, **QUIET),
        parts["run_beside"].click(_run_beside, [shown, parts["beside"]], shown, **QUIET),
    ]
    shown.stop(_stop, shown, shown, cancels=started, **AT_ONCE)
    shown.breaks(_breaks, shown, shown, **AT_ONCE)


def _wire_traces(shown: gr.HTML, parts: fields.Parts, values: list[Any]) -> None:
    """Choose what is shown: runs, examples, files; and save."""
    saved = gr.DownloadButton("Saved", elem_id="saved", elem_classes="ds-hidden")
    shown.choose(_choose, shown, shown, **AT_ONCE)
    shown.example(_example, shown, [shown, *values], **AT_ONCE)
    shown.save(_save, shown, [shown, saved], **AT_ONCE).then(None, js=DOWNLOAD, **QUIET)
    parts["open"].upload(_upload, [shown, parts["open"]], shown, **AT_ONCE)


# What Gradio hands over, as `app.checking`, `app.running` and `app.events` take it.


def _check(*values: Any) -> Answer:
    return checking.check(values)


def _apply(data: gr.EventData, *values: Any) -> list[Any]:
    try:
        return [gr.skip(), *checking.applied(values, getattr(data, "changes", None))]
    except InputError as error:
        refused = {**checking.check(values), "message": endpoints.message(error)}
        return [refused, *[gr.skip()] * len(values)]


def _load(*how: Any) -> Iterator[str]:
    yield from running.load(*how)


def _use_grid(rows: list[list[Any]], eos: str) -> list[Any]:
    try:
        text, found = grid.read(rows, eos)
    except InputError as error:
        return [*[gr.skip()] * 5, f"✕ {error.problem} {error.remedy}"]
    length = found.facts["length"]
    scaled = " Rows were scaled to sum to 1." if found.facts["rows_normalised"] else ""
    said = f"{length} positions, {found.vocabulary.size} tokens, in use.{scaled}"
    # The model's name is the table itself, so that a link to these settings holds it.
    return [f"table:{text}", length, length, length, grid.save(text, events.folder()), said]


def _edit_grid(model: str) -> list[Any]:
    try:
        return [*grid.cells(str(model or "")), ""]
    except InputError as error:
        return [gr.skip(), gr.skip(), f"✕ {error.problem} {error.remedy}"]


def _known(model: Any) -> str:
    return running.known(model)


def _words(data: gr.EventData, *names: str) -> dict[str, Any]:
    """Return what the browser said with an event; it may say anything."""
    return {name: getattr(data, name, None) for name in names}


def _news(value: View) -> Update:
    """Tell of a run in progress; beside the debugger's value, or a step could take the place of what is chosen."""
    return gr.update(news=value)


def _run(now: View, request: gr.Request, *values: Any) -> Iterator[Update]:
    yield from map(_news, running.run(now, request.session_hash, *values))


def _run_beside(now: View, change: str, request: gr.Request) -> Iterator[Update]:
    yield from map(_news, running.run_beside(now, request.session_hash, change))


def _fork(now: View, data: gr.EventData, request: gr.Request) -> Iterator[Update]:
    words = _words(data, "run", "step", "edits", "reuse", "instant")
    yield from map(_news, running.fork(now, request.session_hash, words))


def _go_on(now: View, data: gr.EventData, request: gr.Request) -> Iterator[Update]:
    yield from map(_news, running.go_on(now, request.session_hash, getattr(data, "run", None)))


def _remedy(now: View, data: gr.EventData, request: gr.Request) -> Iterator[Update]:
    yield from map(_news, running.remedy(now, request.session_hash, _words(data, "run", "changes")))


def _stop(now: View, request: gr.Request) -> Update:
    return _news(running.stop(now, request.session_hash))


def _breaks(now: View, data: gr.EventData) -> View:
    return running.set_breaks(now, getattr(data, "texts", None))


def _choose(now: View, data: gr.EventData) -> View:
    return events.choose(now, _words(data, "a", "b"))


def _example(now: View, data: gr.EventData) -> list[Any]:
    name = getattr(data, "name", None)
    after = events.show_example(name, now)
    return [after, *(events.example_form(name, after) or [gr.skip()] * len(form.FIELDS))]


def _of_cell(data: gr.EventData) -> list[Any]:
    try:
        config = tables.config_of(_words(data, "task", "arm", "temperature", "steps", "problem"))
    except InputError as error:
        raise gr.Error(f"{error.problem} {error.remedy}") from error
    return [gr.update(selected="debugger"), *form.form_of(config, None)]


def _save(now: View, data: gr.EventData) -> tuple[View, Any]:
    after, path = events.save_trace(now, "b" if getattr(data, "side", None) == "b" else "a")
    return after, path or gr.skip()


def _upload(now: View, path: str, request: gr.Request) -> View:
    return events.open_trace(now, request.session_hash, path)


def _forget(request: gr.Request) -> None:
    sessions.RUNS.free(request.session_hash)


def serve(**overrides: Any) -> tuple[Any, str, str]:
    """Launch the page; `overrides` are of `gr.Blocks.launch`."""
    page = build()
    page.queue(default_concurrency_limit=2, max_size=32)
    later = threading.Timer(WARM_AFTER_S, warm)
    later.daemon = True
    later.start()
    return page.launch(
        **{
            "server_port": int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
            "ssr_mode": False,
            "run_history": False,
            "max_file_size": events.UPLOAD_BYTES,
            "footer_links": ["settings"],
            "theme": theme(),
            "head": head(),
            "css_paths": [CLIENT / "style.css", CLIENT / "tables.css", CLIENT / "lessons" / "lessons.css"],
            "app_kwargs": {"middleware": [Middleware(Headers)]},
            **overrides,
        }
    )


def head() -> str:
    """Return what the page's head needs before Gradio's scripts run, and the modules that are fetched beside those."""
    # The fragment is kept before the debugger writes its focus there.
    scripts = f"{(CLIENT / 'stream.js').read_text()}window.denoiscopeFragment = location.hash;"
    # A module is found when the one that imports it has come, so without this they would come one row after the other.
    opened = [path for path in SCRIPTS if path.parent.name in ("client", "panels") and path.stem not in LATER]
    links = "".join(f'<link rel="modulepreload" href="{html.escape(f"gradio_api/file={path}")}">' for path in opened)
    return f"<script>{scripts}</script>{links}"


def warm() -> None:
    """Take a step of the embedded model and open each lesson, which loads what the first of them needs."""
    from app.lessons import texts
    from engine import decode, preparation
    from engine.trace import Config

    config = Config("", "regex", "[0-9]+", length=4, steps=1, block_length=4, temperature=1.0)
    denoiser, header = preparation.prepare(config, load=loading.load)
    next(decode.denoise(denoiser, header.automaton, header.config))
    for lesson in texts.lessons():
        lessons.get_scene({"lesson": lesson.name})


def theme() -> gr.themes.Base:
    """Return a quiet theme: ink on paper; colour is kept for what the debugger means by it."""
    return gr.themes.Base(
        primary_hue="neutral",
        secondary_hue="neutral",
        neutral_hue="gray",
        spacing_size="sm",
        radius_size="sm",
        text_size="sm",
        font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
        font_mono=["ui-monospace", "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", "monospace"],
    ).set(
        # Gradio's own grey is 2.5:1 on white; labels are read, so they get 4.5:1 and more.
        block_title_text_color="*neutral_600",
        block_title_text_color_dark="*neutral_300",
        block_label_text_color="*neutral_600",
        block_label_text_color_dark="*neutral_300",
        block_info_text_color="*neutral_500",
        block_info_text_color_dark="*neutral_400",
    )
