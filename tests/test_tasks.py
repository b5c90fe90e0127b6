"""The example tasks: their right answers are in their constraints, and can be written on their canvases."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine import constraints, token_automaton
from engine.models import embedded
from engine.tasks import TASKS
from engine.training import puzzles
from engine.training.words import REAL, split_of

ANSWERS = {
    "call-json": '{"name": "book_tunnel", "arguments": {"order": "sam", "week": "ada"}}',
    "call-schema": '{"name":"book_tower","arguments":{"member":"ruth","street":"tokyo"}}',
    "call-python": 'send_tunnel(week=48, castle="harbor tower")',
    "call-command": "move_shirt --tower martin --order 7",
    "choose-call": "order_shirt --street quito",
    "sudoku-slashes": "1342/4213/2134/3421",
    "sudoku-rows": "4123 3214 1432 2341",
    "countdown": "12 + 6 + 12 = 30",
    "date-iso": "1993-02-23",
    "address-url": "http://28.235.250.93:80",
    "phone": "(890) 405-3665",
    "colour-rgb": "rgb(85, 17, 255)",
    "email-link": "mailto:hana@castle.org",
    "sql": "select member, author from castle where street = 'harbor';",
}
BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture(scope="module")
def denoiser():
    return embedded.load()


def test_every_task_has_an_answer_here_and_a_name_of_its_own():
    assert sorted(ANSWERS) == sorted(task.name for task in TASKS)
    assert len(BY_NAME) >= 8


@pytest.mark.parametrize("name", ANSWERS)
def test_the_right_answer_is_in_the_language_and_fits_the_canvas(name, denoiser):
    task, answer = BY_NAME[name], ANSWERS[name]
    constraint = constraints.read(task.kind, task.source)
    if task.kind == "regex":
        assert re.fullmatch(task.source, answer)
    assert constraint.accepts(answer)
    assert task.length % task.steps == 0, "the steps commit equally many positions"
    ids = denoiser.encode(answer).tolist()
    assert len(ids) < task.length
    automaton = token_automaton.compile(constraint, denoiser.vocabulary)
    canvas = ids + [denoiser.vocabulary.eos_ids[0]] * (task.length - len(ids))
    assert automaton.accepts(canvas)


def test_names_and_values_of_the_requests_were_held_out_of_training():
    # Words of the request's form, which every prompt of the corpus shares.
    form = {"book", "find", "send", "open", "move", "order", "please", "as", "and", "with", "the", "tools"}
    form |= {"sudoku", "make", "countdown", "from", "date", "february", "host", "port", "phone", "mail", "at", "dot"}
    form |= {"colour", "red", "green", "blue", "of", "whose", "is", "show"}
    for task in TASKS:
        words = {word.lower() for word in re.findall("[A-Za-z]+", task.prompt)} - form - {"org"}
        assert all(split_of(word) == "held_out" for word in words), (task.name, words)
        assert words <= set(REAL)


def test_sudoku_answers_are_held_out_grids_that_complete_their_clues():
    for name in ("sudoku-slashes", "sudoku-rows"):
        grid = re.sub("[^1-4]", "", ANSWERS[name])
        puzzle = re.sub("[^0-4]", "", BY_NAME[name].prompt)
        assert [g for g in puzzles.SUDOKU_GRIDS if puzzles.fits(puzzle, g)] == [grid]


def test_the_list_of_tasks_needs_no_model_library():
    code = "import sys, engine.tasks; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    root = Path(__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
