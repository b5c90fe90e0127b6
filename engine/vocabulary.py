"""What every token id writes: exact bytes, special ids, ids that no text can hold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from engine.token_bytes import writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.trie import Trie


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a model.

    Attributes:
        token_bytes: for each id the bytes that it writes; None for a dead id: mask, bos, pad, any other
            special token, and ids that the tokenizer can't decode. EOS ids are None here as well.
        eos_ids: ids that end the text, the one that pads first. Only ids of this list may follow one.
        mask_id: the id that stands on a masked position. It may lie past the last token when the model
            has none of its own, as in a typed-in mean field.
        first_bytes: ids that write something else at the canvas's first position, ascending, and what they write there:
            a SentencePiece token loses its leading space, WordPiece's "##s" is written as it is.
        specials: spellings of the special ids, by which a constraint may ask for one; not in a trace.
    """

    token_bytes: tuple[bytes | None, ...]
    eos_ids: tuple[int, ...]
    mask_id: int
    first_bytes: tuple[tuple[int, bytes], ...] = ()
    specials: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    @property
    def size(self) -> int:
        """Number of ids that the model gives a probability to."""
        return len(self.token_bytes)

    def data(self, token_ids: Iterable[int], *, first: bool = True) -> bytes:
        """Return the bytes that `token_ids` write up to the first EOS; dead ids write nothing.

        Args:
            token_ids: of a canvas, or of a part of one.
            first: whether the first of them stands at the canvas's first position.
        """
        parts: list[bytes] = []
        for token_id in token_ids:
            if token_id in self.eos_ids:
                break
            parts.append(self.written(int(token_id), first=first) or b"")
            first = False
        return b"".join(parts)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text that `token_ids` write up to the first EOS, U+FFFD for broken UTF-8."""
        return self.data(token_ids).decode("utf-8", errors="replace")

    def written(self, token_id: int, *, first: bool = False) -> bytes | None:
        """Return the bytes of one id, at the first position or anywhere else; None for dead, EOS and mask ids."""
        if first and token_id in self._at_first:
            return self._at_first[token_id]
        return self.token_bytes[token_id] if 0 <= token_id < self.size else None

    def spell(self, data: bytes, *, first: bool = False) -> list[int] | None:
        """Return the fewest tokens that write `data`; None where none do.

        Args:
            data: what is to be written.
            first: whether the first token stands at the canvas's first position.
        """
        best: list[list[int] | None] = [[], *([None] * len(data))]
        for start in range(len(data)):
            before = best[start]
            if before is None:
                continue
            known = self._id_at_first if first and start == 0 else self._id_of
            for stop in range(start + 1, min(start + self._longest, len(data)) + 1):
                token_id, now = known.get(data[start:stop]), best[stop]
                if token_id is not None and (now is None or len(before) + 1 < len(now)):
                    best[stop] = [*before, token_id]
        return best[len(data)]

    @cached_property
    def trie(self) -> Trie:
        """The byte strings of `token_bytes` and, behind them, of `first_bytes`, as one trie, built once.

        A large one is kept on disk.
        """
        from engine import trie

        return trie.trie(self.token_bytes + tuple(data for _, data in self.first_bytes))

    @cached_property
    def _at_first(self) -> dict[int, bytes]:
        return dict(self.first_bytes)

    @cached_property
    def _id_of(self) -> dict[bytes, int]:
        return {data: i for i, data in reversed(list(enumerate(self.token_bytes))) if data}

    @cached_property
    def _id_at_first(self) -> dict[bytes, int]:
        pairs = ((i, self.written(i, first=True)) for i in reversed(range(self.size)))
        return {data: i for i, data in pairs if data}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, (*self._id_of, *self._id_at_first)), default=0)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, size: int, eos_ids: Sequence[int], mask_id: int) -> Vocabulary:
        """Read what each token writes off the tokenizer's own decoder.

        Args:
            tokenizer: a `transformers` tokenizer backed by the `tokenizers` library.
            size: width of the model's logits; ids that the tokenizer does not have are dead.
            eos_ids: the ids that end the text.
            mask_id: the id of the mask.

        Raises:
            ModelError: the decoder is not one whose rules are known.
        """
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        special = {int(i) for i in tokenizer.all_special_ids} | {mask_id, *eos_ids}
        special |= {int(t["id"]) for t in state.get("added_tokens", ()) if t.get("special")}
        write = writer(state.get("decoder"))
        token_bytes: list[bytes | None] = [None] * size
        first_bytes: dict[int, bytes] = {}
        for name, token_id in tokenizer.get_vocab().items():
            if token_id >= size or token_id in special:
                continue
            data, at_first = write(name, False), write(name, True)
            token_bytes[token_id] = data or None
            if at_first != data:
                first_bytes[token_id] = at_first
        eos = tuple(int(i) for i in eos_ids)
        names = tuple(sorted((name, i) for name, i in tokenizer.get_vocab().items() if i in special and i < size))
        return cls(tuple(token_bytes), eos, int(mask_id), tuple(sorted(first_bytes.items())), names)
