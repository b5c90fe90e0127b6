"""The denoising loop, constrained: predict, draw one joint sequence, commit the most confident positions, repeat.

Schedules, blocks, temperatures and confidences are those of the published loops (`remasking.py`); what a constraint
changes is the law of the draw. Mf and Mar are both computed at every step, whichever decides.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from engine import remasking, stepping
from engine.errors import ModelError
from engine.inference import chain, midpoint, paths
from engine.stepping import Answer, Draw, Step
from engine.trace import TOP_MIDPOINT_STATES, TOP_STATES, TOP_TOKENS, Config, Header, StepRecord, initial_canvas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.inference.chain import Posterior
    from engine.inference.midpoint import Midpoints
    from engine.inference.potential import Potential
    from engine.models import Denoiser
    from engine.stepping import Inference
    from engine.token_automaton import TokenAutomaton
    from engine.vocabulary import Vocabulary

MEAN_FIELD_BYTES = 64 << 20
"""A run keeps its mean fields while `steps · length · vocab` float32 numbers fit in this."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where the loop begins: at the first step, or in the middle as a fork or a continued run does.

    Attributes:
        step: number of the step.
        canvas: int32 `[length]`, before it.
        schedule: for it and each step after it, the end of its block and how many positions LLaDA would commit. A
            parallel rule is in a later block where a block was finished before its time.
        urgent: positions that this step is to commit before all others (True) or not at all (False).
    """

    step: int
    canvas: np.ndarray
    schedule: tuple[tuple[int, int], ...]
    urgent: Mapping[int, bool] = field(default_factory=dict)


def start(header: Header) -> Start:
    """Return the beginning of a run."""
    canvas = initial_canvas(header)
    return Start(0, canvas, schedule(header.config, canvas, header.vocabulary.mask_id))


def schedule(config: Config, canvas: np.ndarray, mask_id: int, first: int = 0) -> tuple[tuple[int, int], ...]:
    """Return the end of its block and the number of commits of step `first` and of every step after it.

    Each block spreads its masked positions over the steps that it has left; what is masked before the first of these
    blocks is counted to it.
    """
    per_block = config.steps * config.block_length // config.length
    planned: list[tuple[int, int]] = []
    begin = 0
    for block in range(first // per_block, config.length // config.block_length):
        stop = (block + 1) * config.block_length
        left = per_block * (block + 1) - max(first, per_block * block)
        masked = int((canvas[begin:stop] == mask_id).sum())
        planned += [(stop, count) for count in remasking.commit_counts(masked, left)]
        begin = stop
    return tuple(planned)


def denoise(
    denoiser: Denoiser, automaton: TokenAutomaton, config: Config, begin: Start | None = None
) -> Iterator[StepRecord]:
    """Run the loop; yield the record of each step as soon as it is finished.

    Args:
        denoiser: the model.
        automaton: the constraint over the model's vocabulary.
        config: of a header from `preparation.prepare`.
        begin: where; None for the first step.

    Raises:
        EmptyLanguageError: an exact sampler runs, and the model gives every accepted completion probability 0.
    """
    prompt_ids = denoiser.encode_prompt(config.prompt)
    vocabulary = denoiser.vocabulary
    begin = begin or start(Header(config, denoiser.facts, vocabulary, automaton, prompt_ids))
    keep = config.steps * config.length * vocabulary.size * 4 <= MEAN_FIELD_BYTES
    canvas, urgent = begin.canvas, begin.urgent
    for step, (planned_stop, count) in enumerate(begin.schedule, begin.step):
        if config.parallel and not (canvas == vocabulary.mask_id).any():
            return
        stop = block_stop(config, planned_stop, canvas, vocabulary.mask_id)
        started = time.perf_counter()
        logits = predict(denoiser, prompt_ids, canvas, step, config.cfg_scale)
        model_ms = 1e3 * (time.perf_counter() - started)
        answer = Answer(_without_banned(logits, config, vocabulary), canvas, vocabulary, automaton)
        record = _record(Step(answer, config, step, stop, count, urgent), keep, model_ms)
        canvas, held = record.canvas_after, not all(urgent.values())
        yield record
        if held:  # which leaves other positions to the steps behind it than were planned for
            after = Start(step + 1, canvas, schedule(config, canvas, vocabulary.mask_id, step + 1))
            yield from denoise(denoiser, automaton, config, after)
            return
        urgent = {}


def block_stop(config: Config, planned: int, canvas: np.ndarray, mask_id: int) -> int:
    """Return the end of the block that a step is in, given the one that its number was planned in.

    A parallel rule goes on to the first block that has masked positions, and leaves to it the steps that it saved.
    """
    masked = canvas == mask_id
    if not config.parallel or not masked.any():
        return planned
    return max(planned, (int(masked.argmax()) // config.block_length + 1) * config.block_length)


def predict(denoiser: Denoiser, prompt_ids: np.ndarray, canvas: np.ndarray, step: int, cfg_scale: float) -> np.ndarray:
    """Ask the model; with guidance, lead its answer away from the one to a masked prompt, as LLaDA's `generate.py`.

    Raises:
        ModelError: a token of a masked position is impossible under the masked prompt alone, so its guided weight is
            infinite.
    """
    if not cfg_scale:
        return denoiser.logits(prompt_ids, canvas, step)
    masked = np.full_like(prompt_ids, denoiser.vocabulary.mask_id)
    given, free = denoiser.batch_logits([prompt_ids, masked], [canvas, canvas], step)
    impossible = np.isneginf(given)
    unbounded = np.isneginf(free) & ~impossible & (canvas == denoiser.vocabulary.mask_id)[:, None]
    if unbounded.any():
        position, token_id = np.argwhere(unbounded)[0]
        raise ModelError(
            f"Guidance gives token {token_id} at position {position} of step {step} an infinite weight: it is possible "
            "there, and impossible under the masked prompt that guidance leads away from.",
            "Set cfg_scale to 0, or use a model that gives every token some probability.",
        )
    with np.errstate(invalid="ignore", over="ignore"):
        guided = free + (cfg_scale + 1) * (given - free)
    guided[impossible] = -np.inf
    return guided.astype(given.dtype, copy=False)


def _without_banned(logits: np.ndarray, config: Config, vocabulary: Vocabulary) -> np.ndarray:
    """Take the banned tokens out of the mean field; `logits_eos_inf` bans the EOS that pads, everywhere."""
    if not config.bans and not config.logits_eos_inf:
        return logits
    logits = logits.copy()
    for position, token_id in config.bans:
        logits[position, token_id] = -np.inf
    if config.logits_eos_inf:
        logits[:, vocabulary.eos_ids[0]] = -np.inf
    return logits


def _record(
    step: Step, keep: bool, model_ms: float, draw: Draw | None = None, committed: np.ndarray | None = None
) -> StepRecord:
    """Do one step's inference, draw and choice, and write all of it down."""
    started = time.perf_counter()
    config, automaton = step.config, step.answer.automaton
    found, lifted = stepping.drawn_from(step)
    at_one = stepping.at_one(step, found, lifted)
    draw = draw or stepping.draw(step, found)
    top = chain.top_tokens(found.potential, found.posterior, TOP_TOKENS)
    choice = _choice(step, stepping.scored(step, found, lifted), draw.tokens, *top[1:])
    if committed is None:
        committed = choice[f"committed_{config.confidence}"]
    # A mask that was drawn leaves its position masked.
    stands = committed & (draw.tokens != step.answer.vocabulary.mask_id)
    after = chain.log_partition_after(found.potential, found.posterior, stands, draw.tokens)
    return StepRecord(
        canvas=step.answer.canvas,
        committed=committed,
        **choice,
        log_partition_model=np.asarray(at_one.potential.log_partition),
        **dict(zip(("top_ids", "top_log_mean_field", "top_log_posterior"), top, strict=True)),
        **_of_inference(found.potential, found.posterior),
        **_of_draw(automaton, draw),
        log_mean_field=at_one.potential.all_log_mean_field() if keep else None,
        filter_lifted=np.asarray(lifted),
        log_partition_after=np.asarray(after),
        model_ms=np.asarray(model_ms),
        engine_ms=np.asarray(1e3 * (time.perf_counter() - started)),
    )


