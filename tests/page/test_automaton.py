"""The automaton on the page at five states and at twenty thousand: groups, chains, what lies around a state; its source; the keyboard."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import large
import numpy as np
import pytest
from conftest import DIGITS, Debugger, violations
from playwright.sync_api import Browser, Locator, expect

from engine.trace import Trace
from viz import automaton

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def recorded() -> Trace:
    run = large.trace(large.twenty_thousand())
    assert run.header.automaton.states > 19_000
    return run


@pytest.fixture
def opened(debugger: Debugger, recorded: Trace) -> Debugger:
    debugger.show(recorded)
    at_level(debugger, "groups")
    return debugger


def panel(debugger: Debugger) -> Locator:
    return debugger.page.locator(".ds-automaton")


def at_level(debugger: Debugger, level: str) -> None:
    expect(panel(debugger).locator(".ds-graph")).to_have_attribute("data-level", level)


def expected(run: Trace, step: int, boundary: int, picture: automaton.Picture) -> dict[str, tuple[int, float]]:
    """By id of a box: how many of its states are live at a boundary, and their recorded posterior."""
    record, states = run.steps[step], run.header.automaton.states
    live = np.flatnonzero(np.unpackbits(record.live[boundary], count=states))
    counts = np.bincount(picture.box[live][picture.box[live] >= 0], minlength=len(picture.boxes))
    mass = np.zeros(len(picture.boxes))
    for state, p in zip(record.state_ids[boundary].tolist(), record.state_probability[boundary].tolist(), strict=True):
        if state >= 0 and picture.box[state] >= 0:
            mass[picture.box[state]] += p
    return {box.id: (int(n), float(p)) for box, n, p in zip(picture.boxes, counts, mass, strict=True)}


def told(text: str) -> tuple[int, float]:
    live, mass = text.split(" live · ")
    return int(live.replace(",", "")), float(mass.strip("<>").replace("−", "-"))


def test_five_states_are_shown_whole_and_a_chosen_one_stays_in_its_place(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    row = [0.06] * 10 + [0.3, 0.1]
    sizes = {"length": 8, "steps": 8, "block": 8}
    debugger.run(
        {
            "model": table([row] * 8, [*DIGITS, "$"], "$"),
            "kind": "regex",
            "source": r"[0-9]+(\.[0-9]*)?|\.[0-9]+",
            **sizes,
        }
    )
    at_level(debugger, "whole")
    nodes = page.locator(".ds-automaton g.node[id^=q]")
    expect(nodes).to_have_count(5)
    expect(page.locator(".ds-automaton .ds-crumbs")).to_be_hidden()
    page.locator(".ds-automaton g#q1").click()
    expect(page.locator(".ds-automaton g.chosen")).to_have_id("q1")
    expect(nodes).to_have_count(5)
    page.wait_for_function("location.hash.includes('state=1')")


def test_the_frame_is_as_high_as_what_it_shows_and_shows_the_draws_state_among_it(debugger: Debugger) -> None:
    page = debugger.open("#a=example:call-json&step=5&pos=6").page
    debugger.wait("position", "6")
    expect(page.locator(".ds-automaton g.node.here")).to_have_id("q12")
    page.wait_for_timeout(400)  # it is placed once the focus rests
    frame, top, bottom, here = page.evaluate("""() => {
      const box = node => node.getBoundingClientRect(), frame = box(document.querySelector('.ds-automaton .ds-graph'));
      const shown = [...document.querySelectorAll('.ds-automaton :is(g.node, g.edge text)')].map(box).filter(b => b.right > frame.left && b.left < frame.right);
      const here = box(document.querySelector('.ds-automaton g.node.here'));
      return [[frame.top, frame.bottom], Math.min(...shown.map(b => b.top)), Math.max(...shown.map(b => b.bottom)), [here.top, here.bottom]];
    }""")
    assert frame[0] <= here[0]
    assert here[1] <= frame[1]
    assert top - frame[0] <= 30, "no empty room above what is shown"
    assert frame[1] - bottom <= 30, "nor below it"


def test_groups_of_twenty_thousand_states_say_what_the_step_says_of_their_states(
    opened: Debugger, recorded: Trace
) -> None:
    run, page = recorded, opened.page
    picture = automaton.opened(automaton.atlas(run.header), ())
    expect(page.locator(".ds-automaton g.node.group")).to_have_count(len(picture.boxes))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for step, boundary in ((0, 0), (0, 20), (1, 20), (3, 20), (3, 60)):
        opened.blur()
        opened.press("Home", *["ArrowRight"] * step)
        page.evaluate("b => document.querySelector(`.ds-token[data-i='${b}']`).click()", boundary)
        opened.wait("step", str(step))
        opened.wait("position", str(boundary))
        page.wait_for_timeout(50)
        for id, (live, mass) in expected(run, step, boundary, picture).items():
            said = told(page.locator(f".ds-automaton g#{id} text").last.text_content() or "")
            assert said[0] == live, (step, boundary, id)
            assert said[1] == pytest.approx(mass, abs=1e-3)
    here = picture.boxes[picture.box[run.steps[3].path[60]]].id
    expect(page.locator(".ds-automaton g.here")).to_have_id(here)
    assert not asked, "moving through steps and positions asks the server nothing"


def test_groups_open_down_to_a_state_and_the_way_back_is_in_crumbs_address_and_history(opened: Debugger) -> None:
    page = opened.page
    crumbs = page.locator(".ds-crumbs button")
    expect(crumbs.first).to_have_text("All 19,052 states")
    page.locator(".ds-automaton g.group", has_text="field_0").click()
    expect(page.locator(".ds-crumbs [aria-current]")).to_have_text("/properties/field_0")
    expect(page.locator(".ds-automaton g.node.outside")).not_to_have_count(0)
    page.wait_for_function("new URLSearchParams(location.hash.slice(1)).get('group') !== null")
    page.locator(".ds-automaton g.group", has_text=re.compile("properties/tag")).click()
    at_level(opened, "chains")
    expect(page.locator(".ds-automaton g.chain")).not_to_have_count(0)
    # What was looked at is a place to go back to once it has come to rest.
    page.wait_for_function("/[.]/.test(new URLSearchParams(location.hash.slice(1)).get('group'))")
    page.locator(".ds-automaton g.node.chain").first.click()
    at_level(opened, "around")
    expect(page.locator(".ds-automaton g.chosen")).to_have_count(1)
    page.wait_for_function("new URLSearchParams(location.hash.slice(1)).get('state') !== null")
    link = page.url
    far = page.locator(".ds-automaton g.node[id^=q]").count()
    page.get_by_label("Moves around the state").select_option("1")
    expect(page.locator(".ds-automaton .ds-note")).to_contain_text(re.compile(r"^\d+ of 19,052 states"))
    page.wait_for_function("n => document.querySelectorAll('.ds-automaton g.node[id^=q]').length < n", arg=far)
    page.go_back()
    at_level(opened, "chains")
    page.go_back()
    expect(page.locator(".ds-crumbs [aria-current]")).to_have_text("/properties/field_0")
    page.wait_for_timeout(300)
    crumbs.first.click()
    expect(page.locator(".ds-crumbs [aria-current]")).to_have_text("All 19,052 states")
    page.evaluate("link => { location.hash = new URL(link).hash; }", link)
    at_level(opened, "around")
    page.get_by_role("button", name="The draw’s state").click()
    expect(page.locator(".ds-automaton g.chosen.here")).to_have_count(1)


def test_the_keyboard_alone_walks_groups_opens_one_and_comes_back(opened: Debugger) -> None:
    page = opened.page
    stop = page.locator(".ds-automaton g.node[tabindex='0']")
    expect(stop).to_have_count(1)  # one stop for the whole picture
    stop.focus()
    first = page.evaluate("document.activeElement.id")
    opened.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") != first
    assert opened.get("step") == "0", "arrows in the graph move in the graph"
    name = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert re.search(r"[\d,]+ states$", name), name
    opened.press("Enter")
    expect(page.locator(".ds-crumbs button")).to_have_count(3)  # all, this group, the draw's state
    page.wait_for_function("document.activeElement?.closest('.ds-automaton g.node')")
    opened.press("Backspace")
    expect(page.locator(".ds-crumbs [aria-current]")).to_have_text("All 19,052 states")


def test_a_group_is_pinned_by_key_and_opened_from_its_card(opened: Debugger) -> None:
    page = opened.page
    stop = page.locator(".ds-automaton g.node[tabindex='0']")
    stop.focus()
    name = str(stop.get_attribute("aria-label"))
    opened.press("p")
    card = page.locator("#ds-card-kept")
    expect(card.locator("header b")).to_have_text(name)
    opened.press("Tab")
    expect(card.get_by_role("button", name="open it")).to_be_focused()
    opened.press("Enter")
    expect(page.locator(".ds-crumbs button")).to_have_count(3)  # all, this group, the draw's state


def test_a_group_and_its_place_in_the_source_light_each_other(opened: Debugger) -> None:
    page = opened.page
    page.locator(".ds-automaton g.group", has_text="/properties/field_3").hover()
    lit = page.locator(".ds-automaton .ds-source .lit")
    expect(lit.first).to_have_text('"field_3"')
    assert "alpha" in "".join(lit.all_text_contents())
    page.locator(".ds-config").hover()
    expect(lit).to_have_count(0)
    # Its enumeration is what field 4's tag comes from; only that group has states from there.
    pieces = page.locator(".ds-automaton .ds-source span")
    names = pieces.all_text_contents()
    at = next(k for k, text in enumerate(names) if text == '"field_4"')
    pieces.nth(next(k for k in range(at, len(names)) if names[k] == '"gamma"')).hover()
    expect(page.locator(".ds-automaton g.node.lit")).to_have_count(1)
    expect(page.locator(".ds-automaton g.node.lit")).to_contain_text("field_4")


def test_what_can_be_written_next_is_marked_and_scrolled_into_view(opened: Debugger, recorded: Trace) -> None:
    page, run = opened.page, recorded
    page.locator(".ds-token[data-i='20']").click()
    source = str(run.header.config.source)
    spans = run.header.automaton.state_spans[run.steps[0].path[20]]
    on = page.locator(".ds-automaton .ds-source .on")
    expect(on.first).to_be_visible()
    assert set("".join(on.all_text_contents())) <= set("".join(source[a:b] for a, b in spans))
    page.wait_for_function("""() => {
        const frame = document.querySelector('.ds-automaton .ds-source').getBoundingClientRect();
        const at = document.querySelector('.ds-automaton .ds-source .on').getBoundingClientRect();
        return at.top >= frame.top - 1 && at.bottom <= frame.bottom + 1;
    }""")


def test_groups_are_read_as_a_table_and_taken_along(opened: Debugger, tmp_path: Path) -> None:
    page, frame = opened.page, panel(opened)
    groups = page.locator(".ds-automaton g.node.group").count()
    saved = {}
    for kind in ("csv", "svg", "png"):
        frame.get_by_role("button", name="table and export").click()
        with page.expect_download() as started:
            frame.get_by_role("menuitem", name=f"Save as {kind.upper()}").click()
        saved[kind] = tmp_path / f"automaton.{kind}"
        started.value.save_as(saved[kind])
    rows = list(csv.DictReader(saved["csv"].read_text(encoding="utf-8").splitlines()))
    assert len(rows) == groups
    assert sum(int(row["states"]) for row in rows) == 19_052
    drawn = "".join(ElementTree.parse(saved["svg"]).getroot().itertext())
    assert "/properties/field_9" in drawn
    assert saved["png"].read_bytes().startswith(b"\x89PNG")
    frame.get_by_role("button", name="table and export").click()
    frame.get_by_role("menuitem", name="As a table").click()
    expect(frame.locator("tbody tr")).to_have_count(groups)


def test_a_picture_that_fills_the_page_is_fitted_and_nothing_covers_it(opened: Debugger) -> None:
    page, frame = opened.page, panel(opened)
    narrow = (frame.locator("svg[viewBox]").bounding_box() or {})["width"]
    frame.get_by_role("button", name="fill the page").click()
    page.wait_for_function(
        "w => document.querySelector('.ds-automaton svg[viewBox]').getBoundingClientRect().width > w", arg=narrow
    )
    covered = page.evaluate("!document.elementFromPoint(60, 20).closest('.ds-automaton')")
    assert not covered, "the form's sidebar must not stand above it"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_every_level_is_accessible_and_fits_a_phone(
    browser: Browser, url: str, recorded: Trace, scheme: Any, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    debugger = Debugger(context.new_page(), url)
    debugger.show(recorded)
    page = debugger.page
    picture = automaton.opened(automaton.atlas(recorded.header), ())
    field = next(box for box in picture.boxes if box.name == "/properties/field_0")
    group = ".".join(map(str, field.path or ()))
    for at, level, said in (
        ({"group": None, "state": None}, "groups", "All 19,052 states"),
        ({"group": group, "state": None}, "groups", field.name),
        ({"group": None, "state": "300"}, "around", "state 300"),
    ):
        page.evaluate(
            """at => { const words = new URLSearchParams(location.hash.slice(1));
                for (const [name, value] of Object.entries(at)) if (value) words.set(name, value); else words.delete(name);
                location.hash = words; }""",
            at,
        )
        expect(page.locator(".ds-crumbs [aria-current]")).to_have_text(said)
        at_level(debugger, level)
        page.wait_for_timeout(300)
        assert violations(page, ".ds-automaton") == [], at
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not debugger.errors
    context.close()
