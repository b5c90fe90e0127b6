"""Forks: deterministic, never a change of the parent, refused with the fewest pins that contradict the constraint."""

from __future__ import annotations

import dataclasses
import json
from itertools import combinations, product

import numpy as np
import pytest

from engine import debugger, decode, stepping, token_automaton, trace_file
from engine.constraints import read
from engine.errors import ConfigError, ForkError, InputError, ModelError, PinError, TraceError
from engine.inference import support
from engine.models import table
from engine.trace import Branch, Config, Edit, Header, StepRecord, Trace
from tests import oracle
from tests.fake import Fake, characters

SAMPLERS = stepping.EXACT + stepping.BASELINES
LETTERS = characters("01.", eos=True)
SOURCE = r"[01]+(\.[01]+)?"
AUTOMATON = token_automaton.compile(read("regex", SOURCE), LETTERS)
BASE = Config("p", "regex", SOURCE, "fake", length=8, steps=8, block_length=8, temperature=1.0, seed=3)
MODEL = Fake(LETTERS)


def record(model: Fake = MODEL, automaton=AUTOMATON, **changes) -> Trace:
    config = dataclasses.replace(BASE, **changes)
    header = Header(config, model.facts, model.vocabulary, automaton, model.encode_prompt(config.prompt))
    return Trace(header, tuple(decode.denoise(model, automaton, config)))


def child(parent: Trace, step: int, *edits: Edit, reuse: bool = False, model: Fake | None = MODEL) -> Trace:
    made = debugger.fork(parent, step, edits, reuse=reuse)
    return Trace(made.header, tuple(debugger.steps(made, model)))


def differences(one: StepRecord, other: StepRecord) -> set[str]:
    """Names of the fields that differ in any bit; how long a step took is not what it computed."""
    names = {f.name for f in dataclasses.fields(StepRecord)} - {"model_ms", "engine_ms"}
    floats = {n for n in names if np.asarray(getattr(one, n)).dtype.kind == "f"}
    return {n for n in names if not np.array_equal(getattr(one, n), getattr(other, n), equal_nan=n in floats)}


def assert_same(one: Trace, other: Trace) -> None:
    assert len(one.steps) == len(other.steps)
    for n, (a, b) in enumerate(zip(one.steps, other.steps, strict=True)):
        assert not differences(a, b), f"step {n}"


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"steps": 6},
        {"block_length": 4, "steps": 4, "confidence": "mf"},
        {"temperature": 0.0},
        {"remasking": "random", "temperature": 0.6},
    ],
)
def test_a_fork_without_edits_is_its_parent_bit_for_bit(sampler: str, changes: dict) -> None:
    parent = record(sampler=sampler, **changes)
    for step in range(len(parent.steps)):
        assert_same(child(parent, step), parent)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_fork_of_a_fork_without_edits_is_the_fork(sampler: str) -> None:
    parent = record(sampler=sampler, block_length=4, steps=4)
    pinned = child(parent, 1, Edit("pin", 2, 1), Edit("set", name="seed", value=9))
    for step in (1, 2, 3):
        assert_same(child(pinned, step), pinned)
    cut = Trace(pinned.header, pinned.steps[:3])
    assert_same(Trace(cut.header, tuple(debugger.steps(debugger.resume(cut), MODEL))), pinned)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(sampler: str) -> None:
    whole = record(sampler=sampler)
    for count in range(len(whole.steps)):
        stopped = Trace(whole.header, whole.steps[:count])
        made = debugger.resume(stopped)
        assert_same(Trace(made.header, tuple(debugger.steps(made, MODEL))), whole)
    with pytest.raises(ForkError, match="all its 8 steps"):
        debugger.resume(whole)