def _choice(
    step: Step, scored: Inference, drawn: np.ndarray, top_log_p: np.ndarray, top_log_q: np.ndarray
) -> dict[str, np.ndarray]:
    """Return both confidences, and what each would commit."""
    mf = stepping.law_of(step, "mf", scored, drawn, top_log_p[:, 0, :2])
    mar = stepping.law_of(step, "mar", scored, drawn, top_log_q[:, 1, :2])
    (confidence_mf, committed_mf), (confidence_mar, committed_mar) = stepping.choose(step, mf, mar)
    return {
        "confidence_mf": confidence_mf,
        "committed_mf": committed_mf,
        "confidence_mar": confidence_mar,
        "committed_mar": committed_mar,
    }


def _of_inference(found: Potential, posterior: Posterior) -> dict[str, np.ndarray]:
    """Return what a step records of the mean field that it draws from, and of its posterior."""
    state_ids, state_probability, live = chain.top_states(found, posterior, min(found.automaton.states, TOP_STATES))
    return {
        "log_partition": np.asarray(posterior.log_partition),
        "log_class_mass": found.everywhere(found.log_mass, np.float32),
        "log_lift": chain.log_lift(found, posterior, np.float32),
        "entropy_mean_field": found.entropy.astype(np.float32),
        "entropy_posterior": posterior.entropy.astype(np.float32),
        "kl": posterior.kl.astype(np.float32),
        "forbidden_mass": posterior.forbidden_mass.astype(np.float32),
        "state_ids": state_ids,
        "state_probability": state_probability,
        "live": live,
    }


