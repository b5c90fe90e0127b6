"""Byte automata of regexes against `re.fullmatch`: every string over a small alphabet, and real patterns."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzz import near
from engine import automaton
from engine.constraints import read
from engine.constraints.regex import _code_points
from engine.errors import ConfigError, InputError, NotRegularError, PatternSyntaxError, Place, SizeError
from tests import origins

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data" / "regex" / "regexes.jsonl"
AB_WORDS = ["".join(w) for n in range(6) for w in itertools.product("ab-", repeat=n)]
WORDS = ["".join(w) for n in range(5) for w in itertools.product("aAb\n-é", repeat=n)]


def agrees(source: str, words: list[str]) -> None:
    constraint = read("regex", source)
    reference = re.compile(source)
    wrong = [w for w in words if constraint.accepts(w) != bool(reference.fullmatch(w))]
    assert not wrong, (source, wrong[:5])


LEAVES = st.sampled_from(
    [
        "a",
        "b",
        "A",
        "-",
        "é",
        ".",
        r"\n",
        "[ab]",
        "[^a]",
        "[^\\n]",
        r"\w",
        r"\W",
        r"\s",
        "[a-b-]",
        r"[\w-]",
        "(?i:a)",
        "(?s:.)",
        r"\x61",
        "",
    ]
)
ZERO_WIDTH = st.sampled_from(["^", "$", r"\A", r"\Z", r"\b", r"\B", "(?m:^)", "(?m:$)"])
WIDE = st.sampled_from(["(?<=a)", "(?<!a)", "(?<=a[ab])", "(?<!^a)", r"(?<=\ba)"])


def combine(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0}", "*?", "+?", "{,2}"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
        st.tuples(st.sampled_from(["(?=", "(?!"]), inner).map(lambda p: f"{p[0]}{p[1]})"),
        inner.map(lambda p: f"({p})"),
    )


ATOMIC = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", ".", "(?=a)", "(?!b)", "(?<=a)", r"\b", "$"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        inner.map(lambda p: f"(?>{p})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "{2,}"]), st.sampled_from(["", "?", "+"])).map(
            lambda p: f"(?:{p[0]}){p[1]}{p[2]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=250, deadline=None)
@given(ATOMIC)
def test_atomic_groups_and_possessive_quantifiers_keep_the_first_way_as_python_does(source: str) -> None:
    try:
        agrees(source, AB_WORDS)
    except NotRegularError as error:
        assert "may be empty" in str(error)  # noqa: PT017 - either outcome is right, but no other refusal


PATTERNS = st.recursive(st.one_of(LEAVES, LEAVES, ZERO_WIDTH, WIDE), combine, max_leaves=7)


@settings(max_examples=250, deadline=None)
@given(PATTERNS)
def test_the_automaton_accepts_what_fullmatch_accepts_on_every_short_string(source: str) -> None:
    agrees(source, WORDS[:400])


@pytest.mark.parametrize(
    "source",
    [
        r"(a|b)*abb", r"(?=a)ab|b", r"(?!ab)[ab]*", r"a*(?<!aa)b", r"(?m)^a$\n^b$", r"a$\n?", r"\B", r"\Ba*",
        r"a(?<=a)b(?!b).*", r"(?:a(?=b)|b(?=a|$))*", r"(?<=\bab)b?|ab(?<=\bab)b?", r"(?!.*bb)(?=.*aa)[ab]*",
        r"(?:(?!aa)[ab])*", r"(?x) a b # b" "\n" r" -?", r"(a(?<!^a)|b)*", r"(?i:É)a", r"(?i)[^A]", r"\141\x62", r"a{,2}b{}",
        r"a{,}", r"a{2,1}"[:3] + "}", r"(?#note)a", r"(?s).*", r"[]a]+", r"[^]a]+", r"(?P<n>a)b", r"(?-i:a)", r"(?i)(?-i:a)b",
        r"(?>a|ab)c?", r"(?>ab|a)b", r"a*+a", r"(?:ab?)++b", r"(?>a*?)b", r"(?:b+){2}+", r"(?>a+(?=b))b", "a?+a", r"(?!(?!a))a*", r"(?=(?<!b)a)a*", r"(?!(?<=a)b)[ab]*", r"(?:(?<!a)b|a)*", "",
    ],
)  # fmt: skip
def test_each_construct_means_what_python_means(source: str) -> None:
    agrees(source, WORDS)


@pytest.mark.parametrize(
    "leaf",
    [r"\d", r"\w", r"\s", r"\D", ".", r"(?i:k)", r"(?i:ſ)", r"(?i:[a-z])", r"(?a:\w)", "[^é-ü]", r"(?i:İ)", r"(?i:ß)"],
)
def test_a_leaf_accepts_the_characters_that_python_accepts(leaf: str) -> None:
    constraint, reference = read("regex", leaf), re.compile(leaf)
    for code in [
        *range(0x3000),
        *range(0xD7F0, 0xD800),
        *range(0xE000, 0xE010),
        *range(0xFF00, 0x10100),
        0x1F600,
        0x10FFFF,
    ]:
        char = chr(code)
        assert constraint.accepts(char) == bool(reference.fullmatch(char)), hex(code)


def test_character_sets_leave_out_the_surrogates_and_nothing_else() -> None:
    assert _code_points(r"(?s:.)", 0) == ((0, 0xD7FF), (0xE000, 0x10FFFF))
    assert not read("regex", "[\ud800-\udfff]").accepts("\ud800")
    assert not read("regex", "(?s).*").automaton.accepts("\ud800".encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("bad", [b"\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xff"])
def test_bytes_that_are_not_utf8_are_not_accepted(bad: bytes) -> None:
    assert not read("regex", "(?s).*").automaton.accepts(bad)


def cases(kind: str) -> list[dict]:
    lines = (HERE / "data" / "bugs" / "cases.jsonl").read_text().splitlines()
    return [case for case in map(json.loads, lines) if case["kind"] == kind]


@pytest.mark.parametrize("case", cases("regex") + cases("choices"), ids=lambda c: c["id"])
def test_reported_bugs_of_other_engines_are_not_ours(case: dict) -> None:
    if case["id"] == "rx-backref":
        with pytest.raises(NotRegularError, match="back-reference"):
            read(case["kind"], case["input"])
        return
    constraint = read(case["kind"], case["input"])
    assert [t for t in case["must_accept"] if not constraint.accepts(t)] == []
    assert [t for t in case["must_reject"] if constraint.accepts(t)] == []


def real_patterns() -> list[dict]:
    path = SHARED if SHARED.exists() else HERE / "data" / "regex" / "regexes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_real_patterns_agree_with_fullmatch_on_strings_of_the_language_and_near_it() -> None:
    rng = random.Random(0)
    tested = 0
    for entry in real_patterns():
        letters = {re.I: "i", re.M: "m", re.S: "s", re.X: "x", re.A: "a"}
        on = "".join(letter for flag, letter in letters.items() if entry["flags"] & flag)
        source = f"(?{on}){entry['regex']}" if on else entry["regex"]
        if not entry["py_re_compiles"]:
            with pytest.raises(InputError):
                read("regex", source)
            continue
        tested += 1
        constraint = read("regex", source)
        reference = re.compile(source)
        for text in near(constraint.automaton, rng):
            assert constraint.accepts(text) == bool(reference.fullmatch(text)), (entry["id"], text)
    assert tested > 30


@pytest.mark.parametrize(
    ("source", "column", "words"),
    [
        ("ab(c", 3, "never closed"), ("ab)c", 3, "no group to close"), ("[abc", 1, "never closed"), ("*a", 1, "before it"),
        ("a**", 3, "one quantifier"), ("a{3,2}", 2, "smaller number first"), ("[z-a]", 2, "lower character first"),
        ("a\\", 2, "backslash"), (r"\q", 1, "no such escape"), ("(?P<x", 5, "'>'"), ("(?z)", 2, "Known groups"),
        (r"(?<=a*)b", 1, "fixed length"), ("a(?i)b", 2, "to the start"),
    ],
)  # fmt: skip
def test_a_syntax_error_names_its_place_and_what_was_expected(source: str, column: int, words: str) -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        read("regex", source)
    assert caught.value.place is not None
    assert abs(caught.value.place.column - column) <= 1
    assert words in str(caught.value)
    assert "^" in str(caught.value)


def test_an_error_on_a_later_line_shows_that_line() -> None:
    with pytest.raises(PatternSyntaxError, match="line 2, column 3") as caught:
        read("regex", "abc\nde)f")
    assert caught.value.place.frame() == "  de)f\n    ^"


@pytest.mark.parametrize(
    ("source", "construct"),
    [(r"(a)\1", "back-reference"), (r"(?P<q>a)(?P=q)", "back-reference"), (r"(a)?(?(1)b|c)", "conditional"), ("(?:a?)++b", "possessive"), ("(?>(?:a|)*)c", "atomic")],
)  # fmt: skip
def test_what_no_automaton_decides_is_refused_by_name(source: str, construct: str) -> None:
    with pytest.raises(NotRegularError, match=construct):
        read("regex", source)


def test_a_repetition_over_the_budget_is_named() -> None:
    constraint = read("regex", "x(?:a|b){3,70000}y")
    with pytest.raises(SizeError, match="70,000 copies") as caught:
        automaton.compile(constraint.pattern, constraint.text, budget=10_000)
    assert (caught.value.place.start, caught.value.place.stop) == (1, 17)


def test_every_move_knows_the_leaf_that_it_comes_from() -> None:
    source = r"(?:ab|a[c-d]){1,2}e"
    seen = origins.parts(read("regex", source).automaton, source, b"ade")
    assert seen == [{"a"}, {"[c-d]"}, {"e"}]


def test_the_automaton_is_minimal_and_numbered_breadth_first() -> None:
    machine = read("regex", "(?:a|b)*abb").automaton
    assert machine.states == 4
    assert machine.start == 0
    assert read("regex", "abb|bbb|cbb").automaton.states == 4
    assert read("regex", "[^\\s\\S]").automaton.is_empty


def test_findings_tell_what_may_surprise() -> None:
    codes = {f.code for f in read("regex", r"\d+?[[:digit:]]").findings}
    assert codes == {"unicode-digit", "lazy", "dialect"}
    assert read("regex", "[0-9]+").findings == ()
    assert [f.code for f in read("choices", ["a", "b", "a"]).findings] == ["duplicate-choice"]


def test_choices_with_too_much_text_are_refused() -> None:
    with pytest.raises(SizeError, match="150,000"):
        read("choices", [f"option number {n}" for n in range(20_000)])


def test_choices_are_literal_and_there_is_at_least_one() -> None:
    assert read("choices", "a.b\n(x").accepts("a.b")
    assert not read("choices", "a.b").accepts("axb")
    with pytest.raises(ConfigError, match="no choices"):
        read("choices", [])
    with pytest.raises(ConfigError, match="kind"):
        read("magic", "a")


def test_the_shortest_text_is_accepted_and_nothing_is_shorter() -> None:
    machine = read("regex", "a{3,}|b{2}c|dddd").automaton
    assert machine.shortest() == b"aaa"
    assert read("regex", "[^\\s\\S]").automaton.shortest() is None


# Where interegular 0.3.3 reads Python's language right: no anchors, boundaries, flags or Unicode classes.
SIMPLE = st.recursive(
    st.sampled_from(["a", "b", "-", "[ab]", "[^a]", "[a-b-]", r"\x61", "[0-9]"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(lambda p: f"({p[0]}){p[1]}"),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(SIMPLE)
def test_interegular_reads_the_same_language(source: str) -> None:
    theirs = interegular.parse_pattern(source).to_fsm()
    ours = read("regex", source)
    for word in WORDS[:200]:
        assert ours.accepts(word) == theirs.accepts(word), word


@pytest.mark.parametrize("source", ["a{4000000000}", "((a{1,100}){1,100}){1,100}"])
def test_a_repetition_that_can_not_be_built_is_refused_before_it_is(source: str) -> None:
    with pytest.raises(SizeError, match="copies"):
        _ = read("regex", source).automaton


def test_nesting_that_is_too_deep_is_a_mistake_and_not_a_crash() -> None:
    with pytest.raises(PatternSyntaxError, match="nest"):
        read("regex", "(" * 300 + "a" + ")" * 300)


def test_copies_of_a_repetition_share_their_leaf() -> None:
    machine = read("regex", "(?:a|b){2,30}c").automaton
    assert len(machine.leaves) == 3
    assert max(map(len, machine.origin_sets)) <= 3


def test_look_around_over_every_script_fits_the_budget() -> None:
    constraint = read("regex", r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])(?=.*[^\w]).{8,16}")
    assert constraint.accepts("aB3!aB3!")
    assert constraint.accepts("aB٣…日日日日")
    assert not constraint.accepts("aB33aB33日")


def test_characters_of_all_scripts_over_the_budget_in_bytes_are_named() -> None:
    with pytest.raises(SizeError, match=r"\(\?a\)") as caught:
        _ = read("regex", r"x\w{2000}").automaton
    assert caught.value.place.start == 1


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 60), st.integers(24, 80))
def test_a_frame_shows_all_of_a_short_span_over_its_carets(before: int, size: int, behind: int, width: int) -> None:
    place = Place("a" * before + "b" * size + "c" * behind, before, before + size)
    line, carets = place.frame(width).splitlines()
    under = [shown for shown, caret in zip(line, carets.ljust(len(line)), strict=True) if caret == "^"]
    assert under == ["b"] * size
    assert len(line) <= width + 2
