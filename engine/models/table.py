"""A mean field typed in: the teacher's model, and the smallest reproduction of any bug."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import ModelError
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

_FORM = (
    'Write {"tokens": ["0", ".", …], "eos": null, "mean_field": [[…], …]} with one row of probabilities a position, '
    "or CSV with the tokens as header and one row a position."
)
MAX_ENTRIES = 10_000_000
_LARGEST = 1e300
"""Of an entry; rows of such entries have a finite sum."""


class Table:
    """A mean field that does not depend on the canvas: fixed, or one matrix a step.

    Attributes:
        mean_field: float64 `[steps length vocab]`; the last matrix serves all later steps.
        eos: how the file writes the EOS, if it has one.
    """

    def __init__(
        self, name: str, vocabulary: Vocabulary, mean_field: np.ndarray, normalised: bool, eos: str | None = None
    ) -> None:
        self.eos = eos
        self.name = name
        self.vocabulary = vocabulary
        self.mean_field = mean_field
        with np.errstate(divide="ignore"):
            self._logits = np.log(mean_field)
        self.facts: dict[str, Any] = {
            "name": name,
            "kind": "typed-in mean field",
            "length": int(mean_field.shape[1]),
            "revision": hashlib.sha256(mean_field.tobytes()).hexdigest()[:12],
            "rows_normalised": normalised,
        }

    def encode_prompt(self, prompt: str) -> np.ndarray:
        """Return no tokens: a table does not read."""
        return np.zeros(0, np.int32)

    def encode(self, text: str) -> np.ndarray:
        """Split a text into the fewest tokens of the table.

        Raises:
            ModelError: no sequence of its tokens writes the text.
        """
        found = self.vocabulary.spell(text.encode())
        if found is None:
            raise ModelError(
                f"No sequence of this table's tokens writes {text!r}.",
                "Use text that its tokens can write, or add a token for it.",
            )
        return np.asarray(found, np.int32)

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        """Return float64 `[length vocab]`: the log of the step's matrix, whatever the canvas."""
        return self._logits[min(step, self._logits.shape[0] - 1)]

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        """Return the step's matrix for each: a table reads neither prompt nor canvas."""
        return [self.logits(prompt_ids, canvas, step) for prompt_ids, canvas in zip(prompts, canvases, strict=True)]


def load(path: Path) -> Table:
    """Read a typed-in mean field, JSON or CSV by the file's ending.

    Raises:
        ModelError: the file can't be read, or it isn't such a table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8 text"
        raise ModelError(f"The table {path} can't be read: {reason}.", "Check the path after 'table:'.") from error
    return parse(text, f"table:{path}", as_csv=path.suffix.lower() == ".csv")


def parse(text: str, name: str, *, as_csv: bool = False) -> Table:
    """Read a typed-in mean field from its text."""
    content = _from_csv(text, name) if as_csv else _from_json(text, name)
    tokens = content.get("tokens")
    if (
        not isinstance(tokens, list)
        or len(tokens) < 1
        or not all(isinstance(t, str) and _writable(t) for t in tokens)
        or len(set(tokens)) < len(tokens)
    ):
        raise ModelError(f"The tokens of {name} are not a list of distinct, non-empty strings of UTF-8.", _FORM)
    steps = content.get("steps", [content.get("mean_field")])
    mean_field, normalised = _normalised(steps, tokens, name)
    eos = content.get("eos")
    if eos is not None and eos not in tokens:
        raise ModelError(f"The EOS {eos!r} of {name} is not one of its tokens.", "Name one of them, or null.")
    written = tuple(None if t == eos else t.encode() for t in tokens)
    eos_ids = () if eos is None else (tokens.index(eos),)
    # A table has no mask of its own: the id behind the last token stands on masked positions.
    return Table(name, Vocabulary(written, eos_ids, len(tokens)), mean_field, normalised, eos)


def _writable(token: str) -> bool:
    """Whether a token is some bytes: not empty, and no lone surrogate, which UTF-8 can't hold."""
    return bool(token) and not any("\ud800" <= c <= "\udfff" for c in token)


def _from_json(text: str, name: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name} isn't JSON: {error}.", _FORM) from error
    if not isinstance(content, dict) or not ({"mean_field", "steps"} & content.keys()):
        raise ModelError(f"{name} has no 'mean_field' and no 'steps'.", _FORM)
    return content


def _from_csv(text: str, name: str) -> dict[str, Any]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if row]
    except csv.Error as error:
        raise ModelError(f"{name} isn't CSV: {error}.", _FORM) from error
    if len(rows) < 2:
        raise ModelError(f"{name} has {len(rows)} lines, and a table needs a header and a row.", _FORM)
    try:
        return {"tokens": rows[0], "mean_field": [[float(x) for x in row] for row in rows[1:]]}
    except ValueError as error:
        raise ModelError(f"{name} has an entry that isn't a number ({error}).", _FORM) from error


def _normalised(steps: Any, tokens: list[str], name: str) -> tuple[np.ndarray, bool]:
    """Check the matrices and scale each row to sum 1; say whether any row needed it."""
    for t, matrix in enumerate(steps if isinstance(steps, list) else [None]):
        if not isinstance(matrix, list) or not matrix or len(matrix) != len(steps[0]):
            raise ModelError(f"Matrix {t} of {name} isn't a list of as many rows as the first.", _FORM)
        for i, row in enumerate(matrix):
            if not isinstance(row, list) or len(row) != len(tokens):
                count = len(row) if isinstance(row, list) else "no"
                raise ModelError(f"Row {i} of {name} has {count} entries, and there are {len(tokens)} tokens.", _FORM)
            good = [isinstance(x, int | float) and 0 <= x <= _LARGEST for x in row]
            if not all(good) or sum(row) <= 0:
                bad = row[good.index(False)] if not all(good) else "only zeros"
                raise ModelError(
                    f"Row {i} of {name} is not a distribution: it has {bad}.",
                    f"Give every token a probability from 0 to {_LARGEST:g}, and some token more than 0.",
                )
    if not steps or len(steps) * len(steps[0]) * len(tokens) > MAX_ENTRIES:
        raise ModelError(f"{name} has no matrix, or more than {MAX_ENTRIES:,} entries.", _FORM)
    given = np.asarray(steps, np.float64)
    sums = given.sum(axis=2, keepdims=True)
    mean_field = given / sums
    if ((mean_field == 0) & (given > 0)).any():
        t, i, _ = np.argwhere((mean_field == 0) & (given > 0))[0]
        raise ModelError(
            f"Row {i} of matrix {t} of {name} has a probability that is lost when the row is scaled to sum 1.",
            "Scale the row so that it sums to 1, or write 0 for what is impossible.",
        )
    return mean_field, bool(np.abs(sums - 1).max() > 1e-9)
