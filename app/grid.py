"""A mean field typed into a grid on the page: the teacher's model, and the smallest reproduction of any bug."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import models
from engine.errors import ModelError
from engine.models import table

if TYPE_CHECKING:
    from engine.models.table import Table

START = [["0", "1", "."], ["0.05", "0.05", "0.9"], ["0.05", "0.05", "0.9"]]
"""What the grid opens with: tokens in the first row, then a row of probabilities for each position."""


def read(rows: list[list[Any]], eos: str | None) -> tuple[str, Table]:
    """Return what the grid says, as the text that `table:…` and a file for `table:FILE` have, and the mean field it is.

    Args:
        rows: cells, as they are typed; columns without a token and rows without a number are left out.
        eos: the token that ends a text, or nothing.

    Raises:
        ModelError: a cell is no number, or a row is no distribution.
    """
    typed = [["" if cell is None else str(cell).strip("\n") for cell in row] for row in rows]
    kept = [n for n, token in enumerate(typed[0] if typed else []) if token]
    numbers = [[row[n] for n in kept] for row in typed[1:] if any(row)]
    content = {
        "tokens": [typed[0][n] for n in kept],
        "eos": eos or None,
        "mean_field": [[_number(cell, i, n) for n, cell in enumerate(row)] for i, row in enumerate(numbers)],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text, table.parse(text, "the grid")


def _number(cell: str, row: int, column: int) -> float:
    try:
        return float(cell.replace(",", ".") or 0)
    except ValueError as error:
        raise ModelError(
            f"The grid has {cell!r} for token {column} at position {row}, which is no number.",
            "Write a probability; an empty cell is 0.",
        ) from error


def save(text: str, folder: str) -> str:
    """Write a grid's file, named by its content, and return its path."""
    path = Path(folder) / f"table-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def cells(model: str) -> tuple[list[list[str]], str]:
    """Return the cells and the EOS of a typed-in model, to be edited; those of its first step.

    Raises:
        ModelError: it is none.
    """
    found = models.load(model) if model.startswith("table:") else None
    if not isinstance(found, table.Table):
        raise ModelError(f"{model} is no typed-in mean field.", "Choose a model table:FILE to edit it.")
    tokens = [_text(found.vocabulary.written(n)) for n in range(found.vocabulary.size)]
    eos = found.eos
    names = [eos if n in found.vocabulary.eos_ids and eos else token for n, token in enumerate(tokens)]
    return [names, *([f"{p:.6g}" for p in row] for row in found.mean_field[0].tolist())], eos or ""


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")
