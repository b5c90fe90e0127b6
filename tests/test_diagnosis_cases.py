"""Each class of failure on real inputs: reported bugs and functions of BFCL, with the expected class, place and remedy."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import fake
import numpy as np
import pytest
from test_diagnosis_static import BUGS, DATA, LETTERS, REGEXES, any_accepted, config, diagnosed, marked, tokens_of

from benchmarks import calls
from engine import token_automaton
from engine.constraints import read
from engine.decode import denoise
from engine.diagnosis import dynamic, examination, static
from engine.errors import Finding
from engine.models import table
from engine.trace import Config, Header, Trace
from engine.vocabulary import Vocabulary

BFCL = {c["id"]: c for c in map(json.loads, (DATA / "bfcl/sample.jsonl").read_text(encoding="utf-8").splitlines())}
with (DATA / "jsonschema/suite_2020_12.jsonl").open(encoding="utf-8") as lines:
    SUITE = {c["id"]: c["schema"] for c in map(json.loads, lines)}
TOKENS = [*map(chr, range(0x20, 0x7F)), "<end>"]


def bug(name: str) -> tuple[str, str]:
    given = BUGS[name]["input"]
    return BUGS[name]["kind"], given if isinstance(given, str) else json.dumps(given)


def suite(name: str) -> tuple[str, str]:
    return "json_schema", json.dumps(SUITE[f"jsts/{name}"])


def functions(name: str) -> str:
    return json.dumps(BFCL[name]["functions"])


def truth(name: str, syntax: str) -> str:
    return calls.written(calls.truths(BFCL[name], short=True), syntax)


def believing(texts: dict[str, float], sure: float = 0.95) -> table.Table:
    """A model that believes in some texts, each with its share, and a little in every token at every position."""
    rows = np.full((max(map(len, texts)) + 2, len(TOKENS)), (1 - sure) / len(TOKENS))
    for text, share in texts.items():
        for i, row in enumerate(rows):
            row[TOKENS.index(text[i]) if i < len(text) else -1] += sure * share
    return table.parse(json.dumps({"tokens": TOKENS, "eos": "<end>", "mean_field": rows.tolist()}), "typed")


def run(kind: str, source: str, model: table.Table, sampler: str = "midpoint", **reading: Any) -> Trace:
    length = int(model.facts["length"])
    asked = Config("", kind, source, length=length, steps=length, block_length=length, temperature=1.0, sampler=sampler)
    automaton = token_automaton.compile(read(kind, source, **reading), model.vocabulary)
    return Trace(Header(asked, model.facts, model.vocabulary, automaton), tuple(denoise(model, automaton, asked)))


def said(trace: Trace, code: str) -> Finding:
    return next(f for f in dynamic.findings(trace) if f.code == code)


def where(finding: Finding) -> str:
    """The place of a finding: its JSON pointer, or what stands there."""
    assert finding.where is not None
    return marked(finding) if finding.where.pointer is None else finding.where.pointer


def told(asked: Config, code: str, vocabulary: Vocabulary = LETTERS) -> Finding:
    return next(f for f in diagnosed(asked, vocabulary) if f.code == code)


def mended(asked: Config, finding: Finding, label: str, vocabulary: Vocabulary = LETTERS) -> Config:
    """Apply the remedy whose label begins so: the finding is gone from its place, and nothing stands in a run's way."""
    remedy = next(r for r in finding.remedies if r.label.startswith(label))
    after = dataclasses.replace(asked, **remedy.changes)
    left = examination.examine(after, vocabulary).found
    assert where(finding) not in [where(f) for f in left if f.code == finding.code and f.where]
    assert not [f for f in left if f.severity == "error"]
    return after


CHOICES = tuple(BUGS["vl48115-choice-newline"]["input"])
LETTER_KEYS = suite("optional/ecmascript-regex#patterns always use unicode semantics with patternProperties")
LETTER_KEY = r"/patternProperties/\p{Letter}cole"
GBNF_IN_LARK = 'start : "speed(level=" integer ")"\ninteger : sign? digit+\nsign : "+" | "-"\ndigit : /[0-9]/\n'


