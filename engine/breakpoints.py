"""Breakpoints: predicates over the records of a run, finished or in progress.

    kl > 2 and token == "}"            confidence < 0.2 and commit        log_partition drops 3
    state in {4, 7}                    origin == "[0-9]+" and disagree    not accepted

A predicate is asked of each step and of each position that is still masked before it; one that speaks of the step alone
is asked once a step. A number that isn't defined (the confidence outside of the block) satisfies no comparison. `drops`
and `rises` compare with the step before. The grammar, loosest first: `or`, `and`, `not`, then a comparison, a flag, or
parentheses.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import BreakpointError, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.trace import Header, StepRecord, Trace

    Test = Callable[["Scene"], np.ndarray]
    """To bool `[length]`, or to one bool where it speaks of the step alone."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What a predicate is asked of: a step, and the one before it."""

    header: Header
    step: int
    record: StepRecord
    before: StepRecord | None = None


@dataclass(frozen=True)
class Hit:
    """A step, and the position where the predicate speaks of positions."""

    step: int
    position: int | None = None


@dataclass(frozen=True, eq=False)
class Breakpoint:
    """A predicate.

    Attributes:
        text: as it was written.
        test: bool `[length]`, or one bool.
        of_positions: whether it speaks of positions.
    """

    text: str
    test: Test
    of_positions: bool

    def hits(self, scene: Scene) -> tuple[Hit, ...]:
        """Return where it holds in one step."""
        found = self.test(scene)
        if not self.of_positions:
            return (Hit(scene.step),) if bool(found) else ()
        masked = scene.record.canvas == scene.header.vocabulary.mask_id
        return tuple(Hit(scene.step, int(i)) for i in np.flatnonzero(found & masked))


def hits(breakpoint: Breakpoint, trace: Trace) -> tuple[Hit, ...]:
    """Return every hit in a recording; nothing is run again."""
    scenes = (Scene(trace.header, n, record, trace.steps[n - 1] if n else None) for n, record in enumerate(trace.steps))
    return tuple(hit for scene in scenes for hit in breakpoint.hits(scene))


def watch(
    records: Iterable[StepRecord],
    breakpoints: Iterable[Breakpoint],
    header: Header,
    first: int = 0,
    before: StepRecord | None = None,
) -> Iterator[tuple[StepRecord, tuple[Hit, ...]]]:
    """Yield each step of a run in progress with its hits; who iterates stops there, and goes on when it likes."""
    watched = tuple(breakpoints)
    for step, record in enumerate(records, first):
        scene = Scene(header, step, record, before)
        yield record, tuple(hit for breakpoint in watched for hit in breakpoint.hits(scene))
        before = record


# What may be named: numbers by position, numbers by step, flags.


def _confidence(name: str) -> Test:
    def read(scene: Scene) -> np.ndarray:
        which = scene.header.config.confidence if name == "confidence" else name
        values = getattr(scene.record, f"confidence_{which}")
        return np.where(np.isneginf(values), np.nan, values)

    return read


def _field(name: str) -> Test:
    return lambda scene: np.asarray(getattr(scene.record, name), np.float64)


POSITION_NUMBERS: dict[str, Test] = {
    **{name: _confidence(name) for name in ("confidence", "mf", "mar")},
    **{name: _field(name) for name in ("kl", "entropy_mean_field", "entropy_posterior", "forbidden_mass")},
    "position": lambda scene: np.arange(scene.record.canvas.size),
    "state": lambda scene: scene.record.path[:-1],
}
STEP_NUMBERS: dict[str, Test] = {
    **{name: _field(name) for name in ("log_partition", "log_partition_model", "tries", "model_ms", "engine_ms")},
    "step": lambda scene: np.asarray(scene.step),
    "commits": lambda scene: np.asarray(scene.record.committed.sum()),
}


def _best(scene: Scene, row: int) -> np.ndarray:
    return scene.record.top_ids[:, row, 0]


def _forbidden_best(scene: Scene) -> np.ndarray:
    """Whether the model's first choice is a token that no accepted completion can use."""
    inside = np.clip(_best(scene, 0), 0, scene.header.vocabulary.size - 1)
    classes = scene.header.automaton.token_class[inside]
    return np.asarray(np.isneginf(scene.record.log_lift[np.arange(classes.size), classes]))


