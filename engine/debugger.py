"""Forks: a run that leaves a recorded one at some step with something changed, and never changes the recorded one.

    made = debugger.fork(trace, step, [Edit("pin", position=3, token_id=17)])
    child = Trace(made.header, tuple(debugger.steps(made, denoiser)))

Noise is a function of (seed, step, stream, index), so a fork without edits is its parent, bit for bit, and whatever
differs between a fork and its parent comes from the edits. With `reuse` the fork's first step takes the mean field that
the parent recorded: what the automaton alone makes of the edits, at once; the model sees them from the next step on.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine import decode, preparation, stepping
from engine.errors import ConfigError, ForkError, PinError
from engine.trace import Branch, Config, Edit, Header, initial_canvas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.models import Denoiser
    from engine.trace import StepRecord, Trace

FIXED = ("prompt", "kind", "source", "model", "length", "steps", "block_length", "pins", "bans")
"""Settings that a fork can't `set`: the axes of the record, the model, and what has an edit of its own."""


@dataclass(frozen=True, eq=False)
class Fork:
    """A fork, ready to run.

    Attributes:
        header: of the child.
        parent: the recorded run.
        begin: where its own steps begin.
        reuse: whether its first step takes the recorded mean field.
        model_calls: calls of the model that all its steps need.
    """

    header: Header
    parent: Trace
    begin: decode.Start
    reuse: bool
    model_calls: int

    @property
    def instant(self) -> bool:
        """Whether its first step needs no model."""
        return self.model_calls < len(self.begin.schedule)

    @property
    def reads_again(self) -> bool:
        """Whether the parent's steps are to be read again, since the constraint is another."""
        return self.header.automaton is not self.parent.header.automaton


def fork(trace: Trace, step: int, edits: Sequence[Edit] = (), *, reuse: bool = False) -> Fork:
    """Leave a recorded run in front of a step, with edits.

    Args:
        trace: the parent.
        step: the first step that is to be the child's own; the number of recorded steps goes on behind the last.
        edits: what to change, in this order.
        reuse: take the mean field of `step` as it was recorded.

    Raises:
        ForkError: there is no such step, an edit doesn't fit, or there is no recorded mean field to be reused.
        PinError: what stands on the canvas after the edits contradicts the constraint; names the fewest that do.
        InputError: a setting or the new constraint is refused.
    """
    limit = min(len(trace.steps), trace.header.config.steps - 1)
    if not 0 <= step <= limit:
        raise ForkError(f"There is no step {step} to fork at.", f"Choose a step from 0 to {limit}.")
    header, canvas = trace.header, canvas_before(trace, step)
    urgent = _urgent(header, step)
    for edit in edits:
        header, canvas = _edited(header, canvas, edit, urgent)
    for config in (header.config, *(earlier.before for earlier in header.branches if earlier.before)):
        preparation.check(config)
    branch = Branch(trace.fingerprint, step, tuple(edits), trace.header.config)
    header = dataclasses.replace(header, branches=(*header.branches, branch))
    if step == 0:
        header = dataclasses.replace(header, config=dataclasses.replace(header.config, pins=_placed(header, canvas)))
    _check(trace, step, header, canvas)
    begin = decode.Start(step, canvas, _schedule(trace, step, header, canvas), _masked(header, canvas, urgent))
    _require(
        all(begin.urgent.values()) or step + 1 < header.config.steps,
        f"Step {step} is the last, and what it holds back would stay masked.",
        "Hold it at an earlier step.",
    )
    if reuse:
        _check_reuse(trace, step, header.config, canvas)
    return _counted(Fork(header, trace, begin, reuse, 0))


def resume(trace: Trace) -> Fork:
    """Go on behind the last recorded step: the same run, no fork.

    Raises:
        ForkError: the run has all its steps.
        ConfigError: a setting of the file is refused.
    """
    step, header = len(trace.steps), trace.header
    preparation.check(header.config)
    if trace.finished:
        raise ForkError(f"This run has all its {step} steps.", "Fork it at one of them.")
    canvas = canvas_before(trace, step)
    urgent = _masked(header, canvas, _urgent(header, step))
    begin = decode.Start(step, canvas, _schedule(trace, step, header, canvas), urgent)
    return _counted(Fork(header, trace, begin, False, 0))


