"""Generated schemas and regexes against `jsonschema` and `re`: a fixed sample of what the benchmark runs in full."""

from __future__ import annotations

import random

from benchmarks import constraints, fuzz


def test_generated_schemas_accept_what_jsonschema_accepts_unless_a_finding_says_otherwise() -> None:
    tally = constraints.Tally()
    fuzz.run(fuzz.cases(), lambda case: constraints.judge_schema(tally, *case), 60)
    assert tally.counts["silently wrong"] == 0, tally.notes
    assert tally.counts["right"] > 40, tally.counts


def test_generated_regexes_match_what_re_matches() -> None:
    tally, rng = constraints.Tally(), random.Random(0)
    fuzz.run(fuzz.regex_cases(), lambda case: constraints.judge_regex(tally, case[0], case[0], rng, case[1]), 100)
    assert tally.counts["silently wrong"] == 0, tally.notes
    assert tally.counts["right"] > 80, tally.counts


def test_a_constraint_of_another_language_is_counted_as_silently_wrong() -> None:
    tally = constraints.Tally()
    constraints.judge(tally, "name", lambda: constraints.constraints.read("regex", "a|b"), ["a", "c"], [])
    constraints.judge(tally, "name", lambda: constraints.constraints.read("regex", "a|b"), ["a"], ["b"])
    assert tally.counts == {"silently wrong": 2}