def _forced(scene: Scene) -> np.ndarray:
    """Whether a single token is left."""
    sizes = np.bincount(scene.header.automaton.token_class, minlength=scene.header.automaton.classes)
    return np.asarray(np.isfinite(scene.record.log_lift) @ sizes == 1)


POSITION_FLAGS: dict[str, Test] = {
    "commit": lambda scene: scene.record.committed,
    "disagree": lambda scene: scene.record.committed_mf != scene.record.committed_mar,
    "flip": lambda scene: (_best(scene, 0) != _best(scene, 1)) & (_best(scene, 1) >= 0),
    "forbidden": _forbidden_best,
    "forced": _forced,
}
STEP_FLAGS: dict[str, Test] = {
    "accepted": lambda scene: np.asarray(scene.header.automaton.accepts(scene.record.drawn.tolist())),
    "possible": lambda scene: np.asarray(np.isfinite(scene.record.log_partition)),
}
WORDS: dict[str, str] = {
    "confidence": "of the drawn token, the one that decides",
    "mf": "confidence of the drawn token under the model alone",
    "mar": "confidence of the drawn token under the constraint",
    "kl": "KL(q‖p), nats",
    "entropy_mean_field": "entropy of p, nats",
    "entropy_posterior": "entropy of q, nats",
    "forbidden_mass": "mass of p that no accepted completion can use",
    "token": "the drawn token, as text",
    "state": "of the draw, in front of the position",
    "origin": "part of the source that is being written, as text",
    "position": "number of the position",
    "commit": "the position is committed by this step",
    "disagree": "only one of Mf and Mar chooses the position",
    "flip": "p and q prefer different tokens",
    "forbidden": "the model's first choice is forbidden",
    "forced": "a single token is allowed",
    "log_partition": "log Z of the step, nats",
    "log_partition_model": "log Z at temperature 1, nats",
    "step": "number of the step",
    "commits": "positions that the step commits",
    "tries": "joint draws that were made",
    "model_ms": "time of the model",
    "engine_ms": "time of the engine",
    "accepted": "the joint draw is accepted",
    "possible": "something accepted is left",
}
"""Every name, and what it means."""

