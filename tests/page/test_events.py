"""What the page's events and public endpoints do, without a browser."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import synthetic

from app import events
from app.sessions import Runs
from engine import trace
from engine.errors import ConfigError, InputError, PatternSyntaxError, Place
from engine.trace import Config, Trace
from viz import payload

RUN = synthetic.trace(synthetic.real_number(), 8, 4)
FORM = ("", "regex", "[0-9]+", "embedded", 4, 2, 4, 1.0, "low_confidence", "mar", "midpoint", 0, "")


def values(**changes: Any) -> tuple[Any, ...]:
    return tuple(changes.get(name, value) for name, value in zip(events.FIELDS, FORM, strict=True))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    store = Runs()
    monkeypatch.setattr(events, "RUNS", store)
    return store


def test_the_store_keeps_the_runs_used_last() -> None:
    store = Runs(max_runs=3)
    added = [store.add(RUN, "me") for _ in range(3)]
    assert store.get(added[0].run_id) is added[0]
    store.add(RUN, "me")
    assert store.get(added[0].run_id) is added[0]
    assert store.get(added[1].run_id) is None
    assert len(store) == 3


def test_the_store_holds_no_more_bytes_than_allowed_and_never_drops_a_running_run() -> None:
    size = Runs().add(RUN, None).size
    store = Runs(max_bytes=int(2.5 * size))
    running = store.begin(RUN.header, "me")
    for step in RUN.steps:
        store.append(running, step)
    for _ in range(5):
        store.add(RUN, "me")
    assert store.get(running.run_id) is running
    assert store.size <= 2.5 * size


def test_a_closed_page_frees_its_own_runs_alone() -> None:
    store = Runs()
    mine, theirs, example = (store.add(RUN, owner) for owner in ("me", "them", None))
    store.free("me")
    store.free(None)
    assert store.get(mine.run_id) is None
    assert store.get(theirs.run_id) is theirs
    assert store.get(example.run_id) is example


@pytest.mark.parametrize(
    "asked",
    [
        None,
        3,
        [],
        "x",
        {},
        {"run": None},
        {"run": 3},
        {"run": ["x"]},
        {"run": "../../etc/passwd"},
        {"run": "example:../x"},
    ],
)
def test_endpoints_answer_nonsense_with_a_refusal(asked: object) -> None:
    for endpoint in (events.get_run, events.get_steps, events.get_detail, events.get_window):
        assert endpoint(asked) == {"error": "gone"}


@pytest.mark.parametrize("number", [-1, 10**9, None, "1", 1.5, True])
def test_endpoints_take_any_number_without_failing(runs: Runs, number: object) -> None:
    run_id = runs.add(RUN, "me").run_id
    events.get_steps({"run": run_id, "first": number})
    events.get_detail({"run": run_id, "first": number, "count": number})
    assert events.get_window({"run": run_id, "state": number})["states"]


def test_steps_come_in_parts_that_follow_each_other(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STEPS_AT_ONCE", 3)
    run_id = runs.add(RUN, "me").run_id
    first = events.get_steps({"run": run_id, "first": 0})
    second = events.get_steps({"run": run_id, "first": 3})
    assert (first["count"], first["more"], second["count"], second["more"]) == (3, True, 1, False)
    assert payload.unpack(second)["canvas"].tolist() == [RUN.steps[3].canvas.tolist()]
    assert events.get_steps({"run": run_id, "first": 4}) == {
        "status": "finished",
        "more": False,
        "first": 4,
        "count": 0,
    }


def test_the_form_and_a_configuration_are_the_same_thing() -> None:
    for config in (
        Config("p", "regex", "[a]", length=4, steps=2, block_length=4, seed=7, temperature=0.5),
        Config("", "choices", ("a", "b c"), length=4, steps=2, block_length=4),
        Config("", None, None, length=4, steps=2, block_length=4),
    ):
        assert events.read_form(events.form_of(config, RUN.header.vocabulary)) == (config, [])


def test_pins_are_shown_as_they_are_written() -> None:
    config = Config("", None, None, length=4, steps=2, block_length=4, pins=((0, 1), (2, 3)))
    vocabulary = RUN.header.vocabulary
    written = [f"{i}={(vocabulary.written(v) or b'').decode()}" for i, v in config.pins]
    again, pins = events.read_form(events.form_of(config, vocabulary))
    assert (again, pins) == (dataclasses.replace(config, pins=()), written)


def test_a_pin_that_contradicts_the_constraint_is_said_and_the_shown_run_stays(runs: Runs) -> None:
    shown = events.view(None, a=runs.add(RUN, "me").run_id)
    after = last(events.run(shown, "me", *values(source="[0-9]+", pins="0=a")))
    assert after["a"] == shown["a"]
    assert "position 0" in after["message"]["problem"]
    after = last(events.run(shown, "me", *values(pins="nowhere")))
    assert "POSITION=TEXT" in after["message"]["remedy"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("length", None, "The length is empty"),
        ("seed", 1.5, "The seed is 1.5"),
        ("temperature", None, "temperature is empty"),
    ],
)
def test_a_field_that_holds_no_number_is_said(field: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        events.read_form(values(**{field: value}))


def test_a_message_says_where_and_what_to_do() -> None:
    said = events.message(PatternSyntaxError("Bad.", "Mend it.", Place("ab\ncd(", 5, 6)))
    assert said == {"problem": "Bad.", "remedy": "Mend it.", "frame": "  cd(\n    ^", "line": 2, "column": 3}


def last(made: Any) -> events.View:
    *_, view = made
    json.dumps(view, allow_nan=False)
    return view


def test_a_mistake_leaves_what_is_shown(runs: Runs) -> None:
    before = events.view(None, a=runs.add(RUN, "me").run_id)
    after = last(events.run(before, "me", *values(length=0)))
    assert after["a"] == before["a"]
    assert after["running"] is None
    assert "length" in after["message"]["problem"]


def test_a_run_that_becomes_impossible_is_kept_up_to_there(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, table: Callable[..., str]
) -> None:
    from engine import decode

    whole = decode.denoise

    def breaks(*given: Any) -> Any:
        steps = whole(*given)
        yield next(steps)
        raise InputError("No way on.", "Go back.")

    monkeypatch.setattr(decode, "denoise", breaks)
    model = table([[0.1] * 10 + [0.1]] * 4)
    after = last(events.run(None, "me", *values(model=model)))
    assert after["message"]["problem"] == "No way on."
    kept = runs.get(after["a"])
    assert kept is not None
    assert (kept.status, len(kept.steps)) == ("failed", 1)


def test_a_second_run_changes_one_thing(runs: Runs, table: Callable[..., str]) -> None:
    first = last(events.run(None, "me", *values(model=table([[0.1] * 10 + [0.1]] * 4))))
    for words, change in events.BESIDE.items():
        both = last(events.run_beside(first, "me", words))
        assert both["a"] == first["a"]
        one, other = (vars(runs.get(both[side]).header.config) for side in ("a", "b"))  # type: ignore[union-attr]
        different = {name for name in one if one[name] != other[name]}
        expected = {"confidence": {"confidence"}, "seed": {"seed"}, "map": {"sampler", "temperature"}}
        assert different == expected.get(change, {"sampler"})


def test_a_stop_ends_the_run_after_its_step(runs: Runs, table: Callable[..., str]) -> None:
    steps = events.run(None, "me", *values(model=table([[0.1] * 10 + [0.1]] * 4)))
    next(steps)
    now = next(steps)
    assert events.stop(now, "another")["running"] is None
    assert runs.get(now["running"]).status == "running"  # type: ignore[union-attr]
    events.stop(now, "me")
    assert runs.get(now["running"]).status == "stopped"  # type: ignore[union-attr]
    assert list(steps) == []


@pytest.mark.parametrize("kept", [0, 20, 300])
def test_a_damaged_upload_is_a_message(runs: Runs, tmp_path: Path, kept: int) -> None:
    file = tmp_path / "x.trace"
    file.write_bytes(trace.dumps(RUN)[:kept])
    after = events.open_trace(None, "me", str(file))
    assert after["message"]["problem"]
    assert after["a"] is None


@pytest.mark.parametrize(
    "changes",
    [{"prompt": 3}, {"source": 5}, {"source": ("a", None)}, {"model": "\ud800"}, {"seed": "x"}, {"sampler": ["x"]}],
)
def test_an_upload_with_words_of_the_wrong_type_is_refused(runs: Runs, tmp_path: Path, changes: dict[str, Any]) -> None:
    header = dataclasses.replace(RUN.header, config=dataclasses.replace(RUN.header.config, **changes))
    trace.save(Trace(header, RUN.steps), tmp_path / "x.trace")
    after = events.open_trace(None, "me", str(tmp_path / "x.trace"))
    assert "wrong type" in after["message"]["problem"]
    assert len(runs) == 0


def test_an_upload_of_too_many_cells_is_refused(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "CELLS", 31)
    trace.save(Trace(RUN.header, RUN.steps), tmp_path / "x.trace")
    after = events.open_trace(None, "me", str(tmp_path / "x.trace"))
    assert "8 positions and 4 steps" in after["message"]["problem"]
