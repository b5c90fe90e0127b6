"""The form's values and a configuration are the same thing, written differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError
from engine.trace import Config

if TYPE_CHECKING:
    from engine.vocabulary import Vocabulary

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


def _whole(name: str, value: Any) -> int:
    if value is None or int(value) != value:
        raise ConfigError(
            f"The {name} is {'empty' if value is None else value}, and it must be a whole number.",
            "Write one in its field.",
        )
    return int(value)
