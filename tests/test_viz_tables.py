"""The pictures of results: the numbers are in them, at their places, and no label covers another."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from viz import tables

SVG = "{http://www.w3.org/2000/svg}"
ROWS = [
    {"arm": arm, "steps": steps, "right": right, "right_low": right - 0.1, "right_high": right + 0.1, "count": 200}
    for arm, rights in (("Mar", (0.5, 0.75, 0.9)), ("Mf", (0.4, 0.6, 0.9)), ("map", (0.4, 0.6, 0.89)))
    for steps, right in zip((1, 6, 24), rights, strict=True)
]


def drawn(rows=ROWS) -> ElementTree.Element:
    return ElementTree.fromstring(tables.chart(rows, "T < 1"))


def test_marks_stand_at_their_shares_within_their_intervals():
    top, bottom = (float(drawn().find(f".//{SVG}line[{n}]").get("y1")) for n in (5, 1))
    for group in drawn().findall(f"{SVG}g"):
        rows = sorted((r for r in ROWS if r["arm"] == group.get("data-arm")), key=lambda r: r["steps"])
        marks = [p for p in group if p.get("transform")]
        bars = [p for p in group if "V" in p.get("d")]
        for row, mark, bar in zip(rows, marks, bars, strict=True):
            y = float(re.search(r" ([\d.]+)\)", mark.get("transform"))[1])
            low, high = (float(v) for v in re.search(r" ([\d.]+)V([\d.]+)", bar.get("d")).groups())
            assert (bottom - y) / (bottom - top) == pytest.approx(row["right"], abs=0.002)
            assert (bottom - low) / (bottom - top) == pytest.approx(row["right_low"], abs=0.002)
            assert (bottom - high) / (bottom - top) == pytest.approx(row["right_high"], abs=0.002)
            assert f"{100 * row['right']:.1f} % right" in mark[0].text


def test_labels_stand_apart_and_inside_whatever_the_lines_do():
    for right in (0.0, 1.0):
        labels = drawn([{**r, "right": right, "right_low": 0.0, "right_high": 1.0} for r in ROWS])
        places = sorted(float(t.get("y")) for t in labels.findall(f"{SVG}text[@class='label']"))
        assert len(places) == 3
        assert all(b - a >= tables.LINE for a, b in itertools.pairwise(places))
        assert places[0] > 0
        assert places[-1] < tables.HEIGHT


def test_one_number_of_steps_can_be_drawn_and_a_title_is_text():
    assert drawn([r for r in ROWS if r["steps"] == 6]).find(f"{SVG}title").text == "T < 1"
