"""The page, served in this process, and a Chromium that notices any error and any request to another host."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from app import page as page_module
from app import sessions
from engine.trace import Trace

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000
"""Both cores may be busy; what is slow is not wrong here."""
expect.set_options(timeout=PATIENCE_MS)
DIGITS = [*"0123456789", "."]
ROW = [0.07] * 10 + [0.3]
"""A mean field of one position over them."""
REAL = r"[0-9]+(\.[0-9]*)?|\.[0-9]+"


def mean_field(folder: Path, rows: list[list[float]], tokens: list[str] = DIGITS, eos: str | None = None) -> str:
    """Write a typed-in mean field and name it as a model."""
    path = folder / "table.json"
    path.write_text(json.dumps({"tokens": tokens, "eos": eos, "mean_field": rows}))
    return f"table:{path}"


def form(model: str, **changes: object) -> dict[str, object]:
    """Return the form of a run under `REAL`, as the client sends it."""
    return {
        "model": model,
        "kind": "regex",
        "source": REAL,
        "length": 8,
        "steps": 8,
        "block": 8,
        "temperature": 1,
        "seed": 3,
        **changes,
    }


@pytest.fixture(scope="session")
def browser_type_launch_args(
    browser_type_launch_args: dict[str, Any], require_program: Callable[[str], str]
) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": require_program("chromium"), "args": ARGUMENTS}


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    page_module.warm()  # compiled loops take half a minute where they are not cached, which is no test's subject
    _, address, _ = page_module.serve(server_port=None, prevent_thread_lock=True, quiet=True)
    yield address.rstrip("/")
    page_module.gr.close_all(verbose=False)
    with warnings.catch_warnings():
        # The server's thread leaves its event loop to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try a test once more, since browser, server and model share the cores; `-ra` names those that needed it.

    What the server leaves for the collector to close is a warning, in whichever test that is noticed.
    """
    left = pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(left)
            item.add_marker(pytest.mark.flaky(reruns=1))


WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


def violations(page: Page, within: str | None = None, *, rules: Any = WCAG, minor: bool = False) -> list[str]:
    """Return what axe-core finds serious or critical: rule and element; `minor` ones too where they are asked for."""
    # What passes is only counted: a selector and the code of each of a thousand elements takes seconds.
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = Axe().run(page, context=within, options=options).response["violations"]
    grave = [v for v in found if minor or v["impact"] in ("serious", "critical")]
    return [f"{v['id']}: {node['html'][:160]}" for v in grave for node in v["nodes"]]


class Debugger:
    """What a user does on the page, and what the page says about itself."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        page.on("request", self._request)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.errors.append(f"request to another host: {request.url}")

    def open(self, fragment: str = "") -> Debugger:
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/{fragment}")
        self.wait("painted", "yes")
        return self

    def show(self, trace: Trace) -> None:
        """Open the page on a run that the server holds, at its first step."""
        run = sessions.RUNS.add(trace, None)
        self.open(f"#a={run.run_id}&step=0&pos=0")
        self.wait("run", run.run_id)
        self.wait("step", "0")
        self.wait("detail", "here")
        self.blur()

    @property
    def root(self) -> Any:
        return self.page.locator("[data-ready]")

    def wait(self, name: str, value: str) -> None:
        expect(self.page.locator(f'[data-ready][data-{name}="{value}"]')).to_have_count(1)

    def wait_checked(self, kind: str, source: str | list[str]) -> None:
        """Wait until the form's check is that of a constraint."""
        checked = json.dumps([kind, source], separators=(",", ":"))
        expect(self.page.locator("#checked")).to_have_attribute("data-checked", checked)

    def get(self, name: str) -> str | None:
        return self.root.get_attribute(f"data-{name}")

    def run(self, form: dict[str, Any], *, finish: bool = True) -> None:
        """Fill the form and run it; ids of the form's fields to their values."""
        for field, value in form.items():
            self.fill(field, value)
        before = self.get("run")
        self.page.click("#run")
        self.page.wait_for_function(
            "before => { const d = document.querySelector('[data-ready]').dataset; return d.run && d.run !== before; }",
            arg=before,
        )
        if finish:
            self.wait("status", "finished")

    def fill(self, field: str, value: Any) -> None:
        box = self.page.locator(f"#{field}")
        if field in ("kind", "confidence"):
            box.locator(f"input[value='{value}']").check()
        elif field == "sampler":
            box.locator("input").click()
            self.page.get_by_role("option", name=str(value), exact=True).click()
        else:
            entry = box.locator("textarea, input").first
            entry.fill(str(value))
            entry.press("Tab")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def blur(self) -> None:
        self.page.evaluate("document.activeElement?.blur()")


@pytest.fixture(scope="session")
def visitor(browser: Browser) -> Iterator[BrowserContext]:
    """One browser's cache for all tests: scripts are fetched and compiled once."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context
    context.close()


@pytest.fixture
def debugger(visitor: BrowserContext, url: str) -> Iterator[Debugger]:
    """A new page in a browser that remembers nothing of the page but its files."""
    page = visitor.new_page()
    visitor.clear_cookies()
    visitor.clear_permissions()
    visitor.new_cdp_session(page).send("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
    opened = Debugger(page, url)
    yield opened
    for page in visitor.pages:
        page.close()
    assert not opened.errors, opened.errors


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a typed-in mean field and names it as a model."""

    return partial(mean_field, tmp_path)
