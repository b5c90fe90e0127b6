"""Two runs side by side: order, first divergence, outcome and intervals, against what was worked out otherwise."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from engine import comparison, debugger, trace_file
from engine.errors import CompareError
from engine.trace import Edit, Trace
from tests.fake import characters
from tests.test_debugger import LETTERS, MODEL, child, record

MF, MAR = record(confidence="mf"), record(confidence="mar")


def tau_by_pairs(a: np.ndarray, b: np.ndarray) -> float:
    """Kendall's τ-b, by looking at every pair."""
    agree = ties_a = ties_b = pairs = 0
    for i, j in itertools.combinations(range(len(a)), 2):
        pairs += 1
        agree += int(np.sign(a[i] - a[j]) * np.sign(b[i] - b[j]))
        ties_a += a[i] == a[j]
        ties_b += b[i] == b[j]
    return agree / math.sqrt((pairs - ties_a) * (pairs - ties_b))


@pytest.mark.parametrize("steps", [8, 3])
def test_the_order_of_commits_is_compared_by_kendalls_tau(steps: int) -> None:
    for seed in range(6):
        a, b = record(confidence="mf", seed=seed, steps=steps), record(confidence="mar", seed=seed, steps=steps)
        compared = comparison.compare(a, b)
        order = [[next(n for n, s in enumerate(run.steps) if s.committed[i]) for i in range(8)] for run in (a, b)]
        assert compared.commit_steps.tolist() == order
        assert compared.tau == pytest.approx(tau_by_pairs(*np.asarray(order)))
    assert comparison.compare(a, a).tau == pytest.approx(1.0)


def test_an_order_of_one_step_has_no_tau() -> None:
    one = record(steps=1)
    assert math.isnan(comparison.compare(one, one).tau)


def test_a_run_does_not_diverge_from_itself() -> None:
    assert comparison.first_divergence(MAR, MAR) is None
    assert comparison.compare(MAR, MAR).changed == {}


def test_the_two_confidences_part_at_a_choice_over_the_same_draw() -> None:
    parted = 0
    for seed in range(12):
        a, b = record(confidence="mf", seed=seed), record(confidence="mar", seed=seed)
        found = comparison.first_divergence(a, b)
        first = next(
            (n for n, (x, y) in enumerate(zip(a.steps, b.steps, strict=True)) if (x.committed != y.committed).any()),
            None,
        )
        assert (found.step if found else None) == first
        if found is None:
            continue
        parted += 1
        assert found.cause == "choice", "common noise: until they choose, they draw alike"
        x, y = a.steps[found.step], b.steps[found.step]
        assert np.array_equal(x.drawn, y.drawn)
        mine, other = found.rivals
        assert x.committed[mine]
        assert not y.committed[mine]
        assert y.committed[other]
        # Why: each prefers its own by the confidence that decides for it.
        assert found.rival_confidences["mf"][0][0] >= found.rival_confidences["mf"][1][0]
        assert found.rival_confidences["mar"][1][1] >= found.rival_confidences["mar"][0][1]
    assert parted > 2


def test_another_seed_parts_in_its_draw_and_a_pin_in_its_canvas() -> None:
    for seed in range(4, 20):
        found = comparison.first_divergence(MAR, record(confidence="mar", seed=seed))
        if found and found.cause == "draw":
            assert found.tokens[0] != found.tokens[1]
            break
    else:
        pytest.fail("no seed draws another token")
    masked = int(np.flatnonzero(MAR.steps[3].canvas == LETTERS.mask_id)[-1])
    found = comparison.first_divergence(MAR, child(MAR, 3, Edit("pin", masked, 0)))
    assert found
    assert (found.cause, found.step, found.position) == ("canvas", 3, masked)


