"""Changes after which a source can be read: what is open closed, a stray character escaped, a keyword left out."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from engine.constraints import tools
from engine.constraints.json_schema import document, edits, references
from engine.diagnosis import schema
from engine.diagnosis.subject import quoted

if TYPE_CHECKING:
    from engine.errors import Finding
    from engine.trace import Config

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_FOREIGN = (
    (r"\\p\{(?:L|Letter|Alpha|Alphabetic)\}", "a letter", r"[^\W\d_]", None),
    (r"\\p\{(?:N|Nd|Number|Digit)\}", "a digit", r"\d", r"\d"),
    (r"\\h", "Ruby's hexadecimal digit", "[0-9A-Fa-f]", "0-9A-Fa-f"),
    (r"\\h", "Perl's blank", r"[ \t]", r" \t"),
    (r"\\R", "an end of line", r"(?:\r\n|[\n-\r])", None),
    (r"\\z", "the end", r"\Z", None),
)
"""Escapes of other dialects, what they mean there, and how Python writes that outside and inside of a class."""
_GBNF = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|::=|[A-Za-z][\w-]*')
_BACK_REFERENCE = re.compile(r"\(\?P=(\w+)\)|\\([1-9]\d?)")


def remedies(finding: Finding, config: Config) -> list[tuple[str, dict[str, Any]]]:
    """Return the changes of a source that may let it be read, untried.

    Args:
        finding: of a mistake in the syntax, or of a part that can't be enforced.
        config: whose source it is about.
    """
    source = config.source
    if not isinstance(source, str) or finding.where is None:
        return []
    if config.kind in schema.KINDS:
        return _of_json(finding, source)
    if config.kind == "grammar" and "::=" in source:
        return [("Write it in Lark's syntax", {"source": _larked(source)})]
    if config.kind != "regex":
        return []
    found = _closed(source, finding.where.start) if finding.code == "syntax" else _referred(source)
    return [(label, {"source": text}) for label, text in found]


def concerns(finding: Finding) -> bool:
    """Whether a finding is of the kind that such a change may mend."""
    return finding.code in ("syntax", "unsupported") or finding.accepts != "as written"


def _closed(source: str, at: int) -> list[tuple[str, str]]:
    """Close what is open where it may have been meant to end, or take the character at the mistake literally."""
    character = source[at : at + 1]
    closer = _CLOSERS.get(character)
    found = _translated(source, at)
    if closer:
        # Behind an alternative or at the end: the places where a forgotten bracket mostly stood.
        spots = r"[\w\])}?*+](?=[:/,;\-. ]|$)" if character == "(" else "$"
        ends = [m.end() for m in re.finditer(spots, source) if m.end() > at]
        found = [(f"Close it behind {quoted(source[at:end])}", source[:end] + closer + source[end:]) for end in ends]
    if character:
        found.append((f"Write {quoted(character)} as itself, as \\{character}", f"{source[:at]}\\{source[at:]}"))
        found.append((f"Remove {quoted(character)}", source[:at] + source[at + 1 :]))
    return found


def _translated(source: str, at: int) -> list[tuple[str, str]]:
    """Write an escape of another dialect as Python does."""
    inside = any(start < at < _behind_set(source, start) for start in _sets(source))
    found = []
    if control := re.compile(r"\\c([A-Za-z])").match(source, at):
        code = f"\\x{ord(control[1].upper()) - 64:02x}"
        found.append(
            (f"Write the control character {control[0]} as {code}", source[:at] + code + source[control.end() :])
        )
    for escape, meaning, alone, among in _FOREIGN:
        known, written = re.compile(escape).match(source, at), among if inside else alone
        if known and written:
            label = f"Write {known[0]}, {meaning}, as {written}"
            found.append((label, source[:at] + written + source[known.end() :]))
    return found


def _sets(source: str) -> list[int]:
    """Return where the classes of a regex begin."""
    found, k = [], 0
    while k < len(source):
        if source[k] == "[":
            found.append(k)
            k = _behind_set(source, k)
        else:
            k += 2 if source[k] == "\\" else 1
    return found


def _larked(source: str) -> str:
    """Write a grammar of llama.cpp's GBNF as Lark does."""

    def written(found: re.Match[str]) -> str:
        text = found[0]
        if text.startswith("["):
            return "/" + text.replace("/", "\\/") + "/"
        if text.startswith('"'):
            return text
        return ":" if text == "::=" else "start" if text == "root" else text.lower().replace("-", "_")

    return _GBNF.sub(written, source)