@pytest.mark.parametrize("changes", [{"steps": 5}, {"steps": 16, "block_length": 2, "remasking": "threshold"}])
def test_the_schedule_survives_a_step_that_draws_the_mask(changes: dict) -> None:
    # Without a constraint a model may draw its own mask, which leaves more masked than the plan says.
    automaton = token_automaton.everything(LETTERS)
    for seed in range(20):
        parent = record(Fake(LETTERS, seed), automaton, sampler="independent", **changes)
        if any((s.committed & (s.drawn == LETTERS.mask_id)).any() for s in parent.steps[:4]):
            break
    else:
        pytest.fail("no seed is the case that is meant")
    for step in range(len(parent.steps)):
        assert_same(child(parent, step, model=Fake(LETTERS, seed)), parent)


def test_a_fork_never_changes_its_parent_and_says_where_it_comes_from() -> None:
    parent = record()
    before = trace_file.dumps(parent)
    edits = (Edit("pin", 4, 0), Edit("set", name="temperature", value=0.5))
    made = child(parent, 3, *edits)
    assert trace_file.dumps(parent) == before
    assert made.header.branches == (Branch(parent.fingerprint, 3, edits),)
    assert all(a is b for a, b in zip(made.steps[:3], parent.steps[:3], strict=True))
    assert made.fingerprint != parent.fingerprint
    assert_same(child(parent, 3, *edits), made)


def test_a_pin_stands_from_its_step_on_and_the_rest_is_drawn_around_it() -> None:
    parent = record()
    for step in range(8):
        for position in np.flatnonzero(parent.steps[step].canvas == LETTERS.mask_id).tolist():
            for token_id in (0, 1, 2):
                try:
                    made = child(parent, step, Edit("pin", position, token_id))
                except PinError:
                    continue
                assert made.canvas[position] == token_id
                assert made.steps[step].canvas[position] == token_id
                assert made.accepted


def test_a_ban_takes_a_token_out_of_both_distributions() -> None:
    parent = record()
    position = int(np.flatnonzero(parent.steps[2].canvas == LETTERS.mask_id)[0])
    token_id = int(parent.steps[2].drawn[position])
    made = child(parent, 2, Edit("ban", position, token_id))
    assert made.canvas[position] != token_id
    assert made.header.config.bans == ((position, token_id),)
    shown = made.steps[2].top_ids[position]
    mass = np.exp(made.steps[2].top_log_mean_field[position])[shown == token_id]
    assert (mass == 0).all()
    assert made.accepted


def test_a_commit_and_a_hold_change_the_choice_and_nothing_else() -> None:
    parent = record(confidence="mar")
    for step in range(6):
        first = parent.steps[step]
        chosen = int(np.flatnonzero(first.committed)[0])
        masked = np.flatnonzero((first.canvas == LETTERS.mask_id) & ~first.committed)
        held = child(parent, step, Edit("hold", chosen))
        assert not held.steps[step].committed[chosen]
        assert held.steps[step].committed.sum() == first.committed.sum()
        taken = child(parent, step, Edit("commit", int(masked[-1])))
        assert np.flatnonzero(taken.steps[step].committed).tolist() == [masked[-1]]
        for made in (held, taken):
            follows = {"committed", "committed_mf", "committed_mar", "log_partition_after"}
            assert differences(made.steps[step], first) <= follows
            assert made.accepted


def test_an_uncommitted_position_is_drawn_again_and_every_position_is_committed_in_the_end() -> None:
    parent = record(block_length=4, steps=4)
    for step in range(1, 4):
        for position in np.flatnonzero(parent.steps[step].canvas != LETTERS.mask_id).tolist():
            made = child(parent, step, Edit("uncommit", position))
            assert made.steps[step].canvas[position] == LETTERS.mask_id
            assert LETTERS.mask_id not in made.canvas
            assert made.accepted


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 2),
        ("confidence", "mf"),
        ("remasking", "random"),
        ("sampler", "chain"),
        ("seed", 11),
    ],
)
def test_a_setting_holds_from_the_fork_on(name: str, value: object) -> None:
    parent = record()
    made = child(parent, 3, Edit("set", name=name, value=value))
    assert getattr(made.header.config, name) == value
    assert_same(Trace(made.header, made.steps[:3]), Trace(parent.header, parent.steps[:3]))
    assert made.finished
    # The same as a run with that setting that begins with this canvas, at this step.
    other = list(
        decode.denoise(MODEL, AUTOMATON, made.header.config, decode.Start(3, parent.steps[3].canvas, ((8, 1),) * 5))
    )
    for a, b in zip(made.steps[3:], other, strict=True):
        assert not differences(a, b)