@pytest.mark.parametrize(
    ("kind", "source", "place", "label", "after"),
    [
        ("regex", REGEXES["jsts:7"], "\\", r"Write \p{Letter}, a letter", r"[^\W\d_]cole"),
        ("regex", REGEXES["jsts:28"], "\\", r"Write the control character \cC", r"^\x03$"),
        ("regex", REGEXES["grok:RUUID"], "\\", r"Write \h, Ruby's", "[0-9A-Fa-f]{32}"),
        (*bug("gd1396-ebnf-optional"), ":", "Write it in Lark's syntax", GBNF_IN_LARK),
    ],
)
def test_c1_what_can_not_be_read_is_marked_and_mended_where_it_stands(
    kind: str, source: str, place: str, label: str, after: str
) -> None:
    asked = config(kind, source, 64)
    finding = diagnosed(asked)[0]
    assert (finding.code, finding.severity, where(finding)) == ("syntax", "error", place)
    assert "line 1, column" in finding.message
    assert mended(asked, finding, label, fake.characters("".join(map(chr, range(0x80))))).source == after


@pytest.mark.parametrize(
    ("kind", "source", "code", "place", "label"),
    [
        (*bug("rx-backref"), "unsupported", r"\1", "Write the group again"),
        (*bug("oc-maxlen-blowup"), "length-too-large", "/properties/job/properties/script/maxLength", "Remove"),
        (*bug("oc231-escapes"), "any-depth", "/type", "Allow no other members"),
        (*suite("format#email format"), "format-loose", "/format", "Remove /format"),
        (*suite("format#idn-email format"), "format-not-enforced", "/format", "Remove /format"),
        (
            *suite("optional/dependencies-compatibility#single dependency"),
            "keyword-of-another-draft",
            "/dependencies",
            "Write",
        ),
    ],
)
def test_c2_what_is_not_enforced_is_named_at_its_place_and_can_be_written_so_that_it_is(
    kind: str, source: str, code: str, place: str, label: str
) -> None:
    asked = config(kind, source, 64)
    finding = told(asked, code)
    assert finding.severity == ("error" if code == "unsupported" else "warning")
    assert where(finding) == place
    assert finding.fixes or finding.remedies
    mended(asked, finding, label)


@pytest.mark.parametrize(
    ("kind", "source", "conflict", "label", "after"),
    [
        (*bug("ag-const-enum-conflict"), ["/const", "/enum"], "Remove /const", '{"enum": ["b", "c"]}'),
        (*bug("xg639-empty-enum"), ["/properties/x/enum", "/type", "/required"], "Remove /properties/x/enum", None),
        (*suite("enum#empty enum"), ["/enum"], "Remove /enum", "{}"),
        (*suite("not#forbid everything with empty schema"), ["/not"], "Remove /not", "{}"),
        (*suite("oneOf#oneOf with boolean schemas, more than one true"), ["/oneOf"], "Remove /oneOf", "{}"),
        ("regex", REGEXES["grok:UNIXPATH"], ["$"], "Remove '$'", "(/[[0-9A-Za-z]_%!@:.,+~-]*)+"),
        ("regex", REGEXES["grok:MONGO_QUERY"], ["(?= } ntoreturn:)"], "Remove", r"\{ (?<={ ).* \}"),
    ],
)
def test_c3_a_real_constraint_that_accepts_nothing_names_the_fewest_parts_that_contradict(
    kind: str, source: str, conflict: list[str], label: str, after: str | None
) -> None:
    asked = config(kind, source, 64)
    finding = diagnosed(asked)[0]
    assert (finding.code, finding.severity, where(finding)) == ("empty", "error", conflict[0])
    places = [finding.where, *finding.related]
    assert [p.pointer if p.pointer is not None else source[p.start : p.stop] for p in places if p] == conflict
    changed = mended(asked, finding, label)
    assert after in (None, changed.source)
    assert not read(kind, changed.source).automaton.is_empty


