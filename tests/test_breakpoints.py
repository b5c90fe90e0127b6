"""Breakpoints: each name means what the record says; a mistake is shown where it is; a run in progress stops and goes on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import synthetic

from engine import breakpoints, decode, token_automaton
from engine.breakpoints import Hit
from engine.constraints import read
from engine.errors import BreakpointError
from engine.trace import Config, Header, Trace
from tests import test_debugger
from tests.test_debugger import LETTERS, MODEL

RUN = synthetic.trace(synthetic.real_number(), 12, 9, seed=4)
LOST = next(run for seed in range(50) if not (run := test_debugger.record(sampler="independent", seed=seed)).accepted)
MASK = RUN.header.vocabulary.mask_id


def found(text: str, run: Trace = RUN) -> list[tuple[int, int | None]]:
    return [(hit.step, hit.position) for hit in breakpoints.hits(breakpoints.parse(text), run)]


def expected(test, run: Trace = RUN) -> list[tuple[int, int]]:
    mask = run.header.vocabulary.mask_id
    return [
        (t, i)
        for t, s in enumerate(run.steps)
        for i in range(run.header.config.length)
        if s.canvas[i] == mask and test(t, s, i)
    ]


VOCABULARY = RUN.header.vocabulary


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("kl > 0.5", lambda t, s, i: s.kl[i] > 0.5),
        ("confidence < .2", lambda t, s, i: s.confidence_mar[i] < 0.2),
        ("mf >= 2e-1", lambda t, s, i: s.confidence_mf[i] >= 0.2),
        ("mar<=0.3", lambda t, s, i: s.confidence_mar[i] <= 0.3),
        ("entropy_posterior < 1 and entropy_mean_field > 1", lambda t, s, i: s.entropy_posterior[i] < 1 < s.entropy_mean_field[i]),
        ("forbidden_mass > 0.1", lambda t, s, i: s.forbidden_mass[i] > 0.1),
        ("Mar < 0.3 and KL > 0.1 and position == 3", lambda t, s, i: s.confidence_mar[i] < 0.3 and s.kl[i] > 0.1 and i == 3),
        ('token == "."', lambda t, s, i: s.drawn[i] == 10),
        ("token in {'1', \"2\"}", lambda t, s, i: s.drawn[i] in (1, 2)),
        ('token != "7"', lambda t, s, i: s.drawn[i] != 7),
        ("state == 3", lambda t, s, i: s.path[i] == 3),
        ("state in {1, 3} and position != 4", lambda t, s, i: s.path[i] in (1, 3) and i != 4),
        ("commit", lambda t, s, i: s.committed[i]),
        ("disagree", lambda t, s, i: s.committed_mf[i] != s.committed_mar[i]),
        ("flip", lambda t, s, i: s.top_ids[i, 0, 0] != s.top_ids[i, 1, 0]),
        ("forced", lambda t, s, i: np.isfinite(s.log_lift[i]) @ np.bincount(RUN.header.automaton.token_class) == 1),
        ("commit or kl > 1 and not disagree", lambda t, s, i: s.committed[i] or (s.kl[i] > 1 and s.committed_mf[i] == s.committed_mar[i])),
        ("(commit or kl > 1) and not disagree", lambda t, s, i: (s.committed[i] or s.kl[i] > 1) and s.committed_mf[i] == s.committed_mar[i]),
        ("step == 3 and commit", lambda t, s, i: t == 3 and s.committed[i]),
        ("kl rises 0.2", lambda t, s, i: t > 0 and s.kl[i] - RUN.steps[t - 1].kl[i] >= 0.2),
        ("not (mar drops 0.01)", lambda t, s, i: not (t > 0 and RUN.steps[t - 1].confidence_mar[i] - s.confidence_mar[i] >= 0.01)),
    ],
)  # fmt: skip
def test_a_predicate_of_positions_holds_where_the_record_says(text: str, test) -> None:
    want = expected(test)
    assert found(text) == want
    assert want or "7" not in text


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("commits == 2", lambda t, s: s.committed.sum() == 2),
        ("step >= 5", lambda t, s: t >= 5),
        ("log_partition < -1", lambda t, s: s.log_partition < -1),
        (
            "log_partition drops 0.1",
            lambda t, s: (
                t > 0
                and s.log_partition <= LOST.steps[t - 1].log_partition - 0.1
                and np.isfinite(LOST.steps[t - 1].log_partition)
            ),
        ),
        ("log_partition == -inf", lambda t, s: np.isneginf(s.log_partition)),
        ("not possible", lambda t, s: np.isneginf(s.log_partition)),
        ("not accepted", lambda t, s: not LOST.header.automaton.accepts(s.drawn)),
    ],
)
def test_a_predicate_of_the_step_is_asked_once_a_step(text: str, test) -> None:
    want = [(t, None) for t, s in enumerate(LOST.steps) if test(t, s)]
    assert found(text, LOST) == want


def test_the_lost_run_drops_to_nothing_once() -> None:
    assert len(found("log_partition drops 1000", LOST)) == 1


def test_the_confidence_is_the_one_that_decides() -> None:
    other = synthetic.trace(synthetic.real_number(), 12, 9, seed=4, confidence="mf")
    assert found("confidence < 0.3", other) == found("mf < 0.3", other) != found("mar < 0.3", other)


def test_an_origin_is_the_source_text_that_may_be_written_next() -> None:
    source = r"[01]+(\.[01]+)?"
    automaton = token_automaton.compile(read("regex", source), LETTERS)
    config = Config("", "regex", source, "fake", length=6, steps=6, block_length=6)
    run = Trace(Header(config, MODEL.facts, LETTERS, automaton), tuple(decode.denoise(MODEL, automaton, config)))
    hits = found(r'origin == "\\."', run)
    want = [
        (t, i) for t, s in enumerate(run.steps) for i in range(6)
        if s.canvas[i] == LETTERS.mask_id and any(source[a:b] == r"\." for a, b in automaton.state_spans[s.path[i]])
    ]  # fmt: skip
    assert hits == want
    assert hits


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "the text ends where one of"),
        ("kl", 3, "the text ends where a comparison"),
        ("kl > ", 6, "a number"),
        ("kl > x", 6, "'x' stands where a number"),
        ("kl > 2 3", 8, "'3' stands where and, or, or the end"),
        ("kl > 2 and", 11, "the text ends where one of"),
        ("temperature > 2", 1, "'temperature' stands where one of"),
        ("token = 3", 7, "'=' stands where =="),
        ("token == }", 10, "a text in quotes"),
        ('token in "a"', 10, "'{'"),
        ("(kl > 2", 8, "')'"),
        ("kl > 2 & commit", 8, "'&' stands"),
        ("state in {1, 2", 15, "'}'"),
        ("log_partition drops", 20, "a number"),
    ],
)
def test_what_can_not_be_read_is_said_with_its_place(text: str, column: int, said: str) -> None:
    with pytest.raises(BreakpointError) as refused:
        breakpoints.parse(text)
    assert said in refused.value.problem
    assert refused.value.place is not None
    assert refused.value.place.column == column


def test_every_name_that_is_explained_can_be_used() -> None:
    for name in breakpoints.WORDS:
        text = {"token": 'token == "1"', "origin": 'origin == "x"'}.get(name, name)
        flag = name in {**breakpoints.POSITION_FLAGS, **breakpoints.STEP_FLAGS}
        found(text if flag or text != name else f"{name} > 0")


def test_a_run_in_progress_stops_at_a_hit_and_goes_on_where_it_stopped() -> None:
    computed: list[int] = []

    def running():
        for n, record in enumerate(RUN.steps):
            computed.append(n)
            yield record

    watched = breakpoints.watch(running(), [breakpoints.parse("step == 2"), breakpoints.parse("step == 5")], RUN.header)
    stopped = next(pair for pair in watched if pair[1])
    assert stopped == (RUN.steps[2], (Hit(2),))
    assert computed[-1] == 2
    rest = list(itertools.takewhile(lambda pair: not pair[1], watched))
    assert [record for record, _ in rest] == list(RUN.steps[3:5])
    assert computed[-1] == 5


def test_watching_finds_what_looking_back_finds() -> None:
    for text in ("kl rises 0.2", "log_partition drops 0.05", "commit and mar < 0.5"):
        breakpoint = breakpoints.parse(text)
        live = [hit for _, hits in breakpoints.watch(RUN.steps, [breakpoint], RUN.header) for hit in hits]
        assert tuple(live) == breakpoints.hits(breakpoint, RUN)
        late = breakpoints.watch(RUN.steps[4:], [breakpoint], RUN.header, 4, RUN.steps[3])
        assert [hit for _, hits in late for hit in hits] == [hit for hit in live if hit.step >= 4]
