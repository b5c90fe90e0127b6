"""The tokenizer: byte-level BPE whose tokens cross the borders that a grammar draws.

Digits are single, a word never carries its leading space (the ids of a name are the same in the
prompt and in the answer, so copying text is copying ids), and a run of punctuation and spaces may
become one token: `": {"` and `"}}` are.
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from engine.training import corpus
from engine.training.words import REAL, invented

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZE = 1536
PAD, SEPARATOR, EOS, MASK = "<pad>", "<sep>", "<eos>", "<mask>"
SPECIAL = (PAD, SEPARATOR, EOS, MASK)
"""Their ids are 0, 1, 2, 3."""
_NAMES = frozenset(REAL) - {"name"}
"""Real words that aren't also a key of the answers."""


def train(texts: Iterable[str], size: int = SIZE) -> PreTrainedTokenizerFast:
    """Learn the merges from texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        mask_token=MASK,
        sep_token=SEPARATOR,
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


def train_on_corpus(seed: int = 0, examples: int = 20_000, size: int = SIZE) -> PreTrainedTokenizerFast:
    """Learn the merges from the first `examples` of a stream, prompts and answers.

    Real words are replaced by invented ones. Else each that training sees would be one token, and only
    held-out names would come in pieces; so names of both splits are two or three common syllables.
    """
    random = Random(seed)

    def without_real(text: str) -> str:
        return re.sub("[a-z]+", lambda word: invented(random) if word[0] in _NAMES else word[0], text)

    drawn = (corpus.example(seed, index) for index in range(examples))
    return train((without_real(text) for e in drawn for text in (e.prompt, e.answer)), size)
