"""The form's components, in the order in which they stand; their values are a configuration's (`app.form`)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gradio as gr

from app import checking, events, form, running
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
    return parts | _canvas(value) | _decoding(value) | _model(value) | _beside() | _trace()


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
        "checked": component("check.js", None, "checked", ("apply",), [checking.get_reading]),
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


def _model(value: Parts) -> Parts:
    tables = [f"table:{os.path.relpath(path)}" for path in sorted(TABLES.glob("*.json"))]
    info = "embedded, a folder, an id on the hub, or table:FILE"
    told = "Committed before the first step: POSITION=TEXT, one a line"
    model = value.get("model", "embedded")
    given: dict[str, Any] = {"allow_custom_value": True, "elem_id": "model"}
    return {
        "model": gr.Dropdown(["embedded", *tables], value=model, label="Model", info=info, **given),
        "pins": gr.Textbox(value.get("pins", ""), label="Pins", info=told, lines=1, max_lines=4, elem_id="pins"),
    }


def _beside() -> Parts:
    gr.HTML('<h2 class="ds-section">Compare with the shown run</h2>')
    changes = list(running.BESIDE)
    return {
        "beside": gr.Dropdown(changes, value=changes[0], label="What changes", elem_id="change"),
        "run_beside": gr.Button("Run beside it", elem_id="run-beside", size="md"),
    }


def _trace() -> Parts:
    gr.HTML('<h2 class="ds-section">Trace</h2>')
    files: dict[str, Any] = {"file_types": [".trace"], "type": "filepath"}
    return {"open": gr.UploadButton("Open a trace", elem_id="open", size="md", **files)}


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
        **{name: option.default for name, option in form.OPTIONS.items()},
    }
