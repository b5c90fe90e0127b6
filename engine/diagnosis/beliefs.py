"""The messages of a recorded step, and where along the automaton its log partition is lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.inference import masses, sweeps
from engine.inference.wide import BASE_LOG, to_log

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton
    from engine.trace import StepRecord, Trace


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What a step's mean field makes of the automaton, computed again from the recorded mass of each class.

    Attributes:
        automaton: the constraint over tokens.
        log_class_mass: float32 `[length classes]`, as recorded.
    """

    automaton: TokenAutomaton
    log_class_mass: np.ndarray

    @cached_property
    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        edges, log_mass = self.automaton.edges, self.log_class_mass.astype(np.float64)
        possible = log_mass > -np.inf
        finite = np.where(possible, log_mass, 0.0)
        exponent = np.rint(finite / BASE_LOG)
        mass = np.where(possible, np.exp(finite - exponent * BASE_LOG), 0.0)
        exponent = np.where(possible, exponent, -(2**30)).astype(np.int32)
        found = masses.label_masses(mass, exponent, edges.label_ptr, edges.label_class)
        return found[0], found[1]

    @cached_property
    def log_label_mass(self) -> np.ndarray:
        """float64 `[length labels]`."""
        return to_log(*self._labels)

    @cached_property
    def _completions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        automaton, edges = self.automaton, self.automaton.edges
        found = sweeps.completions(edges.out, edges.into, automaton.start, automaton.accepting, *self._labels)
        return found[0], found[1], found[2], found[3]

    @property
    def live(self) -> tuple[np.ndarray, np.ndarray]:
        """`(live_ptr, live)`: the states that an accepted completion with any probability passes at each boundary."""
        return self._completions[:2]

    @cached_property
    def log_backward(self) -> np.ndarray:
        """float64 `[boundaries states]`: log mass of the accepted completions from each state, `-inf` if not live."""
        return self._dense(*self._completions)

    @cached_property
    def log_forward(self) -> np.ndarray:
        """float64 `[boundaries states]`: log mass of all ways from the start; `-inf` where not live."""
        return self._dense(*self.live, *sweeps.forward(self.automaton.edges.out, *self.live, *self._labels))

    @cached_property
    def fronts(self) -> tuple[np.ndarray, np.ndarray]:
        """Both messages of every state, live or not, float64 `[boundaries states]`, `-inf` where there is no way.

        The first is the log mass of all ways from the start to a state, the second that of all ways from it to
        acceptance. A state is live where it has both; where nothing is accepted, none has.
        """
        automaton, edges = self.automaton, self.automaton.edges
        boundaries, states = self.log_class_mass.shape[0] + 1, automaton.states
        ptr, reached = sweeps.reached(edges.out, edges.into, automaton.start, self._labels[0])
        forward = sweeps.forward(edges.out, ptr, reached, *self._labels)
        every_ptr, every = np.arange(boundaries + 1) * states, np.tile(np.arange(states, dtype=np.int32), boundaries)
        backward = sweeps.backward(edges.out, automaton.accepting, every_ptr, every, *self._labels)
        return self._dense(ptr, reached, *forward), self._dense(*backward)

    def _dense(self, ptr: np.ndarray, states: np.ndarray, mass: np.ndarray, exponent: np.ndarray) -> np.ndarray:
        out = np.full((ptr.size - 1, self.automaton.states), -np.inf)
        out[np.repeat(np.arange(ptr.size - 1), np.diff(ptr)), states] = to_log(mass, exponent)
        return out

    @property
    def log_partition(self) -> float:
        """Log probability, in nats, that a draw from the mean field is accepted."""
        return float(self.log_backward[0, self.automaton.start])

    @cached_property
    def posterior(self) -> np.ndarray:
        """float64 `[boundaries states]`: the posterior of the states; zero everywhere where nothing is accepted."""
        if self.log_partition == -np.inf:
            return np.zeros_like(self.log_backward)
        return np.exp(self.log_forward + self.log_backward - self.log_partition)

    def log_avoiding(self, states: np.ndarray) -> float:
        """Return the log mass of the accepted sequences that pass none of some states: bool `[states]`."""
        live_ptr, live = self.live
        kept = ~states[live]
        if not live.size or not kept[0]:
            return -np.inf
        boundary = np.repeat(np.arange(live_ptr.size - 1), np.diff(live_ptr))[kept]
        left = np.searchsorted(boundary, np.arange(live_ptr.size))
        edges, accepting = self.automaton.edges.out, self.automaton.accepting
        left_ptr, _, mass, exponent = sweeps.backward(edges, accepting, left, live[kept], *self._labels)
        return float(to_log(mass[:1], exponent[:1])[0]) if left_ptr[1] else -np.inf

    def losses(self) -> np.ndarray:
        """Divide the loss of the log partition over positions and states.

        Entry `[i, s]` is `γ_i(s) · KL(q_i(·|s) ‖ p_i)` in nats: the chain rule of `−log Z = KL(q ‖ p)`, read from left
        to right.

        Returns:
            float64 `[length states]`, non-negative; it sums to `−log Z` where that is finite.
        """
        edges, automaton = self.automaton.edges, self.automaton
        source = np.repeat(np.arange(automaton.states), np.diff(edges.ptr))
        out = np.zeros((self.log_class_mass.shape[0], automaton.states))
        if self.log_partition == -np.inf:
            return out
        for i in range(out.shape[0]):
            here, there = self.log_backward[i], self.log_backward[i + 1]
            taken = np.flatnonzero((here[source] > -np.inf) & (there[edges.target] > -np.inf))
            gain = there[edges.target[taken]] - here[source[taken]]
            q = np.exp(self.log_label_mass[i, edges.label[taken]] + gain)
            out[i] = np.bincount(source[taken], weights=q * gain, minlength=automaton.states)
        # A divergence; rounding may leave a last digit below zero.
        return np.maximum(self.posterior[:-1] * out, 0.0)


def of_step(trace: Trace, step: StepRecord) -> Beliefs:
    """Read the beliefs of a recorded step."""
    return Beliefs(trace.header.automaton, step.log_class_mass)
