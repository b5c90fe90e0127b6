"""Plotly figures, tested by reading the numbers back out of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine.trace import Trace
from engine.vocabulary import Vocabulary
from tests.test_trace import recorded
from viz import figures


@pytest.fixture(scope="module")
def trace() -> Trace:
    return recorded()


@pytest.mark.parametrize("quantity", figures.QUANTITIES)
def test_the_loom_shows_each_number_where_it_was_recorded(trace: Trace, quantity: str) -> None:
    heatmap, commits = figures.loom(trace, quantity).data
    shown = np.asarray(heatmap.z, float)
    for t, step in enumerate(trace.steps):
        expected = np.asarray(getattr(step, quantity), float)
        np.testing.assert_array_equal(shown[t], np.where(np.isfinite(expected), expected, np.nan))
    marks = set(zip(commits.y, commits.x, strict=True))
    assert marks == {(t, i) for t, step in enumerate(trace.steps) for i in np.flatnonzero(step.committed)}
    assert len(marks) == 5  # six positions, one pinned


def test_log_partitions_of_runs_are_drawn_beside_each_other_and_impossible_is_a_gap(trace: Trace) -> None:
    dead = dataclasses.replace(trace.steps[-1], log_partition=np.asarray(-np.inf))
    other = Trace(trace.header, (*trace.steps[:-1], dead))
    first, second = figures.log_partition(trace, other).data
    np.testing.assert_array_equal(first.y, trace.column("log_partition"))
    assert np.isnan(second.y[-1])


def test_a_position_shows_both_probabilities_of_each_token(trace: Trace) -> None:
    figure = figures.position(trace, 0, 2)
    q, p = (np.asarray(points.x, float) for points in figure.data)
    record = trace.steps[0]
    assert q[0] == pytest.approx(np.exp(record.top_log_posterior[2, 1, 0]))
    assert q.sum() == pytest.approx(1.0, abs=1e-5)
    # The shown part of p is everything but the dead ids, which these twelve rows hold as well.
    assert p.sum() == pytest.approx(1.0, abs=1e-5)


def test_hostile_tokens_are_text(trace: Trace) -> None:
    hostile = (b"<b>x</b>", b"&amp;", b"<img src=x onerror=alert(1)>", *trace.header.vocabulary.token_bytes[3:])
    vocabulary = Vocabulary(hostile, trace.header.vocabulary.eos_ids, trace.header.vocabulary.mask_id)
    changed = Trace(dataclasses.replace(trace.header, vocabulary=vocabulary), trace.steps)
    texts = figures.position(changed, 0, 2).layout.yaxis.ticktext
    assert "&lt;b&gt;x&lt;/b&gt;" in texts
    assert "&amp;amp;" in texts
    assert not any("<" in text for text in texts)
