"""The explain card: one anatomy for every mark, by pointer, keyboard and touch, on the page and in a file that needs none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Debugger, violations
from playwright.sync_api import Browser, Locator, Page, expect

from app import examples
from app.components import CLIENT
from viz import offline

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]

PASSING, KEPT = "#ds-card", "#ds-card-kept"


@pytest.fixture
def call(debugger: Debugger) -> Debugger:
    """The page on its first example at step 5, position 6."""
    debugger.open()
    debugger.wait("run", "example:call-json")
    debugger.wait("detail", "here")
    debugger.blur()
    return debugger


def inside(page: Page, selector: str, x: float, y: float) -> tuple[float, float]:
    """A place in the window, in parts of an element's size, clear of what is stuck to the top of the page."""
    page.evaluate("s => document.querySelector(s).scrollIntoView({block: 'center'})", selector)
    page.wait_for_timeout(100)  # a scroll hides what a pointer called up
    box = page.locator(selector).first.bounding_box()
    assert box
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def said(card: Locator) -> str:
    """What a card says, once it is there."""
    expect(card).to_be_visible()
    return str(card.evaluate("c => [...c.querySelectorAll('b, p, dt, dd, nav')].map(n => n.textContent).join(' | ')"))


def middle(page: Page, selector: str) -> tuple[float, float]:
    return inside(page, selector, 0.5, 0.5)


# Of each kind of mark: the element that takes the keys, and where the pointer finds what these are on.
AXIS = "(b) => { const p = document.querySelector(b), w = p.clientWidth, left = 46, c = Math.min(64, (w - 66) / 32); return [(left + c * 6.5) / w, (left + c * 6) / w]; }"
MARKS: dict[str, tuple[str, Callable[[Page], tuple[float, float]]]] = {
    "token": (".ds-token[data-i='6']", lambda page: middle(page, ".ds-token[data-i='6']")),
    "cell of the map": (
        ".ds-map .ds-plot",
        lambda page: inside(page, ".ds-map .ds-plot", _x(page, ".ds-map"), 5.5 / 17),
    ),
    "midpoint": (".ds-tree .ds-plot", lambda page: inside(page, ".ds-tree .ds-plot", _x(page, ".ds-tree"), 4.5 / 6)),
    "state": (".ds-automaton g#q12", lambda page: middle(page, ".ds-automaton g#q12")),
    "number of a position": (".ds-facts", lambda page: middle(page, ".ds-facts [data-fact=mar]")),
    "token of the inspector": (".ds-row[data-id] .ds-name", lambda page: middle(page, ".ds-row[data-id] .ds-name")),
    "lane": (".ds-range", lambda page: inside(page, ".ds-track", 5.5 / 16, 0.5)),
}


def _x(page: Page, panel: str) -> float:
    return float(page.evaluate(AXIS, f"{panel} .ds-plot")[0])


@pytest.mark.parametrize("kind", MARKS)
def test_a_pointer_that_rests_and_the_keyboard_are_told_the_same(call: Debugger, kind: str) -> None:
    page, (element, place) = call.page, MARKS[kind]
    card = page.locator(PASSING)
    page.mouse.move(*place(page))
    pointed = said(card)
    assert pointed.count(" | ") >= 4, "what, value, why and what would change it"
    assert " | why | " in pointed
    assert " | change | " in pointed
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()
    page.locator(element).first.focus()
    assert said(card) == pointed
    assert page.locator(element).first.get_attribute("aria-describedby") == "ds-card"
    call.blur()
    expect(card).to_be_hidden()
    assert page.locator(element).first.get_attribute("aria-describedby") is None


def test_a_cell_of_the_trellis_is_told_to_pointer_and_keyboard_alike(call: Debugger) -> None:
    page, card = call.page, call.page.locator(PASSING)
    plot = page.locator(".ds-trellis .ds-plot")
    plot.focus()
    by_key = said(card)
    assert by_key.startswith("State 12 at boundary 6 (the draw is here)")
    call.press("ArrowDown")
    expect(card).to_contain_text("State 13 at boundary 6")
    expect(card).to_contain_text("Not live: no accepted completion passes here.")
    call.press("ArrowRight")
    expect(card).to_contain_text("State 13 at boundary 7 (the draw is here)")
    assert call.get("step") == "5", "arrows in the trellis move in the trellis"
    call.blur()
    call.press("[")
    call.wait("position", "6")
    rows = 43
    height = float(plot.evaluate("p => p.clientHeight"))
    page.mouse.move(
        *inside(
            page,
            ".ds-trellis .ds-plot",
            float(page.evaluate(AXIS, ".ds-trellis .ds-plot")[1]),
            (4 + (190 / rows) * 12.5) / height,
        )
    )
    assert said(card) == by_key


