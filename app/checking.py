"""What is said of the form before anything runs: findings, changes that mend them, texts held against the constraint.

It answers while the user types, so a model that takes minutes to load is not loaded for it: without its vocabulary,
what depends on tokens is left open, and said to be.
"""

from __future__ import annotations

import dataclasses
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import form, loading, running
from app.endpoints import message
from engine import constraints
from engine.errors import ConfigError, InputError
from viz import automaton, graph, payload

if TYPE_CHECKING:
    from engine.constraints import Constraint
    from engine.errors import Finding
    from engine.trace import Config

Answer = dict[str, Any]
LOOKED_AT = ("kind", "source", "model", "length", "steps", "block_length", "pins", *form.OPTIONS)
"""Fields that a check depends on."""
LONGEST_TEXT = 10_000
"""Characters of a text that is held against a constraint."""
LONGEST_SOURCE = 1 << 20
EXAMPLES = 3
_checking = threading.Lock()


def check(values: tuple[Any, ...]) -> Answer:
    """Diagnose what the form says.

    Args:
        values: of the form, in the order of `app.form.FIELDS`.

    Returns:
        `findings`, the best explanation first; `constraint`, its kind, source and options, by which a text can be held
        against it, None where it can't be read; `shortest` and `sampled` accepted texts; `open`, what was not looked
        at, and why.
    """
    told: Answer = {"findings": [], "constraint": None, "shortest": [], "sampled": [], "open": None}
    given = dict(zip(form.FIELDS, values, strict=True))
    if given["kind"] == "none" or not given["source"]:
        return told
    try:
        config, pins = form.read_form(values)
    except InputError as error:
        return {**told, "findings": [_refused(error)]}
    with _checking:  # one at a time: the same text is often asked for twice
        found, told["open"] = _findings(config, tuple(pins), _as_of(config.model))
    told["findings"] = [_plain(finding) for finding in found]
    return {**told, **_accepted(config)}


def _as_of(model: str) -> float:
    """Return what kept findings depend on beside the form: the time of a typed-in table, whether a model is loaded."""
    if model.startswith("table:{"):
        return 0.0
    if model.startswith("table:"):
        path = Path(model.removeprefix("table:"))
        return path.stat().st_mtime if path.is_file() else 0.0
    return float(loading.is_loaded(model))


@lru_cache(maxsize=32)
def _findings(config: Config, pins: tuple[str, ...], _as_of: float) -> tuple[tuple[Finding, ...], str | None]:
    """Return what is found, with the tokens of a model that is at hand, and what was left open."""
    # It brings compiled loops, which the page does not need to open.
    from engine import preparation
    from engine.diagnosis import static

    try:
        denoiser = loading.at_hand(config.model)
        if denoiser is None:
            return _of_text(config), f"Its tokens are looked at once {config.model} is loaded, by a run."
        preparation.check(config)
        placed = preparation.pin_tokens(denoiser, config.length, preparation.read_pins(pins))
        return static.findings(dataclasses.replace(config, pins=placed), denoiser.vocabulary), None
    except InputError as error:
        return (*_of_text(config), static.refusal(error)), None


def _of_text(config: Config) -> tuple[Finding, ...]:
    from engine.diagnosis import static

    try:
        return tuple(_read(config.kind or "", config.source, config.reading).findings)
    except InputError as error:
        return (static.refusal(error),)


def _accepted(config: Config) -> Answer:
    """Return accepted texts, and the constraint where it can be held against others."""
    from engine.diagnosis import strings

    try:
        automaton = _read(config.kind or "", config.source, config.reading).automaton
    except InputError:
        return {}
    source = list(config.source) if isinstance(config.source, tuple) else config.source
    return {
        "constraint": {"kind": config.kind, "source": source, "reading": [list(pair) for pair in config.reading]},
        "shortest": list(strings.shortest(automaton, EXAMPLES)),
        "sampled": list(strings.sampled(automaton, seed=0, count=EXAMPLES)),
    }


@lru_cache(maxsize=16)
def _read(kind: str, source: str | tuple[str, ...] | None, reading: tuple[tuple[str, Any], ...]) -> Constraint:
    read = constraints.read(kind, source, **dict(reading))
    _ = read.automaton  # compiled here, so that it is kept
    return read


def _refused(error: InputError) -> Answer:
    from engine.diagnosis import static

    return _plain(static.refusal(error))


def _plain(finding: Finding) -> Answer:
    """Return a finding as the page shows it, with the lines of its place."""
    plain: Answer = payload.plain(finding.plain())
    return {**plain, "frame": finding.where.frame() if finding.where else None}


def applied(values: tuple[Any, ...], changes: object) -> tuple[Any, ...]:
    """Return the form's values with the changes of a remedy.

    Raises:
        InputError: the form, or a change, is none that a configuration can have.
    """
    from engine import preparation

    config, pins = form.read_form(values)
    if not isinstance(changes, dict):
        raise ConfigError("There is no such change.", "Choose one that a finding offers.")
    denoiser = loading.at_hand(config.model)
    if pins and denoiser is not None:
        placed = preparation.pin_tokens(denoiser, config.length, preparation.read_pins(pins))
        config = dataclasses.replace(config, pins=placed)
    changed = running.configured(config, changes)
    if denoiser is not None:
        return form.form_of(changed, denoiser.vocabulary)
    given = dict(zip(form.FIELDS, form.form_of(changed, None), strict=True))
    return tuple({**given, "pins": "\n".join(pins)}.values())


def get_reading(asked: object) -> Answer:
    """Hold `text` against the constraint of `kind`, `source` and `reading`: how far it is read, where, in which states.

    A public endpoint, like those of `app.endpoints`: whatever comes in is checked.
    """
    from engine.diagnosis import strings

    words = asked if isinstance(asked, dict) else {}
    try:
        text, constraint = _asked(words)
        reading = strings.read(constraint, text)
        state = max(reading.states[-1])
        return {
            **payload.plain(reading.plain()),
            "spans": [[place.start, place.stop] for place in reading.expected_places],
            "graph": payload.drawn(automaton.near(graph.of_bytes(constraint.automaton), state)),
        }
    except InputError as error:
        return {"error": "mistake", **message(error)}


def _asked(words: Answer) -> tuple[str, Constraint]:
    text, kind, source, reading = (words.get(name) for name in ("text", "kind", "source", "reading"))
    lines = tuple(source) if isinstance(source, list) else source
    whole = "".join(lines) if isinstance(lines, tuple) and all(isinstance(line, str) for line in lines) else lines
    pairs = reading if isinstance(reading, list) else []
    named = all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs)
    if not isinstance(text, str) or not isinstance(kind, str) or not isinstance(whole, str) or not named:
        raise ConfigError("There is no such text or constraint.", "Write a text and a constraint.")
    if len(text) > LONGEST_TEXT or len(whole) > LONGEST_SOURCE:
        raise ConfigError(f"The text has {len(text):,} characters, more than {LONGEST_TEXT:,}.", "Try a shorter one.")
    values = form.reading_of(kind, {**{name: option.default for name, option in form.OPTIONS.items()}, **dict(pairs)})
    return text, _read(kind, lines, values)
