"""What is found before a run, with the changes that mend it: each is tried before it is offered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine import effort
from engine.diagnosis import empty, gaps, lengths, loops, pins, settings, specials, spelling
from engine.diagnosis.examination import ORDER, Examined, examine, examine_text, on_canvas
from engine.diagnosis.subject import READ
from engine.errors import Finding, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.diagnosis.subject import Subject
    from engine.errors import Place
    from engine.trace import Config
    from engine.vocabulary import Vocabulary

STEPS = 3_000_000
"""Of work for all trials of a diagnosis together; see `engine.effort`."""
OF_TEXT = ("syntax", "unsupported", "size", "empty", "settings")
"""Errors that hide all that tokens and the canvas may add: without them the text alone says whether they are mended."""
Changes = dict[str, Any]


def findings(config: Config, vocabulary: Vocabulary) -> tuple[Finding, ...]:
    """Diagnose a configuration; each remedy has been tried.

    Args:
        config: of the run; its constraint, length, pins and bans are looked at.
        vocabulary: of its model.

    Returns:
        The findings, the best explanation first.
    """
    return mended(examine(config, vocabulary), vocabulary)


def mended(examined: Examined, vocabulary: Vocabulary | None) -> tuple[Finding, ...]:
    """Add to each finding the changes after which it is gone and no error has come.

    Changes of which the limit of work leaves open whether they mend are counted, and not offered.

    Args:
        examined: what was found.
        vocabulary: that it was examined with; None where only the text was.
    """
    out = []
    listed = [candidates(finding, examined) for finding in examined.found]
    with effort.limited(STEPS) as budget:
        for finding, may_mend in zip(examined.found, listed, strict=True):
            remedies, untried = [], 0
            for label, changes in may_mend:
                mends = tried(examined, finding, changes, vocabulary) if budget.left > 0 else None
                if mends:
                    remedies.append(Remedy(label, changes))
                untried += mends is None or (not mends and budget.left <= 0)
            out.append(replace(finding, remedies=tuple(remedies), untried=untried))
    return tuple(out)


def tried(examined: Examined, finding: Finding, changes: Changes, vocabulary: Vocabulary | None) -> bool | None:
    """Whether a finding is gone after some changes, with no error that was not there or hidden behind it.

    None where something that was known before is not determined after them.
    """
    after = _after(examined, finding, changes, vocabulary)
    left = [f for f in after if f.code == finding.code]
    if finding.code in ("blanks", "unbounded"):
        # One finding tells of all such places: it is mended where its own place is no longer among them.
        gone = all(_key(p) != _key(finding.where) for f in left for p in (f.where, *f.related))
    else:
        gone = len(left) < sum(f.code == finding.code for f in examined.found)
    # An error that comes later in the order was hidden by this one, or was there before.
    is_error = finding.severity == "error" and finding.code in ORDER
    hidden = ORDER[ORDER.index(finding.code) + 1 :] if is_error else ()
    known = {f.code for f in examined.found if f.severity == "error"}.union(hidden)
    if not gone or any(f.severity == "error" and f.code not in known for f in after):
        return False
    return True if _undetermined(after) <= _undetermined(examined.found) else None


def _undetermined(found: Iterable[Finding]) -> set[str]:
    return {f.code for f in found if not f.evidence.get("determined", True)}


def _after(examined: Examined, finding: Finding, changes: Changes, vocabulary: Vocabulary | None) -> list[Finding]:
    """Look at the changed configuration again, as far as it may matter to a finding."""
    subject = examined.subject
    if subject is not None and not READ & changes.keys():
        of_canvas = {f.code for f in on_canvas(subject)}
        return [*(f for f in examined.found if f.code not in of_canvas), *on_canvas(subject.changed(changes))]
    changed = replace(examined.config, **changes)
    if vocabulary is None or (finding.severity == "error" and finding.code in OF_TEXT):
        return list(examine_text(changed).found)
    return list(examine(changed, vocabulary).found)


def _key(place: Place | None) -> object:
    """What stays of a place when the text behind it changes."""
    return None if place is None else place.pointer or place.start


def candidates(finding: Finding, examined: Examined) -> list[tuple[str, Changes]]:
    """Return the changes that may mend a finding, with what each does; untried."""
    config, subject = examined.config, examined.subject
    out: list[tuple[str, Changes]] = []
    if isinstance(config.source, str):
        out = [(edit.label, {"source": edit.apply(config.source)}) for edit in finding.edits]
    if spelling.concerns(finding):
        out += spelling.remedies(finding, config)
    elif finding.code == "empty":
        out += empty.remedies(finding, config)
    elif finding.code in ("size", "large"):
        out += loops.remedies_of_size(finding, config)
    elif finding.code == "settings":
        out += settings.remedies(config)
    elif finding.code == "special":
        out += specials.remedies(finding, config)
    elif finding.code == "vocabulary":
        out += gaps.remedies(finding, config)
    elif subject is not None and finding.code in ("length", "tight"):
        out += lengths.remedies(finding, subject)
    elif subject is not None and finding.code == "pins":
        out += _without_pins(finding, subject)
    elif subject is not None and finding.code in ("blanks", "unbounded"):
        out += loops.remedies(finding, subject)
    return out


def _without_pins(finding: Finding, subject: Subject) -> list[tuple[str, Changes]]:
    """Leave out pins, unless it takes too much work to know which."""
    try:
        with effort.limited(STEPS):
            return pins.remedies(finding, subject)
    except effort.OutOfStepsError:
        return []
