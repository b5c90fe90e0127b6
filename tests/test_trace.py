"""The trace file: what is written is read; what is cut off, damaged, newer or something else says so."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engine import debugger, decode, token_automaton, trace_fields, trace_file
from engine.constraints import read
from engine.errors import ConfigError, TraceError
from engine.trace import Branch, Config, Edit, Header, StepRecord, Trace
from engine.trace_file import MAGIC, Writer
from tests.fake import Fake, characters

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent


def recorded(steps: int = 4, sampler: str = "midpoint") -> Trace:
    vocabulary = characters("01.")
    automaton = token_automaton.compile(read("regex", r"[01]+(\.[01]+)?"), vocabulary)
    config = Config("p", "regex", r"[01]+(\.[01]+)?", "fake", 6, steps, 6, 1.0, sampler=sampler, pins=((1, 2),))
    model = Fake(vocabulary)
    header = Header(config, model.facts, vocabulary, automaton, model.encode_prompt("p"))
    return Trace(header, tuple(decode.denoise(model, automaton, config)))


@pytest.mark.parametrize("sampler", ["midpoint", "independent"])
def test_a_trace_reads_back_to_the_last_bit(sampler: str, tmp_path: Path) -> None:
    written = recorded(sampler=sampler)
    trace_file.save(written, tmp_path / "a.trace")
    loaded = trace_file.load(tmp_path / "a.trace")
    assert loaded.header.config == written.header.config
    assert loaded.header.vocabulary == written.header.vocabulary
    assert dict(loaded.header.model) == dict(written.header.model)
    for field in dataclasses.fields(token_automaton.TokenAutomaton):
        read_back, original = (getattr(t.header.automaton, field.name) for t in (loaded, written))
        assert read_back == original if field.name == "state_spans" else np.array_equal(read_back, original)
    for a, b in zip(loaded.steps, written.steps, strict=True):
        for field in dataclasses.fields(StepRecord):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))
    assert (loaded.text, loaded.accepted, loaded.finished) == (written.text, written.accepted, True)
    assert np.isneginf(loaded.steps[0].log_lift).any()


def test_a_file_of_version_1_opens_with_what_it_lacks_left_out() -> None:
    opened = trace_file.load(ROOT / "tests" / "data" / "traces" / "version-1.trace")
    assert opened.finished
    assert (opened.header.branches, opened.header.config.bans) == ((), ())
    assert trace_file.load(trace_file.dumps(opened)).fingerprint == opened.fingerprint


def test_a_fork_reads_back_with_where_it_left_its_parent() -> None:
    whole = recorded()
    edits = (
        Edit("pin", 2, 1),
        Edit("set", name="temperature", value=0.5),
        Edit("constrain", name="choices", value=("a", "b")),
    )
    header = dataclasses.replace(
        whole.header,
        branches=(Branch(whole.fingerprint, 2, edits),),
        config=dataclasses.replace(whole.header.config, bans=((3, 1),)),
    )
    loaded = trace_file.load(trace_file.dumps(Trace(header, whole.steps)))
    assert loaded.header.branches == header.branches
    assert loaded.header.config == header.config


def test_every_cut_of_a_file_opens_up_to_its_last_whole_step_or_says_that_the_header_is_cut() -> None:
    written = recorded()
    data = trace_file.dumps(written)
    header_size = len(trace_file.dumps(Trace(written.header, ())))
    seen = set()
    for cut in range(0, len(data), 97):
        if cut < header_size:
            with pytest.raises(TraceError):
                trace_file.load(data[:cut])
        else:
            opened = trace_file.load(data[:cut])
            seen.add(len(opened.steps))
            assert not opened.finished
    assert seen == {0, 1, 2, 3}


def test_a_damaged_step_ends_the_trace_in_front_of_it() -> None:
    data = bytearray(trace_file.dumps(recorded()))
    data[-10] ^= 1
    assert len(trace_file.load(bytes(data)).steps) == 3


def chunk(raw: bytes) -> bytes:
    body = zlib.compress(raw)
    return struct.pack("<II", len(body), zlib.crc32(body)) + body


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a trace"), (b"PK\x03\x04 a zip", "not a trace"), (MAGIC, "cut off"), (MAGIC + b"\x01\x02", "cut off"),
        (MAGIC + chunk(b"\x02\x00\x00\x00{}"), "no valid content"),
        (MAGIC + struct.pack("<II", 3, zlib.crc32(b"abc")) + b"abc", "no valid content"),
        (MAGIC + chunk(struct.pack("<I", 10**5) + b"[" * 10**5), "no valid content"),
        (MAGIC + chunk(struct.pack("<I", 24) + b'{"meta":[],"arrays":[]}  '), "no valid content"),
        (MAGIC + chunk(struct.pack("<I", 37) + b'{"meta":{"version":99},"arrays":[]}  '), "version 99"),
        (MAGIC + chunk(struct.pack("<I", 36) + b'{"meta":{"version":1},"arrays":[]}  '), "not complete"),
        (MAGIC + chunk(struct.pack("<I", 52) + b'{"meta":{},"arrays":[["a","|O",[1]]]}               '), "no valid content"),
    ],
)  # fmt: skip
def test_what_is_not_a_trace_is_refused_with_the_reason(data: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        trace_file.load(data)


def test_a_header_whose_tables_point_outside_is_refused() -> None:
    good = recorded()
    bad = dataclasses.replace(good.header.automaton, class_target=good.header.automaton.class_target + 50)
    with pytest.raises(TraceError, match="contradict"):
        trace_file.load(trace_file.dumps(Trace(dataclasses.replace(good.header, automaton=bad), ())))


def test_a_step_that_contradicts_the_header_is_refused() -> None:
    good = recorded()
    bad = dataclasses.replace(good.steps[0], drawn=good.steps[0].drawn[:3])
    with pytest.raises(TraceError, match="drawn"):
        trace_file.load(trace_file.dumps(Trace(good.header, (bad,))))


def rewritten(change: Callable[[dict[str, Any], dict[str, np.ndarray]], object], number: int = 0) -> bytes:
    """A good file with one chunk changed as a stranger might, checksums and all; chunk 0 is the header."""
    chunks, stream = [], io.BytesIO(trace_file.dumps(recorded()).removeprefix(MAGIC))
    while prefix := stream.read(8):
        chunks.append(stream.read(struct.unpack("<II", prefix)[0]))
    meta, arrays = trace_file._unpack(zlib.decompress(chunks[number]))
    change(meta, arrays)
    index = {"meta": meta, "arrays": [[name, a.dtype.str, list(a.shape)] for name, a in arrays.items()]}
    text = json.dumps(index).encode()
    raw = struct.pack("<I", len(text)) + text + b"".join(a.tobytes() for a in arrays.values())
    whole = [chunk(zlib.decompress(body)) for body in chunks]
    whole[number] = chunk(raw)
    return MAGIC + b"".join(whole)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("config", None), ("config", {"prompt": 3}), ("model", None), ("model", {"parameters": math.inf}), ("mask_id", -1),
        ("mask_id", 2**40), ("eos_ids", [99]), ("eos_ids", "x"), ("start", 1e9), ("version", 0), ("branches", [3]),
        ("state_spans", [[["a", "b"]]] * 9), ("model", {"name": "\ud800"}),
        ("branches", [{"parent": "p", "step": 0, "edits": [{"kind": "set", "name": "seed", "value": "\ud800"}]}]),
        *((f"config {name}", value) for name, value in (
            ("prompt", None), ("temperature", "1"), ("temperature", math.nan), ("temperature", [1]), ("steps", True), ("steps", 2.5),
            ("length", "6"), ("source", [3]), ("kind", ["regex"]), ("pins", [[1, 99]]), ("pins", [[math.inf, 2]]), ("top_k", 1.5),
            ("seed", None), ("upstream_bugs", 1), ("reading", [[[1]]]), ("reading", [["depth", [1]]]),
            ("reading", [["depth", None]]), ("reading", [["depth", "\ud800"]]), ("model", "\ud800"), ("source", ["\ud800"]),
        )),
    ],
)  # fmt: skip
def test_a_header_with_a_word_of_another_kind_is_refused(name: str, value: Any) -> None:
    *outer, inner = name.split()

    def change(meta: dict[str, Any], _: dict[str, np.ndarray]) -> None:
        (meta[outer[0]] if outer else meta)[inner] = value

    with pytest.raises(TraceError):
        trace_file.load(rewritten(change))


@pytest.mark.parametrize("name", trace_fields.HEADER)
def test_a_header_with_an_array_of_another_type_is_refused(name: str) -> None:
    for dtype in ("<f8", "<i8", ">i4", "|S1"):
        with pytest.raises(TraceError):
            trace_file.load(rewritten(lambda _, arrays, to=dtype: arrays.update({name: arrays[name].astype(to)})))


@pytest.mark.parametrize("name", ["canvas", "drawn", "top_ids", "path", "state_ids", "midpoint_ids"])
@pytest.mark.parametrize("value", [-2, -(2**31), 4097, 2**31 - 1])
def test_a_step_with_an_index_outside_of_the_tables_is_refused(name: str, value: int) -> None:
    def change(_: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name].flat[1] = value  # where a pin stands

    with pytest.raises(TraceError, match=f"in {name} that"):
        trace_file.load(rewritten(change, 2))


def test_a_file_with_more_steps_than_it_asked_for_is_refused() -> None:
    with pytest.raises(TraceError, match=r"Step 3 .* one more"):
        trace_file.load(rewritten(lambda meta, _: meta["config"].update(steps=3)))


def test_a_setting_that_no_run_can_have_is_refused_where_the_run_would_go_on() -> None:
    loaded = trace_file.load(rewritten(lambda meta, _: meta["config"].update(remasking="guess", steps=9)))
    for going_on in (lambda: debugger.fork(loaded, 1), lambda: debugger.resume(loaded)):
        with pytest.raises(ConfigError, match="guess"):
            going_on()


def test_a_chunk_that_unpacks_too_far_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = trace_file.dumps(recorded())
    monkeypatch.setattr(trace_file, "MAX_CHUNK_BYTES", 100)
    with pytest.raises(TraceError, match="unpacks"):
        trace_file.load(data)


def test_files_that_can_not_be_opened_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.trace"):
        trace_file.load(tmp_path / "none.trace")
    with pytest.raises(TraceError, match="can't be written"):
        Writer(tmp_path / "no" / "such" / "a.trace", recorded().header)


KILLED = """
import sys, time
sys.path[:0] = [{root!r}]
from tests.test_trace import recorded
from engine.trace_file import Writer
whole = recorded()
with Writer({path!r}, whole.header) as writer:
    for n, step in enumerate(whole.steps[:3]):
        writer.append(step)
    print("three", flush=True)
    time.sleep(60)
"""


def test_a_killed_run_opens_up_to_its_last_finished_step(tmp_path: Path) -> None:
    path = str(tmp_path / "killed.trace")
    code = KILLED.format(root=str(ROOT), path=path)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONWARNINGS": "default"}
    )
    assert process.stdout
    assert process.stdout.readline() == b"three\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    opened = trace_file.load(path)
    assert len(opened.steps) == 3
    assert not opened.finished


def test_opening_a_trace_needs_no_torch_and_no_compiler(tmp_path: Path) -> None:
    trace_file.save(recorded(), tmp_path / "a.trace")
    code = f"import sys; from engine.trace_file import load; t = load({str(tmp_path / 'a.trace')!r}); assert len(t.steps) == 4; assert not {{'torch', 'numba'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
