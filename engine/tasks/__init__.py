"""Ready requests, each with a constraint that chooses one of the spellings that the model knows.

They are in the language of the corpus that the embedded model was trained on
(`engine.training.corpus`), and their names, values and grids are among those held out of it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A request with its constraint and the settings that suit it.

    Attributes:
        name: short, without spaces; what `--task` takes.
        title: a line for a list.
        prompt: what the model is asked.
        kind: of the constraint: `regex` or `choices`.
        source: the constraint as a user would write it; a tuple of strings for `choices`.
        length: positions of the canvas, one block.
        steps: denoising steps.
        what: what there is to see; a sentence.
    """

    name: str
    title: str
    prompt: str
    kind: str
    source: str | tuple[str, ...]
    length: int
    steps: int
    what: str


_TOOLS = "Tools: book_tower(member, street); find_parcel(moon, page)."
_PAIR = '"[a-z]+": "[a-z ]+"'
_ROW = "(" + "|".join(map("".join, itertools.permutations("1234"))) + ")"
_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

TASKS = (
    Task(
        name="call-json",
        title="A function call in spaced JSON",
        prompt="Tools: book_tunnel(order, week); find_parcel(moon, page). Book the tunnel with order sam and week ada.",
        kind="regex",
        source=rf'\{{"name": "[a-z]+_[a-z]+", "arguments": \{{{_PAIR}(, {_PAIR})*\}}\}}',
        length=32,
        steps=16,
        what="The model knows seven ways to write this call; unconstrained positions mix them.",
    ),
    Task(
        name="call-schema",
        title="A function call in compact JSON, by its schema",
        prompt=f"{_TOOLS} Please book tower: tokyo as street, ruth as member.",
        kind="regex",
        source=r'\{"name":"(book_tower|find_parcel)","arguments":'
        r'\{"member":"(ada|hana|ruth)","street":"(quito|tokyo)"\}\}',
        length=32,
        steps=16,
        what="The constraint fixes the order of the arguments, against the request's own order.",
    ),
    Task(
        name="call-python",
        title="A Python call",
        prompt="Tools: send_tunnel(castle, week). Send tunnel, the week 48, castle = harbor tower.",
        kind="regex",
        source=r'[a-z]+_[a-z]+\(([a-z]+=("[a-z ]*"|-?[0-9]+|True|False)(, |\)))+',
        length=32,
        steps=16,
        what='The regex ends each argument with ", " or ")": its language is looser than Python.',
    ),
    Task(
        name="call-command",
        title="A command line",
        prompt="Tools: move_shirt(tower, order); open_label(page). Move the shirt with tower martin and order 7.",
        kind="regex",
        source=r"[a-z]+_[a-z]+( --[a-z]+ ([a-z]+|[0-9]+))+",
        length=24,
        steps=12,
        what='The token " --" starts an argument; the model as often wants "=" there.',
    ),
    Task(
        name="choose-call",
        title="One of four commands",
        prompt="Tools: order_shirt(street); find_tunnel(street). Order the shirt with street quito.",
        kind="choices",
        source=(
            "order_shirt --street quito",
            "order_shirt --street warsaw",
            "find_tunnel --street quito",
            "find_tunnel --street warsaw",
        ),
        length=16,
        steps=8,
        what="The positions vote apart; the posterior shows which choice their votes add up to.",
    ),
    Task(
        name="sudoku-slashes",
        title="Sudoku, rows with slashes",
        prompt="Sudoku 0340 0210 2100 0001",
        kind="regex",
        source="[1-4]{4}(/[1-4]{4}){3}",
        length=24,
        steps=24,
        what="Digits and separators stand elsewhere in each spelling, and few steps commit them.",
    ),
    Task(
        name="sudoku-rows",
        title="Sudoku, each row a permutation",
        prompt="Sudoku 0023 0014 1030 2001",
        kind="regex",
        source=f"{_ROW}( {_ROW}){{3}}",
        length=20,
        steps=5,
        what="The regex knows the rule of the rows and leaves columns and squares to the model.",
    ),
    Task(
        name="countdown",
        title="Countdown, as an equation",
        prompt="Countdown: make 30 from 12, 12, 6",
        kind="regex",
        source=r"[0-9]+( [+*-] [0-9]+){2} = 30",
        length=16,
        steps=8,
        what="The form is certain and the sum is not: no regex of this size does the arithmetic.",
    ),
    Task(
        name="date-iso",
        title="An ISO date",
        prompt="Date: 23 February 1993",
        kind="regex",
        source="(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        length=16,
        steps=4,
        what="Six spellings put the day, the month and the year in different places.",
    ),
    Task(
        name="address-url",
        title="An IPv4 address in a URL",
        prompt="Host 28 235 250 93, port 80",
        kind="regex",
        source=rf"http://{_OCTET}(\.{_OCTET}){{3}}:[0-9]+",
        length=24,
        steps=24,
        what="Octets have no fixed length: a position depends on all before it.",
    ),
    Task(
        name="phone",
        title="A phone number with parentheses",
        prompt="Phone 64 890 405 3665",
        kind="regex",
        source=r"\([0-9]{3}\) [0-9]{3}-[0-9]{4}",
        length=16,
        steps=4,
        what="The country code belongs to other spellings, and parts of it slip in.",
    ),
    Task(
        name="colour-rgb",
        title="A colour as rgb(…)",
        prompt="Colour red 85 green 17 blue 255",
        kind="regex",
        source=r"rgb\(([0-9]{1,3}, ){2}[0-9]{1,3}\)",
        length=24,
        steps=12,
        what="Numbers have one to three digits, so the commas have no fixed place.",
    ),
    Task(
        name="email-link",
        title="A mail link",
        prompt="Mail of hana at castle dot org",
        kind="regex",
        source=r"mailto:[a-z]+@[a-z]+\.(com|org|net|io|de)",
        length=16,
        steps=4,
        what="The start is forced: the constraint decides there, and the model after it.",
    ),
    Task(
        name="sql",
        title="A query in lower case, with a semicolon",
        prompt="Show street and author of castle whose moon is harbor.",
        kind="regex",
        source=r"select [a-z]+(, [a-z]+)* from [a-z]+ where [a-z]+ (=|<|>) ('[a-z]+'|[0-9]+);",
        length=32,
        steps=16,
        what="Keywords exclude their upper-case twins, which carry most of the model's weight.",
    ),
)
"""The tasks, in the order in which a list shows them."""
