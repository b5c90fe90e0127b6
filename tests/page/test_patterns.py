"""The debugger's habits in a real browser: the tour, forks, breakpoints, phases, focus in the address, comparison, export."""

from __future__ import annotations

import csv
import itertools
import json
import re
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
from conftest import PATIENCE_MS, ROW, Debugger, form
from playwright.sync_api import Browser, Route, expect
from typer.testing import CliRunner

from app import examples, sessions
from app import page as page_module
from app.form import OPTIONS
from engine import comparison, constraints, trace_file
from engine.__main__ import app
from engine.models.table import Table

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]

CALL = '[{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}}]'


def open_example(debugger: Debugger, name: str) -> None:
    debugger.blur()
    debugger.press("x")
    debugger.page.locator(f'.ds-card[data-name="{name}"]').click()
    debugger.wait("run", f"example:{name}")


def test_a_step_is_drawn_beside_itself_from_left_to_right_and_back_with_the_same_noise(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    debugger.wait("detail", "here")
    debugger.blur()
    debugger.press("Home", "ArrowRight")
    debugger.wait("step", "1")
    parent = debugger.get("run")
    panel = page.locator(".ds-panel.ds-tree")
    panel.get_by_role("button", name="draw left to right").click()
    expect(page.locator('[data-ready]:not([data-compare=""])')).to_have_count(1)
    expect(page.locator("#debugger [data-running=no]")).to_have_count(1)
    child = sessions.RUNS.get(debugger.get("compare"))
    assert (debugger.get("run"), child.parent, len(child.steps)) == (parent, parent, 2)
    assert (child.header.config.sampler, child.header.config.seed) == ("chain", 3)
    debugger.blur()
    debugger.press("b")
    expect(panel).to_contain_text("Drawn from left to right: 8 states, each given the one before it.")
    expect(panel).to_contain_text("in 4 rounds")
    expect(panel.get_by_role("button", name="draw midpoints")).to_be_visible()


def test_the_tour_finds_the_hopeless_step_pins_one_token_and_sees_the_fork_succeed(debugger: Debugger) -> None:
    page = debugger.open().page
    open_example(debugger, "no-such-hour")
    expect(page.locator(".ds-config b")).to_have_text("✕ not accepted")
    debugger.blur()
    debugger.press("End", "h")
    debugger.wait("step", "2")
    debugger.wait("position", "1")
    debugger.wait("detail", "here")
    debugger.press("e")
    expect(page.get_by_role("heading", name="Fork at step 2")).to_be_visible()
    page.get_by_role("button", name="Pin 3", exact=True).click()
    expect(page.locator(".ds-staged")).to_contain_text("3 is pinned at 1")
    page.get_by_role("button", name="Run the fork").click()
    expect(page.locator(".ds-text")).to_have_count(2)
    expect(page.locator("#debugger [data-running=no]")).to_have_count(1)
    debugger.press("End")
    expect(page.locator(".ds-text[data-side=b] .ds-verdict")).to_have_text("✓ accepted")
    expect(page.locator(".ds-text[data-side=a] .ds-verdict")).to_have_text("✕ not accepted")
    expect(page.locator(".ds-family")).to_contain_text("step 2: pin '3' at 1")
    expect(page.locator(".ds-against")).to_contain_text("They part at step 2")


def test_a_fork_that_contradicts_the_constraint_names_the_pins_and_keeps_what_is_shown(debugger: Debugger) -> None:
    page = debugger.open().page
    open_example(debugger, "no-such-hour")
    debugger.blur()
    debugger.press("Home", "n")
    page.locator(".ds-tokens .ds-token[data-i='1']").click(button="right")
    page.locator("#ds-pin-text").fill("7")
    page.locator("#ds-pin-text").press("Enter")
    debugger_edits = page.locator(".ds-staged li")
    expect(debugger_edits).to_have_text([re.compile("7 is pinned at 1")])
    page.get_by_role("button", name="Only this step, at once").click()
    expect(page.locator(".ds-text")).to_have_count(2)
    debugger.blur()
    debugger.press("Home", "ArrowRight", "ArrowRight")
    debugger.wait("step", "2")
    debugger.press("e")
    page.locator("#ds-pin-text").fill(":")
    page.get_by_role("button", name="Pin this text").click()
    page.get_by_role("button", name="Run the fork").click()
    expect(page.locator(".ds-message .ds-problem")).to_contain_text("':' at position 1 contradicts the constraint")
    page.get_by_role("button", name="position 1", exact=True).click()
    debugger.wait("position", "1")
    expect(page.locator(".ds-text")).to_have_count(2)


def test_an_instant_fork_asks_no_model_and_goes_on_when_asked(
    debugger: Debugger, table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    calls: list[int] = []
    answer = Table.logits
    monkeypatch.setattr(Table, "logits", lambda self, *given: calls.append(1) or answer(self, *given))
    debugger.blur()
    debugger.press("Home", "ArrowRight", "ArrowRight", "e")
    page.locator("#ds-set-seed").fill("9")
    page.locator("#ds-set-seed").press("Tab")
    expect(page.locator(".ds-staged")).to_contain_text("seed is 9")
    page.get_by_role("button", name="Only this step, at once").click()
    expect(page.locator(".ds-text")).to_have_count(2)
    debugger.blur()
    debugger.press("b")
    debugger.wait("side", "b")
    debugger.wait("count", "3")
    assert not calls
    expect(page.locator(".ds-config b")).to_have_text("stopped after 3 of 8 steps")
    debugger.press("g")
    debugger.wait("count", "8")
    assert len(calls) == 5


def test_a_breakpoint_shows_its_hits_and_stops_a_run_that_then_goes_on(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    page.locator("#ds-break").fill("step >= 2 and commit")
    page.locator("#ds-break").press("Enter")
    expect(page.locator(".ds-stops .ds-count")).to_have_text("6 hits")
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    debugger.press("c")
    debugger.wait("step", "2")
    debugger.press("c")
    debugger.wait("step", "3")
    debugger.press("Shift+C")
    debugger.wait("step", "2")
    page.locator("#ds-break").fill("kl >> 3")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".ds-break-error pre")).to_contain_text("kl >> 3\n      ^")
    before = debugger.get("run")
    page.click("#run")
    page.wait_for_function("before => document.querySelector('[data-ready]').dataset.run !== before", arg=before)
    debugger.wait("status", "paused")
    expect(page.locator(".ds-status")).to_have_text("paused at step 2")
    debugger.wait("count", "3")
    debugger.blur()
    for count in range(4, 8):
        page.get_by_role("button", name="▶ Go on").click()
        debugger.wait("count", str(count))
        debugger.wait("status", "paused")


def test_keys_go_into_the_phases_of_a_step_and_out(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    debugger.blur()
    debugger.press("Home", "ArrowDown")
    debugger.wait("phase", "field")
    expect(page.locator(".ds-inside .ds-phase[aria-pressed=true]")).to_have_text("Mean field")
    expect(page.locator(".ds-token[data-i='3']")).to_have_text("▨")
    names = ["classes", "sweep", "level0", "level1", "level2", "level3", "tokens", "confidence", "commit"]
    for name in names:
        debugger.press("ArrowRight")
        debugger.wait("phase", name)
    expect(page.locator(".ds-token[data-i='3']")).not_to_have_text("▨")
    debugger.press("ArrowRight")
    debugger.wait("step", "1")
    debugger.wait("phase", "field")
    debugger.press("ArrowLeft")
    debugger.wait("phase", "commit")
    debugger.press("ArrowUp")
    debugger.wait("phase", "")


def test_the_back_button_walks_the_focus_and_a_missing_run_is_said_in_place(debugger: Debugger) -> None:
    page = debugger.open().page
    shown = debugger.get("run")
    debugger.blur()
    for step in ("1", "3"):
        debugger.press("Home", *["ArrowRight"] * int(step))
        page.wait_for_function("step => new URLSearchParams(location.hash.slice(1)).get('step') === step", arg=step)
    page.go_back()
    debugger.wait("step", "1")
    page.go_forward()
    debugger.wait("step", "3")
    page.evaluate("location.hash = '#a=nowhere&step=2'")
    expect(page.locator(".ds-message .ds-problem")).to_contain_text("nowhere")
    assert debugger.get("run") == shown
    debugger.wait("step", "3")


def test_the_keys_find_disagreements_forced_positions_and_differences(debugger: Debugger) -> None:
    page = debugger.open().page
    open_example(debugger, "no-such-hour")
    debugger.blur()
    debugger.press("Home", "d")
    # The model likes 7 after whatever stands first, the constraint 3.
    debugger.wait("position", "1")
    debugger.wait("step", "0")
    debugger.press("f")
    debugger.wait("position", "2")
    page.locator("#change input").click()
    page.get_by_role("option", name="Another seed").click()
    page.click("#run-beside")
    expect(page.locator(".ds-text")).to_have_count(2)
    debugger.wait("status", "finished")
    debugger.blur()
    debugger.press("Home", "v")
    expect(page.locator(".ds-against")).to_contain_text("Different seeds")


def test_two_runs_are_compared_in_words_numbers_and_pictures(debugger: Debugger) -> None:
    page = debugger.open().page
    open_example(debugger, "mf-mar")
    panel = page.locator(".ds-against")
    expect(panel).to_contain_text("confidence mar → mf")
    expect(panel).to_contain_text("They part at step")
    expect(panel).to_contain_text(re.compile("Kendall’s τ −?[0-9]"))
    expect(panel.locator(".ds-why tbody tr")).to_have_count(2)
    expect(panel.get_by_role("row", name=re.compile("^accepted"))).to_contain_text("yes")


def test_the_palette_finds_positions_steps_commands_and_tokens(debugger: Debugger) -> None:
    page = debugger.open().page
    for typed, wanted in (("p:3", ("position", "3")), ("s:2", ("step", "2"))):
        debugger.blur()
        debugger.press("/")
        page.get_by_role("combobox", name="Find").fill(typed)
        page.keyboard.press("Enter")
        debugger.wait(*wanted)
    debugger.press("Control+k")
    box = page.get_by_role("combobox", name="Find")
    box.fill("p:9999")
    expect(page.locator(".ds-palette-list")).to_contain_text("There is no position 9999")
    box.fill("hopeless nothing")
    expect(page.locator(".ds-palette-list")).to_contain_text("Nothing by that name")
    box.fill("tun")
    expect(page.get_by_role("option", name=re.compile("^tun at position"))).to_have_count(1)
    debugger.press("Escape")


def test_a_panel_fills_the_page_is_read_as_a_table_and_is_taken_along(debugger: Debugger, tmp_path: Path) -> None:
    page = debugger.open().page
    debugger.wait("detail", "here")
    for panel, kinds in {
        "map": ("csv", "json", "svg", "png"),
        "position": ("csv", "svg"),
        "automaton": ("svg",),
        "tree": ("svg",),
        "trellis": ("svg", "csv"),
    }.items():
        frame = page.locator(f".ds-{panel}")
        for kind in kinds:
            frame.get_by_role("button", name="table and export").click()
            with page.expect_download() as started:
                frame.get_by_role("menuitem", name=f"Save as {kind.upper()}").click()
            file = tmp_path / f"{panel}.{kind}"
            started.value.save_as(file)
            if kind == "svg":
                drawn = list(ElementTree.parse(file).getroot().iter())
                assert len(drawn) > 10, f"{panel} is drawn with {len(drawn)} parts"
            elif kind == "png":
                assert file.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.reader((tmp_path / "map.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["step", "position", "drawn", "Mar", "committed"]
    assert len(json.loads((tmp_path / "map.json").read_text())) == len(rows) - 1
    frame = page.locator(".ds-tree")
    frame.get_by_role("button", name="table and export").click()
    frame.get_by_role("menuitem", name="As a table").click()
    expect(frame.locator("th").first).to_have_text("boundary")
    frame.get_by_role("button", name="fill the page").click()
    assert (frame.bounding_box() or {})["width"] == 1440
    debugger.press("Escape")
    assert (frame.bounding_box() or {})["width"] < 1000


def test_a_run_that_is_replaced_while_slow_goes_on_unseen(
    debugger: Debugger, table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, asked, seen = Table.logits, itertools.count(), threading.Event()

    def slowly(self: Table, *given: object) -> object:
        if next(asked) > 4:
            assert seen.wait(60), "the example was never in view"
            time.sleep(0.02)
        return answer(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "logits", slowly)
    page = debugger.open().page
    debugger.run(form(table([ROW] * 32), length=32, steps=32, block=32), finish=False)
    slow = debugger.get("run")
    open_example(debugger, "no-such-hour")
    page.evaluate(
        """window.shown = []; new MutationObserver(() => window.shown.push(document.querySelector('[data-ready]').dataset.run))
             .observe(document.querySelector('[data-ready]'), {attributes: true})"""
    )
    expect(page.locator("#debugger [data-running=yes]")).to_have_count(1)
    seen.set()
    expect(page.locator("#debugger [data-running=no]")).to_have_count(1)
    debugger.blur()
    debugger.press("Home", "End")
    debugger.wait("step", "4")
    assert set(page.evaluate("window.shown")) == {"example:no-such-hour"}
    page.locator(".ds-run-row", has_text="1 ·").first.click()
    debugger.wait("run", str(slow))
    debugger.wait("status", "finished")


def test_news_of_a_run_that_was_begun_before_the_choice_changes_only_what_it_says_of_the_run(
    debugger: Debugger,
) -> None:
    module = f"gradio_api/file={page_module.CLIENT / 'told.js'}"
    told = debugger.open().page.evaluate(
        """async url => {
             const {NOTHING, merge} = await import(new URL(url, document.baseURI));
             const chosen = merge(NOTHING, {a: 'example', b: null, runs: [], breaks: ['kl > 1'], claim: 7, serial: 7}, false);
             const step = {a: 'slow', b: null, runs: [{id: 'slow', number: 1}], running: 'slow', breaks: [], claim: 3, serial: 9};
             return [merge(chosen, step, true), merge(chosen, {...step, claim: 8}, true)];
           }""",
        module,
    )
    for state, shown in zip(told, ("example", "slow"), strict=True):
        assert (state["a"], state["running"], state["breaks"]) == (shown, "slow", ["kl > 1"])
        assert [run["id"] for run in state["runs"]] == ["slow"]


def test_a_rendered_run_opens_offline_scrubs_and_shows_hostile_tokens_as_text(browser: Browser, tmp_path: Path) -> None:
    run = synthetic.trace(synthetic.real_number(synthetic.HOSTILE), 12, 8)
    trace_file.save(run, tmp_path / "run.trace")
    out = tmp_path / "run.html"
    assert CliRunner().invoke(app, ["render", str(tmp_path / "run.trace"), "--out", str(out)]).exit_code == 0
    context = browser.new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(out.as_uri())
    page.wait_for_selector("[data-ready][data-detail=here]", state="attached")
    page.keyboard.press("End")
    page.wait_for_selector("[data-ready][data-step='7']", state="attached")
    for panel in ("canvas", "map", "tree", "trellis", "automaton", "position", "midpoint", "order"):
        expect(page.locator(f".ds-panel.ds-{panel}")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert not errors
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [out.as_uri()]
    context.close()
    assert CliRunner().invoke(app, ["render", str(tmp_path / "none"), "--out", str(out)]).exception


def test_the_fronts_of_a_lost_run_are_shown_and_its_findings_lead_to_the_step(debugger: Debugger) -> None:
    page = debugger.open().page
    expect(page.locator(".ds-hint")).to_be_visible()
    page.get_by_role("button", name="Open it").click()
    debugger.wait("run", "example:no-such-hour")
    expect(page.locator(".ds-hint")).to_be_hidden()
    debugger.blur()
    debugger.press("End")
    page.get_by_label("What the trellis shows").select_option("forward")
    expect(page.locator(".ds-trellis [data-front=forward]")).to_have_count(1)
    page.get_by_role("button", name="Diagnose this run").click()
    lost = page.locator(".ds-finding.error")
    expect(lost).to_contain_text("From step 2 on nothing accepted is possible")
    lost.get_by_role("button", name="show me").click()
    debugger.wait("step", "2")
    changes = lost.locator(".ds-changed li")
    expect(lost).to_contain_text(re.compile(r"Nearest accepted answer, [0-9]+ positions? changed"))
    expect(changes.first).to_contain_text("→")
    together = lost.locator(".ds-inline .ds-link-button").filter(has_text=re.compile(" at [0-9]+$"))
    place = str(together.first.inner_text()).rpartition(" ")[2]
    expect(page.locator(f".ds-text[data-side=a] .ds-token.bracket[data-i='{place}']")).to_have_count(1)
    expect(page.locator(".ds-text[data-side=a] .ds-token.bracket")).to_have_count(together.count())
    together.first.click()
    debugger.wait("position", place)
    lost.get_by_role("button", name=re.compile("midpoint")).click()
    expect(page.locator(".ds-text")).to_have_count(2)
    expect(page.locator("#debugger [data-running=no]")).to_have_count(1)
    debugger.press("End")
    expect(page.locator(".ds-text[data-side=b] .ds-verdict")).to_have_text("✓ accepted")


def test_a_constraint_is_checked_while_it_is_written(debugger: Debugger) -> None:
    page = debugger.open().page
    page.locator("#source textarea").fill("[0-9]{2")
    page.locator("#source textarea").fill("(a|b")
    expect(page.locator("#checked .ds-finding.error > pre")).to_contain_text("(a|b\n  ^")
    page.locator("#source textarea").fill("(<img src=x onerror=window.hacked=1>")
    expect(page.locator("#checked")).to_contain_text("<img src=x")
    page.locator("#source textarea").fill("(a|b)")
    expect(page.locator("#checked .ds-finding.error")).to_have_count(0)
    page.locator("#source textarea").fill("")
    page.locator("#kind input[value=choices]").check()
    expect(page.locator("#source textarea")).to_have_value("yes\nno")
    assert page.evaluate("window.hacked") is None


def test_a_text_is_held_against_the_constraint_while_it_is_typed(debugger: Debugger) -> None:
    page = debugger.open().page
    page.locator("#source textarea").fill("(ab|cd)+")
    debugger.wait_checked("regex", "(ab|cd)+")
    page.get_by_label("Test a text").press_sequentially("abcx")
    tester = page.locator(".ds-tester")
    verdict = tester.locator(".ds-verdict-line")
    expect(verdict).to_have_text("✕ Dies at character 4, 'x'; expected 'd'.")
    expect(tester.locator(".ds-char[data-state=dead]")).to_have_text("x")
    expect(tester.locator(".ds-source .on")).to_have_text("d")
    expect(tester.locator("g.node.here")).to_have_count(1)
    dead = tester.locator("g.node.here").get_attribute("id")
    # The keyboard walks back through the text, and the other two follow.
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    expect(tester.locator(".ds-char:focus")).to_have_text("c")
    expect(tester.locator(".ds-source .on")).to_have_text("c")
    expect(tester.locator("g.node.next")).to_have_attribute("id", str(dead))
    expect(tester.locator("g.edge.taken")).to_have_count(1)
    page.get_by_label("Test a text").fill("abcd")
    expect(verdict).to_have_text("✓ Accepted, all 4 characters.")
    tester.get_by_role("button", name="ab", exact=True).first.click()
    expect(verdict).to_have_text("✓ Accepted, all 2 characters.")
    page.get_by_label("Test a text").fill("<img src=x onerror=window.hacked=1>")
    expect(tester.locator(".ds-char[data-state=dead]")).to_have_text("<")
    assert page.evaluate("window.hacked") is None


def test_a_finding_under_the_editor_is_mended_by_one_click(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    for field, value in form(table([ROW] * 6), source="[0-9]{6}", length=4, steps=4, block=4).items():
        debugger.fill(field, value)
    finding = page.locator("#checked .ds-finding[data-code=length]")
    expect(finding).to_contain_text("takes 6 tokens")
    expect(finding.get_by_role("img")).to_have_attribute("aria-label", "Accepted lengths 6; the canvas has 4")
    finding.get_by_role("button", name="Set the length to 6").click()
    expect(finding).to_have_count(0)
    expect(page.locator("#length input")).to_have_value("6")
    debugger.run({})
    expect(page.locator(".ds-config b")).to_have_text("✓ accepted")


def test_a_finding_is_told_at_once_and_its_changes_where_they_were_announced_once_they_were_tried(
    debugger: Debugger,
) -> None:
    page = debugger.open().page
    held: dict[int, Route] = {}

    def hold(route: Route) -> None:
        words = re.search(r"get_remedies.*maximum\W+(\d)|maximum\W+(\d).*get_remedies", route.request.post_data or "")
        if words:
            held[int(words[1] or words[2])] = route
        else:
            route.continue_()

    page.route("**/component_server**", hold)
    page.locator("#kind input[value=json_schema]").check()
    finding = page.locator("#checked .ds-check-list > .ds-findings > .ds-finding.error")
    for most in (3, 2):
        page.locator("#source textarea").fill(f'{{"type": "integer", "minimum": 5, "maximum": {most}}}')
        expect(finding).to_contain_text(f"maximum ({most})")
        expect(finding.locator(".ds-trying")).to_have_text("trying 3 changes …")
        for _ in range(PATIENCE_MS // 50):
            if most in held:
                break
            page.wait_for_timeout(50)
    finding.evaluate("node => { node.kept = true; }")
    with page.expect_response(lambda response: response.request == held[3].request):
        held[3].continue_()
    page.wait_for_timeout(100)
    expect(finding.locator(".ds-mend")).to_have_count(0)
    held[2].continue_()
    expect(finding.locator(".ds-mend")).to_have_count(3)
    expect(finding.locator(".ds-trying")).to_have_count(0)
    assert finding.evaluate("node => node.kept"), "the finding stays where it was read"
    finding.locator(".ds-mend").first.click()
    expect(page.locator("#source textarea")).to_have_value('{"type": "integer", "maximum": 2}')


def test_each_failure_of_the_gallery_that_is_in_the_form_is_mended_by_one_click(debugger: Debugger) -> None:
    page = debugger.open().page
    for card in (card for card in examples.gallery() if card.form):
        debugger.blur()
        debugger.press("x")
        page.locator(f'.ds-card[data-name="{card.name}"]').click()
        expect(page.locator("#source textarea")).to_have_value(card.form["source"])
        best = page.locator("#checked .ds-check-list > .ds-findings > .ds-finding")
        expect(best).to_have_count(1)
        expect(best.locator(".ds-mend").first).to_be_visible()
        code = best.get_attribute("data-code")
        best.locator(".ds-mend").first.click()
        expect(page.locator(f'#checked .ds-finding[data-code="{code}"]')).to_have_count(0)
        expect(page.locator("#checked .ds-finding.error")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "code"), [("little-belief", "belief"), ("blanks", "trap"), ("other-branch", "branch")]
)
def test_each_failure_of_the_gallery_that_ran_is_run_again_without_it_by_one_click(
    debugger: Debugger, name: str, code: str
) -> None:
    page = debugger.open().page
    open_example(debugger, name)
    page.get_by_role("button", name="Diagnose this run").click()
    finding = page.locator(f'.ds-diagnosis .ds-finding[data-code="{code}"]')
    expect(finding).to_have_count(1)
    if not finding.is_visible():
        page.locator(".ds-diagnosis .ds-more > summary").click()
    expect(finding.locator("summary")).to_contain_text("evidence")
    rows = finding.locator(".ds-share-row")  # the evidence, drawn
    expect(rows.nth(1)).to_contain_text("%")
    shares = rows.evaluate_all("rows => rows.map(row => parseFloat(row.querySelector('i').style.width))")
    assert shares == sorted(shares, reverse=True) or code == "branch"
    said = finding.locator("p").first.inner_text()
    finding.locator(".ds-mend").first.click()
    expect(page.locator(".ds-text")).to_have_count(2)
    expect(page.locator("#debugger [data-running=no]")).to_have_count(1)
    debugger.blur()
    debugger.press("b")
    debugger.wait("side", "b")
    expect(page.locator(".ds-config b")).to_have_text("✓ accepted")
    page.get_by_role("button", name="Diagnose this run").click()
    expect(page.locator(".ds-diagnosis .ds-finding").first).to_be_attached()
    expect(page.locator(f'.ds-diagnosis .ds-finding[data-code="{code}"]').filter(has_text=said[8:])).to_have_count(0)


def test_a_chosen_span_is_in_the_address_and_read_by_the_other_panels(debugger: Debugger) -> None:
    page = debugger.open().page
    debugger.wait("detail", "here")
    page.locator(".ds-tree canvas").click(position={"x": 120, "y": 45})
    page.wait_for_function("new URLSearchParams(location.hash.slice(1)).has('span')")
    start, stop = map(int, page.evaluate("new URLSearchParams(location.hash.slice(1)).get('span')").split("-"))
    inside = page.locator(".ds-token.inside").evaluate_all("chips => chips.map(c => +c.dataset.i)")
    assert inside == list(range(start, stop))
    expect(page.locator(".ds-span-mark").first).to_be_visible()
    debugger.open("#" + page.url.partition("#")[2])
    expect(page.locator(".ds-token.inside")).to_have_count(stop - start)
    page.locator(".ds-token[data-i='0']").first.click()
    expect(page.locator(".ds-token.inside")).to_have_count(0)


def test_two_runs_are_aligned_by_step_by_number_committed_or_by_position(debugger: Debugger) -> None:
    page = debugger.open().page
    open_example(debugger, "mf-mar")
    runs = [sessions.find(run) for run in ("example:mf-mar", "example:mf-mar-beside")]
    a, b = (run.trace for run in runs if run is not None)
    panel = page.locator(".ds-against")
    expect(panel).to_contain_text("They part at step")
    for by in ("step", "committed"):
        page.get_by_label("How the two runs are aligned").select_option(by)
        for step in (0, 3, len(a.steps) - 1):
            debugger.blur()
            debugger.press("Home", *["ArrowRight"] * step)
            pairs = dict(comparison.align(a, b, by))  # type: ignore[arg-type]
            expect(panel.locator(".ds-align .ds-note")).to_have_text(f"A at step {step}, B at {pairs[step]}")
    page.get_by_label("How the two runs are aligned").select_option("position")
    position, (one, other) = next(
        (i, pair)
        for i, pair in enumerate(zip(comparison.commit_steps(a), comparison.commit_steps(b), strict=True))
        if pair[0] != pair[1] and min(pair) >= 0
    )
    page.locator(f".ds-text[data-side=a] [data-i='{position}']").click()
    debugger.blur()
    debugger.press("Home", *["ArrowRight"] * int(one))
    expect(panel.locator(".ds-align .ds-note")).to_have_text(f"A at step {one}, B at {other}")
    page.wait_for_function("location.hash.includes('align=position')")


def test_other_seeds_of_both_runs_show_a_share_with_its_interval(debugger: Debugger) -> None:
    page = debugger.open().page
    open_example(debugger, "right-marginals")
    panel = page.locator(".ds-against")
    panel.get_by_role("button", name="Run 20 seeds of both").click()
    expect(panel.locator(".ds-seed")).to_have_count(40)
    expect(panel.get_by_role("button", name="Run 20 seeds of both")).to_be_visible()
    shares = panel.locator(".ds-seed-row p")
    expect(shares.first).to_contain_text("20 of 20 accepted, 95 %: 0.839 to 1")
    strips = panel.locator(".ds-seed-strip")
    refused = strips.nth(1).locator("[data-accepted=no]").count()
    assert refused > 0, "each position restricted by itself writes two dots at times"
    expect(shares.nth(1)).to_contain_text(f"{20 - refused} of 20 accepted")


def test_a_link_to_the_settings_opens_the_form_as_it_was(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    wanted = form(table([ROW] * 8), source="[0-9]{3}|é“<img>", seed=12)
    for field, value in wanted.items():
        debugger.fill(field, value)
    page.get_by_role("button", name="Link to these settings").click()
    # How long it is and what is in it is said before anything is copied.
    expect(page.locator("#recipe-note")).to_contain_text("with your prompt and constraint in them")
    expect(page.locator("#recipe-note").get_by_role("button")).to_have_text("Copy it")
    link = page.locator("#recipe-note input").input_value()
    assert "#recipe=" in link
    expect(page.locator("#recipe-note")).to_contain_text(f"{len(link):,} characters")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy it").click()
    expect(page.locator("#recipe-note").get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == link
    debugger.open("#" + link.partition("#")[2])
    expect(page.locator("#source textarea")).to_have_value("[0-9]{3}|é“<img>")
    expect(page.locator("#seed input")).to_have_value("12")
    expect(page.locator("#model input")).to_have_value(str(wanted["model"]))
    expect(page.locator("#length input")).to_have_value("8")
    debugger.open("#recipe=nonsense")
    expect(page.locator("#recipe-note")).to_contain_text("can not be read")
    expect(page.locator("#length input")).to_have_value("32")


def test_the_options_of_a_kind_show_with_it_and_reach_the_check_and_the_run(debugger: Debugger) -> None:
    page = debugger.open().page
    expect(page.locator("#reading")).to_be_hidden()
    page.locator("#kind input[value=tools]").check()
    page.locator("#source textarea").fill(CALL)
    page.locator("#reading > button").click()
    known = {option.name for option in constraints.KINDS["tools"].options}
    for name in OPTIONS:
        expect(page.locator(f"#reading-{name}")).to_be_visible(visible=name in known)
    depth = page.locator("#reading-depth input")
    depth.fill("101")
    expect(page.locator("#checked .ds-finding.error")).to_contain_text("depth is 101")
    depth.fill("4")
    expect(page.locator("#checked .ds-finding.error")).to_have_count(0)
    page.locator("#reading-call_syntax input").click()
    page.get_by_role("option", name="python", exact=True).click()
    debugger.run({"length": 64, "steps": 2, "block": 64})
    debugger.press("End")
    expect(page.locator(".ds-text").first).to_contain_text("f(x=None)")
    page.locator("#kind input[value=grammar]").check()
    expect(page.locator("#reading-call_syntax")).to_be_hidden()
    expect(page.locator("#reading-depth")).to_be_visible()


def test_many_draws_show_which_of_two_samplers_is_exact(debugger: Debugger) -> None:
    page = debugger.open().page
    expect(page.locator(".ds-exact button", has_text="Draw many times")).to_be_disabled()
    expect(page.locator(".ds-exact")).to_contain_text("mean field of this step was not kept")
    page.get_by_role("button", name="Examples").click()
    page.locator("[data-name=right-marginals]").click()
    debugger.wait("run", "example:right-marginals")
    for side, exact, said in (("a", "true", "Nothing speaks against it"), ("b", "false", "the constraint refuses")):
        page.locator(".ds-exact button", has_text="Draw many times").click()
        # The first draws of a process may compile their loops.
        expect(page.locator(".ds-exact [data-exact]")).to_have_attribute("data-exact", exact, timeout=4 * PATIENCE_MS)
        expect(page.locator(".ds-exact")).to_contain_text(said)
        expect(page.locator(".ds-exact")).to_contain_text("Largest deviation")
        if side == "a":
            debugger.blur()
            debugger.press("b")
            debugger.wait("side", "b")


def test_pointing_at_a_token_or_a_state_lights_its_source_and_the_source_what_comes_from_it(debugger: Debugger) -> None:
    page = debugger.open().page
    page.get_by_role("button", name="Examples").click()
    page.locator("[data-name=right-marginals]").click()
    debugger.wait("run", "example:right-marginals")
    lit = page.locator(".ds-source .lit")
    chip = page.locator(".ds-text[data-side=a] [data-i='1']")
    expect(page.locator("g#q1")).to_have_count(1)
    # The draw is ".5": behind its point only the last digits of the second branch can be written.
    chip.hover()
    expect(lit).to_have_text(["[0-9]"])
    assert page.evaluate("s => document.querySelector(s).previousSibling.textContent.endsWith('.')", ".ds-source .lit")
    page.locator("g#q0").hover()
    expect(lit).to_have_text(["[0-9]", r"\."])
    page.locator(".ds-source span", has_text=re.compile(r"^\\\.$")).last.hover()
    expect(page.locator("g.node.lit")).to_have_count(1)
    expect(page.locator("g#q0")).to_have_class(re.compile("lit"))
    assert page.locator(".ds-token.lit").evaluate_all("chips => chips.map(c => c.dataset.i)") == ["0"]
    page.locator(".ds-config").hover()
    expect(page.locator(".lit")).to_have_count(0)
