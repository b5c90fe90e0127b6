"""The Tables tab: the recorded numbers, as a chart and as a table, and a cell that opens its run."""

from __future__ import annotations

import json
import re

import pytest
from conftest import violations
from playwright.sync_api import expect

from app import tables
from engine.models import embedded
from engine.tables import document
from engine.tables.cells import Cell
from engine.tables.runner import Work, solve

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]
CELLS = tuple(Cell("countdown", arm, 1.0, steps) for arm in ("independent", "Mf", "Mar") for steps in (2, 4))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    denoiser = embedded.load()
    runs = solve(denoiser, Work("countdown", (0, 1), CELLS))
    results = {cell: {n: runs[n][cell] for n in runs} for cell in CELLS}
    path = tmp_path_factory.mktemp("results") / "results.json"
    path.write_text(json.dumps(document.summary(results, denoiser.facts, document.facts("the command"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "RESULTS", path)
        yield results


def shown(debugger):
    page = debugger.open().page
    page.get_by_role("tab", name="Tables").click()
    expect(page.locator("svg.tables")).to_be_visible()
    return page


def test_every_cell_has_its_numbers_and_opens_its_run_by_keyboard(recorded, debugger):
    page = shown(debugger)
    buttons = page.locator(".ds-tables-grid button")
    expect(buttons).to_have_count(len(CELLS))
    for cell, runs in recorded.items():
        right = 100 * sum(run.right for run in runs.values()) / len(runs)
        button = page.get_by_role("button", name=re.compile(rf"^{cell.arm}, {cell.steps} steps: {right:g}"))
        expect(button).to_have_count(1)
    before = debugger.get("run")
    page.get_by_role("radio", name=re.compile("problem")).check()
    page.get_by_role("spinbutton", name="Number of the problem").fill("1")
    page.get_by_role("button", name=re.compile("^Mar, 4 steps")).focus()
    debugger.press("Enter")
    page.wait_for_function("run => document.querySelector('[data-ready]').dataset.run !== run", arg=before)
    debugger.wait("status", "finished")
    expect(page.locator("#tabs").get_by_role("tab", name="Debugger")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".ds-value").first).to_have_text(
        recorded[Cell("countdown", "Mar", 1.0, 4)][1].text.replace(" ", "␣")
    )
    expect(page.locator("#seed input")).to_have_value("1")


def test_a_problem_that_was_not_measured_is_refused_in_place(recorded, debugger):
    page = shown(debugger)
    page.get_by_role("spinbutton", name="Number of the problem").fill("2")
    page.get_by_role("button", name=re.compile("^Mar, 4 steps")).click()
    expect(page.get_by_text("This cell has the problems 0 to 1.")).to_be_visible()


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1440)])
def test_the_tab_fits_and_is_readable(recorded, browser, url, theme, width):
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)
    page = context.new_page()
    page.goto(f"{url}/?__theme={theme}")
    page.get_by_role("tab", name="Tables").click()
    expect(page.locator("svg.tables")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, "#recorded", minor=True) == []
    context.close()