def test_runs_are_aligned_by_step_by_commits_and_by_position() -> None:
    fast = record(steps=4)
    assert comparison.align(MAR, fast, "step") == tuple((n, n) for n in range(4))
    # 8 steps of one commit beside 4 steps of two.
    assert comparison.align(MAR, fast, "committed") == tuple((n, n // 2) for n in range(8))
    steps = [comparison.commit_steps(run) for run in (MAR, fast)]
    assert comparison.align(MAR, fast, "position") == tuple(zip(*(s.tolist() for s in steps), strict=True))


def test_the_outcome_sums_what_the_record_says() -> None:
    for run in (MAR, record(sampler="independent", seed=2)):
        found = comparison.outcome(run)
        total, masses = 0.0, []
        for step in run.steps:
            rows = np.flatnonzero(step.canvas == LETTERS.mask_id).tolist()
            masses += step.forbidden_mass[rows].tolist()
            for i in np.flatnonzero(step.committed).tolist():
                total += float(step.log_mean_field[rows.index(i), step.drawn[i]])
        assert found.log_probability == pytest.approx(total, abs=1e-5)
        assert found.forbidden_mass == pytest.approx(np.mean(masses))
        assert (found.text, found.accepted, found.steps) == (run.text, run.accepted, 8)
        # The tops say the same where the mean field was not kept.
        bare = Trace(run.header, tuple(dataclasses.replace(s, log_mean_field=None) for s in run.steps))
        assert comparison.outcome(bare).log_probability == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("changes", [{"temperature": 0.5}, {"temperature": 1.0, "top_k": 3}])
def test_what_the_model_alone_gave_is_not_read_from_tops_of_another_distribution(changes) -> None:
    run = record(seed=3, **changes)
    bare = Trace(run.header, tuple(dataclasses.replace(s, log_mean_field=None) for s in run.steps))
    assert comparison.outcome(run).log_probability is not None
    assert comparison.outcome(bare).log_probability is None


def test_the_interval_is_wilsons() -> None:
    for successes, trials in [(0, 1), (0, 20), (3, 10), (19, 20), (20, 20), (500, 1000)]:
        found = comparison.wilson(successes, trials)
        known = binomtest(successes, trials).proportion_ci(method="wilson")
        assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-12)
    assert (comparison.wilson(0, 0).low, comparison.wilson(0, 0).high) == (0.0, 1.0)


def test_runs_that_can_not_be_aligned_say_why() -> None:
    with pytest.raises(CompareError, match="8 positions, the other 6"):
        comparison.compare(MAR, record(length=6, block_length=6, steps=6))
    other = dataclasses.replace(MAR.header, vocabulary=characters("ab."))
    with pytest.raises(CompareError, match="vocabularies differ"):
        comparison.compare(MAR, Trace(other, MAR.steps))


def test_a_fork_is_compared_with_its_parent(tmp_path) -> None:
    made = debugger.fork(MAR, 4, [Edit("set", name="confidence", value="mf")])
    compared = comparison.compare(MAR, Trace(made.header, tuple(debugger.steps(made, MODEL))))
    assert compared.changed == {"confidence": ("mar", "mf")}
    assert compared.shared_noise
    assert compared.divergence is None or compared.divergence.step >= 4


def test_the_command_says_the_same_in_words_and_as_json(tmp_path) -> None:
    from typer.testing import CliRunner

    from engine.__main__ import app

    for name, run in (("a", MF), ("b", MAR)):
        trace_file.save(run, tmp_path / f"{name}.trace")
    files = [str(tmp_path / "a.trace"), str(tmp_path / "b.trace")]
    plain = json.loads(CliRunner().invoke(app, ["compare", *files, "--json"]).stdout)
    compared = comparison.compare(MF, MAR)
    assert plain["changed"] == {"confidence": ["mf", "mar"]}
    assert plain["kendall_tau"] == pytest.approx(compared.tau)
    assert plain["outcomes"][1]["text"] == MAR.text
    words = CliRunner().invoke(app, ["compare", *files]).stdout
    assert "confidence 'mf' → 'mar'" in words
    assert MAR.text in words
