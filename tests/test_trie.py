"""The trie on disk: what is read back is what was built, whatever is wrong with the file, whoever else writes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine import trie

TOKENS = tuple(None if i % 97 == 0 else str(i * i).encode() for i in range(trie.KEPT_FROM))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return trie.cache_folder()


def same(a: trie.Trie, b: trie.Trie) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("parent", "byte", "node"))


def spelt(found: trie.Trie, token_id: int) -> bytes:
    data, node = b"", int(found.node[token_id])
    while node:
        data, node = bytes([found.byte[node]]) + data, int(found.parent[node])
    return data


def test_a_kept_trie_spells_every_token_and_is_not_built_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = trie.trie(TOKENS)
    assert all(spelt(built, i) == (TOKENS[i] or b"") for i in range(0, len(TOKENS), 53))
    monkeypatch.setattr(trie, "build", lambda _: pytest.fail("built again"))
    assert same(trie.trie(TOKENS), built)
    assert [p.suffix for p in folder.iterdir()] == [".npz"]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_a_damaged_file_is_built_anew(folder: Path, damage: str) -> None:
    built = trie.trie(TOKENS)
    (path,) = folder.iterdir()
    data = bytearray(path.read_bytes())
    if damage == "other":  # sound, and of another vocabulary
        other = trie.build((b"a", b"b"))
        np.savez(path, parent=other.parent, byte=other.byte, node=other.node)
    else:
        data[len(data) // 2] ^= 255
        path.write_bytes({"empty": b"", "cut": bytes(data[: len(data) // 3]), "flipped": bytes(data)}[damage])
    assert same(trie.trie(TOKENS), built)
    assert same(trie._load(path, len(TOKENS)), built)


def test_a_trie_that_points_outside_itself_is_not_believed(folder: Path) -> None:
    built = trie.trie(TOKENS)
    (path,) = folder.iterdir()
    for name, index, value in (("parent", 5, 9), ("parent", 3, -1), ("node", 7, built.parent.size)):
        arrays = {n: getattr(built, n).copy() for n in ("parent", "byte", "node")}
        arrays[name][index] = value
        np.savez(path, **arrays)
        assert trie._load(path, len(TOKENS)) is None


def test_other_tokens_have_another_file(folder: Path) -> None:
    trie.trie(TOKENS)
    moved = (TOKENS[1], TOKENS[0], *TOKENS[2:])
    assert spelt(trie.trie(moved), 0) == TOKENS[1]
    assert len(list(folder.iterdir())) == 2


def test_writers_at_the_same_time_leave_one_whole_file(folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: trie.trie(TOKENS), range(8)))
    assert all(same(found[0], other) for other in found)
    assert [p.suffix for p in folder.iterdir()] == [".npz"]


def test_without_a_folder_to_write_the_trie_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert spelt(trie.trie(TOKENS), 1) == TOKENS[1]
