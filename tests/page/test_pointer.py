"""By pointer and by key: lanes of the scrubber, the map, the builder of breakpoints, what hovering says, playing, kept links."""

from __future__ import annotations

import re

import pytest
from conftest import Debugger
from playwright.sync_api import Locator, expect

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def lost(debugger: Debugger) -> Debugger:
    """The page on a run that lost its way, at its first step."""
    page = debugger.open().page
    page.get_by_role("button", name="Examples").click()
    page.locator("[data-name=no-such-hour]").click()
    debugger.wait("run", "example:no-such-hour")
    debugger.wait("detail", "here")
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    return debugger


def picture(canvas: Locator) -> str:
    return str(canvas.evaluate("c => c.toDataURL()"))


def over(box: Locator, x: float, y: float) -> dict[str, float]:
    """A place in a box, in parts of its size, clear of what is stuck to the top of the page."""
    box.scroll_into_view_if_needed()
    size = box.bounding_box() or {}
    return {"x": x * size["width"], "y": y * size["height"]}


def test_the_lanes_say_what_a_step_did_and_a_click_in_them_goes_there(lost: Debugger) -> None:
    page = lost.page
    track, card = page.locator(".ds-track"), page.locator("#ds-card")
    steps = int(lost.get("count") or 0)
    track.hover(position=over(track, 2.5 / steps, 0.5))
    expect(card).to_contain_text("step 2")
    expect(card).to_contain_text("log Z −2.81 nats")
    expect(card).to_contain_text("1 committed")
    expect(card).to_contain_text("The draw of this step is not accepted")
    track.click(position=over(track, 2.5 / steps, 0.5))
    lost.wait("step", "2")
    # Where a breakpoint hits there is a tick in the lanes.
    before = picture(page.locator(".ds-lanes"))
    page.locator("#ds-break").fill("step == 1")
    page.locator("#ds-break").press("Enter")
    expect(page.locator(".ds-stops .ds-count")).to_have_text("1 hit")
    page.wait_for_function("was => document.querySelector('.ds-lanes').toDataURL() !== was", arg=before)


def test_a_breakpoint_is_put_together_from_what_there_is(lost: Debugger) -> None:
    page = lost.page
    page.get_by_label("Quantity", exact=True).select_option("kl")
    page.get_by_label("Comparison").select_option(">")
    page.get_by_label("Value", exact=True).fill("0.5")
    page.get_by_role("button", name="Put in").click()
    expect(page.locator("#ds-break")).to_have_value("kl > 0.5")
    page.get_by_label("Quantity", exact=True).select_option("commit")
    page.get_by_role("button", name="Put in").click()
    expect(page.locator("#ds-break")).to_have_value("kl > 0.5 and commit")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".ds-breaks code")).to_have_text("kl > 0.5 and commit")
    expect(page.locator(".ds-stops .ds-count")).to_have_text(re.compile(r"^\d+ hits?$"))


def test_the_map_changes_its_quantity_says_what_a_cell_holds_and_a_cell_is_a_place_to_go_and_to_fork(
    lost: Debugger,
) -> None:
    page = lost.page
    plot = page.locator(".ds-map .ds-plot[data-side=a]")
    canvas = plot.locator("canvas.ds-layer")
    seen = {picture(canvas)}
    for name in ("mf", "q", "p", "kl", "forbidden", "commit"):
        lost.press("m")
        expect(page.get_by_label("Quantity of the map")).to_have_value(name)
        seen.add(picture(canvas))
    assert len(seen) > 4, "most quantities look different"
    place = over(canvas, 0.6, 0.4)
    canvas.hover(position=place)
    card = page.locator("#ds-card")
    expect(card).to_be_visible()
    said = re.search(r"Position (?P<position>\d+) at step (?P<step>\d+)", card.text_content() or "")
    assert said
    canvas.click(position=place)
    lost.wait("step", said["step"])
    lost.wait("position", said["position"])
    canvas.click(position=place, button="right")
    expect(page.get_by_role("heading", name=f"Fork at step {said['step']}")).to_be_visible()
    lost.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


# Pressed in the page, since a step lasts a quarter of a second.
PRESSED_AT_ONE = """() => new Promise(done => {
  const look = () => {
    if (document.querySelector('[data-ready]').dataset.step !== '1') return requestAnimationFrame(look);
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key: ' ', code: 'Space', bubbles: true}));
    done();
  };
  look();
})"""


def test_space_plays_to_the_end_and_stops_there_or_where_it_is_pressed_again(lost: Debugger) -> None:
    last = str(int(lost.get("count") or 0) - 1)
    lost.press("Space")
    lost.wait("step", last)
    lost.press("Home", "Space")
    lost.page.evaluate(PRESSED_AT_ONE)
    lost.page.wait_for_timeout(700)
    lost.wait("step", "1")


def test_what_comes_from_a_place_of_the_source_stays_lit_when_it_is_kept(debugger: Debugger) -> None:
    page = debugger.open().page
    page.get_by_role("button", name="Examples").click()
    page.locator("[data-name=right-marginals]").click()
    debugger.wait("run", "example:right-marginals")
    place = page.locator(".ds-source span", has_text=re.compile(r"^\\\.$")).last
    place.click()
    page.locator(".ds-config").hover()
    expect(page.locator(".ds-automaton g.node.lit")).to_have_count(1)
    expect(page.locator(".ds-source .lit")).to_have_count(1)
    place.click()
    page.locator(".ds-config").hover()
    expect(page.locator(".lit")).to_have_count(0)
