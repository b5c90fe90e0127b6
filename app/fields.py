"""The form's components, in the order in which they stand; their values are a configuration's (`app.form`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gradio as gr

from app import checking, events, form, grid, running
from app.components import component
from engine import constraints, remasking
from engine.tasks import TASKS, Task

SAMPLERS = ("midpoint", "tree", "chain", "map", "independent", "local", "reject", "lookahead")
TABLES = Path(__file__).parents[1] / "assets" / "tables"

EXAMPLES = json.dumps({name: kind.example for name, kind in constraints.KINDS.items()})
STARTED = f"""(kind, source) => {{
  const examples = {EXAMPLES};
  return kind in examples && (!source?.trim() || Object.values(examples).includes(source)) ? examples[kind] : source;
}}"""
"""What the source begins with when its kind is chosen: an example, unless the user wrote something.

In the browser, since a reply of the server could take the place of what is typed meanwhile.
"""

DTYPES = ("auto", "float32", "bfloat16", "float16")
Parts = dict[str, Any]
"""Components by name; those of `app.form.FIELDS` hold the configuration."""


def place() -> Parts:
    """Place the whole form, filled with what the page opens with."""
    first = events.shown_form(events.first_view())
    value = dict(zip(form.FIELDS, first, strict=True)) if first else {}
    gr.HTML('<h1 class="ds-brand">Denoiscope</h1>', elem_id="brand")
    parts = _request(value) | _constraint(value)
    with gr.Row(elem_classes="ds-run"):
        parts["run"] = gr.Button("Run", variant="primary", elem_id="run", size="md")
    return parts | _canvas(value) | _decoding(value) | _settings(value) | _model(value) | _beside() | _trace()


def _request(value: Parts) -> Parts:
    tasks = [(task.title, task.name) for task in TASKS]
    return {
        "task": gr.Dropdown(tasks, label="Task", value=None, elem_id="task", visible=bool(tasks)),
        "prompt": gr.Textbox(value.get("prompt", ""), label="Prompt", lines=2, max_lines=6, elem_id="prompt"),
    }


def _constraint(value: Parts) -> Parts:
    kind = value.get("kind", "regex")
    kinds = [*((known.label, known.name) for known in constraints.KINDS.values()), ("None", "none")]
    source: dict[str, Any] = {"label": "Source", "info": form.hint(kind), "lines": 2, "max_lines": 12}
    return {
        "kind": gr.Radio(kinds, value=kind, label="Constraint", elem_id="kind"),
        "source": gr.Textbox(value.get("source", ""), elem_id="source", **source),
        "checked": component("check.js", None, "checked", ("apply",), [checking.get_reading, checking.get_remedies]),
        **_options(value),
    }


def _options(value: Parts) -> Parts:
    """Place one field for each option that some kind of constraint is read with; those of the chosen kind show."""
    chosen = form.options_of(value.get("kind", "regex"))
    parts: Parts = {}
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


def of_kind(kind: str) -> list[Any]:
    """Return what a kind changes: the hint on its source, whether it has options, and which."""
    chosen = form.options_of(kind)
    shown = (
        gr.update(visible=name in chosen, label=chosen.get(name, option).label) for name, option in form.OPTIONS.items()
    )
    return [gr.update(info=form.hint(kind)), gr.update(visible=bool(chosen)), *shown]


def _number(value: Any, label: str, elem_id: str, **more: Any) -> gr.Number:
    return gr.Number(value, label=label, elem_id=elem_id, min_width=60, **more)


def _canvas(value: Parts) -> Parts:
    with gr.Row():
        return {
            "length": _number(value.get("length", 32), "Length", "length", precision=0),
            "steps": _number(value.get("steps", 16), "Steps", "steps", precision=0),
            "block_length": _number(value.get("block_length", 32), "Block", "block", precision=0),
        }


def _decoding(value: Parts) -> Parts:
    with gr.Row():
        parts: Parts = {
            "temperature": _number(value.get("temperature", 1.0), "Temperature", "temperature", step=0.1),
            "seed": _number(value.get("seed", 0), "Seed", "seed", precision=0),
        }
    parts["confidence"] = gr.Radio(
        [("Mar, by q", "mar"), ("Mf, by p", "mf")],
        value=value.get("confidence", "mar"),
        label="Confidence that commits",
        elem_id="confidence",
    )
    choices = {"sampler": (SAMPLERS, "midpoint", 5), "remasking": (remasking.NAMES, "low_confidence", 6)}
    with gr.Row():
        for name, (known, usual, scale) in choices.items():
            given = {"value": value.get(name, usual), "label": name.capitalize(), "scale": scale, "min_width": 80}
            parts[name] = gr.Dropdown(list(known), elem_id=name, **given)
    return parts


def _settings(value: Parts) -> Parts:
    """Place what the published loops can be told besides; folded, since most runs leave it alone."""
    labels = {
        "top_p": "Top-p",
        "top_k": "Top-k",
        "alg_temp": "alg_temp",
        "threshold": "Threshold",
        "factor": "Factor",
        "cfg_scale": "Guidance",
        "reject_budget": "Reject budget",
        "path_tries": "Path tries",
        "logits_eos_inf": "Never draw EOS (logits_eos_inf)",
        "confidence_eos_eot_inf": "Commit EOS last (confidence_eos_eot_inf)",
        "upstream_bugs": "Repeat LLaDA's bugs (upstream_bugs)",
    }
    parts: Parts = {}
    with gr.Accordion("More settings", open=False, elem_id="settings"):
        with gr.Row():
            for name, kind in form.SETTINGS.items():
                elem_id = f"set-{name}"
                if name in form.OPEN:
                    text: dict[str, Any] = {"placeholder": "off", "elem_id": elem_id, "min_width": 60, "max_lines": 1}
                    parts[name] = gr.Textbox(value.get(name, ""), label=labels[name], **text)
                elif kind is not bool:
                    whole: dict[str, Any] = {"precision": 0} if kind is int else {"step": 0.1}
                    parts[name] = _number(value.get(name, form.DEFAULTS[name]), labels[name], elem_id, **whole)
        for name, kind in form.SETTINGS.items():
            if kind is bool:
                parts[name] = gr.Checkbox(bool(value.get(name)), label=labels[name], elem_id=f"set-{name}")
    return parts


def _model(value: Parts) -> Parts:
    tables = [f"table:{os.path.relpath(path)}" for path in sorted(TABLES.glob("*.json"))]
    info = "embedded, a folder, an id on the hub, or table:FILE"
    told = "Committed before the first step: POSITION=TEXT, one a line"
    model = value.get("model", "embedded")
    given: dict[str, Any] = {"allow_custom_value": True, "elem_id": "model"}
    parts: Parts = {"model": gr.Dropdown(["embedded", *tables], value=model, label="Model", info=info, **given)}
    with gr.Accordion("How it is loaded", open=False, elem_id="loading"):
        with gr.Row():
            devices: dict[str, Any] = {"allow_custom_value": True, "min_width": 80, "elem_id": "device"}
            parts["device"] = gr.Dropdown(["auto", "cpu", "cuda", "mps"], value="auto", label="Device", **devices)
            parts["dtype"] = gr.Dropdown(list(DTYPES), value="auto", label="dtype", min_width=80, elem_id="dtype")
        parts["raw_prompt"] = gr.Checkbox(label="No chat template (base models)", elem_id="raw-prompt")
        with gr.Row():
            parts["load"] = gr.Button("Load", size="md", elem_id="load", min_width=60)
            parts["end_loading"] = gr.Button("Cancel", size="md", elem_id="end-loading", min_width=60)
        loaded: dict[str, Any] = {"interactive": False, "lines": 2, "max_lines": 6, "elem_id": "model-facts"}
        parts["facts"] = gr.Textbox(label="Loaded model", **loaded)
    with gr.Accordion("A mean field typed in", open=False, elem_id="typed"):
        about = "Tokens in the first row, then the probabilities of each position"
        shape: dict[str, Any] = {"type": "array", "headers": None, "interactive": True, "show_label": True}
        parts["grid"] = gr.Dataframe(grid.START, label=about, elem_id="grid", **shape)
        parts["grid_eos"] = gr.Textbox(label="EOS, one of the tokens or nothing", max_lines=1, elem_id="grid-eos")
        with gr.Row():
            parts["grid_use"] = gr.Button("Use it", size="md", elem_id="grid-use", min_width=60)
            parts["grid_edit"] = gr.Button("Edit the model", size="md", elem_id="grid-edit", min_width=60)
            parts["grid_file"] = gr.DownloadButton("File", size="md", elem_id="grid-file", min_width=60)
        parts["grid_said"] = gr.Textbox(show_label=False, interactive=False, elem_id="grid-said", max_lines=4)
    pins: dict[str, Any] = {"info": told, "lines": 1, "max_lines": 4, "elem_id": "pins"}
    parts["pins"] = gr.Textbox(value.get("pins", ""), label="Pins", **pins)
    return parts


def _beside() -> Parts:
    gr.HTML('<h2 class="ds-section">Compare with the shown run</h2>')
    changes = list(running.BESIDE)
    return {
        "beside": gr.Dropdown(changes, value=changes[0], label="What changes", elem_id="change"),
        "run_beside": gr.Button("Run beside it", elem_id="run-beside", size="md"),
    }


def _trace() -> Parts:
    gr.HTML('<h2 class="ds-section">Keep and share</h2>')
    files: dict[str, Any] = {"file_types": [".trace"], "type": "filepath"}
    parts = {
        "open": gr.UploadButton("Open a trace", elem_id="open", size="md", **files),
        "link": gr.Button("Link to these settings", elem_id="link", size="md"),
    }
    gr.HTML('<div id="recipe-note" class="ds ds-note ds-link-note"></div>')
    return parts


def of_task(name: str) -> list[Any]:
    """Return the form's values for a task; what a task leaves open stays as it is."""
    task = next((task for task in TASKS if task.name == name), None)
    given = _given(task) if task else {}
    return [given.get(field, gr.skip()) for field in form.FIELDS]


def _given(task: Task) -> Parts:
    return {
        "prompt": task.prompt,
        "kind": task.kind,
        "source": task.source if isinstance(task.source, str) else "\n".join(task.source),
        "length": task.length,
        "block_length": task.length,
        "steps": task.steps,
        "model": "embedded",
        "pins": "",
        **{name: "" if name in form.OPEN else form.DEFAULTS[name] for name in form.SETTINGS},
        **{name: option.default for name, option in form.OPTIONS.items()},
    }
