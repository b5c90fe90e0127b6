"""Models, kept between runs: real ones take minutes to load."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.models import Denoiser

SMALL = ("embedded",)
"""Models that load in a moment and stay, whatever else is loaded."""


def load(name: str, *_: object) -> Denoiser:
    """Load a model, or take the one of the last run. A typed-in table may have changed, and is read again."""
    if name.startswith("table:"):
        return _fresh(name)
    return _small(name) if name in SMALL else _last(name)


def at_hand(name: str) -> Denoiser | None:
    """Return a model if that takes no longer than a moment; None where it would have to be loaded."""
    if name.startswith("table:") or name in SMALL:
        return load(name)
    return _loaded.get(name)


def _fresh(name: str) -> Denoiser:
    # It brings torch, which the page does not need to open.
    from engine import models

    return models.load(name)


_loaded: dict[str, Denoiser] = {}


@lru_cache(maxsize=len(SMALL))
def _small(name: str) -> Denoiser:
    return _fresh(name)


def _last(name: str) -> Denoiser:
    """Keep one large model: two may not fit beside each other."""
    if name not in _loaded:
        _loaded.clear()
        _loaded[name] = _fresh(name)
    return _loaded[name]
