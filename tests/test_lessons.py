"""The lessons: every number on them is the engine's, and the engine's is the right one."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import shutil
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

from app import endpoints as app_endpoints
from app import sessions
from app.lessons import endpoints, recipes, scenes, seeds, texts
from engine.errors import ConfigError, InputError
from tests import oracle

LESSONS = {lesson.name: lesson for lesson in texts.lessons()}
P = (0.05, 0.35, 0.5, 0.9, 0.95)


def numbers(scene: str, **controls: Any) -> dict[str, Any]:
    return dict(scenes.SCENES[scene](controls).numbers)


def enumerated(config: Any) -> oracle.Oracle:
    """Every accepted text of a recipe, with its probability."""
    trace = recipes.recorded(config)
    head, record = trace.header, trace.steps[0]
    logits = np.zeros((config.length, head.vocabulary.size))
    logits[record.canvas == head.vocabulary.mask_id] = record.log_mean_field
    return oracle.enumerate_all(logits, record.canvas, head.vocabulary.mask_id, head.automaton)


def test_the_numbers_of_the_first_lessons_are_these() -> None:
    at_nine = numbers("marginals", p=0.9, how="together")
    assert at_nine["z"] == pytest.approx(0.19, abs=1e-9)
    assert round(at_nine["q dot"], 3) == 0.474
    assert round(at_nine["q digit"], 3) == 0.053
    assert round(100 * at_nine["wrong"], 1) == 22.4
    assert round(100 * at_nine["wrong at half"], 1) == 11.1
    assert 24 < 100 * at_nine["wrong at most"] < 25
    assert at_nine["favourites"] == ".."
    assert numbers("model", p=0.5)["z"] == pytest.approx(0.75, abs=1e-9)
    assert [numbers("midpoints", length=8)[f"rounds {n}"] for n in (8, 64, 256)] == [3, 6, 8]
    assert [numbers("walk", text="3.")[name] for name in ("good", "all")] == [120, 121]


@pytest.mark.parametrize("p", P)
def test_marginals_and_z_are_those_of_listing_all_texts(p: float) -> None:
    truth, found = enumerated(scenes.reals(p)), numbers("marginals", p=p, how="apart")
    assert found["z"] == pytest.approx(math.exp(truth.log_partition), rel=1e-6)
    q = np.exp(truth.log_marginals())
    assert [found["q dot"], found["q digit"]] == pytest.approx([q[0, -1], q[0, 0]], rel=1e-5)
    assert found["wrong"] == pytest.approx(q[0, -1] * q[1, -1], rel=1e-5)
    text = {"d": [*"0123456789"], ".": ["."]}
    for shape in scenes.SHAPES:
        ids = [tuple(scenes.SYMBOLS.index(c) for c in pair) for pair in itertools.product(*(text[c] for c in shape))]
        chance = dict(zip(truth.sequences, truth.probabilities, strict=True))
        assert found[f"joint {shape}"] == pytest.approx(sum(chance.get(x, 0.0) for x in ids), abs=1e-6)
        z = scenes.partition(recipes.config(re.escape(shape).replace("d", "[0-9]"), scenes.reals(p).model, 2))
        assert found[f"free {shape}"] == pytest.approx(z, rel=1e-6), "the engine's Z of the shape alone"


@pytest.mark.parametrize("p", P)
def test_the_first_character_decides_what_is_left_of_the_second(p: float) -> None:
    found = numbers("memory", p=p, first="")
    for name, config in (("after dot", scenes.pinned(p, ".")), ("after digit", scenes.pinned(p, "3"))):
        assert found[name] == pytest.approx(np.exp(enumerated(config).log_marginals())[1, -1], abs=1e-6)
    assert found["after dot"] == 0.0, "impossible, not improbable"


@pytest.mark.parametrize("length", [1, 2, 4, 8, 16])
def test_messages_multiply_to_the_same_z_at_every_boundary(length: int) -> None:
    found = numbers("meet", p=0.9, length=length, certain="")
    for boundary in range(length + 1):
        assert found[f"sum {boundary}"] == pytest.approx(found["z"], rel=1e-6)
    if length <= 4:
        assert found["log z"] == pytest.approx(enumerated(scenes.reals(0.9, length)).log_partition, abs=1e-6)


@pytest.mark.parametrize(("certain", "length", "z"), [("last", 1, 0.0), ("ends", 8, 0.0), ("last", 2, 0.1)])
def test_certain_dots_leave_what_the_rule_leaves_and_the_fronts_miss_where_that_is_nothing(
    certain: str, length: int, z: float
) -> None:
    scene = scenes.meet({"p": 0.9, "length": length, "certain": certain})
    assert scene.numbers["z"] == pytest.approx(z, abs=1e-6)
    assert ("Z is 0" in scene.said) == (z == 0)
    messages = app_endpoints.get_messages({"run": scene.runs[0]})["steps"][0]
    forward, backward = np.asarray(messages["forward"]), np.asarray(messages["backward"])
    assert ((forward * backward).sum(axis=1) > 0).all() == (z > 0)
    assert forward[0].any(), "the start is reached"
    assert backward[-1].any(), "acceptance is"
    if certain == "ends":
        # A dot, then digits: the draws come as far as the second dot, which they cannot write.
        assert np.flatnonzero(forward.any(axis=1)).tolist() == list(range(length))
        assert np.flatnonzero(backward.any(axis=1)).tolist() == list(range(1, length + 1))


@pytest.mark.parametrize("length", [8, 64, 256])
def test_tree_and_chain_give_a_path_the_same_probability(length: int) -> None:
    found = numbers("midpoints", length=length)
    assert found["by tree"] == pytest.approx(found["by chain"], abs=1e-5)
    assert found["rounds"] == math.ceil(math.log2(length))


def test_a_recipe_is_its_own_address() -> None:
    config = scenes.reals(0.9, 3, sampler="chain", seed=5, pins=((1, 10),))
    assert recipes.read(recipes.write(config)) == config
    run = sessions.find(recipes.write(config))
    assert run is not None
    assert run.header.config == config
    assert run.run_id not in [kept.run_id for kept in sessions.RUNS._runs.values()]


@pytest.mark.parametrize(
    "changes",
    [{"model": "embedded"}, {"model": "table:assets/tables/time.json"}, {"length": 100_000}, {"steps": 65}],
)
def test_a_recipe_asks_for_no_files_no_models_and_no_large_runs(changes: dict[str, Any]) -> None:
    config = dataclasses.replace(scenes.reals(0.5), **changes)
    with pytest.raises(ConfigError, match="damaged"):
        recipes.read(recipes.write(config))
    assert sessions.find(recipes.write(config)) is None


@pytest.mark.parametrize(
    "run_id", ["recipe:", "recipe:!!", "recipe:AAAA", "recipe:" + "A" * 20_000, "recipe:eJyrVgIAALUAcw"]
)
def test_a_damaged_address_is_no_run_and_no_crash(run_id: str) -> None:
    with pytest.raises(InputError):
        recipes.read(run_id)
    assert sessions.find(run_id) is None


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS.keys())
def test_a_lesson_has_what_it_names(lesson: texts.Lesson) -> None:
    answer = endpoints.get_scene({"lesson": lesson.name})
    assert "error" not in answer, answer
    written = [lesson.text, lesson.reveal, lesson.again, lesson.bet.get("question", "")]
    for text in written:
        for name in re.findall(r"\{([a-z][a-z0-9 .]*)%?\}", text):
            known = answer["bet"] if name.startswith("bet.") else answer["numbers"]
            assert name.removeprefix("bet.") in known, name
        for word in re.findall(r"\[\[([A-Za-z][^\]|]*)", text):
            assert word in texts.glossary(), word
    for column in lesson.bars.get("columns", ()):
        assert {f"{column['prefix']} {row}" for row in lesson.bars["rows"]} <= answer["numbers"].keys()
    assert lesson.again
    if lesson.bet:
        assert lesson.bet["answer"] in answer["bet"]
        assert lesson.reveal
    if lesson.formula:
        assert ElementTree.fromstring(lesson.formula).tag == "math"
    for choice in lesson.bet.get("options", ()):
        assert isinstance(choice, str)
    json.dumps(answer)  # no infinity, no array


def test_the_right_choice_of_a_bet_is_among_its_options() -> None:
    for lesson in LESSONS.values():
        if lesson.bet.get("kind") == "choice":
            truth = endpoints.get_scene({"lesson": lesson.name})["bet"][lesson.bet["answer"]]
            assert (truth if isinstance(truth, str) else f"{truth:g}") in lesson.bet["options"]


def test_a_word_of_the_glossary_is_one_line_and_some_lesson_links_it() -> None:
    parts = [part for lesson in LESSONS.values() for part in (lesson.text, lesson.reveal, lesson.again)]
    linked = {word for part in parts for word in re.findall(r"\[\[([A-Za-z][^\]|]*)", part)}
    meanings = texts.glossary()
    assert list(meanings) == sorted(meanings, key=str.lower)
    for word, meaning in meanings.items():
        assert "\n" not in meaning
        assert meaning.endswith(".")
        assert word in linked, word


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS.keys())
def test_every_word_of_the_glossary_is_linked_where_a_lesson_first_uses_it_and_nowhere_else(
    lesson: texts.Lesson,
) -> None:
    parts = [lesson.text, lesson.bet.get("question", ""), lesson.reveal, lesson.again]
    # Code and the names of numbers are no prose.
    prose = re.sub(r"`[^`]*`|\{[^}]*\}", "", "\n".join(parts))
    links = re.findall(r"\[\[([^\]|]*)\|([^\]]*)\]\]", prose)
    words = [word for word, _ in links]
    assert len(words) == len(set(words)), "a word is linked once"
    rest = re.sub(r"\[\[[^\]]*\]\]", lambda link: "#" * len(link[0]), prose)
    for word in texts.glossary():
        forms = {word, f"{word}s", re.sub("y$", "ies", word), *(shown for of, shown in links if of == word)}
        plain = re.search(rf"\b(?:{'|'.join(map(re.escape, forms))})\b", rest, 0 if word in ("Mf", "Mar") else re.I)
        if plain:
            assert word in words, f"{word!r} is not linked: …{prose[max(0, plain.start() - 40) : plain.end()]}"
            assert prose.index(f"[[{word}|") < plain.start(), word


@pytest.mark.parametrize(
    ("lesson", "controls", "said"),
    [
        ("1", {"text": "3x"}, "'x' is not in the alphabet"),
        ("1", {"text": ""}, "0 characters"),
        ("1", {"text": "1" * 13}, "13 characters"),
        ("2", {"p": 2}, "probability is 2"),
        ("2", {"p": "much"}, "'much'"),
        ("3", {"how": "badly"}, "no choice 'badly'"),
        ("5", {"length": 5}, "no choice 5"),
        ("A", {"length": 10.5}, "length is 10.5"),
        ("A", {"source": "9" * 201}, "201 characters"),
        ("own", {"table": "a,b\n1,x"}, "isn't a number"),
        ("own", {"table": "a,b\n0,0"}, "only zeros"),
        ("own", {"table": "a,b\n1,1", "source": "["}, "can't be read"),
        ("own", {"table": "a,b\n1,0", "source": "b"}, "every accepted completion the probability 0"),
        ("own", {"table": "a" * 7_000}, "characters"),
    ],
)
def test_what_a_control_cannot_mean_is_said(lesson: str, controls: dict[str, Any], said: str) -> None:
    answer = endpoints.get_scene({"lesson": lesson, "controls": controls})
    assert answer["error"] == "mistake"
    assert said in answer["problem"]
    assert answer["remedy"]


@pytest.mark.parametrize("asked", [None, 3, {}, {"lesson": "77"}, {"lesson": ["1"]}, {"lesson": "1", "controls": 5}])
def test_a_question_from_anyone_gets_an_answer(asked: object) -> None:
    answer = endpoints.get_scene(asked)
    assert "runs" in answer or answer["error"] == "no such lesson"


def test_a_scene_brings_what_the_page_would_ask_for_but_not_the_graph_of_what_was_just_typed() -> None:
    whole = endpoints.get_scene({"lesson": "own"})
    (run_id,) = whole["runs"]
    parts = whole["parts"][run_id]
    assert parts["messages"] == app_endpoints.get_messages({"run": run_id})
    assert parts["window"] == app_endpoints.get_window({"run": run_id})
    typed = endpoints.get_scene({"lesson": "own", "controls": {"source": "a*b+|c+"}})
    (run_id,) = typed["runs"]
    assert typed["parts"][run_id].keys() == parts.keys() - {"window"}
    assert "svg" in app_endpoints.get_window({"run": run_id}) or shutil.which("dot") is None


def solved(name: str, source: str, length: int | None = None) -> dict[str, Any]:
    controls = {"source": source} | ({} if length is None else {"length": length})
    return endpoints.get_scene({"lesson": name, "controls": controls})["check"]


@pytest.mark.parametrize(
    ("lesson", "code", "mended", "length"),
    [
        ("A", "length", "[0-9]{4}-[0-9]{2}-[0-9]{2}", 10),
        ("B", "vocabulary", "[0-9]{2}:[0-9]{2}", None),
        ("B", "vocabulary", "[0-9]{2}(h|:| )[0-9]{2}", None),
        ("C", "blanks", r'\{ ?"ok" ?: ?(true|false) ?\}', None),
        ("C", "blanks", r'\{"ok":(true|false)\}', None),
    ],
)
def test_a_puzzle_is_solved_when_the_diagnosis_falls_silent(
    lesson: str, code: str, mended: str, length: int | None
) -> None:
    before = endpoints.get_scene({"lesson": lesson})["check"]
    assert code in [finding["code"] for finding in before["findings"]]
    assert not before["solved"]
    after = solved(lesson, mended, length)
    if lesson == "B" and "h" in mended:
        assert not after["solved"], "an alternative that no token writes is still a gap"
        return
    assert after == {**after, "solved": True, "findings": [], "accepted": True, "kept": True}


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_what_a_puzzle_shows_to_whoever_skips_solves_it(name: str) -> None:
    lesson = LESSONS[name]
    assert endpoints.get_scene({"lesson": name, "controls": lesson.solution})["check"]["solved"]
    assert lesson.solution.keys() <= lesson.settings.keys()
    assert lesson.reveal


def test_the_terms_that_the_last_bet_is_summed_from_are_those_of_its_table() -> None:
    lesson = LESSONS["own"]
    z = endpoints.get_scene({"lesson": "own"})["bet"]["z"]
    terms = dict(re.findall(r"`([abc]{3})` \(([.\d × ]+)", lesson.reveal))
    rows = [[float(p) for p in line.split(",")] for line in lesson.settings["table"].splitlines()[1:]]
    chances = {text: math.prod(rows[i]["abc".index(c)] for i, c in enumerate(text)) for text in terms}
    for text, factors in terms.items():
        assert math.prod(map(float, factors.split("×"))) == pytest.approx(chances[text])
    assert sorted(terms) == ["aab", "abb", "bbb"]
    assert 0.1 + sum(chances.values()) == pytest.approx(z)


@pytest.mark.parametrize(
    ("lesson", "source", "length"),
    [
        ("A", "[0-9]{8}", 8),  # silent, and no date any more
        ("A", "[0-9]{4}-[0-9]{2}-[0-9]{2}", 12),
        ("B", "[0-9]{5}", None),
        ("B", "[0-9", None),
        ("C", "true", None),
        ("C", r'\{ *"ok" ?: ?(true|false) ?\}', None),
    ],
)
def test_a_puzzle_is_not_solved_by_giving_up_what_it_is_for(lesson: str, source: str, length: int | None) -> None:
    assert not solved(lesson, source, length)["solved"]


def test_a_typed_mean_field_is_normalised_and_said() -> None:
    answer = endpoints.get_scene({"lesson": "own", "controls": {"table": "a,b\n1,1\n3,1", "source": "ab|ba"}})
    assert "don’t sum to 1" in answer["said"]
    assert answer["numbers"]["z"] == pytest.approx(0.5 * 0.25 + 0.5 * 0.75)
    typed = '{"tokens": ["a", "b", "$"], "eos": "$", "mean_field": [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]]}'
    answer = endpoints.get_scene({"lesson": "own", "controls": {"table": typed, "source": "a|ab"}})
    assert answer["said"] == "Every row sums to 1."
    assert answer["numbers"]["z"] == pytest.approx(0.5 * 0.25 + 0.5 * 0.25)


def test_the_many_requests_were_recorded_with_the_weights_that_are_shipped() -> None:
    recorded = json.loads(seeds.FILE.read_text(encoding="utf-8"))
    assert recorded["weights"] == seeds.fingerprint(), "record them again: python -m app.lessons.seeds"
    found = seeds.numbers()
    for name in seeds.CONFIDENCES:
        share = sum(recorded["right"][name]) / found["seeds"]
        assert found[f"{name} low"] < share == found[f"{name} share"] < found[f"{name} high"]


def test_recording_them_again_gives_the_same(tmp_path: Any) -> None:
    again = seeds.record(tmp_path / "seeds.json", 2)
    recorded = json.loads(seeds.FILE.read_text(encoding="utf-8"))
    for name in seeds.CONFIDENCES:
        assert again["right"][name] == recorded["right"][name][:2]
    assert json.loads((tmp_path / "seeds.json").read_text())["config"] == recorded["config"]


def test_mf_prefers_what_is_forbidden_and_mar_what_is_forced() -> None:
    found = numbers("remask")
    assert (found["mf first"], found["mar first"]) == ("yes", '"')
    assert found["mar quote"] == 1.0
    assert found["mf word"] == pytest.approx(0.95 - 0.02)
    assert found["mar word"] == pytest.approx((0.02 - 0.01) / (0.02 + 0.01), abs=1e-6)
