"""The lessons in a real browser: bets, numbers, keys, links, and the page for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from conftest import WCAG, Debugger, violations
from playwright.sync_api import Browser, Page, expect

from app.lessons import endpoints, texts

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]

LESSONS = texts.lessons()
# What was revealed when a guess was kept: the page's own store, watched.
WATCH = """(() => {
  const keep = Storage.prototype.setItem;
  window.kept = [];
  Storage.prototype.setItem = function (name, value) {
    const reveal = document.querySelector('.ds-reveal');
    if (name === 'denoiscope-lessons') window.kept.push({bets: JSON.parse(value).bets, hidden: reveal ? reveal.hidden : null});
    return keep.call(this, name, value);
  };
})()"""


class Learner(Debugger):
    """What a learner does."""

    def learn(self, name: str, controls: str = "") -> Learner:
        """Open a lesson, by a link in the page that is open, or by the first page."""
        if self.page.url.startswith(self.url):
            self.page.evaluate("hash => { location.hash = hash; }", f"lesson={name}{controls}")
        else:
            self.page.goto(f"{self.url}/#lesson={name}{controls}")
        expect(self.page.locator(f'.ds[data-lesson="{name}"]')).to_have_count(1)
        expect(self.page.locator(f'.ds[data-ready-for="{name}"]')).to_have_count(1)
        return self

    def bet(self, lesson: texts.Lesson) -> Any:
        """Guess, and return what was guessed."""
        if lesson.bet["kind"] == "choice":
            guess = lesson.bet["options"][0]
            self.page.locator(".ds-bet .ds-option input").first.check()
        else:
            guess = 7
            self.page.fill(".ds-bet input", str(guess))
        self.page.click(".ds-bet .primary")
        expect(self.page.locator(".ds-reveal")).to_be_visible()
        return guess

    def numbers(self) -> dict[str, str]:
        """The numbers that stand in the text, by name."""
        found: list[list[str]] = self.page.eval_on_selector_all(
            ".ds-lesson data[data-name]", "nodes => nodes.map(n => [n.dataset.name, n.value])"
        )
        return dict(found)


@pytest.fixture(scope="module")
def learner(browser: Browser, url: str) -> Iterator[Learner]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(WATCH)
    opened = Learner(page, url)
    yield opened
    context.close()
    assert not opened.errors, opened.errors


@pytest.mark.parametrize("lesson", LESSONS, ids=[lesson.name for lesson in LESSONS])
def test_a_bet_is_kept_before_the_answer_and_the_numbers_are_the_engine_s(
    learner: Learner, lesson: texts.Lesson
) -> None:
    page = learner.learn(lesson.name).page
    if lesson.bet:
        expect(page.locator(".ds-reveal")).to_be_hidden()
        page.evaluate("window.kept.length = 0")
        guess = learner.bet(lesson)
        kept = page.evaluate("window.kept")
        assert kept[0]["hidden"] is True
        assert kept[0]["bets"][lesson.name] == guess
        learner.wait("painted", "yes")
    expect(page.locator(f'.ds[data-ready-for="{lesson.name}"]')).to_have_count(1)
    settings = dict(page.evaluate("[...new URLSearchParams(location.hash.slice(1))]"))
    assert settings.pop("lesson") == lesson.name
    kinds = {control["name"]: type(control["value"]) for control in lesson.controls}
    controls = {name: kinds[name](value) for name, value in settings.items()}
    answer = endpoints.get_scene({"lesson": lesson.name, "controls": controls})
    for name, shown in learner.numbers().items():
        truth = answer["bet"][name[4:]] if name.startswith("bet.") else answer["numbers"][name]
        if isinstance(truth, float):
            assert float(shown) == pytest.approx(truth, rel=1e-9, abs=1e-12), name
        else:
            assert shown == str(truth).lower() if isinstance(truth, bool) else str(truth), name
    if answer["runs"]:
        assert learner.get("run") == answer["runs"][0]
    panels = len(set(lesson.panels) - {"steps"}) if answer["runs"] else 0
    expect(page.locator(".ds-panel:not(.ds-off):visible")).to_have_count(panels)


def test_a_control_moves_figure_numbers_and_link(learner: Learner) -> None:
    page = learner.learn("3").page
    before = learner.get("run")
    page.locator("#ds-control-p").fill("0.5")
    page.wait_for_function("before => document.querySelector('[data-ready]').dataset.run !== before", arg=before)
    assert float(learner.numbers()["q dot"]) == pytest.approx(1 / 3, abs=1e-6)
    assert "p=0.5" in page.url
    again = Learner(page.context.new_page(), learner.url).learn("3", "&p=0.5")
    assert again.get("run") == learner.get("run"), "the link says it all"
    again.page.close()


def test_a_text_outside_of_the_alphabet_is_said_in_place_and_the_figure_stays(learner: Learner) -> None:
    page = learner.learn("1").page
    before = learner.get("run")
    page.fill("#ds-control-text", "3x")
    expect(page.locator(".ds-said.wrong")).to_contain_text("'x' is not in the alphabet")
    assert learner.get("run") == before
    page.fill("#ds-control-text", "..")
    expect(page.locator(".ds-said")).to_contain_text("Dies at character 2")
    expect(page.locator(".ds-canvas [data-accepted=false]")).to_be_visible()


def test_a_link_to_no_lesson_says_so_and_offers_those_there_are(learner: Learner) -> None:
    page = learner.learn("1").page
    page.evaluate("location.hash = 'lesson=99'")
    expect(page.locator("[role=alert]:visible")).to_contain_text("there is none")
    page.locator(".ds-contents a").first.click()
    expect(page.locator('.ds[data-lesson="1"]')).to_have_count(1)


def tab_to(page: Page, what: str) -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(60):
        if page.evaluate("what => document.activeElement.matches(what)", what):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard never comes to {what}")


def test_the_keyboard_alone_goes_through_every_step_bets_moves_and_leaves(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    learner = Learner(context.new_page(), url)
    page = learner.learn("1").page
    for number, lesson in enumerate(LESSONS):
        expect(page.locator(f'.ds[data-ready-for="{lesson.name}"]')).to_have_count(1)
        expect(page.locator(".ds-lesson-title")).to_be_focused()
        if lesson.controls:
            tab_to(page, ".ds-controls-box input, .ds-controls-box textarea")
        if lesson.bet:
            tab_to(page, "[name=ds-guess]")
            page.keyboard.type(" " if lesson.bet["kind"] == "choice" else "7")
        else:
            tab_to(page, ".ds-bet button")
        page.keyboard.press("Enter")
        expect(page.locator(".ds-reveal")).to_be_visible()
        expect(page.locator(f'.ds[data-ready-for="{lesson.name}"]')).to_have_count(1)
        if "steps" in lesson.panels:
            learner.blur()
            learner.press("ArrowRight")
            learner.wait("step", "1")
        learner.blur()
        learner.press(".")
        assert page.evaluate("document.getAnimations().filter(a => a.playState === 'running').length") == 0
        if number:
            expect(page.locator(f'.ds-lesson-steps a.done:text-is("{lesson.name}")')).to_have_count(1)
    learner.press(",")
    expect(page.locator('.ds[data-lesson="C"]')).to_have_count(1)
    page.go_back()
    expect(page.locator('.ds[data-lesson="own"]')).to_have_count(1)
    expect(page.locator(".ds-reveal")).to_be_visible()  # the bet is kept
    learner.blur()
    learner.press("l")
    expect(page.locator(".ds.learning")).to_have_count(0)
    expect(page.locator("div.ds-bar")).to_be_visible()
    # What the lesson left out is drawn now.
    page.wait_for_function("() => document.querySelector('.ds-trellis canvas').style.width")
    assert "lesson" not in page.url
    assert not learner.errors
    context.close()


def test_a_guess_is_told_how_far_it_was_from_the_truth(learner: Learner) -> None:
    page = learner.learn("2").page
    page.evaluate("localStorage.removeItem('denoiscope-lessons')")
    page.reload()
    learner.learn("2")
    page.fill(".ds-bet input", "many")
    page.click(".ds-bet .primary")
    expect(page.locator(".ds-bet-error")).to_contain_text("“many” is no guess here")
    page.fill(".ds-bet input", "50")
    page.click(".ds-bet .primary")
    expect(page.locator(".ds-bet-verdict")).to_contain_text("You said 50 %; it is 81.0 %")


def test_a_puzzle_turns_green_by_the_debugger_s_own_check(learner: Learner) -> None:
    page = learner.learn("A").page
    expect(page.locator(".ds-solving .ds-finding")).to_contain_text("takes 10 tokens")
    page.locator("#ds-control-length").fill("10")
    expect(page.locator(".ds-solving[data-solved=true]")).to_contain_text("nothing to say")
    expect(page.locator(".ds-canvas [data-accepted=true]")).to_be_visible()
    expect(page.locator(".ds-lesson-steps a.done", has_text="A")).to_have_count(1)


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.solution], ids=lambda lesson: lesson.name)
def test_whoever_skips_a_puzzle_is_shown_what_turns_it_green(learner: Learner, lesson: texts.Lesson) -> None:
    page = learner.learn(lesson.name).page
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(".ds-solving[data-solved=false]")).to_be_visible()
    expect(page.locator(".ds-reveal")).to_be_hidden()
    page.get_by_role("button", name="Skip, show me").click()
    expect(page.locator(".ds-solving[data-solved=true]")).to_be_visible()
    expect(page.locator(".ds-reveal")).to_be_visible()
    for name, value in lesson.solution.items():
        expect(page.locator(f"#ds-control-{name}")).to_have_value(str(value))


@pytest.mark.slow
def test_every_step_can_be_skipped_and_seen_again_with_numbers(learner: Learner) -> None:
    page = learner.page
    page.goto("about:blank")
    page.goto(f"{learner.url}/#lesson=1")
    page.evaluate("localStorage.removeItem('denoiscope-lessons')")
    page.reload()
    for lesson in LESSONS:
        learner.learn(lesson.name)
        expect(page.get_by_role("button", name="Skip, show me")).to_be_visible()
        page.get_by_text("Again with numbers", exact=True).click()
        expect(page.locator(".ds-again p").first).to_be_visible()


def test_an_own_mean_field_is_normalised_in_place_and_its_link_holds_it(learner: Learner) -> None:
    page = learner.learn("own").page
    page.fill("#ds-control-source", "ab|ba")
    page.fill("#ds-control-table", "a,b\n1,1\n3,1")
    expect(page.locator(".ds-said")).to_contain_text("don’t sum to 1")
    assert float(learner.numbers()["z"]) == pytest.approx(0.5)
    again = Learner(page.context.new_page(), learner.url)
    again.page.goto(page.url)
    expect(again.page.locator('.ds[data-ready-for="own"]')).to_have_count(1)
    assert again.get("run") == learner.get("run")
    again.page.close()
    page.fill("#ds-control-table", "a,b\n1,x")
    expect(page.locator(".ds-said.wrong")).to_contain_text("isn't a number")


def test_an_arrow_of_the_trellis_says_what_feeds_it(learner: Learner) -> None:
    page = learner.learn("4").page
    page.get_by_role("button", name="position 1, state 2 to 3").press("Enter")
    expect(page.locator(".ds-weights .ds-note[role=status]")).to_contain_text("p(“.”) = 0.900")
    page.get_by_role("button", name="position 0, state 0 to 2").press("Enter")
    expect(page.locator(".ds-weights .ds-note[role=status]")).to_contain_text("sum of p over 10 tokens")
    sums = page.eval_on_selector_all(".ds-sum", "nodes => nodes.map(n => Number(n.dataset.sum))")
    assert sums == pytest.approx([0.19] * 3, rel=1e-6)


def test_a_word_leads_to_the_glossary_and_back(learner: Learner) -> None:
    page = learner.learn("2").page
    page.locator(".ds-term", has_text="mean field").click()
    expect(page.locator(".ds-words .chosen")).to_have_text("mean field")
    page.get_by_role("link", name="Back to lesson 2").click()
    expect(page.locator('.ds[data-lesson="2"]')).to_have_count(1)


# What is shown of a formula; where it is cut off, or drawn as nothing.
FORMULA = """() => [...document.querySelectorAll('.ds-formula')].map(box => {
  const math = box.querySelector('math').getBoundingClientRect(), cell = box.getBoundingClientRect();
  return math.height > 12 && math.width > 60 && math.right <= cell.right + 1 && box.scrollWidth <= box.clientWidth;
})"""
# axe-core's rules that another theme or another width can break.
THEMED = {"type": "rule", "values": ["color-contrast", "target-size", "scrollable-region-focusable"]}
MOVING = "document.getAnimations().filter(a => a.playState === 'running').length"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "width", "large"),
    [("light", 1440, False), ("dark", 390, False), ("dark", 1440, True), ("light", 390, True)],
)
def test_every_step_fits_holds_still_and_axe_finds_nothing_serious(
    browser: Browser, url: str, scheme: Any, width: int, large: bool
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
    )
    learner = Learner(context.new_page(), url)
    page = learner.page
    if large:
        learner.learn("1").page.get_by_role("button", name="Large type").click()
    for name in [*(lesson.name for lesson in LESSONS), "glossary"]:
        if name == "glossary":
            page.evaluate("location.hash = 'lesson=glossary'")
            expect(page.locator(".ds-words")).to_be_visible()
        else:
            learner.learn(name)
            page.get_by_role("button", name="Skip, show me").click()
            expect(page.locator(".ds-reveal")).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"lesson {name} is wider than the screen by {wide} px"
        assert all(page.evaluate(FORMULA)), f"the formula of lesson {name}"
        assert page.evaluate(MOVING) == 0, name
        if not large:
            assert violations(page, "[data-ready]", rules=WCAG if scheme == "light" else THEMED) == [], name
    assert not learner.errors
    context.close()


def test_in_large_type_canvases_grow_with_the_text_stay_sharp_and_find_the_pointer(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    learner = Learner(context.new_page(), url)
    page = learner.learn("7").page
    measure = """() => Object.fromEntries(['map', 'trellis'].map(name => {
      const canvas = document.querySelector(`.ds-${name} canvas`), box = canvas.getBoundingClientRect();
      return [name, {height: box.height, shown: box.height / parseFloat(canvas.style.height), sharp: canvas.height / box.height}];
    }))"""
    before = page.evaluate(measure)
    page.get_by_role("button", name="Large type").click()
    page.wait_for_function(
        "() => document.querySelector('.ds-map canvas.ds-layer').getBoundingClientRect().height > 300"
    )
    for name, after in page.evaluate(measure).items():
        # What is written at 11 px is shown at more than 15, and the rows around it grow as much.
        assert after["shown"] == pytest.approx(1.4, rel=0.01)
        assert after["height"] == pytest.approx(1.4 * before[name]["height"], rel=0.02), name
        assert after["sharp"] == pytest.approx(1.0, rel=0.01), name
    canvas = page.locator(".ds-map canvas.ds-layer")
    box = canvas.bounding_box()
    assert box is not None
    canvas.click(position={"x": 0.7 * box["width"], "y": 0.5 * box["height"]})
    cell = page.locator(".ds-map .ds-cell-mark")
    expect(cell).to_be_visible()
    page.wait_for_timeout(100)
    box, mark = canvas.bounding_box(), cell.bounding_box()  # after the click, which may have scrolled
    assert box is not None
    assert mark is not None
    for at, size, share in (("x", "width", 0.7), ("y", "height", 0.5)):
        assert mark[at] - 4 <= box[at] + share * box[size] <= mark[at] + mark[size] + 4
    learner.blur()
    learner.press("l")  # the debugger keeps it
    expect(page.locator(".ds.large-type:not(.learning)")).to_have_count(1)
    learner.press("t")
    expect(page.locator(".ds.large-type")).to_have_count(0)
    page.wait_for_function(
        "() => document.querySelector('.ds-map canvas.ds-layer').getBoundingClientRect().height < 300"
    )
    assert not learner.errors
    context.close()


def test_the_sweep_shows_a_message_as_far_as_it_has_come(learner: Learner) -> None:
    page = learner.learn("5").page
    page.get_by_role("button", name="α forward").click()
    values = page.locator(".ds-weights .ds-message-value")
    page.locator(".ds-sweep input").fill("1")
    expect(values.filter(has_text="·")).to_have_count(2)
    page.locator(".ds-sweep input").fill("2")
    expect(values.filter(has_text="·")).to_have_count(0)
    page.get_by_role("button", name="boundary 2, state 3").press("Enter")
    said = page.locator(".ds-weights .ds-note[role=status]")
    expect(said).to_have_text("State 3 at boundary 2: α = α(1) 0.900 × 0.100 + α(2) 0.100 × 0.900 = 0.180.")


def test_fronts_that_miss_are_drawn_apart_with_the_gap_between_them(learner: Learner) -> None:
    page = learner.learn("5", "&length=4&certain=ends").page
    gap = page.locator(".ds-gap")
    expect(gap).to_have_attribute("data-reached", "3")
    expect(gap).to_have_attribute("data-needed", "1")
    expect(page.locator(".ds-state.live")).to_have_count(0)
    expect(page.locator(".ds-state.ahead")).to_have_count(4)
    said = page.locator(".ds-weights .ds-note[role=status]")
    expect(said).to_contain_text("come as far as boundary 3, in state 3")
    expect(said).to_contain_text("would need state 2. No state has both")


def test_a_damaged_link_to_an_own_table_is_said_in_place(learner: Learner) -> None:
    page = learner.learn("1").page
    page.evaluate("location.hash = 'lesson=own&table=a%2Cb%0A1%2C'")
    expect(page.locator('.ds[data-ready-for="own"]')).to_have_count(1)
    expect(page.locator(".ds-said.wrong")).to_be_visible()
    expect(page.locator(".ds-panel:visible")).to_have_count(0)  # what stood there was another lesson's
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(".ds-said.wrong")).to_have_count(0)
    expect(page.locator(".ds-canvas [data-accepted=true]")).to_be_visible()


def test_a_link_to_a_setting_that_does_not_exist_says_what_is_shown_instead(learner: Learner) -> None:
    page = learner.learn("2", "&p=7").page
    expect(page.locator(".ds-said")).to_contain_text("“7” for “p(.) at both positions”")
    expect(page.locator(".ds-said")).to_contain_text("this is “0.95”")
    page.locator("#ds-control-p").fill("0.5")
    expect(page.locator(".ds-said")).to_be_empty()
    learner.learn("3", "&p=0.50&how=apart")
    expect(page.locator(".ds-said")).not_to_contain_text("link")


def test_tokens_of_another_vocabulary_replace_those_that_stood_with_the_same_number(learner: Learner) -> None:
    learner.learn("8")
    page = learner.learn("own").page
    page.get_by_role("button", name="Reset").click()
    expect(page.locator(".ds-value")).to_have_text("".join(page.locator(".ds-token[data-i]").all_inner_texts()))
