"""Spellings of special tokens in a constraint: told where they are written out, and only there."""

from __future__ import annotations

import dataclasses
import re

import pytest

from engine import models
from engine.constraints import read
from engine.diagnosis import specials, static
from engine.trace import Config

VOCABULARY = models.load("embedded").vocabulary
NAMES = dict(VOCABULARY.specials)
MASK = next(name for name, token_id in VOCABULARY.specials if token_id == VOCABULARY.mask_id)
EOS = next(name for name, token_id in VOCABULARY.specials if token_id in VOCABULARY.eos_ids)


def test_a_model_names_its_special_ids() -> None:
    assert VOCABULARY.mask_id in NAMES.values()
    assert set(VOCABULARY.eos_ids) <= set(NAMES.values())
    assert all(VOCABULARY.written(token_id) is None for token_id in NAMES.values())


@pytest.mark.parametrize(
    ("regex", "asked"),
    [
        (f"[a-z]+{re.escape(EOS)}", [EOS]),
        (f"{re.escape(MASK)}( [a-z]+)?", [MASK]),
        (f"(a|b{re.escape(EOS)}c)d", [EOS]),
        (".*", []),
        ("[^b]+", []),
        (re.escape(EOS[:-1]), []),
        ("(" + "|".join(map(re.escape, EOS)) + ")*", [EOS]),
    ],
)
def test_a_spelling_is_told_where_the_constraint_writes_it_out(regex: str, asked: list[str]) -> None:
    found = specials.findings(read("regex", regex), VOCABULARY)
    assert [finding.evidence["spelling"] for finding in found] == asked
    for finding in found:
        assert finding.where is not None
        spans = [regex[place.start : place.stop] for place in (finding.where, *finding.related)]
        assert set("".join(spans).replace("\\", "")) == set(finding.evidence["spelling"])


def test_leaving_the_spelling_out_mends_it() -> None:
    regex = f"[a-z]+{re.escape(EOS)}"
    config = Config("", "regex", regex, length=8, steps=8, block_length=8)
    finding = next(finding for finding in static.findings(config, VOCABULARY) if finding.code == "special")
    (remedy,) = finding.remedies
    assert remedy.changes == {"source": "[a-z]+"}
    choices = dataclasses.replace(config, kind="choices", source=(f"yes{EOS}", "no"))
    finding = next(finding for finding in static.findings(choices, VOCABULARY) if finding.code == "special")
    assert finding.remedies[0].changes == {"source": ("yes", "no")}
