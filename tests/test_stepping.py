"""A step without its record is the recorded step, also where runs share what they find alike."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from engine import decode, preparation, remasking, stepping, token_automaton
from engine.constraints import read
from engine.errors import EmptyLanguageError
from engine.stepping import Answer, Step
from engine.trace import Config
from tests.fake import Fake, characters
from tests.test_nondeterministic import kept

VOCABULARY = dataclasses.replace(characters("abcdef"), eos_ids=(6, 5))
AUTOMATON = token_automaton.compile(read("regex", "(ab|cd?|b{2,3})*a?"), VOCABULARY)
CONFIG = Config(prompt="go", kind="regex", source="", length=6, steps=3, block_length=6, confidence="mf")
VARIED = [
    CONFIG,
    *(
        dataclasses.replace(CONFIG, sampler=sampler, temperature=temperature, confidence=confidence, seed=seed)
        for sampler in (*stepping.EXACT, *stepping.BASELINES)
        for temperature, confidence, seed in itertools.product((0.0, 0.6, 1.0), ("mf", "mar"), (0, 1))
    ),
    *(
        dataclasses.replace(CONFIG, remasking=name, confidence=confidence, temperature=temperature)
        for name in remasking.NAMES
        for confidence, temperature in itertools.product(("mf", "mar"), (0.6, 1.0))
    ),
    *(
        dataclasses.replace(CONFIG, sampler=sampler, temperature=1.0, **changes)
        for sampler in ("midpoint", "reject")
        for changes in (
            {"top_k": 1},
            {"top_p": 0.4},
            {"alg_temp": 0.5},
            {"steps": 6},
            {"block_length": 2},
            {"reject_budget": 2},
            {"confidence_eos_eot_inf": True},
            {"confidence_eos_eot_inf": True, "confidence": "mar"},
            {"confidence_eos_eot_inf": True, "upstream_bugs": True},
        )
    ),
]


def test_a_step_without_a_record_leaves_the_canvas_of_the_recorded_one_whoever_shares_the_answer():
    model = Fake(VOCABULARY, 3)
    prompt_ids = model.encode_prompt("go")
    answers: dict[bytes, Answer] = {}
    met = 0
    for config in VARIED:
        plan = decode.schedule(config, np.full(6, VOCABULARY.mask_id), VOCABULARY.mask_id)
        for n, record in enumerate(decode.denoise(model, AUTOMATON, config)):
            key = record.canvas.tobytes()
            met += key in answers
            logits = model.logits(prompt_ids, record.canvas, n)
            answer = answers.setdefault(key, Answer(logits, record.canvas, VOCABULARY, AUTOMATON))
            after = stepping.advance(Step(answer, config, n, *plan[n]))
            assert after.tolist() == record.canvas_after.tolist(), (config, n)
    assert met > len(VARIED)


@pytest.mark.parametrize("confidence", ["mf", "mar"])
@pytest.mark.parametrize("name", ["topk_margin", "entropy", "maskgit_plus"])
def test_a_step_without_a_record_ranks_the_positions_of_many_models_as_the_recorded_one(name, confidence):
    config = dataclasses.replace(CONFIG, remasking=name, confidence=confidence, temperature=0.6)
    plan = decode.schedule(config, np.full(6, VOCABULARY.mask_id), VOCABULARY.mask_id)
    for seed in range(12):
        model = Fake(VOCABULARY, seed)
        for n, record in enumerate(decode.denoise(model, AUTOMATON, config)):
            logits = model.logits(model.encode_prompt(config.prompt), record.canvas, n)
            answer = Answer(logits, record.canvas, VOCABULARY, AUTOMATON)
            after = stepping.advance(Step(answer, config, n, *plan[n]))
            assert after.tolist() == record.canvas_after.tolist(), (seed, n)


WITHOUT_EOS = characters("abcd", eos=False)
OUTSIDE = dataclasses.replace(characters("abcd"), token_bytes=characters("abcd").token_bytes[:-1])
"""A vocabulary whose mask lies behind its last token."""
SEVERAL = "(?:a|ab)*b?(?:a|ba|c)*[abc]"
AUTOMATA = [
    (vocabulary, automaton)
    for vocabulary in (VOCABULARY, WITHOUT_EOS, OUTSIDE)
    for automaton in (
        token_automaton.everything(vocabulary),
        token_automaton.compile(read("regex", SEVERAL), vocabulary),
        token_automaton.compile(kept(SEVERAL), vocabulary),
    )
]


def any_config(rng: np.random.Generator) -> Config:
    """Draw settings that go together, whatever they are."""
    block, blocks = int(rng.choice([1, 2, 4])), int(rng.choice([1, 2]))
    name = str(rng.choice(remasking.NAMES))
    rules = [{}, {"top_p": 0.6}, {"top_k": 2}, {"cfg_scale": 1.0}, {"bans": ((0, 1),)}]
    if name in remasking.DREAM:
        rules.append({"alg_temp": 0.4})
    if name not in ("origin", "entropy", "factor"):
        rules += [{"threshold": 0.4}, {"threshold": 1.0}]
    if name not in ("origin", "entropy", "threshold"):
        rules.append({"factor": 0.5})
    return dataclasses.replace(
        CONFIG,
        length=block * blocks,
        block_length=block,
        steps=blocks * int(rng.integers(1, block + 2)),
        remasking=name,
        confidence=str(rng.choice(["mf", "mar"])),
        sampler=str(rng.choice(stepping.EXACT + stepping.BASELINES)),
        temperature=float(rng.choice([0.0, 0.001, 0.6, 1.0])),
        seed=int(rng.integers(100)),
        reject_budget=int(rng.choice([1, 4])),
        path_tries=int(rng.choice([0, 8])),
        **rules[rng.integers(len(rules))],
    )


def test_a_step_without_a_record_is_the_recorded_one_whatever_the_settings_and_the_model():
    rng, compared = np.random.default_rng(0), 0
    for seed in range(250):
        vocabulary, automaton = AUTOMATA[seed % len(AUTOMATA)]
        config = any_config(rng)
        preparation.check(config)
        model = Fake(vocabulary, seed, scale=float(rng.choice([0.5, 3.0])), dtype=[np.float32, np.float64][seed % 2])
        prompt_ids = model.encode_prompt(config.prompt)
        plan = decode.schedule(config, np.full(config.length, vocabulary.mask_id), vocabulary.mask_id)
        for n, record in enumerate(decode.denoise(model, automaton, config)):
            logits = decode.predict(model, prompt_ids, record.canvas, n, config.cfg_scale)
            for position, token_id in config.bans:
                logits[position, token_id] = -np.inf
            answer = Answer(logits, record.canvas, vocabulary, automaton)
            stop = decode.block_stop(config, plan[n][0], record.canvas, vocabulary.mask_id)
            after = stepping.advance(Step(answer, config, n, stop, plan[n][1]))
            assert after.tolist() == record.canvas_after.tolist(), (seed, config, n)
            compared += 1
    assert compared > 600


def test_draws_of_one_answer_are_shared_only_where_they_are_alike(monkeypatch):
    drawn = []
    draw = stepping.draw
    monkeypatch.setattr(stepping, "draw", lambda step, found: drawn.append(step) or draw(step, found))
    canvas = np.full(6, VOCABULARY.mask_id, np.int32)
    answer = Answer(Fake(VOCABULARY, 3).logits(canvas, canvas, 0), canvas, VOCABULARY, AUTOMATON)

    def ask(number=0, **changes):
        stepping.advance(Step(answer, dataclasses.replace(CONFIG, **changes), number, 6, 2))

    ask(temperature=1.0, sampler="chain")
    ask(temperature=1.0, sampler="chain", confidence="mar")
    assert len(drawn) == 1
    ask(temperature=0.0, sampler="chain")
    ask(temperature=0.0, sampler="midpoint")
    ask(temperature=1.0, sampler="map")
    assert len(drawn) == 2
    ask(temperature=1.0, sampler="chain", seed=1)
    ask(temperature=1.0, sampler="chain", number=1)
    ask(temperature=0.7, sampler="chain")
    ask(temperature=1.0, sampler="midpoint")
    ask(temperature=1.0, sampler="independent")
    ask(temperature=0.0, sampler="independent")
    ask(temperature=1.0, sampler="reject")
    ask(temperature=1.0, sampler="reject", reject_budget=3)
    assert len(drawn) == 10


def test_a_baseline_asks_for_no_posterior_that_it_does_not_use():
    canvas = np.full(6, VOCABULARY.mask_id, np.int32)
    answer = Answer(Fake(VOCABULARY, 3).logits(canvas, canvas, 0), canvas, VOCABULARY, AUTOMATON)
    stepping.advance(Step(answer, dataclasses.replace(CONFIG, sampler="independent"), 0, 6, 2))
    (found,) = answer.found.values()
    assert "posterior" not in vars(found)
    for temperature in (0.0, 1.0):
        stepping.advance(Step(answer, dataclasses.replace(CONFIG, sampler="chain", temperature=temperature), 0, 6, 2))
        (*_, found) = answer.found.values()
        assert ("posterior" in vars(found)) == (temperature > 0)


def test_a_step_from_which_nothing_accepted_is_left_is_refused_with_its_number():
    canvas = np.asarray([5, 4, 5, 4, 5, 4], np.int32)
    answer = Answer(Fake(VOCABULARY, 3).logits(canvas, canvas, 0), canvas, VOCABULARY, AUTOMATON)
    with pytest.raises(EmptyLanguageError, match="At step 7"):
        stepping.advance(Step(answer, CONFIG, 7, 6, 2))
