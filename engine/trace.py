"""The record of a run: what was configured, and every quantity of every step, in memory and on disk.

A trace file is a magic line and then chunks. The first chunk is the header, each further one is a finished step, so a
file is appended to as the run goes and a killed run opens up to its last finished step. A chunk is

    u32 length of the body | u32 CRC-32 of the body | body (zlib)

and a body is a u32-prefixed JSON index `{"meta": …, "arrays": [[name, dtype, shape], …]}` followed by the arrays'
bytes, little-endian, in that order. There is no pickle and no number that could be `-inf` in the JSON.

A change of the meaning or the set of fields raises `VERSION`; add a note to `docs/ARCHITECTURE.md`, and a golden file
of the old version to the tests.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from engine.errors import TraceError
from engine.token_automaton import TokenAutomaton
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2
MAGIC = b"denoiscope trace\n"
MAX_CHUNK_BYTES = 1 << 30
"""Largest body that is read, compressed or not: what an uploaded file may make the reader allocate."""

TOP_TOKENS = 12
TOP_STATES = 48
TOP_MIDPOINT_STATES = 8


@dataclass(frozen=True)
class Config:
    """What the user asked for.

    Attributes:
        prompt: the request that the model sees.
        kind: kind of the constraint: `regex`, `choices`; None for a run without one.
        source: what the user wrote as constraint; a tuple of strings for `choices`.
        model: name of the model as it was asked for.
        length: positions of the canvas.
        steps: denoising steps of the whole run.
        block_length: positions of a block; divides `length`, and its blocks divide `steps`.
        temperature: of the draws; 0 takes the best sequence.
        top_p: draws keep the fewest most probable tokens whose mass reaches this; None keeps all.
        top_k: draws keep this many most probable tokens, and their equals; None keeps all.
        remasking: one of `engine.remasking.NAMES`.
        confidence: `mf` (unconstrained) or `mar` (constrained): which one decides what is committed.
        alg_temp: positions are drawn by `softmax(confidence / alg_temp)`, as Dream does; None takes the most confident.
        threshold: commit all whose confidence reaches this, Fast-dLLM's rule; None commits by schedule.
        factor: commit rank `r` while its confidence reaches `1 − factor / (r + 1)`; None commits by schedule.
        cfg_scale: strength of guidance away from the model's answer to a masked prompt; 0 for none.
        logits_eos_inf: the padding EOS is never drawn, LLaDA's option of that name.
        confidence_eos_eot_inf: EOS and EoT are committed last, LLaDA's option of that name.
        upstream_bugs: repeat what LLaDA's code does where it differs from what its options say.
        sampler: one of `engine.decode.EXACT` or `engine.decode.BASELINES`.
        seed: of all noise.
        reject_budget: joint draws a step that `reject` may use.
        pins: (position, token id) pairs that are committed before the first step.
        bans: (position, token id) pairs that the mean field is without, at every step.
        path_tries: joint draws a step with which the number of paths of a nondeterministic automaton is corrected for;
            0 leaves draws weighted by their paths.
        reading: (name, value) pairs, the options that the constraint is read with.
    """

    prompt: str
    kind: str | None
    source: str | tuple[str, ...] | None
    model: str = "embedded"
    length: int = 32
    steps: int = 32
    block_length: int = 32
    temperature: float = 0.0
    remasking: str = "low_confidence"
    confidence: str = "mar"
    sampler: str = "midpoint"
    seed: int = 0
    reject_budget: int = 16
    pins: tuple[tuple[int, int], ...] = ()
    bans: tuple[tuple[int, int], ...] = ()
    reading: tuple[tuple[str, Any], ...] = ()
    top_p: float | None = None
    top_k: int | None = None
    alg_temp: float | None = None
    threshold: float | None = None
    factor: float | None = None
    cfg_scale: float = 0.0
    logits_eos_inf: bool = False
    confidence_eos_eot_inf: bool = False
    upstream_bugs: bool = False
    path_tries: int = 64

    @property
    def parallel(self) -> bool:
        """Whether a step commits all positions that are confident enough, so that the run may end before `steps`."""
        given = self.threshold is not None or self.factor is not None
        return given or self.remasking in ("threshold", "factor")


@dataclass(frozen=True)
class Edit:
    """One thing that a fork changes.

    Attributes:
        kind: `pin`, `ban`, `uncommit`, `commit` (this step, whatever its confidence), `hold` (not this step), `set` (a
            setting) or `constrain` (another constraint).
        position: of the first five.
        token_id: of `pin` and `ban`.
        name: the setting of `set`; the kind of constraint of `constrain`, None for none.
        value: of the setting; the source of the constraint.
    """

    kind: str
    position: int | None = None
    token_id: int | None = None
    name: str | None = None
    value: Any = None


@dataclass(frozen=True)
class Branch:
    """Where a fork left its parent.

    Attributes:
        parent: `Trace.fingerprint` of the parent.
        step: the first step that is the fork's own.
        edits: what it changed, in the order in which it was changed.
    """

    parent: str
    step: int
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, eq=False)
class Header:
    """What holds for all steps of a run.

    Attributes:
        config: what the user asked for.
        model: facts of the model, JSON-able: at least `name`.
        vocabulary: what each token id writes.
        automaton: the constraint over this vocabulary; without a constraint the one that accepts everything.
        prompt_ids: int32 `[prompt_length]`, the prompt as the model sees it.
        branches: the forks that lead to this run, the oldest first; `config` is what holds after the last.
    """

    config: Config
    model: Mapping[str, Any]
    vocabulary: Vocabulary
    automaton: TokenAutomaton
    prompt_ids: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    branches: tuple[Branch, ...] = ()


@dataclass(frozen=True, eq=False)
class StepRecord:
    """Everything that one denoising step computed.

    Axes: `length` positions, `boundaries` = `length` + 1, `classes` of the token automaton (class 0 is dead), `top` =
    `TOP_TOKENS`, `top_states` = min(states, `TOP_STATES`), `top_midpoints` = min(states, `TOP_MIDPOINT_STATES`),
    `masked` = masked positions of `canvas` in ascending order. `p` is the mean field and `q` the posterior, of the
    potential that was drawn from (temperature 1 where the run's temperature is 0); at a committed position both are the
    point mass. Where nothing is accepted any more (`log_partition` is `-inf`), `q` is zero everywhere.

    Attributes:
        canvas: int32 `[length]`, before the step; the mask id where masked.
        drawn: int32 `[length]`, the joint draw; at committed positions the token that stands there.
        path: int32 `[boundaries]`, states along `drawn`; -1 from where it leaves the language.
        committed: bool `[length]`, positions committed by this step, to their drawn token.
        committed_mf: bool `[length]`, what the unconstrained confidence would have committed.
        committed_mar: bool `[length]`, what the constrained confidence would have committed.
        confidence_mf: float64 `[length]`, by the formula of the run's remasking, of the mean field; `-inf` where
            committed or out of the block.
        confidence_mar: float64 `[length]`, the same formula on the posterior.
        log_partition: float64 scalar, log probability in nats that a draw of `p` is accepted.
        log_partition_model: float64 scalar, the same at temperature 1.
        log_class_mass: float32 `[length classes]`, `log Σ p_i(v)` over the tokens of a class.
        log_lift: float32 `[length classes]`, `log q_i(v) − log p_i(v)`, one number for all tokens of a class.
        top_ids: int32 `[length 2 top]`, most probable tokens under `p` (row 0) and under `q` (row 1); -1 where fewer.
        top_log_mean_field: float32 `[length 2 top]`, `log p_i` of those tokens.
        top_log_posterior: float32 `[length 2 top]`, `log q_i` of those tokens.
        entropy_mean_field: float32 `[length]`, nats.
        entropy_posterior: float32 `[length]`, nats.
        kl: float32 `[length]`, `KL(q_i ‖ p_i)` in nats; infinite where nothing is accepted.
        forbidden_mass: float32 `[length]`, mass under `p_i` of tokens that no accepted completion can use there.
        state_ids: int32 `[boundaries top_states]`, most probable states under the posterior, descending; -1 where
            fewer.
        state_probability: float32 `[boundaries top_states]`.
        live: uint8 `[boundaries ⌈states / 8⌉]`, bits of the states that some accepted completion passes
            (`np.packbits`).
        midpoint_log_probability: float32 `[boundaries]`, of the state drawn at this midpoint given the ends of its
            span; NaN at boundary 0 and where the sampler draws no midpoints. Boundary `length` is the end, given the
            start.
        midpoint_entropy: float32 `[boundaries]`, nats, of that conditional distribution.
        midpoint_ids: int32 `[boundaries top_midpoints]`, its most probable states; -1 where fewer.
        midpoint_probability: float32 `[boundaries top_midpoints]`.
        tries: int32 scalar, joint draws that were made.
        model_ms: float64 scalar.
        engine_ms: float64 scalar.
        filter_lifted: bool scalar; top-p and top-k left no accepted completion, so that this step drew from the
            unfiltered mean field.
        log_mean_field: float32 `[masked vocab]` at temperature 1, or None where it would pass the budget.
        log_partition_after: float64 scalar, `log_partition` of the same mean field once the step's commits stand, by
            paths too where the automaton is nondeterministic; NaN in traces of version 1.
        log_paths: float64 scalar, log number of accepting paths of `drawn`; 0 where the automaton is deterministic.
        paths_kept: float64 scalar, share of the `tries` that the correction of paths kept; NaN without correction.
        inverse_paths: float64 scalar, mean of `1 / paths` over the tries: `log_partition + log inverse_paths` estimates
            the log probability that a draw of `p` is accepted; 1 where the automaton is deterministic.
        path_weighted: bool scalar; the draw counts a sequence once for each of its paths, since no try was kept.
    """

    canvas: np.ndarray
    drawn: np.ndarray
    path: np.ndarray
    committed: np.ndarray
    committed_mf: np.ndarray
    committed_mar: np.ndarray
    confidence_mf: np.ndarray
    confidence_mar: np.ndarray
    log_partition: np.ndarray
    log_partition_model: np.ndarray
    log_class_mass: np.ndarray
    log_lift: np.ndarray
    top_ids: np.ndarray
    top_log_mean_field: np.ndarray
    top_log_posterior: np.ndarray
    entropy_mean_field: np.ndarray
    entropy_posterior: np.ndarray
    kl: np.ndarray
    forbidden_mass: np.ndarray
    state_ids: np.ndarray
    state_probability: np.ndarray
    live: np.ndarray
    midpoint_log_probability: np.ndarray
    midpoint_entropy: np.ndarray
    midpoint_ids: np.ndarray
    midpoint_probability: np.ndarray
    tries: np.ndarray
    model_ms: np.ndarray
    engine_ms: np.ndarray
    log_mean_field: np.ndarray | None = None
    filter_lifted: np.ndarray = field(default_factory=lambda: np.asarray(False))
    log_partition_after: np.ndarray = field(default_factory=lambda: np.asarray(np.nan))
    log_paths: np.ndarray = field(default_factory=lambda: np.asarray(0.0))
    paths_kept: np.ndarray = field(default_factory=lambda: np.asarray(np.nan))
    inverse_paths: np.ndarray = field(default_factory=lambda: np.asarray(1.0))
    path_weighted: np.ndarray = field(default_factory=lambda: np.asarray(False))

    @property
    def canvas_after(self) -> np.ndarray:
        """int32 `[length]`: the canvas with this step's commits."""
        return np.where(self.committed, self.drawn, self.canvas)


_AXES: dict[str, tuple[str, tuple[str, ...]]] = {
    "canvas": ("<i4", ("length",)),
    "drawn": ("<i4", ("length",)),
    "path": ("<i4", ("boundaries",)),
    "committed": ("|b1", ("length",)),
    "committed_mf": ("|b1", ("length",)),
    "committed_mar": ("|b1", ("length",)),
    "confidence_mf": ("<f8", ("length",)),
    "confidence_mar": ("<f8", ("length",)),
    "log_partition": ("<f8", ()),
    "log_partition_model": ("<f8", ()),
    "log_class_mass": ("<f4", ("length", "classes")),
    "log_lift": ("<f4", ("length", "classes")),
    "top_ids": ("<i4", ("length", "two", "top")),
    "top_log_mean_field": ("<f4", ("length", "two", "top")),
    "top_log_posterior": ("<f4", ("length", "two", "top")),
    "entropy_mean_field": ("<f4", ("length",)),
    "entropy_posterior": ("<f4", ("length",)),
    "kl": ("<f4", ("length",)),
    "forbidden_mass": ("<f4", ("length",)),
    "state_ids": ("<i4", ("boundaries", "top_states")),
    "state_probability": ("<f4", ("boundaries", "top_states")),
    "live": ("|u1", ("boundaries", "state_bytes")),
    "midpoint_log_probability": ("<f4", ("boundaries",)),
    "midpoint_entropy": ("<f4", ("boundaries",)),
    "midpoint_ids": ("<i4", ("boundaries", "top_midpoints")),
    "midpoint_probability": ("<f4", ("boundaries", "top_midpoints")),
    "tries": ("<i4", ()),
    "model_ms": ("<f8", ()),
    "engine_ms": ("<f8", ()),
    "log_mean_field": ("<f4", ("masked", "vocab")),
    "filter_lifted": ("|b1", ()),
    "log_partition_after": ("<f8", ()),
    "log_paths": ("<f8", ()),
    "paths_kept": ("<f8", ()),
    "inverse_paths": ("<f8", ()),
    "path_weighted": ("|b1", ()),
}
"""Field -> dtype on disk and axes; the one description that saving, loading and validation share."""

_OPTIONAL = {f.name for f in fields(StepRecord) if f.default is not MISSING or f.default_factory is not MISSING}
"""Fields that a step may lack: those that a version after the first brought, and the mean field."""


@dataclass(frozen=True, eq=False)
class Trace:
    """A run up to its last finished step."""

    header: Header
    steps: tuple[StepRecord, ...]

    @property
    def finished(self) -> bool:
        """Whether every step that was asked for is there, or all is committed and no step would follow."""
        config = self.header.config
        complete = config.parallel and bool((self.canvas != self.header.vocabulary.mask_id).all())
        return complete or len(self.steps) == config.steps

    @property
    def canvas(self) -> np.ndarray:
        """int32 `[length]`: the canvas after the last recorded step."""
        if self.steps:
            return self.steps[-1].canvas_after
        return initial_canvas(self.header)

    @property
    def text(self) -> str:
        """What the canvas says up to its first EOS; masked positions write nothing."""
        return self.header.vocabulary.decode(self.canvas.tolist())

    @property
    def accepted(self) -> bool:
        """Whether the canvas, as it stands, is complete and in the constraint's language."""
        return self.header.automaton.accepts(self.canvas.tolist())

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits by which a fork knows its parent: of what was asked for and what was drawn."""
        digest = hashlib.sha256(json.dumps(asdict(self.header.config)).encode())
        for step in self.steps:
            digest.update(np.asarray(step.canvas, "<i4").tobytes() + np.asarray(step.drawn, "<i4").tobytes())
        return digest.hexdigest()[:16]

    def column(self, name: str) -> np.ndarray:
        """Stack one field of all steps along a leading `steps` axis."""
        return np.stack([getattr(step, name) for step in self.steps])


def initial_canvas(header: Header) -> np.ndarray:
    """Return the canvas before the first step: int32 `[length]`, masked but for the pins."""
    canvas = np.full(header.config.length, header.vocabulary.mask_id, np.int32)
    for position, token_id in header.config.pins:
        canvas[position] = token_id
    return canvas


class Writer:
    """A trace file that grows by one chunk a step; each is flushed before the next step runs."""

    def __init__(self, path: Path | str, header: Header) -> None:
        """Create the file with its header; an existing file is replaced."""
        try:
            self._file: IO[bytes] = Path(path).open("wb")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise TraceError(
                f"The trace can't be written to {path}: {error.strerror}.",
                "Name a file in a folder that exists and can be written.",
            ) from error
        self._write(MAGIC + _chunk(*_header_body(header)))

    def append(self, step: StepRecord) -> None:
        """Write one finished step and flush it to the operating system."""
        self._write(_chunk({}, _step_arrays(step)))

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()


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
    raw = inflate.decompress(body, MAX_CHUNK_BYTES)
    if inflate.unconsumed_tail:
        raise TraceError(
            f"A part of this trace unpacks to more than {MAX_CHUNK_BYTES >> 20} MiB.",
            "Open a trace that Denoiscope wrote; this one is damaged or hostile.",
        )
    try:
        return _unpack(raw)
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise TraceError(
            f"A part of this trace has a valid checksum and no valid content ({error}).",
            "Open a trace that Denoiscope wrote.",
        ) from error


def _unpack(raw: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    (size,) = struct.unpack_from("<I", raw)
    index = json.loads(raw[4 : 4 + size])
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
    if not isinstance(version, int) or version > VERSION:
        raise TraceError(
            f"This trace is of version {version}, and this Denoiscope reads up to version {VERSION}.",
            "Update Denoiscope, or record the run again with this one.",
        )
    try:
        ends = np.cumsum(np.maximum(arrays["token_lengths"], 0))
        data = arrays["token_data"].tobytes()
        tokens = tuple(
            None if length < 0 else data[end - length : end]
            for length, end in zip(arrays["token_lengths"].tolist(), ends.tolist(), strict=True)
        )
        first = _first_bytes(arrays, len(tokens))
        vocabulary = Vocabulary(tokens, tuple(meta["eos_ids"]), int(meta["mask_id"]), first)
        automaton = TokenAutomaton(
            start=int(meta["start"]),
            end=int(meta["end"]),
            state_spans=tuple(tuple((a, b) for a, b in spans) for spans in meta["state_spans"]),
            **{name: arrays[name] for name in _AUTOMATON_ARRAYS},
        )
        branches = tuple(_branch(branch) for branch in meta.get("branches", ()))
        header = Header(_config(meta["config"]), meta["model"], vocabulary, automaton, arrays["prompt_ids"], branches)
        _check_header(header)
    except (KeyError, TypeError, ValueError, IndexError) as error:
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
    if not _within(ids, size) or not _within(lengths, len(data) + 1):
        raise ValueError("its first bytes name tokens that are not there")
    ends = np.cumsum(lengths).tolist()
    pairs = zip(ids.tolist(), lengths.tolist(), ends, strict=True)
    return tuple((i, data[end - length : end]) for i, length, end in pairs)


def _config(values: Mapping[str, Any]) -> Config:
    known = {f.name for f in fields(Config)}
    values = {name: value for name, value in values.items() if name in known}
    source = values["source"]
    values["source"] = tuple(source) if isinstance(source, list) else source
    for name in ("pins", "bans"):
        values[name] = tuple((int(i), int(v)) for i, v in values.get(name, ()))
    values["reading"] = tuple((str(name), value) for name, value in values.get("reading", ()))
    return Config(**values)


def _edit(value: Any, **words: Any) -> Edit:
    """Return an edit as it was written: JSON has no tuples."""
    return Edit(value=tuple(value) if isinstance(value, list) else value, **words)


def _branch(values: Mapping[str, Any]) -> Branch:
    edits = tuple(_edit(**edit) for edit in values["edits"])
    if not isinstance(values["step"], int) or not isinstance(values["parent"], str):
        raise TypeError("a branch needs a step and a parent")
    return Branch(values["parent"], values["step"], edits)


def _check_header(header: Header) -> None:
    """Refuse tables whose indices point outside of each other: everything after this may index freely."""
    automaton, config = header.automaton, header.config
    states, classes = automaton.states, automaton.classes
    sound = (
        automaton.token_class.shape == (header.vocabulary.size,)
        and _within(automaton.token_class, classes)
        and _within(automaton.class_source, states)
        and _within(automaton.class_target, states)
        and automaton.class_source.shape == automaton.class_target.shape
        and automaton.class_ptr[0] == 0
        and automaton.class_ptr[-1] == automaton.class_source.size
        and bool(np.all(np.diff(automaton.class_ptr) >= 0))
        and 0 <= automaton.start < states
        and -1 <= automaton.end < states
        and len(automaton.state_spans) == states
        and 0 < config.length <= 4096
        and 0 < config.steps <= 4096
        and all(0 <= i < config.length for i, _ in (*config.pins, *config.bans))
        and all(0 <= v < header.vocabulary.size for _, v in config.bans)
        and all(0 <= branch.step <= config.steps for branch in header.branches)
    )
    if not sound:
        raise ValueError("its tables contradict each other")


def _within(indices: np.ndarray, limit: int) -> bool:
    return indices.size == 0 or bool(indices.min() >= 0 and indices.max() < limit)


def _step_arrays(step: StepRecord) -> dict[str, np.ndarray]:
    values = {name: getattr(step, name) for name in _AXES}
    return {
        name: np.asarray(value).astype(_AXES[name][0], copy=False)
        for name, value in values.items()
        if value is not None
    }


def _step(arrays: Mapping[str, np.ndarray], header: Header, number: int) -> StepRecord:
    states = header.automaton.states
    canvas = arrays.get("canvas", np.zeros(0, np.int32))
    axes = {
        "length": header.config.length,
        "boundaries": header.config.length + 1,
        "classes": header.automaton.classes,
        "two": 2,
        "top": TOP_TOKENS,
        "top_states": min(states, TOP_STATES),
        "top_midpoints": min(states, TOP_MIDPOINT_STATES),
        "state_bytes": (states + 7) // 8,
        "masked": int((canvas == header.vocabulary.mask_id).sum()),
        "vocab": header.vocabulary.size,
    }
    for name, (dtype, names) in _AXES.items():
        if name in _OPTIONAL and name not in arrays:
            continue
        expected = tuple(axes[axis] for axis in names)
        found = arrays[name].shape if name in arrays else None
        if found != expected or arrays[name].dtype != np.dtype(dtype):
            raise TraceError(
                f"Step {number} of this trace has {name} of shape {found}, not {expected}.",
                "Open a trace that Denoiscope wrote with this version.",
            )
    return StepRecord(**{name: arrays[name] for name in _AXES if name in arrays})
