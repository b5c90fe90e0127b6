"""What a run's beliefs speak for, a wanted token allowed or a branch left out: the numbers against a run with the change."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest
from test_diagnosis_dynamic import one, run_of, typed

from engine.diagnosis import dynamic
from engine.trace import Trace

LETTERS = [*"abcd"]


def run(regex: str, rows: list[list[float]], **settings: object) -> Trace:
    return run_of(typed(LETTERS, rows), regex, **settings)


@pytest.mark.parametrize(
    ("regex", "rows", "wanted", "source"),
    [
        ("a[bc]", [[0.9, 0.05, 0.03, 0.02], [0.02, 0.05, 0.03, 0.9]], "d", "a(?:[bc]|d)"),
        ("ab|ca", [[0.1, 0.8, 0.05, 0.05], [0.4, 0.4, 0.1, 0.1]], "b", None),
        ("a[ab]c", [[0.9, 0.05, 0.03, 0.02], [0.1, 0.05, 0.8, 0.05], [0.1, 0.1, 0.7, 0.1]], "c", "a(?:[ab]|c)c"),
    ],
)
def test_c7_a_wanted_token_is_allowed_where_the_model_then_gives_the_constraint_more(
    regex: str, rows: list[list[float]], wanted: str, source: str | None
) -> None:
    before = run(regex, rows)
    finding = one(before, "belief")
    assert repr(wanted) in finding.message
    if source is None:  # two places may be written first: it isn't said beside which
        assert finding.remedies == ()
        return
    (remedy,) = finding.remedies
    assert remedy.changes == {"source": source}
    after = run(source, rows)
    listed = sum(
        math.prod(row[LETTERS.index(c)] for row, c in zip(rows, text, strict=True)) for text in texts(source, len(rows))
    )
    assert after.steps[0].log_partition == pytest.approx(math.log(listed), abs=1e-6)
    assert after.steps[0].log_partition > before.steps[0].log_partition + 0.5
    assert f"wanted {wanted!r}" not in one(after, "belief").message


def texts(regex: str, length: int) -> list[str]:
    found = [""]
    for _ in range(length):
        found = [text + c for text in found for c in LETTERS]
    return [text for text in found if re.fullmatch(regex, text)]


def test_a_token_that_wins_little_back_is_not_offered() -> None:
    assert one(run("a[bc]", [[0.97, 0.01, 0.01, 0.01], [0.1, 0.4, 0.3, 0.2]]), "belief").remedies == ()


def test_without_the_mean_field_of_the_step_nothing_is_offered() -> None:
    made = run("a[bc]", [[0.9, 0.05, 0.03, 0.02], [0.02, 0.05, 0.03, 0.9]])
    steps = tuple(dataclasses.replace(step, log_mean_field=None) for step in made.steps)
    assert one(dataclasses.replace(made, steps=steps), "belief").remedies == ()


@pytest.mark.parametrize("regex", ["aa|bb", "(aa|bb)", "(?:bb|aa)"])
def test_c10_the_branch_that_won_can_be_left_out_and_the_other_then_wins(regex: str) -> None:
    rows = [[0.5, 0.4, 0.05, 0.05]] * 2
    made = run(regex, rows, seed=3)
    (remedy,) = one(made, "branch").remedies
    source = str(dict(remedy.changes)["source"])
    again = run(source, rows, seed=3)
    assert {made.text, again.text} == {"aa", "bb"}
    assert not [finding for finding in dynamic.findings(again) if finding.code == "branch"]


def test_c10_a_branch_of_a_schema_is_left_out_as_an_item_of_its_list() -> None:
    from engine.diagnosis.widening import _left_out
    from engine.errors import Place

    source = '{"anyOf": [{"const": "a"}, {"const": "b"}]}'
    config = dataclasses.replace(
        run("aa", [[0.5, 0.4, 0.05, 0.05]] * 2).header.config, kind="json_schema", source=source
    )
    for number, left in ((0, '{"anyOf": [{"const": "b"}]}'), (1, '{"anyOf": [{"const": "a"}]}')):
        place = Place(source, 11, 12, f"/anyOf/{number}/const")
        assert _left_out(config, place) == [(f"Leave out /anyOf/{number}", left)]