def _of_draw(automaton: TokenAutomaton, draw: Draw) -> dict[str, np.ndarray]:
    """Return what a step records of its draw."""
    midpoints = draw.midpoints or _no_midpoints(draw.tokens.size, min(automaton.states, TOP_MIDPOINT_STATES))
    return {
        "drawn": draw.tokens,
        "path": automaton.path(draw.tokens.tolist()) if draw.path is None else draw.path,
        "midpoint_log_probability": midpoints.log_probability,
        "midpoint_entropy": midpoints.entropy,
        "midpoint_ids": midpoints.ids,
        "midpoint_probability": midpoints.probability,
        "tries": np.asarray(draw.tries, np.int32),
        **_of_paths(automaton, draw),
    }


def _of_paths(automaton: TokenAutomaton, draw: Draw) -> dict[str, np.ndarray]:
    """Return what a step records of the paths of its draw."""
    if automaton.deterministic:
        return {}
    found = draw.paths
    if found is None:
        counted = paths.log_paths(automaton, _classes(automaton, draw.tokens)[None])
        return {"log_paths": np.asarray(counted[0])}
    return {
        "log_paths": np.asarray(found.log_paths),
        "paths_kept": np.asarray(found.kept / found.tries),
        "inverse_paths": np.asarray(found.inverse_paths),
        "path_weighted": np.asarray(found.path_weighted),
    }


def again(
    record: StepRecord,
    logits: np.ndarray,
    header: Header,
    step: int,
    model_ms: float,
    urgent: Mapping[int, bool] | None = None,
) -> StepRecord:
    """Compute a finished step's quantities under another constraint; what was drawn and committed stays.

    Args:
        record: of the finished step.
        logits: float `[length vocab]`, of its mean field.
        header: of the run with the other constraint, and with the settings that the step was done with.
        step: number of the step.
        model_ms: how long the logits took.
        urgent: of the step, see `Start`.
    """
    config = header.config
    eligible = np.flatnonzero(record.confidence_mf > -np.inf)
    stop = (int(eligible.max(initial=0)) // config.block_length + 1) * config.block_length
    logits = _without_banned(logits, config, header.vocabulary)
    answer = Answer(logits, record.canvas, header.vocabulary, header.automaton)
    given = Step(answer, config, step, stop, int(record.committed.sum()), urgent or {})
    draw = Draw(record.drawn, tries=int(record.tries))
    return _record(given, record.log_mean_field is not None, model_ms, draw, record.committed)


def _classes(automaton: TokenAutomaton, token_ids: np.ndarray) -> np.ndarray:
    """Return the class of each token; an id behind the vocabulary (a mask that was drawn or left) is dead."""
    inside = token_ids < automaton.token_class.size
    return np.where(inside, automaton.token_class[np.where(inside, token_ids, 0)], 0)


def _no_midpoints(length: int, top: int) -> Midpoints:
    nothing = np.full(length + 1, np.nan, np.float32)
    ids = np.full((length + 1, top), -1, np.int32)
    return midpoint.Midpoints(ids[:, 0], nothing, nothing, ids, np.zeros((length + 1, top), np.float32))
