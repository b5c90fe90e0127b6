"""The corpus: an endless, seeded stream of requests, each answered in one of many spellings.

A model that knows one spelling of each answer never breaks a constraint, and a constraint then
decides nothing. So each request here is answered in a spelling drawn at random, and the prompt says
which one only in one case of five: the model learns a distribution over spellings, and the
constraint chooses among them.
"""

from __future__ import annotations

import itertools
import json
import zlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from engine.training.words import SPLITS, VERBS, word, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HINTED = 0.2
"""Share of prompts that name the spelling."""


@dataclass(frozen=True)
class Example:
    """A request and every way to write its answer.

    Attributes:
        family: `call`, `format`, `sudoku`, `countdown`, `sql` or `pick`.
        prompt: what is asked.
        spellings: each name of a spelling, and the answer in it.
        chosen: the spelling that this example is answered in.
    """

    family: str
    prompt: str
    spellings: dict[str, str]
    chosen: str

    @property
    def answer(self) -> str:
        """The answer in the chosen spelling."""
        return self.spellings[self.chosen]


def example(
    seed: int, index: int, split: str = "train", family: str | None = None, pick_share: float = 0.04
) -> Example:
    """Return example number `index` of a stream; a pure function of its arguments.

    Args:
        seed: names the stream.
        index: position in it, from 0.
        split: `train`, or `held_out`: its words, grids and numbers never occur in training answers.
        family: only this family; a mixture by default.
        pick_share: how much of the mixture is the copying exercise that training starts with.
    """
    random = Random((seed * len(SPLITS) + SPLITS.index(split)) << 40 | index)
    if family is None:
        if random.random() < pick_share:
            family = "pick"
        else:
            (family,) = random.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))
    prompt, spellings = _MAKERS[family](random, split)
    chosen = random.choice(tuple(spellings))
    if random.random() < HINTED:
        prompt += f" As {chosen}."
    return Example(family, prompt, spellings, chosen)


def stream(seed: int, split: str = "train", family: str | None = None, start: int = 0) -> Iterator[Example]:
    """Yield the examples of a stream from number `start` on, for ever."""
    return (example(seed, index, split, family) for index in itertools.count(start))


# --- function calls ---

Value = str | int | float | bool | list[str]


def _value(random: Random, split: str) -> Value:
    kind = random.random()
    if kind < 0.58:
        return word(random, split)
    if kind < 0.66:
        return " ".join(words(random, split, 2))
    if kind < 0.84:
        return random.choice((random.randrange(10), random.randrange(10, 100), random.randrange(100, 1000)))
    if kind < 0.87:
        return -random.randrange(1, 100)
    if kind < 0.92:
        return random.randrange(1, 100) + random.randrange(1, 10) / 10
    if kind < 0.97:
        return random.random() < 0.5
    return words(random, split, random.randrange(3))


