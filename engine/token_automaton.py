"""The constraint over a model's tokens: token classes and the moves of each class (`method.md`, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.errors import EmptyLanguageError, SizeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.automaton import ByteAutomaton
    from engine.constraints import Constraint
    from engine.vocabulary import Vocabulary


BLOCK = 64
"""Tokens of a class that are taken note of together: enough for a loop over vectors, few enough to be looked into."""


@dataclass(frozen=True, eq=False)
class TokenAutomaton:
    """A finite automaton whose symbols are token ids, stored by token class.

    Two tokens that move every live state alike are one class. Class 0 is dead: its tokens move no state. In a
    nondeterministic automaton a class may move a state to several; inference then weights a sequence by the number of
    its paths (`inference.paths`).

    Attributes:
        start: the start state.
        end: the absorbing state behind EOS, from which only EOS is allowed; -1 where the vocabulary has no EOS, or
            EOS is not absorbing.
        accepting: bool `[states]`; a canvas is accepted when its path ends in one of them.
        token_class: int32 `[vocab]`, token id -> class.
        class_ptr: int32 `[classes + 1]`; the moves of class `k` are `class_ptr[k]:class_ptr[k + 1]` of the next two.
        class_source: int32 `[class_edges]`, in ascending order within a class, and for one source the targets.
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

    @cached_property
    def deterministic(self) -> bool:
        """Whether no class moves a state to two."""
        moved = np.repeat(np.arange(self.classes), np.diff(self.class_ptr)) * self.states + self.class_source
        return not bool((moved[1:] == moved[:-1]).any())

    def moves(self, state: int, token_id: int) -> np.ndarray:
        """Return the states that `token_id` leads to from `state`."""
        if not 0 <= token_id < self.token_class.size:
            return self.class_target[:0]
        k = int(self.token_class[token_id])
        begin, stop = int(self.class_ptr[k]), int(self.class_ptr[k + 1])
        sources = self.class_source[begin:stop]
        return self.class_target[begin:stop][np.searchsorted(sources, state) : np.searchsorted(sources, state, "right")]

    def move(self, state: int, token_id: int) -> int:
        """Return the state that `token_id` leads to from `state`, the first if there are several, or -1."""
        found = self.moves(state, token_id)
        return int(found[0]) if found.size else -1

    def path(self, token_ids: Iterable[int]) -> np.ndarray:
        """Return int32 `[len(token_ids) + 1]`, states along the tokens; -1 from where they leave the language.

        Of several paths it is one that accepts, if any does.
        """
        came: list[dict[int, int]] = [{self.start: -1}]
        for token_id in token_ids:
            came.append({to: q for q in reversed(came[-1]) for to in self.moves(q, int(token_id)).tolist()})
        out = np.full(len(came), -1, np.int32)
        last = max(n for n, states in enumerate(came) if states)
        ends = [q for q in came[last] if last < len(came) - 1 or self.accepting[q]]
        state = (ends or list(came[last]))[0]
        for n in range(last, -1, -1):
            out[n], state = state, came[n][state]
        return out

    def accepts(self, token_ids: Iterable[int]) -> bool:
        """Whether the canvas `token_ids` is in the language: text, then nothing but EOS."""
        last = int(self.path(token_ids)[-1])
        return last >= 0 and bool(self.accepting[last])

    @cached_property
    def edges(self) -> Edges:
        """The same moves grouped by (source, target), which is what inference runs over."""
        return _edges(self)

    def accepted_lengths(self, most: int) -> np.ndarray:
        """Return bool `[most + 1]`: entry `n` says whether some sequence of `n` tokens is accepted."""
        sources = np.repeat(np.arange(self.states), np.diff(self.edges.ptr))
        reached = np.zeros(self.states, bool)
        reached[self.start] = True
        accepted = np.zeros(most + 1, bool)
        for n in range(most + 1):
            accepted[n] = bool((reached & self.accepting).any())
            following = np.zeros_like(reached)
            following[self.edges.target[reached[sources]]] = True
            reached = following
        return accepted


