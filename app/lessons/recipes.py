"""A run that is a function of its address: its id is its configuration, whose mean field is typed in.

Such a run takes milliseconds, so nobody has to keep it: who has the id has the run, on any server.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigError
from engine.trace import Config, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "recipe:"
TABLE = "table:"
MOST_CHARACTERS = 16_384
"""Longest id that is read; an address may hold about as much."""
MOST_BYTES = 1 << 20
"""Largest configuration that an id may unfold to."""
MOST_POSITIONS = 256
MOST_STEPS = 64
_PLAIN = Config("", "regex", "", model="", length=1, steps=1, block_length=1, temperature=1.0)
FIELDS = (
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
"""What a recipe may say; everything else is as in a plain configuration."""


def typed(tokens: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    """Return the name of the model that is a mean field typed in: one row of probabilities a position."""
    written = [[float(f"{p:.12g}") for p in row] for row in rows]
    return TABLE + json.dumps({"tokens": list(tokens), "mean_field": written}, ensure_ascii=False)


def config(source: str, model: str, length: int, **more: Any) -> Config:
    """Return the configuration of one step over a typed mean field, drawn at temperature 1; `more` are its fields."""
    return dataclasses.replace(_PLAIN, source=source, model=model, length=length, block_length=length, **more)


def write(config: Config) -> str:
    """Return the id of the run that a configuration of a typed mean field leads to."""
    said = {name: getattr(config, name) for name in FIELDS if getattr(config, name) != getattr(_PLAIN, name)}
    packed = zlib.compress(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode(), 9)
    return PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read(run_id: str) -> Config:
    """Return the configuration that an id says; it comes from anyone at all.

    Raises:
        ConfigError: it isn't one, or it asks for more than a recipe may.
    """
    said = _unpacked(run_id)
    for name, value in said.items():
        if name not in FIELDS or type(value) is not type(getattr(_PLAIN, name)):
            raise _broken(f"its {name!r} is {value!r}")
    found = dataclasses.replace(_PLAIN, **said)
    if not found.model.startswith(TABLE + "{"):
        raise _broken("its model is not a mean field typed in")
    if found.length > MOST_POSITIONS or found.steps > MOST_STEPS:
        raise _broken(f"it has {found.length} positions and {found.steps} steps")
    return found


def _unpacked(run_id: str) -> dict[str, Any]:
    code = run_id.removeprefix(PREFIX)
    if code == run_id or len(code) > MOST_CHARACTERS:
        raise _broken("it is none, or too long")
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)), MOST_BYTES)
        said = json.loads(text)
        pins = tuple((int(i), int(v)) for i, v in said.pop("pins", ()))
    except (binascii.Error, zlib.error, ValueError, TypeError, AttributeError) as error:
        raise _broken("it can't be unpacked") from error
    return {**said, "pins": pins}


def _broken(why: str) -> ConfigError:
    return ConfigError(f"This link is damaged: {why[:200]}.", "Copy the whole link again.")


@lru_cache(maxsize=64)
def recorded(config: Config) -> Trace:
    """Run a configuration of a typed mean field to its end; kept for the next who asks.

    Raises:
        InputError: the mean field, the constraint or a setting can't be used, or nothing is accepted.
    """
    from engine import decode, preparation

    denoiser, header = preparation.prepare(config)
    return Trace(header, tuple(decode.denoise(denoiser, header.automaton, header.config)))
