"""The parts of a source have one number and one hue in every panel: source, canvas, map, tree, trellis, automaton, card."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import large
import pytest
from conftest import Debugger
from playwright.sync_api import Browser, Page, expect

from engine import trace_file
from engine.trace import Trace
from viz import automaton, parts

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]

INNER = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}, "zip": {"type": "string", "pattern": "^[0-9]{2}$"}},
}
FIELDS = {
    "name": {"type": "string", "pattern": "^[a-z]{1,5}$"},
    "address": {**INNER, "required": ["city", "zip"], "additionalProperties": False},
    "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
}
NESTED = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Path]:
    run = large.trace(large.header("json_schema", json.dumps(NESTED, indent=1), 56))
    file = tmp_path_factory.mktemp("nested") / "nested.trace"
    trace_file.save(run, file)
    return run, file


def numbers(run: Trace) -> list[str]:
    """Of each state, the numbers of its parts as every panel writes them."""
    config, spans = run.header.config, run.header.automaton.state_spans
    found = parts.of_source(config.kind, config.source, spans).places
    return ["·".join(map(str, some)) for some in found]


def upload(debugger: Debugger, file: Path) -> Page:
    before = debugger.open().get("run")
    debugger.page.set_input_files("#open input[type=file], input[type=file]", file)
    expect(debugger.root).not_to_have_attribute("data-run", before or "")
    debugger.wait("detail", "here")
    debugger.blur()
    debugger.press("Home")
    debugger.wait("step", "0")
    return debugger.page


def table(page: Page, title: str) -> list[dict[str, str]]:
    page.get_by_role("button", name=f"{title}: table and export").click()
    with page.expect_download() as got:
        page.get_by_role("menuitem", name="Save as CSV").click()
    return list(csv.DictReader(Path(got.value.path()).read_text(encoding="utf-8").splitlines()))


def test_a_part_has_one_number_in_source_canvas_tree_trellis_automaton_and_card(
    debugger: Debugger, nested: tuple[Trace, Path]
) -> None:
    run, page = nested[0], upload(debugger, nested[1])
    expected, step = numbers(run), run.steps[0]
    assert {"1", "2", "3", "4", "5", "6"} <= set(expected)
    # In the source a number stands where its part begins.
    begins = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.ds-source [data-part]')].map(s => [s.dataset.part, s.textContent]))"
    )
    assert begins["1"].startswith('"name"')
    assert begins["3"].startswith('"city"')
    assert begins["4"].startswith('"zip"')
    # Every position of the canvas, every midpoint and every state of the trellis has that of its state.
    for row in table(page, "Canvas"):
        assert row["part of the source"] == expected[step.path[int(row["position"])]]
    for row in table(page, "Midpoint tree"):
        assert row["part of the source"] == expected[int(row["state"])]
    for row in table(page, "Trellis"):
        assert row["part of the source"] == expected[int(row["state"])]
    # On the canvas a number stands where the part changes.
    chips = page.evaluate("[...document.querySelectorAll('.ds-tokens [data-i]')].map(c => c.dataset.part ?? '')")
    along = [expected[q] for q in step.path[:-1].tolist()]
    assert chips == ["" if n and along[n - 1] == said else said for n, said in enumerate(along)]
    # The nodes of the automaton; a chain of states has those of all its states.
    picture = automaton.opened(automaton.atlas(run.header), ())
    drawn = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.ds-automaton g.node')].map(g => [g.id, g.querySelector('.ds-node-part')?.textContent ?? '']))"
    )
    alone = [(n, box) for n, box in enumerate(picture.boxes) if box.kind == "state"]
    assert len(alone) > 5
    for n, box in alone:
        assert drawn[box.id] == expected[int((picture.box == n).argmax())], box
    # And the card, of a position that writes a city.
    at = along.index("3")
    page.locator(f".ds-token[data-i='{at}']").hover()
    expect(page.locator("#ds-card .ds-part").first).to_have_text("3")
    expect(page.locator("#ds-card code").first).to_have_text('"city"')


def test_the_rows_of_the_trellis_have_the_hue_of_their_part(debugger: Debugger, nested: tuple[Trace, Path]) -> None:
    run, page = nested[0], upload(debugger, nested[1])
    expected = numbers(run)
    pixels = page.evaluate("""async () => {
      const canvas = document.querySelector('.ds-trellis canvas'), c = canvas.getContext('2d'), ratio = devicePixelRatio;
      const data = c.getImageData(0, 0, 60 * ratio, canvas.height).data, w = 60 * ratio, seen = {};
      for (let y = 0; y < canvas.height; y++) for (let x = 30; x < w; x++) {
        const at = 4 * (y * w + x); if (data[at + 3] < 255) continue;
        const hex = '#' + [0, 1, 2].map(k => data[at + k].toString(16).padStart(2, '0')).join('');
        seen[hex] = (seen[hex] ?? 0) + 1;
      }
      const style = getComputedStyle(document.querySelector('.ds'));
      return Object.fromEntries(Array.from({length: 7}, (_, n) => [n + 1, seen[style.getPropertyValue(`--part-${n + 1}`).trim()] ?? 0]));
    }""")
    rows = {n: sum(1 for said in expected if said == str(n)) for n in range(1, 8)}
    assert pixels["7"] == 0, "there is no seventh part"
    for n in range(1, 7):
        assert pixels[str(n)] > 0, n
    most = max(rows, key=lambda n: rows[n])
    assert pixels[str(most)] == max(pixels.values())


def test_beyond_seven_parts_a_number_has_no_hue_and_two_runs_share_theirs(
    browser: Browser, url: str, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    debugger = Debugger(context.new_page(), url)
    file = tmp_path / "ten.trace"
    trace_file.save(large.trace(large.header("json_schema", large.schema(9, 3, required=1), 64)), file)
    page = upload(debugger, file)
    hues = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.ds-source [data-part]')].map(s => [s.dataset.part, s.dataset.hue]))"
    )
    assert hues == {str(n): str(n if n <= 7 else 0) for n in range(1, 10)}
    debugger.open("#a=example:mf-mar")
    page.get_by_role("button", name="Examples").click()
    page.locator(".ds-card[data-name=mf-mar]").click()
    expect(page.locator(".ds-text")).to_have_count(2)
    debugger.wait("detail", "here")
    marked = """side => Object.fromEntries([...document.querySelectorAll(`.ds-text[data-side=${side}] [data-part]`)].map(c => [c.dataset.part, getComputedStyle(c, '::before').backgroundColor]))"""
    one, other = page.evaluate(marked, "a"), page.evaluate(marked, "b")
    shared = set(one) & set(other)
    assert {"1", "2"} <= shared
    assert all(one[n] == other[n] for n in shared)
    assert one["1"] != one["2"]
    assert not debugger.errors
    context.close()
