"""JSON Schema against its own test suite, public bug reports, and `jsonschema` on small cases."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest

from benchmarks.instances import in_schema_order
from engine import automaton, constraints
from engine.constraints.json_schema import document, ecma, formats, numbers, spelling, texts
from engine.errors import ApproximationError, InputError, NotRegularError, PatternSyntaxError, SizeError
from engine.pattern import ANY, Chars, Graph, Origin

DATA = Path(__file__).parent / "data"
HERE = Origin(0, 1, "")


def lines(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").split("\n") if line]


SUITE = lines("jsonschema/suite_2020_12.jsonl")
BUGS = [case for case in lines("bugs/cases.jsonl") if case["kind"] == "json_schema"]


def read(schema, **options):
    return constraints.read("json_schema", schema, **options)


def codes(constraint):
    return {finding.code for finding in constraint.findings}


def told(constraint, accepts):
    return any(finding.accepts == accepts for finding in constraint.findings)


def test_a_graph_is_the_texts_along_its_paths():
    a, b = (Chars(((ord(c), ord(c)),), HERE) for c in "ab")
    machine = automaton.compile(Graph(((0, a, 0), (0, b, 1), (1, a, 0)), frozenset({1})))
    for length in range(6):
        for letters in itertools.product("ab", repeat=length):
            text = "".join(letters)
            assert machine.accepts(text.encode()) == bool(re.fullmatch("(a|ba)*b", text))


@pytest.mark.parametrize("case", SUITE[::5], ids=lambda case: case["id"])
def test_no_instance_of_the_official_suite_is_decided_wrongly_in_silence(case):
    try:
        constraint = read(case["schema"], format_assertion=case["format_assertion"])
    except InputError:
        pytest.skip("refused, which another test counts")
    ordered = [in_schema_order(case["schema"], t["data"]) for t in case["tests"]]
    found = [(t["valid"], constraint.accepts(json.dumps(data))) for t, data in zip(case["tests"], ordered, strict=True)]
    agreed = [t["valid"] == t["oracle"] for t in case["tests"]]
    for data, (valid, accepted), sure in zip(ordered, found, agreed, strict=True):
        if sure and valid:
            assert accepted, data
        elif sure:
            assert not accepted or told(constraint, "too much"), data


def test_few_schemas_of_the_official_suite_are_refused_and_each_with_its_place():
    errors = []
    for case in SUITE[1::4]:
        try:
            read(case["schema"])
        except InputError as error:
            errors.append(error)
    assert len(errors) <= 3
    assert all(error.place is not None for error in errors)


@pytest.mark.parametrize("case", BUGS, ids=lambda case: case["id"])
def test_what_other_engines_got_wrong_is_right_here(case):
    constraint = read(case["input"])
    assert [text for text in case["must_accept"] if not constraint.accepts(text)] == []
    if not told(constraint, "too much"):
        assert [text for text in case["must_reject"] if constraint.accepts(text)] == []


SPELLINGS = [
    text
    for length in range(1, 6)
    for text in map("".join, itertools.product("-.0159", repeat=length))
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text)
]
BOUNDS = ["0", "-0", "1", "1.10", "5e-2", "-1", "9", "10", "15", "-15", "0.5", "-1.05", "0.015", "100", "51.5", "99.95"]


@pytest.mark.parametrize("bound", BOUNDS)
def test_bounds_hold_for_every_spelling_of_a_number(bound):
    limit = Decimal(bound)
    sets = {
        (numbers.at_least, False): lambda x: x >= limit,
        (numbers.at_least, True): lambda x: x > limit,
        (numbers.at_most, False): lambda x: x <= limit,
        (numbers.at_most, True): lambda x: x < limit,
    }
    for (language, strict), holds in sets.items():
        machine = automaton.compile(language(limit, HERE, strict=strict))
        wrong = [t for t in SPELLINGS if machine.accepts(t.encode()) != holds(Decimal(t))]
        assert wrong == [], (language.__name__, strict)
    one = automaton.compile(numbers.one(limit, HERE))
    assert [t for t in SPELLINGS if one.accepts(t.encode()) != (Decimal(t) == limit)] == []


@pytest.mark.parametrize("divisor", ["1", "2", "6", "7", "0.5", "0.01", "2.5", "0.15", "100", "1e1", "150"])
def test_multiples_hold_for_every_spelling_of_a_number(divisor):
    machine = automaton.compile(numbers.multiples(Decimal(divisor), HERE))
    for text in SPELLINGS:
        assert machine.accepts(text.encode()) == ((Fraction(text) / Fraction(divisor)).denominator == 1), text


@pytest.mark.parametrize("exponent", [400, -400])
@pytest.mark.parametrize("keyword", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
def test_numbers_of_hundreds_of_digits_are_exact(keyword, exponent):
    constraint = read(f'{{"type": "number", "{keyword}": 1e{exponent}}}')
    limit = Decimal(f"1e{exponent}")
    for number in (limit, limit * 2, limit / 2, -limit, Decimal(7), Decimal(0), Decimal("0.5")):
        holds = {
            "minimum": number >= limit,
            "maximum": number <= limit,
            "exclusiveMinimum": number > limit,
            "exclusiveMaximum": number < limit,
            "multipleOf": (Fraction(number) / Fraction(limit)).denominator == 1,
        }
        assert constraint.accepts(f"{number:f}") == holds[keyword], number


@pytest.mark.parametrize("number", ["1e4000000", "-1e1000", "1e-999999999999", "1e99999999999999999999", "9" * 5_000])
@pytest.mark.parametrize("keyword", ["minimum", "multipleOf", "const", "maxLength", "minItems"])
def test_a_number_of_too_many_digits_is_refused_where_it_stands(keyword, number):
    with pytest.raises(SizeError, match="digits") as caught:
        read(f'{{"type": "number", "{keyword}": {number}}}')
    assert caught.value.place.pointer == f"/{keyword}"


def test_a_date_is_a_day_of_the_calendar():
    machine = automaton.compile(formats.pattern("date"))
    for year, month, day in itertools.product((0, 4, 100, 400, 1900, 2000, 2023, 2024, 9999), range(14), range(33)):
        try:
            real = bool(datetime.date(year or 400, month, day))  # year 0 is a leap year, as 400 is
        except ValueError:
            real = False
        assert machine.accepts(f"{year:04d}-{month:02d}-{day:02d}".encode()) == real, (year, month, day)


CHARACTERS = 'a"\\/\b\f\n\r\t\x00\x1f\x7fé\u2028\ud7ff\ue000\uffff😀\U0010ffff'


def test_each_character_of_a_string_may_be_written_as_json_writes_it():
    machine = automaton.compile(spelling.character(ANY, HERE))
    for c in CHARACTERS:
        for ascii_only in (True, False):
            assert machine.accepts(json.dumps(c, ensure_ascii=ascii_only)[1:-1].encode()), c
    for wrong in ("", '"', "\\", "\n", "\\q", "\\u12", "\\ud800", "\\ud800\\u0041", "aa", "\\u00e9\\u00e9"):
        assert not machine.accepts(wrong.encode())


def test_an_escape_counts_as_one_character():
    constraint = read({"type": "string", "minLength": 2, "maxLength": 2})
    for content in ('"\n', "é😀", "ab"):
        assert constraint.accepts(json.dumps(content))
        assert constraint.accepts(json.dumps(content, ensure_ascii=False))
        assert not constraint.accepts(json.dumps(content * 2))
        assert not constraint.accepts(json.dumps(content[0]))


@pytest.mark.parametrize(
    ("pattern", "accepted", "rejected"),
    [
        (r"^\d+$", ["12"], ["١", "", "1\n", "a"]),
        (r"a.c", ["xabcx", "aéc"], ["a\nc", "a\u2028c"]),
        (r"^(?<year>[0-9]{4})$", ["2024"], ["24"]),
        (r"\cJ", ["\n"], ["J"]),
        (r"^\u{1F600}$", ["😀"], ["u"]),
        (r"^\p{Lu}$", ["É"], ["é"]),
        (r"^[^]$", ["\n", "x"], [""]),
        (r"\/\-\_", ["/-_"], ["/"]),
        (r"^[\w.-]{2,}$", ["a.-b"], ["é.", "a"]),
        (r"^\S+$", ["ab"], ["a\u00a0b", "\ufeff"]),
        (r"a{,2}$", ["a{,2}"], ["aa"]),
        (r"^(?!x).*$", ["yx", ""], ["xy"]),
        (r"^\012[\1]$", ["\n\x01"], ["\x0012", "\n1"]),
        (r"^\Z\A$", ["ZA"], [""]),
    ],
)
def test_a_pattern_is_read_as_ecma_262(pattern, accepted, rejected):
    constraint = read({"type": "string", "pattern": pattern})
    assert [t for t in accepted if not constraint.accepts(json.dumps(t))] == []
    assert [t for t in rejected if constraint.accepts(json.dumps(t))] == []


ECMA = [
    "^a$", "(a|b$)c?", "^$", "(?=a$)a", r"^\d$", r"^\D$", r"^\w$", r"^\W$", r"^\s$", r"^\S$", r"a\Z", r"\Aa", r"a\z", "^.$",
    r"(?<n>a)", r"\p{L}", r"^\P{Lu}$", r"^[\p{Lu}\d]$", r"\p{Greek}", r"\u{61}", r"\cJ", "[^]", "[]", "^a{,3}$", r"\a", r"\e",
    r"\ba\b", r"\Ba", r"\uD83D\uDE00", r"^[\w-z]$", "(?i)a", "(?P<n>a)", "(?>a)", "a++", "(?#c)a", r"(?<n>a)\k<n>", r"(b)|\1a",
]  # fmt: skip
ALIKE = [
    r"^[a\]$]",
    r"\/",
    r"\-\_",
    r"\u0061",
    r"(?:a|b)c?",
    r"(?<=a)b",
    r"(?<!a)b",
    "[a&&b]",
    "[[a]",
    r"\x61\n\t",
    "a{2,}",
    r"\$",
]
PROBES = [
    "",
    *"aAéZñ1٣\n\r\u2028\u0085\ufeff\x1c -\x07eα😀&[",
    "a\n",
    "ba",
    "ab",
    "aa",
    "éa",
    "aZ",
    "Aa",
    "az",
    "b\n",
    "aaa",
    "a{,3}",
]


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
@pytest.mark.parametrize("pattern", [*ECMA, *ALIKE])
def test_where_a_validator_in_python_reads_a_pattern_otherwise_a_finding_says_so(pattern):
    constraint = read({"type": "string", "pattern": pattern})
    said = {"pattern-dialect", "pattern-end", "pattern-not-regular"} & codes(constraint)
    assert bool(said) == (pattern in ECMA)
    try:
        read_alike = all(bool(re.search(pattern, t)) == constraint.accepts(json.dumps(t)) for t in PROBES)
    except re.error:
        read_alike = False
    assert read_alike or said


def test_the_translation_keeps_the_place_of_every_character():
    for source in (r"^\d+.\p{L}[\s\d]$", r"a\u{41}b{,3}(?<n>x)\k<n>"):
        translated, places = ecma.translate(source)
        assert len(places) == len(translated) + 1
        assert places == sorted(places)
        assert places[-1] == len(source)


def test_a_mistake_in_a_pattern_is_shown_where_it_stands_in_the_schema():
    text = '{"type": "string", "pattern": "a\\\\d(b"}'
    with pytest.raises(PatternSyntaxError) as caught:
        read(text)
    assert text[caught.value.place.start] == "("
    assert caught.value.place.pointer == "/pattern"


def test_origins_point_to_the_name_and_the_keyword_that_write_a_character():
    text = (
        '{"properties": {"ab": {"enum": ["xy"]}}, "required": ["ab"], "additionalProperties": false, "type": "object"}'
    )
    constraint = read(text)
    machine = constraint.automaton
    pointers = {text[leaf.start : leaf.stop]: leaf.pointer for leaf in machine.leaves}
    assert pointers['"ab"'] == "/properties/ab"
    assert pointers['"xy"'] == "/properties/ab/enum/0"
    assert pointers['"object"'] == "/type"


def test_json_text_is_read_with_the_span_of_every_part():
    text = '{"a\\u00e9": [1, -2.5e1, {"b/~": "x\\ny"}], "c": {}}'
    read_text = document.read(text)
    assert read_text.value == json.loads(text)
    for pointer, span in read_text.spans.items():
        value = json.loads(text)
        for name in pointer.split("/")[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]
        assert json.loads(text[span.start : span.stop]) == value


@pytest.mark.parametrize("text", ["{", '{"a": }', "[1,]", '{"a": NaN}', "{'a': 1}", '"x" 1'])
def test_broken_json_is_refused_with_its_place(text):
    with pytest.raises(PatternSyntaxError) as caught:
        read(text)
    assert caught.value.place is not None


def test_a_schema_that_its_draft_does_not_allow_is_refused_with_its_place():
    with pytest.raises(PatternSyntaxError) as caught:
        read({"properties": {"a": {"type": "strnig"}}})
    assert caught.value.place.pointer == "/properties/a/type"


def test_a_mistake_in_a_number_shows_it_as_it_was_written():
    with pytest.raises(PatternSyntaxError, match=r"/maxLength: 2\.5 is not of type"):
        read('{"maxLength": 2.5}')


def required(names):
    return {"anyOf": [{"required": [name]} for name in names]}


def test_alternatives_that_combine_to_many_cases_are_exact_for_texts_and_else_refused_with_their_place():
    parts = [
        [f"^{c}" for c in "abcde"],
        [f"{c}$" for c in "abcde"],
        [c * 2 for c in "abcd"],
        [f"{c}.?a" for c in "abcd"],
    ]
    schema = {"type": "string", "allOf": [{"anyOf": [{"pattern": p} for p in listed]} for listed in parts]}
    validator = jsonschema.Draft202012Validator(schema)
    constraint = read(schema)
    for text in map("".join, itertools.product("abf", repeat=4)):
        assert constraint.accepts(json.dumps(text)) == validator.is_valid(text), text
    with pytest.raises(SizeError, match="1,024") as caught:
        read({"type": "object", "allOf": [required(names) for names in ("abcd", "efgh", "ijkl", "mnop", "qrst")]})
    assert caught.value.place.pointer == "/allOf"


def test_hundreds_of_constants_are_alternatives_like_an_enum():
    constants = [{"const": f"v{i}"} for i in range(400)]
    for keyword in ("anyOf", "oneOf"):
        constraint = read({keyword: [*constants, {"type": "integer", "minimum": 3}]})
        assert not told(constraint, "too much")
        assert constraint.accepts('"v399"')
        assert constraint.accepts("3")
        assert not constraint.accepts('"v400"')


@pytest.mark.parametrize("kind", ["json_schema", "tools"])
def test_what_nests_too_deeply_is_refused(kind):
    schema = "null"
    for _ in range(400):
        schema = f'{{"type": "object", "properties": {{"a": {schema}}}}}'
    with pytest.raises(SizeError, match="nests too deeply"):
        constraints.read(kind, schema if kind == "json_schema" else f'[{{"name": "f", "parameters": {schema}}}]')


def test_overlapping_alternatives_of_several_one_ofs_are_told_where_there_are_too_many_cases():
    named = [[f"{letter}{i}" for i in range(4)] for letter in "ab"]
    alternatives = [
        [{"type": "object", "properties": {name: {"type": "string"}}, "required": [name]} for name in names]
        for names in named
    ]
    constraint = read({"allOf": [{"oneOf": listed} for listed in alternatives]})
    assert constraint.accepts('{"a1": "x", "b2": "y"}')
    assert not constraint.accepts('{"a1": "x"}')
    assert told(constraint, "too much")


def test_a_reference_out_of_the_document_is_refused_with_the_reason():
    with pytest.raises(NotRegularError, match="nothing is fetched"):
        read({"$ref": "https://example.com/schema"})


def test_not_is_about_values_whatever_the_order_of_their_keys():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "not": {"required": ["b", "a"]},
    }
    constraint = read(schema | {"additionalProperties": False})
    assert constraint.accepts('{"a": 1}')
    assert constraint.accepts('{"b": 1}')
    assert constraint.accepts("{}")
    assert not constraint.accepts('{"a": 1, "b": 2}')


def test_members_may_come_in_any_order_where_that_is_asked_for():
    schema = {
        "properties": {n: {"type": "integer"} for n in "abc"},
        "required": ["a", "c"],
        "additionalProperties": False,
        "type": "object",
    }
    ordered, free = read(schema), read(schema, key_order="any")
    for keys in itertools.chain.from_iterable(itertools.permutations("abc", n) for n in range(4)):
        text = json.dumps(dict.fromkeys(keys, 1))
        assert free.accepts(text) == ({"a", "c"} <= set(keys))
        assert ordered.accepts(text) == (list(keys) in (["a", "c"], ["a", "b", "c"]))


@pytest.mark.parametrize(
    ("policy", "accepted", "rejected"),
    [
        ("optional", ['{"a":[1,2]}', '{"a": [1, 2]}', '{"a":[1, 2]}'], ['{ "a": [1, 2]}', '{"a":  [1, 2]}']),
        ("compact", ['{"a":[1,2]}'], ['{"a": [1,2]}']),
        ("single-space", ['{"a": [1, 2]}'], ['{"a":[1,2]}']),
        ("free", ['{\n  "a": [\n 1 , 2 ]\n}', ' {"a":[1,2]} '], ['{"a":' + " " * 21 + "[1,2]}"]),
    ],
)
def test_blanks_stand_where_the_policy_lets_them(policy, accepted, rejected):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
        "additionalProperties": False,
    }
    constraint = read(schema, whitespace=policy)
    assert [t for t in accepted if not constraint.accepts(t)] == []
    assert [t for t in rejected if constraint.accepts(t)] == []
    assert "whitespace" in codes(constraint)


def test_recursion_is_cut_at_a_depth_and_said():
    schema = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
    constraint = read(schema, depth=2)
    assert told(constraint, "too little")
    assert constraint.accepts("[[[]]]")
    assert not constraint.accepts("[[[[]]]]")
    with pytest.raises(ApproximationError):
        read(schema, strict=True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 65536},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        {"type": "number", "multipleOf": 0.123456789},
        {"type": "string", "pattern": r"^(a)\1$"},
        {"type": "string", "format": "iri"},
    ],
)
def test_what_can_not_be_enforced_is_said_with_its_place_and_refused_under_strict(schema):
    constraint = read(schema)
    (finding,) = [f for f in constraint.findings if f.accepts == "too much"]
    assert finding.where.pointer is not None
    with pytest.raises(ApproximationError):
        read(schema, strict=True)


def test_an_approximation_inside_not_never_refuses_what_is_valid():
    constraint = read({"type": "string", "not": {"maxLength": 65536}})
    assert constraint.accepts('"x"')
    assert told(constraint, "too much")


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(InputError, match="whitespaces"):
        read({}, whitespaces="compact")


def test_a_set_of_texts_is_listed_only_where_it_is_small():
    assert texts.listed(spelling.text("ab", HERE), 5) == ["ab"]
    assert texts.listed(texts.any_text(HERE), 5) is None


@pytest.mark.parametrize(
    ("schema", "keywords"),
    [
        ({"type": "integer", "minimum": 5, "maximum": 3, "title": "t"}, {"/type", "/minimum", "/maximum"}),
        ({"const": "a", "enum": ["b", "c"]}, {"/const", "/enum"}),
        (
            {"type": "object", "properties": {"x": {"type": "string", "enum": []}}, "required": ["x"]},
            {"/properties/x/enum"},
        ),
        ({"type": "string", "pattern": "^a$", "minLength": 3, "maxLength": 9}, {"/type", "/pattern", "/minLength"}),
    ],
)
def test_a_schema_that_nothing_satisfies_is_said_with_the_fewest_keywords(schema, keywords):
    constraint = read(schema)
    (finding,) = [f for f in constraint.findings if f.code == "unsatisfiable"]
    assert finding.severity == "error"
    assert {finding.where.pointer, *(place.pointer for place in finding.related)} == keywords
    assert constraint.automaton.is_empty


def test_a_default_that_its_schema_forbids_is_said():
    assert "default-contradicts" in codes(read({"properties": {"a": {"type": "integer", "default": "x"}}}))
    assert "default-contradicts" not in codes(read({"properties": {"a": {"type": "integer", "default": 3}}}))


def test_integers_may_have_an_exponent_only_where_all_of_them_are_allowed():
    for schema, accepted in (
        ({"type": "integer"}, True),
        ({"type": "integer", "multipleOf": 0.5}, True),
        ({"type": "integer", "multipleOf": 2}, False),
        ({"type": "integer", "minimum": 0}, False),
    ):
        assert read(schema).accepts("1e+308") == accepted
        assert not read(schema).accepts("1e-1")


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ('{"items": [1]}', "/items/0"),
        ('{"items": [{"items": [{"minimum": "a"}]}]}', "/items/0/items/0/minimum"),
        ('{"items": [{}], "additionalItems": {"minimum": "a"}}', "/additionalItems/minimum"),
        ('{"$ref": "#/x", "x": 1}', "/$ref"),
        ('{"$ref": "#/x", "x": []}', "/x"),
        ('{"$ref": "#/x", "x": {"minimum": "a"}}', "/x/minimum"),
        ('{"$ref": "#/x", "x": {"$ref": 3}}', "/x/$ref"),
        ('{"$ref": "#/x/0", "x": [{"enum": 5}]}', "/x/0/enum"),
        ('{"properties": {"a": {"$ref": "#/enum/0"}}, "enum": [{"required": "a"}]}', "/enum/0/required"),
    ],
)
def test_what_a_drafts_own_schema_does_not_look_at_is_checked_where_it_is_read(schema: str, where: str) -> None:
    with pytest.raises(PatternSyntaxError, match="not one of draft 2020-12") as refused:
        constraints.read("json_schema", schema)
    assert refused.value.place is not None
    assert refused.value.place.pointer == where