@pytest.mark.parametrize(
    ("kind", "source", "length", "needed", "place"),
    [
        ("tools", functions("simple_python_22"), 32, 51, "/0/name"),
        ("tools", functions("live_simple_244-126-2"), 24, 46, "/0/name"),
        (*bug("llg293-date"), 8, 12, "/format"),
        (*bug("ol971-const-true"), 12, 25, "/properties/a"),
    ],
)
def test_c4_a_canvas_too_short_for_a_real_constraint_names_its_largest_part_and_the_length(
    kind: str, source: str, length: int, needed: int, place: str
) -> None:
    finding = diagnosed(config(kind, source, length))[0]
    assert (finding.code, finding.severity) == ("length", "error")
    assert finding.where is not None
    assert finding.where.pointer == place
    (remedy,) = finding.remedies
    assert remedy.changes["length"] == needed
    assert not any(f.severity == "error" for f in diagnosed(config(kind, source, needed)))


def without(characters: str) -> Vocabulary:
    """Printable ASCII but for some characters."""
    return fake.characters("".join(c for c in map(chr, range(0x20, 0x7F)) if c not in characters))


SPACED = (("whitespace", "single-space"),)
LEADING = json.loads(bug("ol1707-leading-space")[1])["regex"]


@pytest.mark.parametrize(
    ("kind", "source", "reading", "vocabulary", "needed", "prefix", "place", "label"),
    [
        ("regex", LEADING, (), tokens_of("ol1707-leading-space"), " ", '{"a":', " ", "Remove ' '"),
        ("tools", functions("simple_python_22"), SPACED, without(" "), " ", '{"name":', "/0/name", "Write it without"),
        ("tools", functions("multiple_78"), SPACED, without(" "), " ", '{"name":', "/0/name", "Write it without"),
        ("choices", CHOICES, (), LETTERS, "\n", "no", "\n", "Remove the choice"),
        ("choices", CHOICES[2:], (), LETTERS, "é", "caf", "é", "Remove the choice"),
        (*bug("rx-lazy"), (), LETTERS, "\n", "```latex", r"\n", "Remove"),
    ],
)
def test_c5_what_no_token_writes_is_named_with_its_bytes_the_text_before_it_and_its_place(
    kind: str, source: Any, reading: Any, vocabulary: Vocabulary, needed: str, prefix: str, place: str, label: str
) -> None:
    asked = config(kind, source, 80, reading=reading)
    finding = told(asked, "vocabulary", vocabulary)
    evidence = finding.evidence
    assert (evidence["needed"], evidence["bytes"], evidence["prefix"]) == (needed, needed.encode().hex(" "), prefix)
    assert where(finding) == place
    mended(asked, finding, label, vocabulary)


@pytest.mark.parametrize(
    ("kind", "source", "length", "pins", "blamed"),
    [
        (*bug("oc-found-prefix-alt"), 4, {0: "n", 1: "o", 2: "x"}, [2]),
        (*bug("oc-found-optional-tail"), 6, {1: ".", 5: "7", 4: "."}, [1, 5]),
        (*bug("llg293-date"), 12, {0: '"', 6: "9", 9: "4"}, [6]),
        ("tools", functions("live_simple_244-126-2"), 50, {0: "{", 12: "m"}, [12]),
    ],
)
def test_c6_pins_against_a_real_constraint_are_named_and_taking_one_out_leaves_a_completion(
    kind: str, source: str, length: int, pins: dict[int, str], blamed: list[int]
) -> None:
    ids = {data.decode(): token for token, data in enumerate(LETTERS.token_bytes) if data}
    placed = tuple((i, ids[text]) for i, text in pins.items())
    finding = diagnosed(config(kind, source, length, pins=placed))[0]
    assert (finding.code, finding.severity) == ("pins", "error")
    assert [pin["position"] for pin in finding.evidence["pins"]] == blamed
    assert finding.remedies
    compiled = token_automaton.compile(read(kind, source), LETTERS)
    for remedy in finding.remedies:
        assert any_accepted(compiled, dict(remedy.changes["pins"]), length)


