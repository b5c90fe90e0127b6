"""A run as the browser gets it: typed arrays in one compressed block, and the few words that go with them.

Three parts. `header` is what holds for a run. `steps` is what every panel needs to follow a moving focus, small enough
to come as a whole. `detail` is what the panels around the focus show besides, fetched in the background. A part is

    {"index": [[name, dtype, shape, offset], …], "data": base64 of zlib of the arrays' bytes, …words}

little-endian, each array aligned to 8 bytes. `-inf` and NaN travel as what they are.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from viz import automaton as pictures
from viz import graph, labels, parts
from viz.groups import WINDOW_STATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.inference.exactness import Exactness
    from engine.trace import Header, StepRecord
    from viz.automaton import Picture

Part = dict[str, Any]

_DTYPES = {"b": "u1", "u": "u1", "i": "i4", "f": "f4"}


def pack(arrays: Mapping[str, np.ndarray], words: Mapping[str, Any]) -> Part:
    """Return arrays and words as one part; float64 stays, other numbers become one of uint8, int32, float32."""
    index: list[list[Any]] = []
    chunks: list[bytes] = []
    offset = 0
    for name, array in arrays.items():
        kind = "f8" if array.dtype == np.float64 else _DTYPES[array.dtype.kind]
        data = np.ascontiguousarray(array, np.dtype(f"<{kind}")).tobytes()
        index.append([name, kind, list(array.shape), offset])
        data += bytes(-len(data) % 8)
        chunks.append(data)
        offset += len(data)
    block = base64.b64encode(zlib.compress(b"".join(chunks), 1)).decode()
    return {"index": index, "data": block, **words}


def unpack(part: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a part, as the browser reads them."""
    block = zlib.decompress(base64.b64decode(part["data"]))
    return {
        name: np.frombuffer(block, f"<{kind}", int(np.prod(shape)), offset).reshape(shape)
        for name, kind, shape, offset in part["index"]
    }


def header(head: Header) -> Part:
    """Return what holds for all steps."""
    automaton, vocabulary, whole = head.automaton, head.vocabulary, graph.of_tokens(head)
    # Thousands of states come from a few places.
    places = {spans: n for n, spans in enumerate(dict.fromkeys(automaton.state_spans))}
    numbered = parts.of_source(head.config.kind, head.config.source, tuple(places))
    return pack(
        {
            "accepting": automaton.accepting,
            "order": graph.order(whole),
            "depth": whole.depths,
            "origin": np.asarray([places[spans] for spans in automaton.state_spans], np.int32),
        },
        {
            "config": asdict(head.config),
            "model": dict(head.model),
            "states": automaton.states,
            "classes": automaton.classes - 1,
            "edges": int(automaton.edges.target.size),
            "start": automaton.start,
            "end": automaton.end,
            "vocab": vocabulary.size,
            "mask_id": vocabulary.mask_id,
            "origins": [[list(span) for span in spans] for spans in places],
            "parts": [[part.name, part.start, part.stop] for part in numbered.sections],
            "origin_parts": [list(numbers) for numbers in numbered.places],
        },
    )


def steps(head: Header, records: Sequence[StepRecord], first: int) -> Part:
    """Return the quantities per position of some steps.

    Args:
        head: of the run.
        records: consecutive steps.
        first: number of the first of them.
    """
    vocabulary = head.vocabulary
    arrays = {
        name: np.stack([np.asarray(getattr(record, name)) for record in records])
        for name in (
            "canvas",
            "drawn",
            "path",
            "committed",
            "committed_mf",
            "committed_mar",
            "log_partition",
            "log_partition_model",
            "entropy_mean_field",
            "entropy_posterior",
            "kl",
            "forbidden_mass",
            "midpoint_log_probability",
            "midpoint_entropy",
            "tries",
            "model_ms",
            "engine_ms",
        )
    }
    # What is shown with three digits travels with seven.
    for name in ("confidence_mf", "confidence_mar"):
        arrays[name] = np.stack([getattr(record, name) for record in records]).astype(np.float32)
    sizes = np.bincount(head.automaton.token_class, minlength=head.automaton.classes)
    arrays["recorded"] = np.asarray([record.log_mean_field is not None for record in records])
    arrays["flip"] = np.stack([_flips(record) for record in records])
    arrays["forced"] = np.stack([np.isfinite(record.log_lift) @ sizes == 1 for record in records])
    words = {
        "first": first,
        "count": len(records),
        "texts": [vocabulary.decode(record.canvas_after.tolist()) for record in records],
        "drawn_texts": [vocabulary.decode(record.drawn.tolist()) for record in records],
        "drawn_accepted": [head.automaton.accepts(record.drawn.tolist()) for record in records],
        **spelled(head, [arrays["canvas"], arrays["drawn"]]),
    }
    return pack(arrays, words)


