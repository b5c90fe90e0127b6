r"""`pattern`'s dialect, ECMA-262, in Python's: the same language, with the place of every character kept.

Where the two differ: `\d` and `\w` are ASCII, `\s` is ECMA's list, '.' leaves out four line ends, `$` is the very end,
and some escapes are spelt otherwise.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

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
    |\\[pP]\{[^}]*\}|\\c[A-Za-z]|\\k<\w+>|\\.|\(\?<(?![=!])|\[\^\]|\[\]|\[\^?|[\]$.{]|.""",
    re.DOTALL | re.VERBOSE,
)
_BRACES = re.compile(r"\{\d+(,\d*)?\}")
_GROUPS = {
    "Letter": "L", "Mark": "M", "Number": "N", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Other": "C",
    "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm",
    "Other_Letter": "Lo", "Decimal_Number": "Nd", "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
    "punct": "P", "Control": "Cc", "Space_Separator": "Zs", "Alphabetic": "L",
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
    inside = False
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        token = found[0] if found else source[at]
        if inside and (token.startswith("[") or token in ("(?<", "{", ".", "$")):
            token = source[at]
        written = r"\{" if token == "{" and not _BRACES.match(source, at) else _token(token, inside, at)
        if not inside and token in ("[", "[^"):
            inside = True
        elif inside and token == "]":
            inside = False
        out.append(written)
        places += [at] * len(written)
        at += len(token)
    return "".join(out), [*places, len(source)]


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
    if letter == "0" or (letter in "123456789" and inside):
        return r"\x00" if letter == "0" else letter
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