def _referred(source: str) -> list[tuple[str, str]]:
    """Write the pattern of a group again in the place of a reference to it; the two texts may then differ."""
    found = _BACK_REFERENCE.search(source)
    group = _group(source, found[1] or int(found[2])) if found else None
    if found is None or group is None:
        return []
    label = f"Write the group again in the place of {quoted(found[0])}; the two may then differ"
    return [(label, f"{source[: found.start()]}(?:{group}){source[found.end() :]}")]


def _group(source: str, name: str | int) -> str | None:
    """Return the inside of a capturing group, by its name or number."""
    opened: list[tuple[int, str | int | None]] = []
    count, k = 0, 0
    while k < len(source):
        if source[k] == "\\":
            k += 2
            continue
        if source[k] == "[":
            k = _behind_set(source, k)
            continue
        if source[k] == "(":
            named = re.compile(r"\((?:\?P<(\w+)>)?(?!\?)").match(source, k)
            count += named is not None
            own = (named[1] if isinstance(name, str) else count) if named else None
            opened.append((named.end() if named else k + 1, own))
        elif source[k] == ")" and opened:
            start, own = opened.pop()
            if own == name:
                return source[start:k]
        k += 1
    return None


def _behind_set(source: str, start: int) -> int:
    found = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]").match(source, start)
    return found.end() if found else len(source)


def _of_json(finding: Finding, source: str) -> list[tuple[str, dict[str, Any]]]:
    """Leave out a keyword that can't be read, or write what JSON or its schemas do not allow as they do."""
    pointer = finding.where.pointer if finding.where and not finding.edits else None
    if finding.code == "syntax":
        mended = _respelled(source) if pointer is None else _typed(source, pointer)
        return [(label, {"source": text}) for label, text in mended if text != source]
    if not pointer or pointer not in document.read(source).keys or _says_what(pointer):
        return []
    others = finding.evidence.get("same_at", ())
    text = source
    for each in sorted({pointer, *others}, key=lambda at: -document.read(source).spans[at].start):
        text = schema.removed(text, each)
    return [(f"Remove {pointer}{f', and so at {len(others)} more' if others else ''}", {"source": text})]


def _typed(source: str, pointer: str) -> list[tuple[str, str]]:
    """Write the type that may have been meant where a schema names one that there is not."""
    found = document.read(source)
    word = schema.value_at(found, pointer) if pointer in found.spans else None
    if not re.search(r"/type(/\d+)?$", pointer) or not isinstance(word, str):
        return []
    near = get_close_matches(word.lower(), references.TYPES, 1, 0.6)
    changes = [edits.replaced(found, pointer, name) for name in {*near, tools.TYPES.get(word.lower())} if name]
    return [(change.label, change.apply(source)) for change in changes]


def _says_what(pointer: str) -> bool:
    """Whether a keyword says what is meant rather than how much of it."""
    return pointer.rpartition("/")[2] in ("type", "properties", "required")


def _respelled(source: str) -> list[tuple[str, str]]:
    """Return the usual slips in JSON, mended: a comma too many, a bracket too few, other quotes."""
    open_ones: list[str] = []
    for character in re.sub(r'"(?:\\.|[^"\\])*"', "", source):
        if character in "{[":
            open_ones.append(character)
        elif character in "}]" and open_ones:
            open_ones.pop()
    return [
        ("Remove the comma behind the last item", re.sub(r",(\s*[\]}])", r"\1", source)),
        ("Close what is open", source.rstrip() + "".join(_CLOSERS[c] for c in reversed(open_ones))),
        ("Write the quotes as double ones", re.sub(r"'([^'\"]*)'", r'"\1"', source)),
    ]
