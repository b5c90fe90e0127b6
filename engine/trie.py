"""The byte strings of a vocabulary as a trie, kept on disk for the large vocabularies, once for each tokenizer."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit

KEPT_FROM = 20_000
"""Tokens from which a trie is kept on disk; a smaller one is built in a few milliseconds."""
FORMAT = b"trie 1"
"""Changes with the meaning of the arrays, so that an older file is not read as a newer one."""


@dataclass(frozen=True, eq=False)
class Trie:
    """The byte strings of a vocabulary as a trie, nodes in depth-first order.

    Attributes:
        parent: int32 `[nodes]`; node 0 is the root, its own parent.
        byte: uint8 `[nodes]`, the byte that leads from the parent to the node.
        node: int32 `[vocab]`, the node where each token ends; the root for ids that write nothing.
    """

    parent: np.ndarray
    byte: np.ndarray
    node: np.ndarray


def trie(token_bytes: tuple[bytes | None, ...]) -> Trie:
    """Build the trie, or read it from the user's cache folder if it was built before.

    A file's name is the hash of all token bytes, and it appears whole or not at all, so processes may share the folder.
    A damaged file is built anew; a folder that can't be written is done without.
    """
    if len(token_bytes) < KEPT_FROM:
        return build(token_bytes)
    path = cache_folder() / f"{_digest(token_bytes)}.npz"
    found = _load(path, len(token_bytes))
    if found is None:
        found = build(token_bytes)
        with suppress(OSError):
            _save(found, path)
    return found


def cache_folder() -> Path:
    """Return the folder of the tries: under XDG_CACHE_HOME, or else under the user's .cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "denoiscope" / "tries"


def build(token_bytes: tuple[bytes | None, ...]) -> Trie:
    """Build the trie in one pass over the sorted tokens."""
    ids = sorted(
        (i for i, data in enumerate(token_bytes) if data),
        key=lambda i: token_bytes[i] or b"",
    )
    parts = [token_bytes[i] or b"" for i in ids]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    data = np.frombuffer(b"".join(parts), np.uint8)
    parent, byte, leaf = _trie(data, ends)
    node = np.zeros(len(token_bytes), np.int32)
    node[np.asarray(ids, np.int64)] = leaf
    return Trie(parent, byte, node)


def _digest(token_bytes: tuple[bytes | None, ...]) -> str:
    """Hash what each id writes; ids that write nothing are all one to a trie."""
    sizes = np.asarray([len(data or b"") for data in token_bytes], "<u4")
    content = hashlib.sha256(FORMAT + sizes.tobytes())
    content.update(b"".join(data or b"" for data in token_bytes))
    return content.hexdigest()


def _load(path: Path, vocab: int) -> Trie | None:
    """Read a trie; None where there is none, or where the file is damaged (its zip has checksums)."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = Trie(arrays["parent"], arrays["byte"], arrays["node"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    nodes = found.parent.size
    kinds = [(a.dtype.str, a.shape) for a in (found.parent, found.byte, found.node)]
    if kinds != [("<i4", (nodes,)), ("|u1", (nodes,)), ("<i4", (vocab,))]:
        return None
    earlier = (found.parent[1:] < np.arange(1, nodes)).all() and found.parent.min(initial=0) >= 0
    inside = found.node.min(initial=0) >= 0 and found.node.max(initial=0) < nodes
    return found if earlier and inside else None


def _save(found: Trie, path: Path) -> None:
    """Write the file under another name and put it in place whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        try:
            np.savez(file, parent=found.parent, byte=found.byte, node=found.node)
            file.close()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise


@njit(cache=True)
def _trie(data, ends):
    tokens = ends.size - 1
    parent = np.zeros(data.size + 1, np.int32)
    byte = np.zeros(data.size + 1, np.uint8)
    leaf = np.zeros(tokens, np.int32)
    longest = 0
    for t in range(tokens):
        longest = max(longest, ends[t + 1] - ends[t])
    stack = np.zeros(longest + 1, np.int32)  # node at each depth of the previous token
    nodes = 1
    previous_length = 0
    for t in range(tokens):
        length = ends[t + 1] - ends[t]
        depth = 0
        while depth < length and depth < previous_length and data[ends[t] + depth] == byte[stack[depth + 1]]:
            depth += 1
        while depth < length:
            parent[nodes] = stack[depth]
            byte[nodes] = data[ends[t] + depth]
            depth += 1
            stack[depth] = nodes
            nodes += 1
        leaf[t] = stack[length]
        previous_length = length
    return parent[:nodes].copy(), byte[:nodes].copy(), leaf
