"""What a program may ask of the page over HTTP, by `gradio_client` or without it; no other event has a name there."""

from __future__ import annotations

import dataclasses
from typing import Any

from app import loading
from app.endpoints import message
from app.running import configured
from engine.errors import ConfigError, InputError
from engine.trace import Config, Trace

CELLS = 1 << 16
"""Largest `length × steps` of a run over HTTP; longer ones belong on the command line."""


def run(config: dict[str, Any]) -> dict[str, Any]:
    """Run a configuration to its end.

    Args:
        config: fields of `engine.trace.Config` that differ from its defaults, among them `kind` and `source`.

    Returns:
        `text`, `accepted`, `steps`, `log_partition` before each step in nats, null where nothing is accepted; or
        `error` with what is wrong and what to do.
    """
    try:
        # It brings torch and compiled loops, which the page does not need to open.
        from engine import decode, preparation

        asked = _config(config)
        denoiser, header = preparation.prepare(asked, load=loading.load)
        made = Trace(header, tuple(decode.denoise(denoiser, header.automaton, header.config)))
    except InputError as error:
        return {"error": message(error)}
    told = [float(step.log_partition) for step in made.steps]
    finite = [value if value > float("-inf") else None for value in told]
    return {"text": made.text, "accepted": made.accepted, "steps": len(made.steps), "log_partition": finite}


def diagnose(config: dict[str, Any]) -> dict[str, Any]:
    """Diagnose a configuration before it runs: `findings` as the page and the command line have them, or `error`."""
    try:
        from engine import preparation
        from engine.diagnosis import static
        from viz import payload

        asked = _config(config)
        preparation.check(asked)
        found = static.findings(asked, loading.load(asked.model).vocabulary)
    except InputError as error:
        return {"error": message(error)}
    return {"findings": [payload.plain(finding.plain()) for finding in found]}


def _config(config: object) -> Config:
    if not isinstance(config, dict):
        raise ConfigError("The configuration is no object.", "Give its fields by their names.")
    usual = Config("", "regex", "")
    asked = configured(usual, {"temperature": 1.0, **config})
    if asked.length * asked.steps > CELLS:
        raise ConfigError(
            f"{asked.length} positions and {asked.steps} steps are more than {CELLS} cells.", "Ask for fewer."
        )
    return dataclasses.replace(asked, source=asked.source if asked.kind else None)