def test_two_runs_explain_where_they_differ_and_the_order_of_their_commits(debugger: Debugger) -> None:
    page, card = (
        debugger.open("#a=example:mf-mar&b=example:mf-mar-beside&step=3&pos=6").page,
        debugger.page.locator(PASSING),
    )
    debugger.wait("compare", "example:mf-mar-beside")
    debugger.wait("position", "6")
    expect(page.locator(".ds-compare .ds-table").first).to_be_visible()
    debugger.blur()
    debugger.press("Tab")
    maps = page.locator(".ds-compare .ds-plot")
    maps.first.focus()
    expect(card).to_contain_text("Step 3, position 6 in both runs")
    expect(card).to_contain_text(re.compile(r"A: Mar 0\.986, Mf 0\.985"))
    maps.last.focus()
    expect(card).to_contain_text("Position 6 in the order of commits")
    by_key = said(card)
    run = examples.load("example:mf-mar")
    assert run
    order = sorted((step, i) for step, record in enumerate(run.steps) for i in record.committed.nonzero()[0].tolist())
    place = next(k for k, (_, i) in enumerate(order) if i == 6)
    debugger.blur()
    size = maps.last.bounding_box() or {}
    row = max(2, min(16, 300 / len(order)))
    x = min(150, size["width"] * 0.32) + 1
    maps.last.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    size = maps.last.bounding_box() or {}
    page.mouse.move(size["x"] + x, size["y"] + 20 + (place + 0.5) * row)
    assert said(card) == by_key
    assert not debugger.errors


def test_the_trellis_with_its_weights_shows_the_same_sums_in_its_cards(debugger: Debugger) -> None:
    page, card = debugger.open("#a=example:two-dots&step=0&pos=0").page, debugger.page.locator(PASSING)
    debugger.wait("run", "example:two-dots")
    node = page.locator(".ds-weights [role=button][aria-label='boundary 1, state 2']")
    expect(node).to_be_visible()
    node.hover()
    pointed = said(card)
    assert pointed.startswith("State 2 at boundary 1 | γ ")
    assert "γ = α × β ÷ Z" in pointed
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()
    debugger.press("Tab")
    node.focus()
    assert said(card) == pointed
    node.click()
    assert (page.locator(".ds-weights [role=status]").text_content() or "").split(": ", 1)[1].rstrip(".") in pointed


def test_who_passes_by_is_told_nothing_and_who_rests_after_200_ms(call: Debugger) -> None:
    page, card = call.page, call.page.locator(PASSING)
    x, y = middle(page, ".ds-token[data-i='0']")
    page.evaluate(
        "window.opened = 0; document.querySelector('#ds-card').addEventListener('toggle', e => { if (e.newState === 'open') window.opened = performance.now(); })"
    )
    # In the page, whose timers keep their order however late they are.
    page.evaluate(
        """async ([x, y]) => {
          for (let n = 0; n < 12; n++) {
            const at = {clientX: x + 18 * n, clientY: y, bubbles: true, pointerType: 'mouse'};
            document.elementFromPoint(at.clientX, y).dispatchEvent(new PointerEvent('pointermove', at));
            await new Promise(done => setTimeout(done, 40));
          }
          document.querySelector('[data-ready] .ds').dispatchEvent(new PointerEvent('pointerleave', {pointerType: 'mouse'}));
        }""",
        [x, y],
    )
    page.wait_for_timeout(400)
    assert page.evaluate("window.opened") == 0
    page.evaluate(
        "document.addEventListener('pointermove', e => { window.rested = performance.now(); }, {capture: true})"
    )
    page.mouse.move(x, y)
    expect(card).to_be_visible()
    assert page.evaluate("window.opened - window.rested") >= 195


def test_the_card_can_be_reached_stays_under_the_pointer_and_escape_dismisses_it(call: Debugger) -> None:
    page, card = call.page, call.page.locator(PASSING)
    page.mouse.move(*middle(page, ".ds-token[data-i='6']"))
    expect(card).to_be_visible()
    box = card.bounding_box() or {}
    for part in (0.05, 0.4):
        page.mouse.move(box["x"] + 30, box["y"] + part * box["height"], steps=4)
    page.wait_for_timeout(700)
    expect(card).to_be_visible()
    call.press("Escape")
    expect(card).to_be_hidden()
    here = page.locator(".ds-token[data-i='6']")
    here.focus()
    expect(card).to_be_visible()
    call.press("Escape")
    expect(card).to_be_hidden()
    page.wait_for_timeout(600)
    expect(card).to_be_hidden()
    expect(here).to_be_focused()
    call.press("]")
    expect(card).to_contain_text("Position 7")


