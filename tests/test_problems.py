"""The families of problems: constraints hold the answers, judges judge what an answer says."""

from __future__ import annotations

import ast
import itertools
import json
import re
import warnings
from fractions import Fraction

import pytest

from engine import constraints
from engine.errors import ConfigError
from engine.tasks import bfcl, calls, families, puzzles, queries
from engine.tasks.problem import Problem, read_expression
from engine.training import corpus
from engine.training.calls import call_spellings

ALL = families.FAMILIES
NAMES = [family.name for family in ALL]
CORPUS = {
    "call-json": "call",
    "call-python": "call",
    "tools-json": "call",
    "tools-python": "call",
    "sql-schema": "sql",
    "sudoku-format": "sudoku",
    "sudoku-exact": "sudoku",
}


@pytest.mark.parametrize("family", ALL, ids=NAMES)
def test_an_answer_is_in_its_constraint_and_right(family):
    for problem in family.problems(40, "held_out"):
        accepted = constraints.read(problem.kind, problem.source, **dict(problem.reading)).accepts
        assert accepted(problem.answer), problem
        assert family.is_right(problem, problem.answer), problem


@pytest.mark.parametrize("family", ALL, ids=NAMES)
def test_problems_are_the_same_every_time_and_never_those_of_training(family):
    held_out, train = (family.problems(60, split) for split in ("held_out", "train"))
    assert held_out
    assert held_out == family.problems(60, "held_out")
    assert held_out[:9] == family.problems(9, "held_out")
    assert not {p.prompt for p in held_out} & {p.prompt for p in train}
    assert not any(" As " in p.prompt for p in held_out)


@pytest.mark.parametrize("family", [f for f in ALL if f.name != "bfcl"], ids=lambda family: family.name)
def test_every_spelling_of_an_answer_is_right_and_that_of_another_problem_is_not(family):
    name = CORPUS.get(family.name, family.name)
    spellings = {e.prompt: e.spellings.values() for e in itertools.islice(corpus.stream(7, "held_out", name), 200)}
    problems = family.problems(40, "held_out")
    for problem, other in itertools.pairwise(problems):
        assert all(family.is_right(problem, text) for text in spellings[problem.prompt]), problem
        assert not family.is_right(problem, other.answer) or other.answer == problem.answer
        assert not family.is_right(problem, "")
        assert not family.is_right(problem, problem.answer[1:])


def test_a_call_is_compared_by_its_values_and_their_types():
    given = {"city": "oslo", "days": 3, "tags": ["a"], "fast": True, "at": {"x": 1}}
    problem = Problem("", "regex", "", call_spellings("get_it", given)["json"])
    for text in call_spellings("get_it", dict(reversed(given.items()))).values():
        assert calls.is_right(problem, text)
    for wrong in (
        {**given, "days": "3"},
        {**given, "days": 3.0},
        {**given, "fast": 1},
        {**given, "tags": "a"},
        {**given, "at": {"x": 2}},
        {**given, "more": 1},
        {"city": "oslo"},
    ):
        assert not calls.is_right(problem, call_spellings("get_it", wrong)["compact json"]), wrong
        assert not calls.is_right(problem, call_spellings("get_it", wrong)["python"]), wrong
    assert not calls.is_right(problem, call_spellings("get_that", given)["python"])
    assert not calls.is_right(problem, "get_it(__import__('os').getcwd())")


def test_functions_are_declared_with_the_types_of_their_arguments():
    prompt = "Tools: get_it(city, days, tags, fast, at); get_that(city). Get it: city oslo."
    given = {"city": "oslo", "days": 3, "tags": [], "fast": True, "at": {"x": 1.5}}
    declared = json.loads(calls.functions(prompt, "get_it", given))
    assert [(f["name"], f["parameters"]["required"]) for f in declared] == [
        ("get_it", [*given]),
        ("get_that", ["city"]),
    ]
    types = [schema["type"] for schema in declared[0]["parameters"]["properties"].values()]
    assert types == ["string", "integer", "array", "boolean", "object"]
    read = constraints.read("tools", json.dumps(declared))
    assert read.accepts(json.dumps({"name": "get_it", "arguments": given}))
    assert not read.accepts(json.dumps({"name": "get_it", "arguments": {**given, "days": "3"}}))
    assert not read.accepts(json.dumps({"name": "get_that", "arguments": given}))


