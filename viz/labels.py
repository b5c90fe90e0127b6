"""Tokens as text that a reader can tell apart, and the one way by which such text may enter a graph.

A token is data: it may hold control characters, half a character, or markup. Nothing here escapes for HTML, since the
page never parses a token: it sets `textContent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import graphviz

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.vocabulary import Vocabulary

SIGNS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
"""What stands for white space where it has to be seen."""


FEW_WORDS = 4
"""Tokens of several characters that a summary names beside single ones."""


def readable(data: bytes) -> str:
    """Return a token's bytes as text: white space kept, what can't be printed named like `<0x1B>` or `<U+200B>`."""
    return "".join(_readable(c) for c in data.decode("utf-8", errors="surrogateescape"))


def _readable(character: str) -> str:
    if character.isprintable() or character in SIGNS:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8 by itself
        return f"<0x{code - 0xDC00:02X}>"
    return f"<0x{code:02X}>" if code < 0x80 else f"<U+{code:04X}>"


def visible(text: str, limit: int | None = None) -> str:
    """Return `text` with a sign for each white space, cut to `limit` characters with an ellipsis."""
    text = "".join(SIGNS.get(c, c) for c in text)
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def shortened(text: str, limit: int) -> str:
    """Return `limit` characters of a text: the end of a JSON pointer, the beginning of anything else."""
    if len(text) <= limit:
        return text
    return f"…{text[-limit + 1 :]}" if text.startswith("/") else f"{text[: limit - 1]}…"


def special(vocabulary: Vocabulary, token_id: int) -> str | None:
    """Return the name of an id that writes nothing: `mask`, `eos` or `id 17`; None for an ordinary token."""
    if token_id == vocabulary.mask_id:
        return "mask"
    if token_id in vocabulary.eos_ids:
        return "eos"
    return f"id {token_id}" if vocabulary.written(token_id) is None else None


def token(vocabulary: Vocabulary, token_id: int) -> str:
    """Return what a token writes, readable; the name of a special id."""
    data = vocabulary.written(token_id)
    return special(vocabulary, token_id) or "" if data is None else readable(data)


def byte_set(values: Iterable[int], limit: int = 22) -> str:
    """Return a set of bytes in a few characters: `0–9 .`; those beyond ASCII, parts of characters, as one."""
    known = list(values)
    plain = sorted(visible(readable(bytes([value]))) for value in known if value < 0x80)
    beyond = ["é…"] if any(value >= 0x80 for value in known) else []
    if len(plain) > 100:
        return "any character" if beyond else "any of ASCII"
    return visible(" ".join([*_ranges(plain), *beyond]), limit)


def summary(vocabulary: Vocabulary, token_ids: Iterable[int], limit: int = 22) -> str:
    """Return a set of tokens in a few characters: `0–9`, `true ┆ false`, `a–z ä … · 1,110`.

    Args:
        vocabulary: that the ids are of.
        token_ids: the set.
        limit: characters that the examples may take; the count of a set that is not listed in full comes after them.
    """
    texts = {visible(token(vocabulary, v)) for v in token_ids}
    singles = sorted(t for t in texts if len(t) == 1)
    longer = sorted((t for t in texts if len(t) > 1), key=lambda t: (len(t), t))
    # Where most are words, some of them say less than the letters that may stand here, and how many there are.
    parts = _ranges(singles) if singles and len(longer) > FEW_WORDS else [*_ranges(singles), *longer]
    shown: list[str] = []
    used = 0
    for part in parts:
        if shown and used + len(part) > limit:
            break
        shown.append(part[: limit - 1] + "…" if len(part) > limit else part)
        used += len(part) + 1
    separator = " " if all(p in singles or "–" in p for p in shown) else " ┆ "
    text = separator.join(shown)
    whole = len(shown) == len(parts) and (not singles or len(longer) <= FEW_WORDS)
    return text if whole else f"{text} … · {len(texts):,}"


def _ranges(characters: list[str]) -> list[str]:
    """Join three or more neighbours of one kind: digits, capitals or small letters."""
    parts: list[str] = []
    run: list[str] = []
    for c in [*characters, ""]:
        if run and c and ord(c) == ord(run[-1]) + 1 and c.isalnum() and run[-1].isalnum():
            run.append(c)
            continue
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else run
        run = [c]
    return parts


def dot(text: str) -> str:
    """Return `text` as a DOT label that shows exactly it.

    Control characters become visible, no entity is decoded, no escape is run, and nothing is HTML-like. The single way
    by which text enters a graph.
    """
    shown = "".join(c if c == " " else SIGNS.get(c) or _readable(c) for c in text)
    # Of graphviz's own type, which a label that looks like `<…>` needs so as not to be read as HTML.
    return graphviz.escape(shown.replace("&", "&amp;"))  # type: ignore[no-any-return]
