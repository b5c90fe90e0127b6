"""Values that are written in many ways: dates, amounts, addresses, phone numbers, colours, times, mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.training.words import is_held_out, words

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

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


_FORMATS: dict[Callable[[Random], tuple[str, dict[str, str]]], int] = {
    _date: 1,
    _decimal: 3,
    _address: 1,
    _phone: 1,
    _colour: 4,
    _clock: 2,
}
"""Each kind of value, and how often training sees it: most often where there is most to learn."""


def formatted(random: Random, split: str) -> tuple[str, dict[str, str]]:
    """Ask for a value of a kind drawn at random."""
    if random.random() < 1 / (1 + len(_FORMATS)):
        return _email(random, split)
    if split == "train":
        (maker,) = random.choices(tuple(_FORMATS), tuple(_FORMATS.values()))
    else:
        maker = random.choice(tuple(_FORMATS))
    while True:
        prompt, spellings = maker(random)
        if is_held_out(next(iter(spellings.values()))) == (split == "held_out"):
            return prompt, spellings
