"""Moving through steps in a real browser: `python -m benchmarks.page [--quick] [--json]`.

A run of 256 positions and 256 steps is recorded from a typed-in mean field and opened on the page. An arrow key is then
timed from the input event to two frames later, when every panel shows the new step, against a key that nothing handles.
So it is with a run over some 20,000 states.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from playwright.sync_api import Page, sync_playwright

from app import page as app_page
from benchmarks.timing import Ratio, as_json, report
from engine import decode, preparation, trace_file
from engine.trace import Config, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

CHROMIUM_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TOKENS = [*"abcdefghijklmnopqrstuvwxyz_ ", *'{}":,']
CALL = (
    r'\{"name": "book_flight", "arguments": '
    r'\{"origin": "[a-z ]+", "destination": "[a-z ]+", "remarks": "[a-z ]*"\}\}'
)
PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]
MANY_STEPS = 96
"""Positions and steps of the run over 20,000 states."""
PRESSES = 20
"""Keys a block; between blocks the page comes to rest."""

WATCH = """
() => {
  window.paints = [];
  document.addEventListener('keydown', event => {
    const begin = event.timeStamp;
    requestAnimationFrame(() => requestAnimationFrame(() => window.paints.push(
      [performance.now() - begin, +document.querySelector('[data-ready]').dataset.step])));
  }, {capture: true});
}
"""


OPENED = """
length => {
  window.opened = 0;
  const begin = () => { window.began = performance.now(); };
  document.addEventListener('change', begin, {capture: true, once: true});
  const look = () => {
    const {count, painted} = document.querySelector('[data-ready]').dataset;
    if (+count === length && painted) window.opened = performance.now() - window.began;
    else requestAnimationFrame(look);
  };
  look();
}
"""
OPEN_MS = 1000.0
"""Until a trace of the full size is shown, from the choice of its file."""
HEAP_MIB = 2.0
"""Growth of the heap over 1,000 keys that is noise."""
SCRUBS = 1_000


def objects(count: int, longest: int) -> str:
    """Return a JSON Schema of so many objects, each with a text of at most `longest` characters: 20,000 states."""
    text, whole = {"type": "string", "maxLength": longest}, {"type": "integer"}
    inner = {"name": text, "count": whole, "tag": {"enum": ["alpha", "beta", "gamma"]}}
    field = {"type": "object", "properties": inner, "required": list(inner), "additionalProperties": False}
    fields = {f"field_{n}": field for n in range(count)}
    return json.dumps({"type": "object", "properties": fields, "required": ["field_0"], "additionalProperties": False})


def record(length: int, folder: Path, kind: str = "regex", source: str = CALL, tokens: Sequence[str] = TOKENS) -> Trace:
    """Record a run of `length` positions, one of which is committed a step, with the real engine."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0.0, 2.0, (length, len(tokens)))
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    file = folder / "table.json"
    file.write_text(json.dumps({"tokens": list(tokens), "eos": None, "mean_field": rows.tolist()}))
    config = Config(
        prompt="",
        kind=kind,
        source=source,
        model=f"table:{file}",
        length=length,
        steps=length,
        block_length=length,
        temperature=1.0,
    )
    denoiser, header = preparation.prepare(config)
    return Trace(header, tuple(decode.denoise(denoiser, header.automaton, header.config)))


def open_run(page: Page, url: str, file: Path, length: int) -> float:
    """Open the page, upload the trace, and wait until all of it is in the browser; return the ms until it is shown."""
    page.goto(url)
    page.wait_for_selector("[data-ready][data-detail=here]", state="attached")
    page.wait_for_timeout(8000)  # the server loads what first runs and lessons need while its page is read
    page.evaluate(OPENED, length)
    page.set_input_files("#open input[type=file], input[type=file]", file)
    page.wait_for_function("window.opened", polling="raf")
    took = float(page.evaluate("window.opened"))
    page.wait_for_selector(f'[data-ready][data-count="{length}"][data-detail="here"]', state="attached")
    come_to_rest(page)
    page.evaluate(WATCH)
    return took


def come_to_rest(page: Page) -> None:
    """Go to the first step, and wait until nothing more is fetched."""
    page.wait_for_timeout(3000)  # what is fetched in the background must not compete with the keys
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("Home")
    page.wait_for_selector('[data-ready][data-step="0"]', state="attached")


def open_beside(page: Page) -> None:
    """Show the run that is shown beside itself, as a second one."""
    page.evaluate("""() => {
      const [a, b] = document.querySelectorAll('.ds-pick');
      b.value = a.value;
      b.dispatchEvent(new Event('change'));
    }""")
    page.wait_for_selector('.ds-text[data-side="b"]', state="attached")
    come_to_rest(page)


