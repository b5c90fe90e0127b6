"""The page for everybody: axe-core's rules for WCAG A and AA, keyboard alone, less motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import synthetic
from conftest import Debugger, violations
from playwright.sync_api import Browser, expect

from app.components import CLIENT
from viz import offline

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_axe_finds_nothing_serious(browser: Browser, url: str, scheme: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    debugger = Debugger(context.new_page(), url).open()
    debugger.wait("detail", "here")
    page = debugger.page
    page.wait_for_timeout(400)
    assert violations(page) == []
    debugger.blur()
    for key, dialog in (("e", ".ds-fork"), ("/", ".ds-palette")):
        expect(page.locator("dialog[open]")).to_have_count(0)
        debugger.blur()
        debugger.press(key)
        expect(page.locator(dialog)).to_be_visible()
        assert violations(page) == [], f"after {key}"
        debugger.press("Escape")
    debugger.blur()
    debugger.press("x")
    page.locator('.ds-card[data-name="mf-mar"]').click()
    expect(page.locator(".ds-against")).to_contain_text("They part")
    assert violations(page) == []
    # A second position, why a token may not stand there, and the numbers of a state.
    debugger.open("#a=example:no-such-hour&step=2&pos=1&pos2=3&token=7&state=2")
    expect(page.locator(".ds-why-token[data-reason=local]:not(.waiting)")).to_have_count(2)
    expect(page.locator(".ds-cell:not(.waiting)[data-posterior]")).to_be_visible()
    assert violations(page) == []
    assert not debugger.errors
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_file_that_opens_offline(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    file = tmp_path / "run.html"
    run = synthetic.trace(synthetic.real_number(), 8, 4)
    # The policy of the file keeps every foreign script out, the rules' too.
    file.write_text(offline.html(run, CLIENT).replace("Content-Security-Policy", "x-policy"), encoding="utf-8")
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("[data-ready][data-detail=here]", state="attached")
    assert violations(page) == []
    context.close()


def test_the_keyboard_alone_reaches_a_position_and_its_fork(debugger: Debugger) -> None:
    page = debugger.open().page
    here = page.locator(".ds-token[data-i][tabindex='0']")
    expect(here).to_have_count(1)  # one stop for the whole canvas
    here.focus()
    before = int(debugger.get("position") or 0)
    debugger.press("]")
    debugger.wait("position", str(before + 1))
    expect(page.locator(".ds-token:focus")).to_have_attribute("data-i", str(before + 1))
    debugger.press("e")
    expect(page.locator("dialog.ds-fork")).to_be_visible()
    debugger.press("Escape")
    expect(page.locator("dialog.ds-fork")).to_be_hidden()
    expect(page.locator(".ds-live")).to_contain_text(f"Position {before + 1}")


def test_with_less_motion_nothing_moves_by_itself(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    debugger = Debugger(context.new_page(), url).open()
    step = debugger.get("step")
    debugger.page.wait_for_timeout(600)
    assert debugger.get("step") == step
    moving = debugger.page.evaluate("document.getAnimations().filter(a => a.playState === 'running').length")
    assert moving == 0
    context.close()
