"""Sudoku, Countdown and formulas: judged by their rules, whatever the spelling."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from fractions import Fraction
from typing import TYPE_CHECKING

from engine.tasks.problem import Family, Problem, from_corpus, read_expression
from engine.training import puzzles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.training.corpus import Example

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}

SUDOKU_FORMAT = "[1-4]{4}(/[1-4]{4}){3}"
SUDOKU_GRIDS = tuple(puzzles.sudoku_spellings(grid)["slashes"] for grid in puzzles.SUDOKU_GRIDS)
"""All 288, as rows with slashes."""


def value_of(text: str, values: Mapping[str, Fraction]) -> Fraction | None:
    """Evaluate `+ - * /`, whole numbers, names and parentheses; None where it isn't that, or divides by 0."""

    def value(node: ast.expr) -> Fraction:
        match node:
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                result: Fraction = _OPERATORS[type(op)](value(left), value(right))
                return result
            case ast.Constant(int(number)) if not isinstance(number, bool):
                return Fraction(number)
            case ast.Name(name) if name in values:
                return values[name]
        raise ValueError

    try:
        return value(read_expression(text.strip()))
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def sudoku_is_right(problem: Problem, text: str) -> bool:
    """Tell whether a text is a complete grid, four different digits a row, column and square, with the givens."""
    digits = re.sub(r"[ \n/,]", "", text)
    given = re.sub("[^0-4]", "", problem.prompt)
    if not re.fullmatch("[1-4]{16}", digits) or not puzzles.fits(given, digits):
        return False
    rows = [digits[i : i + 4] for i in range(0, 16, 4)]
    columns = ["".join(column) for column in zip(*rows, strict=True)]
    squares = [rows[r][c : c + 2] + rows[r + 1][c : c + 2] for r in (0, 2) for c in (0, 2)]
    return all(len(set(part)) == 4 for part in rows + columns + squares)


def countdown_is_right(problem: Problem, text: str) -> bool:
    """Tell whether a text makes the total from each given number once; it may say `= total` itself."""
    total, *numbers = map(int, re.findall(r"\d+", problem.prompt))
    formula, equals, said = text.partition("=")
    if equals and said.strip() != str(total):
        return False
    return sorted(map(int, re.findall(r"\d+", formula))) == sorted(numbers) and value_of(formula, {}) == total


def symbolic_is_right(problem: Problem, text: str) -> bool:
    """Tell whether a formula has the values of the answer, at three settings of its letters.

    Two formulas of a few terms that agree at primes this large are the same.
    """
    expected, said = _formula(problem.answer), _formula(text)
    letters = sorted(set(re.findall(r"\{([a-z])\}", problem.prompt)))
    primes = (Fraction(p) for p in (1009, 2003, 3001, 4001, 5003, 6007, 7001, 8009, 9001, 10007, 11003, 12007))
    settings = [dict(zip(letters, itertools.islice(primes, len(letters)), strict=True)) for _ in range(3)]
    return all((wanted := value_of(expected, s)) is not None and wanted == value_of(said, s) for s in settings)


def _formula(text: str) -> str:
    found = re.fullmatch(r"(?:The answer is )?<<(.*)>>\.?", text)
    return found[1] if found else text


def _given_sudoku(example: Example) -> Problem:
    digits = re.sub("[^0-4]", "", example.prompt).replace("0", "#")
    rows = "/".join(digits[i : i + 4] for i in range(0, 16, 4))
    return Problem(example.prompt, "regex", rows.replace("#", "[1-4]"), example.spellings["slashes"])


def _free_sudoku(example: Example) -> Problem:
    return Problem(example.prompt, "regex", SUDOKU_FORMAT, example.spellings["slashes"])


def _valid_sudoku(example: Example) -> Problem:
    return Problem(example.prompt, "choices", SUDOKU_GRIDS, example.spellings["slashes"])


def _countdown(example: Example) -> Problem:
    total, *numbers = re.findall(r"\d+", example.prompt)
    orders = sorted(set(itertools.permutations(numbers)))
    formulas = "|".join(" [+*-] ".join(order) for order in orders)
    return Problem(example.prompt, "regex", f"({formulas}) = {total}", example.spellings["equation"])


def _symbolic(example: Example) -> Problem:
    letter = f"[{''.join(re.findall(r'{([a-z])}', example.prompt))}]"
    term = rf"({letter}|\({letter}( [+*/-] {letter})*\))"
    return Problem(example.prompt, "regex", f"<<{term}( [+*/-] {term})*>>", example.spellings["symbolic"])


FAMILIES = (
    Family("sudoku", "4x4 Sudoku: format and givens", 24, from_corpus("sudoku", _given_sudoku), sudoku_is_right),
    Family("sudoku-format", "4x4 Sudoku: format alone", 24, from_corpus("sudoku", _free_sudoku), sudoku_is_right),
    Family("sudoku-exact", "4x4 Sudoku: all 288 grids", 24, from_corpus("sudoku", _valid_sudoku), sudoku_is_right),
    Family(
        "countdown",
        "Countdown: formulas over the given numbers",
        16,
        from_corpus("countdown", _countdown),
        countdown_is_right,
    ),
    Family(
        "symbolic",
        "Word problems: formulas over the given letters",
        16,
        from_corpus("symbolic", _symbolic),
        symbolic_is_right,
    ),
)
