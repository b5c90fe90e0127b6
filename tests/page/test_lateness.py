"""Whatever comes late or is overtaken: the page gets to what the server has, and no click goes under."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ROW, Debugger, form
from playwright.sync_api import Page, Request, expect

from app import events
from app.sessions import Run, Runs
from app.views import View
from engine.models.table import Table

pytestmark = [
    pytest.mark.page,
    # The server runs in this process, and what Gradio and pandas deprecate is not ours to mend.
    pytest.mark.filterwarnings("default"),
]

LATE = """
const fetched = window.fetch, later = () => new Promise(done => setTimeout(done, window.lateBy ?? 0));
window.fetch = async (what, how) => {
  const answer = await fetched(what, how);
  if (String(how?.body).includes('get_steps')) await later();
  if (!answer.url.includes('/queue/data')) return answer;
  const late = new TransformStream({async transform(chunk, to) { await later(); to.enqueue(chunk); }});
  return new Response(answer.body.pipeThrough(late), {status: answer.status, headers: answer.headers});
};
"""
"""What the server says of events, and the steps of runs, come late to the page; all else in time."""


def late(debugger: Debugger) -> Page:
    debugger.page.add_init_script(LATE)
    return debugger.open().page


def asks_for_steps(request: Request) -> bool:
    return "get_steps" in (request.post_data or "")


def test_a_run_begun_while_the_stream_of_events_is_closing_is_seen(
    debugger: Debugger, table: Callable[..., str]
) -> None:
    page = late(debugger)
    debugger.run(form(table([ROW] * 8)))
    before = debugger.get("run")
    page.evaluate("window.lateBy = 600")
    with page.expect_response("**/queue/join*"):
        debugger.fill("steps", 4)
    page.wait_for_timeout(
        300
    )  # the form is checked, and with it the server's stream ends, of which the page hears later
    page.click("#run")
    page.wait_for_function("before => document.querySelector('[data-ready]').dataset.run !== before", arg=before)
    debugger.wait("count", "4")


def test_the_end_of_a_run_is_seen_though_its_last_step_was_told_before(
    debugger: Debugger, table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Runs.finish

    def later(self: Runs, run: Run, status: str) -> None:
        time.sleep(0.3)
        finish(self, run, status)

    monkeypatch.setattr(Runs, "finish", later)
    debugger.open().run(form(table([ROW] * 8)))
    assert debugger.get("count") == "8"


def test_a_stop_is_seen_though_older_news_are_on_their_way(
    debugger: Debugger, table: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    released, answer, asked = threading.Event(), Table.logits, []

    def stuck(self: Table, *given: object) -> object:
        asked.append(given)
        if len(asked) > 3:
            released.wait()
        return answer(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "logits", stuck)
    page = late(debugger)
    try:
        debugger.run(form(table([ROW] * 8)), finish=False)
        debugger.wait("count", "3")
        page.evaluate("window.lateBy = 1000")
        with page.expect_request(asks_for_steps):
            pass
        page.get_by_role("button", name="■ Stop").click()
        debugger.wait("status", "stopped")
    finally:
        released.set()
    assert debugger.get("count") == "3"


def test_an_address_is_followed_however_late_its_run_is_shown(
    debugger: Debugger, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = events.choose

    def later(now: View | None, words: dict[str, Any]) -> View:
        time.sleep(4)
        return choose(now, words)

    monkeypatch.setattr(events, "choose", later)
    page, address = debugger.page, "#a=example:no-such-hour&step=2&pos=3"
    page.goto(f"{debugger.url}/{address}")
    expect(page.locator("[data-painted=yes]")).to_have_count(1)
    page.wait_for_timeout(500)  # what is shown meanwhile has come to rest, and is no place to come back to
    assert page.evaluate("location.hash") == address
    debugger.wait("painted", "yes")
    assert (debugger.get("run"), debugger.get("step"), debugger.get("position")) == ("example:no-such-hour", "2", "3")
