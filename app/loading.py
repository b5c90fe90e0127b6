"""Models, kept between runs: real ones take minutes to load, which is watched and can be ended."""

from __future__ import annotations

import gc
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.models.architecture import DEFAULT, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.models import Denoiser

SMALL = ("embedded",)
"""Models that load in a moment and stay, whatever else is loaded."""
LOOK_S = 0.2
"""How often a loading is looked at."""


class _Ended(Exception):  # noqa: N818 - nobody sees it: it carries the end of a loading through transformers
    pass


def choose(name: str, options: Options) -> None:
    """Say how a model is to be loaded from now on; one that was loaded in another way is loaded anew.

    Raises:
        ModelError: it is one of the engine's own, which are loaded in one way only.
    """
    if _at_once(name):
        _fresh(name, options)  # all sessions share it, so it stays as it is
        return
    if _chosen.get(name, DEFAULT) != options:
        _loaded.pop(name, None)
    _chosen[name] = options


def load(name: str, *_: object) -> Denoiser:
    """Load a model, or take the one of the last run. A typed-in table may have changed, and is read again."""
    if name.startswith("table:"):
        return _fresh(name, DEFAULT)
    return _small(name) if name in SMALL else _last(name)


def at_hand(name: str) -> Denoiser | None:
    """Return a model if that takes no longer than a moment; None where it would have to be loaded."""
    if _at_once(name):
        return load(name)
    return _loaded.get(name)


def watched(name: str) -> Iterator[tuple[int, int]]:
    """Load a model beside this thread, unless it is at hand; closing the generator ends the loading.

    Yields:
        The number of weights that are loaded, and of all; 0 of 0 before the first.

    Raises:
        InputError: there is no such model, or it can't be read.
    """
    if _at_once(name) or name in _loaded:
        return
    ended, finished = threading.Event(), threading.Event()
    told: list[tuple[int, int]] = [(0, 0)]
    wrong: list[BaseException] = []

    def progress(done: int, total: int) -> None:
        if ended.is_set():
            raise _Ended
        told.append((done, total))

    def work() -> None:
        try:
            _last(name, progress)
        except _Ended:
            pass
        except BaseException as error:  # raised again where the loading is watched
            wrong.append(error)
        finally:
            finished.set()

    threading.Thread(target=work, name="loading", daemon=True).start()
    try:
        while not finished.wait(LOOK_S):
            yield told[-1]
    finally:
        ended.set()
    if wrong:
        raise wrong[0]


def is_loaded(name: str) -> bool:
    """Whether a large model is there without loading it."""
    return name in _loaded


def facts(denoiser: Denoiser) -> str:
    """Write what a reader must know of a model: family, parameters, device, dtype, context limit."""
    known = denoiser.facts
    parts = [str(known.get("family", known.get("kind", "embedded")))]
    if known.get("parameters"):
        parts.append(f"{known['parameters'] / 1e6:,.1f} M parameters")
    parts += [str(known[name]) for name in ("device", "dtype") if known.get(name)]
    parts += [f"{words} {known[name]}" for name, words in _LIMITS.items() if known.get(name)]
    parts += ["rows normalised to sum to 1"] if known.get("rows_normalised") else []
    return f"{known['name']}: {', '.join(parts)}"


_LIMITS = {"context": "context limit", "revision": "revision", "length": "canvas of"}
_chosen: dict[str, Options] = {}
_loaded: dict[str, Denoiser] = {}
_loading = threading.Lock()


def _at_once(name: str) -> bool:
    """Whether a model is one of the engine's own, which load in a moment."""
    return name.startswith("table:") or name in SMALL


def _fresh(name: str, options: Options, progress: Callable[[int, int], None] | None = None) -> Denoiser:
    # It brings torch, which the page does not need to open.
    from engine import models

    return models.load(name, options, progress)


@lru_cache(maxsize=len(SMALL))
def _small(name: str) -> Denoiser:
    found = _fresh(name, DEFAULT)
    # Torch's half a million objects stay for good; each full collection would look through them for a quarter second.
    gc.collect()
    gc.freeze()
    return found


def _last(name: str, progress: Callable[[int, int], Any] | None = None) -> Denoiser:
    """Keep one large model: two may not fit beside each other."""
    with _loading:
        if name not in _loaded:
            _loaded.clear()
            _loaded[name] = _fresh(name, _chosen.get(name, DEFAULT), progress)
        return _loaded[name]
