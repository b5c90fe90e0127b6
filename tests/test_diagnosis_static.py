"""What is said before a run: real inputs of each class, with the place and a remedy that works."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import fake
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine import automaton, preparation
from engine.constraints import read
from engine.diagnosis import empty, gaps, lengths, loops, static
from engine.errors import Finding
from engine.models import table
from engine.pattern import matches_nothing
from engine.token_automaton import compile
from engine.trace import Config
from engine.vocabulary import Vocabulary

DATA = Path(__file__).parent / "data"
BUGS = {c["id"]: c for c in map(json.loads, (DATA / "bugs/cases.jsonl").read_text().splitlines())}
REGEXES = {c["id"]: c["regex"] for c in map(json.loads, (DATA / "regex/regexes.jsonl").read_text().splitlines())}
LETTERS = fake.characters("".join(map(chr, range(0x20, 0x7F))))
LETTERS_ALONE = fake.characters("".join(map(chr, range(0x20, 0x7F))), eos=False)


def config(kind: str, source: Any, length: int = 16, **settings: Any) -> Config:
    return Config("", kind, source, length=length, steps=length, block_length=length, **settings)


def diagnosed(asked: Config, vocabulary: Vocabulary = LETTERS) -> tuple[Finding, ...]:
    return static.findings(asked, vocabulary)


def marked(finding: Finding) -> str:
    assert finding.where is not None
    return finding.where.source[finding.where.start : finding.where.stop]


def words(texts: list[str], eos: bool = True) -> Vocabulary:
    written: list[bytes | None] = [text.encode() for text in texts]
    eos_ids = (len(texts),) if eos else ()
    return Vocabulary((*written, *(None for _ in eos_ids)), eos_ids, len(texts) + len(eos_ids))


def tokens_of(case_id: str) -> Vocabulary:
    """The vocabulary of a token-level report, ids as there; ids that it leaves out are dead."""
    case = BUGS[case_id]["input"]
    listed = {v: k.encode() for k, v in case.get("vocab_utf8", {}).items()}
    listed |= {v: bytes.fromhex(k) for k, v in case.get("vocab_hex", {}).items()}
    size = max(listed) + 1
    return Vocabulary(tuple(listed.get(v) for v in range(size)), (case["eos"],), size)


# C1


@pytest.mark.parametrize(("case", "place"), [("jsts:7", "\\"), ("jsts:28", "\\"), ("grok:RUUID", "\\")])
def test_c1_an_unreadable_regex_is_one_finding_at_its_place(case: str, place: str) -> None:
    (finding,) = diagnosed(config("regex", REGEXES[case]))
    assert (finding.code, finding.severity, marked(finding)) == ("syntax", "error", place)
    assert "line 1, column" in finding.message
    assert finding.fixes


# C2


@pytest.mark.parametrize(
    ("regex", "place"),
    [(BUGS["rx-backref"]["input"], "\\1"), (r"(?P<q>['\"])x(?P=q)", "(?P=q)"), (r"(a)?(?(1)b|c)", "(?(1)")],
)
def test_c2_what_no_automaton_decides_is_named_with_its_place(regex: str, place: str) -> None:
    (finding,) = diagnosed(config("regex", regex))
    assert (finding.code, finding.severity) == ("unsupported", "error")
    assert marked(finding).startswith(place[:3])
    assert finding.fixes


# C3


@pytest.mark.parametrize(
    ("regex", "conflict", "remedy"),
    [
        (r"a(?=b)c", ["(?=b)", "c"], "ac"),
        (r"(?=.*[0-9])[a-z]{2,}", ["(?=.*[0-9])", "[a-z]"], "[a-z]{2,}"),
        (r"item:[^\s\S]", [r"[^\s\S]"], None),
        (r"x\bfoo", ["x", r"\b", "foo"], "xfoo"),
        (r"abc^d", ["^"], "abcd"),
        (r"(?:a(?=b)c|d(?!e)e)", ["(?=b)", "c", "(?!e)", "e"], None),
    ],
)
def test_c3_an_empty_language_is_explained_by_the_fewest_parts(
    regex: str, conflict: list[str], remedy: str | None
) -> None:
    finding = diagnosed(config("regex", regex))[0]
    assert (finding.code, finding.severity) == ("empty", "error")
    assert [regex[p["start"] : p["stop"]] for p in finding.evidence["conflict"]] == conflict
    changed = [r.changes["source"] for r in finding.remedies]
    assert (remedy in changed) if remedy else (conflict == [r"[^\s\S]"] or changed)
    for source in changed:
        assert not read("regex", source).automaton.is_empty


def test_c3_an_atomic_group_is_named_where_what_it_takes_is_missing_behind_it() -> None:
    finding = diagnosed(config("regex", "x(?>a+)ab"))[0]
    assert finding.code == "empty"
    assert ["x(?>a+)ab"[p["start"] : p["stop"]] for p in finding.evidence["conflict"]] == ["a+", "ab"]
    assert [remedy.changes["source"] for remedy in finding.remedies] == ["x(?:a+)ab"]


RECURSIVE = "start: item\nitem: A item | A B\nA: /a(?=b)/\nB: /c/\n"


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("regex", r"a(?=b)c(?!d)x*"),
        ("regex", r"(?:q|z)(?<=a)[^b]"),
        ("regex", r"(?!a)a(?=c)c+"),
        ("regex", r"a[^\s\S]b|c[^\s\S]"),
        ("regex", r"x(?>a+)ab"),
        ("regex", r"a*+a|(?>b|bc)c(?<=bcc)"),
        ("grammar", RECURSIVE),
        ("all", '[{"kind": "regex", "source": "a{3}b*"}, {"kind": "regex", "source": "[ab]{2}"}]'),
    ],
)
def test_the_parts_of_a_conflict_are_empty_together_and_no_one_of_them_is_needless(kind: str, source: str) -> None:
    constraint = read(kind, source)
    assert constraint.automaton.is_empty
    found = empty.minimal_demands(constraint.pattern)
    listed = empty.demands_by_origin(constraint.pattern)

    def nothing_with(kept: tuple[empty.Demand, ...]) -> bool:
        dropped = {path for demand in listed if demand not in kept for path in demand.paths}
        return empty.automaton.compile(empty.without(constraint.pattern, dropped)).is_empty

    assert nothing_with(found)
    for demand in found:
        assert not nothing_with(tuple(d for d in found if d != demand))


@pytest.mark.parametrize(
    ("schema", "conflict"),
    [
        (BUGS["xg639-empty-enum"]["input"], {"/properties/x/enum", "/type", "/required"}),
        (BUGS["ag-const-enum-conflict"]["input"], {"/const", "/enum"}),
        ({"type": "integer", "minimum": 5, "maximum": 3, "title": "n"}, {"/minimum", "/maximum", "/type"}),
        ({"allOf": [{"type": "string"}, {"type": "integer"}], "description": "x"}, {"/allOf/0/type", "/allOf/1/type"}),
        ({"type": "string", "minLength": 4, "pattern": "^a{1,2}$"}, {"/type", "/minLength", "/pattern"}),
    ],
)
def test_c3_a_schema_that_nothing_satisfies_names_the_keywords_that_contradict(schema: dict, conflict: set) -> None:
    asked = config("json_schema", json.dumps(schema))
    finding = diagnosed(asked)[0]
    assert (finding.code, finding.severity) == ("empty", "error")
    assert {p["pointer"] for p in finding.evidence["conflict"]} == conflict
    assert finding.where is not None
    assert finding.where.pointer not in ("/type", "/required"), "a frame is not to blame first"
    assert finding.remedies
    for remedy in finding.remedies:
        changed = json.loads(remedy.changes["source"])
        assert not read("json_schema", changed).automaton.is_empty
        assert len(json.dumps(changed)) < len(json.dumps(schema))


# C4


def test_c4_the_property_that_takes_the_tokens_of_a_schema_is_named() -> None:
    properties = {"name": {"type": "string", "minLength": 50}, "n": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False}
    finding = diagnosed(config("json_schema", json.dumps(schema), 32))[0]
    assert finding.code == "length"
    assert finding.where is not None
    assert finding.where.pointer == "/properties/name/minLength"
    assert finding.remedies[0].changes["length"] == len('{"name":""}') + 50


@pytest.mark.parametrize(
    ("regex", "length", "eos", "message", "remedies"),
    [
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", 8, True, "takes 10 tokens; 4 of them go to '[0-9]'", [10]),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", 16, False, "the longest below takes 10", [10]),
        (r"(?:ab)+", 5, False, "the nearest lengths are 4 and 6", [6, 4]),
        (REGEXES["commonregex:hex_color"], 2, True, "takes 4 tokens", [4]),
    ],
)
def test_c4_a_canvas_that_no_accepted_text_fills_is_told_with_the_lengths_that_are(
    regex: str, length: int, eos: bool, message: str, remedies: list[int]
) -> None:
    vocabulary = fake.characters("abcdef#-0123456789", eos=eos)
    finding = diagnosed(config("regex", regex, length), vocabulary)[0]
    assert (finding.code, finding.severity) == ("length", "error")
    assert message in finding.message
    assert [r.changes["length"] for r in finding.remedies] == remedies
    compiled = compile(read("regex", regex), vocabulary)
    listed = [n for a, b in finding.evidence["accepted"] for n in range(a, b + 1)]
    assert listed == np.flatnonzero(compiled.accepted_lengths(finding.evidence["looked_up_to"])).tolist()
    shortest = finding.evidence["shortest"]
    assert compiled.accepts(shortest["token_ids"])
    assert len(shortest["token_ids"]) == listed[0]
    assert sum(part["tokens"] for part in shortest["parts"]) == listed[0]
    assert "".join(part["text"] for part in shortest["parts"]) == shortest["text"]


def test_c4_no_length_is_offered_that_a_pin_lies_beyond() -> None:
    pin = next(v for v, data in enumerate(LETTERS.token_bytes) if data == b"b")
    for place, offered in ((3, [6, 4]), (4, [6])):
        finding = diagnosed(config("regex", "(?:ab)+", 5, pins=((place, pin),)), LETTERS_ALONE)[0]
        assert finding.code == "length"
        lengths_offered = [r.changes["length"] for r in finding.remedies]
        assert set(lengths_offered) <= set(offered)
        assert all(place < n for n in lengths_offered)


def test_c4_a_canvas_that_only_the_shortest_texts_fill_leaves_no_room_for_eos() -> None:
    found = diagnosed(config("regex", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", 10))
    assert [f.code for f in found] == ["tight"]
    assert found[0].remedies[0].changes["length"] == 11
    assert diagnosed(config("regex", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", 11)) == ()


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_a_changed_length_always_passes_the_checks_of_a_run(seed: int, length: int, wanted: int, blocks: int) -> None:
    block = next(b for b in range(max(length // blocks, 1), 0, -1) if length % b == 0)
    asked = Config("", "regex", "a*", length=length, block_length=block, steps=length // block * (1 + seed % 3))
    preparation.check(asked)
    changed = dataclasses.replace(asked, **lengths.set_length(asked, wanted))
    preparation.check(changed)
    assert changed.length == wanted


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 80))
@example(33, 32, 32)
@example(31, 32, 16)
@example(32, 8, 30)
def test_a_canvas_that_blocks_or_steps_do_not_divide_is_mended_by_each_change_and_otherwise_no_finding(
    length: int, block: int, steps: int
) -> None:
    asked = Config("", "regex", "a*", length=length, block_length=block, steps=steps)
    found = [f for f in diagnosed(asked) if f.severity == "error"]
    if length % block == 0 and steps % (length // block) == 0:
        assert found == []
        return
    assert [f.code for f in found] == ["settings"]
    assert found[0].remedies
    for remedy in found[0].remedies:
        preparation.check(dataclasses.replace(asked, **remedy.changes))
        if "length" not in remedy.changes:
            assert all(str(value) in remedy.label for value in remedy.changes.values())


def test_a_setting_that_no_change_mends_hides_what_depends_on_the_canvas_and_nothing_else() -> None:
    found = diagnosed(dataclasses.replace(config("regex", "[0-9]{20}|[^\\x00-\\U0010ffff]", 8), length=0))
    assert [(f.code, f.remedies) for f in found if f.severity == "error"] == [("settings", ())]
    assert diagnosed(dataclasses.replace(config("regex", "(", 8), block_length=3))[0].code == "syntax"


# C5


def test_c5_a_blank_that_no_token_writes_is_named_with_its_byte_and_the_unmapped_marker() -> None:
    vocabulary = tokens_of("ol1707-leading-space")
    finding = diagnosed(config("regex", BUGS["ol1707-leading-space"]["input"]["regex"], 8), vocabulary)[0]
    assert (finding.code, finding.severity, marked(finding)) == ("vocabulary", "error", " ")
    assert finding.evidence["bytes"] == "20"
    assert finding.evidence["prefix"] == '{"a":'
    assert "'▁'" in finding.message or "'Ġ'" in finding.message
    assert [r.label for r in finding.remedies] == ["Remove ' '"]


def test_c5_a_choice_that_can_never_be_written_is_a_warning_and_the_rest_still_runs() -> None:
    found = diagnosed(config("choices", ("no", "café", "naïve")), fake.characters("abcefnov"))
    warnings = [f for f in found if f.code == "vocabulary"]
    assert [(f.severity, f.evidence["needed"]) for f in warnings] == [("warning", "é"), ("warning", "ï")]
    assert warnings[0].remedies[0].changes == {"source": ("no", "naïve")}


def test_c5_half_a_character_that_no_token_continues_is_told_as_the_character() -> None:
    vocabulary = Vocabulary((b"caf", "é".encode(), b"e", None), (3,), 4)
    finding = diagnosed(config("choices", ("cafe", "cafè")), vocabulary)[0]
    assert (finding.code, finding.evidence["needed"], finding.evidence["prefix"]) == ("vocabulary", "è", "caf")


def test_c5_tokens_that_never_end_where_the_text_does_are_told_apart_from_missing_bytes() -> None:
    finding = diagnosed(config("regex", "aba"), words(["ab", "ba"], eos=False))[0]
    assert (finding.code, finding.severity) == ("vocabulary", "error")
    assert "no sequence of whole tokens" in finding.message


@pytest.mark.parametrize(
    "case", ["xg269-brace-newline", "llg147-newline-token", "ol725-split-emoji", "llg239-eos-split"]
)
def test_vocabularies_that_write_everything_needed_have_no_gap(case: str) -> None:
    constraint = read("regex", BUGS[case]["input"]["regex"])
    assert [f for f in gaps.findings(constraint, tokens_of(case)) if f.severity == "error"] == []


@given(st.integers(0, 10**6))
def test_a_fatal_gap_is_found_exactly_where_no_token_sequence_is_accepted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = sorted({"".join(rng.choice(list("abc"), rng.integers(1, 4))) for _ in range(rng.integers(1, 5))})
    source = tuple(sorted({"".join(rng.choice(list("abc"), rng.integers(1, 6))) for _ in range(3)}))
    found = gaps.findings(read("choices", source), words(texts))
    writable = {"".join(t) for n in range(1, 6) for t in itertools.product(texts, repeat=n)}
    assert any(f.severity == "error" for f in found) == (not writable & set(source))


# C6


@pytest.mark.parametrize(
    ("regex", "length", "pins", "blamed", "removed"),
    [
        (r"[0-9]+(\.[0-9]*)?|\.[0-9]+", 2, ((0, "."), (1, ".")), [0, 1], [(), (0,), (1,)]),
        (r"[0-9]{4}-[0-9]{2}", 8, ((2, "3"), (4, "7")), [4], None),
        (r'\{"a": [0-9]\}', 9, ((1, '"'), (6, "{")), [6], None),
        (r"a*b", 6, ((1, "b"), (2, "a"), (5, "b")), [1, 2], None),
    ],
)
def test_c6_pins_that_contradict_are_the_fewest_that_do(
    regex: str, length: int, pins: tuple, blamed: list[int], removed: list | None
) -> None:
    ids = {data.decode(): v for v, data in enumerate(LETTERS.token_bytes) if data}
    placed = tuple((i, ids[text]) for i, text in pins)
    finding = next(f for f in diagnosed(config("regex", regex, length, pins=placed)) if f.code == "pins")
    assert finding.severity == "error"
    found = [pin["position"] for pin in finding.evidence["pins"]]
    assert finding.focus.position == found[-1]
    if regex != r"a*b":
        assert found == blamed
    else:
        assert set(found) in ({1, 2}, {1, 5})
    assert finding.evidence["last_boundary_reached"] <= max(found)
    assert finding.remedies
    compiled = compile(read("regex", regex), LETTERS)
    for remedy in finding.remedies:
        left = dict(remedy.changes["pins"])
        assert any_accepted(compiled, left, length)


def any_accepted(automaton: Any, pins: dict[int, int], length: int) -> bool:
    reached = {automaton.start}
    for i in range(length):
        tokens = [pins[i]] if i in pins else range(LETTERS.size)
        reached = {automaton.move(q, v) for q in reached for v in tokens} - {-1}
    return any(automaton.accepting[q] for q in reached)


# C8 and C9


@pytest.mark.parametrize(
    ("regex", "code", "place", "fixed"),
    [
        (r"[0-9]+\s*x", "blanks", r"\s", r"[0-9]+\s?x"),
        (REGEXES["commonregex:ipv6"], "blanks", r"\s", None),
        (r"\{ *\}", "blanks", " ", r"\{ ?\}"),
        (r"name=[a-h]+;", "unbounded", "[a-h]", r"name=[a-h]{1,16};"),
        (BUGS["rx-class-posix"]["input"], "unbounded", "]", None),
        (BUGS["ig10-anchors"]["input"], "unbounded", "b", "^ab{1,16}$"),
    ],
)
def test_c8_what_nothing_bounds_is_told_before_a_run_stays_in_it(
    regex: str, code: str, place: str, fixed: str | None
) -> None:
    finding = next(f for f in diagnosed(config("regex", regex)) if f.code == code)
    assert marked(finding) == place
    if fixed is not None:
        assert [r.changes for r in finding.remedies] == [{"source": fixed}]


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        (BUGS["lc29127-esc-hyphen"]["input"], "", "maxLength"),
        ({"type": "string"}, "", "maxLength"),
        ({"type": "array", "items": {"enum": [1, 2]}}, "", "maxItems"),
    ],
)
def test_c8_an_unbounded_value_of_a_schema_can_be_bounded(schema: dict, pointer: str, keyword: str) -> None:
    finding = next(f for f in diagnosed(config("json_schema", json.dumps(schema))) if f.code == "unbounded")
    assert finding.where is not None
    assert str(finding.where.pointer).startswith(pointer)
    assert json.loads(finding.remedies[0].changes["source"]) == {**schema, keyword: 16}


def test_a_bounded_language_has_no_loop() -> None:
    assert diagnosed(config("regex", "[a-h]{1,3}")) == ()
    assert loops.loops(read("regex", "a{2,5}b?"), blanks=False) == set()


@pytest.mark.parametrize(
    ("regex", "place", "fixed"),
    [
        (r"[ab]{0,9000}", "[ab]{0,9000}", "[ab]{0,}"),
        (r"(?:[ab]c{0,40}){400}", None, None),
        (BUGS["rx-counted-linear"]["input"], "(?s:.){0,10000}", "(?s:.){0,}"),
    ],
)
def test_c9_a_constraint_over_the_budget_names_the_repetition(
    regex: str, place: str | None, fixed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automaton, "STATE_BUDGET", 2_000)
    finding = diagnosed(config("regex", regex))[0]
    assert (finding.code, finding.severity) == ("size", "error")
    if place is not None:
        assert marked(finding) == place
        assert [r.changes["source"] for r in finding.remedies] == [fixed]


def test_c9_a_large_constraint_names_the_parts_that_make_its_states() -> None:
    finding = next(f for f in diagnosed(config("regex", r"a{3000}[bc]{0,10}", 1024)) if f.code == "large")
    assert marked(finding) == "a{3000}"
    assert finding.evidence["states"] == 3011
    assert finding.evidence["parts"][0]["states"] == 3000


# Ranking and remedies


def test_the_best_finding_comes_first_and_remedies_leave_none_of_its_kind() -> None:
    asked = config("regex", r"\d+ *[0-9]{20}", 8)
    found = diagnosed(asked)
    assert [f.code for f in found][:2] == ["length", "blanks"]
    for finding in found:
        for remedy in finding.remedies:
            after = diagnosed(dataclasses.replace(asked, **remedy.changes))
            before = sum(f.code == finding.code for f in found)
            assert sum(f.code == finding.code for f in after) < before


def test_a_remedy_that_does_not_mend_is_not_offered() -> None:
    # Without the blank the text still needs a byte that no token has.
    finding = diagnosed(config("regex", "a b!c", 8), fake.characters("abc"))[0]
    assert finding.code == "vocabulary"
    assert finding.remedies == ()


def test_a_sound_configuration_has_no_findings() -> None:
    assert diagnosed(config("choices", ("ab", "cd"), 4)) == ()


def test_the_witness_of_a_length_is_the_shortest_text_that_listing_finds() -> None:
    vocabulary = words(["a", "b", "ab", "c"], eos=False)
    for source in (("abab", "ccc"), ("a", "abc"), ("bbbb",)):
        compiled = compile(read("choices", source), vocabulary)
        accepted = [x for n in range(6) for x in itertools.product(range(4), repeat=n) if compiled.accepts(x)]
        found = lengths.shortest(compiled, vocabulary)
        assert compiled.accepts(found)
        assert len(found) == min(map(len, accepted))


def test_a_table_without_a_needed_letter_is_told() -> None:
    text = json.dumps({"tokens": ["y", "e", "n", "o"], "eos": None, "mean_field": [[1, 1, 1, 1]] * 3})
    vocabulary = table.parse(text, "table").vocabulary
    finding = next(f for f in diagnosed(config("choices", ("yes", "noe"), 3), vocabulary) if f.code == "vocabulary")
    assert finding.evidence["needed"] == "s"
    assert finding.remedies[0].changes == {"source": ("noe",)}


def test_what_matches_nothing_by_its_tree_alone_is_what_its_automaton_says() -> None:
    sources = ["a[^\\s\\S]b", "a|[^\\s\\S]", "[^\\s\\S]*", "[^\\s\\S]+x?", "(?:[^\\s\\S]|ab){2}", "a(?=b)", "(?>a)"]
    patterns = [read("regex", source).pattern for source in sources]
    patterns += [read("json_schema", schema).pattern for schema in (True, False, {"minItems": 2, "items": False})]
    patterns += [
        read("json_schema", {"type": "array", "items": {"type": "null"}, "minItems": n}).pattern for n in range(3)
    ]
    decided = [matches_nothing(pattern) for pattern in patterns]
    assert decided[5:7] == [None, None]
    for pattern, nothing in zip(patterns, decided, strict=True):
        assert nothing in (None, empty.automaton.compile(pattern).is_empty)
    assert {True, False} <= set(decided)
