"""What is said of a run: the numbers against listing, and a run of each kind of failure."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import fake
import numpy as np
import pytest
import synthetic

from engine import token_automaton, trace_file
from engine.constraints import read
from engine.decode import denoise
from engine.diagnosis import branches, commits, dynamic, static, traps
from engine.diagnosis.run import Run
from engine.errors import Finding
from engine.models import table
from engine.trace import Config, Header, Trace
from engine.vocabulary import Vocabulary

EXAMPLES = Path(__file__).parents[1] / "assets" / "examples"
REAL = r"[0-9]+(\.[0-9]*)?|\.[0-9]+"


def typed(tokens: list[str], rows: list[list[float]], eos: str | None = None) -> table.Table:
    return table.parse(json.dumps({"tokens": tokens, "eos": eos, "mean_field": rows}), "typed")


def run_of(model: table.Table, regex: str, sampler: str = "midpoint", **settings: object) -> Trace:
    length = int(model.facts["length"])
    asked = Config("", "regex", regex, length=length, steps=length, block_length=length, temperature=1.0)
    asked = dataclasses.replace(asked, sampler=sampler, **settings)
    automaton = token_automaton.compile(read("regex", regex), model.vocabulary)
    header = Header(asked, model.facts, model.vocabulary, automaton)
    return Trace(header, tuple(denoise(model, automaton, asked)))


def one(trace: Trace, code: str) -> Finding:
    return next(f for f in dynamic.findings(trace) if f.code == code)


def dots(sampler: str, dot: float = 0.9) -> Trace:
    digits = [(1 - dot) / 10] * 10
    return run_of(typed([*"0123456789", "."], [[*digits, dot]] * 2), REAL, sampler, steps=1)


def test_a_run_without_a_constraint_has_no_findings() -> None:
    run = dots("independent")
    config = dataclasses.replace(run.header.config, kind=None)
    assert dynamic.findings(Trace(dataclasses.replace(run.header, config=config), run.steps)) == ()


def test_two_dots_are_beyond_return_at_the_first_step_and_one_changed_position_mends_them() -> None:
    run = next(
        r for r in (dataclasses.replace(dots("independent"), steps=s.steps) for s in all_dots()) if r.text == ".."
    )
    finding = dynamic.findings(run)[0]
    assert (finding.code, finding.severity, finding.focus.step) == ("no-return", "error", 0)
    evidence = finding.evidence
    assert [c["position"] for c in evidence["conflict"]] == [0, 1]
    assert evidence["impossible_alone"] == []
    assert evidence["log_partition_before"] == pytest.approx(np.log(0.19))
    assert len(evidence["nearest"]["changes"]) == 1
    assert read("regex", REAL).accepts(evidence["nearest"]["text"])
    assert finding.remedies[0].changes == {"sampler": "midpoint"}
    mended = run_of(typed([*"0123456789", "."], [[0.01] * 10 + [0.9]] * 2), REAL, **finding.remedies[0].changes)
    assert mended.accepted


def all_dots() -> list[Trace]:
    return [
        run_of(typed([*"0123456789", "."], [[0.01] * 10 + [0.9]] * 2), REAL, "independent", seed=s, steps=1)
        for s in range(9)
    ]


def test_a_token_that_no_accepted_answer_has_there_is_told_apart_from_a_joint_conflict() -> None:
    run = run_of(typed(["a", "b"], [[0.01, 0.99], [0.5, 0.5]]), "a[ab]", "independent", temperature=0.0)
    finding = one(run, "no-return")
    assert finding.evidence["impossible_alone"] == [0]
    assert [(c["position"], c["impossible_alone"]) for c in finding.evidence["conflict"]] == [(0, True)]
    assert "whatever the rest is" in finding.message


def test_an_accepted_run_is_told_calmly_with_what_was_lost() -> None:
    run = dots("midpoint")
    found = dynamic.findings(run)
    assert [f.severity for f in found] == ["info"] * len(found)
    assert found[0].code == "accepted"
    assert "19.0%" in found[0].message
    belief = one(run, "belief")
    assert belief.evidence["log10"] == pytest.approx(np.log10(0.19))
    assert belief.evidence["parts"][0]["wanted"] == "'.'"
    assert belief.evidence["parts"][0]["wanted_probability"] == pytest.approx(0.9)


@pytest.mark.parametrize("example", sorted(p.name for p in EXAMPLES.glob("*.trace")))
def test_the_waterfall_of_every_example_sums_to_its_lost_log_partition(example: str) -> None:
    run = Run(trace_file.load(EXAMPLES / example))
    for step in (0, len(run.trace.steps) // 2):
        log_partition = float(run.trace.steps[step].log_partition)
        parts = dynamic.waterfall(run, step)
        if np.isfinite(log_partition):
            assert sum(part["nats"] for part in parts) == pytest.approx(-log_partition, abs=1e-3, rel=1e-5)
            assert sum(part["share"] for part in parts) == pytest.approx(1.0 if parts else 0.0)
            assert all(part["nats"] >= 0 for part in parts)
            nats = [part["nats"] for part in parts]
            assert nats == sorted(nats, reverse=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_commit_costs_what_log_z_loses_by_it_alone(seed: int) -> None:
    vocabulary = fake.characters("01.", eos=False)
    automaton = token_automaton.compile(read("regex", r"[01]+(\.[01]*)?|\.[01]+"), vocabulary)
    asked = Config("", "regex", "", length=4, steps=2, block_length=4, temperature=1.0, seed=seed)
    model = fake.Fake(vocabulary, seed, dtype=np.float64)
    header = Header(asked, model.facts, vocabulary, automaton)
    run = Trace(header, tuple(denoise(model, automaton, asked)))
    words = [x for x in itertools.product(range(3), repeat=4) if automaton.accepts(x)]
    for cost, t, i in commits.commit_costs(run):
        step = run.steps[t]
        logits = model.logits(np.zeros(0, np.int32), step.canvas, t)
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)

        def log_z(canvas: np.ndarray, log_p: np.ndarray = log_p) -> float:
            weights = [
                sum(log_p[j, v] for j, v in enumerate(x) if canvas[j] == vocabulary.mask_id)
                for x in words
                if all(c in (v, vocabulary.mask_id) for c, v in zip(canvas.tolist(), x, strict=True))
            ]
            return float(np.logaddexp.reduce(weights))

        after = step.canvas.copy()
        after[i] = step.drawn[i]
        # Not the model's own: the mean field stays, one position becomes a point mass.
        assert cost == pytest.approx(log_z(step.canvas) - log_z(after), abs=1e-5)


def test_the_costliest_commit_is_named() -> None:
    # 'b' is likely in front and all but excludes what may follow.
    run = run_of(typed(["a", "b", "c"], [[0.02, 0.98, 0.0], [0.9, 0.099, 0.001]]), "a[ab]|bc", "local", seed=0, steps=1)
    finding = one(run, "commit")
    assert finding.focus.position == 0
    cost = finding.evidence["commits"][0]["nats"]
    assert cost == pytest.approx(np.log((0.02 * 0.999 + 0.98 * 0.001) / 0.001), abs=1e-4)


def test_what_the_model_wanted_against_the_constraint_is_told_where_it_was_committed() -> None:
    run = run_of(typed(["y", "n", "?"], [[0.05, 0.05, 0.9]]), "[yn]")
    finding = one(run, "wanted")
    assert finding.evidence["commits"] == [
        {
            "step": 0,
            "position": 0,
            "forbidden_mass": pytest.approx(0.9),
            "wanted": "'?'",
            "probability": pytest.approx(0.9),
        }
    ]


# C4, C8, C10 and C11 during a run


def loop_model(stay: float, length: int) -> table.Table:
    return typed(["x", "!"], [[stay, 1 - stay]] * length)


@pytest.mark.parametrize(
    ("regex", "text", "part"),
    [(r"[a-z ]*!", "x", "[a-z ]"), (r"x*!", "x", "x"), (r"\n*!", "\n", "\\n")],
)
def test_c8_a_run_that_stays_in_a_loop_is_told_with_its_chance_to_leave(regex: str, text: str, part: str) -> None:
    model = typed([text, "!", "e"], [[0.97, 0.02, 0.01]] * 24, eos="e")
    run = run_of(model, regex, temperature=0.0)
    finding = one(run, "trap")
    assert finding.severity == "warning"
    assert finding.where is not None
    assert finding.where.source[finding.where.start : finding.where.stop] == part
    start, stop = finding.evidence["start"], finding.evidence["stop"]
    assert stop - start >= 22
    chances = [c for c in finding.evidence["exit_chances"] if c is not None]
    assert chances == pytest.approx([0.02] * len(chances))
    source = finding.remedies[0].changes["source"]
    after = run_of(model, source, temperature=0.0)
    assert "trap" not in [f.code for f in dynamic.findings(after)]


def test_a_loop_that_the_model_would_leave_is_no_trap() -> None:
    run = run_of(typed(["x", "!"], [[0.3, 0.7]] * 24), r"x*!")
    assert "trap" not in [f.code for f in dynamic.findings(run)]
    assert traps.longest_stay(Run(run), traps._components(run.header.automaton, within_parts=True)) == (0, 23)


@pytest.mark.parametrize("length", [3, 5, 8])
def test_c4_a_canvas_that_ends_a_longer_answer_is_told(length: int) -> None:
    run = run_of(typed(["x", "!", "e"], [[0.97, 0.02, 0.01]] * length, eos="e"), r"x+!", temperature=0.0)
    finding = one(run, "cut-short")
    assert finding.evidence["position"] == length - 1
    assert finding.evidence["mass"] == pytest.approx(0.97)


def test_c4_an_unconstrained_answer_that_only_begins_an_accepted_one_says_how_much_is_missing() -> None:
    run = run_of(typed(list("abcd"), [[1, 0, 0, 0], [0, 1, 0, 0]]), "ab|abc{3}d|ba", "independent", temperature=0.0)
    assert run.accepted
    run = run_of(typed(list("abcd"), [[1, 0, 0, 0], [0, 1, 0, 0]]), "a|abc{2}d|ba", "independent", temperature=0.0)
    finding = one(run, "cut-short")
    assert finding.evidence == {"missing": 3, "length": 2}


@pytest.mark.parametrize(
    ("regex", "rows", "winner", "probability", "killer"),
    [
        ("cat|dog", [[0.3, 0, 0, 0.7, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]], "cat", 0.3, 0),
        ("(?:cat|dog)s", None, "dog", 0.7, 0),
        ("ca(?:tt|ts)?|dog", None, "dog", 0.7, 0),
    ],
)
def test_c10_the_branch_that_won_is_told_with_what_it_had_and_the_commit_that_killed_the_other(
    regex: str, rows: list | None, winner: str, probability: float, killer: int
) -> None:
    tokens = list("catdogs")
    rest = [[0, 0.5, 0, 0, 0.5, 0, 0], [0, 0, 0.5, 0, 0, 0.5, 0], [0, 0, 0, 0, 0, 0, 1]]
    if rows is not None:
        model = typed(tokens, [[*row, 0] for row in rows])
    elif regex.endswith("s"):
        model = typed(tokens, [[0.3, 0, 0, 0.7, 0, 0, 0], *rest])
    else:
        model = typed([*tokens, "e"], [[0.3, 0, 0, 0.7, 0, 0, 0, 0], *[[*r, 0] for r in rest[:2]], [0] * 7 + [1]], "e")
    run = next(r for s in range(40) if winner in (r := run_of(model, regex, seed=s)).text)
    finding = one(run, "branch")
    assert finding.where is not None
    assert finding.where.source[finding.where.start : finding.where.stop] == winner
    first, *others = finding.evidence["branches"]
    if regex != "ca(?:tt|ts)?|dog":
        assert first["probability"] == pytest.approx(probability, abs=1e-6)
    assert first["died"] is None
    assert all(other["died"] is not None for other in others)


def test_a_branch_dies_at_the_step_whose_commit_forbids_it() -> None:
    model = typed(list("catdog"), [[0.6, 0, 0, 0.4, 0, 0], [0, 0.6, 0, 0, 0.4, 0], [0, 0, 0.6, 0, 0, 0.4]])
    run = run_of(model, "cat|dog")
    (choice,) = branches.choices(read("regex", "cat|dog"), run.header.automaton)
    first = run.steps[0]
    for life in branches.lives(run, choice):
        text = life.branch.place.source[life.branch.place.start : life.branch.place.stop]
        if text == run.text:
            assert (life.died, life.killer) == (None, None)
        else:
            assert life.died == 0
            assert life.killer == int(np.flatnonzero(first.committed)[0])


def test_c11_a_run_that_was_stopped_says_after_which_step_and_keeps_the_rest() -> None:
    run = run_of(typed(["x", "!"], [[0.5, 0.5]] * 4), "x+!")
    stopped = Trace(run.header, run.steps[:2])
    finding = dynamic.findings(stopped)[0]
    assert (finding.code, finding.focus.step) == ("stopped", 1)
    assert "2 positions open" in finding.message
    assert [f.code for f in dynamic.findings(Trace(run.header, ()))] == ["stopped"]


def test_a_filter_that_had_to_be_lifted_is_told_and_can_be_taken_away() -> None:
    model = typed(["x", "!"], [[0.99, 0.01]] * 2)
    run = run_of(model, "x!", top_k=1)
    finding = one(run, "filter-lifted")
    assert finding.evidence["steps"]
    after = run_of(model, "x!", **finding.remedies[0].changes)
    assert "filter-lifted" not in [f.code for f in dynamic.findings(after)]


def test_an_answer_that_the_model_gives_no_probability_is_no_error_of_the_engine() -> None:
    run = run_of(typed(["x", "y"], [[1, 0]]), "y", "independent")
    belief = one(run, "belief")
    assert belief.severity == "warning"
    assert "probability 0" in belief.message
    assert one(run, "no-return").remedies == (), "an exact draw would fail as well"


def test_every_finding_is_plain_data_for_json() -> None:
    runs = [dots("independent"), dots("local"), run_of(typed(["x", "!"], [[0.97, 0.03]] * 24), r"x*!")]
    for run in runs:
        for finding in dynamic.findings(run):
            json.dumps(finding.plain(), allow_nan=False)
    asked = Config("", "regex", r"[0-9]{9}\s*", length=4, steps=4, block_length=4)
    for finding in static.findings(asked, fake.characters("0123456789 ")):
        json.dumps(finding.plain(), allow_nan=False)


@pytest.mark.parametrize("seed", range(3))
def test_any_run_of_any_sampler_is_diagnosed_without_an_exception(seed: int) -> None:
    vocabulary: Vocabulary = fake.characters("01.")
    automaton = token_automaton.compile(read("regex", r"[01]+(\.[01]*)?|\.[01]+"), vocabulary)
    model = fake.Fake(vocabulary, seed)
    for sampler in ("midpoint", "map", "independent", "local", "reject"):
        asked = Config(
            "", "regex", REAL, length=6, steps=3, block_length=6, temperature=1.0, seed=seed, sampler=sampler
        )
        run = Trace(Header(asked, model.facts, vocabulary, automaton), tuple(denoise(model, automaton, asked)))
        for steps in range(4):
            found = dynamic.findings(Trace(run.header, run.steps[:steps]))
            assert found
            assert found[0].code in ("accepted", "no-return", "stopped")


def test_a_synthetic_trace_of_another_source_still_has_its_numbers() -> None:
    run = synthetic.trace(synthetic.real_number(), 6, 3)
    found = dynamic.findings(run)
    assert found
    assert all(f.where is None for f in found), "its states have no places in the source"
