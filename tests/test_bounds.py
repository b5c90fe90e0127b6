"""Compiled loops read and write inside their arrays: numba checks no index unless it is asked to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODULES = (
    *("baselines", "decode", "diagnosis_dynamic", "exactness", "inference", "masses", "messages", "paths", "stepping"),
    *("subsets", "tree"),
)
"""Tests that run the compiled loops of every module, over automata of all kinds."""


@pytest.mark.slow
def test_no_index_of_a_compiled_loop_is_out_of_bounds(tmp_path: Path) -> None:
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", *(str(HERE / f"test_{name}.py") for name in MODULES)]
    done = subprocess.run(command, env=checked, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout[-4000:]
