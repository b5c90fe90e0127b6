"""What all tests share: the Hypothesis profiles and the programs that a test may need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest
from hypothesis import settings

# No deadline: the first call of a compiled kernel may compile it.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


@pytest.fixture(scope="session")
def require_program() -> Callable[[str], str]:
    """Return a function from a program's name to its path; the test is skipped where there is none.

    With DENOISCOPE_REQUIRE_SYSTEM=1, as `scripts/test` sets it in CI, the test fails instead.
    """

    def path_of(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            missing = f"{name} is not installed; scripts/test --system installs it"
            if os.environ.get("DENOISCOPE_REQUIRE_SYSTEM") == "1":
                pytest.fail(missing)
            pytest.skip(missing)
        return path

    return path_of
