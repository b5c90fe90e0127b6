"""What the page's events and public endpoints do, without a browser."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

from app import checking, endpoints, events, form, running, sessions, views
from app.sessions import Runs
from engine import trace_file
from engine.errors import ConfigError, InputError, PatternSyntaxError, Place
from engine.trace import Config, Trace
from viz import payload

RUN = synthetic.trace(synthetic.real_number(), 8, 4)
FORM = ("", "regex", "[0-9]+", "embedded", 4, 2, 4, 1.0, "low_confidence", "mar", "midpoint", 0, "")
TOOLS = '[{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}}]'
SETTINGS = tuple(form.DEFAULTS[name] for name in form.SETTINGS)
OPTIONS = tuple(option.default for option in form.OPTIONS.values())


def values(**changes: Any) -> tuple[Any, ...]:
    return tuple(changes.get(name, value) for name, value in zip(form.FIELDS, FORM + SETTINGS + OPTIONS, strict=True))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    store = Runs()
    monkeypatch.setattr(sessions, "RUNS", store)
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
    for endpoint in (endpoints.get_run, endpoints.get_steps, endpoints.get_detail, endpoints.get_window):
        assert endpoint(asked) == {"error": "gone"}


@pytest.mark.parametrize("number", [-1, 10**9, None, "1", 1.5, True])
def test_endpoints_take_any_number_without_failing(runs: Runs, number: object) -> None:
    run_id = runs.add(RUN, "me").run_id
    endpoints.get_steps({"run": run_id, "first": number})
    endpoints.get_detail({"run": run_id, "first": number, "count": number})
    assert endpoints.get_window({"run": run_id, "state": number, "farthest": number})["boxes"]
    assert endpoints.get_window({"run": run_id, "group": number})["boxes"]


def test_steps_come_in_parts_that_follow_each_other(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "STEPS_AT_ONCE", 3)
    run_id = runs.add(RUN, "me").run_id
    first = endpoints.get_steps({"run": run_id, "first": 0})
    second = endpoints.get_steps({"run": run_id, "first": 3})
    assert (first["count"], first["more"], second["count"], second["more"]) == (3, True, 1, False)
    assert payload.unpack(second)["canvas"].tolist() == [RUN.steps[3].canvas.tolist()]
    assert endpoints.get_steps({"run": run_id, "first": 4}) == {
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
        Config("", None, None, top_p=0.5, top_k=7, remasking="entropy", alg_temp=0.1, cfg_scale=1.5, path_tries=0),
        Config("", None, None, threshold=0.9, reject_budget=3, logits_eos_inf=True, upstream_bugs=True),
        Config("", "tools", TOOLS, reading=(("call_syntax", "python"), ("format_assertion", False))),
        Config("", "grammar", "start: start", reading=(("depth", 9),)),
    ):
        assert form.read_form(form.form_of(config, RUN.header.vocabulary)) == (config, [])


def test_a_run_is_read_with_the_options_of_its_own_kind_alone() -> None:
    chosen = {"call_syntax": "python", "depth": 7, "plain_integers": True}
    for kind, source, reading in (
        ("regex", "[a]", ()),
        ("grammar", "start: A\nA: /a/", (("depth", 7),)),
        ("tools", TOOLS, (("call_syntax", "python"), ("depth", 7))),
        ("json_schema", "{}", (("depth", 7), ("plain_integers", True))),
    ):
        config, _ = form.read_form(values(kind=kind, source=source, **chosen))
        assert config.reading == reading
        told = checking.check(values(kind=kind, source=source, length=64, block_length=64, **chosen))
        assert told["constraint"]["reading"] == [list(pair) for pair in reading]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("depth", None, "recursion depth is empty"),
        ("depth", 2.5, "recursion depth is 2.5"),
        ("depth", 101, "depth is 101"),
        ("call_syntax", "xml", "Call syntax can't be"),
    ],
)
def test_an_option_that_can_not_be_is_said_beside_the_constraint(option: str, value: object, said: str) -> None:
    (finding,) = checking.check(values(kind="tools", source=TOOLS, **{option: value}))["findings"]
    assert said in finding["message"]
    assert finding["severity"] == "error"


def test_options_in_a_file_that_no_field_can_show_leave_the_form_as_it_opens() -> None:
    config = Config("", "tools", TOOLS, reading=(("call_syntax", "xml"), ("depth", "7"), ("nonsense", True)))
    assert form.form_of(config, RUN.header.vocabulary)[-len(OPTIONS) :] == OPTIONS


def test_pins_are_shown_as_they_are_written() -> None:
    config = Config("", None, None, length=4, steps=2, block_length=4, pins=((0, 1), (2, 3)))
    vocabulary = RUN.header.vocabulary
    written = [f"{i}={(vocabulary.written(v) or b'').decode()}" for i, v in config.pins]
    again, pins = form.read_form(form.form_of(config, vocabulary))
    assert (again, pins) == (dataclasses.replace(config, pins=()), written)


def test_a_pin_that_contradicts_the_constraint_is_said_and_the_shown_run_stays(runs: Runs) -> None:
    shown = views.view(None, a=runs.add(RUN, "me").run_id)
    after = last(running.run(shown, "me", *values(source="[0-9]+", pins="0=a")))
    assert after["a"] == shown["a"]
    assert "position 0" in after["message"]["problem"]
    after = last(running.run(shown, "me", *values(pins="nowhere")))
    assert "POSITION=TEXT" in after["message"]["remedy"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("length", None, "The length is empty"),
        ("seed", 1.5, "The seed is 1.5"),
        ("temperature", None, "temperature is empty"),
        ("top_k", "1.5", "The top k is 1.5"),
        ("threshold", "high", "The threshold can't be 'high'"),
    ],
)
def test_a_field_that_holds_no_number_is_said(field: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        form.read_form(values(**{field: value}))


def test_a_message_says_where_and_what_to_do() -> None:
    said = endpoints.message(PatternSyntaxError("Bad.", "Mend it.", Place("ab\ncd(", 5, 6)))
    assert said == {
        "problem": "Bad.",
        "remedy": "Mend it.",
        "frame": "  cd(\n    ^",
        "line": 2,
        "column": 3,
        "positions": [],
    }


def last(made: Any) -> views.View:
    *_, view = made
    json.dumps(view, allow_nan=False)
    return view


def test_a_mistake_leaves_what_is_shown(runs: Runs) -> None:
    before = views.view(None, a=runs.add(RUN, "me").run_id)
    after = last(running.run(before, "me", *values(length=0)))
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
    after = last(running.run(None, "me", *values(model=model)))
    assert after["message"]["problem"] == "No way on."
    kept = runs.get(after["a"])
    assert kept is not None
    assert (kept.status, len(kept.steps)) == ("failed", 1)


def test_a_second_run_changes_one_thing(runs: Runs, table: Callable[..., str]) -> None:
    first = last(running.run(None, "me", *values(model=table([[0.1] * 10 + [0.1]] * 4))))
    for words, change in running.BESIDE.items():
        both = last(running.run_beside(first, "me", words))
        assert both["a"] == first["a"]
        one, other = (vars(runs.get(both[side]).header.config) for side in ("a", "b"))  # type: ignore[union-attr]
        different = {name for name in one if one[name] != other[name]}
        expected = {"confidence": {"confidence"}, "seed": {"seed"}, "map": {"sampler", "temperature"}}
        assert different == expected.get(change, {"sampler"})


def test_a_stop_ends_the_run_after_its_step(runs: Runs, table: Callable[..., str]) -> None:
    steps = running.run(None, "me", *values(model=table([[0.1] * 10 + [0.1]] * 4)))
    next(steps)
    now = next(steps)
    assert running.stop(now, "another")["running"] is None
    assert runs.get(now["running"]).status == "running"  # type: ignore[union-attr]
    running.stop(now, "me")
    assert runs.get(now["running"]).status == "stopped"  # type: ignore[union-attr]
    assert list(steps) == []


@pytest.mark.parametrize("kept", [0, 20, 300])
def test_a_damaged_upload_is_a_message(runs: Runs, tmp_path: Path, kept: int) -> None:
    file = tmp_path / "x.trace"
    file.write_bytes(trace_file.dumps(RUN)[:kept])
    after = events.open_trace(None, "me", str(file))
    assert after["message"]["problem"]
    assert after["a"] is None


@pytest.mark.parametrize(
    "changes",
    [{"prompt": 3}, {"source": 5}, {"source": ("a", None)}, {"model": "\ud800"}, {"seed": "x"}, {"sampler": ["x"]}],
)
def test_an_upload_with_words_of_the_wrong_type_is_refused(runs: Runs, tmp_path: Path, changes: dict[str, Any]) -> None:
    header = dataclasses.replace(RUN.header, config=dataclasses.replace(RUN.header.config, **changes))
    trace_file.save(Trace(header, RUN.steps), tmp_path / "x.trace")
    after = events.open_trace(None, "me", str(tmp_path / "x.trace"))
    assert "The header of this trace is not complete (TypeError" in after["message"]["problem"]
    assert len(runs) == 0


def test_an_upload_of_too_many_cells_is_refused(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "CELLS", 31)
    trace_file.save(Trace(RUN.header, RUN.steps), tmp_path / "x.trace")
    after = events.open_trace(None, "me", str(tmp_path / "x.trace"))
    assert "8 positions and 4 steps" in after["message"]["problem"]


def begun(table: Callable[..., str], **changes: Any) -> views.View:
    model = table([[0.1] * 10 + [0.1]] * 4)
    return last(running.run(None, "me", *values(model=model, steps=4, source=r"[0-9]+(\.[0-9]+)?", **changes)))


def test_a_fork_is_a_child_beside_its_parent_which_stays_as_it_was(runs: Runs, table: Callable[..., str]) -> None:
    first = begun(table)
    parent = runs.get(first["a"])
    assert parent is not None
    before = trace_file.dumps(parent.trace)
    position = int(parent.steps[2].canvas.tolist().index(parent.header.vocabulary.mask_id))
    asked = {"run": first["a"], "step": 2, "edits": [{"kind": "pin", "position": position, "text": "7"}]}
    both = last(running.fork(first, "me", asked))
    child = runs.get(both["b"])
    assert child is not None
    assert (both["a"], both["at"], child.parent) == (first["a"], None, first["a"])
    assert child.trace.finished
    assert child.trace.text[position] == "7"
    assert trace_file.dumps(parent.trace) == before
    assert both["runs"][-1]["parent"] == first["a"]
    assert both["runs"][-1]["what"] == f"pin '7' at {position}"


def test_an_instant_fork_stops_in_front_of_the_model_and_goes_on(runs: Runs, table: Callable[..., str]) -> None:
    first = begun(table)
    asked = {"run": first["a"], "step": 1, "edits": [{"kind": "set", "name": "seed", "value": 9}], "instant": True}
    both = last(running.fork(first, "me", asked))
    child = runs.get(both["b"])
    assert child is not None
    assert (child.status, len(child.steps)) == ("stopped", 2)
    after = last(running.go_on(both, "me", both["b"]))
    assert (child.status, len(child.steps), after["running"]) == ("finished", 4, None)
    assert last(running.go_on(after, "another", both["b"]))["message"]
    assert "all its 4 steps" in last(running.go_on(after, "me", both["b"]))["message"]["problem"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"step": None, "edits": []}, "no step None"),
        ({"step": True, "edits": []}, "no step True"),
        ({"step": 99, "edits": []}, "no step 99"),
        ({"step": 0, "edits": "x"}, "a list"),
        ({"step": 0, "edits": [3]}, "a list"),
        ({"step": 0, "edits": [{"kind": "pin", "position": "x", "text": "1"}]}, "no position 'x'"),
        ({"step": 0, "edits": [{"kind": "pin", "position": [1], "token_id": 1}]}, "no position"),
        ({"step": 0, "edits": [{"kind": {}}]}, "no edit"),
        ({"step": 0, "edits": [{"kind": "set", "name": [1], "value": 1}]}, "can't set"),
        ({"step": 0, "edits": [{"kind": "constrain", "name": "regex", "value": "("}]}, "can't be read"),
        ({"step": 0, "edits": [{"kind": "constrain", "name": {}, "value": 3}]}, "no constraint kind"),
    ],
)
def test_a_fork_that_can_not_be_is_a_message(
    runs: Runs, table: Callable[..., str], asked: dict[str, Any], said: str
) -> None:
    first = begun(table)
    after = last(running.fork(first, "me", {"run": first["a"], **asked}))
    assert said in after["message"]["problem"]
    assert (after["a"], after["b"]) == (first["a"], None)


def test_a_fork_that_contradicts_the_constraint_names_its_pins(runs: Runs, table: Callable[..., str]) -> None:
    first = begun(table)
    pins = [{"kind": "pin", "position": i, "text": "."} for i in (0, 2)]
    said = last(running.fork(first, "me", {"run": first["a"], "step": 0, "edits": pins}))["message"]
    assert said["positions"] in ([0], [0, 2])
    assert last(running.fork(first, "me", {"run": "nowhere", "step": 0, "edits": []}))["message"]


def test_a_run_pauses_at_a_breakpoint_and_goes_on(runs: Runs, table: Callable[..., str]) -> None:
    now = running.set_breaks(None, ["step == 1", "nonsense ==", 7])
    assert now["breaks"] == ["step == 1", "nonsense =="]
    model = table([[0.1] * 10 + [0.1]] * 4)
    paused = last(running.run(now, "me", *values(model=model, steps=4)))
    made = runs.get(paused["a"])
    assert made is not None
    assert (made.status, len(made.steps)) == ("paused", 2)
    assert paused["paused"] == {"run": paused["a"], "step": 1, "position": None}
    after = last(running.go_on(paused, "me", paused["a"]))
    assert (made.status, len(made.steps), after["paused"]) == ("finished", 4, None)
    whole = last(running.run(None, "me", *values(model=model, steps=4)))
    assert runs.get(whole["a"]).trace.fingerprint == made.trace.fingerprint  # type: ignore[union-attr]


def test_hits_and_comparisons_are_answers(runs: Runs, table: Callable[..., str]) -> None:
    first = begun(table)
    assert endpoints.get_hits({"run": first["a"], "text": "step == 2"}) == {"hits": [[2, -1]], "count": 4}
    assert len(endpoints.get_hits({"run": first["a"], "text": "commit"})["hits"]) == 4
    mistake = endpoints.get_hits({"run": first["a"], "text": "kl >"})
    assert (mistake["error"], mistake["column"]) == ("mistake", 5)
    for nonsense in (None, 3, [], {"a": 1}):
        assert endpoints.get_hits({"run": first["a"], "text": nonsense})["error"] == "mistake"
        assert endpoints.get_comparison({"run": first["a"], "other": nonsense}) == {"error": "gone"}
    both = last(running.run_beside(first, "me", "Another seed"))
    answer = endpoints.get_comparison({"run": both["a"], "other": both["b"]})
    json.dumps(answer, allow_nan=False)
    assert answer["changed"] == {"seed": [0, 1]}
    other = runs.add(RUN, "me").run_id
    assert "can't be aligned" in endpoints.get_comparison({"run": first["a"], "other": other})["problem"]


def test_findings_fronts_and_remedies_are_answers(runs: Runs, table: Callable[..., str]) -> None:
    first = begun(table)
    answer = endpoints.get_findings({"run": first["a"]})
    json.dumps(answer, allow_nan=False)
    assert isinstance(answer["findings"], list)
    made = runs.get(first["a"])
    assert made is not None
    for number in (0, 3, 99, "x"):
        fronts = payload.unpack(endpoints.get_fronts({"run": first["a"], "step": number}))
        step = made.steps[min(number, 3) if isinstance(number, int) else 0]
        both = np.unpackbits(fronts["forward"] & fronts["backward"], axis=1)
        assert np.array_equal(both, np.unpackbits(step.live, axis=1)), "live is what both reach"
    both = last(running.remedy(first, "me", {"run": first["a"], "changes": {"seed": 5}}))
    assert runs.get(both["b"]).header.config.seed == 5  # type: ignore[union-attr]
    for changes in ({"nonsense": 1}, None, {"length": "x"}):
        assert last(running.remedy(first, "me", {"run": first["a"], "changes": changes}))["message"]


@pytest.mark.parametrize(("sampler", "exact"), [("chain", True), ("midpoint", True), ("independent", False)])
def test_many_draws_of_a_step_tell_an_exact_sampler_from_another(runs: Runs, sampler: str, exact: bool) -> None:
    recorded = sessions.find("example:right-marginals")
    assert recorded is not None
    made = recorded.trace
    config = dataclasses.replace(made.header.config, sampler=sampler)
    made = dataclasses.replace(made, header=dataclasses.replace(made.header, config=config))
    answer = endpoints.get_exactness({"run": runs.add(made, "me").run_id, "step": 0})
    json.dumps(answer, allow_nan=False)
    cells = payload.unpack(answer)
    assert (answer["exact"], answer["accepted"] == answer["draws"] == endpoints.DRAWS) == (exact, exact)
    outside = (cells["observed"] < cells["low"]) | (cells["observed"] > cells["high"])
    assert outside.sum() == answer["outside"]
    away = np.abs(cells["observed"] - cells["expected"])
    assert away[answer["largest"]] == away.max()
    assert set(answer["tokens"]) | set(answer["special"]) == {str(v) for v in cells["token_id"] if v >= 0}


def test_a_step_that_can_not_be_drawn_again_is_said(runs: Runs) -> None:
    answer = endpoints.get_exactness({"run": runs.add(RUN, "me").run_id})
    assert "does not keep this step's mean field" in answer["problem"]
    best = dataclasses.replace(RUN.header, config=dataclasses.replace(RUN.header.config, sampler="map"))
    answer = endpoints.get_exactness({"run": runs.add(dataclasses.replace(RUN, header=best), "me").run_id})
    assert "no sampler 'map' to measure" in answer["problem"]
    assert endpoints.get_exactness({"run": "nothing"}) == {"error": "gone"}
