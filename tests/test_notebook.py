"""The notebook of the lessons runs from top to bottom and prints what it says it prints."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "lessons.ipynb"


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(o["text"] for o in cell.get("outputs", ()) if o.get("name") == "stdout")


# What the kernel's libraries deprecate, and its sockets, are not ours to mend.
@pytest.mark.filterwarnings("default")
def test_the_notebook_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    written = nbformat.read(FILE, as_version=4)
    again = nbformat.read(FILE, as_version=4)
    NotebookClient(again, timeout=300, resources={"metadata": {"path": str(FILE.parent)}}).execute()
    for before, after in zip(written.cells, again.cells, strict=True):
        if "model" in before.metadata.get("tags", ()):
            # What the shipped model writes changes with it; how many steps it takes does not.
            assert len(printed(after).splitlines()) == len(printed(before).splitlines())
        else:
            assert printed(after) == printed(before), before.source
    everything = "".join(printed(cell) for cell in again.cells)
    for number in ("Z = 0.190", "q(.) = 0.474", "22.4%", "11.1%", "8 positions, 3 levels", "256 positions, 8 levels"):
        assert number in everything
