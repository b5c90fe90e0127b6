"""What all tests share: the Hypothesis profiles and the programs that a test may need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# No deadline: the first call of a compiled kernel may compile it.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


class _FilesOfThePage(LoadScopeScheduling):
    """Gives a file of the page's tests to one process, which keeps a server and a browser; spreads all other tests."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0] if nodeid.startswith("tests/page/") else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _FilesOfThePage(config, log)


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
