"""What committed positions forbid, against listing all sequences."""

from __future__ import annotations

import itertools

import fake
import numpy as np
import oracle
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from engine import constraints, token_automaton
from engine.decode import denoise
from engine.diagnosis import conflict
from engine.diagnosis.conflict import Canvas
from engine.trace import Config, Header, Trace

VOCAB = 4


@st.composite
def canvases(draw) -> Canvas:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    automaton = oracle.random_automaton(rng, draw(st.integers(1, 6)), VOCAB, draw(st.sampled_from((0.3, 0.5, 0.8))))
    ids = oracle.random_canvas(rng, draw(st.integers(1, 5)), VOCAB, draw(st.sampled_from((0.3, 0.7, 1.0))))
    return conflict.canvas_of(automaton, ids, VOCAB)


def accepted(canvas: Canvas) -> list[tuple[int, ...]]:
    return [x for x in itertools.product(range(VOCAB), repeat=canvas.length) if canvas.automaton.accepts(x)]


def agrees(x: tuple[int, ...], canvas: Canvas, positions: list[int]) -> bool:
    return all(x[i] == canvas.token_ids[i] for i in positions)


def possible(canvas: Canvas, positions: list[int]) -> bool:
    return any(agrees(x, canvas, positions) for x in accepted(canvas))


@given(canvases())
def test_a_canvas_is_completable_exactly_where_some_accepted_sequence_agrees(canvas: Canvas) -> None:
    assert conflict.completable(canvas) == possible(canvas, np.flatnonzero(canvas.committed).tolist())


@given(canvases())
def test_a_minimal_conflict_is_impossible_and_without_any_one_of_it_possible(canvas: Canvas) -> None:
    found = list(conflict.minimal_conflict(canvas))
    if not accepted(canvas) or conflict.completable(canvas):
        assert found == []
        return
    assert set(found) <= set(np.flatnonzero(canvas.committed))
    assert not possible(canvas, found)
    for i in found:
        assert possible(canvas, [j for j in found if j != i])


@given(canvases())
def test_a_token_is_impossible_alone_exactly_where_no_accepted_sequence_has_it_there(canvas: Canvas) -> None:
    found = conflict.impossible_alone(canvas)
    for i in range(canvas.length):
        assert found[i] == (canvas.committed[i] and not possible(canvas, [i]))


@given(canvases(), st.integers(0, 10**6))
def test_the_nearest_accepted_sequence_changes_the_fewest_and_then_the_least_believed(
    canvas: Canvas, seed: int
) -> None:
    automaton, length = canvas.automaton, canvas.length
    log_mass = np.log(np.random.default_rng(seed).dirichlet(np.ones(automaton.classes), length))
    first = np.append(automaton.edges.class_tokens, 0)[automaton.edges.class_tokens_ptr[:-1]]
    found = conflict.nearest(canvas, log_mass, np.tile(first, (length, 1)))

    def cost(x: tuple[int, ...]) -> tuple[int, float]:
        changed = [i for i in range(length) if canvas.committed[i] and x[i] != canvas.token_ids[i]]
        free = [i for i in range(length) if not canvas.committed[i]] + changed
        return len(changed), -sum(log_mass[i, automaton.token_class[x[i]]] for i in free)

    if not accepted(canvas):
        assert found is None
        return
    assert found is not None
    assert automaton.accepts(found.token_ids.tolist())
    assert found.changed.tolist() == ((found.token_ids != canvas.token_ids) & canvas.committed).tolist()
    best, ours = min(map(cost, accepted(canvas))), cost(tuple(found.token_ids.tolist()))
    assert ours[0] == best[0]
    # A changed position of the committed token's own class would have been kept.
    assert ours[1] == pytest.approx(best[1], abs=1e-9)


@given(canvases())
def test_the_gap_is_where_the_two_fronts_do_not_meet(canvas: Canvas) -> None:
    forward, backward = conflict.fronts(canvas)
    meets = (forward & backward).any(axis=1)
    assert meets.all() == meets.any() == conflict.completable(canvas)


def test_both_dots_of_a_real_number_of_two_characters_are_the_conflict() -> None:
    vocabulary, automaton = synthetic.real_number(eos=False)
    canvas = conflict.canvas_of(automaton, np.asarray([10, 10], np.int32), vocabulary.mask_id)
    assert conflict.minimal_conflict(canvas) == (0, 1)
    assert not conflict.impossible_alone(canvas).any(), "each dot alone has a completion"


def test_a_conflict_leaves_out_commits_that_have_nothing_to_do_with_it() -> None:
    vocabulary, automaton = synthetic.real_number(eos=False)
    mask = vocabulary.mask_id
    canvas = conflict.canvas_of(automaton, np.asarray([3, mask, 10, 4, mask, 10, 7], np.int32), mask)
    assert conflict.minimal_conflict(canvas) == (2, 5)


def independent_run(seed: int, length: int = 6) -> Trace:
    vocabulary = fake.characters("01.")
    automaton = token_automaton.compile(constraints.read("regex", r"[01]+(\.[01]*)?|\.[01]+"), vocabulary)
    config = Config("", "regex", "", length=length, steps=length, block_length=length, temperature=1.0, seed=seed)
    config = Config(**{**config.__dict__, "sampler": "independent"})
    model = fake.Fake(vocabulary, seed)
    header = Header(config, model.facts, vocabulary, automaton)
    return Trace(header, tuple(denoise(model, automaton, config)))


@pytest.mark.parametrize("seed", range(12))
def test_the_point_of_no_return_is_the_first_step_after_which_nothing_accepted_agrees(seed: int) -> None:
    run = independent_run(seed)
    automaton, vocabulary = run.header.automaton, run.header.vocabulary
    words = [x for x in itertools.product(range(vocabulary.size), repeat=6) if automaton.accepts(x)]

    def alive(canvas: np.ndarray) -> bool:
        return any(all(v in (w, vocabulary.mask_id) for v, w in zip(canvas.tolist(), x, strict=True)) for x in words)

    expected = next((t for t, step in enumerate(run.steps) if not alive(step.canvas_after)), None)
    assert conflict.point_of_no_return(run) == expected
    if not (run.canvas == vocabulary.mask_id).any():  # this model may draw the mask itself
        assert (expected is None) == run.accepted


def test_some_of_those_runs_fail_and_some_do_not() -> None:
    assert {conflict.point_of_no_return(independent_run(seed)) is None for seed in range(12)} == {True, False}
