"""What the browser may ask for. Each function takes one dictionary from anyone at all and answers with one.

These are public endpoints: whatever comes in is checked, and a refusal is an answer, not an exception.
"""

from __future__ import annotations

import dataclasses
import re
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from app import examples, sessions
from engine import breakpoints, comparison
from engine.errors import EmptyLanguageError, InputError
from engine.trace import Trace
from viz import automaton, cells, payload, reasons

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.sessions import Run
    from engine.trace import StepRecord

Answer = dict[str, Any]
STEPS_AT_ONCE = 256
DRAWS = 1_000
"""Draws that a step's sampler is measured with, fewer where those would take longer than `MEASURED_MS`."""
MEASURED_MS = 20_000.0
SMALL_LENGTH, SMALL_STATES, SMALL_STEPS = 16, 10, 32
"""Runs up to this size are shown with all arrows of their trellis."""
MOST_SEEDS = 100
LONGEST_PATH = 64
"""Characters that name a group of states."""
_measuring = threading.Lock()


def _answer(asked: object, build: Callable[[Run, dict[str, Any]], Answer]) -> Answer:
    words = asked if isinstance(asked, dict) else {}
    found = sessions.find(words.get("run"))
    return build(found, words) if found else {"error": "gone"}


def _number(words: dict[str, Any], name: str, limit: int) -> int:
    value = words.get(name)
    return min(max(value, 0), limit) if isinstance(value, int) else 0


def get_gallery(_asked: object = None) -> Answer:
    """Return the cards of the gallery."""
    return {
        "cards": [
            {"name": e.name, "title": e.title, "what": e.what, "failure": e.failure, "runs": list(e.run_ids)}
            for e in examples.gallery()
        ]
    }


def get_run(asked: object) -> Answer:
    """Return the header of `run`."""
    return _answer(
        asked,
        lambda run, _: {**payload.header(run.header), "run": run.run_id, "status": run.status},
    )


def get_steps(asked: object) -> Answer:
    """Return the quantities of the steps of `run` from number `first` on, as many as are there."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        status, steps = run.status, run.steps[:]  # in this order: no step follows the last status
        first = _number(words, "first", len(steps))
        records = steps[first : first + STEPS_AT_ONCE]
        more = first + len(records) < len(steps)
        answer = {"status": status, "more": more, "first": first, "count": 0}
        return {**answer, **payload.steps(run.header, records, first)} if records else answer

    return _answer(asked, build)


def get_detail(asked: object) -> Answer:
    """Return the distributions of `count` steps of `run` from number `first` on."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        first = _number(words, "first", len(run.steps))
        records = run.steps[first : first + max(1, _number(words, "count", STEPS_AT_ONCE))]
        return payload.detail(run.header, records, first) if records else {"error": "no such step"}

    return _answer(asked, build)


def get_window(asked: object) -> Answer:
    """Return a picture of the automaton of `run`, laid out: of a `group`, around a `state`, or of a small one all."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        state, group = words.get("state"), words.get("group")
        last = run.header.automaton.states - 1
        if isinstance(state, int):
            farthest = max(1, _number(words, "farthest", automaton.FARTHEST))
            return payload.window(run.header, state=_number(words, "state", last), farthest=farthest)
        path = group[:LONGEST_PATH].split(".") if isinstance(group, str) else []
        return payload.window(run.header, [int(part) for part in path if re.fullmatch("[0-9]{1,2}", part)])

    return _answer(asked, build)


def get_hits(asked: object) -> Answer:
    """Return where a breakpoint's `text` holds in `run`: every hit, as step and position, -1 for the whole step."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        text = words.get("text")
        try:
            breakpoint = breakpoints.parse(text if isinstance(text, str) else "")
        except InputError as error:
            return {"error": "mistake", **message(error)}
        found = breakpoints.hits(breakpoint, run.trace)
        return {
            "hits": [[hit.step, -1 if hit.position is None else hit.position] for hit in found],
            "count": len(run.steps),
        }

    return _answer(asked, build)