def test_reusing_the_mean_field_needs_no_model_and_gives_the_posterior_of_the_recorded_one() -> None:
    parent = record()
    position = int(np.flatnonzero(parent.steps[3].canvas == LETTERS.mask_id)[-1])
    for edits in ([Edit("set", name="sampler", value="chain")], [Edit("pin", position, 0)], [Edit("ban", position, 2)]):
        made = debugger.fork(parent, 3, edits, reuse=True)
        assert made.instant
        assert made.model_calls == 4
        own = tuple(debugger.steps(made, None))
        assert len(own) == 4, "it stops in front of the step that needs the model"
        logits = np.zeros((8, LETTERS.size))
        logits[parent.steps[3].canvas == LETTERS.mask_id] = parent.steps[3].log_mean_field
        for i, v in made.header.config.bans:
            logits[i, v] = -np.inf
        expected = oracle.enumerate_all(logits, own[3].canvas, LETTERS.mask_id, AUTOMATON)
        assert own[3].log_partition == pytest.approx(expected.log_partition, abs=1e-5)


def test_a_model_with_other_tokens_than_the_run_is_refused() -> None:
    parent = record()
    for other in (characters("0"), characters("10.")):
        with pytest.raises(ModelError, match="other tokens"):
            child(parent, 2, model=Fake(other))


@pytest.mark.parametrize("fact", ["revision", "parameters", "dtype"])
def test_a_model_of_other_weights_than_the_runs_is_refused_and_a_fact_that_was_not_recorded_is_not(fact: str) -> None:
    model, other, unknown = Fake(LETTERS), Fake(LETTERS), Fake(LETTERS)
    model.facts, other.facts = model.facts | {fact: "1", "device": "cpu"}, model.facts | {fact: "2"}
    parent = record(model)
    with pytest.raises(ModelError, match=f"has the {fact} 2, and had 1 when this run was recorded"):
        child(parent, 2, model=other)
    stopped = debugger.resume(Trace(parent.header, parent.steps[:2]))
    with pytest.raises(ModelError, match=fact):
        list(debugger.steps(stopped, other))
    assert_same(child(parent, 2, model=unknown), parent)


def test_a_typed_in_mean_field_that_was_edited_since_is_another_model() -> None:
    one, same, other = (table.parse(json.dumps({"tokens": ["a", "b"], "mean_field": [[1, n]]}), "t") for n in (1, 1, 2))
    assert one.facts == same.facts
    assert one.facts["revision"] != other.facts["revision"]


def test_without_a_recorded_mean_field_reuse_is_refused() -> None:
    parent = record()
    bare = Trace(parent.header, tuple(dataclasses.replace(s, log_mean_field=None) for s in parent.steps))
    with pytest.raises(ForkError, match="not recorded"):
        debugger.fork(bare, 2, reuse=True)
    with pytest.raises(ForkError, match="was committed at step 3"):
        debugger.fork(
            parent, 3, [Edit("uncommit", int(np.flatnonzero(parent.steps[3].canvas != LETTERS.mask_id)[0]))], reuse=True
        )
    assert debugger.fork(bare, 2).model_calls == 6


