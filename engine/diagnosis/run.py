"""What the findings of a run share: the run, its constraint's places, and its tokens in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine import constraints
from engine.diagnosis import empty
from engine.errors import InputError, Place
from engine.pattern import Chars

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.constraints import Constraint
    from engine.trace import StepRecord, Trace


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded run with at least one step, under a constraint."""

    trace: Trace

    @cached_property
    def constraint(self) -> Constraint | None:
        """The constraint read again; None where this version can't read it."""
        config = self.trace.header.config
        try:
            return constraints.read(config.kind or "", config.source, **dict(config.reading))
        except InputError:
            return None

    @cached_property
    def _pointers(self) -> dict[tuple[int, int], str | None]:
        if self.constraint is None:
            return {}
        return {
            (n.origin.start, n.origin.stop): n.origin.pointer for n in self.constraint.nodes if isinstance(n, Chars)
        }

    @cached_property
    def _parts(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The span of each leaf and that of the literal or the JSON value that it is a part of."""
        if self.constraint is None:
            return {}
        wholes = [demand.origin for demand in empty.demands(self.constraint.pattern)]
        return {
            span: next(((o.start, o.stop) for o in wholes if o.start <= span[0] and span[1] <= o.stop), span)
            for span in self._pointers
        }

    def parts(self, states: Iterable[int]) -> tuple[Place, ...]:
        """Return the places of some states with the characters of a literal as one place."""
        spans = {}
        for place in self.places(states):
            start, stop = self._parts.get((place.start, place.stop), (place.start, place.stop))
            spans[start, stop] = Place(place.source, start, stop, place.pointer)
        return tuple(spans.values())

    def places(self, states: Iterable[int]) -> tuple[Place, ...]:
        """Return the distinct places of the source that some states may write next, in source order."""
        if self.constraint is None:
            return ()
        spans = {span for state in states for span in self.trace.header.automaton.state_spans[state]}
        return tuple(Place(self.constraint.text, *span, self._pointers.get(span)) for span in sorted(spans))

    @property
    def masked(self) -> np.ndarray:
        """Bool `[length]`: the positions that the last canvas leaves open."""
        return self.trace.canvas == self.trace.header.vocabulary.mask_id

    @cached_property
    def committed_at(self) -> np.ndarray:
        """Int `[length]`: the step that committed what stands there last; -1 for pins and open positions."""
        at = np.full(self.trace.header.config.length, -1)
        for t, step in enumerate(self.trace.steps):
            at[step.committed] = t
        at[self.masked] = -1
        return at

    @cached_property
    def path(self) -> np.ndarray:
        """int32 `[boundaries]`: the states along the last canvas; -1 from where it leaves the language."""
        return self.trace.header.automaton.path(self.trace.canvas.tolist())

    def word(self, token_id: int) -> str:
        """Name a token in a sentence."""
        vocabulary = self.trace.header.vocabulary
        if token_id == vocabulary.mask_id:
            return "the mask"
        if token_id in vocabulary.eos_ids:
            return "EOS"
        written = vocabulary.written(token_id)
        return f"token {token_id}" if written is None else repr(written.decode(errors="backslashreplace"))

    def wanted(self, step: StepRecord, position: int) -> tuple[int, float]:
        """Return the token that the constraint took most from at a position, and its probability without it."""
        ids = step.top_ids[position, 0]
        ids = ids[ids >= 0]
        p = np.exp(step.top_log_mean_field[position, 0, : ids.size].astype(np.float64))
        automaton = self.trace.header.automaton
        inside = ids < automaton.token_class.size
        lift = np.exp(step.log_lift[position, np.where(inside, automaton.token_class[np.where(inside, ids, 0)], 0)])
        best = int(np.argmax(p * (1.0 - lift)))
        return int(ids[best]), float(p[best])