@pytest.mark.parametrize(
    ("name", "wanted", "position", "place", "source"),
    [
        ("ig10-anchors", "abc", 2, "b", "^a(?:b|c)+$"),
        ("rx-unicode-digit", "1a", 1, r"\d", r"(?:\d|a){2}"),
        ("oc-found-optional-tail", "12,50", 2, "[0-9]", None),
    ],
)
def test_c7_what_the_model_wants_beside_a_reported_regex_is_named_and_can_be_allowed(
    name: str, wanted: str, position: int, place: str, source: str | None
) -> None:
    finding = said(run(*bug(name), believing({wanted: 1.0})), "belief")
    assert marked(finding) == place
    assert finding.focus.position == position
    assert f"wanted {wanted[position]!r}" in finding.message
    assert [remedy.changes["source"] for remedy in finding.remedies] == ([source] if source else [])


@pytest.mark.parametrize("name", ["simple_python_22", "live_simple_244-126-2", "simple_python_223"])
def test_c7_a_model_that_calls_in_another_syntax_loses_its_belief_and_one_that_obeys_keeps_it(name: str) -> None:
    source = functions(name)
    asked_for, other = truth(name, "json"), truth(name, "python")
    stray = run("tools", source, believing({other.ljust(len(asked_for)): 1.0}))
    assert stray.accepted
    finding = said(stray, "belief")
    assert finding.severity == "info"
    assert finding.where is not None
    assert finding.where.pointer == "/0/name"
    assert finding.evidence["log_partition"] < -100
    assert sum(part["nats"] for part in finding.evidence["parts"]) == pytest.approx(-finding.evidence["log_partition"])
    calm = said(run("tools", source, believing({asked_for: 1.0})), "belief")
    assert calm.evidence["log_partition"] > -10
    assert "wanted" not in calm.message


@pytest.mark.parametrize(
    ("kind", "source", "code", "place", "label"),
    [
        ("regex", REGEXES["commonregex:ipv6"], "blanks", r"\s", "Bound"),
        ("regex", REGEXES["commonregex:phone"], "blanks", r"\s", "Bound"),
        ("regex", REGEXES["grok:SPACE"], "blanks", r"\s", "Bound"),
        (*bug("ig10-anchors"), "unbounded", "b", "Bound"),
        (*bug("rx-class-posix"), "unbounded", "]", "Bound"),
        (*bug("lc29127-esc-hyphen"), "unbounded", "/pattern", "Bound"),
        (*bug("lc25923-tools"), "unbounded", "/1/function/parameters/properties/key/pattern", "Bound"),
    ],
)
def test_c8_what_nothing_bounds_in_a_real_constraint_is_told_before_a_run_and_can_be_bounded(
    kind: str, source: str, code: str, place: str, label: str
) -> None:
    asked = config(kind, source, 80)
    finding = told(asked, code)
    assert finding.severity == ("warning" if code == "blanks" else "info")
    assert where(finding) == place
    mended(asked, finding, label)


@pytest.mark.parametrize(
    ("kind", "source", "text", "stuck", "place"),
    [
        (*bug("ig10-anchors"), "abbbbbbbbbbbbbbbbbbbbbbb", "b" * 12, "b"),
        (*bug("lc29127-esc-hyphen"), '"' + "a-" * 15 + '"', "-a" * 5, "/pattern"),
        (*bug("oc-found-optional-tail"), "9" * 24, "9" * 12, "[0-9]"),
    ],
)
def test_c8_a_model_that_goes_on_and_on_is_told_with_the_part_the_tokens_spent_and_a_bound_that_ends_it(
    kind: str, source: str, text: str, stuck: str, place: str
) -> None:
    model = believing({text: 1.0})
    trace = run(kind, source, model)
    finding = said(trace, "trap")
    start, stop = finding.evidence["start"], finding.evidence["stop"]
    assert stuck in trace.text[start:stop]
    assert where(finding) == place
    assert all(chance < 0.5 for chance in finding.evidence["exit_chances"] if chance is not None)
    bounded = str(finding.remedies[0].changes["source"])
    assert not [f for f in dynamic.findings(run(kind, bounded, model)) if f.code == "trap"]