_COMPARE: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_TOKENS = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf\b)|(?P<word>[A-Za-z_]+)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>[=!<>]=|[<>(){},]))""",
    re.VERBOSE,
)


def parse(text: str) -> Breakpoint:
    """Read a predicate.

    Raises:
        BreakpointError: with the place, and what may stand there.
    """
    reader = _Reader(text)
    test, of_positions = reader.either()
    if reader.kind:
        raise reader.error("and, or, or the end")
    return Breakpoint(text, test, of_positions)


class _Reader:
    """A reader of one predicate; each method reads one level of the grammar: `(test, of_positions)`."""

    def __init__(self, text: str) -> None:
        self.text, self.start, self.at = text, 0, 0
        self.kind: str | None = None
        self.take()

    def take(self) -> str:
        """Return the word read last and read the next."""
        taken = self.text[self.start : self.at] if self.at else ""
        found = _TOKENS.match(self.text, self.at)
        if found:
            self.kind = found.lastgroup
            self.start, self.at = found.span(found.lastgroup or 0)
            return taken
        self.kind = None
        rest = self.text[self.at :]
        self.start = self.at + len(rest) - len(rest.lstrip())
        if self.start < len(self.text):
            self.kind, self.at = "other", self.start + 1
        return taken

    @property
    def word(self) -> str:
        """What stands here."""
        return self.text[self.start : self.at] if self.kind else ""

    def error(self, wanted: str) -> BreakpointError:
        """Return the mistake that something else than `wanted` stands here."""
        here = f"{self.word!r} stands" if self.kind else "the text ends"
        return BreakpointError(
            f"The breakpoint can't be read at column {self.start + 1}: {here} where {wanted} is needed.",
            'Write it like  kl > 2 and token == "}",  log_partition drops 3  or  mar < 0.5 and position == 3.',
            Place(self.text, self.start, max(self.at, self.start)),
        )

    def either(self) -> tuple[Test, bool]:
        return self._joined("or", self.both, np.logical_or)

    def both(self) -> tuple[Test, bool]:
        return self._joined("and", self.negation, np.logical_and)

    def _joined(
        self,
        word: str,
        inner: Callable[[], tuple[Test, bool]],
        join: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> tuple[Test, bool]:
        test, of_positions = inner()
        while self.word == word:
            self.take()
            right, right_positions = inner()
            test, of_positions = _pair(join, test, right), of_positions or right_positions
        return test, of_positions

    def negation(self) -> tuple[Test, bool]:
        if self.word == "not":
            self.take()
            test, of_positions = self.negation()
            return (lambda scene: ~np.asarray(test(scene))), of_positions
        if self.word == "(":
            self.take()
            inner = self.either()
            self._expect(")")
            return inner
        return self.atom()

    def atom(self) -> tuple[Test, bool]:
        name = self.word.lower()  # Mf, Mar and KL are written so elsewhere
        if self.kind != "word" or name not in WORDS:
            raise self.error(f"one of {', '.join(WORDS)}")
        self.take()
        if name in POSITION_FLAGS or name in STEP_FLAGS:
            return {**POSITION_FLAGS, **STEP_FLAGS}[name], name in POSITION_FLAGS
        if name in ("token", "origin"):
            return self._text(name), True
        of_positions = name in POSITION_NUMBERS
        return self._number((POSITION_NUMBERS if of_positions else STEP_NUMBERS)[name]), of_positions

    def _number(self, read: Test) -> Test:
        sign = self.word
        if sign == "in":
            self.take()
            values = [float(value) for value in self._listed("number")]
            return lambda scene: np.isin(read(scene), values)
        if sign in ("drops", "rises"):
            self.take()
            return _moves(read, float(self._one("number")), -1 if sign == "drops" else 1)
        if sign not in _COMPARE:
            raise self.error("a comparison (==, !=, <, <=, >, >=), in {…}, drops or rises")
        self.take()
        value = float(self._one("number"))
        return lambda scene: np.asarray(_COMPARE[sign](read(scene), value))

    def _text(self, name: str) -> Test:
        sign = self.word
        if sign not in ("==", "!=", "in"):
            raise self.error("==, != or in {…}")
        self.take()
        wanted = frozenset(_unquoted(text) for text in (self._listed("text") if sign == "in" else [self._one("text")]))
        test = {"token": _token_in, "origin": _origin_in}[name](wanted)
        return (lambda scene: ~test(scene)) if sign == "!=" else test

    def _one(self, kind: str) -> str:
        if self.kind != kind:
            raise self.error("a number" if kind == "number" else 'a text in quotes, like "}"')
        return self.take()

    def _listed(self, kind: str) -> list[str]:
        self._expect("{")
        values = [self._one(kind)]
        while self.word == ",":
            self.take()
            values.append(self._one(kind))
        self._expect("}")
        return values

    def _expect(self, sign: str) -> None:
        if self.word != sign:
            raise self.error(f"{sign!r}")
        self.take()


def _pair(
    join: Callable[[np.ndarray, np.ndarray], np.ndarray],
    left: Test,
    right: Test,
) -> Test:
    return lambda scene: join(left(scene), right(scene))


def _moves(read: Test, least: float, sign: int) -> Test:
    """Return whether a number moved by at least `least` since the step before; from −∞ to −∞ it didn't."""

    def test(scene: Scene) -> np.ndarray:
        now = np.asarray(read(scene), np.float64)
        if scene.before is None:
            return np.zeros(now.shape, bool)
        then = np.asarray(read(Scene(scene.header, scene.step - 1, scene.before)), np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray(sign * (now - then) >= least)

    return test


def _token_in(wanted: frozenset[str]) -> Test:
    def test(scene: Scene) -> np.ndarray:
        written = (scene.header.vocabulary.written(v) for v in scene.record.drawn.tolist())
        return np.asarray([data is not None and data.decode(errors="replace") in wanted for data in written])

    return test


def _origin_in(wanted: frozenset[str]) -> Test:
    def test(scene: Scene) -> np.ndarray:
        source = scene.header.config.source or ""
        text = source if isinstance(source, str) else "\n".join(source)
        spans = scene.header.automaton.state_spans
        states = scene.record.path[:-1].tolist()
        return np.asarray([q >= 0 and any(text[a:b] in wanted for a, b in spans[q]) for q in states])

    return test


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])
