"""How right the embedded model is on held-out requests: `python -m engine.training.evaluate`.

Each request is unhinted and asked for in one spelling, by the constraint alone. *Satisfied* is in
the constraint's language; *right* is a right answer in whichever spelling, so that it can exceed
satisfied where nothing is enforced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from engine import constraints, decode, token_automaton
from engine.models import embedded
from engine.trace import Config
from engine.training import corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.models.embedded import Embedded
    from engine.token_automaton import TokenAutomaton
    from engine.training.corpus import Example

_STRING = r'"([a-z \']|\\["\\])*"'
_SCALAR = rf"({_STRING}|-?[0-9]+(\.[0-9])?|true|false)"
_LIST = rf"\[({_STRING}(, {_STRING})*)?\]"
_OBJECT = rf'\{{"[a-z]+": {_SCALAR}(, "[a-z]+": {_SCALAR})*\}}'
_PAIR = rf'"[a-z]+": ({_SCALAR}|{_LIST}|{_OBJECT})'
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

PATTERNS = {
    "call": {"json": rf'\{{"name": "[a-z]+_[a-z]+", "arguments": \{{{_PAIR}(, {_PAIR})*\}}\}}'},
    "sql": {
        "lower case sql statement": (r"select [a-z]+(, [a-z]+)* from [a-z]+ where [a-z]+ (=|<|>) ('[a-z]+'|[0-9]+);")
    },
    "symbolic": {"symbolic": r"<<\(*[a-z]( [+*/-] [a-z]\)?)*>>"},
    "sudoku": {"slashes": "[1-4]{4}(/[1-4]{4}){3}"},
    "countdown": {"equation": r"[0-9]+( [+*-] [0-9]+){2} = [0-9]+"},
    "format": {
        "iso date": "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        "grouped": r"[0-9]{1,3}(,[0-9]{3})*\.[0-9]{2}",
        "url with port": rf"http://{_OCTET}(\.{_OCTET}){{3}}:[0-9]+",
        "parentheses": r"\([0-9]{3}\) [0-9]{3}-[0-9]{4}",
        "hex": "#[0-9a-f]{6}",
        "24 hours": "([01][0-9]|2[0-3]):[0-5][0-9]",
        "link": r"mailto:[a-z]+@[a-z]+\.(com|org|net|io|de)",
    },
}
"""Of each family, the spellings that a constraint asks for, as regexes."""

LENGTHS = {"call": 40, "sql": 32, "sudoku": 24, "countdown": 16, "format": 24, "symbolic": 16}
METHODS = {"independent": ("independent", "mf"), "Mf": ("chain", "mf"), "Mar": ("chain", "mar")}
"""Sampler and confidence. The chain draws from the same law as the midpoint tree, in less time."""


@dataclass(frozen=True)
class Cell:
    """Results of one method at one number of steps, in per cent of `count` requests."""

    count: int
    satisfied: float
    right: float


def held_out(family: str, count: int, seed: int = 7) -> Iterator[Example]:
    """Yield `count` unhinted held-out requests, `chosen` being the spelling that is asked for."""
    for example in corpus.stream(seed, "held_out", family):
        if count == 0:
            return
        asked = next(name for name in PATTERNS[family] if name in example.spellings)
        if example.prompt.endswith(f" As {example.chosen}."):
            continue
        count -= 1
        yield corpus.Example(family, example.prompt, example.spellings, asked)


def is_right(example: Example, text: str) -> bool:
    """Tell whether a text is a right answer, in any spelling."""
    if example.family != "countdown":
        return text in example.spellings.values()
    return countdown_is_right(example.prompt, text)


def countdown_is_right(prompt: str, text: str) -> bool:
    """Tell whether a text uses each number of a Countdown request once and makes its total."""
    found = re.fullmatch(r"(\d+) ?([+*-]) ?(\d+) ?([+*-]) ?(\d+)(?: ?= ?(\d+))?", text, re.ASCII)
    total, *numbers = map(int, re.findall(r"\d+", prompt))
    if not found or sorted(map(int, found.group(1, 3, 5))) != sorted(numbers):
        return False
    a, first, b, second, c = found.group(1, 2, 3, 4, 5)
    value = _apply(first, int(a), int(b))
    value = _apply(second, value, int(c))
    if second == "*" and first != "*":
        value = _apply(first, int(a), int(b) * int(c))
    return value == total and found[6] in (None, str(total))


def _apply(sign: str, a: int, b: int) -> int:
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def measure(denoiser: Embedded, family: str, method: str, steps: int, count: int, temperature: float) -> Cell:
    """Decode `count` held-out requests of a family with one method."""
    sampler, confidence = METHODS[method]
    length = LENGTHS[family]
    outcomes = []
    for seed, example in enumerate(held_out(family, count)):
        automaton = _automaton(denoiser, PATTERNS[family][example.chosen])
        config = Config(
            prompt=example.prompt,
            kind="regex",
            source=PATTERNS[family][example.chosen],
            length=length,
            steps=steps,
            block_length=length,
            temperature=temperature,
            sampler=sampler,
            confidence=confidence,
            seed=seed,
        )
        *_, last = decode.denoise(denoiser, automaton, config)
        tokens = last.canvas_after.tolist()
        outcomes.append((automaton.accepts(tokens), is_right(example, denoiser.vocabulary.decode(tokens))))
    satisfied, right = 100 * np.mean(outcomes, axis=0)
    return Cell(count, float(satisfied), float(right))


@lru_cache(maxsize=32)
def _automaton(denoiser: Embedded, pattern: str) -> TokenAutomaton:
    return token_automaton.compile(constraints.read("regex", pattern), denoiser.vocabulary)


def table(denoiser: Embedded, families: tuple[str, ...], count: int, temperature: float) -> Iterator[str]:
    """Yield the lines of a Markdown table, as they are measured."""
    titles = " | ".join(f"{method}: satisfied / right" for method in METHODS)
    yield f"| T = {temperature:g} | steps | {titles} |"
    yield "|---|---|---|---|---|"
    for family in families:
        length = LENGTHS[family]
        for steps in (length, length // 2, length // 4):
            cells = [measure(denoiser, family, m, steps, count, temperature) for m in METHODS]
            written = " | ".join(f"{cell.satisfied:.0f} / {cell.right:.0f}" for cell in cells)
            yield f"| {family} ({length}) | {steps} | {written} |"


def main(
    folder: Annotated[Path | None, typer.Option(help="Of the model; the shipped one.")] = None,
    count: Annotated[int, typer.Option(help="Requests a cell.")] = 48,
    temperature: Annotated[float, typer.Option(help="0 takes the best sequence.")] = 0.0,
    family: Annotated[list[str] | None, typer.Option(help="Only these families.")] = None,
) -> None:
    """Print the table of held-out accuracy."""
    denoiser = embedded.load(folder)
    for line in table(denoiser, tuple(family or PATTERNS), count, temperature):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
