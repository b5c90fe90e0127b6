"""Traces on disk: one chunk for the header, one for each finished step.

A trace file is a magic line and then chunks. The first chunk is the header, each further one is a finished step, so a
file is appended to as the run goes and a killed run opens up to its last finished step. A chunk is

    u32 length of the body | u32 CRC-32 of the body | body (zlib)

and a body is a u32-prefixed JSON index `{"meta": …, "arrays": [[name, dtype, shape], …]}` followed by the arrays'
bytes, little-endian, in that order. There is no pickle and no number that could be `-inf` in the JSON.

A change of the meaning or the set of a record's fields raises `VERSION`; add a note to `docs/ARCHITECTURE.md`, and a
golden file of the old version to the tests.
"""

from __future__ import annotations

import io
import json
import math
import struct
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

try:
    import fcntl
except ImportError:  # no POSIX system: there two writers of one file are not told apart
    fcntl = None  # type: ignore[assignment]

from engine import trace_fields
from engine.errors import TraceError
from engine.token_automaton import TokenAutomaton
from engine.trace import Branch, Config, Edit, Header, StepRecord, Trace
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2
MAGIC = b"denoiscope trace\n"
MAX_CHUNK_BYTES = 1 << 30
"""Largest body that is read, compressed or not: what an uploaded file may make the reader allocate."""


class Writer:
    """A trace file that grows by one chunk a step; each is flushed before the next step runs."""

    def __init__(self, path: Path | str, header: Header) -> None:
        """Create the file with its header; an existing file is replaced."""
        self._path = path
        try:
            self._file = _emptied(Path(path))
        except OSError as error:
            raise self._refused(error) from error
        self._write(MAGIC + _chunk(*_header_body(header)))

    def append(self, step: StepRecord) -> None:
        """Write one finished step and hand it to the operating system."""
        self._write(_chunk({}, _step_arrays(step)))

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self.close()
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> TraceError:
        reason = "another run is writing it" if isinstance(error, BlockingIOError) else error.strerror
        return TraceError(
            f"The trace can't be written to {self._path}: {reason}.",
            "Name a file of its own in a folder that exists, can be written and has room.",
        )


def only_writer(path: Path) -> IO[bytes]:
    """Open a file to append to, for one writer at a time, until it is closed.

    There is no buffer: what a full disk refuses is not tried again when the file is closed.

    Raises:
        BlockingIOError: another writer has it.
        OSError: it can't be written.
    """
    file = path.open("ab", buffering=0)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def _emptied(path: Path) -> IO[bytes]:
    """Open a file for one writer and empty it; what another one is writing stays as it is."""
    file = only_writer(path)
    if path.is_file():  # and no device
        file.truncate(0)
    return file


def save(trace: Trace, path: Path | str) -> None:
    """Write a whole trace to a file."""
    with Writer(path, trace.header) as writer:
        for step in trace.steps:
            writer.append(step)


def load(source: Path | str | bytes) -> Trace:
    """Read a trace up to its last whole step.

    Args:
        source: a path, or the file's bytes.

    Raises:
        TraceError: it is not a trace, its header is damaged, it is of a newer version, or a step contradicts the
            header. A file that merely ends early, or whose last chunk is damaged, is not an error.
    """
    data = source if isinstance(source, bytes) else _read_file(Path(source))
    if not data.startswith(MAGIC):
        raise TraceError(
            "This file is not a trace: it doesn't start with the words 'denoiscope trace'.",
            "Choose a file that a run saved, with --trace or the page's Save button.",
        )
    stream = io.BytesIO(data)
    stream.seek(len(MAGIC))
    first = _read_chunk(stream)
    if first is None:
        raise TraceError(
            f"This trace is cut off inside its header: it has only {len(data)} bytes.",
            "Save the run again; nothing of it can be read from this file.",
        )
    header = _header(*first)
    steps: list[StepRecord] = []
    while (chunk := _read_chunk(stream)) is not None:
        steps.append(_step(chunk[1], header, len(steps)))
    return Trace(header, tuple(steps))