def test_another_constraint_reads_the_steps_before_again_and_holds_from_the_fork_on() -> None:
    parent = record(steps=4)
    made = child(parent, 1, Edit("constrain", name="regex", value="[01.]{8}"))
    assert made.header.config.source == "[01.]{8}"
    assert made.header.automaton.states != parent.header.automaton.states
    first, was = made.steps[0], parent.steps[0]
    for name in ("canvas", "drawn", "committed", "confidence_mf", "top_ids"):
        same = np.array_equal(getattr(first, name), getattr(was, name))
        assert same or name in ("confidence_mf", "top_ids"), name
    np.testing.assert_allclose(first.confidence_mf, was.confidence_mf, rtol=1e-5)
    assert first.log_partition > was.log_partition, "it accepts more"
    assert LETTERS.eos_ids[0] not in made.canvas
    trace_file.load(trace_file.dumps(made))  # every shape is of the one automaton
    instant = debugger.fork(parent, 1, [Edit("constrain", name="regex", value="[01.]{8}")], reuse=True)
    assert len(list(debugger.steps(instant, None))) == 2


def test_a_constraint_that_the_canvas_contradicts_is_refused_with_the_positions() -> None:
    parent = record(pins=((0, 0), (5, 1)))
    with pytest.raises(PinError) as refused:
        debugger.fork(parent, 0, [Edit("constrain", name="regex", value="1[01]{7}")])
    assert refused.value.positions == (0,)
    with pytest.raises(InputError, match=r"can't be read"):
        debugger.fork(parent, 0, [Edit("constrain", name="regex", value="(")])


def test_pins_that_contradict_the_constraint_are_the_fewest_that_do() -> None:
    dot = 2
    parent = record(pins=((1, dot), (6, 0)))
    with pytest.raises(PinError, match=r"'\.' at position 1 and '\.' at position 4 contradict") as refused:
        debugger.fork(parent, 0, [Edit("pin", 4, dot)])
    assert refused.value.positions == (1, 4)
    with pytest.raises(PinError, match=r"'\.' at position 0 contradicts") as refused:
        debugger.fork(record(), 0, [Edit("pin", 0, dot)])
    assert refused.value.positions == (0,)


def test_the_reported_conflict_is_minimal_on_random_automata() -> None:
    found = 0
    for seed in range(90):
        rng = np.random.default_rng(seed)
        automaton = oracle.random_automaton(rng, 4, 4, 0.4)
        length = 5
        placed = [(i, int(rng.integers(0, 4))) for i in rng.permutation(length)[:4].tolist()]
        banned = [(int(rng.integers(0, length)), int(rng.integers(0, 4))) for _ in range(2)]
        possible = {
            frozenset(chosen): any(
                all(w[i] == v for i, v in chosen) and all(w[i] != v for i, v in banned)
                for w in product(range(4), repeat=length)
                if automaton.accepts(w)
            )
            for n in range(5)
            for chosen in combinations(placed, n)
        }
        conflict = support.conflict(automaton, length, placed, banned)
        if conflict is None:
            assert possible[frozenset(placed)]
            continue
        found += len(conflict) > 1
        assert not possible[frozenset(conflict)]
        assert all(possible[frozenset(conflict) - {pair}] for pair in conflict)
    assert found >= 3


def test_a_lost_run_says_from_which_step_on_it_is_lost() -> None:
    for seed in range(50):
        parent = record(sampler="independent", seed=seed)
        lost = [n for n, s in enumerate(parent.steps) if np.isneginf(s.log_partition)]
        if lost and lost[0] < 7:
            break
    assert_same(child(parent, lost[0] + 1), parent)
    with pytest.raises(PinError, match=f"Since step {lost[0]} nothing"):
        debugger.fork(parent, lost[0] + 1, [Edit("set", name="sampler", value="midpoint")])
    saved = child(parent, lost[0] - 1, Edit("set", name="sampler", value="midpoint"))
    assert saved.accepted
    assert not parent.accepted


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit("paint", 1), "no edit 'paint'"),
        (Edit("pin", 8, 1), "no position 8"),
        (Edit("pin", None, 1), "no position None"),
        (Edit("pin", 1, 99), "no token 99"),
        (Edit("ban", 1), "no token None"),
        (Edit("uncommit", 1), "still masked"),
        (Edit("set", name="length", value=9), "can't set 'length'"),
        (Edit("set", name="seed", value="x"), "can't be 'x'"),
        (Edit("set", name="sampler", value="fast"), "no sampler 'fast'"),
        (Edit("set", name="temperature", value=-1.0), "temperature is -1"),
    ],
)
def test_an_edit_that_can_not_be_is_refused(edit: Edit, said: str) -> None:
    with pytest.raises((ForkError, ConfigError), match=said):
        debugger.fork(record(), 0, [edit])


