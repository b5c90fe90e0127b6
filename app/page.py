"""What is on the page and which event each part raises; computes nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator  # Gradio reads the annotations of handlers
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Before gradio is imported: neither it nor the hub client may call out.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import gradio as gr
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware

from app import endpoints, events, form, running, sessions
from app.views import View
from engine import constraints, remasking

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLIENT = Path(__file__).parent / "client"
SCRIPTS = sorted(CLIENT.rglob("*.js"))
WARM_AFTER_S = 4.0
"""Importing torch takes seconds of both cores; the page comes first."""
SAMPLERS = ["midpoint", "tree", "chain", "map", "independent", "local", "reject"]
SECURITY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "worker-src 'self' blob:; connect-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "frame-ancestors 'self' https://huggingface.co"
)
"""Gradio needs inline scripts and eval; this is the second line, behind never parsing a token."""

ON_LOAD = """
import(new URL(props.module, document.baseURI).href)
  .then(module => module.mount({element, props, server, watch, trigger}))
  .catch(error => { element.textContent = 'The debugger could not start: ' + error; });
// Events that Python listens to: 'stop' 'choose' 'example' 'save' 'fork' 'go_on' 'breaks' 'remedy'
"""


def debugger(value: View) -> gr.HTML:
    """Return the debugger: the component that owns step and position, and draws every panel from a run's payload.

    Not a subclass: Gradio would write a stub file beside this module for it.
    """
    return gr.HTML(
        value=value,
        apply_default_css=False,
        elem_id="debugger",
        html_template='<div class="ds"></div>',  # templates hold no data
        js_on_load=ON_LOAD,
        server_functions=list(endpoints.SERVER_FUNCTIONS),
        module=f"gradio_api/file={CLIENT / 'debugger.js'}",
        choices={"kinds": list(constraints.KINDS), "remasking": list(remasking.NAMES)},
        graphviz=f"gradio_api/file={CLIENT / 'vendor' / 'graphviz.js'}",
    )


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
            fields = _form()
        shown = debugger(events.first_view())
        download = gr.DownloadButton("Saved", elem_id="saved", elem_classes="ds-hidden")
        _wire(page, shown, fields, download)
    return page


def _form() -> dict[str, Any]:
    """Place the form; return its parts by name."""
    first = events.shown_form(events.first_view())
    value = dict(zip(form.FIELDS, first, strict=True)) if first else {}
    parts: dict[str, Any] = {}
    gr.HTML('<h1 class="ds-brand">Denoiscope</h1>', elem_id="brand")
    tasks = _tasks()
    parts["task"] = gr.Dropdown(
        [(task.title, task.name) for task in tasks],
        label="Task",
        value=None,
        elem_id="task",
        visible=bool(tasks),
    )
    parts["prompt"] = gr.Textbox(value.get("prompt", ""), label="Prompt", lines=2, max_lines=6, elem_id="prompt")
    parts["kind"] = gr.Radio(
        [*((kind.label, kind.name) for kind in constraints.KINDS.values()), ("None", "none")],
        value=value.get("kind", "regex"),
        label="Constraint",
        elem_id="kind",
    )
    parts["source"] = gr.Textbox(
        value.get("source", ""),
        label="Source",
        info=form.hint(value.get("kind", "regex")),
        lines=2,
        max_lines=12,
        elem_id="source",
    )
    parts["checked"] = gr.HTML("", elem_id="checked")
    parts |= _options(value)
    with gr.Row(elem_classes="ds-run"):
        parts["run"] = gr.Button("Run", variant="primary", elem_id="run", size="md")
    with gr.Row():
        parts["length"] = gr.Number(
            value.get("length", 32), label="Length", precision=0, elem_id="length", min_width=60
        )
        parts["steps"] = gr.Number(value.get("steps", 16), label="Steps", precision=0, elem_id="steps", min_width=60)
        parts["block_length"] = gr.Number(
            value.get("block_length", 32), label="Block", precision=0, elem_id="block", min_width=60
        )
    with gr.Row():
        parts["temperature"] = gr.Number(
            value.get("temperature", 1.0),
            label="Temperature",
            step=0.1,
            elem_id="temperature",
            min_width=60,
        )
        parts["seed"] = gr.Number(value.get("seed", 0), label="Seed", precision=0, elem_id="seed", min_width=60)
    parts["confidence"] = gr.Radio(
        [("Mar, by q", "mar"), ("Mf, by p", "mf")],
        value=value.get("confidence", "mar"),
        label="Confidence that commits",
        elem_id="confidence",
    )
    with gr.Row():
        parts["sampler"] = gr.Dropdown(
            SAMPLERS,
            value=value.get("sampler", "midpoint"),
            label="Sampler",
            elem_id="sampler",
            min_width=80,
            scale=5,
        )
        parts["remasking"] = gr.Dropdown(
            list(remasking.NAMES),
            value=value.get("remasking", "low_confidence"),
            label="Remasking",
            elem_id="remasking",
            min_width=80,
            scale=6,
        )
    parts["model"] = gr.Dropdown(
        _models(),
        value=value.get("model", "embedded"),
        label="Model",
        info="embedded, a folder, an id on the hub, or table:FILE",
        allow_custom_value=True,
        elem_id="model",
    )
    parts["pins"] = gr.Textbox(
        value.get("pins", ""),
        label="Pins",
        info="Committed before the first step: POSITION=TEXT, one a line",
        lines=1,
        max_lines=4,
        elem_id="pins",
    )
    gr.HTML('<h2 class="ds-section">Compare with the shown run</h2>')
    parts["beside"] = gr.Dropdown(
        list(running.BESIDE), value=next(iter(running.BESIDE)), label="What changes", elem_id="change"
    )
    parts["run_beside"] = gr.Button("Run beside it", elem_id="run-beside", size="md")
    gr.HTML('<h2 class="ds-section">Trace</h2>')
    parts["open"] = gr.UploadButton("Open a trace", file_types=[".trace"], type="filepath", elem_id="open", size="md")
    return parts


def _options(value: dict[str, Any]) -> dict[str, Any]:
    """Place one field for each option that some kind of constraint is read with; those of the chosen kind show."""
    chosen = form.options_of(value.get("kind", "regex"))
    parts: dict[str, Any] = {}
    with gr.Accordion("How it is read", open=False, visible=bool(chosen), elem_id="reading") as parts["reading"]:
        for name, option in form.OPTIONS.items():
            given: dict[str, Any] = {
                "value": value.get(name, option.default),
                "label": chosen.get(name, option).label,
                "visible": name in chosen,
                "elem_id": f"reading-{name}",
            }
            if option.choices:
                parts[name] = gr.Dropdown(list(option.choices), **given)
            elif isinstance(option.default, bool):
                parts[name] = gr.Checkbox(**given)
            else:
                parts[name] = gr.Number(precision=0, **given)
    return parts


def _kind_chosen(kind: str) -> list[Any]:
    """Return what a kind changes: the hint on its source, whether it has options, and which."""
    chosen = form.options_of(kind)
    shown = (
        gr.update(visible=name in chosen, label=chosen.get(name, option).label) for name, option in form.OPTIONS.items()
    )
    return [gr.update(info=form.hint(kind)), gr.update(visible=bool(chosen)), *shown]


def _wire(page: gr.Blocks, shown: gr.HTML, parts: dict[str, Any], download: gr.DownloadButton) -> None:
    fields = [parts[name] for name in form.FIELDS]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    def run(now: View, request: gr.Request, *values: Any) -> Iterator[View]:
        yield from running.run(now, request.session_hash, *values)

    def run_beside(now: View, change: str, request: gr.Request) -> Iterator[View]:
        yield from running.run_beside(now, request.session_hash, change)

    def fork(now: View, data: gr.EventData, request: gr.Request) -> Iterator[View]:
        words = {name: getattr(data, name, None) for name in ("run", "step", "edits", "reuse", "instant")}
        yield from running.fork(now, request.session_hash, words)

    def go_on(now: View, data: gr.EventData, request: gr.Request) -> Iterator[View]:
        yield from running.go_on(now, request.session_hash, getattr(data, "run", None))

    def remedy(now: View, data: gr.EventData, request: gr.Request) -> Iterator[View]:
        words = {name: getattr(data, name, None) for name in ("run", "changes")}
        yield from running.remedy(now, request.session_hash, words)

    def breaks(now: View, data: gr.EventData) -> View:
        return running.set_breaks(now, getattr(data, "texts", None))

    shown.breaks(breaks, shown, shown, queue=False, **quiet)
    started = [
        shown.fork(fork, shown, shown, **quiet),
        shown.go_on(go_on, shown, shown, **quiet),
        shown.remedy(remedy, shown, shown, **quiet),
        parts["run"].click(run, [shown, *fields], shown, **quiet),
        parts["run_beside"].click(run_beside, [shown, parts["beside"]], shown, **quiet),
    ]

    def stop(now: View, request: gr.Request) -> View:
        return running.stop(now, request.session_hash)

    shown.stop(stop, shown, shown, cancels=started, queue=False, **quiet)

    def choose(now: View, data: gr.EventData) -> View:
        return events.choose(now, {side: getattr(data, side, None) for side in ("a", "b")})

    def example(now: View, data: gr.EventData) -> list[Any]:
        after = events.show_example(getattr(data, "name", None), now)
        return [after, *(events.shown_form(after) or [gr.skip()] * len(fields))]

    def save(now: View, data: gr.EventData) -> tuple[View, Any]:
        after, path = events.save_trace(now, "b" if getattr(data, "side", None) == "b" else "a")
        return after, path or gr.skip()

    def upload(now: View, path: str, request: gr.Request) -> View:
        return events.open_trace(now, request.session_hash, path)

    shown.choose(choose, shown, shown, queue=False, **quiet)
    shown.example(example, shown, [shown, *fields], queue=False, **quiet)
    # A download begins by a click; the button that holds the file is clicked when the file is there.
    shown.save(save, shown, [shown, download], queue=False, **quiet).then(
        None, js="() => document.querySelector('#saved')?.click()", **quiet
    )
    parts["open"].upload(upload, [shown, parts["open"]], shown, queue=False, **quiet)
    _wire_form(parts, quiet)
    parts["task"].input(_fill, parts["task"], fields, queue=False, **quiet)
    page.unload(_forget)


def _wire_form(parts: dict[str, Any], quiet: dict[str, Any]) -> None:
    """Say what is wrong with a constraint while it is written."""
    options = [parts[name] for name in form.OPTIONS]
    parts["kind"].change(_kind_chosen, parts["kind"], [parts["source"], parts["reading"], *options], **quiet)
    parts["kind"].input(form.started, [parts["kind"], parts["source"]], parts["source"], **quiet)
    written = [parts["kind"], parts["source"], *options]
    for part in written:
        part.change(form.checked, written, parts["checked"], trigger_mode="always_last", **quiet)


def _forget(request: gr.Request) -> None:
    sessions.RUNS.free(request.session_hash)


def _fill(name: str) -> list[Any]:
    """Put a task into the form; what a task leaves open stays as it is."""
    known = {task.name: task for task in _tasks()}
    task = known.get(name)
    if task is None:
        return [gr.skip()] * len(form.FIELDS)
    source = task.source if isinstance(task.source, str) else "\n".join(task.source)
    given = {
        "prompt": task.prompt,
        "kind": task.kind,
        "source": source,
        "length": task.length,
        "block_length": task.length,
        "steps": task.steps,
        "model": "embedded",
        "pins": "",
        **{name: option.default for name, option in form.OPTIONS.items()},
    }
    return [given.get(field, gr.skip()) for field in form.FIELDS]


def _tasks() -> tuple[Any, ...]:
    from engine.tasks import TASKS

    return TASKS


def _models() -> list[str]:
    tables = sorted((Path(__file__).parents[1] / "assets" / "tables").glob("*.json"))
    return ["embedded", *(f"table:{os.path.relpath(path)}" for path in tables)]


def serve(**overrides: Any) -> tuple[Any, str, str]:
    """Launch the page; `overrides` are of `gr.Blocks.launch`."""
    page = build()
    page.queue(default_concurrency_limit=2, max_size=32)
    warm = threading.Timer(WARM_AFTER_S, _warm)
    warm.daemon = True
    warm.start()
    return page.launch(
        **{
            "server_port": int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
            "ssr_mode": False,
            "run_history": False,
            "max_file_size": events.UPLOAD_BYTES,
            "footer_links": ["settings"],
            "theme": theme(),
            "css_paths": [CLIENT / "style.css"],
            "app_kwargs": {"middleware": [Middleware(Headers)]},
            **overrides,
        }
    )


def _warm() -> None:
    """Import what the first run needs, while the user reads."""
    from engine import preparation  # noqa: F401
    from engine.models import embedded  # noqa: F401


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