def test_enter_pins_a_card_whose_links_tab_reaches_and_which_follows_the_step_until_escape(call: Debugger) -> None:
    page, kept = call.page, call.page.locator(KEPT)
    here = page.locator(".ds-token[data-i='6']")
    here.focus()
    expect(page.locator(PASSING)).to_be_visible()
    call.press("Enter")
    expect(kept).to_be_visible()
    expect(page.locator(PASSING)).to_be_hidden()
    page.mouse.move(2, 2)
    page.wait_for_timeout(500)
    expect(kept).to_contain_text("Position 6 at step 5")
    call.press("ArrowLeft")
    expect(kept).to_contain_text("Position 6 at step 4")
    expect(here).to_be_focused()
    call.press("Tab")
    link = kept.get_by_role("button", name="step 15, which commits it")
    expect(link).to_be_focused()
    call.press("Enter")
    call.wait("step", "15")
    expect(kept).to_contain_text("Position 6 at step 15: committed by this step")
    call.press("Shift+Tab", "Shift+Tab")
    expect(here).to_be_focused()
    # Another card passes beside the pinned one, and takes its place only when it is pinned too.
    page.mouse.move(*middle(page, ".ds-token[data-i='9']"))
    expect(page.locator(PASSING)).to_contain_text("Position 9")
    expect(kept).to_contain_text("Position 6")
    call.press("Enter")
    expect(kept).to_contain_text("Position 9")
    assert call.get("position") == "6", "what is pinned under the pointer is no place that was gone to"
    page.mouse.move(2, 2)
    call.press("Escape")
    expect(kept).to_be_hidden()


def test_controls_say_what_they_are_for_by_the_same_card_and_nothing_has_a_box_of_the_browser(call: Debugger) -> None:
    page, card = call.page, call.page.locator(PASSING)
    button = page.get_by_role("button", name="Fork…")
    button.hover()
    expect(card).to_have_text("Change something at this step and position (e)")
    page.mouse.move(2, 2)
    expect(card).to_be_hidden()
    call.press("Tab")
    button.focus()
    expect(card).to_have_text("Change something at this step and position (e)")
    expect(button).to_have_attribute("aria-describedby", "ds-card")
    call.press("Enter")
    expect(page.locator("dialog.ds-fork")).to_be_visible()
    expect(page.locator(KEPT)).to_be_hidden()
    call.press("Escape")
    expect(page.locator("dialog.ds-fork")).to_be_hidden()
    assert page.evaluate("document.querySelectorAll('.ds [title]').length") == 0


def test_the_arrows_go_through_the_numbers_and_the_remainders_of_the_inspector(call: Debugger) -> None:
    page, card = call.page, call.page.locator(PASSING)
    call.press("Tab")
    page.locator(".ds-facts").focus()
    expect(card).to_contain_text("Mar, the constrained confidence of position 6")
    expect(card).to_contain_text("q of the drawn token, at temperature 1")
    call.press("ArrowRight")
    expect(card).to_contain_text("Mf, the unconstrained confidence of position 6")
    for _ in range(9):
        call.press("ArrowRight")
    expect(card).to_contain_text("Forbidden mass at position 6")
    names = page.locator(".ds-position-column .ds-rows .ds-name")
    names.first.focus()
    for _ in range(names.count() - 2):
        call.press("ArrowDown")
    expect(card).to_contain_text("All tokens that are forbidden at position 6")
    expect(card).to_contain_text("461 tokens")
    assert call.get("step") == "5"
    assert call.get("position") == "6"


def test_the_last_link_of_a_pinned_card_leads_on_through_the_page(call: Debugger) -> None:
    page, kept = call.page, call.page.locator(KEPT)
    page.locator(".ds-automaton g#q12").focus()
    call.press("Enter")
    expect(kept).to_contain_text("State 12 at boundary 6")
    buttons = kept.locator("button")
    call.press("Tab")
    expect(kept.locator("nav button").first).to_be_focused()
    for _ in range(buttons.count() - 1):
        call.press("Tab")
    assert page.evaluate("!document.activeElement.closest('#ds-card-kept, #q12')")


def test_an_edge_has_a_card_which_its_ends_lead_to(call: Debugger) -> None:
    page, card, kept = call.page, call.page.locator(PASSING), call.page.locator(KEPT)
    page.mouse.move(*middle(page, ".ds-automaton g.edge#eq12_q13 text"))
    pointed = said(card)
    assert pointed.startswith("Edge from state 12 to state 13")
    assert "The draw takes it at position 6: tun" in pointed
    page.mouse.move(2, 2)
    page.locator(".ds-automaton g#q12").focus()
    call.press("Enter")
    kept.get_by_role("button", name="edge to 13").click()
    expect(page.locator(".ds-automaton g#eq12_q13")).to_be_focused()
    call.press("Escape")
    page.locator(".ds-automaton g#q12").focus()
    page.locator(".ds-automaton g#eq12_q13").focus()
    assert said(card) == pointed