@pytest.mark.parametrize("step", [-1, 8, 99])
def test_a_step_that_is_not_there_is_refused(step: int) -> None:
    with pytest.raises(ForkError, match=f"no step {step}"):
        debugger.fork(record(), step)


@pytest.mark.parametrize("changes", [{"cfg_scale": 2.0}, {"logits_eos_inf": True}])
def test_a_mean_field_that_was_recorded_with_other_settings_of_the_model_is_not_reused(changes: dict) -> None:
    ((name, value),) = changes.items()
    other = Edit("set", name=name, value=type(value)(0))
    with pytest.raises(ForkError, match="cfg_scale or without EOS"):
        debugger.fork(record(**changes), 2, [other], reuse=True)
    assert child(record(**changes), 2, other).accepted
    assert debugger.fork(record(), 2, [Edit("set", name="logits_eos_inf", value=True)], reuse=True).instant


# What a fork inherits from forks before it.


@pytest.mark.parametrize("kind", ["commit", "hold"])
def test_a_fork_that_was_stopped_before_its_first_step_goes_on_with_what_it_hurries_or_holds(kind: str) -> None:
    parent = record()
    position = int(np.flatnonzero(parent.steps[2].committed if kind == "hold" else parent.steps[7].committed)[0])
    made = child(parent, 2, Edit(kind, position))
    assert made.steps[2].committed[position] == (kind == "commit")
    stopped = Trace(made.header, made.steps[:2])
    assert_same(Trace(made.header, tuple(debugger.steps(debugger.resume(stopped), MODEL))), made)
    for of in (made, stopped):
        assert_same(child(of, 2), made)


def test_a_branch_that_a_later_fork_left_in_front_of_it_has_no_say_any_more() -> None:
    for seed in range(6):
        parent = record(seed=seed, steps=6, block_length=4, remasking="random")
        position = int(np.flatnonzero(parent.steps[4].canvas == LETTERS.mask_id)[0])
        pinned = child(parent, 4, Edit("pin", position, int(parent.steps[5].drawn[position])))
        made = child(pinned, 2, Edit("set", name="seed", value=seed + 50))
        for stop in range(2, 6):
            stopped = Trace(made.header, made.steps[:stop])
            assert_same(Trace(made.header, tuple(debugger.steps(debugger.resume(stopped), MODEL))), made)


@pytest.mark.parametrize("name", ["entropy", "origin"])
@pytest.mark.parametrize("step", range(1, 8))
def test_every_position_is_committed_where_lladas_schedule_takes_over_from_dreams(name: str, step: int) -> None:
    parent = record(remasking=name)
    made = child(parent, step, Edit("set", name="remasking", value="low_confidence"))
    assert made.finished
    assert made.accepted
    stopped = Trace(made.header, made.steps[: min(step + 1, 7)])
    assert_same(Trace(made.header, tuple(debugger.steps(debugger.resume(stopped), MODEL))), made)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"steps": 3},
        {"block_length": 4, "steps": 4},
        {"block_length": 2, "steps": 4},
        {"remasking": "entropy", "steps": 6},
        {"remasking": "origin", "steps": 4},
        {"block_length": 2, "steps": 16, "threshold": 0.6},
    ],
)
def test_what_is_held_is_committed_by_a_later_step_and_at_the_last_step_refused(changes: dict) -> None:
    parent = record(**changes)
    last = parent.header.config.steps - 1
    for step in range(min(last, len(parent.steps))):
        chosen = [Edit("hold", int(i)) for i in np.flatnonzero(parent.steps[step].committed)]
        held = child(parent, step, *chosen)
        assert not (held.steps[step].committed & parent.steps[step].committed).any()
        assert (held.canvas != LETTERS.mask_id).all(), (step, chosen)
        for count in range(step, len(held.steps)):
            made = debugger.resume(Trace(held.header, held.steps[:count]))
            assert_same(Trace(made.header, tuple(debugger.steps(made, MODEL))), held)
            assert count == step or not differences(child(held, count).steps[-1], held.steps[-1])
    if len(parent.steps) > last:
        position = int(np.flatnonzero(parent.steps[last].canvas == LETTERS.mask_id)[0])
        with pytest.raises(ForkError, match=f"Step {last} is the last.*Hold it at an earlier step"):
            debugger.fork(parent, last, [Edit("hold", position)])


