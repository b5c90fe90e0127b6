"""The denoising loop, constrained: predict, draw one joint sequence, commit the most confident positions, repeat.

Schedules, blocks, temperatures and confidences are those of the published loops (`remasking.py`); what a constraint
changes is the law of the draw. Mf and Mar are both computed at every step, whichever decides.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from engine import noise, remasking
from engine.errors import EmptyLanguageError
from engine.inference import chain, independent, lookahead, midpoint, paths
from engine.inference.potential import Potential, potential, potentials
from engine.trace import TOP_MIDPOINT_STATES, TOP_STATES, TOP_TOKENS, Config, Header, StepRecord, initial_canvas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.inference.chain import Marginals, Messages
    from engine.inference.midpoint import Midpoints
    from engine.models import Denoiser
    from engine.token_automaton import TokenAutomaton
    from engine.vocabulary import Vocabulary

    _Inference: TypeAlias = tuple[Potential, Messages, Marginals]

EXACT = ("midpoint", "tree", "chain", "map")
"""Samplers of the constrained posterior."""
BASELINES = ("independent", "local", "reject", "lookahead")
"""Samplers that exist to be seen failing (`method.md`, section 7)."""
MEAN_FIELD_BYTES = 64 << 20
"""A run keeps its mean fields while `steps · length · vocab` float32 numbers fit in this."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where the loop begins: at the first step, or in the middle as a fork or a continued run does.

    Attributes:
        step: number of the step.
        canvas: int32 `[length]`, before it.
        schedule: for it and each step after it, the end of its block and how many positions LLaDA would commit. A
            parallel rule passes over the steps that a block has left when nothing of it is masked.
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
    canvas, urgent, step = begin.canvas, begin.urgent, begin.step
    for stop, count in begin.schedule:
        if config.parallel and not (canvas[:stop] == vocabulary.mask_id).any():
            continue
        started = time.perf_counter()
        logits = predict(denoiser, prompt_ids, canvas, step, config.cfg_scale)
        model_ms = 1e3 * (time.perf_counter() - started)
        state = _Step(_without_banned(logits, config, vocabulary), canvas, vocabulary, automaton, config, step)
        record = _record(state, stop, count, keep, model_ms, urgent)
        canvas, urgent = record.canvas_after, {}
        yield record
        step += 1


def predict(denoiser: Denoiser, prompt_ids: np.ndarray, canvas: np.ndarray, step: int, cfg_scale: float) -> np.ndarray:
    """Ask the model; with guidance, lead its answer away from the one to a masked prompt, as LLaDA's `generate.py`."""
    if not cfg_scale:
        return denoiser.logits(prompt_ids, canvas, step)
    masked = np.full_like(prompt_ids, denoiser.vocabulary.mask_id)
    given, free = denoiser.batch_logits([prompt_ids, masked], [canvas, canvas], step)
    impossible = np.isneginf(given)
    with np.errstate(invalid="ignore"):
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


@dataclass(frozen=True, eq=False)
class _Step:
    """What a step is given."""

    logits: np.ndarray
    canvas: np.ndarray
    vocabulary: Vocabulary
    automaton: TokenAutomaton
    config: Config
    number: int

    @property
    def seen(self) -> tuple[np.ndarray, np.ndarray, int, TokenAutomaton]:
        """What potentials are made of."""
        return self.logits, self.canvas, self.vocabulary.mask_id, self.automaton


@dataclass(frozen=True, eq=False)
class _Draw:
    """A joint draw: tokens, states, and the midpoint tree where the sampler has one."""

    tokens: np.ndarray
    path: np.ndarray
    midpoints: Midpoints | None = None
    tries: int = 1
    paths: paths.Corrected | None = None


def _record(
    state: _Step,
    block_stop: int,
    count: int,
    keep: bool,
    model_ms: float,
    urgent: Mapping[int, bool],
    draw: _Draw | None = None,
    committed: np.ndarray | None = None,
) -> StepRecord:
    """Do one step's inference, draw and choice, and write all of it down."""
    started = time.perf_counter()
    config = state.config
    (found, messages, marginals), at_one, lifted = _inferred(state)
    draw = draw or _draw(state, found, messages, marginals)
    top = chain.top_tokens(found, marginals, TOP_TOKENS)
    scored = (found, marginals) if config.remasking in remasking.DREAM else (at_one[0], at_one[2])
    choice = _choice(state, _laws(state, *scored, draw.tokens, *top[1:]), block_stop, count, urgent)
    if committed is None:
        committed = choice[f"committed_{config.confidence}"]
    after = chain.log_partition_after(found, messages, marginals, committed, draw.tokens)
    return StepRecord(
        canvas=state.canvas,
        committed=committed,
        **choice,
        log_partition_model=np.asarray(at_one[1].log_partition),
        **dict(zip(("top_ids", "top_log_mean_field", "top_log_posterior"), top, strict=True)),
        **_of_inference(found, messages, marginals),
        **_of_draw(state.automaton, draw),
        log_mean_field=at_one[0].all_log_mean_field() if keep else None,
        filter_lifted=np.asarray(lifted),
        log_partition_after=np.asarray(after),
        model_ms=np.asarray(model_ms),
        engine_ms=np.asarray(1e3 * (time.perf_counter() - started)),
    )


