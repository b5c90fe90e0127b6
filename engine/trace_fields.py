"""What the fields of a trace are on disk: types, axes, and what their indices may point at.

The page opens files from strangers, and compiled loops index without looking: what passes here can be read freely.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import TraceError
from engine.trace import TOP_MIDPOINT_STATES, TOP_STATES, TOP_TOKENS, Config, Header, StepRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 4096
"""Positions, and steps, that a file may have."""

HEADER: dict[str, str] = {
    "accepting": "|b1",
    "token_class": "<i4",
    "class_ptr": "<i4",
    "class_source": "<i4",
    "class_target": "<i4",
    "prompt_ids": "<i4",
    "token_lengths": "<i4",
    "token_data": "|u1",
    "first_ids": "<i4",
    "first_lengths": "<i4",
    "first_data": "|u1",
}
"""Array of the header -> dtype; each has one axis."""

STEP: dict[str, tuple[str, tuple[str, ...]]] = {
    "canvas": ("<i4", ("length",)),
    "drawn": ("<i4", ("length",)),
    "path": ("<i4", ("boundaries",)),
    "committed": ("|b1", ("length",)),
    "committed_mf": ("|b1", ("length",)),
    "committed_mar": ("|b1", ("length",)),
    "confidence_mf": ("<f8", ("length",)),
    "confidence_mar": ("<f8", ("length",)),
    "log_partition": ("<f8", ()),
    "log_partition_model": ("<f8", ()),
    "log_class_mass": ("<f4", ("length", "classes")),
    "log_lift": ("<f4", ("length", "classes")),
    "top_ids": ("<i4", ("length", "two", "top")),
    "top_log_mean_field": ("<f4", ("length", "two", "top")),
    "top_log_posterior": ("<f4", ("length", "two", "top")),
    "entropy_mean_field": ("<f4", ("length",)),
    "entropy_posterior": ("<f4", ("length",)),
    "kl": ("<f4", ("length",)),
    "forbidden_mass": ("<f4", ("length",)),
    "state_ids": ("<i4", ("boundaries", "top_states")),
    "state_probability": ("<f4", ("boundaries", "top_states")),
    "live": ("|u1", ("boundaries", "state_bytes")),
    "midpoint_log_probability": ("<f4", ("boundaries",)),
    "midpoint_entropy": ("<f4", ("boundaries",)),
    "midpoint_ids": ("<i4", ("boundaries", "top_midpoints")),
    "midpoint_probability": ("<f4", ("boundaries", "top_midpoints")),
    "tries": ("<i4", ()),
    "model_ms": ("<f8", ()),
    "engine_ms": ("<f8", ()),
    "log_mean_field": ("<f4", ("masked", "vocab")),
    "filter_lifted": ("|b1", ()),
    "log_partition_after": ("<f8", ()),
    "log_paths": ("<f8", ()),
    "paths_kept": ("<f8", ()),
    "inverse_paths": ("<f8", ()),
    "path_weighted": ("|b1", ()),
}
"""Field of a step -> dtype and axes; the one description that saving, loading and validation share."""

OPTIONAL = {f.name for f in fields(StepRecord) if f.default is not MISSING or f.default_factory is not MISSING}
"""Fields that a step may lack: those that a version after the first brought, and the mean field."""

_TOKENS = ("canvas", "drawn", "top_ids")
_STATES = ("path", "state_ids", "midpoint_ids")
_SCALARS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "None": type(None),
}


def check_config(values: Mapping[str, Any]) -> None:
    """Refuse settings that are not of the type that `Config` gives them.

    Raises:
        TypeError: names one.
    """
    for field in fields(Config):
        if field.name in values and not _fits(values[field.name], str(field.type)):
            raise TypeError(f"its {field.name} is not of the type {field.type}")
    if not all(_fits(value, "str | int | bool") for _, value in values.get("reading", ())):
        raise TypeError("its reading has a value of another type")
    _check_words(values)


def _check_words(words: Any) -> None:
    """Refuse half of a surrogate pair, which JSON can spell and no text can hold that is sent to a browser."""
    try:
        json.dumps(words, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise TypeError("its words are not Unicode text") from error


def _fits(value: Any, wanted: str) -> bool:
    if isinstance(value, tuple):  # of strings or pairs, which the reader makes itself
        return "tuple" in wanted and (wanted.startswith("tuple") or all(isinstance(part, str) for part in value))
    kinds = wanted.split(" | ")
    if isinstance(value, bool):
        return "bool" in kinds
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return any(isinstance(value, _SCALARS[kind]) for kind in kinds if kind in _SCALARS)


def check_arrays(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays of the header that have another type.

    Raises:
        TypeError: names one.
    """
    for name, array in arrays.items():
        if name not in HEADER or array.dtype != np.dtype(HEADER[name]) or array.ndim != 1:
            raise TypeError(f"its array {name} is of another type")