def get_comparison(asked: object) -> Answer:
    """Return what differs between `run` and `other`: settings, order, first divergence, outcomes."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        other = sessions.find(words.get("other"))
        if other is None:
            return {"error": "gone"}
        try:
            found = comparison.compare(run.trace, other.trace)
        except InputError as error:
            return {"error": "mistake", **message(error)}
        answer: Answer = payload.plain(
            {
                "changed": {name: list(pair) for name, pair in found.changed.items()},
                "shared_noise": found.shared_noise,
                "tau": found.tau,
                "commit_steps": found.commit_steps.tolist(),
                "divergence": dataclasses.asdict(found.divergence) if found.divergence else None,
                "different": list(found.different_positions),
                "outcomes": [dataclasses.asdict(outcome) for outcome in found.outcomes],
            }
        )
        return answer

    return _answer(asked, build)


def get_seeds(asked: object) -> Answer:
    """Return what came of `run`'s configuration with the seeds 0 … `count` − 1, and the share that was accepted."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        count = _number(words, "count", MOST_SEEDS)
        try:
            with _measuring:  # one at a time: it keeps a core busy
                while len(run.outcomes) < count:
                    run.outcomes.append(_outcome(run, len(run.outcomes)))
        except InputError as error:
            return {"error": "mistake", **message(error)}
        found = run.outcomes[:count]
        accepted = sum(outcome["accepted"] for outcome in found)
        return {"outcomes": found, "share": dataclasses.asdict(comparison.wilson(accepted, len(found)))}

    return _answer(asked, build)


def _outcome(run: Run, seed: int) -> Answer:
    """Run a configuration once more with another seed; one that comes to where nothing is accepted has failed."""
    # They bring torch and compiled loops, which the page does not need to open.
    from app import loading
    from engine import decode

    denoiser = loading.load(run.header.config.model)
    config = dataclasses.replace(run.header.config, seed=seed)
    steps: list[StepRecord] = []
    try:
        steps.extend(decode.denoise(denoiser, run.header.automaton, config))
    except EmptyLanguageError:
        return {"seed": seed, "accepted": False, "text": ""}
    made = Trace(dataclasses.replace(run.header, config=config), tuple(steps))
    return {"seed": seed, "accepted": made.accepted, "text": made.text[:200]}


def get_findings(asked: object) -> Answer:
    """Return what the diagnosis of `run` finds."""

    def build(run: Run, _: dict[str, Any]) -> Answer:
        # It brings compiled loops, which the page does not need to open.
        from engine.diagnosis import dynamic

        try:
            return {"findings": [payload.plain(finding.plain()) for finding in dynamic.findings(run.trace)]}
        except InputError as error:
            return {"error": "mistake", **message(error)}

    return _answer(asked, build)


def get_fronts(asked: object) -> Answer:
    """Return, for `step` of `run`, which states the start reaches and which reach acceptance, at every boundary."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        from engine.diagnosis import conflict

        if not run.steps:
            return {"error": "no such step"}
        canvas = run.steps[_number(words, "step", len(run.steps) - 1)].canvas
        forward, backward = conflict.fronts(
            conflict.canvas_of(run.header.automaton, canvas, run.header.vocabulary.mask_id)
        )
        bits = {"forward": np.packbits(forward, axis=1), "backward": np.packbits(backward, axis=1)}
        return payload.pack(bits, {})

    return _answer(asked, build)


def get_reasons(asked: object) -> Answer:
    """Return why `token` may stand at `position` in `step` of `run`, or what stands against it."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        # It brings compiled loops, which the page does not need to open.
        from engine.diagnosis import tokens

        if not run.steps:
            return {"error": "no such step"}
        step = _number(words, "step", len(run.steps) - 1)
        position = _number(words, "position", run.header.config.length - 1)
        token = _number(words, "token", run.header.vocabulary.size - 1)
        return reasons.plain(run.header, token, tokens.of_step(run.trace, step, position, token))

    return _answer(asked, build)


