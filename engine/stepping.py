"""One denoising step: inference on the model's answer, a joint draw, and the choice of positions.

`decode.denoise` writes down all that these functions find. `advance` keeps the canvas alone, and runs that meet the
same canvas share what they would find alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import noise, remasking
from engine.errors import EmptyLanguageError
from engine.inference import chain, independent, lookahead, midpoint, paths
from engine.inference.potential import potential, potentials
from engine.trace import TOP_MIDPOINT_STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.inference.chain import Posterior
    from engine.inference.midpoint import Midpoints
    from engine.inference.potential import Potential
    from engine.token_automaton import TokenAutomaton
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

EXACT = ("midpoint", "tree", "chain", "map")
"""Samplers of the constrained posterior."""
BASELINES = ("independent", "local", "reject", "lookahead")
"""Samplers that exist to be seen failing (`method.md`, section 7)."""


@dataclass(frozen=True, eq=False)
class Inference:
    """What a mean field comes to under the constraint; each part is computed when it is first asked for.

    Attributes:
        potential: the factors.
        draws: what was drawn from it already, by what decides a draw.
    """

    potential: Potential
    draws: dict[tuple[Any, ...], Draw] = field(default_factory=dict)

    @cached_property
    def posterior(self) -> Posterior:
        """Messages and marginals."""
        return chain.posterior(self.potential)


@dataclass(frozen=True, eq=False)
class Answer:
    """The model's answer to a canvas, under a constraint.

    Attributes:
        logits: float `[length vocab]`.
        canvas: int32 `[length]`.
        vocabulary: of the model.
        automaton: the constraint over it.
        found: inference on this answer, by temperature, top-p and top-k.
    """

    logits: np.ndarray
    canvas: np.ndarray
    vocabulary: Vocabulary
    automaton: TokenAutomaton
    found: dict[tuple[float | None, ...], Inference] = field(default_factory=dict)

    def inference(self, temperature: float = 1.0, top_p: float | None = None, top_k: int | None = None) -> Inference:
        """Return inference on the tempered and filtered mean field; without filters also that at temperature 1."""
        key, seen = (temperature, top_p, top_k), (self.logits, self.canvas, self.vocabulary.mask_id, self.automaton)
        if key not in self.found and _filters(*key[1:]):
            self.found[key] = Inference(potential(*seen, *key))
        elif key not in self.found:
            both = (1.0,) if temperature == 1 else (temperature, 1.0)
            for each, factors in zip(both, potentials(*seen, both), strict=True):
                self.found.setdefault((each, None, None), Inference(factors))
        return self.found[key]


@dataclass(frozen=True, eq=False)
class Step:
    """What a step of a run is given.

    Attributes:
        answer: of the model.
        config: of the run.
        number: of the step.
        block_stop: end of the step's block.
        planned: how many positions LLaDA would commit.
        urgent: positions that are to be committed before all others (True) or not at all (False).
    """

    answer: Answer
    config: Config
    number: int
    block_stop: int
    planned: int
    urgent: Mapping[int, bool] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Draw:
    """A joint draw: tokens, states where the sampler drew them, and the midpoint tree where it has one."""

    tokens: np.ndarray
    path: np.ndarray | None = None
    midpoints: Midpoints | None = None
    tries: int = 1
    paths: paths.Corrected | None = None


def advance(step: Step) -> np.ndarray:
    """Do a step and return the canvas that it leaves, int32 `[length]`: `canvas_after` of the record, and no record.

    Raises:
        EmptyLanguageError: as `draw`.
    """
    config = step.config
    found, lifted = drawn_from(step)
    kind = "map" if config.sampler in EXACT and _greedy(config) else (config.sampler, config.temperature > 0)
    key = (kind, config.seed, step.number, config.reject_budget, config.path_tries)
    if key not in found.draws:
        found.draws[key] = draw(step, found)
    tokens = found.draws[key].tokens
    log_best_two = np.empty((tokens.size, 2))
    if config.remasking == "topk_margin":
        row = config.confidence == "mar"
        log_best_two = chain.top_tokens(found.potential, found.posterior, 2)[1 + row][:, int(row)]
    law = law_of(step, config.confidence, scored(step, found, lifted), tokens, log_best_two)
    ((_, chosen),) = choose(step, law)
    return np.where(chosen, tokens, step.answer.canvas)


def drawn_from(step: Step) -> tuple[Inference, bool]:
    """Return inference on what is drawn from, and whether its filters had to be lifted to leave a completion."""
    config = step.config
    drawn_at = config.temperature or 1.0
    filtered = step.answer.inference(drawn_at, config.top_p, config.top_k)
    if config.sampler in BASELINES or not _filters(config.top_p, config.top_k) or filtered.potential.possible:
        return filtered, False
    return step.answer.inference(drawn_at), True


def at_one(step: Step, found: Inference, lifted: bool) -> Inference:
    """Return inference at temperature 1 without filters; `found` where that is what is drawn from."""
    plain = step.config.temperature in (0, 1) and (lifted or not _filters(step.config.top_p, step.config.top_k))
    return found if plain else step.answer.inference()


def scored(step: Step, found: Inference, lifted: bool) -> Inference:
    """Return inference on what confidences are computed of; `found` is what is drawn from."""
    return found if step.config.remasking in remasking.DREAM else at_one(step, found, lifted)


def law_of(step: Step, name: str, scored: Inference, drawn: np.ndarray, log_best_two: np.ndarray) -> remasking.Law:
    """Return what a confidence sees of the mean field (`mf`) or of the posterior (`mar`).

    Args:
        step: of a run.
        name: of the confidence.
        scored: inference that it is computed of.
        drawn: int32 `[length]`.
        log_best_two: float `[length 2]`, logarithms of the two largest probabilities.
    """
    of = scored.posterior if name == "mar" else scored.potential
    log_lift = scored.posterior.log_lift if name == "mar" else None
    p = chain.probabilities(scored.potential, drawn, log_lift)
    ends = _late_ids(step)
    if ends:
        at_ends = sum(chain.probabilities(scored.potential, np.full_like(drawn, v), log_lift) for v in ends)
        others = np.maximum(1 - at_ends, p)
        # Where the ends have all that float64 can tell, the rest is 0 and so is each of it.
        shares = np.divide(p, others, out=np.zeros_like(p), where=others > 0)
        p = np.where(np.isin(drawn, ends), 0.0, np.minimum(shares, 1.0))
    return remasking.Law(p, log_best_two, of.entropy)


def choose(step: Step, *laws: remasking.Law) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each law the confidence of each position, float64 `[length]`, and what it commits, bool `[length]`."""
    config, canvas = step.config, step.answer.canvas
    u = noise.uniforms(config.seed, step.number, noise.REMASKING, 0, canvas.size)
    eligible = canvas == step.answer.vocabulary.mask_id
    eligible[step.block_stop :] = False
    chosen = []
    for law in laws:
        c = remasking.confidence(config, law, eligible, u)
        pressed = _pressed(c, step.urgent)
        # A rule that looks at each position by itself passes what is urgent and doesn't see what is held.
        each = config.parallel or config.remasking == "origin"
        count = remasking.count(config, step.number, step.block_stop, step.planned, pressed if each else c)
        count = max(count, sum(step.urgent.values()))
        chosen.append((c, remasking.choose(pressed, count, config.alg_temp, u)))
    return chosen


