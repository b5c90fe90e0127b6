"""What tokens write: the tokenizer's own decode is the oracle, for each kind of tokenizer."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from engine import preparation, token_automaton, trace_file
from engine.constraints import read
from engine.errors import ModelError, PinError
from engine.token_bytes import writer
from engine.trace import Config, Header, Trace
from engine.vocabulary import Vocabulary
from tests import checkpoints
from tests.fake import Fake

KINDS = {
    "byte_level": lambda: PreTrainedTokenizerFast(
        tokenizer_object=checkpoints.byte_level(["<eos>", "<mask>"]), eos_token="<eos>", mask_token="<mask>"
    ),
    "word_piece": checkpoints.word_piece,
    "word_piece_uncleaned": lambda: checkpoints.word_piece(cleanup=False),
    "sentence_piece_strip": lambda: checkpoints.sentence_piece(strip=True),
    "sentence_piece_metaspace": lambda: checkpoints.sentence_piece(strip=False),
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return KINDS[request.param]()


def vocabulary_of(tokenizer) -> Vocabulary:
    eos = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else tokenizer.sep_token_id
    return Vocabulary.from_tokenizer(tokenizer, len(tokenizer) + 2, (eos,), tokenizer.mask_token_id)


def test_the_tokenizers_own_decode_equals_the_concatenated_bytes(tokenizer) -> None:
    vocabulary, decode = vocabulary_of(tokenizer), tokenizer.backend_tokenizer.decode
    alive = [i for i in range(vocabulary.size) if vocabulary.token_bytes[i] is not None]
    assert len(alive) > 60
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(3_000):
        ids = rng.choice(alive, rng.integers(1, 6)).tolist()
        try:
            written = vocabulary.data(ids).decode()
        except UnicodeDecodeError:
            continue  # what a decoder makes of half a character is its own affair
        assert decode(ids) == written, [tokenizer.convert_ids_to_tokens(ids)]
        compared += 1
    assert compared > 500
    for text in checkpoints.TEXT:
        ids = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids
        assert decode(ids, skip_special_tokens=False) == vocabulary.data(ids).decode() or tokenizer.unk_token_id in ids


def test_special_tokens_and_ids_without_a_token_are_dead(tokenizer) -> None:
    vocabulary = vocabulary_of(tokenizer)
    assert vocabulary.token_bytes[-2:] == (None, None)
    assert all(vocabulary.token_bytes[i] is None for i in tokenizer.all_special_ids)
    assert {i for i, _ in vocabulary.first_bytes}.isdisjoint(tokenizer.all_special_ids)


@pytest.mark.parametrize(
    ("pattern", "sample"),
    [
        (r"the (cat|mat)( sat)?\.?", "the cat"),
        (r" ?(10|99) ?dogs?", "10 dogs"),
        (r"(##)?[a-d]{1,3}", "ab"),
        (r"don't|a", "a"),
        (r"[0-9](\.[0-9])?", "3"),
    ],
)
def test_the_automaton_accepts_what_the_tokenizers_decode_satisfies(tokenizer, pattern, sample) -> None:
    vocabulary, decode = vocabulary_of(tokenizer), tokenizer.backend_tokenizer.decode
    automaton = token_automaton.compile(read("regex", pattern), vocabulary)
    live = [i for i in range(vocabulary.size) if automaton.token_class[i] and i not in vocabulary.eos_ids]
    live = np.random.default_rng(0).permutation(live)[:12].tolist()
    spelled = vocabulary.spell(sample.encode(), first=True)
    assert spelled is not None
    assert automaton.accepts(spelled)
    silent = [i for i, data in vocabulary.first_bytes if not data]  # a mark alone, in front of the text
    live = sorted({*live, *spelled, *silent[:2]})
    for length in (1, 2, 3):
        for ids in itertools.product(live, repeat=length):
            try:
                vocabulary.data(ids).decode()
            except UnicodeDecodeError:
                assert not automaton.accepts(ids)
                continue
            meant = re.fullmatch(pattern, decode(list(ids))) is not None
            assert automaton.accepts(ids) == meant, (tokenizer.convert_ids_to_tokens(list(ids)), decode(list(ids)))
            assert automaton.accepts([*ids, vocabulary.eos_ids[0]]) == meant


def test_a_spelling_writes_its_text_where_it_stands(tokenizer) -> None:
    vocabulary = vocabulary_of(tokenizer)
    for text in ("cat", "the cat", " the", "10", "a.b", "1 2"):
        for first in (True, False):
            ids = vocabulary.spell(text.encode(), first=first)
            if ids is not None:
                assert vocabulary.data(ids, first=first) == text.encode()
                assert len(ids) <= len(text)
    assert vocabulary.spell(b"the cat", first=True) is not None
    assert vocabulary.spell(b"\xff\xfe\xfd\x00", first=True) is None or vocabulary.token_bytes.count(b"\xff")


def test_a_pin_writes_its_text_at_its_position(tokenizer) -> None:
    vocabulary = vocabulary_of(tokenizer)

    class Spelling(Fake):
        def encode(self, text: str) -> np.ndarray:
            return np.asarray(tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    denoiser = Spelling(vocabulary)
    for position in (0, 2):
        placed = preparation.pin_tokens(denoiser, 12, {position: "cat"})
        ids = [token_id for _, token_id in placed]
        assert vocabulary.data(ids, first=position == 0) == b"cat"
    with pytest.raises(PinError, match="no text"):
        preparation.pin_tokens(denoiser, 12, {0: ""})


def test_a_trace_keeps_what_tokens_write_at_the_first_position(tokenizer) -> None:
    vocabulary = vocabulary_of(tokenizer)
    automaton = token_automaton.compile(read("regex", "the cat"), vocabulary)
    header = Header(Config("p", "regex", "the cat", length=7), {"name": "x"}, vocabulary, automaton)
    assert trace_file.load(trace_file.dumps(Trace(header, ()))).header.vocabulary == vocabulary


def test_a_decoder_of_unknown_rules_is_refused_with_its_name() -> None:
    with pytest.raises(ModelError, match="CTC"):
        writer({"type": "CTC", "pad_token": "<pad>"})
    with pytest.raises(ModelError, match="no decoder"):
        writer(None)
    with pytest.raises(ModelError, match="Strip"):
        writer({"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 2, "stop": 0}]})


def test_an_added_token_is_decoded_as_its_tokenizer_decodes_it() -> None:
    raw = checkpoints.byte_level(["<eos>", "<mask>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<eos>", mask_token="<mask>")
    tokenizer.add_tokens(["<tool>", "  ", "漢"])
    vocabulary = vocabulary_of(tokenizer)
    for text in ("<tool>", "  ", "漢"):
        token_id = tokenizer.convert_tokens_to_ids(text)
        assert vocabulary.written(token_id) == text.encode() == tokenizer.backend_tokenizer.decode([token_id]).encode()
    assert json.loads(tokenizer.backend_tokenizer.to_str())["decoder"]["type"] == "ByteLevel"