def get_cell(asked: object) -> Answer:
    """Return the messages of `state` at `boundary` in `step` of `run`, and the terms that they add up."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        # It brings compiled loops, which the page does not need to open.
        from engine.diagnosis import beliefs
        from engine.diagnosis import cells as arithmetic

        if not run.steps:
            return {"error": "no such step"}
        believed = beliefs.of_step(run.trace, run.steps[_number(words, "step", len(run.steps) - 1)])
        boundary = _number(words, "boundary", run.header.config.length)
        state = _number(words, "state", run.header.automaton.states - 1)
        return cells.plain(run.header, arithmetic.of_state(believed, boundary, state))

    return _answer(asked, build)


def get_messages(asked: object) -> Answer:
    """Return, for a small `run`, the arrows of the trellis, and at each step their weights and the messages."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        # It brings compiled loops, which the page does not need to open.
        from engine.diagnosis import beliefs

        config, automaton = run.header.config, run.header.automaton
        if config.length > SMALL_LENGTH or automaton.states > SMALL_STATES or config.steps > SMALL_STEPS:
            return {"error": "too large"}
        label = automaton.edges.label
        # All steps at once, so that moving through them asks nothing.
        found = [beliefs.of_step(run.trace, record) for record in run.steps]
        steps = [
            {
                "weight": np.exp(step.log_label_mass[:, label]).tolist(),
                "forward": np.exp(step.fronts[0]).tolist(),
                "backward": np.exp(step.fronts[1]).tolist(),
                "posterior": step.posterior.tolist(),
            }
            for step in found
        ]
        answer: Answer = payload.plain({"edges": payload.arrows(run.header), "steps": steps})
        return answer

    return _answer(asked, build)


def get_exactness(asked: object) -> Answer:
    """Return the frequencies of many draws of `step` of `run` by its own sampler beside the exact marginals."""

    def build(run: Run, words: dict[str, Any]) -> Answer:
        # It brings compiled loops, which the page does not need to open.
        from engine.inference import exactness

        if not run.steps:
            return {"error": "no such step"}
        record = run.steps[_number(words, "step", len(run.steps) - 1)]
        sampler = run.header.config.sampler
        # One by one, a draw costs about what the step did.
        affordable = int(MEASURED_MS / max(float(record.engine_ms), 1e-3))
        count = DRAWS if sampler == "chain" else min(max(affordable, 20), DRAWS)
        with _measuring:  # one at a time: it keeps a core busy
            try:
                return payload.exactness(run.header, exactness.of_step(run.header, record, sampler, count))
            except InputError as error:
                return {"error": "mistake", **message(error)}

    return _answer(asked, build)


def get_words(_asked: object = None) -> Answer:
    """Return the names that a breakpoint may use: name, `number`, `text` or `flag`, meaning."""
    numbers = {**breakpoints.POSITION_NUMBERS, **breakpoints.STEP_NUMBERS}
    kinds = {
        name: "number" if name in numbers else "text" if name in ("token", "origin") else "flag"
        for name in breakpoints.WORDS
    }
    return {"words": [[name, kinds[name], what] for name, what in breakpoints.WORDS.items()]}


def message(error: InputError) -> dict[str, Any]:
    """Return a mistake as the page shows it: what is wrong, where, what to do."""
    place = error.place
    return {
        "problem": error.problem,
        "remedy": error.remedy,
        "frame": place.frame() if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "positions": list(getattr(error, "positions", ())),
    }


SERVER_FUNCTIONS: tuple[Callable[..., Answer], ...] = (
    get_gallery,
    get_run,
    get_steps,
    get_detail,
    get_window,
    get_hits,
    get_comparison,
    get_seeds,
    get_words,
    get_findings,
    get_fronts,
    get_reasons,
    get_cell,
    get_messages,
    get_exactness,
)