@pytest.mark.parametrize("element", [".ds-token[data-i='6']", ".ds-automaton g#q12", ".ds-token[data-i='31']"])
def test_the_card_never_crosses_an_edge_of_the_window_nor_hides_its_mark(call: Debugger, element: str) -> None:
    page, card = call.page, call.page.locator(PASSING)
    page.set_viewport_size({"width": 900, "height": 620})
    sides = set()
    for block in ("start", "end"):
        page.evaluate("([s, block]) => document.querySelector(s).scrollIntoView({block})", [element, block])
        page.wait_for_timeout(200)
        page.locator(element).focus()
        expect(card).to_be_visible()
        box, mark = card.bounding_box() or {}, page.locator(element).bounding_box() or {}
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= 900
        assert box["y"] + box["height"] <= 620
        assert box["y"] >= mark["y"] + mark["height"] or box["y"] + box["height"] <= mark["y"]
        sides.add(card.get_attribute("data-side"))
        call.blur()
        expect(card).to_be_hidden()
    assert sides <= {"above", "below"}
    if "g#q12" in element:
        assert "above" in sides


def test_looking_and_scrubbing_with_cards_asks_the_server_nothing(call: Debugger) -> None:
    page, asked = call.page, []
    page.wait_for_timeout(1000)
    page.on("request", lambda request: asked.append(request.url))
    page.locator(".ds-token[data-i='6']").focus()
    for key in ["ArrowRight"] * 4 + ["]"] * 4:
        call.press(key)
    expect(page.locator(PASSING)).to_contain_text("Position 10 at step 9")
    page.mouse.move(*inside(page, ".ds-map .ds-plot", 0.4, 0.6))
    expect(page.locator(PASSING)).to_contain_text("at step")
    assert not asked


def test_a_finger_gets_the_card_as_a_sheet_and_lets_go_of_it_elsewhere(browser: Browser, url: str) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True, color_scheme="dark"
    )
    debugger = Debugger(context.new_page(), url).open()
    page, kept = debugger.page, debugger.page.locator(KEPT)
    debugger.wait("detail", "here")
    page.locator(".ds-token[data-i='8']").tap()
    expect(kept).to_contain_text("Position 8")
    debugger.wait("position", "8")
    box = kept.bounding_box() or {}
    assert (box["x"], box["width"]) == (0, 390)
    assert box["y"] + box["height"] == pytest.approx(800, abs=1)
    assert box["height"] <= 0.5 * 800
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []
    page.locator(".ds-config").tap(position={"x": 5, "y": 5})
    expect(kept).to_be_hidden()
    page.locator(".ds-map .ds-layer").tap(position={"x": 200, "y": 60})
    expect(kept).to_contain_text("at step")
    kept.get_by_role("button", name="Let go of the card").tap()
    expect(kept).to_be_hidden()
    assert not debugger.errors
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_card(browser: Browser, url: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    debugger = Debugger(context.new_page(), url).open()
    debugger.wait("detail", "here")
    debugger.page.locator(".ds-token[data-i='6']").focus()
    debugger.press("Enter")
    debugger.press("]")
    expect(debugger.page.locator(KEPT)).to_be_visible()
    expect(debugger.page.locator(PASSING)).to_be_visible()
    debugger.page.wait_for_timeout(200)
    assert violations(debugger.page) == []
    context.close()


def test_a_forced_position_says_what_would_free_it(debugger: Debugger) -> None:
    page = debugger.open("#a=example:call-json&step=0&pos=0").page
    debugger.wait("position", "0")
    debugger.blur()
    debugger.press("f")
    page.wait_for_function("document.querySelector('[data-ready]').dataset.detail === 'here'")
    at = debugger.get("position")
    page.locator(f".ds-token[data-i='{at}']").focus()
    card = page.locator(PASSING)
    expect(card).to_contain_text("Forced: a single token is allowed here.")
    expect(card).to_contain_text(re.compile("Loosen .+, or (take back what is committed at|another length)"))


def test_a_file_that_opens_offline_explains_by_pointer_and_keyboard(browser: Browser, tmp_path: Path) -> None:
    trace = examples.load("example:call-json")
    assert trace
    file = tmp_path / "run.html"
    file.write_text(offline.html(trace, CLIENT), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector("#debugger[data-painted=yes][data-detail=here]", state="attached")
    page.mouse.move(*middle(page, ".ds-token[data-i='6']"))
    pointed = said(page.locator(PASSING))
    assert "fork" not in pointed
    page.mouse.move(2, 2)
    page.locator(".ds-token[data-i='6']").focus()
    assert said(page.locator(PASSING)) == pointed
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator(f"{KEPT} nav button").first).to_be_focused()
    assert not errors
    context.close()