def dumps(trace: Trace) -> bytes:
    """Return a whole trace as the bytes of its file."""
    parts = [MAGIC, _chunk(*_header_body(trace.header))]
    parts.extend(_chunk({}, _step_arrays(step)) for step in trace.steps)
    return b"".join(parts)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TraceError(
            f"The trace {path} can't be read: {error.strerror}.",
            "Check the path; `--trace FILE` of a run writes one.",
        ) from error


def _chunk(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    listed = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
    index = {
        "meta": meta,
        "arrays": [[name, arrays[name].dtype.str, list(arrays[name].shape)] for name in listed],
    }
    text = json.dumps(index, allow_nan=False, separators=(",", ":")).encode()
    raw = struct.pack("<I", len(text)) + text + b"".join(a.tobytes() for a in listed.values())
    body = zlib.compress(raw, 1)
    return struct.pack("<II", len(body), zlib.crc32(body)) + body


def _read_chunk(stream: io.BytesIO) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Read one chunk; None at the end, and where the file is cut off or damaged."""
    prefix = stream.read(8)
    if len(prefix) < 8:
        return None
    size, checksum = struct.unpack("<II", prefix)
    body = stream.read(size)
    if len(body) < size or zlib.crc32(body) != checksum:
        return None
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(body, MAX_CHUNK_BYTES)
        if not inflate.unconsumed_tail:
            return _unpack(raw)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, struct.error, zlib.error) as error:
        raise TraceError(
            f"A part of this trace has a valid checksum and no valid content ({error}).",
            "Open a trace that Denoiscope wrote.",
        ) from error
    raise TraceError(
        f"A part of this trace unpacks to more than {MAX_CHUNK_BYTES >> 20} MiB.",
        "Open a trace that Denoiscope wrote; this one is damaged or hostile.",
    )


def _unpack(raw: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    (size,) = struct.unpack_from("<I", raw)
    index = json.loads(raw[4 : 4 + size], parse_float=_finite, parse_constant=_finite)
    if not isinstance(index["meta"], dict):
        raise TypeError("its words have no names")
    offset = 4 + size
    arrays: dict[str, np.ndarray] = {}
    for name, dtype_name, shape in index["arrays"]:
        dtype = np.dtype(dtype_name)
        if dtype.hasobject or any(not isinstance(n, int) or n < 0 for n in shape):
            raise ValueError(f"array {name!r} has a bad dtype or shape")
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(raw, dtype, count, offset).reshape(shape)
        offset += count * dtype.itemsize
    return index["meta"], arrays


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number of JSON")
    return value


_AUTOMATON_ARRAYS = ("accepting", "token_class", "class_ptr", "class_source", "class_target")


def _header_body(header: Header) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    tokens = header.vocabulary.token_bytes
    lengths = [-1 if data is None else len(data) for data in tokens]
    automaton = header.automaton
    meta = {
        "version": VERSION,
        "config": asdict(header.config),
        "model": dict(header.model),
        "branches": [asdict(branch) for branch in header.branches],
        "eos_ids": list(header.vocabulary.eos_ids),
        "mask_id": header.vocabulary.mask_id,
        "start": automaton.start,
        "end": automaton.end,
        "state_spans": [[list(span) for span in spans] for spans in automaton.state_spans],
    }
    arrays = {name: getattr(automaton, name) for name in _AUTOMATON_ARRAYS}
    arrays["prompt_ids"] = header.prompt_ids
    arrays["token_lengths"] = np.asarray(lengths, "<i4")
    arrays["token_data"] = np.frombuffer(b"".join(data or b"" for data in tokens), np.uint8)
    arrays |= _first_arrays(header.vocabulary)
    return meta, arrays


def _header(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Header:
    version = meta.get("version")
    if not isinstance(version, int) or not 0 < version <= VERSION:
        raise TraceError(
            f"This trace is of version {version}, and this Denoiscope reads up to version {VERSION}.",
            "Update Denoiscope, or record the run again with this one.",
        )
    try:
        trace_fields.check_arrays(arrays)
        ends = np.cumsum(np.maximum(arrays["token_lengths"], 0), dtype=np.int64)
        data = arrays["token_data"].tobytes()
        if ends[-1:].sum() != len(data):
            raise ValueError("its tokens are longer than what they write")
        tokens = tuple(
            None if length < 0 else data[end - length : end]
            for length, end in zip(arrays["token_lengths"].tolist(), ends.tolist(), strict=True)
        )
        first = _first_bytes(arrays, len(tokens))
        vocabulary = Vocabulary(tokens, tuple(map(int, meta["eos_ids"])), int(meta["mask_id"]), first)
        automaton = TokenAutomaton(
            start=int(meta["start"]),
            end=int(meta["end"]),
            state_spans=tuple(tuple((a, b) for a, b in spans) for spans in meta["state_spans"]),
            **{name: arrays[name] for name in _AUTOMATON_ARRAYS},
        )
        branches = tuple(_branch(branch) for branch in meta.get("branches", ()))
        header = Header(_config(meta["config"]), meta["model"], vocabulary, automaton, arrays["prompt_ids"], branches)
        trace_fields.check_header(header)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise TraceError(
            f"The header of this trace is not complete ({type(error).__name__}: {error}).",
            "Open a trace that Denoiscope wrote.",
        ) from error
    return header


def _first_arrays(vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    pairs = vocabulary.first_bytes
    return {
        "first_ids": np.asarray([i for i, _ in pairs], "<i4"),
        "first_lengths": np.asarray([len(data) for _, data in pairs], "<i4"),
        "first_data": np.frombuffer(b"".join(data for _, data in pairs), np.uint8),
    }


def _first_bytes(arrays: Mapping[str, np.ndarray], size: int) -> tuple[tuple[int, bytes], ...]:
    """Return `Vocabulary.first_bytes`; a file that has none says so by having no such array."""
    if "first_ids" not in arrays:
        return ()
    ids, lengths, data = arrays["first_ids"], arrays["first_lengths"], arrays["first_data"].tobytes()
    if not trace_fields.within(ids, size) or not trace_fields.within(lengths, len(data) + 1):
        raise ValueError("its first bytes name tokens that are not there")
    ends = np.cumsum(lengths).tolist()
    pairs = zip(ids.tolist(), lengths.tolist(), ends, strict=True)
    return tuple((i, data[end - length : end]) for i, length, end in pairs)


def _config(values: Any) -> Config:
    if not isinstance(values, dict):
        raise TypeError("it has no settings")
    known = {f.name for f in fields(Config)}
    values = {name: value for name, value in values.items() if name in known}
    source = values["source"]
    values["source"] = tuple(source) if isinstance(source, list) else source
    for name in ("pins", "bans"):
        values[name] = tuple((int(i), int(v)) for i, v in values.get(name, ()))
    values["reading"] = tuple((str(name), value) for name, value in values.get("reading", ()))
    trace_fields.check_config(values)
    return Config(**values)


def _edit(value: Any, **words: Any) -> Edit:
    """Return an edit as it was written: JSON has no tuples."""
    return Edit(value=tuple(value) if isinstance(value, list) else value, **words)


def _branch(values: Mapping[str, Any]) -> Branch:
    edits = tuple(_edit(**edit) for edit in values["edits"])
    if not isinstance(values["step"], int) or not isinstance(values["parent"], str):
        raise TypeError("a branch needs a step and a parent")
    before = values.get("before")
    return Branch(values["parent"], values["step"], edits, None if before is None else _config(before))


def _step_arrays(step: StepRecord) -> dict[str, np.ndarray]:
    values = {name: getattr(step, name) for name in trace_fields.STEP}
    return {
        name: np.asarray(value).astype(trace_fields.STEP[name][0], copy=False)
        for name, value in values.items()
        if value is not None
    }


def _step(arrays: Mapping[str, np.ndarray], header: Header, number: int) -> StepRecord:
    trace_fields.check_step(arrays, header, number)
    return StepRecord(**{name: arrays[name] for name in trace_fields.STEP if name in arrays})