def _choice(
    state: _Step, laws: tuple[remasking.Law, remasking.Law], block_stop: int, planned: int, urgent: Mapping[int, bool]
) -> dict[str, np.ndarray]:
    """Return both confidences, and what each would commit."""
    config, length = state.config, state.canvas.size
    u = noise.uniforms(config.seed, state.number, noise.REMASKING, 0, length)
    eligible = (state.canvas == state.vocabulary.mask_id) & (np.arange(length) < block_stop)
    out = {}
    for name, law in zip(("mf", "mar"), laws, strict=True):
        c = remasking.confidence(config, law, eligible, u)
        count = remasking.count(config, state.number, block_stop, planned, c)
        out[f"confidence_{name}"] = c
        out[f"committed_{name}"] = remasking.choose(*_pressed(c, count, urgent), config.alg_temp, u)
    return out


def _of_inference(found: Potential, messages: Messages, marginals: Marginals) -> dict[str, np.ndarray]:
    """Return what a step records of the mean field that it draws from, and of its posterior."""
    state_ids, state_probability, live = chain.top_states(found, messages, min(found.automaton.states, TOP_STATES))
    return {
        "log_partition": np.asarray(messages.log_partition),
        "log_class_mass": found.log_class_mass.astype(np.float32),
        "log_lift": marginals.log_lift.astype(np.float32),
        "entropy_mean_field": found.entropy.astype(np.float32),
        "entropy_posterior": marginals.entropy.astype(np.float32),
        "kl": marginals.kl.astype(np.float32),
        "forbidden_mass": marginals.forbidden_mass.astype(np.float32),
        "state_ids": state_ids,
        "state_probability": state_probability,
        "live": live,
    }


def _of_draw(automaton: TokenAutomaton, draw: _Draw) -> dict[str, np.ndarray]:
    """Return what a step records of its draw."""
    midpoints = draw.midpoints or _no_midpoints(draw.tokens.size, min(automaton.states, TOP_MIDPOINT_STATES))
    return {
        "drawn": draw.tokens,
        "path": draw.path,
        "midpoint_log_probability": midpoints.log_probability,
        "midpoint_entropy": midpoints.entropy,
        "midpoint_ids": midpoints.ids,
        "midpoint_probability": midpoints.probability,
        "tries": np.asarray(draw.tries, np.int32),
        **_of_paths(automaton, draw),
    }


def _of_paths(automaton: TokenAutomaton, draw: _Draw) -> dict[str, np.ndarray]:
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


def _pressed(confidence: np.ndarray, count: int, urgent: Mapping[int, bool]) -> tuple[np.ndarray, int]:
    """Put urgent positions before all others and take forbidden ones out, for the choice alone."""
    if not urgent:
        return confidence, count
    confidence = confidence.copy()
    for position, now in urgent.items():
        confidence[position] = np.inf if now else -np.inf
    return confidence, max(count, sum(urgent.values()))


