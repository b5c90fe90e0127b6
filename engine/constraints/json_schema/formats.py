"""`format`: the languages of the standard's formats (JSON Schema, section 7.3), as regular expressions of Python's.

The date knows how long each month is and when a year is a leap year (RFC 3339, appendix C).
"""

from __future__ import annotations

from functools import cache

from engine.constraints import regex
from engine.pattern import Pattern

_YEAR = r"[0-9]{4}"
_BY_FOUR = r"(?:[02468][048]|[13579][26])"
_LEAP = rf"(?:[0-9]{{2}}(?!00){_BY_FOUR}|{_BY_FOUR}00)"
_DATE = (
    rf"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_ZONE = r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_TIME = rf"(?:{_CLOCK}{_ZONE}|23:59:60(?:\.[0-9]+)?(?:[Zz]|[+-]00:00))"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
_H16 = r"[0-9A-Fa-f]{1,4}"
_LS32 = rf"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "|".join(
    [rf"(?:{_H16}:){{6}}{_LS32}", rf"::(?:{_H16}:){{5}}{_LS32}"]
    + [rf"(?:(?:{_H16}:){{0,{n}}}{_H16})?::(?:{_H16}:){{{4 - n}}}{_LS32}" for n in range(5)]
    + [rf"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}", rf"(?:(?:{_H16}:){{0,6}}{_H16})?::"]
)
_PCT = r"%[0-9A-Fa-f]{2}"
_PCHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_PCT})"
_SEGMENTS = rf"(?:/{_PCHAR}*)*"
_USER = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|{_PCT})*@"
_URI_HOST = rf"(?:\[(?:{_IPV6}|v[0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|{_PCT})*)"
_AUTHORITY = rf"//(?:{_USER})?{_URI_HOST}(?::[0-9]*)?{_SEGMENTS}"
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|/(?:{_PCHAR}+{_SEGMENTS})?|{_PCHAR}+{_SEGMENTS}|){_TAIL}"
_NO_COLON = rf"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|{_PCT})+"
_RELATIVE = rf"(?:{_AUTHORITY}|/(?:{_PCHAR}+{_SEGMENTS})?|{_NO_COLON}{_SEGMENTS}|){_TAIL}"
_POINTER = r"(?:/(?:[^/~]|~[01])*)*"
_DURATION_TIME = r"T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION_DATE = r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_DURATION = rf"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|[0-9]+W)"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_EMAIL = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_LABEL}(?:\.{_LABEL})*|\[(?:{_IPV4}|IPv6:(?:{_IPV6}))\])"

FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "duration": _DURATION,
    "email": _EMAIL,
    "hostname": _HOST,
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "uri": _URI,
    "uri-reference": rf"(?:{_URI}|{_RELATIVE})",
    "json-pointer": _POINTER,
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
}
"""The formats that are enforced."""

LOOSE = {
    "hostname": (253, "the whole may be longer than 253 characters"),
    "email": (66, "the part before the '@' may be longer than 64 characters"),
}
"""What the languages above let through that the standard does not, and the length up to which there is no such text."""

STANDARD = frozenset(FORMATS) | {"idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "regex"}
"""The formats that the standard has."""


@cache
def pattern(name: str) -> Pattern:
    """Return the language of one of `FORMATS`; origins are those of its regular expression, not of the user's text."""
    return regex.parse(f"(?:{FORMATS[name]})")[0]