def steps(made: Fork, denoiser: Denoiser | None = None) -> Iterator[StepRecord]:
    """Yield the steps of a fork: the parent's in front of it, then its own.

    Args:
        made: the fork.
        denoiser: the model; None stops in front of the first step that needs it.

    Raises:
        ModelError: it is not the one that the parent was recorded with.
    """
    if denoiser is not None:
        preparation.check_model(denoiser, made.header)
    source = _Recorded(made, denoiser)
    for number, record in enumerate(made.parent.steps[: made.begin.step]):
        if not made.reads_again:
            yield record
        elif source.has(number):
            yield _read_again(made, source, number, record)
        else:
            return
    if source.has(made.begin.step):
        for record in decode.denoise(source, made.header.automaton, made.header.config, made.begin):
            yield record
            if not source.has(made.begin.step + 1):
                return


def canvas_before(trace: Trace, step: int) -> np.ndarray:
    """Return int32 `[length]`: the canvas that a step starts from, or that the run ended with."""
    if step < len(trace.steps):
        return trace.steps[step].canvas
    header, canvas = trace.header, trace.canvas
    for branch in _in_effect(header):
        if branch.step == step:  # a fork that was stopped before its first own step
            for edit in branch.edits:
                canvas = _edited_canvas(header, canvas, edit)
    return canvas


def settings() -> tuple[str, ...]:
    """Return the names that `set` may change."""
    return tuple(f.name for f in dataclasses.fields(Config) if f.name not in FIXED)


def _counted(made: Fork) -> Fork:
    """Count the calls of the model: a step whose mean field is reused needs none."""
    again = made.parent.steps[: made.begin.step] if made.reads_again else ()
    calls = sum(record.log_mean_field is None for record in again) + len(made.begin.schedule) - made.reuse
    return dataclasses.replace(made, model_calls=calls)


def _edited(header: Header, canvas: np.ndarray, edit: Edit, urgent: dict[int, bool]) -> tuple[Header, np.ndarray]:
    """Return the header and the canvas with one edit more; a position to hurry or to hold goes to `urgent`."""
    config = header.config
    if edit.kind == "constrain":
        return _constrained(header, edit), canvas
    if edit.kind == "set":
        return dataclasses.replace(header, config=_set(config, edit)), canvas
    position = _position(header, edit)
    masked = canvas[position] == header.vocabulary.mask_id
    if edit.kind in ("commit", "hold"):
        _require(masked, f"Position {position} is committed before this step.", "Fork at an earlier step.")
        urgent[position] = edit.kind == "commit"
    if edit.kind == "ban":
        token_id = _token(header, edit)
        _require(canvas[position] != token_id, f"The banned token stands at position {position}.", "Un-commit it too.")
        bans = tuple(sorted({*config.bans, (position, token_id)}))
        header = dataclasses.replace(header, config=dataclasses.replace(config, bans=bans))
    return header, _edited_canvas(header, canvas, edit)


def _edited_canvas(header: Header, canvas: np.ndarray, edit: Edit) -> np.ndarray:
    if edit.kind not in ("pin", "uncommit"):
        return canvas
    canvas, position = canvas.copy(), _position(header, edit)
    if edit.kind == "uncommit":
        masked = canvas[position] == header.vocabulary.mask_id
        _require(not masked, f"Position {position} is still masked at this step.", "Choose one that is committed.")
    canvas[position] = _token(header, edit) if edit.kind == "pin" else header.vocabulary.mask_id
    return canvas


def _position(header: Header, edit: Edit) -> int:
    kinds = ("pin", "ban", "uncommit", "commit", "hold")
    _require(
        edit.kind in kinds, f"There is no edit {edit.kind!r}.", f"Choose one of {', '.join(kinds)}, set, constrain."
    )
    length, position = header.config.length, edit.position
    if not isinstance(position, int) or not 0 <= position < length:
        raise ForkError(f"There is no position {position}.", f"Choose one from 0 to {length - 1}.")
    return position