def draw(step: Step, found: Inference) -> Draw:
    """Draw one joint sequence by the run's sampler; temperature 0 takes the best one.

    Raises:
        EmptyLanguageError: an exact sampler runs, and the model gives every accepted completion probability 0.
    """
    config, factors = step.config, found.potential
    if config.sampler == "lookahead":
        drawn, checked = lookahead.draw(factors, config.seed, step.number, config.temperature > 0)
        return Draw(drawn, tries=checked)
    if config.sampler in BASELINES:
        return _draw_baseline(step, found)
    if not found.potential.possible:
        raise EmptyLanguageError(
            f"At step {step.number} the model gives every accepted completion the probability 0.",
            "Give the tokens that the constraint needs a probability above 0, or change the constraint.",
        )
    if _greedy(config):
        tokens, path = chain.best(factors)
        return Draw(tokens, path, _midpoints(step, found, path))
    if not step.answer.automaton.deterministic:
        counted = paths.corrected(factors, found.posterior, config.seed, step.number, config.path_tries)
        return Draw(counted.tokens, counted.path, _midpoints(step, found, counted.path), counted.tries, counted)
    midpoints = _midpoints(step, found, None)
    path = midpoints.path if midpoints else chain.draw(factors, found.posterior, config.seed, step.number)
    return Draw(chain.draw_tokens(factors, path, config.seed, step.number), path, midpoints)


def _midpoints(step: Step, found: Inference, forced: np.ndarray | None) -> Midpoints | None:
    """Draw the midpoint tree, or compute that of a forced path; None where the sampler has none."""
    config, top = step.config, min(step.answer.automaton.states, TOP_MIDPOINT_STATES)
    if config.sampler == "midpoint":
        return midpoint.draw(found.potential, found.posterior, config.seed, step.number, top, forced)
    if config.sampler == "tree":
        # torch takes seconds to import; only the dense tree needs it here.
        from engine.inference import tree

        return tree.draw_where_it_pays(found.potential, found.posterior, config.seed, step.number, top, forced)
    return None


def _draw_baseline(step: Step, found: Inference) -> Draw:
    """Draw every masked position by itself, from `p` or, for `local`, from `p` where some completion exists.

    Where nothing is accepted any more, `local` has nothing to restrict to and draws from `p`.
    """
    config, allowed = step.config, None
    if config.sampler == "local" and found.potential.possible:
        allowed = chain.log_lift(found.potential, found.posterior) > -np.inf
    noisy = config.temperature > 0
    budget = config.reject_budget if config.sampler == "reject" and noisy else 1
    tokens, tries = independent.draw(found.potential, allowed, noisy, config.seed, step.number, budget)
    return Draw(tokens, tries=tries)


def _greedy(config: Config) -> bool:
    return config.sampler == "map" or config.temperature == 0


def _filters(top_p: float | None, top_k: int | None) -> bool:
    return top_p is not None or top_k is not None


def _late_ids(step: Step) -> list[int]:
    """Return the ids whose confidence `confidence_eos_eot_inf` sets to 0.

    LLaDA's code means EOS and EoT, but above temperature 0 it writes EOS's value into the wrong array (its issue 137).
    """
    if not step.config.confidence_eos_eot_inf:
        return []
    wrong = step.config.upstream_bugs and step.config.temperature > 0
    return list(step.answer.vocabulary.eos_ids[1 if wrong else 0 :])


def _pressed(confidence: np.ndarray, urgent: Mapping[int, bool]) -> np.ndarray:
    """Put urgent positions before all others and take forbidden ones out, for the choice alone."""
    confidence = confidence.copy()
    for position, now in urgent.items():
        confidence[position] = np.inf if now else -np.inf
    return confidence