def check_header(header: Header) -> None:
    """Refuse tables whose indices point outside of each other.

    Raises:
        ValueError: they do.
    """
    automaton, config, vocabulary = header.automaton, header.config, header.vocabulary
    states, classes, size = automaton.states, automaton.classes, header.vocabulary.size
    moved = np.repeat(np.arange(max(classes, 0)), np.maximum(np.diff(automaton.class_ptr), 0))
    sound = (
        automaton.token_class.shape == (size,)
        and within(automaton.token_class, classes)
        and within(automaton.class_source, states)
        and within(automaton.class_target, states)
        and automaton.class_source.shape == automaton.class_target.shape == moved.shape
        and automaton.class_ptr[0] == 0
        and automaton.class_ptr[-1] == automaton.class_source.size
        and bool(np.all(np.diff(automaton.class_ptr) >= 0))
        and bool(np.all(np.diff(moved * states + automaton.class_source) >= 0))
        and 0 <= automaton.start < states
        and -1 <= automaton.end < states
        and len(automaton.state_spans) == states
        and all(_span(a, b) for spans in automaton.state_spans for a, b in spans)
        and 0 <= vocabulary.mask_id < 2**31
        and all(0 <= v < size for v in vocabulary.eos_ids)
        and within(header.prompt_ids, max(size, vocabulary.mask_id + 1))
        and 0 < config.length <= LONGEST
        and 0 < config.steps <= LONGEST
        and all(0 <= i < config.length and 0 <= v < size for i, v in (*config.pins, *config.bans))
        and all(0 <= branch.step <= config.steps for branch in header.branches)
        and all(_same_axes(config, branch.before, size) for branch in header.branches if branch.before)
    )
    if not sound:
        raise ValueError("its tables contradict each other")
    if not isinstance(header.model, dict):
        raise TypeError("it says nothing of the model")
    _check_words([header.model, *map(asdict, header.branches)])


def _same_axes(config: Config, before: Config, size: int) -> bool:
    """Whether the settings in front of a fork are of the same canvas."""
    axes = (config.length, config.steps, config.block_length) == (before.length, before.steps, before.block_length)
    return axes and all(0 <= i < config.length and 0 <= v < size for i, v in before.bans)


def _span(start: object, stop: object) -> bool:
    return isinstance(start, int) and isinstance(stop, int) and 0 <= start <= stop


def within(indices: np.ndarray, limit: int, least: int = 0) -> bool:
    """Whether all indices are from `least` to `limit` − 1."""
    return indices.size == 0 or bool(indices.min() >= least and indices.max() < limit)


def check_step(arrays: Mapping[str, np.ndarray], header: Header, number: int) -> None:
    """Refuse a step whose arrays have other types or shapes than the header says, or point outside of its tables.

    Raises:
        TraceError: names the array.
    """
    axes = _axes(arrays.get("canvas", np.zeros(0, np.int32)), header)
    if number >= header.config.steps:
        raise _refused(number, "is one more than its header says")
    for name, (dtype, names) in STEP.items():
        if name in OPTIONAL and name not in arrays:
            continue
        expected = tuple(axes[axis] for axis in names)
        found = arrays[name].shape if name in arrays else None
        if found != expected or arrays[name].dtype != np.dtype(dtype):
            raise _refused(number, f"has {name} of shape {found}, not {expected}")
    for name in _TOKENS:
        known = arrays[name][arrays[name] != header.vocabulary.mask_id]
        if not within(known, header.vocabulary.size, -1 if name == "top_ids" else 0):
            raise _refused(number, f"has a token in {name} that its vocabulary lacks")
    if (arrays["top_ids"][:, 0, 0] < 0).any():
        raise _refused(number, "has a position at which no token is possible")
    for name in _STATES:
        if not within(arrays[name], header.automaton.states, -1):
            raise _refused(number, f"has a state in {name} that its automaton lacks")


def _axes(canvas: np.ndarray, header: Header) -> dict[str, int]:
    states = header.automaton.states
    return {
        "length": header.config.length,
        "boundaries": header.config.length + 1,
        "classes": header.automaton.classes,
        "two": 2,
        "top": TOP_TOKENS,
        "top_states": min(states, TOP_STATES),
        "top_midpoints": min(states, TOP_MIDPOINT_STATES),
        "state_bytes": (states + 7) // 8,
        "masked": int((canvas == header.vocabulary.mask_id).sum()),
        "vocab": header.vocabulary.size,
    }


def _refused(number: int, problem: str) -> TraceError:
    return TraceError(
        f"Step {number} of this trace {problem}.", "Open a trace that Denoiscope wrote with this version."
    )
