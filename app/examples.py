"""The gallery: runs that were recorded with the real engine and open at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import trace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.trace import Trace


FOLDER = Path(__file__).parents[1] / "assets" / "examples"


@dataclass(frozen=True)
class Example:
    """One card of the gallery.

    Attributes:
        name: by which the page and its links call it.
        title: of the card.
        what: one sentence, what there is to see.
        files: one recorded trace, or two to be seen side by side; none where the form alone is the example.
        step: that it opens at; counted from the end where negative.
        position: that it opens at.
        failure: class of the failure that it shows, `C1` to `C10`; empty for one that shows none.
        form: values of the form, by the names of its fields, where no run could begin with them.
    """

    name: str
    title: str
    what: str
    files: tuple[str, ...]
    step: int = 0
    position: int = 0
    failure: str = ""
    form: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Ids of its runs, the same in every session and process."""
        return tuple(f"example:{name.removesuffix('.trace')}" for name in self.files)


@cache
def _read(folder: Path) -> tuple[Example, ...]:
    path = folder / "manifest.json"
    if not path.is_file():
        return ()
    recorded = json.loads(path.read_text(encoding="utf-8"))
    forms = json.loads((folder / "forms.json").read_text(encoding="utf-8"))
    return tuple(Example(**{**card, "files": tuple(card.get("files", ()))}) for card in [*recorded, *forms])


def gallery() -> tuple[Example, ...]:
    """Return the cards that the manifest lists, and those of the form alone; none where nothing was recorded."""
    return _read(FOLDER)


def load(run_id: str) -> Trace | None:
    """Return the recorded trace of an `example:…` id; None where there is none of that name."""
    for example in gallery():
        for known, file in zip(example.run_ids, example.files, strict=True):
            if known == run_id:
                return trace_file.load(FOLDER / file)
    return None
