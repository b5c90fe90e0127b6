"""Changes of a constraint that a run's beliefs speak for: a wanted token allowed, a branch left out; each tried."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine import constraints, token_automaton
from engine.diagnosis import beliefs, schema, strings
from engine.diagnosis.subject import quoted
from engine.errors import InputError, Remedy

if TYPE_CHECKING:
    from engine.diagnosis.run import Run
    from engine.errors import Place
    from engine.trace import Config

GAIN = 0.5
"""Nats of log Z that allowing a token has to win back."""


def allowing(run: Run, step: int, places: tuple[Place, ...], token_id: int) -> tuple[Remedy, ...]:
    """Offer to allow a token beside the one place of a regex that may be written there, where that wins back belief.

    It is tried on the mean field that the trace keeps of the step; without one nothing is offered.
    """
    header, record = run.trace.header, run.trace.steps[step]
    written = header.vocabulary.written(token_id)
    source = header.config.source
    if len(places) != 1 or written is None or header.config.kind != "regex" or not isinstance(source, str):
        return ()
    if record.log_mean_field is None:
        return ()
    (place,), text = places, written.decode(errors="ignore")
    part = source[place.start : place.stop]
    wider = f"{source[: place.start]}(?:{part}|{re.escape(text)}){source[place.stop :]}"
    changed = replace(header.config, source=wider)
    after = _log_partition(run, step, changed)
    if after is None or after < float(record.log_partition) + GAIN:
        return ()
    return (Remedy(f"Allow {text!r} beside {quoted(part)}", {"source": wider}),)


def _log_partition(run: Run, step: int, config: Config) -> float | None:
    """Return the log partition that a step would have had under another constraint; None where that has no answer."""
    header, record = run.trace.header, run.trace.steps[step]
    try:
        read = constraints.read(config.kind or "", config.source, **dict(config.reading))
        automaton = token_automaton.compile(read, header.vocabulary)
    except InputError:
        return None
    assert record.log_mean_field is not None
    log_p = np.full((config.length, header.vocabulary.size), -np.inf)
    masked = record.canvas == header.vocabulary.mask_id
    log_p[masked] = record.log_mean_field
    log_p[~masked, record.canvas[~masked]] = 0.0
    mass = np.full((config.length, automaton.classes), -np.inf)
    known = automaton.token_class[: header.vocabulary.size]
    for position in range(config.length):
        np.logaddexp.at(mass[position], known, log_p[position, : known.size])
    return beliefs.Beliefs(automaton, mass.astype(np.float32)).log_partition


def without(run: Run, place: Place) -> tuple[Remedy, ...]:
    """Offer to leave out a branch, where the rest still fits the canvas and the run's own answer is refused by it."""
    config = run.trace.header.config
    for label, source in _left_out(config, place):
        try:
            read = constraints.read(config.kind or "", source, **dict(config.reading))
            automaton = token_automaton.compile(read, run.trace.header.vocabulary)
        except InputError:
            continue
        fits = automaton.accepted_lengths(config.length)[-1]
        if fits and not strings.read(read, run.trace.text).accepted:
            return (Remedy(label, {"source": source}),)
    return ()


def _left_out(config: Config, place: Place) -> list[tuple[str, str]]:
    """Return the sources without a branch: in a regex with the bar beside it, in a schema as an item of its list."""
    source = config.source
    if not isinstance(source, str):
        return []
    if config.kind in schema.KINDS and place.pointer:
        parent = re.match(r"(.*/(?:anyOf|oneOf)/\d+)", place.pointer)
        return [(f"Leave out {parent[1]}", schema.removed(source, parent[1]))] if parent else []
    if config.kind != "regex":
        return []
    part, before, behind = source[place.start : place.stop], source[: place.start], source[place.stop :]
    label = f"Leave out {quoted(part)}"
    if before.endswith("|"):
        return [(label, before[:-1] + behind)]
    return [(label, before + behind[1:])] if behind.startswith("|") else []
