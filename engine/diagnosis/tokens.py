"""Why a token may stand at a position of a step, or why not: its moves, and what either side leaves of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from engine.diagnosis import beliefs

if TYPE_CHECKING:
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Trace


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the constraint says of one token at one position, given what every other position may still be.

    Axes: `moves` = moves of the automaton that read the token, by state, `live` = states that are live at the boundary
    in front of it.

    Attributes:
        reason: `accepted`: some move has a beginning and an ending. `unread`: the automaton reads this token nowhere.
            `lost`: no state is reached in front of it, whatever it is. `local`: of the states that are reached, none
            reads it. `completion`: some do, and from where they lead nothing accepted follows.
        given: whether the mean field leaves tokens of this class any probability here.
        state: int32 `[moves]`, the state in front of the token.
        target: int32 `[moves]`, the state behind it.
        reached: bool `[moves]`, whether some beginning leads to `state`.
        completed: bool `[moves]`, whether some ending leads from `target` to acceptance.
        share: float64 `[moves]`, probability of the move where the token stands and all is accepted; a sequence counts
            once for each of its paths. All zero where that has no probability.
        live: int32 `[live]`, most probable first.
        posterior: float64 `[live]`, probability of each.
        front: int32, the states that are reached in front of the token, live or not, ascending.
        follows: bool `[states]`, from which some ending behind the token leads to acceptance.
        stops_at: the position that no way gets past: to the token where the reason is `lost`, from it on where it is
            `completion`. The canvas's length where the ways only lead to states that don't accept; None otherwise.
    """

    reason: str
    given: bool
    state: np.ndarray
    target: np.ndarray
    reached: np.ndarray
    completed: np.ndarray
    share: np.ndarray
    live: np.ndarray
    posterior: np.ndarray
    front: np.ndarray
    follows: np.ndarray
    stops_at: int | None


@dataclass(frozen=True, eq=False)
class _Walk:
    """Sets of states, bool `[states]`, moved by whatever a step's mean field leaves possible at each position."""

    automaton: TokenAutomaton
    possible: np.ndarray
    """bool `[length classes]`."""

    @cached_property
    def _labels(self) -> np.ndarray:
        edges = self.automaton.edges
        return np.logical_or.reduceat(self.possible[:, edges.label_class], edges.label_ptr[:-1], axis=1)

    @cached_property
    def _source(self) -> np.ndarray:
        return np.repeat(np.arange(self.automaton.states), np.diff(self.automaton.edges.ptr))

    def on(self, states: np.ndarray, begin: int, stop: int) -> tuple[np.ndarray, int]:
        """Return what positions `begin:stop` lead to, and the first of them that nothing gets past, `stop` if none."""
        edges = self.automaton.edges
        for i in range(begin, stop):
            taken = self._labels[i, edges.label] & states[self._source]
            if not taken.any():
                return np.zeros_like(states), i
            states = np.zeros_like(states)
            states[edges.target[taken]] = True
        return states, stop

    def back(self, states: np.ndarray, begin: int, stop: int) -> np.ndarray:
        """Return from where positions `begin:stop` lead to one of some states."""
        edges = self.automaton.edges
        for i in reversed(range(begin, stop)):
            taken = self._labels[i, edges.label] & states[edges.target]
            states = np.zeros_like(states)
            states[self._source[taken]] = True
        return states


def judge(automaton: TokenAutomaton, log_class_mass: np.ndarray, position: int, token_id: int) -> Verdict:
    """Find why a token is accepted at a position, or what stands against it.

    Args:
        automaton: the constraint over tokens.
        log_class_mass: float `[length classes]`, of a step's mean field: a point mass where a position is committed.
        position: where the token is looked at; what its own mean field says there leaves the reason as it is.
        token_id: an id of the vocabulary.
    """
    length, k = log_class_mass.shape[0], int(automaton.token_class[token_id])
    walk = _Walk(automaton, log_class_mass > -np.inf)
    states = np.arange(automaton.states)
    front, left_stop = walk.on(states == automaton.start, 0, position)
    follows = walk.back(automaton.accepting, position + 1, length)
    moves = slice(automaton.class_ptr[k], automaton.class_ptr[k + 1])
    state, target = automaton.class_source[moves], automaton.class_target[moves]
    reached, completed = front[state], follows[target]
    reason, stops_at = "accepted", None
    if not state.size:
        reason = "unread"
    elif not front.any():
        reason, stops_at = "lost", left_stop
    elif not reached.any():
        reason = "local"
    elif not (reached & completed).any():
        reason = "completion"
        stops_at = walk.on(np.isin(states, target[reached]), position + 1, length)[1]
    believed, given = beliefs.Beliefs(automaton, log_class_mass), bool(walk.possible[position, k])
    live, posterior = _posterior(believed, position)
    return Verdict(
        reason=reason,
        given=given,
        state=state,
        target=target,
        reached=reached,
        completed=completed,
        share=_share(believed, position, state, target) if given else np.zeros(state.size),
        live=live,
        posterior=posterior,
        front=np.flatnonzero(front).astype(np.int32),
        follows=follows,
        stops_at=stops_at,
    )


def of_step(trace: Trace, step: int, position: int, token_id: int) -> Verdict:
    """Judge a token at a position of a recorded step; one that the run bans there is not given."""
    found = judge(trace.header.automaton, trace.steps[step].log_class_mass, position, token_id)
    return replace(found, given=found.given and (position, token_id) not in trace.header.config.bans)


def _posterior(believed: beliefs.Beliefs, boundary: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the live states at a boundary and their probabilities, descending."""
    log_weight = believed.log_forward[boundary] + believed.log_backward[boundary]
    live = np.flatnonzero(log_weight > -np.inf)
    live = live[np.argsort(-log_weight[live], kind="stable")]
    return live.astype(np.int32), np.exp(log_weight[live] - believed.log_partition)


def _share(believed: beliefs.Beliefs, position: int, state: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the probability of each move among those that read a token: `α(s) β(t)`, normalised."""
    log_weight = believed.log_forward[position, state] + believed.log_backward[position + 1, target]
    possible = log_weight > -np.inf
    if not possible.any():
        return np.zeros(state.size)
    weight = np.exp(log_weight - log_weight[possible].max())
    return np.asarray(weight / weight.sum())
