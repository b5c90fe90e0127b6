"""The position inspector: numbers, order, remainders, neighbours, why a token may stand there, and a second position."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import synthetic
from conftest import REAL, ROW, Debugger, mean_field
from playwright.sync_api import Browser, Locator, Page, expect

from app import page as page_module
from app import sessions
from engine import decode, preparation
from engine.diagnosis import tokens
from engine.trace import Config, Trace
from viz import offline

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]

DOT = 10


def shown(debugger: Debugger) -> Trace:
    """The run that the page shows, as the server holds it."""
    found = sessions.find(debugger.get("run"))
    assert found is not None
    return found.trace


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """A run under `REAL`."""
    model = mean_field(tmp_path_factory.mktemp("inspector"), [ROW] * 8)
    config = Config("", "regex", REAL, model=model, length=8, steps=8, block_length=8, temperature=1.0, seed=3)
    denoiser, header = preparation.prepare(config)
    return Trace(header, list(decode.denoise(denoiser, header.automaton, header.config)))


@pytest.fixture
def real(debugger: Debugger, decoded: Trace) -> Debugger:
    """The page on that run, at its first step."""
    debugger.show(decoded)
    return debugger


def at(debugger: Debugger, **focus: int) -> None:
    """Go to a place by the address."""
    words = "&".join(f"{name}={value}" for name, value in focus.items())
    debugger.page.evaluate("words => { location.hash = words }", f"a={debugger.get('run')}&{words}")
    for name, key in (("step", "step"), ("pos", "position"), ("token", "token")):
        if name in focus:
            debugger.wait(key, str(focus[name]))


def column(page: Page, which: int = 0) -> Locator:
    return page.locator(".ds-position-column").nth(which)


def why(page: Page, reason: str, which: int = 0) -> Locator:
    found = column(page, which).locator(f'.ds-why-token[data-reason="{reason}"]:not(.waiting)')
    expect(found).to_have_count(1)
    return found


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf").strip("<>"))


def test_the_header_has_both_confidences_entropies_divergence_and_ranks(real: Debugger) -> None:
    page = real.page
    record = shown(real).steps[0]
    masked = np.flatnonzero(~np.isneginf(record.confidence_mar))
    for i in masked[[0, -1]].tolist():
        at(real, step=0, pos=i)
        facts = dict(
            zip(
                column(page).locator(".ds-facts dt").all_inner_texts(),
                column(page).locator(".ds-facts dd").all_inner_texts(),
                strict=True,
            )
        )
        wanted = {
            "Mar": record.confidence_mar[i],
            "Mf": record.confidence_mf[i],
            "H(q)": record.entropy_posterior[i],
            "H(p)": record.entropy_mean_field[i],
            "KL": record.kl[i],
        }
        for name, value in wanted.items():
            assert number(facts[name]) == pytest.approx(float(value), rel=6e-3), name
        ids, logs = record.top_ids[i], (record.top_log_posterior[i, 1], record.top_log_mean_field[i, 0])
        drawn = int(record.drawn[i])
        ranks = [
            1 + int((log[row >= 0] > log[row == drawn]).sum()) for row, log in zip((ids[1], ids[0]), logs, strict=True)
        ]
        assert facts["rank q · p"] == f"{ranks[0]} · {ranks[1]}"


def test_what_is_committed_keeps_the_numbers_of_its_commit(real: Debugger) -> None:
    page = real.page
    run = shown(real)
    i = int(np.flatnonzero(run.steps[2].committed)[0])
    at(real, step=6, pos=i)
    expect(column(page).locator(".ds-where")).to_contain_text("committed at step 2")
    expect(column(page).locator(".ds-facts .mar dt")).to_have_text("Mar at 2")
    said = number(column(page).locator(".ds-facts .mar dd").inner_text())
    assert said == pytest.approx(float(run.steps[2].confidence_mar[i]), rel=6e-3)
    expect(column(page).get_by_role("img", name=f"committed at step {2}")).to_have_count(1)
    column(page).get_by_role("button", name="go there").click()
    real.wait("step", "2")


def test_the_tokens_are_ordered_by_what_is_chosen_and_the_rest_is_always_there(debugger: Debugger) -> None:
    page = debugger.open("#a=example:no-such-hour&step=0&pos=3").page
    debugger.wait("run", "example:no-such-hour")
    debugger.wait("detail", "here")
    rows = column(page).locator(".ds-row[data-id]")
    by: dict[str, Callable[[float, float], float]] = {
        "q": lambda q, _: q,
        "p": lambda _, p: p,
        "change": lambda q, p: abs(q - p),
        "ratio": lambda q, p: math.log(q / p) if q else -math.inf,
    }
    firsts = set()
    for name, key in by.items():
        page.get_by_label("Order of the tokens").select_option(name)
        numbers = [(number(q), number(p)) for q, p in (row.locator(".ds-n").all_inner_texts() for row in rows.all())]
        values = [key(q, p) for q, p in numbers]
        assert values == sorted(values, reverse=True), name
        firsts.add(tuple(rows.evaluate_all("rows => rows.map(row => row.dataset.id)")))
        rest = column(page).locator(".ds-row.rest .ds-name").all_inner_texts()
        assert [re.sub(r" \(.*", "", text) for text in rest] == ["other allowed", "forbidden", "total"]
    assert len(firsts) > 1, "the orders differ here"
    sums = [
        [number(x) for x in row.locator(".ds-n").all_inner_texts()] for row in column(page).locator(".ds-row").all()[1:]
    ]
    listed, (others, forbidden, total) = sums[:-3], sums[-3:]
    assert sum(q for q, _ in listed) + others[0] == pytest.approx(total[0], abs=5e-3)
    assert sum(p for q, p in listed if q) + others[1] + forbidden[1] == pytest.approx(total[1], abs=5e-3)


def test_the_axis_turns_logarithmic_and_the_forbidden_is_struck_out_with_a_hatch(debugger: Debugger) -> None:
    page = debugger.open("#a=example:no-such-hour&step=0&pos=3").page
    debugger.wait("detail", "here")
    row = column(page).locator(".ds-row.forbidden").first
    assert "repeating-linear-gradient" in row.locator(".ds-name").evaluate("n => getComputedStyle(n).backgroundImage")
    p = number(row.locator(".ds-n.p").inner_text())
    left = row.locator(".ds-mark.p")
    assert float(left.evaluate("n => n.style.left").rstrip("%")) == pytest.approx(100 * p, rel=1e-2)
    page.get_by_label("log", exact=True).check()
    assert float(left.evaluate("n => n.style.left").rstrip("%")) == pytest.approx(
        100 * (1 + math.log10(p) / 6), rel=1e-2
    )
    assert row.locator(".ds-mark.q").evaluate("n => n.style.left") == "0%"
    expect(column(page).locator(".ds-axis-ends")).to_contain_text("10⁻⁶")


def test_neighbours_show_both_sides_and_a_click_goes_there(real: Debugger) -> None:
    page = real.page
    at(real, step=0, pos=1)
    cells = column(page).locator(".ds-neighbour:visible")
    expect(cells.locator(".ds-label")).to_have_text(["0", "1", "2", "3"])  # nothing lies left of the first position
    record = shown(real).steps[0]
    lines = cells.nth(2).locator(".ds-tiny")
    q = np.exp(record.top_log_posterior[2, 1, :3])
    widths = lines.locator(".ds-bar-q").evaluate_all("bars => bars.map(b => parseFloat(b.style.width))")
    assert widths[0] == pytest.approx(100 * float(q[0]), abs=0.1)
    expect(cells.nth(1)).to_have_attribute("aria-current", "true")
    cells.nth(3).click()
    real.wait("position", "3")
    expect(column(page).locator(".ds-neighbour:visible .ds-label")).to_have_text(["1", "2", "3", "4", "5"])
    column(page).locator(".ds-neighbour").nth(0).click(modifiers=["Shift"])
    real.wait("second", "1")


def test_an_accepted_token_lists_the_states_that_read_it_with_their_posterior(real: Debugger) -> None:
    page = real.page
    at(real, step=0, pos=5)
    row = column(page).locator(f".ds-row[data-id='{DOT}']")
    row.click()
    real.wait("token", str(DOT))
    verdict = tokens.of_step(shown(real), 0, 5, DOT)
    found = why(page, "accepted")
    expect(found.locator("h4")).to_have_text("Why . may stand at 5")
    said = {
        int(cells[0]): (number(cells[2]), number(cells[3]))
        for cells in (r.locator("td").all_inner_texts() for r in found.locator("tbody tr").all())
    }
    readers = verdict.reached & verdict.completed
    posterior = dict(zip(verdict.live.tolist(), verdict.posterior.tolist(), strict=True))
    assert set(said) == set(verdict.state[readers].tolist())
    for state, share in zip(verdict.state[readers].tolist(), verdict.share[readers].tolist(), strict=True):
        assert said[state] == pytest.approx((posterior[state], share), abs=2e-3)
    expect(found.locator("tbody")).to_contain_text(r"\.")  # the source that it comes from
    page.wait_for_function("location.hash.includes('token=10')")
    # Once more lets go; so does another position.
    row.click()
    real.wait("token", "")
    expect(column(page)).to_contain_text("Choose a token to see why")


def first(run: Trace, reason: str) -> tuple[int, int, int, tokens.Verdict]:
    """The first step, position and token of a run on which this is the verdict."""
    for step, record in enumerate(run.steps):
        for position in np.flatnonzero(record.canvas == run.header.vocabulary.mask_id).tolist():
            for v in range(run.header.vocabulary.size):
                verdict = tokens.of_step(run, step, position, v)
                if verdict.reason == reason:
                    return step, position, v, verdict
    raise AssertionError(f"nothing is {reason} in this run")


def test_the_reasons_against_a_token_are_told_apart_and_name_the_states(debugger: Debugger) -> None:
    page = debugger.open("#a=example:no-such-hour&step=0&pos=0").page
    debugger.wait("run", "example:no-such-hour")
    run = shown(debugger)
    step, position, v, verdict = first(run, "local")
    at(debugger, step=step, pos=position, token=v)
    found = why(page, "local")
    expect(found).to_contain_text("does not read it")
    expect(found).to_contain_text("What may stand here instead")
    listed = [int(text) for text in found.locator("tbody td:first-child").all_inner_texts()]
    assert listed == verdict.live[: len(listed)].tolist()
    step, position, v, verdict = first(run, "lost")
    at(debugger, step=step, pos=position, token=v)
    expect(why(page, "lost")).to_contain_text(f"no way gets past position {verdict.stops_at}")
    debugger.open("#a=example:mf-mar&step=0&pos=3")
    debugger.wait("run", "example:mf-mar")
    nowhere = int(np.flatnonzero(shown(debugger).header.automaton.token_class == 0)[0])
    at(debugger, step=0, pos=3, token=nowhere)
    expect(why(page, "unread")).to_contain_text("No state of the automaton reads this token")


def test_a_token_from_which_nothing_accepted_follows_names_where_it_leads_and_what_stops_it(real: Debugger) -> None:
    page, run = real.page, shown(real)
    step, position, v, verdict = first(run, "completion")
    at(real, step=step, pos=position, token=v)
    found = why(page, "completion")
    dying = verdict.reached & ~verdict.completed
    for state in {*verdict.state[dying].tolist(), *verdict.target[dying].tolist()}:
        name = "end" if state == run.header.automaton.end else str(state)
        expect(found.locator("p").first.get_by_role("button", name=f"state {name}", exact=True).first).to_be_visible()
    assert verdict.stops_at is not None
    if verdict.stops_at < run.header.config.length:
        expect(found).to_contain_text(f"no way gets past position {verdict.stops_at}")


def test_the_engine_is_asked_once_the_focus_rests_and_never_for_what_is_known(real: Debugger) -> None:
    page = real.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    at(real, step=0, pos=5, token=DOT)
    why(page, "accepted")
    count = len([body for body in asked if "get_reasons" in body])
    assert count == 1
    # Five steps in one go: only the last is asked about.
    page.evaluate(
        """() => { for (let n = 0; n < 5; n++) document.body.dispatchEvent(new KeyboardEvent('keydown', {code: 'ArrowRight', key: 'ArrowRight', bubbles: true})); }"""
    )
    real.wait("step", "5")
    expect(column(page).locator(".ds-why-token[data-reason]:not(.waiting)")).to_have_count(1)
    at(real, step=0, pos=5, token=DOT)
    why(page, "accepted")
    assert len([body for body in asked if "get_reasons" in body]) == count + 1


def test_a_file_without_an_engine_says_that_it_can_not_tell_why(browser: Browser, tmp_path: Path) -> None:
    run = synthetic.trace(synthetic.real_number(), 8, 4)
    out = tmp_path / "run.html"
    out.write_text(offline.html(run, page_module.CLIENT), encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(out.as_uri())
    page.wait_for_selector("[data-ready][data-detail=here]", state="attached")
    column(page).locator(".ds-row[data-id] button").first.click()
    expect(column(page).locator(".ds-why-token")).to_contain_text("no engine")
    expect(column(page).locator(".ds-why-token")).to_contain_text("Open its trace with Denoiscope")
    context.close()


def test_a_second_position_stands_beside_the_first_and_is_part_of_the_address_and_the_history(
    debugger: Debugger,
) -> None:
    page = debugger.open("#a=example:no-such-hour&step=0&pos=1").page
    debugger.wait("run", "example:no-such-hour")
    debugger.wait("position", "1")
    page.locator(".ds-tokens [data-i='4']").click(modifiers=["Shift"])
    debugger.wait("second", "4")
    debugger.wait("position", "1")
    expect(column(page, 1)).to_be_visible()
    expect(column(page, 1).locator(".ds-where")).to_contain_text("position 4")
    one, two = (column(page, k).bounding_box() or {} for k in (0, 1))
    assert one["y"] == two["y"], "beside each other"
    expect(page.locator(".ds-token.second")).to_have_attribute("data-i", "4")
    assert page.locator(".ds-token.second").evaluate("n => getComputedStyle(n).outlineStyle") == "dashed"
    expect(page.locator(".ds-second-mark").first).to_be_visible()
    page.wait_for_function("location.hash.includes('pos2=4')")
    fragment = "#" + page.url.partition("#")[2]
    page.locator(".ds-tokens [data-i='4']").click(modifiers=["Shift"])
    debugger.wait("second", "")
    expect(column(page, 1)).to_be_hidden()
    page.wait_for_function("!location.hash.includes('pos2')")
    page.go_back()
    debugger.wait("second", "4")
    debugger.blur()
    debugger.press("Escape")
    debugger.wait("second", "")
    debugger.open(fragment)
    debugger.wait("second", "4")
    debugger.wait("position", "1")


def test_the_second_position_is_chosen_on_the_map_and_the_trellis_too(real: Debugger) -> None:
    page = real.page
    at(real, step=0, pos=1)
    before = page.locator(".ds-trellis canvas").evaluate("c => c.toDataURL()")
    canvas = page.locator(".ds-map .ds-plot[data-side=a] canvas.ds-layer")
    canvas.hover(position={"x": 300, "y": 30})
    under = page.locator(".ds-token.ghost").get_attribute("data-i") or ""
    canvas.click(position={"x": 300, "y": 30}, modifiers=["Shift"])
    real.wait("second", under)
    real.wait("step", "0")
    assert page.locator(".ds-trellis canvas").evaluate("c => c.toDataURL()") != before
    page.locator(".ds-trellis canvas").click(position={"x": 120, "y": 20}, modifiers=["Shift"])
    expect(real.root).not_to_have_attribute("data-second", under)
    real.wait("position", "1")


def test_the_keyboard_alone_keeps_moves_and_drops_a_second_position(real: Debugger) -> None:
    page = real.page
    at(real, step=0, pos=2)
    page.locator(".ds-token[data-i='2']").focus()
    real.press("Shift+Enter", "]", "]")
    real.wait("second", "2")
    real.wait("position", "4")
    expect(page.locator(".ds-token:focus")).to_have_attribute("data-i", "4")
    real.press("Shift+BracketRight")
    real.wait("second", "3")
    real.press("Shift+BracketLeft", "Shift+BracketLeft")
    real.wait("second", "1")
    real.press("Escape", "Escape")  # the first may close the card of what the keyboard is on
    real.wait("second", "")
    # On the map, where no click of the keyboard does it.
    page.locator(".ds-map .ds-plot[data-side=a]").focus()
    real.press("Shift+Enter", "]")
    real.wait("position", "5")
    real.wait("second", "4")
    real.press("Escape", "Escape")
    real.wait("second", "")
    # From token to token with the arrow keys, which elsewhere move through steps; Enter asks why.
    names = column(page).locator(".ds-row[data-id] button")
    names.first.focus()
    real.press("ArrowDown", "Enter")
    expect(column(page).locator(".ds-row.chosen")).to_have_count(1)
    expect(names.nth(1)).to_be_focused()
    real.wait("step", "0")
    real.wait("phase", "")


def test_on_a_phone_the_second_position_stands_below_the_first(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    narrow = Debugger(context.new_page(), url).open("#a=example:no-such-hour&step=0&pos=1&pos2=3&token=1")
    narrow.wait("second", "3")
    why(narrow.page, "accepted", 1)
    one, two = (column(narrow.page, k).bounding_box() or {} for k in (0, 1))
    assert two["y"] >= one["y"] + one["height"]
    above, panel = (narrow.page.locator(css).bounding_box() or {} for css in (".ds-automaton", ".ds-position"))
    assert panel["y"] >= above["y"] + above["height"], "the details stand below the pictures"
    assert panel["width"] > 300
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not narrow.errors, narrow.errors
    context.close()


def test_what_the_pointer_is_over_is_a_dotted_second_thought_and_no_place_in_the_history(real: Debugger) -> None:
    page = real.page
    at(real, step=0, pos=1)
    page.wait_for_timeout(400)
    words = page.url
    page.locator(".ds-tokens [data-i='6']").hover()
    ghost = page.locator(".ds-map .ds-ghost-mark").first
    expect(ghost).to_be_visible()
    assert ghost.evaluate("n => getComputedStyle(n).outlineStyle") == "dotted"
    expect(page.locator(".ds-trellis .ds-ghost-mark")).to_be_visible()
    assert page.locator(".ds-token.ghost").get_attribute("data-i") == "6"
    real.wait("position", "1")
    page.locator(".ds-map .ds-plot[data-side=a] canvas.ds-layer").hover(position={"x": 120, "y": 30})
    expect(page.locator(".ds-token.ghost")).not_to_have_attribute("data-i", "6")
    under = page.locator(".ds-token.ghost").get_attribute("data-i")
    expect(page.locator("#ds-card header")).to_contain_text(f"Position {under} at step")
    page.locator(".ds-config").hover()
    expect(page.locator(".ds-token.ghost")).to_have_count(0)
    expect(ghost).to_be_hidden()
    page.wait_for_timeout(300)
    assert page.url == words


def test_a_panel_that_fills_the_page_is_left_by_escape_before_the_second_position_is_dropped(real: Debugger) -> None:
    page = real.page
    page.locator(".ds-tokens [data-i='4']").click(modifiers=["Shift"])
    frame = page.locator(".ds-position").first
    frame.get_by_role("button", name="fill the page").click()
    real.press("Escape")
    expect(frame).not_to_have_class(re.compile("large"))
    real.wait("second", "4")


def test_ranks_count_the_tokens_that_the_constraint_forbids_under_p_alone(debugger: Debugger) -> None:
    page = debugger.open("#a=example:little-belief&step=0&pos=0").page
    debugger.wait("run", "example:little-belief")
    run = shown(debugger)

    def ranks(step: int, i: int) -> tuple[int, int] | None:
        record = run.steps[step]
        drawn, found = int(record.drawn[i]), []
        for side, logs in ((1, record.top_log_posterior), (0, record.top_log_mean_field)):
            ids, log = record.top_ids[i, side], logs[i, side]
            here = log[ids == drawn]
            if not here.size or here[0] == -np.inf:
                return None
            found.append(1 + int((log[ids >= 0] > here[0]).sum()))
        better = record.top_log_mean_field[i, 0] > record.top_log_mean_field[i, 0][record.top_ids[i, 0] == drawn]
        forbidden = np.isneginf(record.top_log_posterior[i, 0][better & (record.top_ids[i, 0] >= 0)]).any()
        return (found[0], found[1]) if forbidden else None

    step, i, wanted = next(
        (t, int(i), found)
        for t, record in enumerate(run.steps)
        for i in np.flatnonzero(record.canvas == run.header.vocabulary.mask_id)
        if (found := ranks(t, int(i)))
    )
    at(debugger, step=step, pos=i)
    expect(column(page).locator(".ds-facts .rank dd")).to_have_text(f"{wanted[0]} · {wanted[1]}")