class TokenBlocks(NamedTuple):
    """Tokens by class, those of a class in blocks of `BLOCK` and a last one of what is left.

    Attributes:
        tokens: uint32 `[vocab]`; block `b` is `tokens[block_ptr[b]:block_ptr[b + 1]]`, ascending within a class.
        block_ptr: int32 `[blocks + 1]`.
        block_class: int32 `[blocks]`.
        class_blocks: int32 `[classes + 1]`; the blocks of class `k` are `class_blocks[k]:class_blocks[k + 1]`.
    """

    tokens: np.ndarray
    block_ptr: np.ndarray
    block_class: np.ndarray
    class_blocks: np.ndarray


@dataclass(frozen=True, eq=False)
class Edges:
    """Moves of a token automaton grouped by (source, target); the classes that make a move are its label.

    Attributes:
        ptr: uint32 `[states + 1]`; edges of state `q` are `ptr[q]:ptr[q + 1]` of the next two.
        target: uint32 `[edges]`.
        label: uint32 `[edges]`.
        label_ptr: int32 `[labels + 1]`; classes of label `l` are `label_class[label_ptr[l]:label_ptr[l + 1]]`.
        label_class: int32.
        class_tokens_ptr: int32 `[classes + 1]`; tokens of class `k` are `class_tokens[…]`, ascending.
        class_tokens: int32 `[vocab]`.
    """

    ptr: np.ndarray
    target: np.ndarray
    label: np.ndarray
    label_ptr: np.ndarray
    label_class: np.ndarray
    class_tokens_ptr: np.ndarray
    class_tokens: np.ndarray

    @property
    def out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(ptr, target, label)`."""
        return self.ptr, self.target, self.label

    @cached_property
    def into(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same edges by target: `(ptr, source, label)`."""
        sources = np.repeat(np.arange(self.ptr.size - 1, dtype=np.uint32), np.diff(self.ptr))
        order = np.argsort(self.target, kind="stable")
        counts = np.bincount(self.target, minlength=self.ptr.size - 1)
        return np.cumsum([0, *counts], dtype=np.uint32), sources[order], self.label[order]

    @cached_property
    def blocks(self) -> TokenBlocks:
        """The tokens of each class in blocks."""
        blocks_of = -(-np.diff(self.class_tokens_ptr) // BLOCK)
        class_blocks = np.cumsum([0, *blocks_of], dtype=np.int32)
        block_class = np.repeat(np.arange(blocks_of.size, dtype=np.int32), blocks_of)
        nth = np.arange(block_class.size) - class_blocks[block_class]
        begin = self.class_tokens_ptr[block_class] + BLOCK * nth
        tokens = self.class_tokens.view(np.uint32)
        return TokenBlocks(tokens, np.append(begin, tokens.size).astype(np.int32), block_class, class_blocks)

    @property
    def labels(self) -> int:
        """Number of distinct labels."""
        return int(self.label_ptr.size - 1)


def compile(constraint: Constraint, vocabulary: Vocabulary) -> TokenAutomaton:
    """Compose the constraint's byte automaton with the tokens of a vocabulary.

    Raises:
        EmptyLanguageError: the constraint accepts nothing, or no sequence of this vocabulary's tokens writes
            anything that it accepts.
    """
    # Kernels are compiled code; opening a trace needs numpy alone.
    from engine import composition

    automaton = constraint.automaton
    if automaton.is_empty:
        raise EmptyLanguageError(
            "This constraint accepts nothing: no text at all satisfies it.",
            "Remove what contradicts the rest, a look-around that can't hold or an empty class.",
        )
    trie = vocabulary.trie
    symbol = automaton.byte_class[trie.byte]
    moves_of = automaton.rows, automaton.symbol, automaton.target, automaton.byte_classes
    relation, ptr, source, target = composition.compose(
        *moves_of, trie.parent, symbol, composition.PAIRS, composition.WORK
    )
    if not ptr.size:
        raise _too_many_pairs(automaton, composition.PAIRS)
    token_relation = relation[trie.node]
    token_relation[trie.node == 0] = composition.DEAD
    used, token_class = np.unique(token_relation, return_inverse=True)
    moves = [(source[ptr[f] : ptr[f + 1]], target[ptr[f] : ptr[f + 1]]) for f in used]
    if used[0] != composition.DEAD:
        moves.insert(0, (source[:0], target[:0]))
        token_class = token_class + 1
    token_class = token_class.astype(np.int32)
    accepting, start, spans = automaton.accepting, automaton.start, _state_spans(automaton)
    if vocabulary.first_bytes:
        token_class, moves = _with_first(vocabulary, token_class, moves, start, accepting.size)
        accepting, spans = np.append(accepting, accepting[start]), (*spans, spans[start])
        start = accepting.size - 1
    end = -1
    if vocabulary.eos_ids:
        end = accepting.size
        sources = np.append(np.flatnonzero(accepting), end).astype(np.int32)
        moves.append((sources, np.full_like(sources, end)))
        token_class[list(vocabulary.eos_ids)] = len(moves) - 1
        accepting = np.append(accepting, True)
    spans += ((),) * (accepting.size - len(spans))
    return _trimmed(token_class, moves, start, end, accepting, spans, constraint)


def _with_first(
    vocabulary: Vocabulary,
    token_class: np.ndarray,
    moves: list[tuple[np.ndarray, np.ndarray]],
    start: int,
    first: int,
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Add the state `first`, which nothing leads to, and from it the moves of what tokens write at the first position.

    Args:
        vocabulary: whose `first_bytes` are meant.
        token_class: class of each token, and behind them of each entry of `first_bytes`.
        moves: of each class.
        start: the start state so far.
        first: number of the new state, past all others.

    Returns:
        The class of each token, and the moves of each class.
    """
    ids = np.asarray([token_id for token_id, _ in vocabulary.first_bytes])
    at_first = token_class[: vocabulary.size].copy()
    at_first[ids] = token_class[vocabulary.size :]
    # A token that writes nothing there moves to where the text begins.
    at_first[[token_id for token_id, data in vocabulary.first_bytes if not data]] = -1
    pairs, classes = np.unique(np.stack([token_class[: vocabulary.size], at_first]), axis=1, return_inverse=True)
    joined = []
    for later, begin in pairs.T.tolist():
        source, target = moves[later]
        begun = np.asarray([start]) if begin < 0 else moves[begin][1][moves[begin][0] == start]
        joined.append((np.append(source, np.full_like(begun, first)), np.append(target, begun)))
    return classes.reshape(-1).astype(np.int32), [(s.astype(np.int32), t.astype(np.int32)) for s, t in joined]


def everything(vocabulary: Vocabulary) -> TokenAutomaton:
    """Return the automaton of a run without constraint: one state, every id allowed anywhere, EOS not absorbing."""
    return TokenAutomaton(
        start=0,
        end=-1,
        accepting=np.ones(1, bool),
        token_class=np.ones(vocabulary.size, np.int32),
        class_ptr=np.asarray([0, 0, 1], np.int32),
        class_source=np.zeros(1, np.int32),
        class_target=np.zeros(1, np.int32),
        state_spans=((),),
    )


def _too_many_pairs(automaton: ByteAutomaton, budget: int) -> SizeError:
    place = automaton.findings[0].where if automaton.findings else None
    kind = "" if automaton.deterministic else "nondeterministic "
    return SizeError(
        f"The {kind}automaton of this constraint has {automaton.states:,} states, and what the tokens do to them "
        f"passes {budget:,} moves.",
        "Lower the bounds of its repetitions, or simplify the part that needs the most states.",
        place,
    )


def _state_spans(automaton: ByteAutomaton) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each byte state the distinct source spans of the leaves that its moves come from, in source order."""
    number, sets = automaton.state_leaves
    spans = [tuple(sorted({automaton.leaves[leaf][:2] for leaf in leaves})) for leaves in sets]
    return tuple(spans[n] for n in number.tolist())


def _trimmed(
    token_class: np.ndarray,
    moves: list[tuple[np.ndarray, np.ndarray]],
    start: int,
    end: int,
    accepting: np.ndarray,
    spans: tuple[tuple[tuple[int, int], ...], ...],
    constraint: Constraint,
) -> TokenAutomaton:
    """Keep the states that tokens can reach and leave for acceptance; join the classes that became equal."""
    from engine.partition import alike, distances

    source, target = (np.concatenate(column).astype(np.int64) for column in zip(*moves, strict=True))
    first = np.arange(accepting.size) == start
    live = (distances(target, source, first) >= 0) & (distances(source, target, accepting) >= 0)
    if not live[start]:
        raise EmptyLanguageError(
            "No sequence of this model's tokens writes anything that the constraint accepts; the shortest accepted "
            f"text is {(constraint.automaton.shortest() or b'').decode(errors='replace')!r}.",
            "Choose a model whose vocabulary has tokens for it, or allow another spelling.",
        )
    number = np.cumsum(live) - 1
    inside = live[source] & live[target]
    source, target = number[source[inside]], number[target[inside]]
    # In front of them stands the dead class, of no moves.
    sizes = [0, 0, *(of_class.size for of_class, _ in moves)]
    ptr = np.append(0, np.cumsum(inside))[np.cumsum(sizes)]
    joined, lists = alike(source * accepting.size + target, ptr)
    kept = np.zeros(ptr.size - 1, bool)
    kept[lists] = True
    kept = np.repeat(kept, np.diff(ptr))
    return TokenAutomaton(
        start=int(number[start]),
        end=int(number[end]) if end >= 0 and live[end] else -1,
        accepting=accepting[live],
        token_class=joined[1:].astype(np.int32)[token_class],
        class_ptr=np.cumsum(np.append(0, np.diff(ptr)[lists]), dtype=np.int32),
        class_source=source[kept].astype(np.int32),
        class_target=target[kept].astype(np.int32),
        state_spans=tuple(s for s, alive in zip(spans, live, strict=True) if alive),
    )


def _edges(automaton: TokenAutomaton) -> Edges:
    states = automaton.states
    classes = np.repeat(np.arange(automaton.classes, dtype=np.int32), np.diff(automaton.class_ptr))
    # Classes ascend already, and stay so among the moves of one source and target.
    order = np.argsort(automaton.class_source.astype(np.int64) * states + automaton.class_target, kind="stable")
    source, target = automaton.class_source[order], automaton.class_target[order]
    classes = classes[order]
    first = np.ones(source.size, bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    starts = np.append(np.flatnonzero(first), source.size)
    labels: dict[bytes, int] = {}
    data = classes.tobytes()
    width = classes.itemsize
    groups = (data[width * begin : width * stop] for begin, stop in pairwise(starts.tolist()))
    label = np.asarray([labels.setdefault(group, len(labels)) for group in groups], np.uint32)
    counts = np.bincount(source[first], minlength=states)
    tokens = np.argsort(automaton.token_class, kind="stable").astype(np.int32)
    per_class = np.bincount(automaton.token_class, minlength=automaton.classes)
    return Edges(
        ptr=np.cumsum([0, *counts], dtype=np.uint32),
        target=target[first].astype(np.uint32),
        label=label,
        label_ptr=np.cumsum([0, *(len(group) // width for group in labels)], dtype=np.int32),
        label_class=np.frombuffer(bytearray().join(labels), np.int32),
        class_tokens_ptr=np.cumsum([0, *per_class], dtype=np.int32),
        class_tokens=tokens,
    )
