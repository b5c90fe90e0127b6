r"""`pattern`'s dialect, ECMA-262, in Python's: the same language, with the place of every character kept.

Where the two differ: `\d` and `\w` are ASCII, `\s` is ECMA's list, '.' leaves out four line ends, `$` is the very end,
and some escapes are spelt otherwise. What only Python has, `(?P<n>…)` and the like, is left as it is.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANK = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NOT_BLANK = (
    r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff"
)
_INSIDE = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "A-Za-z0-9_",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": _BLANK,
    "S": _NOT_BLANK,
}
_TOKEN = re.compile(
    r"""\\u\{[0-9a-fA-F]+\}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}
    |\\[pP]\{[^}]*\}|\\c[A-Za-z]|\\k<\w+>|\\[0-7]{1,3}|\\.|\(\?<(?![=!])|\(\?(?:P[<=>]|[#>(]|[aiLmsux]+\))|[*+?}]\+|\[\^\]|\[\]|\[\^?|[\]$.{]|.""",
    re.DOTALL | re.VERBOSE,
)
_FEWER = re.compile(r"\{,\d+\}")
_BRACES = re.compile(r"\{\d+(,\d*)?\}")
_GROUPS = {
    "Letter": "L", "Mark": "M", "Number": "N", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Other": "C",
    "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm",
    "Other_Letter": "Lo", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
    "punct": "P", "Control": "Cc", "Space_Separator": "Zs",
}  # fmt: skip


class UnknownPropertyError(Exception):
    r"""A `\p{…}` that is no general category."""


def translate(source: str) -> tuple[str, list[int]]:
    """Write an ECMA-262 pattern as Python would.

    Returns:
        The pattern, and for each of its characters, and its end, the index of the source that it stands for.

    Raises:
        UnknownPropertyError: a Unicode property is not a general category; its argument is the span in the source.
    """
    out: list[str] = []
    places: list[int] = []
    for token, inside, at in _tokens(source):
        written = r"\{" if token == "{" and not _BRACES.match(source, at) else _token(token, inside, at)
        out.append(written)
        places += [at] * len(written)
    return "".join(out), [*places, len(source)]


def differences(source: str) -> list[str]:
    """List what Python's `re` would read otherwise, or not at all, each as a clause; all but `$`, see `has_end`."""
    notes = (_note(source, *found) for found in _tokens(source))
    return list(dict.fromkeys(note for note in notes if note))


def has_end(source: str) -> bool:
    """Whether a `$` stands for the end of the text, in front of which Python's `re` lets a line end stand."""
    return any(token == "$" and not inside for token, inside, _ in _tokens(source))


def letters(source: str) -> list[str]:
    r"""List the escapes that are no more than their letter, such as `\Z`, where another dialect may be meant."""
    return list(dict.fromkeys(token for token, _, _ in _tokens(source) if _is_letter(token)))


def _tokens(source: str) -> Iterator[tuple[str, bool, int]]:
    """Yield the parts of a pattern, whether they stand inside a class of characters, and where."""
    inside = False
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        token = found[0] if found else source[at]
        if inside and token[0] != "\\":
            token = source[at]
        yield token, inside, at
        if not inside and token in ("[", "[^"):
            inside = True
        elif inside and token == "]":
            inside = False
        at += len(token)


_MEANINGS = {
    "d": r"\d is 0-9",
    "w": r"\w and \b know ASCII letters only",
    "b": r"\w and \b know ASCII letters only",
    "s": r"\s is ECMA's list of blanks",
}


def _is_letter(token: str) -> bool:
    return len(token) == 2 and token[0] == "\\" and token[1].isalpha() and token[1] not in "bBdDsSwWtnvfrxucpPk"


def _note(source: str, token: str, inside: bool, at: int) -> str:
    """Return what is different about a part of a pattern; empty where nothing is."""
    if token.startswith("\\"):
        return _escape_note(token, inside)
    if inside:
        return ""
    if token in ("(?<", "[]", "[^]"):
        return f"'{token}' is not Python's"
    if token[0] == "(" or token in ("++", "*+", "?+", "}+"):
        return f"'{token}' is Python's alone" if len(token) > 1 else ""
    if token == "{":
        return "'{,n}' is text" if _FEWER.match(source, at) else ""
    return "'.' leaves out all four line ends" if token == "." else ""


def _escape_note(token: str, inside: bool) -> str:
    letter = token[1:2]
    if _is_letter(token):
        return f"{token} is the letter {letter}"
    if (letter and letter in "pPck") or token.startswith("\\u{"):
        return f"{token} is not Python's"
    if len(token) == 12:
        return f"{token} is one character"
    return "" if letter in "bB" and inside else _MEANINGS.get(letter.lower(), "")


def _token(token: str, inside: bool, at: int) -> str:
    if token in ("[]", "[^]") and not inside:
        return r"(?!)" if token == "[]" else r"(?s:.)"
    if inside and token in "[&~|":
        return "\\" + token
    if not inside and token in (".", "$", "(?<"):
        return {".": r"[^\n\r\u2028\u2029]", "$": r"\Z", "(?<": "(?P<"}[token]
    return _escape(token, inside, at) if token.startswith("\\") and len(token) > 1 else token


def _escape(token: str, inside: bool, at: int) -> str:
    letter = token[1]
    if letter in "pP":
        listed = _category(token[3:-1], letter == "P", at, at + len(token))
        return listed if inside else f"[{listed}]"
    if letter in _INSIDE:
        return _INSIDE[letter] if inside else f"[{_INSIDE[letter]}]"
    if letter == "u":
        return _code_point(token)
    if letter == "c" and len(token) == 3:
        return f"\\x{ord(token[2]) % 32:02x}"
    if letter == "k" and len(token) > 2:
        return f"(?P={token[3:-1]})"
    if letter == "b":
        return r"\x08" if inside else r"(?a:\b)"
    if letter == "B":
        return r"(?a:\B)"
    if letter == "0" or (letter in "1234567" and inside):
        return f"\\x{int(token[1:], 8) % 256:02x}"
    if letter in "89" and inside:
        return letter
    return token if letter in "tnvfrx123456789" else re.escape(letter)


def _code_point(token: str) -> str:
    if token.startswith("\\u{"):
        code = int(token[3:-1], 16)
    elif len(token) == 12:
        code = 0x10000 + ((int(token[2:6], 16) & 0x3FF) << 10) + (int(token[8:12], 16) & 0x3FF)
    elif len(token) == 6:
        code = int(token[2:6], 16)
    else:
        return "u"
    return f"\\U{min(code, sys.maxunicode):08x}"


def _category(name: str, negative: bool, start: int, stop: int) -> str:
    name = name.rpartition("=")[2]
    short = _GROUPS.get(name, name)
    if short not in _categories():
        raise UnknownPropertyError(start, stop)
    ranges = _ranges(short)
    if negative:
        cuts = [-1, *(limit for pair in ranges for limit in pair), sys.maxunicode + 1]
        ranges = tuple((a + 1, b - 1) for a, b in zip(cuts[::2], cuts[1::2], strict=True) if a + 1 <= b - 1)
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


@cache
def _categories() -> frozenset[str]:
    names = {unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)}
    return frozenset(names | {name[0] for name in names})


@cache
def _ranges(category: str) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)).startswith(category):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return tuple(ranges)
