"""What a token writes, exactly: the decoder of a `tokenizers` file, applied to one token at a time.

A decoder is a list of rules. Each rule here is the library's own, restated for a single token; where a rule looks at a
token's neighbours in another way than at the start of the text, the decoder is refused.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Rule = Callable[[str | bytes, bool], str | bytes]

_HEX = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
"""What WordPiece's `cleanup` replaces, in its order, inside each token."""


def writer(decoder: Mapping[str, Any] | None) -> Callable[[str, bool], bytes]:
    """Return the function from a token's name to its bytes; the second argument says whether it stands first.

    Args:
        decoder: the `decoder` of a tokenizer.json.

    Raises:
        ModelError: there is no decoder, or it has a rule that is not known here.
    """
    rules = [_rule(part) for part in _parts(decoder)]

    def write(name: str, first: bool) -> bytes:
        text: str | bytes = name
        for rule in rules:
            text = rule(text, first)
        return text.encode() if isinstance(text, str) else text

    return write


def _parts(decoder: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    if decoder is None:
        raise ModelError(
            "The tokenizer has no decoder, so what its tokens write is not defined.",
            "Use a model whose tokenizer.json has one.",
        )
    if decoder["type"] != "Sequence":
        return [decoder]
    return [part for each in decoder["decoders"] for part in _parts(each)]


def _rule(part: Mapping[str, Any]) -> Rule:
    kind = part["type"]
    if kind == "ByteLevel":
        return _byte_level
    if kind == "ByteFallback":
        return _byte_fallback
    if kind == "Fuse":
        return lambda text, _: text
    if kind == "Replace" and "String" in part["pattern"]:
        return _replace(part["pattern"]["String"], part["content"])
    if kind == "Strip" and part["start"] <= 1 and part["stop"] == 0:
        return _strip(part["content"] * part["start"])
    if kind == "Metaspace":
        begins = part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never") != "never"
        return _metaspace(part["replacement"], begins)
    if kind == "WordPiece":
        return _word_piece(part["prefix"], part["cleanup"])
    raise ModelError(
        f"The tokenizer's decoder has the rule {kind!r} with settings that are not known here.",
        "Use a tokenizer of byte-level BPE, SentencePiece or WordPiece.",
    )


def _byte_level(text: str | bytes, _: bool) -> str | bytes:
    """Map each character of the byte alphabet back to its byte; a name with any other character is plain text."""
    if isinstance(text, bytes):
        return text
    table = _byte_of_character()
    found = [table.get(c, -1) for c in text]
    return text.encode() if -1 in found else bytes(found)


def _byte_fallback(text: str | bytes, _: bool) -> str | bytes:
    """SentencePiece's names for single bytes, `<0x0A>`."""
    match = _HEX.fullmatch(text) if isinstance(text, str) else None
    return bytes([int(match[1], 16)]) if match else text


def _replace(old: str, new: str) -> Rule:
    return lambda text, _: text.replace(old, new) if isinstance(text, str) else text


def _strip(content: str) -> Rule:
    """Take one character off the start of the text, as behind `Fuse`."""

    def rule(text: str | bytes, first: bool) -> str | bytes:
        data = text.encode() if isinstance(text, str) else text
        return data.removeprefix(content.encode()) if first else data

    return rule


def _metaspace(mark: str, begins: bool) -> Rule:
    """A mark is a space, and in the first token nothing, where encoding put one in front of the text."""

    def rule(text: str | bytes, first: bool) -> str | bytes:
        if isinstance(text, bytes):
            return text
        return text.replace(mark, "" if first and begins else " ")

    return rule


def _word_piece(prefix: str, cleanup: bool) -> Rule:
    """A token goes on with a word if its name begins with the prefix, else it begins one; the first is as it is."""

    def rule(text: str | bytes, first: bool) -> str | bytes:
        if isinstance(text, bytes):
            return text
        if not first:
            text = text.removeprefix(prefix) if text.startswith(prefix) else f" {text}"
        for old, new in _CLEANED if cleanup else ():
            text = text.replace(old, new)
        return text

    return rule


@cache
def _byte_of_character() -> dict[str, int]:
    """Map the printable character that byte-level BPE writes for a byte back to the byte (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in printable}
    others = [b for b in range(256) if b not in set(printable)]
    table.update({chr(256 + n): b for n, b in enumerate(others)})
    return table