def _token(header: Header, edit: Edit) -> int:
    vocabulary, token_id = header.vocabulary, edit.token_id
    inside = isinstance(token_id, int) and 0 <= token_id < vocabulary.size and token_id != vocabulary.mask_id
    if token_id is None or not inside:
        raise ForkError(f"There is no token {token_id} to {edit.kind}.", f"Choose an id below {vocabulary.size}.")
    return token_id


def _set(config: Config, edit: Edit) -> Config:
    name = edit.name or ""
    if name not in settings():
        raise ForkError(f"A fork can't set {name!r}.", f"Choose one of {', '.join(settings())}.")
    old, value = getattr(config, name), edit.value
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if old is not None and value is not None and type(value) is not type(old):
        raise ForkError(f"The {name} can't be {value!r}.", f"It is {old!r} now; give one of that kind.")
    return dataclasses.replace(config, **{name: value})


def _constrained(header: Header, edit: Edit) -> Header:
    """Compile another constraint over the same vocabulary."""
    if not isinstance(edit.name, str | None):
        raise ForkError(f"There is no constraint kind {edit.name!r}.", "Give the name of one, or none.")
    config = dataclasses.replace(header.config, kind=edit.name, source=edit.value)
    return dataclasses.replace(header, config=config, automaton=preparation.compiled(config, header.vocabulary))