def _plain(value: Value) -> str:
    """Write a value as the request's prose does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " and ".join(value) or "nothing"
    return str(value)


def _mention(random: Random, argument: str, value: Value) -> str:
    text = _plain(value)
    forms = (
        f"{argument} {text}",
        f"{argument} = {text}",
        f"{text} as {argument}",
        f"the {argument} {text}",
    )
    return random.choice(forms)


def _call(random: Random, split: str) -> tuple[str, dict[str, str]]:
    count = random.choice((1, 2, 2, 2, 3))
    nouns = words(random, split, 3)
    verbs = [random.choice(VERBS) for _ in nouns]
    names = [f"{verb}_{noun}" for verb, noun in zip(verbs, nouns, strict=True)]
    arguments = words(random, split, count + 2)
    given = {argument: _value(random, split) for argument in arguments[:count]}
    mentions = [_mention(random, argument, value) for argument, value in given.items()]
    if random.random() < 0.5:
        random.shuffle(mentions)
    told = " and ".join(mentions) if random.random() < 0.5 else ", ".join(mentions)
    tools = [f"{names[0]}({', '.join(arguments[:count])})"]
    distractors = random.choice((0, 0, 1, 1, 2))
    tools += [
        f"{name}({', '.join(random.sample(arguments, random.choice((1, 2))))})" for name in names[1 : 1 + distractors]
    ]
    random.shuffle(tools)
    request = random.choice(
        (
            f"{verbs[0].capitalize()} the {nouns[0]} with {told}.",
            f"Please {verbs[0]} {nouns[0]}: {told}.",
            f"{verbs[0].capitalize()} {nouns[0]}, {told}.",
        )
    )
    return f"Tools: {'; '.join(tools)}. {request}", call_spellings(names[0], given)


def call_spellings(name: str, arguments: dict[str, Value]) -> dict[str, str]:
    """Write one function call in every spelling of the corpus."""
    compact = (",", ":")
    python = {key: json.dumps(value) if not isinstance(value, bool) else str(value) for key, value in arguments.items()}
    single = {key: text.replace('"', "'") for key, text in python.items()}
    shell = {
        key: f"'{text}'" if " " in (text := _shell(value)) or not text else text for key, value in arguments.items()
    }
    return {
        "json": json.dumps({"name": name, "arguments": arguments}),
        "compact json": json.dumps({"name": name, "arguments": arguments}, separators=compact),
        "tool json": json.dumps({"tool": name, "args": arguments}),
        "function json": json.dumps({"function": name, "parameters": arguments}, separators=compact),
        "nested json": json.dumps({name: arguments}),
        "python": f"{name}({', '.join(f'{key}={text}' for key, text in python.items())})",
        "single quoted python": (f"{name}({', '.join(f'{key}={text}' for key, text in single.items())})"),
        "command": " ".join((name, *(f"--{key} {text}" for key, text in shell.items()))),
        "short command": " ".join((name, *(f"{key}={text}" for key, text in shell.items()))),
    }


def _shell(value: Value) -> str:
    return ",".join(value) if isinstance(value, list) else _plain(value)


# --- puzzles ---


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


def _held_out(text: str) -> bool:
    return zlib.crc32(text.encode()) % 8 == 0


def _sudoku(random: Random, split: str) -> tuple[str, dict[str, str]]:
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


_GRIDS = {split: tuple(g for g in SUDOKU_GRIDS if _held_out(g) == (split == "held_out")) for split in SPLITS}


def _countdown(random: Random, split: str) -> tuple[str, dict[str, str]]:
    while True:
        a, b, c = (random.randrange(1, 13) for _ in range(3))
        one, two = random.choice("+-*"), random.choice("+-*")
        total = int(eval(f"{a}{one}{b}{two}{c}"))
        shown = random.sample((a, b, c), 3)
        if 0 < total < 100 and _held_out(f"{sorted(shown)}{total}") == (split == "held_out"):
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


# --- queries ---


def _sql(random: Random, split: str) -> tuple[str, dict[str, str]]:
    table, *columns = words(random, split, random.choice((3, 3, 4)))
    shown, key = columns[:-1], columns[-1]
    value = word(random, split) if random.random() < 0.6 else random.randrange(100)
    if isinstance(value, str):
        sign, said = "=", "is"
    else:
        sign, said = random.choice((("=", "is"), (">", "is over"), ("<", "is under")))
    listed = " and ".join(shown)
    prompt = random.choice(
        (
            f"Query {table}: {listed} where {key} {said} {value}.",
            f"Show {listed} of {table} whose {key} {said} {value}.",
        )
    )

    def written(quote: str, upper: bool, end: str) -> str:
        literal = f"{quote}{value}{quote}" if isinstance(value, str) else str(value)
        parts = ("select", "from", "where")
        select, origin, where = (p.upper() for p in parts) if upper else parts
        return f"{select} {', '.join(shown)} {origin} {table} {where} {key} {sign} {literal}{end}"

    return prompt, {
        "sql": written("'", True, ""),
        "sql statement": written("'", True, ";"),
        "lower case sql": written("'", False, ""),
        "lower case sql statement": written("'", False, ";"),
        "double quoted sql": written('"', True, ""),
    }


# --- formats ---

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def _date(random: Random) -> tuple[str, dict[str, str]]:
    year, month, day = (
        random.randrange(1950, 2050),
        random.randrange(1, 13),
        random.randrange(1, 29),
    )
    name = MONTHS[month - 1]
    prompt = random.choice((f"Date: {day} {name} {year}", f"The day is {name} {day}, {year}"))
    return prompt, {
        "iso date": f"{year}-{month:02}-{day:02}",
        "slashes": f"{day:02}/{month:02}/{year}",
        "dots": f"{day:02}.{month:02}.{year}",
        "american date": f"{month}/{day}/{year}",
        "long date": f"{day} {name} {year}",
        "month first": f"{name} {day}, {year}",
    }


def _decimal(random: Random) -> tuple[str, dict[str, str]]:
    whole, cents = random.randrange(1, 10000), random.randrange(100)
    return random.choice((f"Amount: {whole} and {cents:02} cents", f"Price {whole} units {cents:02} cents")), {
        "point": f"{whole}.{cents:02}",
        "comma": f"{whole},{cents:02}",
        "grouped": f"{whole:,}.{cents:02}",
        "dollars": f"${whole}.{cents:02}",
        "euros": f"{whole},{cents:02} EUR",
    }


def _address(random: Random) -> tuple[str, dict[str, str]]:
    parts = [random.choice((random.randrange(256), random.choice((0, 1, 10, 127, 192, 168)))) for _ in range(4)]
    said = " ".join(map(str, parts))
    dotted = ".".join(map(str, parts))
    port = random.choice((80, 443, 22, 8080))
    return random.choice((f"Address {said} port {port}", f"Host {said}, port {port}")), {
        "dotted": dotted,
        "dashes": "-".join(map(str, parts)),
        "with port": f"{dotted}:{port}",
        "url": f"http://{dotted}",
        "url with port": f"http://{dotted}:{port}",
    }


def _phone(random: Random) -> tuple[str, dict[str, str]]:
    country, area = random.randrange(1, 99), random.randrange(100, 1000)
    first, last = random.randrange(100, 1000), random.randrange(10000)
    return random.choice((f"Phone {country} {area} {first} {last:04}", f"Call {country} {area} {first} {last:04}")), {
        "international": f"+{country} {area} {first} {last:04}",
        "dashes": f"{area}-{first}-{last:04}",
        "parentheses": f"({area}) {first}-{last:04}",
        "digits": f"{country}{area}{first}{last:04}",
        "dots": f"{area}.{first}.{last:04}",
    }


def _colour(random: Random) -> tuple[str, dict[str, str]]:
    levels = [random.randrange(16) for _ in range(3)]
    red, green, blue = (17 * level for level in levels)
    short = "".join(f"{level:x}" for level in levels)
    long = "".join(f"{level:x}{level:x}" for level in levels)
    return random.choice((f"Colour red {red} green {green} blue {blue}", f"Color {red}, {green}, {blue}")), {
        "hex": f"#{long}",
        "upper hex": f"#{long.upper()}",
        "short hex": f"#{short}",
        "rgb": f"rgb({red}, {green}, {blue})",
        "numbers": f"{red} {green} {blue}",
    }


def _clock(random: Random) -> tuple[str, dict[str, str]]:
    hour, minute = random.randrange(1, 13), random.randrange(60)
    late = random.random() < 0.5
    full = hour % 12 + 12 * late
    half = "pm" if late else "am"
    return random.choice((f"Time: {minute} past {hour} {half}", f"The hour is {hour} {half} and {minute} minutes")), {
        "24 hours": f"{full:02}:{minute:02}",
        "12 hours": f"{hour}:{minute:02} {half}",
        "upper 12 hours": f"{hour}:{minute:02} {half.upper()}",
        "seconds": f"{full:02}:{minute:02}:00",
        "french": f"{full}h{minute:02}",
    }


def _email(random: Random, split: str) -> tuple[str, dict[str, str]]:
    user, host = words(random, split, 2)
    top = random.choice(("com", "org", "net", "io", "de"))
    address = f"{user}@{host}.{top}"
    return random.choice((f"Mail of {user} at {host} dot {top}", f"Write to {user}, host {host}, domain {top}")), {
        "address": address,
        "brackets": f"<{address}>",
        "link": f"mailto:{address}",
        "spelled": f"{user} at {host} dot {top}",
        "named": f"{user.capitalize()} <{address}>",
    }


_FORMATS: tuple[Callable[[Random], tuple[str, dict[str, str]]], ...] = (
    _date,
    _decimal,
    _address,
    _phone,
    _colour,
    _clock,
)


def _format(random: Random, split: str) -> tuple[str, dict[str, str]]:
    if random.random() < 1 / (1 + len(_FORMATS)):
        return _email(random, split)
    maker = random.choice(_FORMATS)
    while True:
        prompt, spellings = maker(random)
        if _held_out(next(iter(spellings.values()))) == (split == "held_out"):
            return prompt, spellings


def _pick(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Copy the values of some keys: the exercise that copying is learnt from first."""
    keys = words(random, split, random.randrange(3, 7))
    values = {key: _plain(_value(random, split)) for key in keys}
    wanted = random.sample(keys, random.choice((1, 2, 2)))
    told = ", ".join(f"{key} = {value}" for key, value in values.items())
    return f"{told}. Pick {', '.join(wanted)}.", {
        "values": ", ".join(values[key] for key in wanted),
        "pairs": ", ".join(f"{key}={values[key]}" for key in wanted),
        "json": json.dumps({key: values[key] for key in wanted}),
    }


_MAKERS: dict[str, Callable[[Random, str], tuple[str, dict[str, str]]]] = {
    "call": _call,
    "format": _format,
    "sudoku": _sudoku,
    "countdown": _countdown,
    "sql": _sql,
    "pick": _pick,
}
_WEIGHTS = {"call": 0.5, "format": 0.2, "sudoku": 0.11, "countdown": 0.06, "sql": 0.13}
FAMILIES = tuple(_WEIGHTS)
