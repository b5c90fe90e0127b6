"""The record of a run: what was configured, and every quantity of every step.

`engine/trace_file.py` writes it and reads it. A change of the meaning or the set of fields raises the version there.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.token_automaton import TokenAutomaton
from engine.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        sampler: one of `engine.stepping.EXACT` or `engine.stepping.BASELINES`.
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
        before: the settings of the parent, by which the steps in front of `step` were done; None in older traces.
    """

    parent: str
    step: int
    edits: tuple[Edit, ...] = ()
    before: Config | None = field(default=None, compare=False)


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
