"""Grammars against Lark's own Earley parser, and against each other where one is the other written out."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from engine.constraints import read
from engine.errors import ConfigError, InputError, NotRegularError, PatternSyntaxError
from tests import origins

WORDS = ["".join(w) for n in range(6) for w in itertools.product("ab,", repeat=n)]


def agrees(grammar: str, words: list[str], depth: int = 12) -> None:
    """Compare with Lark, which tries every way to cut a text into terminals under `dynamic_complete`."""
    parser = Lark(grammar, parser="earley", lexer="dynamic_complete", ambiguity="resolve")
    constraint = read("grammar", grammar, depth=depth)
    wrong = [w for w in words if constraint.accepts(w) != parses(parser, w)]
    assert not wrong, (grammar, wrong[:5])


def parses(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a" "b"* | "b"~2..3',
        'start: ["a"] ("b" | ",")+ X?\nX: "a".."b"',
        'start: "A"i /[ab]+/ ","',
        'start: start "," item | item\nitem: "a" | "b"',
        'start: item "," start | item\nitem: "a" | "b"',
        'start: start "," start | "a" start | start "b" | "a"',
        'start: "a" other | "b"\nother: "," start | "a" other |',
        'start: "a" start "b" |',
        'start: list\nlist: "," list "," | "a"\n',
        'start: _sep{item, ","}\n_sep{x, s}: x (s x)*\nitem: "a" | "b"',
        'start: A B\nA: /a+/\nB: "b" | A ","',
        'start: X+\nX: "a"\n%ignore ","',
        'start: X "b" X\nX: "a" | ","\n%ignore /b,/',
        '?start: "a" -> one\n | start.2 "b" -> two'.replace(".2", ""),
        'start: X\nX: /a.*?b/ ","?',
        'start: /a(?=b)/ "b" /,?b(?<=b)/',
        'start: one\none: "a" two | two\ntwo: one "b" | ","',
        'start: x{"a"}\nx{y}: y | y "," x{y}',
    ],
)
def test_a_grammar_accepts_what_lark_parses(grammar: str) -> None:
    agrees(grammar, WORDS)


ITEMS = st.recursive(
    st.sampled_from(['"a"', '"b"', "start", "other", "A"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map(lambda p: f"({p[0]} | {p[1]})"),
        inner.map(lambda p: f"({p})?"),
        inner.map(lambda p: f"[{p}]"),
    ),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ITEMS, min_size=1, max_size=3), st.lists(ITEMS, min_size=1, max_size=2))
def test_recursion_of_any_kind_is_exact_up_to_its_depth(start: list[str], other: list[str]) -> None:
    grammar = f'start: {" | ".join(start)} | "a"\nother: {" | ".join(other)} | "b"\nA: "b" | ","\n'
    try:
        parser = Lark(grammar, parser="earley", lexer="dynamic_complete")
        constraint = read("grammar", grammar, depth=3)
        machine = constraint.automaton
    except (LarkError, InputError):
        return  # Lark refuses alternatives that are written twice; ours may be over the budget
    cut = any(f.accepts == "too little" for f in constraint.findings)
    for word in [w for w in WORDS if len(w) < 4]:
        accepted, wanted = machine.accepts(word.encode()), parses(parser, word)
        assert accepted <= wanted, (grammar, word)
        assert cut or accepted == wanted, (grammar, word)


def test_recursion_that_is_not_regular_is_cut_at_the_depth_and_that_is_said() -> None:
    grammar = 'start: "(" start ")" | "x"'
    constraint = read("grammar", grammar, depth=3)
    assert constraint.accepts("((x))")
    assert not constraint.accepts("(((x)))")
    (finding,) = constraint.findings
    assert (finding.code, finding.accepts) == ("recursion-cut", "too little")
    assert grammar[finding.where.start : finding.where.stop] == "start"
    with pytest.raises(ConfigError, match="depth of 0"):
        read("grammar", grammar, depth=0)


def test_sums_and_products_are_cut_only_where_parentheses_nest() -> None:
    constraint = read("grammar", ARITHMETIC)
    assert constraint.accepts("1+2*3-4+5*6*7*8+9+10-11")
    assert constraint.accepts("(1+(2*(3)))+4")
    assert not constraint.accepts("1+")
    assert [f.code for f in constraint.findings] == ["recursion-cut"]


ARITHMETIC = """
?sum: product | sum ("+" | "-") product
?product: atom | product "*" atom
?atom: NUMBER | "(" sum ")"
start: sum
%import common.INT -> NUMBER
"""

JSON = """
start: value
?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: ESCAPED_STRING ":" value
%import common (ESCAPED_STRING, SIGNED_NUMBER)
"""


def test_json_in_larks_own_grammar_is_json() -> None:
    constraint = read("grammar", JSON)
    for text in ('{"a":[1,-2.5e3,{"b":null}],"c":"x\\"y"}', "[]", '"é"', "[[[]]]"):
        json.loads(text)
        assert constraint.accepts(text), text
    for text in ('{"a"x"b":1}', '{"a":1,}', "[1 2]", '"a"b"', "[[[[[]]]]]", "'a'"):
        assert not constraint.accepts(text), text
    assert constraint.automaton.states < 1_000


def test_what_is_written_comes_from_its_place_in_the_grammar() -> None:
    source = 'start: "ab" X INT\nX: /c[de]/i\n%import common.INT\n'
    found = origins.parts(read("grammar", source).automaton, source, b"abCd7")
    assert found == [{"a"}, {"b"}, {"c"}, {"[de]"}, {"%import common.INT"}]


@pytest.mark.parametrize(
    ("source", "span", "words"),
    [
        ("start: a\n", "a", "'a' used but not defined"),
        ('start: "x\n', '"', "can't be read at line 1, column 8"),
        ('root ::= "a"\n', ":", "GBNF"),
        ("start: X\nX: /(a/\n", "/(a/", "never closed"),
        ('start: "a" -> B\n', "B", "lowercase"),
        ("start: A\nA: B\nB: A\n", "A", "ecursion"),
        ('start: x{"a"}\nx{a}: a x{_y{a}} |\n_y{b}: b b\n', "x", "more than 1,000 rules"),
        ('a: "b"\n', "a", "no rule named 'start'"),
    ],
)
def test_a_mistake_names_its_place(source: str, span: str, words: str) -> None:
    with pytest.raises(PatternSyntaxError, match=words) as caught:
        read("grammar", source)
    place = caught.value.place
    assert source[place.start : max(place.stop, place.start + 1)] == span


@pytest.mark.parametrize(
    ("source", "words"),
    [("start: X\n%declare X\n", "declared"), ("%import .mine.X\nstart: X\n", "file of its own"), (r"start: /(a)\1/", "back-reference")],
)  # fmt: skip
def test_what_is_not_regular_is_refused_by_name(source: str, words: str) -> None:
    with pytest.raises(NotRegularError, match=words):
        read("grammar", source)


def test_findings_tell_what_has_no_effect_or_no_end() -> None:
    source = 'start.2: "a" | "b" | "a"\nspare: "c"\nWS: " "\n%ignore WS\n'
    found = {f.code: source[f.where.start : f.where.stop] for f in read("grammar", source).findings}
    assert found == {
        "priority": ".2",
        "unused-rule": "spare",
        "duplicate-alternative": "start",
        "unbounded-blanks": "WS",
    }


def test_reported_bugs_of_other_engines_are_not_ours() -> None:
    lines = (Path(__file__).parent / "data" / "bugs" / "cases.jsonl").read_text().splitlines()
    cases = [case for case in map(json.loads, lines) if case["kind"] == "grammar" and "::=" not in case["input"]]
    for case in cases:
        constraint = read("grammar", case["input"])
        assert [t for t in case["must_accept"] if not constraint.accepts(t)] == []
        assert [t for t in case["must_reject"] if constraint.accepts(t)] == []
    assert cases
