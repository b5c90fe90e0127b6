"""From what a user asked for to a run that can start: settings, model, constraint and pins, all checked."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING

import numpy as np

from engine import constraints, models, remasking, token_automaton
from engine.errors import ConfigError, EmptyLanguageError, ModelError, PinError
from engine.inference import support
from engine.models.architecture import DEFAULT, Options
from engine.stepping import BASELINES, EXACT
from engine.trace import Config, Header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.constraints import Constraint
    from engine.models import Denoiser
    from engine.token_automaton import TokenAutomaton
    from engine.vocabulary import Vocabulary

MAX_LENGTH = 1024
COLDEST = 1e-3
"""Least temperature above 0: colder, tokens that a model gives some probability would count as impossible."""


def prepare(
    config: Config,
    pins: Mapping[int, str] | None = None,
    options: Options = DEFAULT,
    progress: Callable[[int, int], None] | None = None,
    load: Callable[..., Denoiser] = models.load,
) -> tuple[Denoiser, Header]:
    """Check a configuration, load its model and compile its constraint.

    Args:
        config: what the user asked for.
        pins: texts to commit before the first step, by the position of their first token.
        options: how the model is to be loaded.
        progress: of its loading, see `models.load`.
        load: what loads it, in place of `models.load`.

    Returns:
        The model, and the run's header, with the pins as tokens.

    Raises:
        InputError: a setting is wrong, the model is missing, the constraint can't be read, accepts nothing of this
            length, or contradicts a pin.
    """
    check(config)
    read(config)  # a mistake in it is told before a model is loaded
    denoiser = load(config.model, options, progress)
    vocabulary = denoiser.vocabulary
    if (config.logits_eos_inf or config.confidence_eos_eot_inf) and not vocabulary.eos_ids:
        raise ConfigError(f"The model {config.model} has no EOS.", "Leave out what is to be done with it.")
    fixed = denoiser.facts.get("length")
    if fixed is not None and fixed != config.length:
        raise ConfigError(
            f"The canvas has {config.length} positions, and {config.model} has {fixed} rows.",
            f"Set the length to {fixed}.",
        )
    prompt_ids = denoiser.encode_prompt(config.prompt)
    _check_context(denoiser, prompt_ids.size, config.length)
    automaton = compiled(config, vocabulary)
    if pins:
        config = dataclasses.replace(config, pins=pin_tokens(denoiser, config.length, pins))
    header = Header(config, denoiser.facts, vocabulary, automaton, prompt_ids)
    check_placed(header, config.pins)
    return denoiser, header


def check_model(denoiser: Denoiser, header: Header) -> None:
    """Refuse a model that is not the one of a recorded run: of other tokens, weights or numeric type.

    Raises:
        ModelError: it is another.
    """
    remedy = "Load the model as it was when the run was recorded, or run again."
    if denoiser.vocabulary != header.vocabulary:
        raise ModelError(
            f"The model {header.config.model} has other tokens than when this run was recorded: "
            f"{denoiser.vocabulary.size:,}, and the run knows {header.vocabulary.size:,}.",
            remedy,
        )
    for name in ("revision", "parameters", "dtype"):  # an older run may not have recorded all
        was, now = header.model.get(name), denoiser.facts.get(name)
        if None not in (was, now) and was != now:
            raise ModelError(
                f"The model {header.config.model} has the {name} {now}, and had {was} when this run was recorded.",
                remedy,
            )


def _check_context(denoiser: Denoiser, prompt_length: int, length: int) -> None:
    context = denoiser.facts.get("context")
    if context is not None and prompt_length + length > context:
        raise ConfigError(
            f"The prompt has {prompt_length} tokens and the canvas {length}; {denoiser.name} takes {context} in all.",
            "Shorten the prompt or the canvas.",
        )


def compiled(config: Config, vocabulary: Vocabulary) -> TokenAutomaton:
    """Compile a configuration's constraint over a vocabulary; without one, return the automaton of everything.

    Raises:
        InputError: the constraint can't be read, or accepts nothing of this length.
    """
    constraint = read(config)
    if constraint is None:
        return token_automaton.everything(vocabulary)
    automaton = token_automaton.compile(constraint, vocabulary)
    _check_length(automaton, config.length)
    return automaton


def read(config: Config) -> Constraint | None:
    """Read a configuration's constraint; None where it has none.

    Raises:
        InputError: it can't be read.
    """
    return None if config.kind is None else constraints.read(config.kind, config.source, **dict(config.reading))


def check(config: Config) -> None:
    """Refuse settings that are out of range or don't divide, each with its value and its limit.

    Raises:
        ConfigError: names the setting.
    """
    for name, low, high in (("length", 1, MAX_LENGTH), ("steps", 1, 4096), ("block_length", 1, MAX_LENGTH)):
        value = getattr(config, name)
        if not low <= value <= high:
            words = "number of steps" if name == "steps" else name.replace("_", " ")
            raise ConfigError(
                f"The {words} is {value}, and it must be from {low} to {high}.", "Choose one in that range."
            )
    length, block = config.length, config.block_length
    if length % block:
        divisors = ", ".join(str(d) for d in range(1, length + 1) if length % d == 0)
        raise ConfigError(
            f"The block length {block} doesn't divide the length {length}.",
            f"Choose one of {divisors}.",
        )
    blocks = length // block
    if config.steps % blocks:
        raise ConfigError(
            f"The {config.steps} steps can't be shared evenly by {blocks} blocks of {block} positions.",
            f"Choose a multiple of {blocks} steps, or a block length of {length} for a single block.",
        )
    _check_numbers(config)
    _check_names(config)
    _check_text(config.prompt)
    _check_rule(config)


def _check_numbers(config: Config) -> None:
    limits: tuple[tuple[str, float, float, str], ...] = (
        ("temperature", 0, 100, "Choose 0 for the best sequence, 1 for draws from the model's own distribution."),
        ("top_p", 1e-9, 1, "Choose a mass to keep, or leave it out to keep all tokens."),
        ("top_k", 1, math.inf, "Choose a number of tokens to keep, or leave it out to keep all."),
        ("alg_temp", 0, 1e6, "Choose 0 for the most confident positions, more for chance among them."),
        ("threshold", 1e-9, 1, "Choose a probability, as 0.9."),
        ("factor", 1e-9, 1e6, "Choose a positive factor, as 1."),
        ("cfg_scale", 0, 1e3, "Choose 0 for no guidance."),
        ("reject_budget", 1, 1 << 20, "Choose a number of draws."),
        ("path_tries", 0, 1 << 16, "Choose a number of draws, or 0 to leave them weighted by paths."),
    )
    for name, low, high, remedy in limits:
        value = getattr(config, name)
        if value is not None and not low <= value <= high:
            words = name.replace("_", " ")
            most = f" and at most {high:g}" if high < math.inf else ""
            least = "above 0" if low == 1e-9 else f"at least {low:g}"
            raise ConfigError(f"The {words} is {value}, and it must be {least}{most}.", remedy)
    for name, coldest in (("temperature", COLDEST), ("alg_temp", 1e-6)):
        value = getattr(config, name)
        if value and value < coldest:
            raise ConfigError(
                f"The {name.replace('_', ' ')} is {value}, and it must be 0 or at least {coldest:g}.",
                "Choose 0, which is what so low a temperature comes to.",
            )
    if not 0 <= config.seed < 2**63:
        raise ConfigError(f"The seed is {config.seed}, and it must be from 0 to 2^63 − 1.", "Choose another seed.")


def _check_text(prompt: str) -> None:
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"The prompt has a lone surrogate at character {error.start}, which no UTF-8 text can hold.", "Remove it."
        ) from error


def _check_names(config: Config) -> None:
    named = (
        ("sampler", EXACT + BASELINES),
        ("remasking", remasking.NAMES),
        ("confidence", ("mf", "mar")),
    )
    for name, known in named:
        if getattr(config, name) not in known:
            raise ConfigError(f"There is no {name} {getattr(config, name)!r}.", f"Choose one of {', '.join(known)}.")


def _check_rule(config: Config) -> None:
    """Refuse settings that no published loop has together."""
    name = config.remasking
    wrong = (
        (
            config.parallel and name in ("origin", "entropy"),
            f"The remasking {name} has no probability that a threshold or a factor could be compared with.",
            "Choose low_confidence, maskgit_plus or topk_margin.",
        ),
        (
            (config.threshold is not None or name == "threshold") and (config.factor is not None or name == "factor"),
            "A threshold and a factor are two rules for the same choice.",
            "Give one of them.",
        ),
        (
            config.alg_temp is not None and (name not in remasking.DREAM or config.parallel),
            f"The temperature alg_temp draws positions for Dream's schedule, and {name} has none here.",
            f"Leave it out, or choose one of {', '.join(remasking.DREAM)} without threshold and factor.",
        ),
        (
            config.confidence_eos_eot_inf and name not in ("low_confidence", "threshold", "factor"),
            f"The option confidence_eos_eot_inf is of LLaDA's low_confidence, and the remasking is {name}.",
            "Leave it out, or choose low_confidence.",
        ),
    )
    for holds, problem, remedy in wrong:
        if holds:
            raise ConfigError(problem, remedy)


def _check_length(automaton: TokenAutomaton, length: int) -> None:
    accepted = automaton.accepted_lengths(max(4 * length, 256))
    if accepted[length]:
        return
    lengths = np.flatnonzero(accepted)
    below, above = lengths[lengths < length], lengths[lengths > length]
    near = [str(n) for n in (*below[-1:], *above[:1])]
    if near:
        raise EmptyLanguageError(
            f"Nothing that this constraint accepts fills a canvas of {length} tokens exactly; the nearest accepted "
            f"{'lengths are' if len(near) > 1 else 'length is'} {' and '.join(near)}.",
            f"Set the length to {' or '.join(near)}, or change the constraint.",
        )
    raise EmptyLanguageError(
        f"Nothing that this constraint accepts fits: its shortest text needs more than {accepted.size - 1} tokens, and "
        f"the canvas has {length}.",
        "Shorten the constraint.",
    )


def read_pins(lines: Iterable[str]) -> dict[int, str]:
    """Read pins written as `POSITION=TEXT`: texts by the position of their first token.

    Raises:
        PinError: a line has no position, or the position of another.
    """
    pins: dict[int, str] = {}
    for line in lines:
        position, equals, text = line.partition("=")
        if not equals or not re.fullmatch(r"\s*[0-9]{1,9}\s*", position):
            raise PinError(
                f"The pin {line!r} has no position in front of '='.", "Write it as POSITION=TEXT, as in 0={."
            )
        if int(position) in pins:
            raise PinError(f"There are two pins at position {int(position)}.", "Remove one of them.")
        pins[int(position)] = text
    return pins


def pin_tokens(denoiser: Denoiser, length: int, pins: Mapping[int, str]) -> tuple[tuple[int, int], ...]:
    """Place the tokens of pinned texts: (position, token id) pairs, ascending.

    Raises:
        PinError: a text is empty, passes the canvas, or meets another.
    """
    placed: dict[int, int] = {}
    for position, text in sorted(pins.items()):
        if not text:
            raise PinError(f"The pin at position {position} has no text.", "Write it as POSITION=TEXT.")
        token_ids = _spelled(denoiser, text, first=position == 0)
        if position < 0 or position + len(token_ids) > length:
            raise PinError(
                f"The pin {text!r} takes the positions {position} to {position + len(token_ids) - 1}, and the canvas "
                f"has 0 to {length - 1}.",
                "Choose a position where it fits.",
            )
        for i, token_id in enumerate(token_ids, position):
            if i in placed:
                raise PinError(f"Two pins meet at position {i}.", "Move one of them.")
            placed[i] = token_id
    return tuple(sorted(placed.items()))


def _spelled(denoiser: Denoiser, text: str, *, first: bool) -> list[int]:
    """Return the tokenizer's own tokens for a text, or the fewest where those write something else there."""
    unwritable = PinError(f"No sequence of this model's tokens writes the pin {text!r}.", "Pin another text.")
    try:
        data = text.encode()
    except UnicodeEncodeError:  # a lone surrogate: no bytes are it
        raise unwritable from None
    vocabulary = denoiser.vocabulary
    own: list[int] = denoiser.encode(text).tolist()
    if vocabulary.data(own, first=first) == data:
        return own
    found = vocabulary.spell(data, first=first)
    if found is None:
        raise unwritable
    return found


