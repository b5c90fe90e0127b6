"""The tree by composed moves and by dense matrices: both draw what the sparse tree draws, to the last state."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks import cases as constraints_timed
from engine import constraints, token_automaton
from engine.errors import EmptyLanguageError
from engine.inference import chain, midpoint, moves, tree
from engine.inference.potential import Potential, potential
from engine.inference.wide import to_log
from engine.vocabulary import Vocabulary
from tests import oracle
from tests.test_paths import AMBIGUOUS, LETTERS

BYTES = Vocabulary((*(bytes([b]) for b in range(128)), b"ab", b'": "', None), eos_ids=(130,), mask_id=131)


def cases(committed: float = 0.2) -> list[Potential]:
    found = []
    for seed in range(40):
        for peak in (3.0, 700.0):
            rng = np.random.default_rng([seed, int(peak)])
            length, vocab = int(rng.integers(1, 9)), int(rng.integers(2, 6))
            automaton = oracle.random_automaton(rng, int(rng.integers(1, 7)), vocab, 0.6)
            logits = oracle.random_logits(rng, length, vocab, peak)
            case = potential(logits, oracle.random_canvas(rng, length, vocab, committed), vocab, automaton)
            if case.live[1].size:
                found.append(case)
    return found


def half_run(automaton: token_automaton.TokenAutomaton, vocabulary: Vocabulary, length: int, share: float) -> Potential:
    """Commit a share of the positions of an accepted draw, at random."""
    rng = np.random.default_rng(length)
    logits = rng.normal(0.0, 3.0, (length, vocabulary.size))
    canvas = np.full(length, vocabulary.mask_id, np.int32)
    first = potential(logits, canvas, vocabulary.mask_id, automaton)
    drawn = chain.draw_tokens(first, chain.draw(first, chain.posterior(first), 0, 0), 0, 0)
    kept = rng.permutation(length)[: int(length * share)]
    canvas[kept] = drawn[kept]
    return potential(logits, canvas, vocabulary.mask_id, automaton)


def assert_same(a: midpoint.Midpoints, b: midpoint.Midpoints) -> None:
    np.testing.assert_array_equal(a.path, b.path)
    np.testing.assert_allclose(a.log_probability[1:], b.log_probability[1:], atol=1e-5)
    np.testing.assert_allclose(a.entropy[1:], b.entropy[1:], atol=1e-5)
    np.testing.assert_allclose(a.probability, b.probability, atol=1e-5)


def composed(found: Potential) -> moves.Moves:
    across = moves.compose(found, 10**9)
    assert across is not None
    return across


def products(found: Potential) -> int:
    """Count the pairs of moves that meet, from dense matrices of what is possible."""
    matrices = tree._leaves(found, tree._table(found, tree.width(found))).numpy() > -np.inf
    matrices, count = list(matrices[: found.length].astype(int)), 0
    while len(matrices) > 1:
        pairs = list(zip(matrices[0::2], matrices[1::2], strict=False))
        count += sum(int((left @ right).sum()) for left, right in pairs)
        odd = matrices[-1:] if len(matrices) % 2 else []
        count += sum(int(matrix.sum()) for matrix in odd)
        matrices = [(left @ right > 0).astype(int) for left, right in pairs] + odd
    return count


def test_matrices_of_live_states_draw_what_the_sparse_tree_draws() -> None:
    widths = set()
    for found in cases():
        posterior = chain.posterior(found)
        top = min(found.automaton.states, 4)
        drawn = tree.draw(found, 5, 0, top)
        assert_same(drawn, midpoint.draw(found, posterior, 5, 0, top))
        np.testing.assert_array_equal(tree.draw(found, 6, 0, top, drawn.path).path, drawn.path)
        widths.add(tree.width(found) < np.unique(found.live[1]).size)
    assert widths == {True, False}  # narrower than all live states together, in some


@pytest.mark.parametrize("committed", [0.0, 0.2, 0.7])
def test_composed_moves_draw_what_the_sparse_tree_draws(committed: float) -> None:
    for found in cases(committed):
        posterior, across = chain.posterior(found), composed(found)
        top = min(found.automaton.states, 4)
        for seed in range(5):
            drawn = moves.draw(found, across, seed, 0, top)
            assert_same(drawn, midpoint.draw(found, posterior, seed, 0, top))
        other = midpoint.draw(found, posterior, 9, 0, top).path
        assert_same(moves.draw(found, across, 6, 0, top, other), midpoint.draw(found, posterior, 6, 0, top, other))


@pytest.mark.parametrize("length", [147, 160])
def test_all_three_trees_of_a_function_call_are_one_as_it_fills_up(length: int) -> None:
    automaton = token_automaton.compile(constraints.read("regex", constraints_timed.function_call("f")), BYTES)
    sizes = []
    for share in (0.0, 0.25, 0.5, 0.9):
        found = half_run(automaton, BYTES, length, share)
        posterior, across = chain.posterior(found), composed(found)
        for seed in range(3):
            drawn = moves.draw(found, across, seed, 0, 8)
            assert_same(drawn, midpoint.draw(found, posterior, seed, 0, 8))
            if share:
                assert_same(drawn, tree.draw(found, seed, 0, 8))
        sizes.append(across.place.size)
    assert (np.diff(sizes) < 0).all()


def test_the_moves_across_a_span_weigh_all_paths_between_its_ends() -> None:
    for found in cases():
        across, (live_ptr, _) = composed(found), found.live
        leaves = tree._leaves(found, tree._table(found, tree.width(found)))
        for level, rows in enumerate(across.ptr):
            for begin in range(0, found.length, 1 << level):
                stop = min(begin + (1 << level), found.length)
                matrix = leaves[begin]
                for position in range(begin + 1, stop):
                    matrix = torch.logsumexp(matrix[:, :, None] + leaves[position], 1)
                expected = matrix[: np.diff(live_ptr)[begin], : np.diff(live_ptr)[stop]].numpy()
                got = np.full(expected.shape, -np.inf)
                for n in range(live_ptr[begin], live_ptr[begin + 1]):
                    row = slice(rows[n], rows[n + 1])
                    assert (np.diff(across.place[row]) > 0).all()
                    to = across.place[row] - live_ptr[stop]
                    got[n - live_ptr[begin], to] = to_log(across.mass[row], across.exponent[row])
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-9)


def test_a_run_of_committed_tokens_is_a_function_that_weighs_nothing() -> None:
    automaton = token_automaton.compile(constraints.read("regex", "[ab]{0,60}c[ab]{0,60}"), BYTES)
    canvas = np.full(64, BYTES.mask_id, np.int32)
    canvas[16:48] = ord("a")
    found = potential(np.zeros((64, BYTES.size)), canvas, BYTES.mask_id, automaton)
    across, (live_ptr, _) = composed(found), found.live
    for level, begin in ((0, 20), (4, 16), (4, 32)):
        row = across.ptr[level, live_ptr[begin] : live_ptr[begin + 1] + 1]
        assert row.size > 20
        np.testing.assert_array_equal(np.diff(row), 1)
        np.testing.assert_array_equal(across.mass[row[0] : row[-1]], 1.0)
        np.testing.assert_array_equal(across.exponent[row[0] : row[-1]], 0)


def test_a_committed_run_of_a_nondeterministic_automaton_keeps_every_path() -> None:
    canvas = np.full(8, LETTERS.mask_id, np.int32)
    canvas[2:6] = [0, 1, 0, 1]  # abab
    logits = np.zeros((8, LETTERS.size))
    logits[:, LETTERS.mask_id] = -np.inf
    found = potential(logits, canvas, LETTERS.mask_id, AMBIGUOUS)
    across, posterior, (live_ptr, live) = composed(found), chain.posterior(found), found.live
    several = 0
    for begin in (2, 4):
        for n in range(live_ptr[begin], live_ptr[begin + 1]):
            ends = [int(live[n])]
            for token in canvas[begin : begin + 2].tolist():
                ends = [int(r) for q in ends for r in AMBIGUOUS.moves(q, token)]
            row = slice(across.ptr[1, n], across.ptr[1, n + 1])
            counts = dict(zip(live[across.place[row]].tolist(), across.mass[row].tolist(), strict=True))
            alive = set(live[live_ptr[begin + 2] : live_ptr[begin + 3]].tolist())
            assert counts == {q: float(ends.count(q)) for q in ends if q in alive}
            several += len(counts) > 1
    assert several
    for seed in range(20):
        drawn = moves.draw(found, across, seed, 0, 4)
        assert_same(drawn, midpoint.draw(found, posterior, seed, 0, 4))
        assert_same(drawn, tree.draw(found, seed, 0, 4))


def test_moves_are_composed_up_to_so_many_products_and_not_with_more() -> None:
    counts = [products(found) for found in cases()]
    for found, count in zip(cases(), counts, strict=True):
        assert moves.compose(found, count)
        assert count == 0 or moves.compose(found, count - 1) is None
    assert max(counts) > 50


def test_no_moves_are_composed_where_nothing_is_accepted() -> None:
    automaton = token_automaton.compile(constraints.read("regex", "abc"), BYTES)
    found = potential(np.zeros((1, BYTES.size)), np.full(1, BYTES.mask_id, np.int32), BYTES.mask_id, automaton)
    with pytest.raises(EmptyLanguageError, match="none can be drawn"):
        moves.compose(found)


def test_the_tree_is_composed_where_that_is_little_else_dense_on_a_gpu_or_sparse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = next(case for case in cases() if tree.width(case) > 1)
    posterior = chain.posterior(found)
    expected = midpoint.draw(found, posterior, 0, 0, 1)
    used = []
    monkeypatch.setattr(tree, "draw", lambda *arguments: used.append(("dense", arguments[5])) or expected)
    monkeypatch.setattr(tree.midpoint, "draw", lambda *_: used.append("sparse") or expected)

    def draw() -> None:
        assert_same(tree.draw_where_it_pays(found, posterior, 0, 0, 1), expected)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    draw()
    assert used == []
    monkeypatch.setattr(tree.moves, "compose", lambda _: None)
    draw()
    assert used.pop() == ("dense", "cuda")
    monkeypatch.setattr(tree, "WIDEST", tree.width(found) - 1)
    draw()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(tree, "WIDEST", tree.width(found))
    draw()
    assert used == ["sparse", "sparse"]