@pytest.mark.parametrize(
    ("kind", "source", "code", "place", "label"),
    [
        (*bug("rx-counted-linear"), "large", "(?s:.){0,10000}", "Take the limit 10000"),
        ("regex", REGEXES["commonregex:street_address"], "large", r"[\w\s]{1,20}", "Take the limit 20"),
        (*bug("oc-maxlen-blowup"), "length-too-large", "/properties/job/properties/script/maxLength", "Remove"),
        pytest.param(*LETTER_KEYS, "size", LETTER_KEY, f"Remove {LETTER_KEY}", marks=pytest.mark.slow),
    ],
)
def test_c9_the_construct_that_makes_a_real_constraint_large_is_named_and_without_it_it_is_small(
    kind: str, source: str, code: str, place: str, label: str
) -> None:
    asked = config(kind, source, 64)
    finding = told(asked, code)
    assert where(finding) == place
    after = mended(asked, finding, label)
    if code == "large":
        assert read(kind, after.source).automaton.states < read(kind, source).automaton.states / 2


@pytest.mark.parametrize("name", ["multiple_78", "multiple_20", "multiple_92"])
def test_c10_of_several_functions_the_one_that_was_called_is_told_with_what_the_others_had(name: str) -> None:
    names = [f["name"] for f in BFCL[name]["functions"]]
    right = truth(name, "python")
    called = names.index(right.partition("(")[0])
    rival = (called + 1) % len(names)
    wrong = names[rival] + right[right.index("(") :]
    trace = run("tools", functions(name), believing({right: 0.6, wrong: 0.4}, 0.98), call_syntax="python")
    assert trace.accepted
    won = names.index(trace.text.partition("(")[0])
    finding = said(trace, "branch")
    assert finding.where is not None
    assert finding.where.pointer == f"/{won}"
    first, *others = finding.evidence["branches"]
    assert first["died"] is None
    assert others
    assert all(branch["died"] is not None and branch["probability"] < 1 for branch in others)
    assert said(trace, "accepted")
    assert not any(f.severity == "error" for f in dynamic.findings(trace))


def test_an_unconstrained_call_in_another_syntax_says_since_when_it_can_not_be_accepted_and_what_is_nearest() -> None:
    name = "live_simple_244-126-2"
    asked_for, other = truth(name, "json"), truth(name, "python")
    trace = run("tools", functions(name), believing({other.ljust(len(asked_for)): 1.0}), "independent")
    finding = dynamic.findings(trace)[0]
    assert (finding.code, finding.severity, trace.accepted) == ("no-return", "error", False)
    assert finding.evidence["conflict"]
    assert read("tools", functions(name)).accepts(finding.evidence["nearest"]["text"])
    assert finding.remedies[0].changes == {"sampler": "midpoint"}


def test_a_nondeterministic_constraint_is_diagnosed_like_any_other() -> None:
    regex = "[ab]*a[ab]{20}"  # as a deterministic automaton 2²¹ states
    text = "ab" * 12
    exact = run("regex", regex, believing({text: 1.0}))
    assert not exact.header.automaton.deterministic
    assert exact.accepted == bool(read("regex", regex).accepts(exact.text))
    assert {"accepted", "belief"} <= {f.code for f in dynamic.findings(exact)}
    failed = run("regex", regex, believing({"b" * 24: 1.0}), "independent")
    finding = dynamic.findings(failed)[0]
    assert finding.code == "no-return"
    assert read("regex", regex).accepts(finding.evidence["nearest"]["text"])
    asked = config("regex", regex, 10)
    assert static.findings(asked, LETTERS)[0].code == "length"
