"""The constraint over a model's tokens: token classes and the moves of each class (`method.md`, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class TokenAutomaton:
    """A finite automaton whose symbols are token ids, stored by token class.

    Two tokens that move every live state alike are one class. Class 0 is dead: its tokens move no state.

    Attributes:
        start: the start state.
        end: the absorbing state behind EOS, from which only EOS is allowed; -1 where the vocabulary has no EOS, or
            EOS is not absorbing.
        accepting: bool `[states]`; a canvas is accepted when its path ends in one of them.
        token_class: int32 `[vocab]`, token id -> class.
        class_ptr: int32 `[classes + 1]`; the moves of class `k` are `class_ptr[k]:class_ptr[k + 1]` of the next two.
        class_source: int32 `[class_edges]`, in ascending order within a class.
        class_target: int32 `[class_edges]`.
        state_spans: for each state the spans `(start, stop)` of the constraint's source that can be written next.
    """

    start: int
    end: int
    accepting: np.ndarray
    token_class: np.ndarray
    class_ptr: np.ndarray
    class_source: np.ndarray
    class_target: np.ndarray
    state_spans: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def states(self) -> int:
        """Number of states, the end state included."""
        return int(self.accepting.size)

    @property
    def classes(self) -> int:
        """Number of token classes, the dead one included."""
        return int(self.class_ptr.size - 1)