def again(record: StepRecord, logits: np.ndarray, header: Header, step: int, model_ms: float) -> StepRecord:
    """Compute a finished step's quantities under another constraint; what was drawn and committed stays.

    Args:
        record: of the finished step.
        logits: float `[length vocab]`, of its mean field.
        header: of the run with the other constraint.
        step: number of the step.
        model_ms: how long the logits took.
    """
    config = header.config
    eligible = np.flatnonzero(record.confidence_mf > -np.inf)
    block_stop = (int(eligible.max(initial=0)) // config.block_length + 1) * config.block_length
    logits = _without_banned(logits, config, header.vocabulary)
    state = _Step(logits, record.canvas, header.vocabulary, header.automaton, config, step)
    draw = _Draw(record.drawn, header.automaton.path(record.drawn.tolist()), tries=int(record.tries))
    keep = record.log_mean_field is not None
    count = int(record.committed.sum())
    return _record(state, block_stop, count, keep, model_ms, {}, draw, record.committed)


def _inferred(state: _Step) -> tuple[_Inference, _Inference, bool]:
    """Return inference on what is drawn from and on the mean field at temperature 1, and whether filters were lifted.

    They have to be where they leave no completion.
    """
    config = state.config
    drawn_at = config.temperature or 1.0
    if _filters(config):
        filtered = _infer(potential(*state.seen, drawn_at, config.top_p, config.top_k))
        if config.sampler in BASELINES or filtered[1].possible:
            return filtered, _infer(potential(*state.seen)), False
    found = [_infer(x) for x in potentials(*state.seen, (1.0,) if drawn_at == 1 else (drawn_at, 1.0))]
    return found[0], found[-1], _filters(config)


def _infer(found: Potential) -> _Inference:
    messages = chain.messages(found)
    return found, messages, chain.marginals(found, messages)


def _filters(config: Config) -> bool:
    return config.top_p is not None or config.top_k is not None


def _laws(
    state: _Step,
    scored: Potential,
    marginals: Marginals,
    drawn: np.ndarray,
    top_log_p: np.ndarray,
    top_log_q: np.ndarray,
) -> tuple[remasking.Law, remasking.Law]:
    """Return what the confidences see of the mean field (Mf) and of the posterior (Mar)."""
    p, q = chain.probabilities(scored, marginals, drawn)
    ends = _late_ids(state)
    if ends:
        at_ends = [chain.probabilities(scored, marginals, np.full_like(drawn, v)) for v in ends]
        is_end = np.isin(drawn, ends)
        p, q = (
            np.where(is_end, 0.0, np.minimum(x / np.maximum(1 - sum(e[n] for e in at_ends), x), 1.0))
            for n, x in enumerate((p, q))
        )
    return (
        remasking.Law(p, np.exp(top_log_p[:, 0, :2]), scored.entropy),
        remasking.Law(q, np.exp(top_log_q[:, 1, :2]), marginals.entropy),
    )


def _late_ids(state: _Step) -> list[int]:
    """Return the ids whose confidence `confidence_eos_eot_inf` sets to 0.

    LLaDA's code means EOS and EoT, but above temperature 0 it writes EOS's value into the wrong array (its issue 137).
    """
    if not state.config.confidence_eos_eot_inf:
        return []
    wrong = state.config.upstream_bugs and state.config.temperature > 0
    return list(state.vocabulary.eos_ids[1 if wrong else 0 :])


def _draw(state: _Step, found: Potential, messages: Messages, marginals: Marginals) -> _Draw:
    """Draw one joint sequence by the run's sampler; temperature 0 takes the best one."""
    sampler, config = state.config.sampler, state.config
    if sampler == "lookahead":
        drawn, checked = lookahead.draw(found, config.seed, state.number, config.temperature > 0)
        return _Draw(drawn, state.automaton.path(drawn.tolist()), tries=checked)
    if sampler in BASELINES:
        return _draw_baseline(state, found, marginals)
    if not messages.possible:
        raise EmptyLanguageError(
            f"At step {state.number} the model gives every accepted completion the probability 0.",
            "Give the tokens that the constraint needs a probability above 0, or change the constraint.",
        )
    top = min(state.automaton.states, TOP_MIDPOINT_STATES)
    best = chain.best(found) if sampler == "map" or config.temperature == 0 else None
    forced = None if best is None else best[1]
    counted = None
    if best is None and not state.automaton.deterministic:
        counted = paths.corrected(found, messages, config.seed, state.number, config.path_tries)
        forced = counted.path
    midpoints = None
    if sampler == "midpoint":
        midpoints = midpoint.draw(found, messages, config.seed, state.number, top, forced)
    elif sampler == "tree":
        # torch takes seconds to import; only the dense tree needs it here.
        from engine.inference import tree

        midpoints = tree.draw_where_it_pays(found, messages, config.seed, state.number, top, forced)
    if best is not None:
        return _Draw(best[0], best[1], midpoints)
    if counted is not None:
        return _Draw(counted.tokens, counted.path, midpoints, counted.tries, counted)
    path = midpoints.path if midpoints else chain.draw(found, messages, config.seed, state.number)
    return _Draw(chain.draw_tokens(found, path, config.seed, state.number), path, midpoints)


def _draw_baseline(state: _Step, found: Potential, marginals: Marginals) -> _Draw:
    """Draw every masked position by itself, from `p` or, for `local`, from `p` where some completion exists.

    Where nothing is accepted any more, `local` has nothing to restrict to and draws from `p`.
    """
    config, allowed = state.config, None
    if config.sampler == "local" and (marginals.log_lift > -np.inf).any():
        allowed = marginals.log_lift > -np.inf
    noisy = config.temperature > 0
    budget = config.reject_budget if config.sampler == "reject" and noisy else 1
    drawn, tries = independent.draw(found, allowed, noisy, config.seed, state.number, budget)
    return _Draw(drawn, state.automaton.path(drawn.tolist()), tries=tries)


def _classes(automaton: TokenAutomaton, token_ids: np.ndarray) -> np.ndarray:
    """Class of each token; an id behind the vocabulary (a mask that was drawn or left) is dead."""
    inside = token_ids < automaton.token_class.size
    return np.where(inside, automaton.token_class[np.where(inside, token_ids, 0)], 0)


def _no_midpoints(length: int, top: int) -> Midpoints:
    nothing = np.full(length + 1, np.nan, np.float32)
    ids = np.full((length + 1, top), -1, np.int32)
    return midpoint.Midpoints(ids[:, 0], nothing, nothing, ids, np.zeros((length + 1, top), np.float32))
