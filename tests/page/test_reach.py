"""What a user can reach: panels that fill the page, dialogs on a phone, pins by key, runs of an address."""

from __future__ import annotations

import re

import pytest
from conftest import Debugger
from playwright.sync_api import Page, expect

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]
PAIR = "#a=example:mf-mar&b=example:mf-mar-beside&step=5&pos=12"


def on_top(page: Page, name: str) -> bool:
    """Whether nothing lies over the button by which a panel fills the page."""
    button = page.locator(f".ds-panel.ds-{name}").get_by_role("button", name="fill the page")
    return bool(
        button.evaluate(
            "node => { const {x, y, width, height} = node.getBoundingClientRect();"
            " return node.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }"
        )
    )


def test_nothing_lies_over_a_panel_that_fills_the_page_and_a_picture_uses_its_height(debugger: Debugger) -> None:
    page = debugger.open(PAIR).page
    debugger.wait("detail", "here")
    for name in ("position", "against", "order", "map", "tree", "trellis"):
        panel = page.locator(f".ds-panel.ds-{name}")
        canvas = panel.locator("canvas.ds-layer").first
        before = (canvas.bounding_box() or {})["height"] if name in ("map", "tree", "trellis") else 0
        panel.get_by_role("button", name="fill the page").click()
        assert on_top(page, name), name
        if before:
            page.wait_for_function(
                "([css, before]) => document.querySelector(css).clientHeight > 1.3 * before",
                arg=[f".ds-{name} canvas.ds-layer", before],
            )
        debugger.press("Escape")
        expect(panel).not_to_have_class(re.compile("large"))


@pytest.mark.parametrize("width", [390, 1440])
def test_one_escape_brings_a_panel_back_wherever_the_focus_is_and_tab_never_goes_on_behind_it(
    debugger: Debugger, width: int
) -> None:
    page = debugger.page
    page.set_viewport_size({"width": width, "height": 844})
    debugger.open(PAIR)
    debugger.wait("detail", "here")
    panel, open_ = page.locator(".ds-panel.ds-midpoint"), re.compile("large")
    button = panel.get_by_role("button", name="fill the page")
    button.focus()
    debugger.press("Enter")
    expect(page.locator("#ds-card")).to_contain_text("Back to its place")
    debugger.press("Escape")
    expect(panel).not_to_have_class(open_)
    expect(button).to_be_focused()
    debugger.press("Enter")
    expect(panel).to_have_class(open_)
    debugger.blur()
    debugger.press("Escape")
    expect(panel).not_to_have_class(open_)
    button.focus()
    debugger.press("Enter")
    expect(panel).to_have_class(open_)
    button.focus()
    debugger.press("Tab")
    expect(button).not_to_be_focused()
    expect(panel).not_to_have_class(open_)


def test_the_keys_open_at_their_beginning_on_a_phone(debugger: Debugger) -> None:
    page = debugger.page
    page.set_viewport_size({"width": 390, "height": 844})
    debugger.open()
    debugger.blur()
    debugger.press("Shift+?")
    title = page.get_by_role("heading", name="Keys", exact=True)
    expect(title).to_be_in_viewport()


def test_an_address_whose_second_run_is_gone_shows_the_first_and_says_so(debugger: Debugger) -> None:
    page = debugger.open("#a=example:mf-mar&b=nowhere&step=3&pos=1").page
    expect(page.locator(".ds-message .ds-problem")).to_contain_text("nowhere")
    debugger.wait("run", "example:mf-mar")
    debugger.wait("step", "3")
    debugger.wait("compare", "")


def test_an_emptied_number_of_a_fork_changes_nothing(debugger: Debugger) -> None:
    page = debugger.open("#a=example:mf-mar&step=3&pos=1").page
    debugger.wait("detail", "here")
    debugger.blur()
    debugger.press("e")
    staged = page.locator(".ds-staged")
    page.locator("#ds-set-temperature").fill("0.5")
    page.locator("#ds-set-temperature").press("Tab")
    expect(staged).to_contain_text("temperature is 0.5")
    page.locator("#ds-set-temperature").fill("")
    page.locator("#ds-set-temperature").press("Tab")
    expect(staged).to_contain_text("nothing yet")


def test_the_temperature_of_a_table_keeps_the_keyboard(debugger: Debugger) -> None:
    page = debugger.open().page
    page.get_by_role("tab", name="Tables").click()
    choice = page.locator("input[name=tables-temperature]")
    choice.first.focus()
    debugger.press("ArrowRight")
    expect(choice.nth(1)).to_be_focused()
    expect(choice.nth(1)).to_be_checked()