def heap_growth(page: Page, keys: int) -> float:
    """Return by how many MiB the page's heap has grown after so many keys there and back, garbage collected."""
    session = page.context.new_cdp_session(page)

    def used() -> float:
        session.send("HeapProfiler.collectGarbage")
        return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 2**20

    def scrub(times: int) -> None:
        for _ in range(times // (2 * PRESSES)):
            for key in ("ArrowRight", "ArrowLeft"):
                for _ in range(PRESSES):
                    page.keyboard.press(key)
        page.wait_for_timeout(500)

    scrub(4 * PRESSES)  # what is built once is there before
    before = used()
    scrub(keys)
    return used() - before


def block(page: Page, key: str) -> list[tuple[float, int]]:
    """Press a key some times, each as soon as the one before is painted: `(ms, step shown)` of each."""
    page.wait_for_timeout(500)
    page.evaluate("() => { window.paints.length = 0; }")
    for n in range(PRESSES):
        page.keyboard.press(key)
        page.wait_for_function("n => window.paints.length > n", arg=n, polling="raf")
    return [(float(ms), int(step)) for ms, step in page.evaluate("window.paints")]


def measure(page: Page, blocks: int) -> tuple[list[float], list[float]]:
    """Time blocks of the arrow key and of a key without a handler in turns.

    Raises:
        RuntimeError: a frame was counted as painted that didn't show its step.
    """
    moved, idle = [], []
    step = 0
    for _ in range(blocks):
        for ms, shown in block(page, "ArrowRight"):
            step += 1
            if shown != step:
                raise RuntimeError(f"Two frames after the key the page shows step {shown}, not {step}.")
            moved.append(ms)
        idle += [ms for ms, _ in block(page, "q")]
    return moved, idle


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option(help="A shorter run, fewer keys.")] = False,
    as_json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time an arrow key, from input to painted, against a key that does nothing, in one session."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("There is no chromium on the PATH. Install your system's Chromium package.", file=sys.stderr)
        raise typer.Exit(2)
    length, blocks = (96, 3) if quick else (256, 12)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        recorded = record(length, Path(folder))
        file = Path(folder) / "run.trace"
        trace_file.save(recorded, file)
        _, url, _ = app_page.serve(server_port=None, prevent_thread_lock=True, quiet=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        opened = open_run(page, url, file, length)
        moved, idle = measure(page, blocks)
        growth = heap_growth(page, SCRUBS // 10 if quick else SCRUBS)
        page.keyboard.press("Home")
        open_beside(page)
        beside, _ = measure(page, blocks)
        wide = record(MANY_STEPS, Path(folder), "json_schema", objects(10, 120), PRINTABLE)
        trace_file.save(wide, file)
        open_run(page, url, file, MANY_STEPS)
        page.wait_for_selector('.ds-automaton .ds-graph[data-level="groups"]', state="attached")
        many, beside_many = measure(page, min(blocks, MANY_STEPS // PRESSES - 1))
        browser.close()
        app_page.gr.close_all(verbose=False)
    facts = {"length": length, "steps": length, "states": recorded.header.automaton.states, "keys": len(moved)}
    one, nothing, two = statistics.median(moved), statistics.median(idle), statistics.median(beside)
    ratios = [
        Ratio(
            "scrub",
            "arrow key to painted, every panel on the new step",
            one,
            "a key without a handler",
            nothing,
            1.3,
            facts,
        ),
        Ratio("beside", "arrow key to painted, two runs side by side", two, "one run", one, 1.5, facts),
        Ratio(
            "scrub_states",
            "arrow key to painted, many states",
            statistics.median(many),
            "a key without a handler",
            statistics.median(beside_many),
            1.3,
            {"length": MANY_STEPS, "steps": MANY_STEPS, "states": wide.header.automaton.states, "keys": len(many)},
        ),
        Ratio("open", "a trace opened, from its file to painted", opened, "one second", OPEN_MS, 1.0, facts),
    ]
    command = "python -m benchmarks.page" + (" --quick" if quick else "")
    if as_json_object:
        print(json.dumps({**as_json(ratios, command), "heap_growth_mib": growth}))
        return
    report(ratios, command)
    quantiles = [float(np.quantile(taken, 0.95)) for taken in (moved, idle, beside, many)]
    said = "95th percentiles: {:.1f} ms against {:.1f} ms; {:.1f} ms with two runs, {:.1f} ms with many states"
    print(said.format(*quantiles))
    held = "holds" if growth <= HEAP_MIB else "missed"
    print(f"Heap after {SCRUBS // 10 if quick else SCRUBS} keys: {growth:+.2f} MiB, {HEAP_MIB} MiB are noise: {held}")


if __name__ == "__main__":
    app()
