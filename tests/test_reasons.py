"""What the page lists of a verdict on a token: which states, how many there are, their origins, and what they want."""

from __future__ import annotations

import json

import large
import numpy as np
import pytest
import synthetic

from engine.diagnosis import tokens
from viz import reasons

RUN = synthetic.trace(synthetic.real_number(synthetic.HOSTILE), 8, 4)


@pytest.mark.parametrize("step", range(len(RUN.steps)))
def test_what_is_listed_sums_to_what_there_is(step: int) -> None:
    automaton, record = RUN.header.automaton, RUN.steps[step]
    for position in range(RUN.header.config.length):
        for v in range(RUN.header.vocabulary.size):
            verdict = tokens.of_step(RUN, step, position, v)
            said = json.loads(json.dumps(reasons.plain(RUN.header, v, verdict), allow_nan=False))
            accepting = said["accepting"]
            assert (said["reason"] == "accepted") == (accepting["count"] > 0)
            assert accepting["count"] == len(accepting["rows"])  # five states are listed whole
            if accepting["count"] and said["given"]:
                assert sum(share for *_, share, _ in accepting["rows"]) == pytest.approx(1.0)
            for q, to, _, posterior in accepting["rows"] + said["dying"]["rows"] + said["unreached"]["rows"]:
                assert automaton.move(q, v) == to
                known = record.state_ids[position] == q
                assert posterior == pytest.approx(record.state_probability[position][known].sum(), abs=1e-6)
            assert str(v) in {**said["tokens"], **said["special"]}


def test_what_a_state_wants_are_its_tokens_that_can_be_completed() -> None:
    vocabulary, automaton = synthetic.real_number(eos=False)
    run = synthetic.trace((vocabulary, automaton), 3, 1)
    said = reasons.plain(run.header, 10, tokens.of_step(run, 0, 2, 10))
    wants = {state: words for state, _, words in said["states"]["rows"]}
    # At the last position: a digit or a dot behind digits, a digit behind a dot.
    assert wants == {1: ". 0–9", 3: "0–9"}
    # Where nothing may follow a dot can not begin: its state is no accepting one.
    alone = synthetic.trace((vocabulary, automaton), 1, 1)
    said = reasons.plain(alone.header, 10, tokens.of_step(alone, 0, 0, 10))
    assert [(state, words) for state, _, words in said["states"]["rows"]] == [(0, "0–9")]


def test_a_large_automaton_lists_some_names_where_they_come_from_and_says_how_many_there_are() -> None:
    run = large.trace(large.header("json_schema", large.schema(2, 20)))
    token = 0x61
    verdict = tokens.of_step(run, 0, 40, token)
    said = reasons.plain(run.header, token, verdict)
    accepting = verdict.reached & verdict.completed
    assert said["accepting"]["count"] == int(accepting.sum()) > reasons.LISTED == len(said["accepting"]["rows"])
    shares = [share for *_, share, _ in said["accepting"]["rows"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] >= np.sort(verdict.share[accepting])[::-1][reasons.LISTED]
    assert said["states"]["count"] == verdict.live.size
    assert any(name.startswith("/properties/field_") for name in said["where"].values())
