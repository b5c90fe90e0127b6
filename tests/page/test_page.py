"""The page in a real browser, driven as a user would; the engine behind it is the real one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
from conftest import DIGITS, REAL, ROW, Debugger, form
from playwright.sync_api import Browser, expect

from app import examples, loading
from app import page as page_module
from engine import trace_file
from engine.models.table import Table

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]


def test_a_run_streams_to_its_end_and_every_panel_follows_the_arrow_keys(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    debugger.wait("count", "8")
    debugger.wait("step", "7")  # who hasn't moved sees the newest step
    debugger.blur()
    calls: list[str] = []
    debugger.wait("detail", "here")
    page.wait_for_timeout(300)
    page.on("request", lambda request: calls.append(request.url))
    debugger.press("Home")
    debugger.wait("step", "0")
    # The canvas before the first step is masked but for what that step commits.
    expect(page.locator(".ds-token[data-i][data-state=now]")).to_have_count(1)
    debugger.press("ArrowRight", "ArrowRight", "ArrowRight")
    debugger.wait("step", "3")
    expect(page.locator(".ds-token[data-i][data-state=fixed]")).to_have_count(3)
    expect(page.locator(".ds-commits tr.now td").first).to_have_text("3")
    debugger.press("End", "ArrowLeft")
    debugger.wait("step", "6")
    assert not calls, "scrubbing must not call the server"
    text = page.locator(".ds-value").first.inner_text()
    assert re.fullmatch(REAL, text)
    expect(page.locator(".ds-config b")).to_have_text("✓ accepted")


def test_a_chosen_position_shows_both_distributions_with_what_remains(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    page.locator(".ds-token[data-i='5']").first.click()
    debugger.wait("position", "5")
    debugger.wait("detail", "here")
    expect(page.locator(".ds-position .ds-where")).to_contain_text("position 5")
    rows = page.locator(".ds-position .ds-row")
    expect(rows.filter(has_text="total").locator(".ds-n")).to_have_text(["1.000", "1.000"])
    expect(rows.filter(has_text="other allowed")).to_have_count(1)
    expect(rows.filter(has_text="forbidden (")).to_have_count(1)
    dot = rows.filter(has=page.locator(".ds-name", has_text=re.compile(r"^\.$"))).locator(".ds-n")
    q, p = (float(x) for x in dot.all_inner_texts())
    assert p == pytest.approx(0.3, abs=1e-3)
    assert q < p, "a real number has one dot, so the constraint lowers it"
    debugger.press("]")
    debugger.wait("position", "6")


def test_the_automaton_the_tree_and_the_trellis_show_the_draw(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    debugger.blur()
    debugger.press("Home")
    expect(page.locator(".ds-graph g.node.here")).to_have_count(1)
    expect(page.locator(".ds-graph g.edge.taken")).to_have_count(1)
    expect(page.locator(".ds-graph g.node.live")).not_to_have_count(0)
    expect(page.locator(".ds-source .on").first).to_be_visible()
    # A click in the top row of the icicle chooses the end, whose conditional is then shown.
    page.locator(".ds-tree canvas").click(position={"x": 120, "y": 8})
    expect(page.locator(".ds-midpoint .ds-where")).to_contain_text("the end")
    expect(page.locator(".ds-midpoint .ds-row.drawn")).to_have_count(1)
    page.locator(".ds-trellis canvas").click(position={"x": 120, "y": 10})
    expect(page.locator(".ds-graph g.node.chosen")).to_have_count(1)


def test_a_second_run_beside_the_first_shares_the_step(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    debugger.run(form(table([[0.01] * 10 + [0.9]] * 2), length=2, block=2, steps=1))
    first = debugger.get("run")
    page.locator("#change input").click()
    page.get_by_role("option", name="Independent draws").click()
    page.click("#run-beside")
    expect(page.locator(".ds-text")).to_have_count(2)
    expect(page.locator("#debugger [data-running=no]")).to_have_count(1)
    verdicts = page.locator(".ds-verdict")
    expect(verdicts.first).to_have_text("✓ accepted")
    assert debugger.get("run") == first
    assert debugger.get("compare") not in ("", first)
    debugger.blur()
    debugger.press("b")
    debugger.wait("side", "b")
    expect(page.locator(".ds-config")).to_contain_text("independent")


def test_a_running_run_can_be_stopped_and_what_it_has_stays(
    debugger: Debugger, table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Table.logits

    def slowly(self: Table, *given: object) -> object:
        time.sleep(0.1)
        return answer(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "logits", slowly)
    page = debugger.open().page
    debugger.run(form(table([ROW] * 64), length=64, block=64, steps=64), finish=False)
    page.get_by_role("button", name="■ Stop").click()
    debugger.wait("status", "stopped")
    count = int(debugger.get("count") or 0)
    assert 0 < count < 64
    debugger.blur()
    debugger.press("Home", "ArrowRight")
    debugger.wait("step", "1")
    expect(page.locator(".ds-config b")).to_contain_text(f"stopped after {count} of 64 steps")


def test_a_regex_that_does_not_parse_is_shown_with_a_caret_and_the_earlier_run_stays(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    before = debugger.get("run")
    debugger.fill("source", "[0-9]+(\\.[0-9]*")
    page.click("#run")
    alarm = page.locator(".ds-message")
    expect(alarm).to_be_visible()
    expect(alarm.locator(".ds-place")).to_have_text(re.compile(r"^line 1, column \d+$"))
    frame = alarm.locator("pre").inner_text()
    assert "[0-9]+(" in frame
    assert "^" in frame
    assert alarm.locator(".ds-remedy").inner_text()
    assert debugger.get("run") == before
    expect(page.locator(".ds-token[data-i]")).to_have_count(8)
    debugger.fill("source", REAL)
    debugger.run({})
    expect(alarm).to_be_hidden()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"length": 9}, "doesn't divide"),
        ({"length": 0}, "length is 0"),
        ({"source": "abc"}, "accepted"),
        ({"model": "no such model"}, "no such model"),
        ({"seed": ""}, "seed is empty"),
    ],
)
def test_a_mistake_in_the_form_is_told_on_the_page_until_it_is_mended(
    debugger: Debugger, table: Callable[..., str], change: dict[str, object], said: str
) -> None:
    page = debugger.open().page
    sound = form(table([ROW] * 8))
    for field, value in {**sound, **change}.items():
        debugger.fill(field, value)
    page.click("#run")
    expect(page.locator(".ds-message .ds-problem")).to_contain_text(said)
    expect(page.locator(".ds-message .ds-remedy")).not_to_be_empty()
    for field in change:
        debugger.fill(field, sound[field])
    expect(page.locator(".ds-message")).to_be_hidden()


def test_hostile_tokens_are_shown_and_never_run(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    tokens = [*DIGITS, *synthetic.HOSTILE]
    row = [0.01] * len(DIGITS) + [1.0] * len(synthetic.HOSTILE)
    debugger.run(form(table([row] * 8, tokens), kind="none"))
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    debugger.wait("detail", "here")
    shown = page.locator(".ds-position .ds-name").all_inner_texts()
    assert '<img␣src=x␣onerror="windo…' in shown
    assert "${window.hacked=1}" in shown
    expect(page.locator(".ds-graph svg")).to_be_visible()
    page.locator(".ds-map canvas.ds-layer").hover(position={"x": 90, "y": 20})
    assert page.evaluate("window.hacked") is None
    assert page.locator("#debugger img, #debugger script").count() == 0


def test_a_hostile_constraint_and_message_are_shown_and_never_run(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    nasty = "(<img src=x onerror=window.hacked=1>${window.hacked=1}"
    for field, value in form(table([ROW] * 8), source=nasty).items():
        debugger.fill(field, value)
    page.click("#run")
    expect(page.locator(".ds-message pre")).to_contain_text("<img src=x onerror=")
    assert page.evaluate("window.hacked") is None


def test_a_saved_trace_opens_again_and_a_damaged_one_is_refused(
    debugger: Debugger, table: Callable[..., str], tmp_path: Path
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    before = debugger.get("run")
    with page.expect_download() as started:
        page.get_by_role("button", name="Save", exact=True).click()
    saved = tmp_path / started.value.suggested_filename
    started.value.save_as(saved)
    read = trace_file.load(saved)
    assert read.finished
    assert read.accepted
    page.set_input_files("#open input[type=file], input[type=file]", saved)
    page.wait_for_function("before => document.querySelector('[data-ready]').dataset.run !== before", arg=before)
    debugger.wait("count", "8")
    opened = debugger.get("run")
    damaged = tmp_path / "damaged.trace"
    damaged.write_bytes(b"not a trace")
    page.set_input_files("#open input[type=file], input[type=file]", damaged)
    expect(page.locator(".ds-message .ds-problem")).to_contain_text("not a trace")
    debugger.fill("seed", 5)
    page.wait_for_timeout(500)
    expect(page.locator(".ds-message")).to_be_visible()  # it is not the form's
    assert debugger.get("run") == opened


def test_the_address_brings_the_same_focus_back(debugger: Debugger) -> None:
    first = examples.gallery()[0].run_ids[0]
    page = debugger.open().page
    debugger.wait("run", first)
    debugger.press("Home", "ArrowRight", "]")
    page.wait_for_function("location.hash.includes('step=1')")
    fragment = "#" + page.url.partition("#")[2]
    debugger.open(fragment)
    debugger.wait("step", "1")
    assert debugger.get("run") == first


@pytest.mark.slow
def test_every_example_opens_without_its_model(debugger: Debugger, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    read = loading._fresh
    monkeypatch.setattr("app.loading._fresh", lambda name: loaded.append(name) or read(name))
    cards = [card for card in examples.gallery() if card.files]
    assert len(cards) >= 8
    page = debugger.open().page
    for card in cards[1:]:
        debugger.blur()
        page.get_by_role("button", name="Examples").click()
        page.locator(f'.ds-card[data-name="{card.name}"]').click()
        debugger.wait("run", card.run_ids[0])
        if len(card.run_ids) > 1:
            expect(page.locator(".ds-text")).to_have_count(2)
    # The form's check reads a typed-in table for its tokens; weights are loaded for nothing.
    assert all(name.startswith("table:") for name in loaded), loaded


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_only_down(browser: Browser, url: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    narrow = Debugger(context.new_page(), url).open()
    for selector in (".ds-canvas", ".ds-map", ".ds-trellis", ".ds-position"):
        expect(narrow.page.locator(selector)).to_be_visible()
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not narrow.errors, narrow.errors
    context.close()


def test_the_keys_are_listed_on_the_page(debugger: Debugger) -> None:
    page = debugger.open().page
    debugger.press("?")
    expect(page.locator(".ds-keys").first).to_be_visible()
    debugger.press("Escape")
    expect(page.locator(".ds-keys").first).to_be_hidden()


def test_without_dot_the_browser_lays_the_graph_out(
    debugger: Debugger, table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viz.automaton.layout", lambda _dot: None)
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    expect(page.locator(".ds-graph svg g.node.here")).to_have_count(1)


def spans(length: int) -> dict[int, tuple[int, int, int]]:
    """Start, stop and level of the span of each midpoint, from drawing the tree level by level."""
    known, level = {0, length}, 1
    found = {length: (0, length, 0)}
    step = 1
    while 2 * step < length:
        step *= 2
    while step:
        for m in range(step, length, 2 * step):
            found[m] = (m - step, min(m + step, length), level)
            assert {m - step, min(m + step, length)} <= known, "both ends are drawn before"
        known |= set(range(step, length, 2 * step))
        step, level = step // 2, level + 1
    return found


def test_the_icicle_has_the_spans_of_the_drawing_order(debugger: Debugger) -> None:
    page = debugger.open().page
    module = f"gradio_api/file={page_module.CLIENT / 'run.js'}"
    for length in (1, 2, 3, 5, 8, 13, 32, 33, 100):
        drawn = page.evaluate(
            """async ([url, length]) => (await import(new URL(url, document.baseURI))).spansOf(length)
                 .map(span => [span.start, span.stop, span.level])""",
            [module, length],
        )
        assert {m: tuple(drawn[m]) for m in range(1, length + 1)} == spans(length)


def test_the_slider_over_levels_draws_the_icicle_down_to_one_and_other_panels_follow(debugger: Debugger) -> None:
    page = debugger.open().page
    slider = page.get_by_label("Levels drawn")
    before = page.locator(".ds-tree canvas").evaluate("c => c.toDataURL()")
    expect(slider).to_have_attribute("aria-valuetext", "all levels")
    slider.fill("1")
    debugger.wait("phase", "level1")
    expect(page.locator(".ds-inside .ds-phase[aria-pressed=true]")).to_have_text("Level 1")
    expect(slider).to_have_attribute("aria-valuetext", "down to level 1")
    assert page.locator(".ds-tree canvas").evaluate("c => c.toDataURL()") != before
    step = debugger.get("step")
    slider.focus()
    debugger.press("ArrowRight")
    debugger.wait("phase", "level2")
    assert debugger.get("step") == step, "the arrow keys move the slider that has the focus"
    slider.fill("-1")
    debugger.wait("phase", "sweep")
    debugger.press("End")
    debugger.wait("phase", "")
    assert page.locator(".ds-tree canvas").evaluate("c => c.toDataURL()") == before


def test_every_answer_carries_the_security_policy(debugger: Debugger) -> None:
    answer = debugger.page.request.get(debugger.url)
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