@pytest.mark.parametrize("changes", [{"threshold": 0.6}, {"remasking": "origin", "steps": 4}])
def test_a_rule_that_looks_at_each_position_alone_takes_no_other_for_one_that_is_held(changes: dict) -> None:
    cases = 0
    for seed in range(8):
        parent = record(Fake(LETTERS, seed), seed=seed, **changes)
        first = parent.steps[0].committed
        if first.sum() < 2:
            continue
        chosen, other = int(np.flatnonzero(first)[0]), int(np.flatnonzero(~first)[0]) if not first.all() else None
        held = child(parent, 0, Edit("hold", chosen), model=Fake(LETTERS, seed)).steps[0].committed
        assert np.flatnonzero(first & ~held).tolist() == [chosen]
        assert not (held & ~first).any()
        if other is not None:
            cases += 1
            taken = child(parent, 0, Edit("commit", other), model=Fake(LETTERS, seed)).steps[0].committed
            assert np.flatnonzero(taken & ~first).tolist() == [other]
            assert not (first & ~taken).any()
    assert cases


def test_a_position_that_is_hurried_and_then_pinned_is_not_committed_twice() -> None:
    parent = record()
    position, token_id = 4, int(parent.steps[-1].canvas_after[4])
    made = child(parent, 0, Edit("commit", position), Edit("pin", position, token_id))
    assert not made.steps[0].committed[position]
    assert LETTERS.mask_id not in made.canvas


def test_steps_are_read_again_with_the_settings_that_they_were_done_with() -> None:
    wider = Edit("constrain", name="regex", value="[01.]{8}")
    parent = record()
    late = int(np.flatnonzero(parent.steps[7].committed)[0])
    cooled = child(parent, 2, Edit("commit", late), Edit("set", name="temperature", value=0.5), Edit("ban", late, 2))
    cooled = trace_file.load(trace_file.dumps(cooled))
    expected, made = child(parent, 4, wider), child(cooled, 5, wider)
    for number in (0, 1):
        assert not differences(made.steps[number], expected.steps[number])
    assert made.steps[2].log_partition != pytest.approx(float(made.steps[2].log_partition_model))
    # Read again under the same constraint, a step is what it was, what hurried it included.
    same = child(cooled, 5, Edit("constrain", name="regex", value=SOURCE))
    assert same.header.automaton is not cooled.header.automaton
    for number in range(5):
        choice = {"committed_mf", "committed_mar", "filter_lifted"}
        assert not differences(same.steps[number], cooled.steps[number]) & choice
        np.testing.assert_allclose(same.steps[number].log_partition, cooled.steps[number].log_partition, atol=1e-5)
        np.testing.assert_allclose(same.steps[number].confidence_mar, cooled.steps[number].confidence_mar, atol=1e-5)


def test_a_file_whose_branch_has_settings_of_another_canvas_is_refused() -> None:
    made = child(record(), 2, Edit("set", name="seed", value=5))
    for changes in ({"length": 9}, {"steps": 4}, {"bans": ((8, 0),)}):
        before = dataclasses.replace(made.header.config, **changes)
        branches = (dataclasses.replace(made.header.branches[0], before=before),)
        broken = Trace(dataclasses.replace(made.header, branches=branches), made.steps)
        with pytest.raises(TraceError, match="contradict"):
            trace_file.load(trace_file.dumps(broken))
