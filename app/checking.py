"""What is said of the form before anything runs: findings, changes that mend them, texts held against the constraint.

It answers while the user types, so a model that takes minutes to load is not loaded for it: without its vocabulary,
what depends on tokens is left open, and said to be.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import form, loading, running
from app.endpoints import message
from engine import constraints
from engine.errors import ConfigError, InputError
from viz import automaton, graph, payload

if TYPE_CHECKING:
    from engine.constraints import Constraint
    from engine.diagnosis.examination import Examined
    from engine.errors import Finding
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

Answer = dict[str, Any]
LOOKED_AT = ("kind", "source", "model", "length", "steps", "block_length", "pins", *form.OPTIONS)
"""Fields that a check depends on."""
LONGEST_TEXT = 10_000
"""Characters of a text that is held against a constraint."""
FRAME = 30
"""Characters of a line that fit beside the editor."""
LONGEST_SOURCE = 1 << 20
EXAMPLES = 3
SHOWN_SIDES = 2
"""Further places of an error, as the other side of a conflict, that are shown with their lines."""
_checking, _trying = threading.Lock(), threading.Lock()


def check(values: tuple[Any, ...]) -> Answer:
    """Diagnose what the form says; changes that may mend it are not tried yet, that is for `get_remedies`.

    Args:
        values: of the form, in the order of `app.form.FIELDS`.

    Returns:
        `findings`, the best explanation first, each with the number of changes that `may_mend` it; `asked`, what
        `get_remedies` is to be asked for them; `constraint`, its kind, source and options, by which a text can be held
        against it, None where it can't be read; `shortest` and `sampled` accepted texts; `open`, what was not looked
        at, and why.
    """
    told: Answer = {"findings": [], "asked": None, "constraint": None, "shortest": [], "sampled": [], "open": None}
    given = dict(zip(form.FIELDS, values, strict=True))
    if given["kind"] == "none" or not given["source"]:
        return told
    try:
        config, pins = form.read_form(values)
    except InputError as error:
        return {**told, "findings": [_refused(error)]}
    with _checking:  # one at a time: the same text is often asked for twice
        looked = _looked(config, tuple(pins), _as_of(config.model))
    from engine.diagnosis import static

    tries = [len(static.candidates(finding, looked.examined)) for finding in looked.examined.found]
    found = zip(looked.examined.found, tries, strict=True)
    told["findings"] = [{**_plain(finding), "may_mend": count} for finding, count in found]
    told["asked"] = {"values": list(values)} if any(tries) else None
    return {**told, "open": looked.open, **_accepted(config, looked.examined)}


def get_remedies(asked: object) -> Answer:
    """Try the changes that may mend what `check` found.

    A public endpoint, like those of `app.endpoints`: whatever comes in is checked.

    Returns:
        `findings`, as `check` listed them: the `remedies` that mend each, and how many were left `untried`.
    """
    values = asked.get("values") if isinstance(asked, dict) else None
    try:
        if not isinstance(values, list) or len(values) != len(form.FIELDS):
            raise ConfigError("There is no such form.", "Send the values of its fields.")
        config, pins = form.read_form(tuple(values))
        with _checking:
            looked = _looked(config, tuple(pins), _as_of(config.model))
        with _trying:
            found = looked.mended
    except InputError as error:
        return {"error": "mistake", **message(error)}
    plain = [finding.plain() for finding in found]
    return {"findings": payload.plain([{"remedies": f["remedies"], "untried": f["untried"]} for f in plain])}


def _as_of(model: str) -> float:
    """Return what kept findings depend on beside the form: the time of a typed-in table, whether a model is loaded."""
    if model.startswith("table:{"):
        return 0.0
    if model.startswith("table:"):
        path = Path(model.removeprefix("table:"))
        return path.stat().st_mtime if path.is_file() else 0.0
    return float(loading.is_loaded(model))


@dataclass(frozen=True, eq=False)
class _Looked:
    """What was found, with the vocabulary of a model that is at hand, and what was left open."""

    examined: Examined
    vocabulary: Vocabulary | None
    open: str | None = None

    @cached_property
    def mended(self) -> tuple[Finding, ...]:
        """The findings with the changes that were tried and mend them."""
        from engine.diagnosis import static

        return static.mended(self.examined, self.vocabulary)


@lru_cache(maxsize=8)
def _looked(config: Config, pins: tuple[str, ...], _as_of: float) -> _Looked:
    # It brings compiled loops, which the page does not need to open.
    from engine import preparation
    from engine.diagnosis import examination

    try:
        denoiser = loading.at_hand(config.model)
        if denoiser is None:
            unseen = f"Its tokens are looked at once {config.model} is loaded, by a run."
            return _Looked(examination.examine_text(config), None, unseen)
        placed = preparation.pin_tokens(denoiser, config.length, preparation.read_pins(pins))
        asked = dataclasses.replace(config, pins=placed)
        return _Looked(examination.examine(asked, denoiser.vocabulary), denoiser.vocabulary)
    except InputError as error:
        text = examination.examine_text(config)
        found = examination.ranked([*text.found, examination.refusal(error)])
        return _Looked(dataclasses.replace(text, found=found), None)


def _accepted(config: Config, examined: Examined) -> Answer:
    """Return accepted texts, and the constraint where it can be held against others."""
    from engine.diagnosis import strings

    constraint = examined.constraint
    if constraint is None or any(finding.code == "size" for finding in examined.found):
        return {}
    source = list(config.source) if isinstance(config.source, tuple) else config.source
    return {
        "constraint": {"kind": config.kind, "source": source, "reading": [list(pair) for pair in config.reading]},
        "shortest": list(strings.shortest(constraint.automaton, EXAMPLES)),
        "sampled": list(strings.sampled(constraint.automaton, seed=0, count=EXAMPLES)),
    }


@lru_cache(maxsize=16)
def _read(kind: str, source: str | tuple[str, ...] | None, reading: tuple[tuple[str, Any], ...]) -> Constraint:
    read = constraints.read(kind, source, **dict(reading))
    _ = read.automaton  # compiled here, so that it is kept
    return read


def _refused(error: InputError) -> Answer:
    from engine.diagnosis import examination

    return _plain(examination.refusal(error))


def _plain(finding: Finding) -> Answer:
    """Return a finding as the page shows it, with the lines of its place, and of an error those of the other sides."""
    plain: Answer = payload.plain(finding.plain())
    others = finding.related[:SHOWN_SIDES] if finding.severity == "error" else ()
    frames = [{**place.plain(), "frame": place.frame(FRAME)} for place in others]
    where = finding.where
    if where and where.stop - where.start == len(where.source) > FRAME:
        where = None  # of the whole source there is nothing to point at
    return {**plain, "frame": where.frame(FRAME) if where else None, "frames": frames}


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
