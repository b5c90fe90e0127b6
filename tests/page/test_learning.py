"""The lessons in a real browser: bets, numbers, keys, links, and the page for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Debugger
from playwright.sync_api import Browser, expect
from test_accessibility import RULES

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


def test_the_keyboard_alone_turns_lessons_bets_and_leaves(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    learner = Learner(context.new_page(), url)
    page = learner.learn("1").page
    expect(page.locator(".ds-lesson-title")).to_be_focused()
    learner.press(".")
    expect(page.locator('.ds[data-lesson="2"]')).to_have_count(1)
    page.keyboard.press("Tab")
    for _ in range(40):
        if page.evaluate("document.activeElement.name === 'ds-guess'"):
            break
        page.keyboard.press("Tab")
    page.keyboard.type("50")
    page.keyboard.press("Enter")
    expect(page.locator(".ds-bet-verdict")).to_contain_text("You said 50 %; it is 81.0 %")
    learner.blur()
    learner.press(",")
    expect(page.locator('.ds[data-lesson="1"]')).to_have_count(1)
    page.go_back()
    expect(page.locator('.ds[data-lesson="2"]')).to_have_count(1)
    expect(page.locator(".ds-reveal")).to_be_visible()  # the bet is kept
    assert page.evaluate("document.getAnimations().filter(a => a.playState === 'running').length") == 0
    learner.blur()
    learner.press("l")
    expect(page.locator(".ds.learning")).to_have_count(0)
    expect(page.locator(".ds-bar")).to_be_visible()
    assert "lesson" not in page.url
    assert not learner.errors
    context.close()


def test_a_puzzle_turns_green_by_the_debugger_s_own_check(learner: Learner) -> None:
    page = learner.learn("A").page
    expect(page.locator(".ds-solving .ds-finding")).to_contain_text("takes 10 tokens")
    page.locator("#ds-control-length").fill("10")
    expect(page.locator(".ds-solving[data-solved=true]")).to_contain_text("nothing to say")
    expect(page.locator(".ds-canvas [data-accepted=true]")).to_be_visible()
    expect(page.locator(".ds-lesson-steps a.done", has_text="A")).to_have_count(1)


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


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_every_lesson_fits_and_axe_finds_nothing_serious(browser: Browser, url: str, scheme: Any, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    learner = Learner(context.new_page(), url)
    axe = Axe()
    names = [*(lesson.name for lesson in LESSONS), "glossary"]
    for number, name in enumerate(names):
        if name == "glossary":
            learner.page.evaluate("location.hash = 'lesson=glossary'")
            expect(learner.page.locator(".ds-words")).to_be_visible()
        else:
            learner.learn(name)
            skip = learner.page.get_by_role("button", name="Skip, show me")
            if skip.count():
                skip.click()
        wide = learner.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"lesson {name} is wider than the screen by {wide} px"
        if number % 2 == (scheme == "dark"):
            continue  # each lesson is looked at in one of the two
        found = axe.run(learner.page, context="[data-ready]", options=RULES).response["violations"]
        bad = [
            f"{v['id']}: {n['html'][:160]}" for v in found if v["impact"] in ("serious", "critical") for n in v["nodes"]
        ]
        assert bad == [], name
    assert not learner.errors
    context.close()
