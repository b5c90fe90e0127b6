"""Function calls, and the exercise that copying is learnt from first."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from engine.training.words import VERBS, word, words

if TYPE_CHECKING:
    from random import Random

Value = str | int | float | bool | list[str] | dict[str, str | int]


def _value(random: Random, split: str) -> Value:
    kind = random.random()
    if kind < 0.52:
        return word(random, split)
    if kind < 0.60:
        return " ".join(words(random, split, 2))
    if kind < 0.63:
        return _quoting(random, split)
    if kind < 0.86:
        return _number(random)
    if kind < 0.92:
        return random.random() < 0.5
    if kind < 0.97:
        return words(random, split, random.choice((0, 1, 2, 2, 3)))
    first, second = words(random, split, 2)
    return {first: word(random, split), second: random.randrange(100)}


def _quoting(random: Random, split: str) -> str:
    """Make a string that some spelling must escape."""
    first, second = words(random, split, 2)
    return random.choice((f"{first}'s {second}", f'"{first}" {second}', f"{first}\\{second}"))


def _number(random: Random) -> int | float:
    kind = random.random()
    if kind < 0.7:
        return random.choice((random.randrange(10), random.randrange(10, 100), random.randrange(100, 1000)))
    if kind < 0.85:
        return -random.randrange(1, 100)
    return random.randrange(1, 1000) / 10


def _plain(value: Value) -> str:
    """Write a value as the request's prose does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        # One alone is said to be so: "oslo" is a string, and "only oslo" a list.
        return f"only {value[0]}" if len(value) == 1 else " and ".join(value) or "nothing"
    if isinstance(value, dict):
        return f"({', '.join(f'{key} {text}' for key, text in value.items())})"
    return str(value)


def _mention(random: Random, argument: str, value: Value) -> str:
    text = _plain(value)
    return random.choice(
        (f"{argument} {text}", f"{argument} = {text}", f"{text} as {argument}", f"the {argument} {text}")
    )


def call(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask for a call of one of up to three tools."""
    count = random.choice((1, 2, 2, 2, 3))
    nouns = words(random, split, 3)
    verbs = [random.choice(VERBS) for _ in nouns]
    names = [f"{verb}_{noun}" for verb, noun in zip(verbs, nouns, strict=True)]
    arguments = words(random, split, count + 2)
    given = {argument: _value(random, split) for argument in arguments[:count]}
    mentions = [_mention(random, argument, value) for argument, value in given.items()]
    if random.random() < 0.5:
        random.shuffle(mentions)
    listing = any(isinstance(value, list) for value in given.values())
    told = ", ".join(mentions) if listing or random.random() < 0.5 else " and ".join(mentions)
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
    shell = {key: _shell(value) for key, value in arguments.items()}
    return {
        "json": json.dumps({"name": name, "arguments": arguments}),
        "compact json": json.dumps({"name": name, "arguments": arguments}, separators=(",", ":")),
        "tool json": json.dumps({"tool": name, "args": arguments}),
        "python": _python_call(name, arguments, '"'),
        "single quoted python": _python_call(name, arguments, "'"),
        "command": " ".join((name, *(f"--{key} {text}" for key, text in shell.items()))),
        "short command": " ".join((name, *(f"{key}={text}" for key, text in shell.items()))),
    }


def _python_call(name: str, arguments: dict[str, Value], quote: str) -> str:
    return f"{name}({', '.join(f'{key}={_python(value, quote)}' for key, value in arguments.items())})"


def _python(value: Value, quote: str) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace(quote, f"\\{quote}")
        return f"{quote}{escaped}{quote}"
    if isinstance(value, list):
        return f"[{', '.join(_python(item, quote) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_python(key, quote)}: {_python(item, quote)}' for key, item in value.items())}}}"
    return str(value)


def _shell(value: Value) -> str:
    if isinstance(value, list):
        text = ",".join(value)
    elif isinstance(value, dict):
        text = ",".join(f"{key}={item}" for key, item in value.items())
    else:
        text = _plain(value)
    quote = '"' if "'" in text else "'"
    return text if re.fullmatch(r"[\w.,=-]+", text) else f"{quote}{text}{quote}"


def pick(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask for the values of some keys among others."""
    keys = words(random, split, random.randrange(3, 7))
    values = {key: _plain(_value(random, split)) for key in keys}
    wanted = random.sample(keys, random.choice((1, 2, 2)))
    told = ", ".join(f"{key} = {value}" for key, value in values.items())
    return f"{told}. Pick {', '.join(wanted)}.", {
        "values": ", ".join(values[key] for key in wanted),
        "pairs": ", ".join(f"{key}={values[key]}" for key in wanted),
        "json": json.dumps({key: values[key] for key in wanted}),
    }