def _placed(header: Header, canvas: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return what stands on a canvas as (position, token id) pairs."""
    return tuple((int(i), int(canvas[i])) for i in np.flatnonzero(canvas != header.vocabulary.mask_id))


def _check(trace: Trace, step: int, header: Header, canvas: np.ndarray) -> None:
    """Refuse a canvas that can't be completed; a baseline that was lost already may go on."""
    touched = {edit.position for edit in header.branches[-1].edits if edit.kind == "pin"}
    placed = sorted(_placed(header, canvas), key=lambda pair: pair[0] in touched)
    try:
        preparation.check_placed(header, placed, "committed or pinned")
    except PinError as error:
        lost = [n for n, record in enumerate(trace.steps[: step + 1]) if np.isneginf(record.log_partition)]
        if not lost:
            raise
        if header.config.sampler in stepping.BASELINES and not touched:
            return
        raise PinError(
            error.problem,
            f"Since step {lost[0]} nothing can be accepted any more: fork at step {max(0, lost[0] - 1)}, or un-commit "
            "one of them.",
            positions=error.positions,
        ) from error


def _check_reuse(trace: Trace, step: int, config: Config, canvas: np.ndarray) -> None:
    known = step < len(trace.steps) and trace.steps[step].log_mean_field is not None
    _require(known, f"The mean field of step {step} was not recorded.", "Let the model be asked again.")
    was = _settings(trace.header, step)
    _require(
        config.cfg_scale == was.cfg_scale and config.logits_eos_inf >= was.logits_eos_inf,
        f"The mean field of step {step} was recorded with another cfg_scale or without EOS.",
        "Let the model be asked again.",
    )
    mask_id = trace.header.vocabulary.mask_id
    new = np.flatnonzero((canvas == mask_id) & (trace.steps[step].canvas != mask_id))
    if new.size:
        raise ForkError(
            f"Position {new[0]} was committed at step {step}, so no mean field of it was recorded.",
            "Let the model be asked again.",
        )


def _schedule(trace: Trace, step: int, header: Header, canvas: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return the plan of the steps from `step` on.

    The plan is the one made when the set of masked positions last changed other than by a step, or the rule by which
    steps commit did: at the start, at a fork that pinned, un-committed or set the rule, or behind one that held back.
    """
    planned_at, planned_for = 0, initial_canvas(trace.header) if not trace.steps else trace.steps[0].canvas
    for branch in _in_effect(header):
        if branch.step <= step and any(_replans(edit) for edit in branch.edits):
            planned_at = branch.step
            planned_for = canvas if branch.step == step else canvas_before(trace, branch.step)
        urgent = _masked(header, canvas_before(trace, branch.step), _urgent(header, branch.step))
        if branch.step < step and not all(urgent.values()):
            planned_at, planned_for = branch.step + 1, canvas_before(trace, branch.step + 1)
    plan = decode.schedule(header.config, planned_for, header.vocabulary.mask_id, planned_at)
    return plan[step - planned_at :]


def _replans(edit: Edit) -> bool:
    """Whether an edit leaves other positions to be committed than were planned for."""
    return edit.kind in ("pin", "uncommit") or edit.name in ("remasking", "threshold", "factor")


def _in_effect(header: Header) -> list[Branch]:
    """Return the branches of a run but for those that a later one left in front of them."""
    kept: list[Branch] = []
    for branch in header.branches:
        kept = [*(earlier for earlier in kept if earlier.step <= branch.step), branch]
    return kept


def _urgent(header: Header, step: int) -> dict[int, bool]:
    """Return the positions that a run's edits hurry or hold at a step."""
    edits = [edit for branch in _in_effect(header) if branch.step == step for edit in branch.edits]
    return {
        edit.position: edit.kind == "commit"
        for edit in edits
        if edit.kind in ("commit", "hold") and edit.position is not None
    }


def _masked(header: Header, canvas: np.ndarray, urgent: dict[int, bool]) -> dict[int, bool]:
    """Leave out what was pinned in the meantime."""
    return {i: now for i, now in urgent.items() if canvas[i] == header.vocabulary.mask_id}


def _settings(header: Header, step: int) -> Config:
    """Return the settings that a recorded step was done with: those of the run that did it."""
    config = header.config
    for branch in reversed(header.branches):
        if branch.step <= step:
            break
        config = branch.before or config
    return config


def _require(holds: bool, problem: str, remedy: str) -> None:
    if not holds:
        raise ForkError(problem, remedy)


class _Recorded:
    """A model that answers from the record where the fork may, and asks the real one elsewhere."""

    def __init__(self, made: Fork, denoiser: Denoiser | None) -> None:
        self._made, self._denoiser = made, denoiser
        header = made.header
        self.vocabulary, self.facts = header.vocabulary, dict(header.model)
        self.name = header.config.model

    def has(self, step: int) -> bool:
        """Whether a step can be answered."""
        return self._denoiser is not None or self._recorded(step) is not None

    def encode_prompt(self, _prompt: str) -> np.ndarray:
        return self._made.header.prompt_ids

    def encode(self, text: str) -> np.ndarray:
        raise ConfigError(f"A record has no tokenizer for {text!r}.", "Load the model.")

    def logits(self, prompt_ids: np.ndarray, canvas: np.ndarray, step: int) -> np.ndarray:
        known = self._recorded(step)
        if known is not None:
            return known
        if self._denoiser is None:
            raise ForkError(f"Step {step} needs the model.", "Load it.")
        return self._denoiser.logits(prompt_ids, canvas, step)

    def batch_logits(
        self, prompts: Sequence[np.ndarray], canvases: Sequence[np.ndarray], step: int
    ) -> list[np.ndarray]:
        # What was recorded is what guidance made of both answers; guidance of two equal answers is that answer.
        known = self._recorded(step)
        if known is not None:
            return [known] * len(prompts)
        if self._denoiser is None:
            raise ForkError(f"Step {step} needs the model.", "Load it.")
        return self._denoiser.batch_logits(prompts, canvases, step)

    def _recorded(self, step: int) -> np.ndarray | None:
        """Return float32 `[length vocab]`, `log p` at the masked positions; what stands elsewhere is never read."""
        made = self._made
        if not (step < made.begin.step or (made.reuse and step == made.begin.step)):
            return None
        record = made.parent.steps[step]
        if record.log_mean_field is None:
            return None
        rows = np.zeros((record.canvas.size, self.vocabulary.size), np.float32)
        rows[record.canvas == self.vocabulary.mask_id] = record.log_mean_field
        return rows


def _read_again(made: Fork, source: _Recorded, number: int, record: StepRecord) -> StepRecord:
    """Read a step in front of the fork under the fork's constraint; all other settings are those it was done with."""
    config = _settings(made.header, number)
    header = dataclasses.replace(made.header, config=config)
    started = time.perf_counter()
    logits = decode.predict(source, header.prompt_ids, record.canvas, number, config.cfg_scale)
    model_ms = 1e3 * (time.perf_counter() - started)
    return decode.again(record, logits, header, number, model_ms, _urgent(made.parent.header, number))
