"""The lessons in a real browser: `python -m benchmarks.lessons [--quick] [--json]`.

Each step is opened by a click on its number, on a page that has not shown it before, and timed from the click to the
first frame with everything that it shows: words, numbers, and each panel for this run. Then each of its controls is
moved, and timed the same way to the frame that shows what it was moved to. The graph of a constraint that was just
typed follows by itself and is not waited for.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.table import Table

from app import page as app_page
from app.lessons import texts
from benchmarks.page import CHROMIUM_ARGUMENTS
from benchmarks.timing import machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.lessons.texts import Lesson

STEP_MS = 300.0
"""Until a step is ready, from the click."""
CONTROL_MS = 50.0
"""Until a control has done what it does."""
REST_MS = 600
"""Between two measurements; what is measured behind a lesson, a thousand draws, begins and ends in it."""
TYPED = {"3.": "3.1", "[0-9]{4}-[0-9]{2}-[0-9]{2}": "[0-9]{4}-[0-9]{4}", "[0-9]{2}h[0-9]{2}": "[0-9]{2}:[0-9]{2}"}
"""What is typed over what a text control has."""

WATCH = """
() => {
  const visible = name => document.querySelector(`.ds-${name}:not(.ds-off):not([hidden])`);
  const drawn = name => !visible(name) || visible(name).querySelector('svg');
  const whole = (root, typed) => root.dataset.readyFor && (typed || drawn('automaton')) && drawn('weights');
  const painted = then => requestAnimationFrame(() => {
    const {port1, port2} = new MessageChannel();
    port1.onmessage = then;
    port2.postMessage(0);
  });
  // Acts, and resolves with the ms until the first frame in which the lesson is whole again.
  const timed = (act, typed, name) => new Promise(done => {
    const root = document.querySelector('.ds.learning'), begin = performance.now();
    const observer = new MutationObserver(() => {
      if (!whole(root, typed) || (name && root.dataset.readyFor !== name)) return;
      observer.disconnect();
      painted(() => done(performance.now() - begin));
    });
    act();
    observer.observe(root, {attributes: true, childList: true, subtree: true});
  });
  window.openStep = name => {
    const link = [...document.querySelectorAll('.ds-lesson-steps a')].find(a => a.textContent === name);
    return timed(() => link.click(), false, name);
  };
  window.move = (name, value) => {
    const field = document.querySelector(`#ds-control-${name}`);
    if (!field) {
      const radio = document.querySelector(`[name="ds-control-${name}"][value="${value}"]`);
      return timed(() => radio.click(), false);
    }
    return timed(() => { field.value = value; field.dispatchEvent(new Event('input')); }, field.type !== 'range');
  };
}
"""


def moves(control: Mapping[str, Any]) -> list[str]:
    """Return what a control is moved to and back again."""
    value = control["value"]
    if control["kind"] == "choice":
        other = [key for key, _ in control["options"] if key != value]
        return [str(other[0]), str(value)]
    if control["kind"] == "slider":
        return [str(value + control["step"] * (1 if value < control["high"] else -1)), str(value)]
    return [TYPED.get(value, f"{value}\n0.1,0.1,0.8" if "\n" in value else f"({value})"), value]


def measure(page: Page, url: str, rounds: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the ms of each step, by lesson, and of each move of a control, by lesson and control."""
    steps: dict[str, list[float]] = {lesson.name: [] for lesson in texts.lessons()}
    controls: dict[str, list[float]] = {}
    for _ in range(rounds):
        page.goto("about:blank")
        page.goto(f"{url}/#lesson=glossary")
        page.wait_for_selector(".ds-words")
        page.evaluate(WATCH)
        page.wait_for_timeout(2 * REST_MS)
        for lesson in texts.lessons():
            steps[lesson.name].append(float(page.evaluate("name => window.openStep(name)", lesson.name)))
            page.wait_for_timeout(REST_MS)
            for control, value in _all_moves(lesson):
                took = page.evaluate("([name, value]) => window.move(name, value)", [control, value])
                controls.setdefault(f"{lesson.name}: {control}", []).append(float(took))
                page.wait_for_timeout(REST_MS)
    return steps, controls


def _all_moves(lesson: Lesson) -> list[tuple[str, str]]:
    return [(control["name"], value) for control in lesson.controls for value in moves(control)]


def rows(taken: dict[str, list[float]], bar: float) -> list[dict[str, Any]]:
    """Return what each came to: least and median ms, and whether the median is within the bar."""
    return [
        {"name": name, "least_ms": min(ms), "median_ms": statistics.median(ms), "bar_ms": bar}
        | {"holds": statistics.median(ms) <= bar}
        for name, ms in taken.items()
    ]


def report(found: list[dict[str, Any]], command: str) -> None:
    """Print a table for people."""
    facts = machine()
    table = Table(title=f"{command}\n{facts['cpu']}, {facts['cores']} cores")
    for column in ("step, or step: control", "least ms", "median ms", "bar", ""):
        table.add_column(column, justify="left" if column.startswith("step") else "right")
    for row in found:
        verdict = "holds" if row["holds"] else "missed"
        table.add_row(row["name"], f"{row['least_ms']:.0f}", f"{row['median_ms']:.0f}", f"{row['bar_ms']:.0f}", verdict)
    Console().print(table)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option(help="Two rounds in place of nine.")] = False,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time each step of the lessons from click to painted, and each of its controls."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("There is no chromium on the PATH. Install your system's Chromium package.", file=sys.stderr)
        raise typer.Exit(2)
    app_page.warm()
    with sync_playwright() as playwright:
        _, url, _ = app_page.serve(server_port=None, prevent_thread_lock=True, quiet=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        steps, controls = measure(page, url.rstrip("/"), 2 if quick else 9)
        browser.close()
        app_page.gr.close_all(verbose=False)
    found = [*rows(steps, STEP_MS), *rows(controls, CONTROL_MS)]
    command = "python -m benchmarks.lessons" + (" --quick" if quick else "")
    if as_json_object:
        print(json.dumps({"command": command, "machine": machine(), "lessons": found}))
    else:
        report(found, command)


if __name__ == "__main__":
    app()
