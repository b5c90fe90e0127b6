"""The grid of a typed-in mean field: what is typed is the model, normalised, or a mistake with its place."""

from __future__ import annotations

import numpy as np
import pytest

from app import grid
from engine.errors import ModelError
from engine.models import load


def test_what_is_typed_is_the_model_scaled_to_sum_to_one(tmp_path):
    text, found = grid.read([["a", "b", ""], ["1", "3", ""], ["0,5", "", None], ["", "", ""]], "b")
    np.testing.assert_allclose(found.mean_field[0], [[0.25, 0.75], [1.0, 0.0]])
    assert found.facts["rows_normalised"]
    assert found.vocabulary.eos_ids == (1,)
    for name in (f"table:{text}", f"table:{grid.save(text, str(tmp_path))}"):
        np.testing.assert_array_equal(load(name).mean_field, found.mean_field)
    assert not grid.read(grid.START, None)[1].facts["rows_normalised"]


def test_a_saved_grid_is_edited_as_it_was_typed(tmp_path):
    text, found = grid.read([["a", "é", "end"], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], "end")
    for name in (f"table:{text}", f"table:{grid.save(text, str(tmp_path))}"):
        rows, eos = grid.cells(name)
        assert (rows[0], eos) == (["a", "é", "end"], "end")
        np.testing.assert_allclose(grid.read(rows, eos)[1].mean_field, found.mean_field)


@pytest.mark.parametrize(
    ("rows", "eos", "said"),
    [
        ([["a", "b"], ["1", "x"]], None, "'x' for token 1 at position 0"),
        ([["a", "b"], ["1", "-1"]], None, "not a distribution"),
        ([["a", "b"], ["0", "0"], ["1", "0"]], None, "Row 0 .* only zeros"),
        ([["a", "a"], ["1", "1"]], None, "distinct"),
        ([["a", "b"], ["1", "1"]], "c", "EOS 'c'"),
        ([["a", "b"]], None, "list"),
        ([], None, "tokens"),
        ([["a"], ["nan"]], None, "not a distribution"),
    ],
)
def test_what_is_no_mean_field_is_refused_with_its_place(rows, eos, said):
    with pytest.raises(ModelError, match=said):
        grid.read(rows, eos)


def test_only_a_typed_in_model_is_edited():
    with pytest.raises(ModelError, match="no typed-in mean field"):
        grid.cells("embedded")
