"""The numbered parts of a source: which there are, which states are of which, and how deep they are taken."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import large
import numpy as np
import pytest

from viz import outline, parts, payload

NESTED = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z]{1,5}$"},
            "address": {
                "type": "object",
                "properties": {"city": {"enum": ["Rome", "Oslo"]}, "zip": {"type": "string", "pattern": "^[0-9]{2}$"}},
                "required": ["city", "zip"],
                "additionalProperties": False,
            },
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
        },
        "required": ["name", "address", "tags"],
        "additionalProperties": False,
    },
    indent=1,
)


def numbered(kind: str, source: str | tuple[str, ...]) -> tuple[list[str], dict[tuple[int, ...], int]]:
    """The names of the parts, and how many states are of which."""
    automaton = large.header(kind, source, 64).automaton
    found = parts.of_source(kind, source, automaton.state_spans)
    counts: dict[tuple[int, ...], int] = {}
    for numbers in found.places:
        counts[numbers] = counts.get(numbers, 0) + 1
    return [part.name for part in found.sections], counts


def test_schemas_are_parts_and_plain_keywords_belong_to_the_schema_that_they_stand_in() -> None:
    names, counts = numbered("json_schema", NESTED)
    assert names == [
        "/properties/name",
        "/properties/address",
        "/properties/address/properties/city",
        "/properties/address/properties/zip",
        "/properties/tags",
        "/properties/tags/items",
    ]
    assert {(1,), (2,), (3,), (4,), (5,), (6,)} <= set(counts)
    assert () in counts, "the braces of the whole are of no part"


@pytest.mark.parametrize(
    ("kind", "source", "names"),
    [
        ("regex", r"[0-9]+(\.[0-9]*)?|\.[0-9]+", [r"[0-9]+(\.[0-9]*)?", r"\.[0-9]+"]),
        ("regex", "([01][0-9]|2[0-3]):[0-5][0-9]", ["([01][0-9]|2[0-3])", "[0-5][0-9]"]),
        ("regex", r"rgb\([0-9]{1,3}, [0-9]{1,3}\)", ["[0-9]{1,3}", "[0-9]{1,3}"]),
        ("regex", "only one[a-z]*", ["[a-z]*"]),
        ("regex", "hello", []),
        ("choices", ("yes", "no"), ["yes", "no"]),
        ("grammar", 'start: greet " " name\ngreet: "hi"\nname: /[a-z]+/\n', ["start", "greet", "name"]),
    ],
)
def test_parts_are_what_a_reader_of_the_source_would_name(
    kind: str, source: str | tuple[str, ...], names: list[str]
) -> None:
    assert numbered(kind, source)[0] == names


def test_parts_that_hues_do_not_suffice_for_are_taken_one_level_up() -> None:
    names, counts = numbered("json_schema", large.schema(3, 8))
    assert names == [f"/properties/field_{n}" for n in range(3)], "with their fields they would be twelve"
    assert set(counts) >= {(1,), (2,), (3,)}
    assert len(numbered("json_schema", large.schema(10, 8, required=1))[0]) == 10, "further ones have a number alone"


def test_more_choices_than_a_badge_can_number_have_none() -> None:
    assert numbered("choices", tuple(f"choice {n}" for n in range(parts.MOST + 1)))[0] == []


@pytest.mark.parametrize("kind", ["regex", "json_schema", "sql", None])
def test_a_source_that_is_no_such_thing_has_no_parts(kind: str | None) -> None:
    assert parts.of_source(kind, "([", ((),)) == parts.Parts((), ((),))


def test_every_state_is_numbered_by_the_innermost_parts_that_hold_what_it_writes() -> None:
    header = large.header("json_schema", NESTED, 64)
    told = payload.header(header)
    sections, places = told["parts"], told["origin_parts"]
    rows = payload.unpack(told)["origin"]
    for state, spans in enumerate(header.automaton.state_spans):
        inner = set()
        for start, stop in spans:
            holding = [n for n, (_, a, b) in enumerate(sections, 1) if a <= start and stop <= b and stop > start]
            inner |= {max(holding)} if holding else set()
        assert places[rows[state]] == sorted(inner), state
    assert [a for _, a, _ in sections] == sorted(a for _, a, _ in sections)
    whole = outline.of_source("json_schema", NESTED)
    assert all(NESTED[a:b].startswith('"') or a > whole.start for _, a, b in sections)


# Colours, as the style sheet has them. Matrices of full colour blindness in linear RGB: Machado, Oliveira and Fernandes (2009).
VISIONS = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
APART = 0.09
"""In Oklab, where 0.02 is just noticed side by side."""


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, vision: str) -> np.ndarray:
    rgb = np.clip(VISIONS[vision] @ linear(colour), 0, 1)
    return TO_OKLAB @ np.cbrt(TO_LMS @ rgb)


def theme(dark: bool) -> dict[str, str]:
    sheet = (Path(__file__).parents[1] / "app/client/style.css").read_text(encoding="utf-8")
    rule = re.search(r"^\.dark \.ds \{(.*?)\}" if dark else r"^\.ds \{(.*?)\}", sheet, re.DOTALL | re.MULTILINE)
    assert rule
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", rule[1]))


@pytest.mark.parametrize("dark", [False, True])
def test_hues_carry_text_on_any_ground_and_neighbours_differ_for_every_colour_vision(dark: bool) -> None:
    colours = theme(dark)
    hues = [colours[f"part-{n}"] for n in range(1, parts.HUES + 1)]
    for hue in [*hues, colours["part-0"]]:
        assert contrast(hue, colours["paper"]) >= 4.5, hue  # the number on its badge, the badge on the page
        assert contrast(hue, colours["wash"]) >= 3, hue
    for one, other in pairwise(hues):
        for vision in VISIONS:
            assert np.linalg.norm(seen(one, vision) - seen(other, vision)) > APART, (one, other, vision)
    for hue in hues:  # blue and orange say which distribution is meant, never which part
        for role in ("q", "p"):
            assert np.linalg.norm(seen(hue, "normal") - seen(colours[role], "normal")) > APART, (hue, role)
