"""What the page does with a server that gives no answer, and what it gives out: exports, messages."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import Debugger
from playwright.sync_api import Locator, Route, expect

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]
SVG = "{http://www.w3.org/2000/svg}"


def refuse(debugger: Debugger, function: str) -> list[str]:
    """Cut every question of a kind off; return the list that they are noted in."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        words = json.loads(route.request.post_data or "{}")
        if words.get("fn_name") == function:
            asked.append(function)
            route.abort()
        else:
            route.continue_()

    debugger.page.route("**/component_server**", answer)
    return asked


def test_a_breakpoint_that_a_run_can_not_be_searched_for_is_asked_once_and_says_so(debugger: Debugger) -> None:
    page = debugger.open("#a=example:no-such-hour&step=0&pos=0").page
    page.locator("#ds-break").fill("kl > 1")
    page.locator("#ds-break").press("Enter")
    expect(page.locator(".ds-stops .ds-count")).to_contain_text("hit")
    asked = refuse(debugger, "get_hits")
    page.evaluate("location.hash = '#a=example:mf-mar&step=0&pos=0'")
    debugger.wait("run", "example:mf-mar")
    expect(page.locator(".ds-stops .ds-count")).to_have_text("The server gave no answer.")
    page.wait_for_timeout(1000)
    assert len(asked) == 1


def test_a_comparison_that_got_no_answer_says_what_to_do_and_is_asked_for_again(debugger: Debugger) -> None:
    asked = refuse(debugger, "get_comparison")
    page = debugger.open("#a=example:mf-mar&b=example:mf-mar-beside&step=2&pos=0").page
    panel = page.locator(".ds-against")
    expect(panel).to_contain_text("The server gave no answer. ")
    assert asked
    page.unroute("**/component_server**")
    debugger.blur()
    debugger.press("ArrowRight")
    expect(panel).to_contain_text("They part at step")


def test_a_run_that_the_server_gives_no_answer_about_is_not_called_gone_and_opens_once_it_does(
    debugger: Debugger,
) -> None:
    page = debugger.open("#a=example:no-such-hour&step=0&pos=0").page
    said, picked = page.locator(".ds-message .ds-problem"), page.get_by_label("Run shown")
    asked = refuse(debugger, "get_run")
    for choose in (
        lambda: page.evaluate("location.hash = '#a=example:mf-mar&step=2&pos=0'"),
        lambda: picked.select_option("example:sql"),
    ):
        before = len(asked)
        choose()
        expect(said).to_be_visible()
        expect(said).to_contain_text("The server gave no answer about the run example:")
        assert len(asked) == before + 1
        assert debugger.get("run") == "example:no-such-hour"
        expect(picked).to_have_value("example:no-such-hour")
        page.get_by_role("button", name="Dismiss").click()
    page.unroute("**/component_server**")
    picked.select_option("example:sql")
    debugger.wait("run", "example:sql")
    expect(page.locator(".ds-message")).to_be_hidden()
    page.evaluate("location.hash = '#a=nowhere'")
    expect(said).to_contain_text("does not hold the run nowhere")


def saved(debugger: Debugger, panel: Locator, path: Path) -> ElementTree.Element:
    panel.get_by_role("button", name="table and export").click()
    with debugger.page.expect_download() as started:
        panel.get_by_role("menuitem", name="Save as SVG").click()
    started.value.save_as(path)
    return ElementTree.parse(path).getroot()


def test_the_export_of_the_map_has_both_runs_their_parts_and_what_is_hatched(
    debugger: Debugger, tmp_path: Path
) -> None:
    page = debugger.open("#a=example:mf-mar&b=example:mf-mar-beside&step=5&pos=0&map=commit").page
    debugger.wait("compare", "example:mf-mar-beside")
    debugger.wait("detail", "here")
    panel = page.locator(".ds-map")
    maps = panel.locator("canvas.ds-layer")
    expect(maps).to_have_count(2)
    drawn = saved(debugger, panel, tmp_path / "map.svg")
    groups = drawn.findall(f"{SVG}g")
    assert len(groups) == 4, "two maps, and under each the parts of its source"
    assert all(len(group) > 3 for group in groups)
    # The second map is beside the first, as far as on the page.
    lefts = [(box.bounding_box() or {})["x"] for box in maps.all()]
    moved = [float(group.get("transform", "").removeprefix("translate(").split()[0]) for group in groups]
    assert max(moved) == pytest.approx(lefts[1] - lefts[0], abs=1)
    badges = {node.text for group in groups[1::2] for node in group.iter(f"{SVG}text")}
    assert {"1", "2"} <= badges
    patterns = {f"url(#{node.get('id')})" for node in drawn.iter(f"{SVG}pattern")}
    hatched = [node for node in drawn.iter(f"{SVG}rect") if node.get("fill") in patterns]
    assert len(hatched) > 100, "cells of which no commit time is known yet"


def test_the_export_of_a_comparison_has_its_map_and_its_slopes(debugger: Debugger, tmp_path: Path) -> None:
    page = debugger.open("#a=example:mf-mar&b=example:mf-mar-beside&step=5&pos=0").page
    panel = page.locator(".ds-against")
    expect(panel).to_contain_text("They part at step")
    drawn = saved(debugger, panel, tmp_path / "against.svg")
    groups = drawn.findall(f"{SVG}g")
    assert [len(group) > 20 for group in groups] == [True, True]
