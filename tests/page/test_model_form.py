"""Models on the page: loaded as chosen, told in words, and a mean field typed into the grid."""

from __future__ import annotations

import re
import threading

import pytest
from conftest import Debugger
from playwright.sync_api import expect

from app import loading
from engine import models
from tests import checkpoints

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]


def test_a_folder_is_loaded_as_chosen_and_run_with_settings_of_its_loop(debugger, tmp_path):
    folder = str(checkpoints.llada(tmp_path))
    page = debugger.open().page
    page.get_by_role("button", name="How it is loaded").click()
    page.locator("#model input").first.fill(folder)
    debugger.press("Tab")
    facts = page.locator("#model-facts textarea")
    expect(facts).to_have_value(re.compile("^Not loaded yet"))
    page.locator("#dtype input").click()
    page.get_by_role("option", name="bfloat16", exact=True).click()
    page.click("#load")
    expect(facts).to_have_value(re.compile(r"LLaDA, .* cpu, bfloat16, context limit 96"))
    page.get_by_role("button", name="More settings").click()
    page.locator("#set-top_k").locator("textarea, input").fill("7")
    page.locator("#set-cfg_scale input").fill("1.5")
    debugger.run({"prompt": "the cat", "kind": "none", "length": 6, "steps": 3, "block": 6, "temperature": 1})
    expect(page.locator(".ds-config")).to_contain_text("bfloat16")


def test_a_loading_shows_its_progress_ends_by_a_click_and_can_be_begun_anew(debugger, tmp_path, monkeypatch):
    folder = str(checkpoints.llada(tmp_path))
    original, begun, let_go, ended = models.load, threading.Event(), threading.Event(), threading.Event()

    def slow(name, options, progress):
        """Load for real, but stand still behind the first weights until the test has looked."""

        def told(done, total):
            progress(done, total)
            if done:
                begun.set()
                assert let_go.wait(120)

        try:
            return original(name, options, told)
        finally:
            ended.set()

    watched, closed = loading.watched, threading.Event()

    def looked_at(name):
        try:
            yield from watched(name)
        finally:
            closed.set()

    monkeypatch.setattr(models, "load", slow)
    monkeypatch.setattr(loading, "watched", looked_at)
    page = debugger.open().page
    page.get_by_role("button", name="How it is loaded").click()
    page.locator("#model input").first.fill(folder)
    debugger.press("Tab")
    facts = page.locator("#model-facts textarea")
    expect(facts).to_have_value(re.compile("^Not loaded yet"))
    page.click("#load")
    assert begun.wait(120)
    expect(facts).to_have_value(re.compile(r"^Loading the model: [1-9]\d* of \d+ weights$"))
    page.click("#end-loading")
    expect(facts).to_have_value("Not loaded.")
    assert closed.wait(120)
    let_go.set()
    assert ended.wait(120), "the loading itself ends, not only what is said of it"
    assert not loading.is_loaded(folder)
    expect(facts).to_have_value("Not loaded.")
    page.click("#load")
    expect(facts).to_have_value(re.compile(r"LLaDA, "))
    assert loading.is_loaded(folder)


def test_a_setting_that_is_no_number_is_said_in_place(debugger):
    page = debugger.open().page
    page.get_by_role("button", name="More settings").click()
    page.locator("#set-threshold").locator("textarea, input").fill("high")
    debugger.press("Tab")
    page.click("#run")
    expect(page.locator(".ds-message .ds-problem")).to_contain_text("The threshold can't be 'high'")


def test_a_mean_field_is_typed_into_the_grid_and_run(debugger):
    page = debugger.open().page
    page.get_by_role("button", name="A mean field typed in").click()
    page.click("#grid-use")
    expect(page.locator("#grid-said textarea")).to_have_value("2 positions, 3 tokens, in use.")
    debugger.fill("source", r"[01]+(\.[01]*)?|\.[01]+")
    debugger.fill("prompt", "")
    page.click("#run")
    # The form is diagnosed at each change of it, and what that needs may be compiled here for the first time.
    expect(page.locator(".ds-config")).to_contain_text("the typed mean field", timeout=120_000)
    debugger.wait("status", "finished")
    expect(page.locator(".ds-config b")).to_have_text("✓ accepted")
    page.get_by_role("button", name="How it is loaded").click()
    expect(page.locator("#model-facts textarea")).to_have_value(
        re.compile("typed-in mean field, revision [0-9a-f]{12}, canvas of 2")
    )
    page.click("#link")
    link = page.locator("#recipe-note input").input_value()
    other = Debugger(page.context.new_page(), debugger.url).open(link.removeprefix(f"{debugger.url}/"))
    other.page.get_by_role("button", name="A mean field typed in").click()
    other.page.click("#grid-edit")
    expect(other.page.locator("#grid")).to_contain_text("0.9")
    other.page.click("#run")
    expect(other.page.locator(".ds-config")).to_contain_text("the typed mean field")
    other.wait("status", "finished")
    assert not other.errors
