"""What the patterns promise besides: stops in the map and as a list, strips beside it, lanes, pointers in every chart, lines."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from conftest import ROW, Debugger, form
from playwright.sync_api import Locator, expect

from app import sessions
from engine import comparison
from engine.diagnosis import beliefs, cells, conflict
from engine.trace import Trace
from viz import graph, parts

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]


def shown(debugger: Debugger) -> Trace:
    found = sessions.find(debugger.get("run"))
    assert found is not None
    return found.trace


def example(debugger: Debugger, name: str, words: str = "step=0&pos=0") -> Debugger:
    debugger.open(f"#a=example:{name}&{words}")
    debugger.wait("run", f"example:{name}")
    debugger.wait("detail", "here")
    debugger.blur()
    return debugger


def stop_where(debugger: Debugger, text: str) -> None:
    debugger.page.locator("#ds-break").fill(text)
    debugger.page.locator("#ds-break").press("Enter")
    expect(debugger.page.locator(".ds-breaks code").last).to_have_text(text)
    debugger.blur()


# Colours of the map, read back out of its pixels: `[r, g, b]` in the middle of a place given in px of the page.
PIXEL = """(canvas, [x, y]) => {
  const scale = canvas.width / canvas.clientWidth;
  return Array.from(canvas.getContext('2d').getImageData(Math.round(x * scale), Math.round(y * scale), 1, 1).data);
}"""


def map_of(debugger: Debugger) -> tuple[Locator, float, float]:
    """The map, and the size of its cells in px: x from 46, y from 4."""
    canvas = debugger.page.locator(".ds-map .ds-plot[data-side=a] canvas.ds-layer")
    cell = debugger.page.locator(".ds-map .ds-plot[data-side=a] .ds-cell-mark")
    column = debugger.page.locator(".ds-map .ds-plot[data-side=a] .ds-column-mark")
    steps = shown(debugger).header.config.steps
    width = float(cell.evaluate("n => parseFloat(n.style.width)"))
    height = float(column.evaluate("n => parseFloat(n.style.height)"))
    return canvas, width + (1 if width > 4 else 0), height / steps


def test_every_hit_of_a_breakpoint_is_listed_and_marked_in_its_cell(debugger: Debugger) -> None:
    page = example(debugger, "no-such-hour").page
    canvas, width, height = map_of(debugger)
    before = canvas.evaluate("c => c.toDataURL()")
    run = shown(debugger)
    wanted = [
        (t, int(i))
        for t, step in enumerate(run.steps)
        for i in np.flatnonzero(step.kl > 1)
        if step.canvas[i] == run.header.vocabulary.mask_id
    ]
    assert wanted
    stop_where(debugger, "kl > 1")
    page.wait_for_function(
        "([css, was]) => document.querySelector(css).toDataURL() !== was", arg=[".ds-map canvas.ds-layer", before]
    )
    for t, i in wanted:
        corner = canvas.evaluate(PIXEL, [46 + i * width + 1.5, 4 + (t + 1) * height - 2.5])
        assert corner[:3] == [17, 17, 17], f"no mark at step {t}, position {i}"
    page.locator(".ds-breaks summary").click()
    places = page.locator(".ds-hits button")
    expect(places).to_have_text([f"{t}, {i}" for t, i in wanted])
    places.last.click()
    debugger.wait("step", str(wanted[-1][0]))
    debugger.wait("position", str(wanted[-1][1]))
    # What is written out stays so while the focus moves, and the palette knows the breakpoint.
    expect(places.first).to_be_visible()
    debugger.blur()
    debugger.press("/")
    page.get_by_role("combobox", name="Find").fill("kl > 1")
    page.get_by_role("option", name="Stop where kl > 1").click()
    debugger.wait("step", str(wanted[0][0]))


def test_a_breakpoint_without_a_hit_says_why_its_buttons_rest(debugger: Debugger) -> None:
    page = example(debugger, "no-such-hour").page
    stop_where(debugger, "step > 99")
    button = page.get_by_role("button", name="Next hit")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("data-tip", "It holds nowhere in this run")


def test_forced_cells_have_a_dot_and_the_strips_say_when_and_how_many(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8), source="[0-9]{3}x[0-9]{4}|[0-9]{8}", steps=4) | {"source": "[0-9]{7}\\."})
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    run = shown(debugger)
    canvas, width, height = map_of(debugger)
    sizes = np.bincount(run.header.automaton.token_class, minlength=run.header.automaton.classes)
    forced = np.isfinite(run.steps[0].log_lift) @ sizes == 1
    assert forced.tolist() == [False] * 7 + [True], "the dot at the end alone is forced"
    dots = []
    for i in range(8):
        at = [46 + (i + 1) * width - 7.5, 4 + height / 2]
        around = canvas.evaluate(PIXEL, [at[0] - 6, 4 + height - 4])
        dots.append(canvas.evaluate(PIXEL, at)[:3] != around[:3])
    assert dots == forced.tolist()
    # Two are committed a step: the strip below has four colours, each twice; the bars beside are as long as each other.
    bottom = 4 + 4 * height + 5
    colours = [tuple(canvas.evaluate(PIXEL, [46 + (i + 0.5) * width, bottom])[:3]) for i in range(8)]
    commits = comparison.commit_steps(run)
    for i in range(8):
        for j in range(8):
            assert (colours[i] == colours[j]) == (commits[i] == commits[j])
    for t in range(4):
        assert canvas.evaluate(PIXEL, [46 + 8 * width + 8, 4 + (t + 0.5) * height])[3] > 0
    expect(page.locator(".ds-map .ds-legend")).to_contain_text("forced")


def test_the_lanes_mark_where_p_and_q_prefer_different_tokens(debugger: Debugger) -> None:
    page = example(debugger, "no-such-hour").page
    run = shown(debugger)
    flips = [
        int(
            (
                (s.top_ids[:, 0, 0] != s.top_ids[:, 1, 0])
                & (s.top_ids[:, 1, 0] >= 0)
                & (s.canvas == run.header.vocabulary.mask_id)
            ).sum()
        )
        for s in run.steps
    ]
    assert 0 in flips
    assert max(flips) > 0
    lanes = page.locator(".ds-lanes")
    width = float(lanes.evaluate("c => c.clientWidth"))
    orange = page.evaluate(
        "() => { const n = document.querySelector('.ds'); return getComputedStyle(n).getPropertyValue('--p').trim(); }"
    )
    rgb = [int(orange[k : k + 2], 16) for k in (1, 3, 5)]
    for t, n in enumerate(flips):
        pixel = lanes.evaluate(PIXEL, [(t + 0.5) * width / len(flips), 30])[:3]
        assert (np.abs(np.asarray(pixel) - rgb).max() < 60) == (n > 0), f"step {t}: {n} positions"
    track = page.locator(".ds-track")
    track.hover(position={"x": (int(np.argmax(flips)) + 0.5) * width / len(flips), "y": 20})
    expect(page.locator("#ds-card")).to_contain_text(re.compile(r"At \d+ positions? p and q prefer different tokens"))


def test_the_pointer_of_the_step_is_in_the_map_of_differences_too(debugger: Debugger) -> None:
    page = debugger.open("#a=example:mf-mar&b=example:mf-mar-beside&step=2&pos=0").page
    debugger.wait("compare", "example:mf-mar-beside")
    expect(page.locator(".ds-against")).to_contain_text("They part at step")
    pointer = page.locator(".ds-compare .ds-row-mark")
    tops = []
    for step in ("2", "3", "4"):
        debugger.wait("step", step)
        expect(pointer).to_be_visible()
        tops.append((pointer.bounding_box() or {})["y"])
        debugger.blur()
        debugger.press("ArrowRight")
    assert tops[1] - tops[0] == pytest.approx(tops[2] - tops[1], abs=1.01)
    assert tops[1] > tops[0] + 1


def test_differences_are_walked_both_ways_by_button_and_key(debugger: Debugger) -> None:
    page = debugger.open("#a=example:mf-mar&b=example:mf-mar-beside&step=0&pos=0").page
    debugger.wait("compare", "example:mf-mar-beside")
    panel = page.locator(".ds-against")
    expect(panel).to_contain_text("They part at step")
    debugger.blur()
    seen = []
    for _ in range(3):
        panel.get_by_role("button", name=re.compile("^Next difference")).click()
        page.wait_for_timeout(250)
        seen.append(debugger.get("step"))
    assert len(set(seen)) == 3
    debugger.blur()
    debugger.press("Shift+V")
    debugger.wait("step", seen[1] or "")
    panel.get_by_role("button", name=re.compile("^Previous difference")).click()
    debugger.wait("step", seen[0] or "")
    rows = panel.get_by_role("row", name=re.compile("^model calls"))
    runs = [sessions.find(run) for run in ("example:mf-mar", "example:mf-mar-beside")]
    expect(rows.locator("td")).to_have_text([str(len(run.trace.steps)) for run in runs if run])


def test_the_canvas_breaks_its_lines_where_the_text_does(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    row = [0.1] * 10 + [0.0, 0.5]
    debugger.run(
        form(table([row] * 6, [*"0123456789.", "\n"]), source="[0-9]{2}\\n[0-9]{2}\\n", length=6, steps=6, block=6)
    )
    debugger.blur()
    debugger.press("End")
    boxes = [page.locator(f".ds-tokens [data-i='{i}']").bounding_box() or {} for i in range(6)]
    tops = [box["y"] for box in boxes]
    assert tops[0] == tops[1] == tops[2] < tops[3] == tops[4] == tops[5]
    expect(page.locator(".ds-tokens [data-i='2']")).to_have_text("⏎")


def test_a_cell_of_the_trellis_shows_its_messages_and_the_terms_that_they_add_up(debugger: Debugger) -> None:
    page = example(debugger, "mf-mar", "step=3&pos=12").page
    run = shown(debugger)
    state = int(run.steps[3].path[12])
    page.evaluate("state => { location.hash = location.hash + '&state=' + state }", str(state))
    panel = page.locator(".ds-cell:not(.waiting)[data-posterior]")
    expect(panel.locator("h4")).to_have_text(f"State {state} at boundary 12")
    wanted = cells.of_state(beliefs.of_step(run, run.steps[3]), 12, state)
    assert float(panel.get_attribute("data-posterior") or 0) == pytest.approx(wanted.posterior, abs=1e-9)
    for n, (sign, log, terms) in enumerate(
        (("α", wanted.log_forward, wanted.into), ("β", wanted.log_backward, wanted.out))
    ):
        part = panel.locator(".ds-sum-of").nth(n)
        head = part.locator("p").first.inner_text()
        assert float(head.removeprefix(f"{sign} = ").split()[0].replace("−", "-")) == pytest.approx(
            np.exp(log), rel=6e-3
        )
        rows = [row.locator("td").all_inner_texts() for row in part.locator("tbody tr").all()]
        assert [row[0] for row in rows] == [
            "end" if q == run.header.automaton.end else str(q) for q in terms.state[: len(rows)].tolist()
        ]
        for row, message, weight, term in zip(rows, terms.log_message, terms.log_weight, terms.log_term, strict=False):
            there, times = (float(x.replace("−", "-")) for x in row[2].split(" × "))
            said = (there, times, float(row[3].removeprefix("= ").replace("−", "-")))
            assert said == pytest.approx(np.exp([message, weight, term]), rel=6e-3)
    panel.locator(".ds-sum-of").nth(1).get_by_role("button").first.click()
    debugger.wait("position", "13")
    expect(panel.locator("h4")).to_contain_text("at boundary 13")


def test_the_draw_in_the_trellis_has_the_levels_of_its_midpoints(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 8)))
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    debugger.wait("detail", "here")
    run = shown(debugger)
    order = graph.order(graph.of_tokens(run.header)).tolist()
    canvas = page.locator(".ds-trellis canvas")
    ink = [22, 25, 31]
    for b, state in enumerate(run.steps[0].path.tolist()):
        pixel = canvas.evaluate(PIXEL, [46 + 64 * b, 4 + (order.index(state) + 0.5) * 15 - 5.5])
        assert (np.abs(np.asarray(pixel[:3]) - ink).max() < 30) == (b > 0), f"boundary {b}"


def test_every_panel_can_fill_the_page_and_go_back_to_its_place(debugger: Debugger) -> None:
    page = example(debugger, "mf-mar", "b=example:mf-mar-beside&step=0&pos=0").page
    expect(page.locator(".ds-against")).to_be_visible()
    panels = page.locator(".ds-panel:visible")
    names = panels.evaluate_all("panels => panels.map(panel => panel.className.split(' ')[1])")
    assert {"ds-canvas", "ds-inside", "ds-diagnosis", "ds-stops", "ds-family", "ds-against", "ds-exact"} <= set(names)
    for name in names:
        frame = page.locator(f".ds-panel.{name}")
        frame.get_by_role("button", name="fill the page").click()
        assert (frame.bounding_box() or {})["width"] == 1440, name
        frame.get_by_role("button", name="fill the page").press("Escape")
        expect(frame).not_to_have_class(re.compile("large"))


def test_the_palette_finds_a_part_of_the_source_and_goes_to_where_it_is_written(debugger: Debugger) -> None:
    page = example(debugger, "right-marginals").page
    run = shown(debugger)
    numbered = parts.of_source(
        run.header.config.kind, run.header.config.source, tuple(dict.fromkeys(run.header.automaton.state_spans))
    )
    spans = list(dict.fromkeys(run.header.automaton.state_spans))
    path = run.steps[0].path.tolist()
    for number, section in enumerate(numbered.sections, 1):
        written = [
            i
            for i, q in enumerate(path[:-1])
            if number in numbered.places[spans.index(run.header.automaton.state_spans[q])]
        ]
        debugger.blur()
        debugger.press("Home", "/")
        page.get_by_role("combobox", name="Find").fill(section.name)
        option = page.get_by_role("option").filter(has_text=f"{number} {section.name[:39]}").first
        if written:
            option.click()
            debugger.wait("position", str(next((i for i in written if i > 0), written[0])))
            page.locator(".ds-tokens [data-i='0']").first.click()
        else:
            expect(option).to_contain_text("writes it nowhere")
            debugger.press("Escape")


@pytest.mark.parametrize("mode", ["forward", "backward"])
def test_each_front_of_the_trellis_is_blue_where_it_reaches(debugger: Debugger, mode: str) -> None:
    page = example(debugger, "no-such-hour", "step=3&pos=0").page
    run = shown(debugger)
    fronts = conflict.fronts(
        conflict.canvas_of(run.header.automaton, run.steps[3].canvas, run.header.vocabulary.mask_id)
    )
    wanted = fronts[0] if mode == "forward" else fronts[1]
    assert not (fronts[0] & fronts[1]).any(), "they never meet: nothing accepted is left"
    canvas = page.locator(".ds-trellis canvas")
    page.get_by_label("What the trellis shows").select_option(mode)
    expect(page.locator(f".ds-trellis [data-front={mode}]")).to_have_count(1)
    order = graph.order(graph.of_tokens(run.header)).tolist()
    for boundary in range(wanted.shape[0]):
        for row, state in enumerate(order):
            red, _, blue, alpha = canvas.evaluate(PIXEL, [46 + 64 * boundary - 6, 4 + row * 15 + 11])
            assert (blue > red + 60 and alpha > 60) == wanted[boundary, state], f"state {state} at boundary {boundary}"


def test_where_nothing_is_live_the_trellis_draws_the_gap_between_its_fronts(debugger: Debugger) -> None:
    page = example(debugger, "no-such-hour", "step=3&pos=0").page
    run = shown(debugger)
    ahead, behind = conflict.fronts(
        conflict.canvas_of(run.header.automaton, run.steps[3].canvas, run.header.vocabulary.mask_id)
    )
    reached, needed = np.flatnonzero(ahead.any(1))[-1], np.flatnonzero(behind.any(1))[0]
    trellis = page.locator(".ds-trellis")
    expect(trellis.locator("[data-front=forward]")).to_have_count(1)
    expect(trellis.locator(f"[data-reached='{reached}'][data-needed='{needed}']")).to_have_count(1)
    expect(trellis).to_contain_text(f"The start reaches boundary {reached};")
    debugger.press("Home")
    expect(trellis.locator("[data-front='']")).to_have_count(1)


def test_what_a_tree_has_no_midpoint_for_is_hatched(debugger: Debugger, table: Callable[..., str]) -> None:
    page = debugger.open().page
    debugger.run(form(table([ROW] * 6), length=6, steps=6, block=6))
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    expect(page.locator(".ds-tree header")).to_contain_text("hatched: no midpoint")
    canvas = page.locator(".ds-tree canvas")
    patch = """(canvas, [x, y]) => {
      const scale = canvas.width / canvas.clientWidth;
      return Array.from(canvas.getContext('2d').getImageData(x * scale, y * scale, 12 * scale, 12 * scale).data)
        .filter((_, k) => k % 4 === 3);
    }"""
    # Of six positions the right half of the first cut, 4 to 6, has its midpoint a level below that of 0 to 4.
    whole, hatched = (canvas.evaluate(patch, [46 + 64 * 5 + 20, 2 + 20 * level + 4]) for level in (1, 2))
    assert len(set(whole)) == 1
    assert whole[0] > 60
    assert len(set(hatched)) > 1
    assert max(hatched) > 60
