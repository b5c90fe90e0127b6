"""Loading a model for the page: watched, ended half-way, chosen otherwise, and told in words."""

from __future__ import annotations

import json
import threading

import pytest

from app import loading, running
from engine import models
from engine.errors import ModelError
from engine.models.architecture import Options
from tests import checkpoints


@pytest.fixture(scope="module")
def llada(tmp_path_factory):
    return str(checkpoints.llada(tmp_path_factory.mktemp("llada")))


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(loading, "_loaded", {})
    monkeypatch.setattr(loading, "_chosen", {})
    monkeypatch.setattr(loading, "LOOK_S", 0.001)


def test_a_loading_that_is_watched_leaves_the_model_at_hand(llada):
    seen = list(loading.watched(llada))
    assert all(0 <= done <= total for done, total in seen)
    assert loading.at_hand(llada) is loading.load(llada)
    assert list(loading.watched(llada)) == list(loading.watched("embedded")) == []


def test_a_loading_that_is_left_ends_and_leaves_nothing(llada, monkeypatch):
    original, told = models.load, []
    reached, left = threading.Event(), threading.Event()

    def load(name, options, progress):
        def slow(done, total):
            told.append(done)
            if done == 3:
                reached.set()
                left.wait(60)
            progress(done, total)

        return original(name, options, slow)

    monkeypatch.setattr(models, "load", load)
    watch = loading.watched(llada)
    next(watch)
    assert reached.wait(60)
    watch.close()
    left.set()
    with loading._loading:  # the loading holds it until it ends
        assert loading.at_hand(llada) is None
    assert told[-1] == 3
    monkeypatch.setattr(models, "load", original)
    assert loading.load(llada).facts["parameters"] > 0


def test_what_is_wrong_with_a_model_is_raised_where_it_is_watched(tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json"):
        list(loading.watched(str(tmp_path)))
    assert list(running.load(str(tmp_path), "auto", "auto", False))[-1].startswith("✕ The folder")


def test_another_choice_of_device_or_type_loads_anew(llada):
    assert loading.load(llada).facts["dtype"] == "float32"
    loading.choose(llada, Options(dtype="bfloat16"))
    assert loading.at_hand(llada) is None
    half = loading.load(llada)
    assert half.facts["dtype"] == "bfloat16"
    loading.choose(llada, Options(dtype="bfloat16"))
    assert loading.at_hand(llada) is half


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"device": "cuda"}])
def test_what_the_engines_own_models_cannot_do_is_refused_and_leaves_them_as_they_are(options, tmp_path):
    table = tmp_path / "t.json"
    table.write_text(json.dumps({"tokens": ["a", "b"], "eos": None, "mean_field": [[1.0, 3.0]]}))
    for name in ("embedded", f"table:{table}"):
        before = loading.load(name)
        asked = Options(**options)
        said = list(running.load(name, asked.device, asked.dtype, False))[-1]
        assert said.startswith(f"✕ The model {name} can't be loaded with the {next(iter(options))}"), said
        assert loading.load(name).facts == before.facts


def test_facts_are_told_in_words(llada, tmp_path):
    assert running.known(llada).startswith("Not loaded yet")
    told = list(running.load(llada, "cpu", "bfloat16", True))
    assert told[0] == "Loading …"
    assert told[-1] == running.known(llada)
    for part in ("LLaDA", "M parameters", "cpu", "bfloat16", "context limit 96"):
        assert part in told[-1], told[-1]
    table = tmp_path / "t.json"
    table.write_text(json.dumps({"tokens": ["a", "b"], "eos": None, "mean_field": [[1.0, 3.0]]}))
    assert "canvas of 1, rows normalised to sum to 1" in running.known(f"table:{table}")
    assert running.known("table:nowhere").startswith("✕")
