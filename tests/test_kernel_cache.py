"""Compiled kernels are kept apart by the sources that they were compiled from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import engine


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the engine's own sources."""
    origin = Path(engine.__file__).parent
    return Path(shutil.copytree(origin, tmp_path / "engine", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.mark.parametrize("callee", ["noise.py", "inference/wide.py"])
def test_a_change_in_what_a_kernel_calls_makes_it_compile_anew(sources: Path, callee: str) -> None:
    before = engine.kernel_cache(sources)
    path = sources / callee
    path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert engine.kernel_cache(sources) != before


def test_a_change_in_plain_python_keeps_the_compiled_kernels(sources: Path) -> None:
    before = engine.kernel_cache(sources)
    (sources / "decode.py").write_text("")
    assert engine.kernel_cache(sources) == before
