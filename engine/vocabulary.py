"""What every token id writes: exact bytes, special ids, ids that no text can hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.composition import Trie


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a model.

    Attributes:
        token_bytes: for each id the bytes that it writes; None for a dead id: mask, bos, pad, any other
            special token, and ids that the tokenizer can't decode. EOS ids are None here as well.
        eos_ids: ids that end the text, the one that pads first. Only ids of this list may follow one.
        mask_id: the id that stands on a masked position. It may lie past the last token when the model
            has none of its own, as in a typed-in mean field.
    """

    token_bytes: tuple[bytes | None, ...]
    eos_ids: tuple[int, ...]
    mask_id: int

    @property
    def size(self) -> int:
        """Number of ids that the model gives a probability to."""
        return len(self.token_bytes)

    def data(self, token_ids: Iterable[int]) -> bytes:
        """Return the bytes that `token_ids` write up to the first EOS; dead ids write nothing."""
        parts: list[bytes] = []
        for token_id in token_ids:
            if token_id in self.eos_ids:
                break
            parts.append(self.written(int(token_id)) or b"")
        return b"".join(parts)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text that `token_ids` write up to the first EOS, U+FFFD for broken UTF-8."""
        return self.data(token_ids).decode("utf-8", errors="replace")

    def written(self, token_id: int) -> bytes | None:
        """Return the bytes of one id; None for dead, EOS and mask ids."""
        return self.token_bytes[token_id] if 0 <= token_id < self.size else None

    @cached_property
    def trie(self) -> Trie:
        """The byte strings as a trie, built once."""
        from engine.composition import build_trie

        return build_trie(self.token_bytes)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, size: int, eos_ids: Sequence[int], mask_id: int) -> Vocabulary:
        """Read the exact bytes of each token from a fast byte-level BPE tokenizer.

        Args:
            tokenizer: a `transformers` tokenizer backed by the `tokenizers` library.
            size: width of the model's logits; ids from the tokenizer's length on are dead.
            eos_ids: the ids that end the text.
            mask_id: the id of the mask.
        """
        special = {int(i) for i in tokenizer.all_special_ids} | {mask_id, *eos_ids}
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        added = {int(t["id"]): t for t in state.get("added_tokens", ())}
        special |= {i for i, t in added.items() if t.get("special")}
        byte_of = _byte_of_character()
        token_bytes: list[bytes | None] = [None] * size
        for text, token_id in tokenizer.get_vocab().items():
            if token_id >= size or token_id in special:
                continue
            if token_id in added:
                # Added tokens are stored as plain text, not in the byte alphabet.
                token_bytes[token_id] = text.encode()
            elif all(c in byte_of for c in text):
                token_bytes[token_id] = bytes(byte_of[c] for c in text) or None
        return cls(tuple(token_bytes), tuple(int(i) for i in eos_ids), int(mask_id))


def _byte_of_character() -> dict[str, int]:
    """Map the printable character that byte-level BPE writes for a byte back to the byte (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in printable}
    others = [b for b in range(256) if b not in set(printable)]
    table.update({chr(256 + n): b for n, b in enumerate(others)})
    return table