def _flips(record: StepRecord) -> np.ndarray:
    """Return bool `[length]`: the model and the posterior prefer different tokens."""
    free, constrained = record.top_ids[:, 0, 0], record.top_ids[:, 1, 0]
    return np.asarray((free != constrained) & (constrained >= 0))


def detail(head: Header, records: Sequence[StepRecord], first: int) -> Part:
    """Return distributions over tokens and states of some steps.

    `top_row[step, position]` is the row of the `top_*` arrays, or -1 where the position is committed: there both
    distributions are the token that stands.
    """
    masked = np.stack([record.canvas == head.vocabulary.mask_id for record in records])
    top_row = np.full(masked.shape, -1, np.int32)
    top_row[masked] = np.arange(int(masked.sum()), dtype=np.int32)
    sizes = np.bincount(head.automaton.token_class, minlength=head.automaton.classes)
    arrays = {"top_row": top_row}
    for name in ("top_ids", "top_log_mean_field", "top_log_posterior"):
        arrays[name] = np.concatenate([getattr(record, name)[m] for record, m in zip(records, masked, strict=True)])
    arrays["allowed_tokens"] = np.stack([np.isfinite(record.log_lift) @ sizes for record in records])
    for name in ("state_ids", "state_probability", "live", "midpoint_ids", "midpoint_probability"):
        arrays[name] = np.stack([getattr(record, name) for record in records])
    words = {"first": first, "count": len(records), **spelled(head, [arrays["top_ids"]])}
    return pack(arrays, words)


def window(head: Header, path: Sequence[int] = (), state: int | None = None, farthest: int = pictures.FARTHEST) -> Part:
    """Return a picture of the automaton: its DOT, its boxes, and the SVG where this machine could lay it out.

    Args:
        head: of the run.
        path: of the group that is opened.
        state: what lies around it is drawn instead.
        farthest: moves that this reaches.
    """
    if head.automaton.states <= WINDOW_STATES:
        return drawn(pictures.whole(graph.of_tokens(head)))
    atlas = pictures.atlas(head)
    if state is None:
        return drawn(pictures.opened(atlas, path))
    there = pictures.path_to(atlas, state)
    return drawn(replace(pictures.around(atlas.graph, state, farthest), trail=tuple(atlas.trail(there)), path=there))


def drawn(picture: Picture) -> Part:
    """Return a picture laid out: `box[state]` is the box that a state is in, -1 where it is not drawn."""
    source = pictures.dot_source(picture)
    words = {
        "level": picture.level,
        "boxes": [asdict(box) for box in picture.boxes],
        "trail": [
            {"name": group.name, "note": group.note, "states": group.states.size, "path": picture.path[:n]}
            for n, group in enumerate(picture.trail)
        ],
        "dot": source,
        "svg": pictures.layout(source),
    }
    return pack({"box": picture.box}, words)


def arrows(head: Header) -> list[list[Any]]:
    """Return for each edge its source, its target, its tokens in few words, and how many they are."""
    edges = head.automaton.edges
    source = np.repeat(np.arange(head.automaton.states), np.diff(edges.ptr)).tolist()
    tokens = [graph.edge_tokens(head.automaton, edge).tolist() for edge in range(edges.target.size)]
    targets = edges.target.tolist()
    words = [labels.summary(head.vocabulary, ids) for ids in tokens]
    return [list(edge) for edge in zip(source, targets, words, map(len, tokens), strict=True)]


def exactness(head: Header, found: Exactness) -> Part:
    """Return frequencies of draws beside exact probabilities: a row per cell, with its band."""
    arrays = {name: getattr(found, name) for name in ("position", "token_id", "expected", "observed", "low", "high")}
    facts = ("sampler", "draws", "accepted", "exact", "by_paths", "false_alarm")
    words = {name: getattr(found, name) for name in facts}
    largest = int(np.abs(found.observed - found.expected).argmax())
    outside = int(found.outside.sum())
    # A run at temperature 0 doesn't draw; its step is measured at 1.
    temperature = head.config.temperature or 1.0
    said = {"largest": largest, "outside": outside, "temperature": temperature}
    return pack(arrays, {**words, **said, **spelled(head, [found.token_id])})


def plain(value: Any) -> Any:
    """Return a value as JSON has it: what is not finite is null."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def spelled(head: Header, arrays: Sequence[np.ndarray]) -> dict[str, dict[str, str]]:
    """Return the text of every id in `arrays`; special ones apart, so that no token can pass for one."""
    words: dict[str, dict[str, str]] = {"tokens": {}, "special": {}}
    for v in np.unique(np.concatenate([a.ravel() for a in arrays])).tolist():
        if v >= 0:
            name = labels.special(head.vocabulary, v)
            kind = "tokens" if name is None else "special"
            words[kind][str(v)] = labels.token(head.vocabulary, v)
    return words