def test_bfcl_is_judged_by_its_own_rules():
    values = {"city": ["New York, NY", "NYC"], "days": [3], "share": [0.5, 2.0], "unit": ["celsius", ""]}
    more = {"on": [True], "at": [{"x": [1, 2], "y": ["a", ""]}], "all": [["b", "c"]]}
    problem = Problem("", "tools", "", "", (json.dumps({"get": {**values, **more}}),))
    given = {"city": "new york NY", "days": 3, "share": 2, "on": True, "at": {"x": 2}, "all": ["B", "c"]}

    def right(name: str = "get", **changes: object) -> bool:
        kept = {key: value for key, value in {**given, **changes}.items() if value is not None}
        return bfcl.is_right(problem, json.dumps({"name": name, "arguments": kept}))

    assert right()
    assert right(unit="Celsius", city="nyc", share=0.5)
    assert not right("got")
    for wrong in (
        *({"city": "Boston"}, {"days": 3.0}, {"days": "3"}, {"days": None}, {"unit": "kelvin"}, {"more": 1}),
        *({"on": 1}, {"at": {"x": 3}}, {"at": {"x": 1, "z": 1}}, {"all": ["c", "b"]}, {"all": ["b"]}),
    ):
        assert not right(**wrong), wrong


def test_sudoku_is_judged_by_rows_columns_squares_and_givens():
    rows = ["".join(row) for row in itertools.permutations("1234")]

    def solutions(puzzle: str, first: str) -> list[str]:
        problem = Problem(f"Sudoku {puzzle}", "regex", "", "")
        grids = (first + "".join(others) for others in itertools.product(rows, repeat=3))
        return [grid for grid in grids if puzzles.sudoku_is_right(problem, grid)]

    assert solutions("1340 4013 2004 3021", "1342") == ["1342421321343421"]
    # 288 grids, as many for each of the 24 first rows.
    assert len(solutions("0000 0000 0000 0000", "1234")) == 12


def test_countdown_follows_the_rules_of_arithmetic():
    def right(prompt: str, text: str) -> bool:
        return puzzles.countdown_is_right(Problem(prompt, "regex", "", ""), text)

    assert right("Countdown: make 14 from 2, 3, 4", "2 + 3 * 4")
    assert right("Countdown: make 20 from 2, 3, 4", "(2+3)*4=20")
    assert not right("Countdown: make 20 from 2, 3, 4", "2+3*4")
    assert not right("Countdown: make 14 from 2, 3, 4", "2 + 3 * 4 = 20")
    assert not right("Countdown: make 8 from 2, 3, 4", "2*4-0")
    assert not right("Countdown: make 8 from 2, 3, 4", "2*4")


def test_formulas_are_compared_by_their_values():
    problem = Problem("{a} {b} {c}", "regex", "", "<<(a + b) * c>>")
    for text in ("<<a*c+b*c>>", "c * (b + a)", "The answer is <<(b+a)*c>>."):
        assert puzzles.symbolic_is_right(problem, text)
    for text in ("<<a + b * c>>", "a", "(a + b) * d", "(a + b) ** c", "<<>>", "a / (b - b)"):
        assert not puzzles.symbolic_is_right(problem, text)
    assert puzzles.value_of("7 / 2 - x", {"x": Fraction(1, 2)}) == 3


def test_a_query_is_judged_by_what_it_returns():
    problem = Problem("Show a and b of t whose k is over 7.", "regex", "", "SELECT a, b FROM t WHERE k > 7")
    turned = "SELECT a, b FROM t WHERE k > 7 ORDER BY 1 DESC"
    for text in ("select a, b from t where 7 < k;", "SELECT a, b FROM t WHERE NOT k <= 7", turned):
        assert queries.is_right(problem, text)
    for text in ("SELECT b, a FROM t WHERE k > 7", "SELECT a, b FROM t WHERE k > 8", "SELECT a, b FROM t WHERE k >= 7"):
        assert not queries.is_right(problem, text)
    assert not queries.is_right(problem, "DELETE FROM t WHERE k > 7 RETURNING a, b"), "it returns the rows, and no more"
    for text in ("DROP TABLE t", "SELECT", "SELECT a, b FROM t WHERE k = '7'", "SELECT a, b FROM t WHERE k > 7; x"):
        assert not queries.is_right(problem, text)
    text = Problem("", "regex", "", "SELECT a FROM t WHERE k = 'oslo'")
    assert not queries.is_right(text, "SELECT a FROM t WHERE k = 'rome'")
    assert not queries.is_right(text, "SELECT a FROM t")


def test_a_query_without_effect_on_its_database_does_not_pass():
    for problem in families.named("sql").problems(60, "held_out"):
        found = re.sub("WHERE .*", "", problem.answer)
        assert not queries.is_right(problem, found), "the condition leaves some rows out"
        assert not queries.is_right(problem, f"{found}WHERE 0"), "and some in"


def test_an_unknown_family_is_named_with_those_that_there_are():
    with pytest.raises(ConfigError, match=r"no family of problems 'soduko'.*\bsudoku\b.*call-json|call-json.*sudoku"):
        families.named("soduko")


@pytest.mark.parametrize("text", ["f(a=1and 2)", "f(a=0x1for x in y)", "f(1is 1)"])
def test_an_odd_expression_of_a_model_is_read_without_a_warning(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(read_expression(text), ast.Call)
