"""What the browser may ask about the lessons; public like `app.endpoints`, so a refusal is an answer here too."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from app import sessions
from app.endpoints import get_messages, message
from app.lessons import scenes, texts
from engine.errors import InputError
from viz import payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.lessons.scenes import Scene
    from app.lessons.texts import Lesson
    from app.sessions import Run

Answer = dict[str, Any]


def get_lessons(_asked: object = None) -> Answer:
    """Return what the lessons say, and the glossary."""
    return {"lessons": [dataclasses.asdict(lesson) for lesson in texts.lessons()], "glossary": texts.glossary()}


def get_scene(asked: object) -> Answer:
    """Return what `lesson` shows for its `controls`: runs with all that draws them, and the numbers of its text."""
    words = asked if isinstance(asked, dict) else {}
    lesson = next((lesson for lesson in texts.lessons() if lesson.name == words.get("lesson")), None)
    if lesson is None:
        return {"error": "no such lesson"}
    given = words.get("controls")
    controls = {**lesson.settings, **(given if isinstance(given, dict) else {})}
    try:
        scene = scenes.SCENES[lesson.scene](controls)
    except InputError as error:
        return {"error": "mistake", **message(error)}
    found = [run for run_id in scene.runs if (run := sessions.find(run_id)) and len(run.steps) <= 4]
    # The graph of a constraint that was just typed takes longer than all else, and follows when it is asked for.
    typed = controls.get("source") != lesson.settings.get("source")
    runs = {run.run_id: _parts(run, "weights" in lesson.panels, not typed) for run in found}
    numbers = {name: _plain(value) for name, value in scene.numbers.items()}
    shown = {"runs": list(scene.runs), "parts": runs, "at": dict(scene.at), "said": scene.said}
    if scene.check:
        shown["check"] = dict(scene.check)
    return {**shown, "numbers": numbers, "bet": _of_bet(lesson)}


def _of_bet(lesson: Lesson) -> Answer:
    """Return the numbers at the settings that the bet asks about."""
    found = _scene_of_bet(lesson.name)
    return {name: _plain(value) for name, value in found.numbers.items()}


@lru_cache
def _scene_of_bet(name: str) -> Scene:
    lesson = next(lesson for lesson in texts.lessons() if lesson.name == name)
    return scenes.SCENES[lesson.scene](lesson.bet_settings)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parts(run: Run, messages: bool, window: bool) -> Answer:
    """Return what the page asks for one by one when it opens a run that it doesn't know to be small."""
    steps = run.steps[:]
    parts: Answer = {
        "head": {**payload.header(run.header), "run": run.run_id, "status": run.status},
        "steps": {"status": run.status, "more": False, **payload.steps(run.header, steps, 0)},
        "detail": payload.detail(run.header, steps, 0),
    }
    if messages:
        parts["messages"] = get_messages({"run": run.run_id})
    if window:
        parts["window"] = payload.window(run.header)
    return parts


SERVER_FUNCTIONS: tuple[Callable[..., Answer], ...] = (get_lessons, get_scene)