def check_placed(header: Header, placed: Sequence[tuple[int, int]], what: str = "pinned") -> None:
    """Refuse tokens that leave no accepted completion; name the fewest that contradict each other.

    Args:
        header: of the run; its bans hold.
        placed: (position, token id) pairs, those first that are to be blamed last.
        what: how the tokens came to stand there.

    Raises:
        PinError: with the positions of the conflict.
    """
    config = header.config
    found = support.conflict(header.automaton, config.length, placed, config.bans)
    if found is None:
        return
    if not found:
        raise PinError(
            f"The {len(config.bans)} banned tokens leave nothing that the constraint accepts.", "Remove some of them."
        )
    texts = [
        f"{(header.vocabulary.written(token_id) or b'').decode(errors='replace')!r} at position {position}"
        for position, token_id in found
    ]
    if len(texts) == 1:
        raise PinError(
            f"The {what} token {texts[0]} contradicts the constraint: no accepted text of {config.length} tokens has "
            "it there.",
            "Remove it, move it, or change the constraint or the length.",
            positions=(found[0][0],),
        )
    raise PinError(
        f"The {what} tokens {', '.join(texts[:-1])} and {texts[-1]} contradict the constraint together: no accepted "
        f"text of {config.length} tokens has all of them, and without any one of them there is one.",
        "Remove or move one of them, or change the constraint or the length.",
        positions=tuple(position for position, _ in found),
    )
