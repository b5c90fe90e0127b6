"""The form's values and a configuration are the same thing, written differently."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from engine import constraints
from engine.errors import ConfigError
from engine.trace import Config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.constraints import Option
    from engine.vocabulary import Vocabulary

OPTIONS = {option.name: option for kind in constraints.KINDS.values() for option in kind.options}
"""Every option that some kind of constraint is read with; those of one name share a field."""
SETTINGS: dict[str, type] = {
    "top_p": float,
    "top_k": int,
    "alg_temp": float,
    "threshold": float,
    "factor": float,
    "cfg_scale": float,
    "reject_budget": int,
    "path_tries": int,
    "logits_eos_inf": bool,
    "confidence_eos_eot_inf": bool,
    "upstream_bugs": bool,
}
"""Settings of the published loops that most runs leave alone, and their types; an empty field is the default."""
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
    *SETTINGS,
    *OPTIONS,
)
"""Names of the form's fields, in the order in which their values come."""
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Config)}
OPEN = tuple(name for name in SETTINGS if DEFAULTS[name] is None)
"""Settings that are numbers or nothing."""


def hint(kind: str) -> str:
    """Return what is to be written as source of a kind of constraint."""
    return constraints.KINDS[kind].description if kind in constraints.KINDS else "Every text is accepted"


def options_of(kind: str) -> dict[str, Option]:
    """Return the options that a kind of constraint is read with, by name."""
    known = constraints.KINDS.get(kind)
    return {option.name: option for option in known.options} if known else {}


def reading_of(kind: str, given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the options of a kind that differ from its defaults.

    Args:
        kind: of the constraint.
        given: values of the fields, those of `OPTIONS` among them.

    Raises:
        ConfigError: a number is missing or is not whole, or a choice is none of the option's.
    """
    values = {name: _option(option, given[name]) for name, option in options_of(kind).items()}
    return tuple((name, value) for name, value in values.items() if value != OPTIONS[name].default)


def _option(option: Option, value: Any) -> Any:
    if option.choices and value not in option.choices:
        raise ConfigError(f"{option.label} can't be {value!r}.", f"Choose one of {', '.join(option.choices)}.")
    if isinstance(option.default, bool):
        return bool(value)
    return value if option.choices else _whole(option.label[0].lower() + option.label[1:], value)


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
    for name, kind in SETTINGS.items():
        form[name] = _setting(name, kind, form[name])
    form["prompt"] = form["prompt"] or ""
    form["model"] = (form["model"] or "").strip()
    if form["kind"] == "none":
        form["kind"] = form["source"] = None
    elif form["kind"] == "choices":
        form["source"] = tuple(line for line in (form["source"] or "").splitlines() if line)
    else:
        form["source"] = form["source"] or ""
    options = {name: form.pop(name) for name in OPTIONS}
    form["reading"] = reading_of(form["kind"] or "none", options)
    pins = [line for line in (form.pop("pins") or "").splitlines() if line.strip()]
    return Config(**form), pins


def _setting(name: str, kind: type, value: Any) -> Any:
    if value is None or (isinstance(value, str) and not value.strip()):
        return DEFAULTS[name]
    if kind is bool:
        return bool(value)
    words = name.replace("_", " ")
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"The {words} can't be {value!r}.", "Write a number, or leave it empty.") from error
    return _whole(words, number) if kind is int else number


def form_of(config: Config, vocabulary: Vocabulary | None) -> tuple[Any, ...]:
    """Return the form's values for a configuration, in the order of `FIELDS`; pins need their vocabulary."""
    values = {name: getattr(config, name) for name in FIELDS if name not in OPTIONS}
    # A field of text can be empty; one of numbers shows 0 where there is none.
    values |= {name: "" if values[name] is None else str(values[name]) for name in OPEN}
    texts = [(i, _written(vocabulary, token_id)) for i, token_id in config.pins]
    values["pins"] = "\n".join(f"{i}={text}" for i, text in texts)
    if config.kind is None:
        values["kind"], values["source"] = "none", ""
    elif isinstance(config.source, tuple):
        values["source"] = "\n".join(config.source)
    read = dict(config.reading)
    options = (_shown(option, read.get(name, option.default)) for name, option in OPTIONS.items())
    return (*values.values(), *options)


def _written(vocabulary: Vocabulary | None, token_id: int) -> str:
    data = vocabulary.written(token_id) if vocabulary is not None else None
    return (data or b"").decode(errors="replace")


def _shown(option: Option, value: Any) -> Any:
    """Return a value as its field can show it; a file may hold anything."""
    known = value in option.choices if option.choices else type(value) is type(option.default)
    return value if known else option.default


def _whole(name: str, value: Any) -> int:
    if not isinstance(value, int | float) or not math.isfinite(value) or int(value) != value:
        raise ConfigError(
            f"The {name} is {'empty' if value is None else value}, and it must be a whole number.",
            "Write one in its field.",
        )
    return int(value)
