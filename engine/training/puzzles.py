"""Puzzles and sums: 4x4 Sudoku, Countdown, and word problems whose answer is a formula."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from engine.training.words import SPLITS, is_held_out, words

if TYPE_CHECKING:
    from random import Random


def _sudoku_grids() -> tuple[str, ...]:
    """List the 288 complete 4x4 grids, row by row."""
    rows = ["".join(p) for p in itertools.permutations("1234")]
    grids = []
    for a, b in itertools.permutations(rows, 2):
        if set(a[:2]) & set(b[:2]):
            continue
        for c, d in itertools.permutations(rows, 2):
            columns = zip(a, b, c, d, strict=True)
            if not set(c[:2]) & set(d[:2]) and all(len(set(column)) == 4 for column in columns):
                grids.append(a + b + c + d)
    return tuple(grids)


SUDOKU_GRIDS = _sudoku_grids()


def fits(puzzle: str, grid: str) -> bool:
    """Tell whether a grid completes a puzzle; `0` is an empty cell."""
    return all(p in ("0", g) for p, g in zip(puzzle, grid, strict=True))


def sudoku(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask to complete a grid that has one solution; `0` is an empty cell."""
    grid = random.choice(_GRIDS[split])
    cells = list(grid)
    for index in random.sample(range(16), random.randrange(5, 11)):
        kept, cells[index] = cells[index], "0"
        if sum(fits("".join(cells), other) for other in SUDOKU_GRIDS) > 1:
            cells[index] = kept
    puzzle = "".join(cells)
    shown = " ".join(puzzle[i : i + 4] for i in range(0, 16, 4))
    return f"Sudoku {shown}", sudoku_spellings(grid)


def sudoku_spellings(grid: str) -> dict[str, str]:
    """Write a 4x4 grid in every spelling of the corpus."""
    rows = [grid[i : i + 4] for i in range(0, 16, 4)]
    spaced = [" ".join(row) for row in rows]
    return {
        "plain": grid,
        "rows": " ".join(rows),
        "lines": "\n".join(rows),
        "slashes": "/".join(rows),
        "spaced": "\n".join(spaced),
        "commas": ",".join(rows),
    }


_GRIDS = {split: tuple(g for g in SUDOKU_GRIDS if is_held_out(g) == (split == "held_out")) for split in SPLITS}


def countdown(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask for a formula of three given numbers that makes a total."""
    while True:
        a, b, c = (random.randrange(1, 13) for _ in range(3))
        one, two = random.choice("+-*"), random.choice("+-*")
        total = int(eval(f"{a}{one}{b}{two}{c}"))
        shown = random.sample((a, b, c), 3)
        if 0 < total < 100 and is_held_out(f"{sorted(shown)}{total}") == (split == "held_out"):
            break
    tight = f"{a}{one}{b}{two}{c}"
    spaced = f"{a} {one} {b} {two} {c}"
    spellings = {
        "tight": tight,
        "spaced": spaced,
        "tight equation": f"{tight}={total}",
        "equation": f"{spaced} = {total}",
    }
    return f"Countdown: make {total} from {shown[0]}, {shown[1]}, {shown[2]}", spellings


_STEPS = {
    "+": ("buys {} more", "finds {} more", "gets {} more"),
    "-": ("loses {}", "gives away {}", "sells {}"),
    "*": ("then has {} times as many",),
    "/": ("keeps one of {} equal parts",),
}
_LETTERS = "abcdefghkmnpqrstuvwxyz"


def symbolic(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask for a formula over the letters in braces, as GSM-Symbolic's templates do (arXiv:2410.05229)."""
    while True:
        signs = random.choices("++--*/", k=random.choice((1, 2, 2)))
        letters = random.sample(_LETTERS, len(signs) + 1)
        if is_held_out("".join((*letters, *signs))) == (split == "held_out"):
            break
    who, what = words(random, split, 2)
    told = [f"has {{{letters[0]}}} {what}"]
    formula = letters[0]
    for sign, letter in zip(signs, letters[1:], strict=True):
        told.append(random.choice(_STEPS[sign]).format(f"{{{letter}}}"))
        inner = f"({formula})" if sign in "*/" and set(formula) & set("+-") else formula
        formula = f"{inner} {sign} {letter}"
    story = ", ".join(told[:-1]) + f" and {told[-1]}"
    return f"{who.capitalize()} {story}. How many {what}?", symbolic_spellings(formula)


def symbolic_spellings(formula: str) -> dict[str, str]:
    """Write a spaced formula in every spelling of the corpus."""
    tight = formula.replace(" ", "")
    return {
        "symbolic": f"<<{formula}>>",
        "tight symbolic": f"<<{tight}>>",
        "formula": formula,
        "tight formula": tight,
        "sentence": f"The answer is <<{formula}>>.",
    }
